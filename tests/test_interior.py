"""The central path: to the optimum of every piecewise quadratic problem in few steps."""

import functools
import time

import numpy as np
import pytest
import scipy.sparse as sp

import cases
from adasdca import Status, solve
from adasdca.backends.barrier import Barrier
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.interior import InteriorTerm, factorise
from adasdca.newton.budget import Budget
from adasdca.newton.interior import CentralPath
from adasdca.newton.linear import Best
from adasdca.newton.multipliers import Handover, Multipliers
from adasdca.newton.newton import Ending, minimise
from adasdca.problem.problem import Problem
from second_order import solver

FOREVER = 1e18
INTERCEPT = pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
PIECEWISE = [name for name in cases.LOSSES if name != "logistic"]
REGULARISERS = {
    "l2": {},
    "elastic net": {"l1_ratio": 0.5},
    "lasso": {"l1_ratio": 1.0},
    "non-negative": {"bounds": (0.0, None)},
    "at most": {"bounds": (None, 0.1), "l1_ratio": 0.3},
    "far from 0": {"bounds": (0.5, 2.0), "l1_ratio": 0.3},
    "fixed": {"bounds": (0.1, 0.1)},
}


def on_the_path(problem, target=1e-6, deadline=FOREVER):
    """What the method finds from β = 0, how it ended, and its factorisations."""
    backend = LocalBackend(problem)
    seen = backend.survey(frozenset())
    rows, steps = backend.interior(), 0
    factorise = rows.factorise

    def counted(*arguments):
        nonlocal steps
        steps += 1
        return factorise(*arguments)

    rows.factorise = counted
    start = Best(seen.coef, seen.intercept, seen.certified, seen.certificate)
    best, ending = CentralPath(backend, rows).follow(start, target, deadline)
    return best, ending, steps


@pytest.mark.parametrize(
    ("q", "epsilon", "lower", "upper"),
    [
        (1.0, 0.0, -np.inf, np.inf),
        (0.0, 0.0, -1.0, 1.0),
        (0.5, 0.0, 0.0, np.inf),
        (0.5, 0.0, -np.inf, 0.3),
        (0.0, 0.1, -1.0, 1.0),
        (1.0, 0.7, -np.inf, np.inf),
        (1.0, 0.7, 0.2, np.inf),
        (1.0, 0.7, -np.inf, -0.2),
        (1.0, 0.7, 0.4, 0.4),
    ],
)
def test_a_separable_function_by_itself(q, epsilon, lower, upper):
    """Its least point under a constant force is known."""
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, 50).astype(float)
    force, target = rng.normal(size=(2, 50))
    barrier = Barrier(weight, q, target, epsilon, lower, upper)
    barrier.start(np.zeros(50), force, 1.0, 1.0)
    products, steps = np.inf, 0
    while products > 1e-14:
        products = barrier.products(0.0)
        barrier.linearise(force)
        barrier.aim(barrier.kappa)
        barrier.mix(1.0)
        barrier.correct(0.1 * products / max(barrier.count, 1))
        barrier.aim(barrier.kappa)
        length = barrier.reach(1.0)
        barrier.mix(1.0)
        barrier.move(min(0.99 * length, 1.0))
        steps += 1
    assert steps <= 40
    pull = force + target
    shrunk = np.sign(pull) * np.maximum(np.abs(pull) - epsilon, 0.0)
    best = np.clip(shrunk / q if q > 0 else np.sign(shrunk) * 1e9, lower, upper)
    moves = weight > 0
    np.testing.assert_allclose(barrier.s[moves], best[moves], atol=1e-8)
    assert (barrier.s >= lower).all()
    assert (barrier.s <= upper).all()


def begun(rng, m=50, lower=-1.0, upper=1.0):
    """A barrier with kinks and bounds, after a step that is not central."""
    barrier = Barrier(np.ones(m), 0.5, rng.normal(size=m), 0.1, lower, upper)
    barrier.start(np.zeros(m), np.zeros(m), 1.0, 1.0)
    barrier.linearise(rng.normal(size=m))
    barrier.aim(barrier.kappa)
    barrier.mix(1.0)
    return barrier


