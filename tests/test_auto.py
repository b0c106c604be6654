"""The automatic method: when it takes which steps, and that it arrives."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
import cases
from adasdca import Auto, Status, solve
from adasdca.auto.policy import Policy
from adasdca.auto.schedule import AutoSchedule
from adasdca.auto.second_order import SecondOrder
from adasdca.backends.cpu import LocalBackend
from adasdca.problem.problem import Problem


def test_same_seed_same_bits_and_phases():
    X, y = adasdca.datasets.load_mushrooms()
    runs = [
        solve(
            X,
            y,
            loss="smoothed_hinge",
            lam=1 / len(y),
            tol=1e-8,
            method=Auto(),
            random_state=3,
            n_threads=threads,
        )
        for threads in (1, 1, 2)
    ]
    assert runs[0].converged
    for other in runs[1:]:
        np.testing.assert_array_equal(runs[0].coef, other.coef)
        np.testing.assert_array_equal(runs[0].dual_coef, other.dual_coef)
    names = [phase.name for phase in runs[0].phases]
    assert names[0] == "permutation"
    assert names[-1] == "Newton"
    assert sum(phase.rounds for phase in runs[0].phases) == runs[0].n_epochs
    assert runs[0].phases[-1].gap_after == runs[0].gap
    assert runs[0].timings["second order"] > 0
    assert set(runs[0].timings) == {"setup", "survey", "plan", "ascent", "second order"}


def test_wide_data_go_by_permutations():
    rng = np.random.default_rng(0)
    X = sp.random(60, 4000, density=0.02, random_state=rng, format="csr")
    y = np.where(rng.random(60) < 0.5, -1.0, 1.0)
    sol = solve(X, y, loss="logistic", lam=1 / 60, tol=1e-8, method="auto", random_state=0)
    assert sol.converged
    assert {phase.name for phase in sol.phases} == {"permutation"}


def test_wide_data_are_surveyed_sooner_with_the_logistic_loss():
    rng = np.random.default_rng(0)
    X = sp.random(60, 4000, density=0.02, random_state=rng, format="csr")
    y = np.where(rng.random(60) < 0.5, -1.0, 1.0)
    first = {}
    for loss in ("logistic", "smoothed_hinge"):
        sol = solve(X, y, loss=loss, lam=1 / 60, tol=1e-2, method="auto", random_state=0)
        first[loss] = sol.history.updates[1]
    assert first["logistic"] < first["smoothed_hinge"]


@pytest.mark.parametrize("wide", [True, False])
def test_wide_data_are_surveyed_after_every_second_adaptive_epoch(wide):
    n, d = (1200, 2400) if wide else (4800, 600)
    rng = np.random.default_rng(0)
    X = sp.random(n, d, density=0.02, random_state=rng, format="csr")
    y = np.where(X @ rng.standard_normal(d) + rng.standard_normal(n) < 0, -1.0, 1.0)
    sol = solve(X, y, loss="hinge", lam=1 / n, tol=1e-2, method="auto", random_state=0)
    epochs = np.diff(sol.history.updates) / n
    assert sol.phases[1].name == "adaptive"
    assert max(epochs[1:]) == (2 if wide else 1)


@pytest.mark.parametrize("loss", ["smoothed_hinge", "squared_hinge"])
@pytest.mark.parametrize("seed", range(3))
def test_the_first_epoch_does_not_speak_against_the_next(seed, loss):
    """The relative gap stays near 1 while the gap falls; four epochs are cheaper than steps."""
    X, y = adasdca.datasets.load_mushrooms()
    sol = solve(X, y, loss=loss, lam=1 / len(y), tol=1e-2, method="auto", random_state=seed)
    assert sol.converged
    assert {phase.name for phase in sol.phases} == {"permutation", "adaptive"}


def test_time_runs_out_inside_a_step():
    X, y = adasdca.datasets.load_mushrooms()
    sol = solve(X, y, loss="squared", lam=1 / len(y), tol=0.0, method="auto", max_time=0.0)
    assert sol.status is adasdca.Status.TIME_LIMIT
    assert sol.gap >= 0


def test_from_a_point_where_every_margin_is_kept():
    """There all slopes are 0, and with them the duals: no row is active, and nothing is proved."""
    X, y = adasdca.datasets.load_mushrooms()
    lam = 1 / (1e6 * len(y))
    kept = solve(X, y, loss="squared_hinge", lam=lam, random_state=0).coef * 1.5
    problem = Problem.checked(X, y, loss="squared_hinge", lam=lam)
    backend = LocalBackend(problem)
    backend.place(np.zeros(len(y)), kept, 0.0)
    survey = backend.survey(frozenset({"adaptive"}))
    assert survey.active == 0
    assert survey.relative_gap == pytest.approx(1.0)
    schedule = AutoSchedule(problem, backend.facts, 1e-6, 1)
    for key in range(5):
        schedule.plan(survey, key).run(backend, 1e9)
        survey = backend.survey(frozenset({"adaptive"}))
        if survey.relative_gap <= 1e-6:
            break
    assert survey.relative_gap <= 1e-6


@pytest.mark.parametrize("method", ["auto", "adasdca+"])
def test_an_intercept_without_an_active_row(method):
    """The multiplier moves with every survey, so no active row is no reason to give up."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(4, 2)), np.array([1.0, -1.0, 1.0, 1.0])
        sol = solve(
            X, y, loss="hinge", lam=0.1, fit_intercept=True, method=method, random_state=seed
        )
        assert sol.status is not adasdca.Status.STALLED, sol


