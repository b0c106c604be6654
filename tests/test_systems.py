"""The equations of a Newton step, in three ways, against NumPy; and the inner products of rows."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
import cases
from adasdca.auto.costs import Costs
from adasdca.backends.cpu import make_workspace
from adasdca.newton.kernel_matrix import KernelMatrix
from adasdca.newton.systems import DualSystem, Equations, IterativeSystem, PrimalSystem
from adasdca.problem.data import DenseRows
from adasdca.problem.problem import Problem

FOREVER = 1e18
STORAGES = {
    "dense": lambda X: X,
    "dense-single": lambda X: X.astype(np.float32),
    "sparse": sp.csr_matrix,
    "sparse-single": lambda X: sp.csr_matrix(X.astype(np.float32)),
}
WAYS = ("primal", "dual", "iterative")


def make_problem(loss, storage, intercept, weighted, *, d, lam=0.1):
    X, y = cases.make_data(loss, "single", n=40, d=d)
    weight = np.random.default_rng(1).integers(0, 4, len(y)).astype(float) if weighted else None
    options = {"loss": loss, "lam": lam, "sample_weight": weight, "fit_intercept": intercept}
    return X, y, options, Problem.checked(STORAGES[storage](X), y, **options)


def system(way, problem, workspace):
    if way == "dual":
        return DualSystem(problem, workspace, 1, KernelMatrix(problem.rows))
    return (PrimalSystem if way == "primal" else IterativeSystem)(problem, workspace, 1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", cases.SMOOTH)
def test_directions(loss, storage, intercept, weighted):
    for d in (7, 90):
        X, _, _, problem = make_problem(loss, storage, intercept, weighted, d=d)
        n = len(X)
        workspace = make_workspace(problem, False)
        rng = np.random.default_rng(2)
        h = np.empty(n)
        workspace.assess(rng.normal(size=n), 0.0, np.empty(n), h, 1)
        assert h.any()
        equations = Equations(h, rng.normal(size=d), float(rng.normal()))
        mu = problem.strength * problem.total
        wide = np.column_stack([X, np.ones(n)]) if intercept else X
        matrix = wide.T @ (h[:, None] * wide)
        matrix[np.diag_indices(d)] += mu
        right = np.append(equations.right, equations.wanted) if intercept else equations.right
        expected = np.linalg.solve(matrix, right)
        for way in WAYS:
            found = system(way, problem, workspace).solve(equations, FOREVER)
            assert found is not None
            both = np.append(*found) if intercept else found[0]
            exact = way != "iterative"
            np.testing.assert_allclose(
                both, expected, rtol=0, atol=(1e-9 if exact else 2e-2) * np.abs(expected).max()
            )
            assert intercept or found[1] == 0.0


@pytest.mark.parametrize("intercept", [False, True])
def test_no_row_has_curvature(intercept):
    *_, problem = make_problem("squared_hinge", "sparse", intercept, False, d=90)
    workspace = make_workspace(problem, False)
    right = np.arange(90.0)
    equations = Equations(np.zeros(40), right, 0.0)
    for way in WAYS:
        dw, db = system(way, problem, workspace).solve(equations, FOREVER)
        np.testing.assert_allclose(dw, right / (problem.strength * problem.total), rtol=1e-12)
        assert db == 0.0


def test_the_dual_intercept_where_the_rows_are_almost_fitted():
    """There the Schur complement in the features is a difference of nearly equal numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 200))
    y = rng.normal(size=20)
    problem = Problem.checked(X, y, loss="squared", lam=1e-8, fit_intercept=True)
    workspace = make_workspace(problem, False)
    mu = problem.strength * problem.total
    equations = Equations(np.ones(20), X.T @ y, float(y.sum()))
    _, db = system("dual", problem, workspace).solve(equations, FOREVER)
    inverse = np.linalg.inv(mu * np.eye(20) + X @ X.T)
    assert db == pytest.approx((inverse @ y).sum() / inverse.sum(), rel=1e-5)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_reaches_the_optimum(way, storage, monkeypatch):
    asked = []

    def equations(self, steps, active, known=0):
        asked.append(active)
        return way, 0.0

    monkeypatch.setattr(Costs, "equations", equations)
    monkeypatch.setattr("adasdca.newton.plans.fits", lambda problem: False)
    for loss in cases.SMOOTH:
        for intercept, weighted in ((False, True), (True, False)):
            X, y, options, _ = make_problem(loss, storage, intercept, weighted, d=90, lam=0.01)
            sol = adasdca.solve(
                STORAGES[storage](X), y, method="auto", tol=1e-9, random_state=0, **options
            )
            assert sol.converged, sol
            proof = adasdca.certify(
                X, y, sol.coef, intercept=sol.intercept, dual_coef=sol.dual_coef, **options
            )
            assert proof.gap <= 2e-9 * proof.primal
    assert asked