@pytest.mark.parametrize("upper", [1.0, np.inf])
def test_a_mixture_of_steps_ends_at_a_bound(upper):
    barrier = begun(np.random.default_rng(0), upper=upper)
    barrier.correct(0.1)
    barrier.aim(barrier.kappa)
    for share in (0.0, 0.3, 1.0):
        length = barrier.reach(share)
        old, new = barrier._step, barrier._next
        for values, a, b in ((barrier._x, old.x, new.x), (barrier._y, old.y, new.y)):
            ahead = values * (1.0 + length * ((1.0 - share) * a + share * b))
            assert (ahead >= -1e-12 * values).all()
        moves = np.concatenate(
            [(1.0 - share) * a + share * b for a, b in zip(old[:2], new[:2], strict=True)]
        )
        assert moves.min() == pytest.approx(-1.0 / length)


def test_outliers_are_taken_back():
    """Only the products that are outliers where the step ends are changed, and towards others."""
    barrier = begun(np.random.default_rng(1))
    tau, length = 0.02, 0.9
    step = barrier._step
    there = barrier._x * barrier._y * (1 + length * step.x) * (1 + length * step.y) / tau
    barrier.centre(tau, length)
    change = np.sign(barrier._wanted - step.wanted)
    expected = np.where(there < 0.1, 1.0, np.where(there > 10.0, -1.0, 0.0))
    held = barrier._hole == 0
    assert set(expected[held]) == {-1.0, 0.0, 1.0}
    np.testing.assert_array_equal(change[held], expected[held])
    assert not change[~held].any()


@pytest.mark.parametrize("epsilon", [0.0, 0.7])
def test_pieces_move_as_the_values_do(epsilon):
    """Also where the multipliers are so large that a pull has no digits left."""
    barrier = Barrier(np.ones(4), 1.0, 0.0, epsilon, 0.0 if epsilon == 0 else -np.inf, np.inf)
    barrier.start(np.zeros(4), np.zeros(4), 1e-3, 1e12)
    barrier.linearise(np.zeros(4))
    ds = np.array([1e-9, -1e-9, 2e-7, 3e-8])
    before = barrier.s
    barrier.aim(ds)
    barrier.mix(1.0)
    barrier.move(1e-3)
    moved = barrier._sum() - before if epsilon == 0 else barrier.s - before
    np.testing.assert_allclose(moved, 1e-3 * ds, atol=1e-18)


@functools.cache
def data(loss, wide):
    X, y = cases.make_data(loss, n=20 if wide else 60, d=40 if wide else 7, seed=1)
    return X, y if cases.is_classification(loss) else 3.0 + y


@INTERCEPT
@pytest.mark.parametrize("wide", [False, True], ids=["", "wide"])
@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("loss", PIECEWISE)
def test_it_arrives(loss, regulariser, wide, intercept):
    X, y = data(loss, wide)
    weight = np.random.default_rng(2).integers(0, 3, len(y)).astype(float)
    for C, form in ((1e-2, sp.csr_matrix), (1e4, np.asarray)):
        problem = Problem.checked(
            form(X), y, loss=loss, lam=1 / (C * len(y)), sample_weight=weight,
            fit_intercept=intercept, **REGULARISERS[regulariser],
        )  # fmt: skip
        best, ending, steps = on_the_path(problem)
        certificate = best.certificate
        hidden = certificate.gap <= 10 * certificate.rounding
        assert ending is Ending.REACHED or hidden, (certificate, C)
        assert steps <= 60
        lower, upper = problem.bounds or (-np.inf, np.inf)
        assert ((best.w >= lower) & (best.w <= upper)).all()


