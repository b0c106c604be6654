"""A squared loss with an L1 term or bounds, minimised by the matrix of its features."""

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
from adasdca import _core
from second_order import FOREVER


def quadratic(case, d=24):
    """Return matrix, linear term, ridge, kink, and bounds."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, d))
    ridge, kink = np.full(d, 0.3), np.full(d, 9.0)
    lower, upper = np.full(d, -np.inf), np.full(d, np.inf)
    match case:
        case "lasso":
            ridge[:] = 0.0
        case "alike":  # features that come twice, and no ridge that would tell them apart
            X[:, d // 2 :], ridge[:] = X[:, : d // 2], 0.0
        case "scales":
            X *= np.logspace(-3, 3, d)
            kink *= np.logspace(-3, 3, d)
        case "bounds":
            lower[::2], upper[::3] = 0.0, 0.1
            lower[1], upper[1] = 0.2, 0.3
        case "no kink":
            kink[:] = 0.0
            lower[::2], upper[::3] = -0.05, 0.05
        case "empty":
            X[:, 2] = 0.0
            ridge[2] = kink[2] = 0.0
            lower[2], upper[2] = -1.0, 1.0
        case "far":  # from 0, where each feature drags the others along
            X += 30.0
    return X.T @ X, X.T @ (X[:, :5].sum(axis=1) + rng.normal(size=60)), ridge, kink, lower, upper


CASES = ("elastic net", "lasso", "alike", "scales", "bounds", "no kink", "empty", "far")


@pytest.mark.parametrize("start", [0.0, 0.7])
@pytest.mark.parametrize("case", CASES)
def test_the_minimum_meets_its_conditions(case, start):
    """The slope of the quadratic is in the subdifferential of the penalty, from any start."""
    matrix, right, ridge, kink, lower, upper = quadratic(case)
    w = np.clip(np.full(len(right), start), lower, upper)
    slope = right - matrix @ w
    assert _core.minimise_separable(
        matrix, ridge, kink, lower, upper, w, slope, 1e-20 * float(right @ right), FOREVER
    )
    assert ((lower <= w) & (w <= upper)).all()
    size = np.abs(matrix) @ np.abs(w) + np.abs(right)
    assert (np.abs(slope - (right - matrix @ w)) <= 1e-10 * size).all()
    force = slope - ridge * w
    low, high = np.where(w > 0, kink, -kink), np.where(w < 0, -kink, kink)
    low, high = np.where(w == lower, -np.inf, low), np.where(w == upper, np.inf, high)
    assert (force >= low - 1e-9 * size).all()
    assert (force <= high + 1e-9 * size).all()


def test_a_wrong_length_is_refused():
    matrix, right, ridge, kink, lower, upper = quadratic("lasso")
    with pytest.raises(ValueError, match="one line per feature"):
        _core.minimise_separable(
            matrix, ridge[:-1], kink, lower, upper, 0 * right, right.copy(), 0.0, FOREVER
        )


def table(form, n=500, d=80):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4) + (0.0 if form == "csr" else 2.0)
    y = X[:, :9].sum(axis=1) + rng.normal(size=n) + 5.0
    match form:
        case "csr":
            return sp.csr_matrix(X), y
        case "floats":
            return X.astype(np.float32), y
    return X, y


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
@pytest.mark.parametrize("form", ["dense", "floats", "csr"])
def test_one_phase_is_enough(form, l1_ratio, intercept, monkeypatch):
    """Rows with weights, factors and bounds; the other way comes to the same coefficients."""
    X, y = table(form)
    n, d = X.shape
    options = {
        "loss": "squared",
        "lam": 0.1,
        "l1_ratio": l1_ratio,
        "fit_intercept": intercept,
        "penalty_factors": np.linspace(0.5, 2.0, d),
        "bounds": (-0.5, np.where(np.arange(d) % 3 == 0, 0.4, np.inf)),
        "sample_weight": np.linspace(0.0, 2.0, n),
        "tol": 1e-9,
        "random_state": 0,
    }
    found, calls = [], []
    inner = _core.minimise_separable
    for most in (1000, 0):
        monkeypatch.setattr("adasdca.auto.second_order.TOGETHER", most)
        monkeypatch.setattr(_core, "minimise_separable", lambda *a: calls.append(1) or inner(*a))
        found.append(adasdca.solve(X, y, **options))
    assert calls
    assert all(each.converged for each in found)
    assert found[0].phases[0].rounds == 1
    np.testing.assert_allclose(found[0].coef, found[1].coef, atol=1e-4)


def test_a_path_sums_the_matrix_once(monkeypatch):
    X, y = table("dense")
    sums = []
    inner = adasdca.backends.cpu_term.dense_gram

    def counted(*args):
        sums.append(1)
        return inner(*args)

    monkeypatch.setattr("adasdca.backends.cpu_term.dense_gram", counted)
    path = adasdca.path(X, y, loss="squared", Cs=np.logspace(-3, 1, 7), l1_ratio=0.5)
    assert path.converged.all()
    assert len(sums) == 1


def test_weights_have_a_matrix_of_their_own():
    """Rows that are checked once may come with other weights."""
    X, y = table("dense")
    rows = adasdca.problem.data.CheckedRows(adasdca.problem.data.check_rows(X))
    options = {"loss": "squared", "lam": 0.1, "l1_ratio": 0.5, "tol": 1e-9, "random_state": 0}
    for weight in (None, np.linspace(0.1, 3.0, len(y)), np.linspace(3.0, 0.1, len(y))):
        kept = adasdca.solve(rows, y, sample_weight=weight, **options)
        fresh = adasdca.solve(X, y, sample_weight=weight, **options)
        np.testing.assert_array_equal(kept.coef, fresh.coef)


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("l1_ratio", [0.1, 0.5, 1.0])
def test_columns_that_add_up_to_nothing(l1_ratio, kind):
    """A matrix of few digits has negative eigenvalues there, and no minimum."""
    rng = np.random.default_rng(0)
    codes = rng.integers(4, size=(600, 30))
    X = (codes[:, :, None] == np.arange(4)).reshape(600, 120).astype(kind)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = np.sign(X[:, 0] + X[:, 5] + rng.normal(size=600))
    for lam in (1e-7, 1e-9):
        options = {"lam": lam, "l1_ratio": l1_ratio, "tol": 1e-6, "random_state": 0}
        found = adasdca.solve(X, y, loss="squared", **options)
        assert found.converged
        assert found.phases[0].rounds == 1


def test_a_matrix_without_a_minimum_is_noticed(monkeypatch):
    """Where rounding takes more of the curvature than is added, the digits of doubles are asked."""
    X, y = table("floats")
    kinds = []
    inner = adasdca.backends.cpu_term.dense_gram

    def worse(*args):
        kinds.append(args[4])
        matrix, sides = inner(*args)
        return (
            (matrix - 1e3 * np.eye(len(matrix), dtype=args[4]), sides)
            if (args[4] is np.float32)
            else (matrix, sides)
        )

    monkeypatch.setattr("adasdca.backends.cpu_term.dense_gram", worse)
    found = adasdca.solve(X, y, loss="squared", lam=0.1, l1_ratio=0.5, tol=1e-9, random_state=0)
    assert found.converged
    assert found.phases[0].rounds == 1
    assert kinds == [np.float32, np.float64]
