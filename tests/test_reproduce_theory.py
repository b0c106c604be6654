"""Runs watched from inside, and claims about bounds, rates, draws and residues, both ways."""

from types import SimpleNamespace

import numpy as np
import pytest

from adasdca import _core, solve
from adasdca.backends.cpu import LocalBackend
from adasdca.duality import theory
from adasdca.problem.problem import Problem
from adasdca_reproduce import inside, watching
from adasdca_reproduce.experiments import METHODS
from adasdca_reproduce.paper import CLAIMS
from adasdca_reproduce.rates import Rates, optimum, rates
from adasdca_reproduce.results import Results
from adasdca_reproduce.verdicts import Verdict
from cases import make_data

CLAIM = {claim.name: claim for claim in CLAIMS}
LAM = 0.05


@pytest.fixture(scope="module")
def problem():
    X, y = make_data("smoothed_hinge")
    return Problem.checked(X, y, loss="smoothed_hinge", lam=LAM)


def watched(problem, label, epochs=4):
    return watching.watch(problem, METHODS[label], max_epochs=epochs, max_time=3600.0, seed=7)


@pytest.mark.parametrize(
    ("label", "rule"),
    [
        ("iprox-sdca", "importance"),
        ("option II, m = 50", "importance"),
        ("option I", "relaxed"),
        ("adasdca", "relaxed"),
        ("adasdca, optimal", "optimal"),
    ],
)
def test_the_rate_is_that_of_the_probabilities_of_the_method(label, rule, problem):
    """At β = 0, where the residues are the slopes at 0: −y_i for the smoothed hinge with γ = 1."""
    seen = watched(problem, label)
    X, y = make_data("smoothed_hinge")
    setting = {"v": (X**2).sum(axis=1), "lam": LAM, "gamma": 1.0}
    kappa = -y
    p = {
        "importance": lambda: theory.importance_probabilities(**setting),
        "relaxed": lambda: theory.relaxed_probabilities(kappa, **setting),
        "optimal": lambda: theory.optimal_probabilities(kappa, **setting),
    }[rule]()
    assert seen["history"]["theta"][0] == pytest.approx(theory.theta(kappa, p, **setting))
    assert seen["theta_star"] == pytest.approx(theory.theta_star(**setting))
    if rule == "importance":
        assert seen["history"]["theta"] == pytest.approx([seen["theta_star"]] * 5)
    else:
        assert min(seen["history"]["theta"]) >= seen["theta_star"] * (1 - 1e-9)
    assert len({len(column) for column in seen["history"].values()}) == 1
    assert seen["history"]["updates"] == [k * len(problem.y) for k in range(5)]


def test_the_draws_that_are_counted_are_those_of_the_epoch(problem):
    seen = watched(problem, "option I", epochs=1)
    backend = LocalBackend(problem)
    backend.restart(np.zeros(len(problem.y)), 0.0)
    schedule = METHODS["option I"].schedule(problem, backend.facts, 0.0, 1)
    plan = schedule.plan(backend.survey(schedule.needs), _core.subkey(7, 0))
    rows = backend.epochs.draw(plan, 1e18)
    assert seen["visits"]["repeats"] == [pytest.approx(1 - len(set(rows.tolist())) / len(rows))]
    assert watched(problem, "adasdca", epochs=1)["visits"] == {}


@pytest.mark.parametrize("label", ["option I", "iprox-sdca", "adasdca"])
def test_a_run_that_is_watched_is_the_run_of_the_method(label, problem):
    X, y = make_data("smoothed_hinge")
    sol = solve(X, y, loss="smoothed_hinge", lam=LAM, method=METHODS[label], tol=0.0, max_epochs=3,
                random_state=0)  # fmt: skip
    seen = watching.watch(problem, METHODS[label], max_epochs=3, max_time=3600.0,
                          seed=sol.state.seed)  # fmt: skip
    assert seen["history"]["gap"] == sol.history.gap.tolist()
    assert seen["status"] == "epoch limit"
    assert watched(problem, label, epochs=5000)["status"] == "converged"


def test_the_figures_of_an_epoch(monkeypatch):
    monkeypatch.setattr(watching, "FEWEST", 1)
    before = SimpleNamespace(n=4, residue=np.array([4.0, -2.0, 1.0, 0.0]))
    after = SimpleNamespace(n=4, residue=np.array([1.0, 3.0, 0.5, 9.0]))
    for survey in (before, after):
        survey.adaptive = np.abs(survey.residue)
    rows = np.array([0, 0, 1, 3], dtype=np.int32)
    found = watching._visits(METHODS["option I"], rows, before, after)
    assert found["repeats"] == 0.25
    assert found["fell"] == 0.5  # row 0 did, row 1 did not, row 3 had none
    assert found["kept"] == [0.5, 1.5, 0.25, None]
    old, new = np.array([4, 2, 1, 0]) / 7, np.array([1, 3, 0.5, 9]) / 13.5
    thinned = np.array([1, 1, 1, 0]) / 3
    assert found["moved"] == pytest.approx(0.5 * np.abs(old - new).sum(), abs=1e-6)
    assert found["left"] == pytest.approx(0.5 * np.abs(thinned - new).sum(), abs=1e-6)
    assert "moved" not in watching._visits(METHODS["option II, m = 50"], rows, before, after)


