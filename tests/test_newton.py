"""Newton's method from anywhere, on every smooth loss, in every way: one optimum, and an end."""

import time

import numpy as np
import pytest

import adasdca
import cases
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.cpu_term import CpuTerm
from adasdca.backends.kernel_matrix import KernelMatrix
from adasdca.backends.working_set import WorkingSet
from adasdca.newton.line import Slope, step_length
from adasdca.newton.moreau import Ridge
from adasdca.newton.newton import Ending, minimise
from adasdca.problem.problem import Problem
from second_order import FOREVER, WAYS, make_objective, make_problem, solver

INTERCEPT = pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])


def finish(problem, way="features", v=None, b=0.0, enough=0.0):
    """Newton steps to the end; the certificate, the objective, how it ended and after how many."""
    backend = LocalBackend(problem)
    objective = make_objective(problem, solver(way), v, b, backend)
    ending, steps = minimise(objective, enough, FOREVER)
    proof = backend.certify(objective.v, objective.b, objective.term.duals())
    return proof, objective, ending, steps


def starts(d):
    rng = np.random.default_rng(3)
    yield np.zeros(d), 0.0
    yield rng.normal(size=d), 0.3
    yield 1e6 * rng.normal(size=d), -1e6


@INTERCEPT
@pytest.mark.parametrize("loss", cases.SMOOTH)
def test_one_optimum_from_anywhere(loss, intercept):
    for weighted in (False, True):
        _, _, problem = make_problem(loss, "dense", intercept, weighted, lam=1e-3)
        found = []
        for way in WAYS:
            for v, b in starts(7):
                proof, objective, ending, steps = finish(problem, way, v, b if intercept else 0.0)
                assert ending is Ending.EXHAUSTED
                assert steps < 100
                # Scores that have been a million keep its rounding until they are taken anew.
                assert proof.relative_gap < 1e-9
                again, objective, ending, steps = finish(problem, way, objective.v, objective.b)
                assert ending is Ending.EXHAUSTED
                assert steps < 30
                # It ends within rounding: of P, and of the bound by which it is judged.
                assert again.relative_gap < 1e-12
                assert objective.lost() < 1e-12 * again.primal * problem.total
                found.append((objective.v, again.radius))
        first, radius = found[0]
        for v, other in found[1:]:
            assert np.linalg.norm(v - first) <= radius + other


@INTERCEPT
@pytest.mark.parametrize("loss", cases.SMOOTH)
def test_enough_is_a_bound(loss, intercept):
    """Where it says that enough is gained, the function is that close to its least value."""
    _, _, problem = make_problem(loss, "dense", intercept, lam=1e-2)
    least = finish(problem)[0].primal
    for enough in (1.0, 1e-2, 1e-5):
        for v, b in starts(7):
            proof, _, ending, _ = finish(
                problem, "features", v, b if intercept else 0.0, enough * problem.total
            )
            assert ending is Ending.REACHED
            assert proof.primal <= least + enough * (1 + 1e-9)


def degenerate(kind, loss):
    X, y = cases.make_data(loss, n=60)
    if kind == "duplicated columns":
        X = np.hstack([X, X, X])
    if kind == "zero columns":
        X = np.hstack([X, np.zeros((60, 3))])
    if kind == "repeated rows":
        X, y = np.repeat(X[:9], 8, axis=0), np.repeat(y[:9], 8)
    if kind == "separated by far":
        X = 1e3 * (X + np.outer(y if cases.is_classification(loss) else np.sign(y), np.ones(7)))
    if kind == "one row against all":
        X, y = X + 5.0, np.where(np.arange(60) == 7, -1.0, 1.0)
    if kind == "zeros":
        X = np.zeros((60, 4))
    return X, y