def test_coefficients_rest_where_the_dual_point_says():
    X, y = cases.make_data("hinge", n=60, d=30, seed=0)
    problem = Problem.checked(X, y, loss="hinge", lam=0.1, l1_ratio=0.5)
    best, ending, _ = on_the_path(problem)
    assert ending is Ending.REACHED
    assert 0 < np.count_nonzero(best.w == 0) < 30


def test_time_runs_out():
    X, y = data("hinge", False)
    problem = Problem.checked(X, y, loss="hinge", lam=1e-4)
    best, ending, steps = on_the_path(problem, deadline=time.perf_counter() - 1)
    assert (ending, steps) == (Ending.TIME, 0)
    assert best.certificate.gap <= LocalBackend(problem).survey(frozenset()).gap


@pytest.mark.parametrize("regulariser", ["l2", "elastic net"])
def test_a_path_that_was_left_is_gone_on(regulariser):
    X, y = data("hinge", False)
    problem = Problem.checked(X, y, loss="hinge", lam=1e-6, **REGULARISERS[regulariser])
    whole, ending, steps = on_the_path(problem)
    assert ending is Ending.REACHED
    backend = LocalBackend(problem)
    seen = backend.survey(frozenset())
    best = Best(seen.coef, seen.intercept, seen.certified, seen.certificate)
    path, spent = CentralPath.of(backend), 0.0
    assert not path.begun
    for _ in range(steps):
        if path.begun:
            # As a checkpoint brings it: by the steps from the same beginning.
            gone, path = path.gone, CentralPath.of(backend)
            path.again(gone, best)
            assert path.gone == gone
        budget = Budget(most=2.0, path=1.0)
        best, ending = path.follow(best, 1e-6, FOREVER, budget)
        assert path.begun
        spent += budget.spent
        if ending is Ending.REACHED:
            break
    # No step is taken twice, and the last ones at once, whatever the budget says.
    assert (ending, spent) == (Ending.REACHED, steps)
    assert budget.spent > 2.0
    np.testing.assert_array_equal(best.w, whole.w)
    assert path.steps_left(1e-6) == 0.0


@pytest.mark.parametrize(("most", "whole"), [(10.0, True), (1.0, False)])
def test_a_path_that_costs_little_more_than_the_budget_is_not_left(most, whole):
    X, y = data("hinge", False)
    problem = Problem.checked(X, y, loss="hinge", lam=1e-6, l1_ratio=0.5)
    backend = LocalBackend(problem)
    seen = backend.survey(frozenset())
    best = Best(seen.coef, seen.intercept, seen.certified, seen.certificate)
    budget = Budget(most=most, path=1.0, spent=most)
    best, ending = CentralPath.of(backend).follow(best, 1e-6, FOREVER, budget)
    assert ending is (Ending.REACHED if whole else Ending.TIME)
    assert (budget.spent > most) == whole


def test_not_for_a_loss_whose_curvature_varies():
    X, y = cases.make_data("logistic")
    assert LocalBackend(Problem.checked(X, y, loss="logistic", lam=1.0)).interior() is None


def test_a_square_that_rounding_has_made_negative():
    """As of a constant sparse column, less its mean; what it has left is on the diagonal."""
    solve_with = factorise(np.array([[-1e-17, 0.0], [0.0, 3.0]]), np.array([1e-20, 1.0]))
    np.testing.assert_allclose(solve_with(np.array([1e-20, 4.0])), [1.0, 1.0])


def counted_steps(monkeypatch, X, y, **options):
    """Newton steps and factorisations of a solve."""
    count = 0

    def steps(*arguments):
        nonlocal count
        found = minimise(*arguments)
        count += found[1]
        return found

    factorise = InteriorTerm.factorise

    def counted(*arguments):
        nonlocal count
        count += 1
        return factorise(*arguments)

    monkeypatch.setattr("adasdca.newton.multipliers.minimise", steps)
    monkeypatch.setattr("adasdca.auto.second_order.minimise", steps)
    monkeypatch.setattr(InteriorTerm, "factorise", counted)
    sol = solve(X, y, tol=1e-6, random_state=0, **options)
    assert sol.status is Status.CONVERGED, sol
    return count