def record(gaps, thetas, *, method="adasdca", seed=0, dual=0.0, visits=None, loss="squared"):
    return {
        "experiment": "theory",
        "data": "mushrooms",
        "loss": loss,
        "method": method,
        "seed": seed,
        "protocol": {"budget": 1.0},
        "n": 2,
        "status": "converged",
        "theta_star": 0.25,
        "history": {
            "updates": [2 * k for k in range(len(gaps))],
            "seconds": [0.0] * len(gaps),
            "primal": [1.0] * len(gaps),
            "dual": [dual, *[1.0] * (len(gaps) - 1)],
            "gap": gaps,
            "active": [2] * len(gaps),
            "theta": thetas,
        },
        "visits": visits or {},
    }


def test_rates_are_weighted_by_the_gap_and_bounds_are_those_of_the_theorems():
    pair = [record([1.0, 0.3, 0.1], [0.5] * 3), record([3.0, 0.1, 0.1], [0.3] * 3, seed=1)]
    seen = rates(Results(pair), ("mushrooms", "squared"), "adasdca")
    mean = [(0.5 + 0.9) / 4, (0.15 + 0.03) / 0.4, 0.4]
    assert seen.ratio == pytest.approx(np.array(mean) / 0.25)
    assert seen.gap == pytest.approx([2.0, 0.2, 0.1])
    assert seen.epochs.tolist() == [0, 1, 2]
    between = np.exp(np.interp(np.arange(5), [0, 2, 4], np.log(mean)))
    assert seen.bound == pytest.approx(theory.adaptive_bound(between, 1.0)[::2])
    fixed = rates(Results([record([1.0, 0.5], [0.25] * 2, method="iprox-sdca")]),
                  ("mushrooms", "squared"), "iprox-sdca")  # fmt: skip
    assert fixed.bound == pytest.approx([4.0, 4.0 * 0.75**2])
    assert rates(Results(pair), ("mushrooms", "squared"), "option I") is None
    assert optimum(Results(pair), ("mushrooms", "squared"), 2) == 1.0


def seen_with(gap, bound, ratio):
    k = np.arange(len(gap), dtype=float)
    return Rates(k, np.array(gap), np.array(ratio), np.array(bound))


def test_a_bound_is_kept_or_broken():
    kept = inside.below_bound(seen_with([1.0, 1e-7], [2.0, 0.5], [1, 1]))
    assert kept == (True, "bound : gap ≥ 2")
    assert not inside.below_bound(seen_with([1.0, 0.6], [2.0, 0.5], [1, 1]))[0]
    # What rounding leaves is no business of the theorem.
    assert inside.below_bound(seen_with([1.0, 1e-14], [2.0, 1e-15], [1, 1]))[0]


def test_a_bound_tells_something_or_nothing():
    """Read off at the first survey at 1e-6, and at the last one if there is none."""
    arrived = seen_with([0.5, 1e-6, 1e-9], [9.0, 0.4, 0.1], [1] * 3)
    assert inside.bound_tells(arrived) == (
        True,
        "after 1 epochs: relative gap 1.0e-06, bound 4.0e-01",
    )
    assert not inside.bound_tells(seen_with([0.5, 1e-6, 1e-9], [9.0, 0.6, 0.1], [1] * 3))[0]
    assert inside.bound_tells(seen_with([0.5, 0.1, 0.01], [9.0, 0.6, 0.1], [1] * 3))[0]


def test_a_rate_is_better_or_not():
    assert inside.faster_rate(seen_with([1.0, 0.1], [1, 1], [1.0, 4.0]))[0]
    assert not inside.faster_rate(seen_with([1.0, 0.1], [1, 1], [0.9, 4.0]))[0]


def epoch(**figures):
    return {"repeats": 0.0, "fell": 1.0, "kept": [1.0, 0.5, None, None]} | figures


def test_draws_and_residues_are_judged_both_ways():
    for share, holds in ((0.04, True), (0.06, False)):
        assert inside.rarely_repeat([epoch(repeats=share)] * 3)[0] is holds
    for share, holds in ((0.51, True), (0.5, False)):
        assert inside.residues_fall([epoch(fell=share), epoch(fell=None)])[0] is holds
    for left, holds in ((0.2, True), (0.3, False)):
        assert inside.probabilities_follow([epoch(moved=0.3, left=left)])[0] is holds


def test_claims_are_judged_from_the_records_of_their_method():
    visits = {"repeats": [0.0, 0.5], "fell": [1.0, 0.0], "kept": [[1, 1, 1, 1]] * 2}
    runs = [record([1.0, 1e-12, 0.0], [0.5] * 3, method="option II, m = 50", visits=visits)]
    (case,) = CLAIM["large-m-repeats-II"].cases(Results(runs))
    assert case.verdict is Verdict.HOLDS  # the second epoch began at the limits of precision
    assert CLAIM["large-m-repeats-I"].cases(Results(runs)) == []
    kept = [record([1.0, 0.1, 1e-11], [0.25, 0.5, 0.5])]
    (case,) = CLAIM["bound-adasdca"].cases(Results(kept))
    assert case.verdict is Verdict.HOLDS
    (case,) = CLAIM["bound-adasdca"].cases(Results([record([1.0, 0.9], [0.9, 0.9])]))
    assert case.verdict is Verdict.FAILS
    (case,) = CLAIM["rate-adasdca"].cases(Results([record([1.0, 0.1], [0.5, 0.2])]))
    assert case.verdict is Verdict.FAILS
    hinge = [record([1.0, 0.1], [0.5, 0.5], loss="smoothed_hinge")]
    assert CLAIM["bound-adasdca"].cases(Results(hinge)) == []  # no theorem