@INTERCEPT
@pytest.mark.parametrize(
    "kind",
    ["duplicated columns", "zero columns", "repeated rows", "separated by far",
     "one row against all", "zeros"],
)  # fmt: skip
@pytest.mark.parametrize("loss", cases.SMOOTH)
def test_singular_systems(loss, kind, intercept):
    X, y = degenerate(kind, loss)
    # (Far apart, the objective itself is as small as rounding where lam is.)
    for lam in (1e-2,) if kind == "separated by far" else (1e-9, 1e-2):
        problem = Problem.checked(X, y, loss=loss, lam=lam, fit_intercept=intercept)
        # (A step by iterations is as rough as its system is singular.)
        for way in WAYS if lam > 1e-3 else ("features", "rows"):
            for v, b in ((np.zeros(X.shape[1]), 0.0), (np.ones(X.shape[1]), -2.0)):
                proof, objective, ending, steps = finish(problem, way, v, b if intercept else 0.0)
                assert ending is Ending.EXHAUSTED or objective.lost() == 0
                assert steps < 200
                assert proof.gap <= 1e-8 * proof.primal + 10 * proof.rounding + 1e-19


def test_rows_all_on_straight_pieces():
    """No curvature anywhere: the penalty's is enough for w, and b finds its way alone."""
    X, y = cases.make_data("huber", n=60)
    problem = Problem.checked(X, 1e4 * y + 1e6, loss="huber", lam=1e-3, fit_intercept=True)
    objective = make_objective(problem, solver("features"))
    assert objective.term.curved == 0
    proof, objective, ending, steps = finish(problem)
    assert ending is Ending.EXHAUSTED or objective.lost() == 0
    assert proof.relative_gap < 1e-12
    assert steps < 60
    assert objective.b == pytest.approx(1e6, rel=0.1)


@INTERCEPT
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_one_step_for_a_parabola_with_zeros_among_its_targets(storage, intercept):
    """At 0 a dual of 0 is no sign of a straight piece."""
    X, y, _ = make_problem("squared")
    y[::2] = 0.0
    _, _, problem = make_problem("squared", storage, intercept)
    problem = Problem.checked(
        problem.rows.values if storage == "dense" else X, y, loss="squared", lam=1e-3,
        fit_intercept=intercept,
    )  # fmt: skip
    term = LocalBackend(problem).term()
    term.place(np.zeros(7), 0.0)
    np.testing.assert_array_equal(term.curvature, 1.0)
    objective = make_objective(problem, solver("features"))
    ending, steps = minimise(objective, 1e-12 * problem.total, FOREVER)
    assert (ending, steps) == (Ending.REACHED, 1)
    sol = adasdca.solve(X, y, loss="squared", lam=1e-3, fit_intercept=intercept, tol=1e-9)
    assert (sol.converged, sol.n_epochs) == (True, 1)


@pytest.mark.parametrize("loss", cases.LOSSES)
def test_curvature_is_the_derivative_of_the_duals(loss):
    """Off the kinks, for the loss itself and with its kinks rounded; and along a line."""
    rng = np.random.default_rng(0)
    X, y, problem = make_problem(loss, weighted=True)
    y[::3] = 0.0 if not cases.is_classification(loss) else 1.0
    problem = Problem.checked(X, y, loss=loss, lam=0.1, sample_weight=problem.weight)
    backend, weight = LocalBackend(problem), problem.weight
    smooth = loss in cases.SMOOTH
    for length in (0.0, 0.3) if smooth else (0.3, 1e-3):
        centre = np.clip(rng.normal(size=40), 0.0, 0.4)
        centre *= np.where(y != 0, np.sign(y), 1.0)
        term = backend.term(length, centre) if not smooth else backend.term()
        v, dv = rng.normal(size=7), rng.normal(size=7)
        at = term.place(v, 0.2)
        beta, h = term.beta.copy(), term.curvature.copy()
        assert at.mass == pytest.approx(h.sum())
        assert at.balance == pytest.approx(weight @ beta)
        np.testing.assert_allclose(at.u, X.T @ (weight * beta) / (0.1 * weight.sum()), atol=1e-12)
        term.aim(dv, 0.7)
        change = X @ dv + 0.7
        slope = term.slope(0.0)
        assert slope.value == pytest.approx(-(weight * beta) @ change)
        assert slope.curvature == pytest.approx(h @ change**2)
        assert slope.size >= np.abs(weight * beta * change).sum() * (1 - 1e-12)
        tiny = 1e-7
        near = term.slope(tiny)
        term.move(tiny)
        assert near.value == pytest.approx(-(weight * term.beta) @ change)
        change_of_beta = weight * (term.beta - beta) / tiny
        off = np.abs(change_of_beta + h * change)
        assert np.median(off) <= 1e-5 * (1 + np.abs(h * change).max())
        assert (off > 1e-4 * (1 + np.abs(h * change).max())).sum() <= 2  # across a kink


