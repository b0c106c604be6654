"""Every backend is the same problem: one in NumPy with its rows in two parts, and the local one."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

import adasdca
from adasdca.backends.cpu import LocalBackend
from adasdca.problem.losses import LOSSES
from adasdca.problem.problem import Problem
from numpy_backend import TwoParts

REGULARISERS = {"l2": {}, "elastic net": {"l1_ratio": 0.5}, "bounds": {"bounds": (0.0, None)}}


def data(loss):
    load = load_breast_cancer if LOSSES[loss].kind == "classification" else load_diabetes
    X, y = load(return_X_y=True)
    X, y = X[:200, :8], np.asarray(y[:200], dtype=float)
    return X, (2 * y - 1 if load is load_breast_cancer else y)


@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_two_parts_reach_the_certificate_of_the_local_rows(loss, intercept, regulariser):
    X, y = data(loss)
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    options = {"loss": loss, "lam": 1e-3, "fit_intercept": intercept, "sample_weight": weight}
    options |= {"tol": 1e-8, **REGULARISERS[regulariser]}
    local = adasdca.solve(X, y, **options)
    parts = adasdca.solve(X, y, backend=TwoParts, **options)
    assert local.converged
    assert parts.converged
    assert parts.n_updates == 0
    # Each value is at most its gap above the minimum.
    assert abs(local.primal - parts.primal) <= local.gap + parts.gap + 1e-14 * local.primal
    assert np.linalg.norm(local.coef - parts.coef) <= local.radius + parts.radius
    assert parts.dual_coef.shape == y.shape


@pytest.mark.parametrize("backend", [TwoParts, LocalBackend])
@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
def test_dot(backend, loss):
    """⟨X p + q, r⟩ = ⟨(p, q), (Xᵀr, Σr)⟩, seen through the curvature of a term."""
    X, y = data(loss)
    rows = backend(Problem.checked(X, y, loss=loss, lam=1e-3, fit_intercept=True))
    term = rows.term()
    term.place(np.zeros(X.shape[1]), 0.0)
    rng = np.random.default_rng(1)
    (p, r), (q, s) = rng.normal(size=(2, X.shape[1])), rng.normal(size=2)
    image, rest = term.curve(p, q)
    mirrored, other = term.curve(r, s)
    assert image @ r + rest * s == pytest.approx(mirrored @ p + other * q, rel=1e-12)
