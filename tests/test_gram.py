"""What systems are made of: inner products of rows, and the matrix of the features."""

import numpy as np
import pytest
import scipy.sparse as sp

from adasdca import _core
from adasdca.backends import kernel_matrix
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.kernel_matrix import KernelMatrix
from adasdca.backends.workspace import make_workspace
from adasdca.problem.problem import Problem
from second_order import FOREVER, STORAGES, make_problem


@pytest.mark.parametrize("storage", STORAGES)
def test_inner_products_as_rows_join(storage, monkeypatch):
    X, _, problem = make_problem("squared", storage, d=90)
    workspace = make_workspace(problem, False)
    kernel = KernelMatrix(problem.rows, workspace)
    rng = np.random.default_rng(0)
    expected = X @ X.T
    for most in (4096, 25):
        monkeypatch.setattr(kernel_matrix, "MOST", most)
        for size in (3, 17, 1, 20, 40, 6):
            wanted = np.sort(rng.choice(40, size, replace=False))
            rows, matrix = kernel.among(wanted, 2, FOREVER)
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
        assert make_workspace(problem, False).products(rows, 0, None, matrix, threads, FOREVER)
    np.testing.assert_allclose(
        np.tril(found[0]), np.tril((X @ X.T).toarray()[::-1, ::-1]), rtol=1e-12, atol=1e-14
    )
    assert all((matrix == found[0]).all() for matrix in found)


@pytest.mark.parametrize("first", [0, 1, 333, 699])
@pytest.mark.parametrize("weighted", [False, True])
def test_inner_products_some_lines_at_a_time(first, weighted):
    """More lines than stay close at once, and those from any line on."""
    X = sp.random(700, 900, 0.02, "csr", random_state=0)
    problem = Problem.checked(X, np.ones(700), loss="squared", lam=1.0)
    factors = np.random.default_rng(0).random(900) if weighted else None
    matrix, rows = np.full((700, 700), np.nan), np.arange(700)
    assert make_workspace(problem, False).products(rows, first, factors, matrix, 1, FOREVER)
    expected = (X.multiply(factors) if weighted else X) @ X.T
    lines = np.tril(np.ones((700, 700), bool))
    lines[:first] = False
    np.testing.assert_allclose(matrix[lines], expected.toarray()[lines], rtol=1e-12, atol=1e-14)
    assert np.isnan(matrix[~lines]).all()


def test_bad_arguments_of_inner_products():
    problem = Problem.checked(np.eye(3), np.ones(3), loss="squared", lam=1.0)
    workspace = make_workspace(problem, False)
    for rows, first in (([0, 3], 0), ([-1, 0], 0), ([0, 1, 2], 0), ([0, 1], 3)):
        with pytest.raises(ValueError, match=r"rows must|out:|first must"):
            workspace.products(np.array(rows), first, None, np.zeros((2, 2)), 1, FOREVER)


# -- the matrix of the features


