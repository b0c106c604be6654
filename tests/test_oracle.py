"""Certificates against the oracle of benchmarks/exact: over random problems nothing is claimed
that does not hold in real numbers. `python -m benchmarks.oracle` does the same for any number.
"""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from benchmarks import attack
from benchmarks.exact.checks import Oracle
from benchmarks.exact.counts import Run, Runs, Tally, Verdict
from benchmarks.exact.multinomial import MultinomialProblem
from benchmarks.exact.numbers import digits, eliminate, vector
from benchmarks.exact.optimum import CLOSE
from benchmarks.exact.problems import KINKED, SMOOTH, make
from benchmarks.measure import ONE_THREAD
from benchmarks.oracle import judge, main, run

import adasdca
from adasdca import Status
from adasdca.multinomial.certificate import certify_multinomial
from adasdca.multinomial.solver import solve_multinomial
from adasdca.problem.losses import LOSSES
from test_certificates_exactly import Exact

SEED, PARTS = 0, 20
#: Problems, and small ones, 20,000 in all.
PROBLEMS, SMALL = 8_000, 12_000


@pytest.fixture(autouse=True)
def many_digits():
    with digits():
        yield


@pytest.mark.parametrize("part", range(PARTS))
def test_no_certificate_claims_too_much(part):
    tally = Tally()
    verdicts = run(SEED, range(part, PROBLEMS, PARTS))
    verdicts += run(SEED, range(part, SMALL, PARTS), small=True)
    for verdict in verdicts:
        assert not verdict.violations, verdict
        tally.add(verdict)
    # Or the oracle would have had nothing to say.
    assert tally.total("undecided") <= 0.02 * tally.total("problems")
    assert tally.total("early") <= 0.002 * tally.total("problems")


