"""Solves that once did not arrive, at default settings: all of them do, to 1e-6."""

import functools
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import norm
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import StandardScaler

import cases
from adasdca import AdaSDCAPlus, Status, solve
from adasdca.backends.cpu import LocalBackend
from adasdca.problem.problem import Problem

REGRESSION = [name for name in cases.LOSSES if not cases.is_classification(name)]


@functools.cache
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), np.where(y == 1, 1.0, -1.0)


@functools.cache
def diabetes():
    return load_diabetes(return_X_y=True, scaled=False)


def arrives(X, y, loss, C, **options):
    options = {"random_state": 0, "tol": 1e-6, **options}
    sol = solve(X, y, loss=loss, lam=1 / (C * len(y)), **options)
    assert sol.status is Status.CONVERGED, (sol, loss, C, options)
    assert sol.gap <= 1e-6 * sol.primal
    return sol


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("loss", ["smoothed_hinge", "modified_huber", "squared_hinge", "logistic"])
def test_nearly_separable(loss, seed):
    X, y = cancer()
    arrives(X, y, loss, 1e4, fit_intercept=True, random_state=seed)


@pytest.mark.parametrize("loss", ["huber", "squared_epsilon_insensitive", "absolute"])
def test_raw_regression(loss):
    X, y = diabetes()
    for C in 10.0 ** np.arange(-4, 7):
        for intercept in (False, True):
            arrives(X, y, loss, C, fit_intercept=intercept)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge"])
def test_raw_integers(loss):
    """As madelon's: features about 500 with deviations of some tens, and hardly a signal."""
    rng = np.random.default_rng(0)
    X = np.clip(np.round(rng.normal(480, 40, size=(600, 200))), 0, 999)
    y = np.where(X[:, :5].sum(axis=1) + 60 * rng.normal(size=600) > 2400, 1.0, -1.0)
    for C in (1e-4, 1e-2, 1.0):
        for intercept in (False, True):
            arrives(X, y, loss, C, fit_intercept=intercept)


def test_more_digits_than_anybody_needs():
    """Raw features and hardly a penalty: a solve to 1e-12 ends by itself, and soon."""
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(4, 3, size=(2000, 12)))
    y = 50 + X[:, :3] @ [1e-3, -1e-4, 0.02] + rng.normal(size=2000)
    sol = arrives(X, y, "squared", 1e6, fit_intercept=True, tol=1e-12)
    assert sol.n_epochs < 20


@pytest.mark.parametrize("l1_ratio", [0.5, 0.9])
@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_elastic_nets_of_little_strength(loss, l1_ratio):
    X, y = cancer()
    for C in (1e2, 1e3, 1e4):
        arrives(X, y, loss, C, l1_ratio=l1_ratio, fit_intercept=True)


