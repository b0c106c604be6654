"""Rounds of the method of multipliers on some of the rows: they end where all rows do."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import cases
from adasdca import solve
from adasdca.auto.second_order import SecondOrder
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.working_set import WorkingSet, near_kinks
from adasdca.newton.linear import LinearObjective
from adasdca.newton.moreau import Ridge
from adasdca.newton.newton import Ending, minimise
from adasdca.newton.working_set import _choose
from adasdca.problem.losses import LOSSES
from adasdca.problem.problem import Problem
from second_order import FOREVER, KINKED, solver

INTERCEPT = pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])


@INTERCEPT
@pytest.mark.parametrize("loss", KINKED)
def test_a_working_set_is_the_whole_with_some_duals_held(loss, intercept):
    """Where the rows left out are right, u, balance and slopes are those of all rows."""
    rng = np.random.default_rng(0)
    X, y = cases.make_data(loss, n=60)
    weight = rng.integers(0, 3, 60).astype(float)
    problem = Problem.checked(
        X, y, loss=loss, lam=0.01, fit_intercept=intercept, sample_weight=weight
    )
    backend, gamma = LocalBackend(problem), 0.2
    whole = backend.term(gamma, np.zeros(60))
    v, dv = rng.normal(size=(2, 7))
    whole.place(v, 0.1)
    centre = whole.beta.copy()
    whole = backend.term(gamma, centre)
    first = whole.place(v, 0.1)
    chosen = np.flatnonzero(rng.random(60) < 0.6)
    held = centre.copy()
    left = np.setdiff1d(np.arange(60), chosen)
    held[left] = whole.beta[left]
    part = WorkingSet(problem, chosen, held, backend.combine(held), gamma, 1, backend.kernel)
    found = part.place(v, 0.1)
    np.testing.assert_allclose(found.u, first.u, atol=1e-11)
    assert found.balance == pytest.approx(first.balance, abs=1e-11)
    np.testing.assert_allclose(part.duals(), whole.beta, atol=1e-12)
    whole.aim(dv, 0.4)
    part.aim(dv, 0.4)
    slope = whole.slope(0.0).value
    assert part.slope(0.0).value == pytest.approx(slope, rel=1e-9, abs=1e-9)


@INTERCEPT
@pytest.mark.parametrize("loss", KINKED)
def test_a_rounded_problem_on_some_rows(loss, intercept):
    """At its minimum the gradient in w and in b vanishes; the rows left out keep their duals."""
    rng = np.random.default_rng(0)
    X, y = cases.make_data(loss, n=60)
    problem = Problem.checked(X, y, loss=loss, lam=0.01, fit_intercept=intercept)
    low, high = problem.loss.domain
    b = np.clip(rng.uniform(low - 0.3, high + 0.3, 60), low, high)
    beta = problem.y * b if cases.is_classification(loss) else b
    backend = LocalBackend(problem)
    u = backend.combine(beta)
    rows = np.flatnonzero(rng.random(60) < 0.6)
    term = WorkingSet(problem, rows, beta, u, 0.3, 1, backend.kernel)
    objective = LinearObjective(term, Ridge(), 0.6, intercept, True, solver("features"), u, 0.1)
    ending, _ = minimise(objective, 1e-14, FOREVER)
    assert ending in (Ending.REACHED, Ending.EXHAUSTED)
    duals = term.duals()
    left = np.setdiff1d(np.arange(60), rows)
    np.testing.assert_array_equal(duals[left], beta[left])
    np.testing.assert_allclose(objective.v, X.T @ duals / 0.6, atol=1e-6)
    if intercept:
        assert abs(duals.sum()) < 1e-9
    else:
        assert objective.b == 0.1
    # b maximises (t − z) b − ε|b| − γ/2 (b − b⁰)² over its interval.
    grid = np.linspace(low, high, 2001)[:, None]
    sign = y if cases.is_classification(loss) else np.ones(60)
    z = (sign * (X @ objective.v + objective.b))[rows]
    target = np.ones(60) if cases.is_classification(loss) else y
    gain = (target[rows] - z) * grid - problem.loss.dead_zone * np.abs(grid)
    gain -= 0.15 * (grid - (sign * beta)[rows]) ** 2
    np.testing.assert_allclose(
        grid[gain.argmax(axis=0), 0], (sign * duals)[rows], atol=2e-3 * (high - low)
    )


@pytest.mark.parametrize("loss", KINKED)
def test_which_rows_are_near_their_kinks(loss):
    rng = np.random.default_rng(0)
    X, y = cases.make_data(loss, n=3000)
    weight = rng.integers(0, 3, 3000).astype(float)
    problem = Problem.checked(X, y, loss=loss, lam=0.01, sample_weight=weight)
    scores = X @ rng.normal(size=7)
    beta = -problem.loss.slope(scores, y)
    wrong = rng.choice(np.flatnonzero(weight > 0), 40, replace=False)
    beta[wrong] = 0.3 * np.sign(y[wrong])
    away = np.abs(np.abs(problem.loss.residual(scores, y)) - problem.loss.dead_zone)
    away[weight == 0] = np.inf
    for reach in (None, 1e-3, 0.05):
        chosen = near_kinks(problem, scores, beta, reach, 7)
        assert set(wrong) <= set(chosen)
        assert not (weight[chosen] == 0).any()
        assert len(chosen) >= 40
        if reach is not None:
            assert set(np.flatnonzero(away <= reach)) <= set(chosen) or len(chosen) >= 500
    assert problem.loss.is_free(beta, problem.y)[wrong].all()


@INTERCEPT
@pytest.mark.parametrize("loss", KINKED)
def test_working_sets_end_where_all_rows_do(loss, intercept, monkeypatch):
    X, y = cases.make_data(loss, n=3000)
    options = {"loss": loss, "lam": 1e-4, "fit_intercept": intercept, "l1_ratio": 0.2}
    monkeypatch.setattr(SecondOrder, "cost", lambda *_: 0.0)
    sizes = []
    made = WorkingSet.__init__

    def counted(self, problem, chosen, *arguments):
        sizes.append(len(chosen))
        made(self, problem, chosen, *arguments)

    monkeypatch.setattr(WorkingSet, "__init__", counted)
    some = solve(X, y, tol=1e-8, **options)
    assert sizes
    assert max(sizes) < 2500
    term = LocalBackend.term
    monkeypatch.setattr(
        LocalBackend, "term", lambda self, length=0.0, centre=None, *_: term(self, length, centre)
    )
    del sizes[:]
    every = solve(X, y, tol=1e-8, **options)
    assert not sizes
    assert some.converged
    assert every.converged
    assert some.primal == pytest.approx(every.primal, rel=2e-8)
    assert np.linalg.norm(some.coef - every.coef) <= some.radius + every.radius


@pytest.mark.parametrize(
    ("options", "towards"), [({"l1_ratio": 0.5}, np.abs), ({"bounds": (0.0, None)}, np.positive)]
)
def test_which_features_the_duals_move_first(options, towards):
    """Those that have moved or are moved, and as many as a quarter that come next, in scores."""
    X, y = cases.make_data("squared", n=50, d=200)
    X = X * np.logspace(-2, 2, 200)
    problem = Problem.checked(X, y, loss="squared", lam=1.0, **options)
    squares, g = (X**2).sum(axis=0), problem.regularizer
    rng = np.random.default_rng(0)
    u = -0.9 * rng.random(200) * (1.0 if g.sigma else np.sqrt(squares))
    u[50:80] = 2.0
    w = np.where(np.arange(200) % 20 == 7, 1.0, 0.0)
    room = np.where(w != 0, -np.inf, (g.sigma - towards(u)) / np.sqrt(squares))
    order, moved = np.argsort(room), np.count_nonzero(room < 0)
    chosen = _choose(g, w, u, np.zeros(200), squares, 100)
    assert set(chosen) == set(order[: math.ceil(1.25 * moved)])
    # No more than the set may have, the first to move first.
    assert set(_choose(g, w, u, np.zeros(200), squares, 25)) == set(order[:25])
    # Columns of zeros never move.
    squares[order[moved]] = 0.0
    assert order[moved] not in _choose(g, w, u, np.zeros(200), squares, 100)


@pytest.mark.parametrize("loss", ["squared", "squared_epsilon_insensitive", "huber", "absolute"])
@pytest.mark.parametrize("ratio", [0.5, 1.0])
def test_times_beside_many_groups(loss, ratio):
    """One-hot groups and seconds since 1970: what sets leave, sums in twice the digits show."""
    rng = np.random.default_rng(7)
    n, groups = 900, 520
    group, far = rng.integers(groups, size=n), 1.5e10 * (1 + 0.1 * rng.random(n))
    one_hot = sp.csr_array((np.ones(n), (np.arange(n), group)), shape=(n, groups))
    X = sp.hstack([one_hot, sp.csr_array(far[:, None])], format="csr")
    y = 10 * rng.normal(size=groups)[group] + rng.normal(size=n) + 1000
    problem = {"loss": loss, "lam": 1e-2, "l1_ratio": ratio, "fit_intercept": True}
    assert solve(X, y, **problem, tol=1e-7, random_state=0).converged


@pytest.mark.parametrize("loss", ["hinge", "smoothed_hinge", "logistic"])
def test_coefficients_whose_bounds_leave_out_0(loss):
    """They rest elsewhere and are part of every score: sets without them were endless."""
    rng = np.random.default_rng(5)
    n, d = 150, 600
    X = sp.random(n, d, 0.05, "csr", random_state=rng)
    y = np.where(X @ rng.normal(size=d) > 0, 1.0, -1.0)
    low, high = np.where(np.arange(d) % 3, -1.0, 0.2), np.where(np.arange(d) % 3, 1.0, 0.3)
    problem = {"loss": loss, "lam": 1e-3, "l1_ratio": 0.5, "fit_intercept": True}
    sol = solve(X, y, **problem, bounds=(low, high), tol=1e-8)
    assert sol.converged
    fixed = solve(X, y, **problem, bounds=(np.full(d, 0.3), np.full(d, 0.3)), tol=1e-8)
    assert fixed.converged
    scores = X @ np.full(d, 0.3) + fixed.intercept
    slope = LOSSES[loss]().slope(scores, y)
    if loss != "hinge":  # the intercept alone is free
        assert abs(slope.mean()) < 1e-4


def test_sets_take_in_what_does_not_rest_at_0():
    X, y = cases.make_data("squared", n=50, d=200)
    bounds = (np.where(np.arange(200) % 4, -1.0, 0.5), np.ones(200))
    g = Problem.checked(X, y, loss="squared", lam=1.0, bounds=bounds).regularizer
    rest = g.primal(np.zeros(200))
    chosen = _choose(g, rest, np.zeros(200), rest, (X**2).sum(axis=0), 10)
    assert set(np.flatnonzero(rest)) <= set(chosen)
    assert len(chosen) < 100