@pytest.mark.parametrize("size", [1e-3, 1e-7, 1e-9, 1e-11])
def test_an_intercept_that_is_hardly_off_is_part_of_the_gap(size):
    """What it costs is far below the last digit of the objective, and far above other gaps."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        X, codes = rng.normal(size=(12, 2)), np.arange(12) % 3
        lam = float(10.0 ** rng.uniform(-1, 1))
        found = solve_multinomial(X, codes, n_classes=3, lam=lam, fit_intercept=True, tol=0.0)
        exact = MultinomialProblem(X, codes, np.ones(12), lam, True)

        def primal(b, exact=exact, coef=found.coef):
            return exact.primal([vector(w) for w in np.column_stack([coef, b])])

        b = found.intercept + size * rng.normal(size=3)
        said = certify_multinomial(X, codes, found.coef, b, lam=lam, fit_intercept=True)
        true = primal(b) - primal(found.intercept)
        assert 0 < true <= Decimal(said.gap) < 10 * true


# Features and targets far from 0, a free intercept, little penalty: lasso, elastic net, bounds, L2.
@pytest.mark.parametrize("index", [200, 1385, 1541, 3310, 3752, 4776, 5038])
def test_what_can_be_certified_is_found(index):
    verdict = judge(SEED, index)
    assert verdict.decided
    assert not verdict.violations
    assert not verdict.early


@pytest.mark.parametrize(
    ("seed", "index", "small"),
    [
        (101, 7443, False),  # no loss at the best model, which is 0
        (102, 1932, False),
        (102, 9429, False),  # far features, an intercept: duals whose sum is rounding
        (0, 1070, True),
        (0, 1006, True),  # nothing is known but that losses are not negative
        (0, 718, True),  # a loss too steep for the digits of the coefficients
        (0, 4185, True),
        (4010, 4512, False),  # the same with bounds
        (4013, 5737, False),
        (4014, 125, False),
        (4002, 3158, False),  # and an L1 term
        (50, 108, False),  # features a million deviations away: digits of w and b too coarse
        (50, 8016, False),
        (50, 23460, False),
        (50, 25507, False),
        (50, 26097, False),
        (51, 14231, False),  # no curvature at the optimum, and an intercept that surveys move
    ],
)
def test_solves_go_on_to_what_can_be_certified(seed, index, small):
    verdict = judge(seed, index, small)
    assert not verdict.violations
    assert not verdict.early


def test_every_loss_is_among_the_problems():
    names = {make(SEED, k).kind["loss"] for k in range(1000)}
    assert names == {loss.name for loss in (*SMOOTH, *KINKED)} | {"logistic"}
    assert names >= set(LOSSES)


def plain(loss, **options):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 2)) + 3.0
    y = X @ [1.0, -2.0] + rng.normal(size=12)
    kind = LOSSES[loss].kind
    case = make(SEED, 0)
    standard = {"l1_ratio": 0.0, "bounds": None, "sample_weight": None, "fit_intercept": True}
    standard |= {"intercept_scaling": None, "loss": LOSSES[loss](), "lam": 0.01, **options}
    target = np.where(y > np.median(y), 1.0, -1.0) if kind == "classification" else y
    return replace(case, X=X, y=target, options=standard, how={"tol": 1e-9})


def solved(case):
    found = adasdca.solve(case.X, case.y, **case.options, **case.how)
    return found, Oracle(case, found)


def test_the_optimum_is_that_of_fractions():
    case = plain("squared")
    _, oracle = solved(case)
    ridge = Exact(case.X, case.y, np.ones(len(case.y)), 0.01, True)
    best = ridge.optimum()
    at = [Fraction(x) for x in (*oracle.optimum.at.coef, oracle.optimum.at.intercept)]
    assert all(abs(a - r) <= abs(r) / 10**55 for a, r in zip(at, best, strict=True))
    value = ridge.value(at)
    assert Fraction(oracle.optimum.least) <= value <= Fraction(oracle.optimum.most)


@pytest.mark.parametrize("penalty", [{}, {"l1_ratio": 0.5}, {"l1_ratio": 1.0}, {"bounds": (0, 2)}])
@pytest.mark.parametrize("loss", LOSSES)
def test_an_oracle_knows_the_optimum(loss, penalty):
    found, oracle = solved(plain(loss, **penalty))
    least, most = oracle.optimum.least, oracle.optimum.most
    assert least <= most
    assert (most - least) < CLOSE * most
    assert not list(oracle.solution(found, 1e-9))


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "quantile", "huber"])
def test_claims_that_are_false_are_found(loss):
    case = plain(loss)
    case = replace(case, how={"tol": 1e-2, "random_state": 0})
    found, oracle = solved(case)
    coef, b = found.coef, found.intercept
    truth = oracle.exact.primal(*oracle.point(coef, b)) - oracle.optimum.most
    assert truth > 0

    def findings(**changes):
        wrong = replace(found.certificate, **changes)
        return [each.split()[0] for each in oracle.certificate(wrong, coef, b)]

    assert findings() == []
    share = 1 - 1e-9
    assert "gap" in findings(gap=float(truth) * share)
    assert "dual" in findings(dual=float(oracle.optimum.most) * (1 + 1e-9))
    assert "primal" in findings(primal=found.primal * (1 + 1e-3), dual=found.dual * (1 + 1e-3))
    apart = float(oracle.distance(oracle.point(coef, b)[0]))
    assert "radius" in findings(radius=apart * share)
    assert list(oracle.solution(replace(found, status=Status.CONVERGED), 0.1 * found.relative_gap))


def test_elimination_leaves_what_is_not_determined_at_0():
    one, two = Decimal(1), Decimal(2)
    assert eliminate([[one, one], [one, one]], [two, two]) == [two, 0]


def test_an_error_and_a_warning_are_violations(monkeypatch):
    monkeypatch.setattr("adasdca.solve", lambda *_, **__: 1 / 0)
    assert judge(SEED, 0).violations == ["ZeroDivisionError: division by zero"]
    tally = Tally()
    tally.add(judge(SEED, 0))
    tally.add(Verdict((0, 1), {"loss": "squared"}, status="converged"))
    assert tally.total("violations") == 1
    assert tally.total("problems") == 2
    assert "loss: squared" in tally.show()


def test_a_stalled_solve_says_where():
    case = plain("squared")
    found = adasdca.solve(case.X, case.y, **case.options, tol=0.0)
    assert found.status is Status.STALLED
    assert f"no certificate below {found.relative_gap:.2g}" in found.message


def test_attacks_are_reproducible_and_failures_are_shown(monkeypatch):
    first, second = attack.make(0, 3), attack.make(0, 3)
    assert first.options.keys() == second.options.keys()
    np.testing.assert_array_equal(first.y, second.y)
    assert attack.run((0, 3, False)).failure is None
    assert attack.run((0, 3, True)).failure is None
    monkeypatch.setattr("adasdca.solve", lambda *_, **__: 1 / 0)
    failed = attack.run((0, 3, False))
    assert failed.failure.startswith("ZeroDivisionError")
    assert "1 solves and 0 fits failed" in attack.show([failed])


def a_run(first, past, commit="abc", seed=0):
    tally = Tally()
    for k in range(first, past):
        tally.add(Verdict((seed, k), {"loss": "squared"}, k % 7 != 0, "converged"))
    return Run(seed, False, first, past, commit, "2026-01-01", 1.0, tally.plain())


def test_runs_add_up(tmp_path):
    here, there = Runs(tmp_path / "here.json"), Runs(tmp_path / "there.json")
    here.runs += [a_run(0, 30), a_run(50, 80, "def")]
    there.runs.append(a_run(0, 20, seed=1))
    here.write()
    there.write()
    again = Runs(tmp_path / "here.json")
    for each in Runs(tmp_path / "there.json").runs:
        again.make_room(each)
        again.runs.append(each)
    assert again.tally().total("problems") == 80
    undecided = sum(k % 7 == 0 for k in (*range(30), *range(50, 80), *range(20)))
    assert again.tally().total("undecided") == undecided
    assert again.summary().endswith("of abc, def")
    assert again.past(0, small=False) == 80
    assert again.past(1, small=False) == 20
    assert again.past(0, small=True) == 0


def test_no_problem_is_counted_twice():
    runs = Runs()
    runs.runs += [a_run(0, 30), a_run(30, 60)]
    with pytest.raises(ValueError, match="some of a run of 0 to 29"):
        runs.make_room(a_run(10, 40))
    runs.make_room(a_run(10, 40, seed=1))
    assert runs.tally().total("problems") == 60
    runs.make_room(a_run(30, 70))
    assert [run.past for run in runs.runs] == [30]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_goes_on_where_the_last_one_ended(jobs, tmp_path, monkeypatch, capsys):
    for name in ONE_THREAD:  # which workers are given
        monkeypatch.setenv(name, "1")
    counts = tmp_path / "counts.json"
    command = ["oracle", "--counts", str(counts), "--problems", "6", "--jobs", str(jobs)]
    for _ in range(2):
        monkeypatch.setattr("sys.argv", [*command, "--small"])
        assert main() == 0
    assert "12 problems: 0 violations" in capsys.readouterr().out
    runs = Runs(counts).runs
    assert [(run.first, run.past) for run in runs] == [(0, 6), (6, 12)]
    assert [run.counts["all"]["problems"] for run in runs] == [6, 6]
    monkeypatch.setattr("sys.argv", [*command, "--small", "--first", "0", "--problems", "12"])
    assert main() == 0
    assert [(run.first, run.past) for run in Runs(counts).runs] == [(0, 12)]
