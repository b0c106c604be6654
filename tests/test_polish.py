"""The last digits of small problems: gradients that vanish, vertices that are optimal."""

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
from adasdca.losses import LOSSES, PiecewiseQuadratic
from adasdca.polish import Corner, Rounded

SMOOTH = [name for name, loss in LOSSES.items() if loss().smoothness > 0]
KINKED = [name for name, loss in LOSSES.items() if loss().smoothness == 0]


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


@pytest.mark.parametrize("loss", KINKED)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_vertex_from_rounded_kinks_is_the_optimum(loss, fit_intercept):
    X, y, weight = problem(loss)
    small = corner(X, y, weight, loss, fit_intercept)
    w, b = np.zeros(X.shape[1]), 0.0
    for gamma in (1.0, 1e-2, 1e-4):
        w, beta, b = small.rounded(gamma).newton(w, b, np.arange(X.shape[1]))
    beta, b = small.vertex(beta)
    solution = adasdca.solve(
        X,
        y,
        loss=loss,
        lam=1 / weight.sum(),
        sample_weight=weight,
        fit_intercept=fit_intercept,
        max_epochs=0,
        warm_start=adasdca.State(beta, b, 0, 0),
    )
    assert solution.relative_gap < 1e-14


@pytest.mark.parametrize("loss", KINKED)
def test_a_vertex_from_nowhere_is_feasible_or_none(loss):
    X, y, weight = problem(loss, seed=1)
    small = corner(X, y, weight, loss)
    rng = np.random.default_rng(2)
    lower, upper = small.loss.domain
    sign = y if small.loss.kind == "classification" else 1.0
    for _ in range(20):
        found = small.vertex(sign * rng.uniform(lower, upper, len(y)))
        if found is not None:
            b = sign * found[0]
            assert (b >= lower).all()
            assert (b <= upper).all()


def test_smooth_losses_have_no_vertex():
    X, y, weight = problem("logistic")
    assert corner(X, y, weight, "logistic").vertex(np.zeros(len(y))) is None


@pytest.mark.parametrize("loss", KINKED)
def test_rounded_losses_lie_just_below(loss):
    base = LOSSES[loss]()
    assert isinstance(base, PiecewiseQuadratic)
    gamma = 0.01
    rounded = Rounded(base, gamma)
    scores = np.linspace(-3, 3, 601)
    y = np.ones_like(scores)
    gap = base.value(scores, y) - rounded.value(scores, y)
    assert (gap >= -1e-12).all()
    assert gap.max() <= gamma / 2 + 1e-12