@pytest.mark.parametrize("loss", cases.LOSSES)
def test_wide_and_of_every_scale(loss):
    """More features than rows, and one so large that the inner products of rows are all of it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 200))
    y = X @ rng.normal(size=200) / 14 + 0.3 * rng.normal(size=30)
    if cases.is_classification(loss):
        y = np.where(y > 0, 1.0, -1.0)
    X[:, 0] = 1e9 * (1 + 1e-3 * rng.random(30))
    for intercept in (False, True):
        arrives(X, y, loss, 1e-4, fit_intercept=intercept)


def test_a_margin_kept_by_all_is_not_the_end():
    """All slopes are 0 and with them all duals: nothing is proved, and there is far to go."""
    X, y = cancer()
    for loss in ("squared_hinge", "smoothed_hinge", "modified_huber"):
        loose = solve(X, y, loss=loss, lam=1e-12, tol=1e-4, random_state=0)
        for scale in (3.0, 1e3):
            tight = arrives(X * scale, y, loss, 1e3, warm_start=loose.state, fit_intercept=False)
            assert tight.n_epochs < 100


@pytest.mark.parametrize("method", ["sdca-perm", "adasdca+", "auto"])
@pytest.mark.parametrize("loss", ["squared", "squared_hinge", "squared_epsilon_insensitive"])
def test_short_rows_among_long_ones(loss, method):
    """Incomes beside ages and flags: the multiplier of the intercept must not swing ever higher."""
    rng = np.random.default_rng(4)
    incomes = np.exp(rng.normal(10, 1.5, 3000)) * (rng.random(3000) < 0.9)
    flags = (rng.random((3000, 4)) < 0.3).astype(float)
    X = np.column_stack([incomes, rng.normal(40, 10, (3000, 2)), flags])
    y = 12 + 3 * rng.standard_normal(3000)
    if cases.is_classification(loss):
        y = np.where(y > 12, 1.0, -1.0)
    if method == "auto":
        arrives(X, y, loss, 1.0, fit_intercept=True)
        return
    options = {"lam": 1 / 3000, "fit_intercept": True, "random_state": 0, "max_epochs": 10}
    sol = solve(X, y, loss=loss, method=method, **options)
    assert sol.status is Status.EPOCH_LIMIT
    assert np.abs(sol.history.dual).max() < sol.history.primal[0]


@pytest.mark.parametrize("method", ["sdca-perm", AdaSDCAPlus(m=10.0)], ids=["sdca-perm", "m=10"])
def test_empty_texts_among_others(method):
    """Their duals move the intercept alone: the multiplier must not swing with them for ever."""
    rng = np.random.default_rng(0)
    n, d, words = 1000, 2500, 30
    often = 1 / np.arange(1, d + 1)
    where = np.repeat(np.arange(n), words), rng.choice(d, n * words, p=often / often.sum())
    counts = sp.csr_matrix((np.ones(n * words), where), shape=(n, d)).log1p()
    X = sp.diags(1 / norm(counts, axis=1)) @ counts
    y = np.where(X @ rng.normal(size=d) + 0.1 * rng.normal(size=n) > 0.15, 1.0, -1.0)
    X = sp.csr_matrix(sp.diags((rng.random(n) > 0.01).astype(float)) @ X)
    for C in (10.0, 100.0):
        options = {"loss": "hinge", "lam": 1 / (C * n), "fit_intercept": True, "method": method}
        sol = solve(X, y, **options, random_state=0, max_epochs=100)
        assert sol.relative_gap < 0.05


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["absolute", "quantile", "epsilon_insensitive"])
def test_a_lasso_of_columns_far_larger_than_its_penalty(loss, intercept):
    """One last digit of a dual takes u a hundred times beyond σ, and a dual beyond it is worth 0.

    Duals whose digits cancel have their u within it.
    """
    rng = np.random.default_rng(0)
    Z = np.exp(rng.normal(size=(200, 4)))
    y = 1e6 * (Z @ rng.normal(size=4) + rng.normal(size=200))
    X = Z * np.array([1e12, 1e9, 1e3, 1.0])
    arrives(X, y, loss, 1e6, l1_ratio=1.0, fit_intercept=intercept)


@pytest.mark.parametrize(
    ("loss", "C", "options"),
    [
        ("quantile", 1e8, {}),
        ("absolute", 1e6, {"bounds": (0.0, None)}),
    ],
)
def test_objectives_next_to_0(loss, C, options):
    """Rows are interpolated; rounding of coefficients costs more than the whole objective."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 600)) * 10.0 ** rng.uniform(-3, 3, 600)
    y = X[:, :5] @ rng.standard_normal(5) + rng.standard_normal(60)
    found = arrives(X, y, loss, C, fit_intercept=True, **options)
    assert found.primal < 1e-8


def test_last_digits_of_coefficients_are_moved():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 400))
    w = rng.standard_normal(400) * 10.0 ** rng.uniform(-8, 0, 400)
    w = np.maximum(w, 0.0)
    y = X @ w + 0.3
    problem = Problem.checked(X, y, loss="absolute", lam=1e-9, bounds=(0.0, None))
    moved = LocalBackend(problem).interpolate(w, 0.3, np.zeros(40), np.inf)

    def off(w):
        exact = [sum(Fraction(a) * Fraction(b) for a, b in zip(x, w, strict=True)) for x in X]
        return sum(abs(s + Fraction(0.3) - Fraction(t)) for s, t in zip(exact, y, strict=True))

    assert off(moved) < 1e-6 * off(w)
    assert (moved >= 0).all()
    assert not moved[w == 0].any()
    assert abs(moved - w).max() < 1e-12


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_digits_are_not_moved_where_bounds_of_rounding_are_left(fit_intercept, monkeypatch):
    moves = []
    monkeypatch.setattr(LocalBackend, "interpolate", lambda *at: moves.append(at))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 10))
    y = np.sign(X @ rng.standard_normal(10) + rng.standard_normal(100))
    found = solve(X, y, loss="hinge", lam=0.01, fit_intercept=fit_intercept)
    assert found.gap <= 2 * found.certificate.rounding
    assert not moves