@pytest.mark.parametrize("values", ["doubles", "floats", "ones"])
@pytest.mark.parametrize("density", [0.15, 0.9])
@pytest.mark.parametrize("d", [1, 7, 8, 9, 30, 64, 65])
def test_gram(d, density, values):
    """Entry by entry and by lines, against NumPy; rows without curvature stay out."""
    rng = np.random.default_rng(d)
    n = 300
    X = np.where(rng.random((n, d)) < density, 1.0, 0.0)
    if values != "ones":
        X *= rng.normal(size=(n, d)).astype(np.float32 if values == "floats" else np.float64)
    X[0, 0] = 1.0
    h = rng.exponential(size=n) * (rng.random(n) < 0.7)
    expected = np.tril(X.T @ (h[:, None] * X))
    factors = rng.normal(size=(2, n))
    kinds = [sp.csr_matrix(X), sp.csr_matrix(X.astype(np.float32)), X]
    for rows in kinds[1:] if values == "floats" else kinds[::2]:
        for pack in (False, True):
            problem = Problem.checked(rows, rng.normal(size=n), loss="squared", lam=0.02)
            found, sums = np.empty((d, d)), np.empty((2, d))
            workspace = make_workspace(problem, pack)
            workspace.pack()
            assert workspace.gram(h, factors, None, found, sums, 1, FOREVER)
            np.testing.assert_allclose(np.tril(found), expected, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(sums, (factors * h) @ X, rtol=1e-12, atol=1e-12)


def test_gram_in_parts():
    """Many rows are summed in parts, in the same order by any number of threads."""
    rng = np.random.default_rng(0)
    X = sp.random(20_000, 11, 0.3, "csr", random_state=0)
    h = rng.exponential(size=X.shape[0])
    problem = Problem.checked(X, rng.normal(size=X.shape[0]), loss="squared", lam=0.02)
    factor = rng.normal(size=(1, len(h)))
    found = [np.empty((11, 11)) for _ in range(3)]
    sums = np.empty((3, 1, 11))
    for threads, matrix in enumerate(found, 1):
        workspace = make_workspace(problem, False)
        assert workspace.gram(h, factor, None, matrix, sums[threads - 1], threads, FOREVER)
    expected = np.tril((X.T @ X.multiply(h[:, None])).toarray())
    np.testing.assert_allclose(np.tril(found[0]), expected, rtol=1e-12)
    assert all((np.tril(matrix) == np.tril(found[0])).all() for matrix in found)
    np.testing.assert_allclose(sums[0, 0], X.T @ (h * factor[0]), rtol=1e-12)
    assert (sums == sums[0]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [3, 17, 64, 70])
@pytest.mark.parametrize("even", [False, True], ids=["", "even"])
def test_gram_of_far_dense_rows(d, dtype, even):
    """Rows far from 0 keep the digits of their differences, by the core and by BLAS."""
    rng = np.random.default_rng(d)
    X = (1e6 + rng.normal(size=(400, d))).astype(dtype)
    weight = None if even else rng.exponential(size=400) * (rng.random(400) < 0.9)
    y = rng.normal(size=400)
    options = {"loss": "squared", "lam": 0.02, "fit_intercept": True, "sample_weight": weight}
    term = LocalBackend(Problem.checked(X, y, **options)).term()
    term.go(np.zeros(d), 0.0)
    found = term.gram(True, FOREVER, combined=True)
    h = np.ones(400) if even else weight
    exact = X.astype(np.longdouble)
    column = h @ exact
    centred = exact - column / h.sum()
    matrix = (centred.T @ (h[:, None] * centred)).astype(float)
    np.testing.assert_allclose(np.tril(found.matrix), np.tril(matrix), rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(found.column, column.astype(float), rtol=1e-13)
    np.testing.assert_allclose(found.combined, ((h * y) @ exact).astype(float), rtol=1e-9)
    assert found.mass == pytest.approx(h.sum(), rel=1e-14)


@pytest.mark.parametrize("d", [1, 8, 50, 64, 65, 400, 3000])
def test_the_price_of_a_sparse_row_is_that_of_the_best_panel(d):
    """Over all numbers of gathered columns, with what was measured for each kind of work."""
    rng = np.random.default_rng(d)
    shares = np.sort(rng.random(d) ** 8)[::-1]
    squares = 1.5 * float(shares.sum()) ** 2 + 1.0
    costs = []
    for k in [*range(0, d, 8), d]:
        tiles, left = -(-k // 8), float(shares[k:].sum())
        vector = 0.7 if (d - 8 * tiles) * tiles * 64 < 24e3 else 2.0
        sorting = 0.0 if k == 0 else 0.5 if k == d <= 64 else 2.0
        pairs = 0.55 * squares * (left / shares.sum()) ** 2
        costs.append(1.1 * tiles * (tiles + 1) + vector * left * tiles + pairs)
        costs[-1] += sorting * float(shares.sum())
    assert _core.gram_pairs(shares, squares, d) == pytest.approx(min(costs) / 0.55)
    # Columns that nobody has need not be named.
    some = np.ascontiguousarray(shares[: d // 2])
    all_of_them = np.concatenate([some, np.zeros(d - d // 2)])
    wanted = _core.gram_pairs(all_of_them, squares, d)
    assert _core.gram_pairs(some, squares, d) == pytest.approx(wanted)