@pytest.mark.parametrize("loss", cases.LOSSES)
def test_the_search_is_that_of_the_slopes(loss):
    """In one call of the core, and by a slope at a time; rows that are left out included."""
    X, y = cases.make_data(loss, n=80)
    problem = Problem.checked(X, y, loss=loss, lam=0.1)
    rng, ridge = np.random.default_rng(2), Ridge()
    rounding = 0.0 if problem.loss.smoothness > 0 else 0.3
    tried = 0
    for _ in range(20):
        v, dv = 3 * rng.normal(size=(2, 7))
        beta = -problem.loss.slope(X @ v, y)
        terms = [CpuTerm(problem, LocalBackend(problem).workspace, 1, rounding, beta)]
        if rounding:
            chosen = np.sort(rng.permutation(80)[:50])
            u = X.T @ beta / problem.mu
            kernel = KernelMatrix(problem.rows, terms[0].workspace)
            terms.append(WorkingSet(problem, chosen, beta, u, rounding, 1, kernel))
        for term in terms:
            term.place(v, 0.1)
            term.aim(dv, 0.2)
            line = ridge.along(v, dv)

            def slope(length, term=term, line=line):
                rows, own = term.slope(length), line(length)
                return Slope(*(a + b for a, b in zip(rows, own, strict=True)))

            start = slope(0.0).value
            if start < 0:
                tried += 1
                length, sharp = term.search(line(0.0), start)
                expected, _ = step_length(slope, start)
                assert sharp
                # Both to a hundredth of the first slope: rounding may decide where they halve.
                left = max(abs(slope(expected).value), 0.01 * -start)
                assert abs(slope(length).value) <= left * (1 + 1e-9)
    assert tried >= 10


class Parabola:
    """½ a x² with gradients that come with noise, for the ends of the method."""

    def __init__(self, noise=0.0, sharp=True):
        self.x, self.noise, self.size = 1.0, noise, 1.0 if sharp else 1e30
        self.best, self.lines = None, 0

    def lost(self):
        return 0.5 * self.x**2 + self.noise

    def aim(self, deadline):
        self.lines += 1
        return -(self.x**2) if self.x else 0.0

    def search(self):
        curvature = self.x**2
        return step_length(
            lambda t: Slope(-curvature * (1 - t), curvature, self.size * curvature), -curvature
        )

    def move(self, length):
        self.x = self.x * (1 - length) + (1e-3 if self.noise else 0.0)

    def keep(self):
        self.best = self.x

    def recall(self):
        self.x = self.best


def test_ends():
    assert minimise(Parabola(), 0.6, FOREVER) == (Ending.REACHED, 0)
    assert minimise(Parabola(), 0.1, FOREVER) == (Ending.REACHED, 1)
    assert minimise(Parabola(), -1.0, FOREVER) == (Ending.EXHAUSTED, 1)
    assert minimise(Parabola(), 0.1, time.perf_counter() - 1) == (Ending.TIME, 0)
    assert minimise(Parabola(noise=1.0), 0.1, FOREVER, most=7) == (Ending.STEPS, 7)
    noisy = Parabola(noise=1.0, sharp=False)
    ending, steps = minimise(noisy, 0.1, FOREVER)
    assert ending is Ending.EXHAUSTED
    assert steps < 6
    assert noisy.x == noisy.best == 1e-3


def test_the_best_point_is_left():
    """Steps may end on a worse point than an earlier one; the earlier one is it."""
    worse = Parabola(sharp=False)
    worse.move = lambda length: setattr(worse, "x", worse.x + 1.0)
    ending, steps = minimise(worse, 0.0, FOREVER)
    assert (ending, worse.x) == (Ending.EXHAUSTED, 1.0)
    assert steps == 3


def test_a_direction_that_is_not_finite_is_no_direction():
    _, _, problem = make_problem("logistic", intercept=True)
    objective = make_objective(problem, lambda *_: (np.full(7, np.nan), 0.0))
    assert minimise(objective, 0.0, FOREVER) == (Ending.EXHAUSTED, 0)
    assert not objective.v.any()
    objective = make_objective(problem, lambda *_: None)
    assert minimise(objective, 0.0, FOREVER) == (Ending.TIME, 0)
