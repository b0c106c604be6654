"""The grid of benchmarks/sturdiness.py: complete, reproducible, and honest about failures."""

import math
import warnings
from dataclasses import replace

import pytest
from benchmarks.problems import NASTY, load
from benchmarks.sturdiness import ARRIVAL, cases, chosen, run, run_all, show, slow

import adasdca
from adasdca.problem.losses import LOSSES

GRID = list(cases())
NAMES = {case.name: case for case in GRID}
CHEAP = [
    "iris_0/raw/dense/squared/C=1/intercept/l2/seed0",
    "iris_1/std/csr/squared/C=1/no_intercept/l2/seed1",
    "iris_0/std/dense/logistic/C=1/no_intercept/elastic_net/seed2",
    "three_rows/raw/dense/smoothed_hinge/C=1/no_intercept/l2/seed0",
    "weights/raw/csr/squared/C=1e-2/no_intercept/l2/seed0",
]


def test_the_grid_has_every_loss_and_every_name_once():
    assert {case.loss for case in GRID} == set(LOSSES)
    assert {case.source.name for case in GRID} >= {"breast_cancer", "diabetes", *NASTY}
    assert len(NAMES) == len(GRID)


def test_labels_are_signs():
    sources = {c.source for c in GRID if LOSSES[c.loss].kind == "classification"}
    assert all(set(load(source).labels) == {-1.0, 1.0} for source in sources)


def test_a_share_is_reproducible_and_within_a_larger_one():
    small = chosen(GRID, 0.01)
    assert small == chosen(cases(), 0.01)
    assert set(small) <= set(chosen(GRID, 0.02))
    assert len(small) == pytest.approx(0.01 * len(GRID), rel=0.2)
    assert all("/hinge/" in c.name for c in chosen(GRID, 1.0, ["iris", "/hinge/"]))


def test_a_part_is_kept_apart():
    develop, report = (set(chosen(GRID, 0.1, (), part)) for part in ("develop", "report"))
    assert develop | report == set(chosen(GRID, 0.1))
    assert not develop & report
    assert len(report) == pytest.approx(len(develop) / 2, rel=0.1)


def test_what_was_slow_tells_its_phases():
    result = run(NAMES[CHEAP[0]])
    assert result.work == "1 Newton"
    late = replace(result, seconds=0.2)
    text = show([replace(result, seconds=0.01)] * 9 + [late])
    assert "slow by phases" in text
    assert "1 Newton" in text


def test_a_journal_is_gone_on_from(tmp_path, monkeypatch):
    """What was solved is not solved again; a line is there when its problem is solved."""
    path, tasks = tmp_path / "journal.jsonl", [(NAMES[name], 1e-6, 20.0) for name in CHEAP[:3]]
    first = run_all(tasks[:2], 1, path)
    assert len(path.read_text().splitlines()) == 2
    assert [r.case for r in run_all(tasks, 1, path)] == [task[0] for task in tasks]
    assert len(path.read_text().splitlines()) == 3
    monkeypatch.setattr("benchmarks.sturdiness._run", lambda task: pytest.fail("solved again"))
    assert run_all(tasks, 1, path)[:2] == first


def test_a_stalled_solve_has_arrived_only_where_rounding_hides_the_rest(monkeypatch):
    solve = adasdca.solve

    def stalls(share):
        def stalled(*args, **keywords):
            solution = solve(*args, **keywords)
            certificate = replace(solution.certificate, rounding=share * solution.gap)
            return replace(solution, status=adasdca.Status.STALLED, certificate=certificate)

        return stalled

    monkeypatch.setattr("adasdca.solve", stalls(0.5))
    assert run(NAMES[CHEAP[2]]).failure is None
    monkeypatch.setattr("adasdca.solve", stalls(0.1))
    assert run(NAMES[CHEAP[2]]).failure == "stalled"


@pytest.mark.parametrize("name", CHEAP)
def test_a_cheap_case_is_solved(name):
    result = run(NAMES[name])
    assert result.failure is None
    assert result.gap <= result.tol


def test_a_stalled_solve_has_arrived_if_more_was_asked_for():
    result = run(NAMES[CHEAP[0]], tol=0.0)
    assert result.failure is None
    assert result.gap <= ARRIVAL


def test_a_solve_without_time_is_a_failure():
    results = run_all([(NAMES[CHEAP[0]], 1e-6, 0.0), (NAMES[CHEAP[1]], 1e-6, 20.0)], jobs=1)
    assert [r.failure for r in results] == ["time limit", None]
    assert show(results).endswith("2 problems, 1 failures")
    assert CHEAP[0] in show(results)


def test_an_exception_is_a_failure(monkeypatch):
    monkeypatch.setattr("adasdca.solve", lambda *_, **__: 1 / 0)
    result = run(NAMES[CHEAP[0]])
    assert result.failure.startswith("ZeroDivisionError")
    assert math.isnan(result.gap)


def test_a_warning_is_a_failure(monkeypatch):
    solve = adasdca.solve

    def warns(*args, **keywords):
        warnings.warn("hm", RuntimeWarning, stacklevel=1)
        return solve(*args, **keywords)

    monkeypatch.setattr("adasdca.solve", warns)
    assert run(NAMES[CHEAP[0]]).failure == "RuntimeWarning: hm"


def test_slow_is_relative_to_the_kind():
    result = run(NAMES[CHEAP[0]])
    quick, late = replace(result, seconds=0.01), replace(result, seconds=0.2)
    assert slow([quick] * 9 + [late]) == [(pytest.approx(20.0), late)]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("C", ["1e2", "1e6"])
def test_nanoseconds_arrive(C, seed):
    """A column of 1.6e18 and an intercept: rounds begin where their point is no worse."""
    result = run(NAMES[f"nanoseconds/raw/dense/hinge/C={C}/intercept/l2/seed{seed}"])
    assert result.failure is None


def test_nanoseconds_arrive_with_an_l1_term():
    """Where sums have twice the digits, sharper rounds may gain what the last one did not."""
    result = run(NAMES["nanoseconds/raw/csr/hinge/C=1e6/intercept/elastic_net/seed0"])
    assert result.failure is None