@pytest.mark.parametrize("loss", ["smoothed_hinge", "modified_huber"])
def test_where_epochs_crawl_second_order_steps_come(loss):
    """At a large C the gap falls too slowly to ever come near the optimum by epochs."""
    X, y = cases.make_data(loss, n=300)
    for intercept in (False, True):
        sol = solve(
            X, y, loss=loss, lam=1e-4 / 300, fit_intercept=intercept, method="auto", random_state=0
        )
        assert sol.converged, sol


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_an_end_that_is_not_the_goal_is_told(loss, monkeypatch):
    """Second-order steps that can do no more, twice: rounding hides the rest, and that is said."""
    X, y = cases.make_data(loss, n=200)
    monkeypatch.setattr(SecondOrder, "cost", lambda *_: 0.0)
    sol = solve(X, y, loss=loss, lam=1e-3, tol=0.0, random_state=0)
    assert sol.status is Status.STALLED
    assert sol.relative_gap < 1e-11
    assert sol.n_epochs < 30
    # What was asked for is reached, and no more is done.
    sol = solve(X, y, loss=loss, lam=1e-3, tol=1e-6, random_state=0)
    assert sol.status is Status.CONVERGED
    assert sol.n_epochs == 1


def test_the_best_point_is_returned_and_the_goal_is_its_own():
    """The gap counts, not its share of an objective that falls as well."""
    X, y = cases.make_data("squared", n=5000, seed=3)
    options = {"loss": "squared", "lam": 1e-3, "method": "quartz", "random_state": 7}
    sol = solve(X, y, tol=1e-12, max_epochs=4, **options)
    assert sol.gap == sol.history.gap.min()
    assert sol.primal < 0.5 * sol.history.primal[0]
    for tol in (1e-2, 1e-4, 1e-8):
        for loss in cases.LOSSES:
            X, y = cases.make_data(loss, n=60)
            sol = solve(X, y, loss=loss, lam=1e-3, tol=tol, fit_intercept=True, random_state=0)
            assert sol.converged
            assert sol.gap <= tol * sol.primal


def test_one_epoch_comes_before_steps_where_every_row_has_curvature():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 10)) @ rng.standard_normal((10, 250))
    X += rng.standard_normal(X.shape)
    y = np.where(X[:, 0] + 10.0 * rng.standard_normal(2000) > 0, 1.0, -1.0)
    sol = solve(X, y, loss="logistic", lam=1 / 2000, tol=1e-6, method="auto", random_state=0)
    assert sol.converged
    assert [(phase.name, phase.rounds) for phase in sol.phases] == [
        ("permutation", 1),
        ("Newton", 1),
    ]


@pytest.mark.parametrize("gamma", [1.0, 4.0])
def test_fewer_epochs_come_first_where_the_penalty_is_strong(gamma):
    """Squares of rows in units of λN, weaker and weaker penalties; rows of zeros, too."""
    squares = (0.0, 0.01, 0.1, 0.5, 1.0, 100.0)
    first = [Policy().first_permutations(3.0, gamma, square / gamma) for square in squares]
    assert first == sorted(first)
    assert first[0] < first[2] < first[4] == first[5]
    assert Policy().first_permutations(6.0, gamma, 0.01) > first[1]


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_newton_steps_begin_where_the_objective_is_least(C, monkeypatch):
    """In raw units the first epochs raise it many times over."""
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=8000 + 100)) + 500.0
    X = np.round(np.lib.stride_tricks.sliding_window_view(walk, 100)[:8000])
    y = np.where(X[:, 0] + rng.normal(size=8000) > np.median(X[:, 0]), 1.0, -1.0)
    begun = []
    plan = SecondOrder.plan
    monkeypatch.setattr(
        SecondOrder, "plan", lambda self, at, *rest: begun.append(at) or plan(self, at, *rest)
    )
    sol = solve(X, y, loss="logistic", lam=1 / (C * 8000), tol=1e-3, random_state=0)
    assert sol.converged
    assert max(sol.history.primal) > 5.0 * sol.history.primal[0]
    assert begun[0].primal == sol.history.primal[0]
    assert sum(phase.rounds for phase in sol.phases if phase.name != "Newton") <= 3


def test_a_share_of_a_worse_objective_is_no_goal():
    """The epochs left are those to a share of the least objective that was seen."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 30))
    y = np.where(X[:, 0] + rng.normal(size=3000) > 0.0, 1.0, -1.0)
    backend = LocalBackend(Problem.checked(X, y, loss="logistic", lam=1e-4))
    schedule = AutoSchedule(backend.problem, backend.facts, 1e-3, 1)
    start = backend.survey(frozenset({"adaptive"}))
    schedule._learn(start, start.relative_gap)
    schedule._last, schedule._epochs = ("permutation", start.relative_gap), 1
    backend.place(np.zeros(3000), 1e5 * np.ones(30), 0.0)
    far = backend.survey(frozenset({"adaptive"}))
    assert far.primal > 1e4 * start.primal
    schedule._learn(far, far.relative_gap)
    assert schedule._epochs_seen() > 10.0


def test_last_digits_are_sought_from_the_last_point():
    """Objectives of points that near are alike but for rounding: the least says nothing there."""
    X, y = cases.make_data("logistic", n=60)
    backend = LocalBackend(Problem.checked(X, y, loss="logistic", lam=0.1))
    schedule = AutoSchedule(backend.problem, backend.facts, 0.0, 1)
    near = backend.survey(frozenset())
    certificate = near.certificate
    finer = replace(certificate, primal=np.nextafter(certificate.primal, 9.0), gap=1e-20)
    schedule._learn(near, near.relative_gap)
    schedule._learn(replace(near, certificate=finer), 1e-20)
    plan = schedule._go_on(replace(near, certificate=finer), 1e-20)
    assert plan.survey.gap == 1e-20