@pytest.mark.parametrize("way", WAYS)
def test_no_time_is_left(way):
    for storage in STORAGES:
        X, _, _, problem = make_problem("squared", storage, False, False, d=90)
        equations = Equations(np.ones(len(X)), np.ones(90), 0.0)
        late = time.perf_counter() - 1.0
        assert system(way, problem, make_workspace(problem, False)).solve(equations, late) is None


@pytest.mark.parametrize("storage", STORAGES)
def test_inner_products_as_rows_join(storage, monkeypatch):
    X, _, _, problem = make_problem("squared", storage, False, False, d=90)
    workspace = make_workspace(problem, False)
    kernel = KernelMatrix(problem.rows)
    rng = np.random.default_rng(0)
    expected = X @ X.T
    for most in (4096, 25):
        monkeypatch.setattr("adasdca.newton.kernel_matrix.MOST", most)
        for size in (3, 17, 1, 20, 40, 6):
            wanted = np.sort(rng.choice(40, size, replace=False))
            rows, matrix = kernel.among(wanted, workspace, 2, FOREVER)
            assert sorted(rows) == list(wanted)
            np.testing.assert_allclose(
                np.tril(matrix), np.tril(expected[np.ix_(rows, rows)]), rtol=1e-12, atol=1e-12
            )
        assert kernel.size <= max(most, 40)


def test_inner_products_do_not_depend_on_the_threads():
    X = sp.random(300, 500, 0.05, "csr", random_state=0)
    problem = Problem.checked(X, np.ones(300), loss="squared", lam=1.0)
    found = [np.zeros((300, 300)) for _ in range(3)]
    for threads, matrix in enumerate(found, 1):
        rows = np.arange(300)[::-1].copy()
        assert make_workspace(problem, False).products(rows, 0, matrix, threads, FOREVER)
    np.testing.assert_allclose(
        np.tril(found[0]), np.tril((X @ X.T).toarray()[::-1, ::-1]), rtol=1e-12, atol=1e-14
    )
    assert all((matrix == found[0]).all() for matrix in found)


def test_bad_arguments_of_inner_products():
    problem = Problem.checked(np.eye(3), np.ones(3), loss="squared", lam=1.0)
    workspace = make_workspace(problem, False)
    for rows, first in (([0, 3], 0), ([-1, 0], 0), ([0, 1, 2], 0), ([0, 1], 3)):
        with pytest.raises(ValueError, match=r"rows must|out:|first must"):
            workspace.products(np.array(rows), first, np.zeros((2, 2)), 1, FOREVER)


@pytest.mark.parametrize(
    ("shape", "density", "way"),
    [
        ((200, 3000), 1.0, "dual"),
        ((500, 20_000), 1.0, "dual"),
        ((20_000, 50), 1.0, "primal"),
        ((100_000, 1000), 1.0, "primal"),
        ((20_000, 5000), 0.002, "iterative"),
    ],
)
def test_the_cheapest_way(shape, density, way):
    """By shape and entries alone: the values of a broadcast array take no memory."""
    n, d = shape
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    if density == 1.0:
        X = np.broadcast_to(np.float32(1.0), shape)
        problem = Problem(DenseRows(X), y, None, adasdca.Logistic(), 1.0, 0.0, None, False)
    else:
        each = round(density * d)
        columns = np.sort(np.arange(each) * (d // each) + np.arange(n)[:, None] % (d // each))
        X = sp.csr_matrix((np.ones(n * each), columns.ravel(), np.arange(n + 1) * each), (n, d))
        problem = Problem.checked(X, y, loss="logistic", lam=1.0)
    assert Costs(problem).equations(4.0, n)[0] == way
