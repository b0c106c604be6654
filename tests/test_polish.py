"""The last digits of small problems: gradients that vanish."""

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
from adasdca.estimators._polish import Corner
from adasdca.problem.losses import LOSSES

SMOOTH = [name for name, loss in LOSSES.items() if loss().smoothness > 0]


def problem(loss, n=30, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + 0.5 + rng.normal(size=n)
    if LOSSES[loss].kind == "classification":
        y = np.where(y > 0, 1.0, -1.0)
    return X, y, rng.uniform(0.5, 2.0, n)


def corner(X, y, weight, loss, fit_intercept=True, l2=1.0):
    return Corner(X, y, weight, LOSSES[loss](), l2=l2, l1=0.0, fit_intercept=fit_intercept)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_newton_ends_where_the_gradient_vanishes(loss, fit_intercept):
    X, y, weight = problem(loss)
    small = corner(sp.csr_array(X), y, weight, loss, fit_intercept)
    w, beta, b = small.newton(np.zeros(X.shape[1]), 0.0, np.arange(X.shape[1]))
    np.testing.assert_allclose(w, X.T @ (weight * beta), atol=1e-11)
    np.testing.assert_allclose(beta, -small.loss.slope(X @ w + b, y), atol=1e-13)
    if fit_intercept:
        assert abs(weight @ beta) < 1e-11


@pytest.mark.parametrize("loss", SMOOTH)
def test_the_zero_model_of_an_l1_term_has_nothing_to_polish(loss):
    X, y, weight = problem(loss)
    classes = LOSSES[loss].kind == "classification"
    estimator = adasdca.AdaSDCAClassifier if classes else adasdca.AdaSDCARegressor
    model = estimator(loss=loss, C=1e-4, l1_ratio=0.5, fit_intercept=False, random_state=0)
    model.fit(X, y, sample_weight=weight)
    assert model.converged_
    assert not model.coef_.any()