@pytest.mark.parametrize("options", [{"l1_ratio": 0.5}, {"bounds": (0.0, None)}])
@pytest.mark.parametrize("loss", ["smoothed_hinge", "hinge", "absolute", "epsilon_insensitive"])
def test_hard_problems_take_few_steps(loss, options, monkeypatch):
    """Standardised counts with next to no regularisation: many kinks are crossed one by one."""
    rng = np.random.default_rng(0)
    X = sp.random(300, 600, 0.02, random_state=rng, data_rvs=lambda k: rng.poisson(1, k) + 1.0)
    X = sp.csr_matrix(X.multiply(1 / (0.1 + X.toarray().std(axis=0))))
    y = np.where(X @ rng.normal(size=600) + rng.normal(size=300) > 0, 1.0, -1.0)
    options = {"loss": loss, "lam": 1 / (1e6 * 300), "fit_intercept": True, **options}
    assert counted_steps(monkeypatch, X, y, **options) <= 150


@INTERCEPT
@pytest.mark.parametrize("regulariser", ["l2", "elastic net", "non-negative"])
@pytest.mark.parametrize("loss", ["hinge", "absolute", "epsilon_insensitive"])
def test_to_give_way_is_no_end(loss, regulariser, intercept, monkeypatch):
    """Rounds hand over to the path at once, and after it go on until nothing is left."""
    handed = []
    monkeypatch.setattr(Handover, "due", lambda self: handed.append(self) or True)
    X, y = data(loss, False)
    options = {"loss": loss, "lam": 1e-4, "fit_intercept": intercept, **REGULARISERS[regulariser]}
    problem = Problem.checked(X, y, **options)
    backend = LocalBackend(problem)
    seen = backend.survey(frozenset())
    method = Multipliers(backend, problem, solver("features"), path=CentralPath.of(backend))
    best, ending = method.run(seen, 1e-13, FOREVER)
    assert handed
    assert ending in (Ending.REACHED, Ending.EXHAUSTED)
    assert best.certificate.relative_gap <= 1e-10


def test_rounds_that_come_to_nothing_give_way(monkeypatch):
    """However little they have cost."""
    X, y = data("hinge", False)
    problem = Problem.checked(X, y, loss="hinge", lam=1e-6, l1_ratio=0.5)
    backend = LocalBackend(problem)
    seen = backend.survey(frozenset())
    rounds = 0

    def given_up(objective, enough, deadline, most, look):
        nonlocal rounds
        rounds += 1
        return Ending.STEPS, most

    monkeypatch.setattr("adasdca.newton.multipliers.minimise", given_up)
    path, budget = CentralPath.of(backend), Budget(path=1.0)
    best, ending = Multipliers(backend, problem, solver("features"), path=path, budget=budget).run(
        seen, 1e-6, FOREVER
    )
    assert rounds > 1
    assert ending is Ending.REACHED
    assert path.begun
    assert best.certificate.relative_gap <= 1e-6


@pytest.mark.parametrize(("n", "d", "path"), [(300, 200, True), (600, 20, False)])
def test_it_comes_first_on_wide_data(n, d, path, monkeypatch):
    """Rounds have no rows to leave out there; on tall data they have."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    taken = []
    factorise = InteriorTerm.factorise

    def counted(*arguments):
        taken.append("path")
        return factorise(*arguments)

    def steps(*arguments):
        taken.append("round")
        return minimise(*arguments)

    monkeypatch.setattr(InteriorTerm, "factorise", counted)
    monkeypatch.setattr("adasdca.newton.multipliers.minimise", steps)
    sol = solve(X, y, loss="hinge", lam=1 / (1e4 * n), tol=1e-6, random_state=0)
    assert sol.status is Status.CONVERGED
    assert taken[0] == ("path" if path else "round")
