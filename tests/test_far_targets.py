"""Targets far from 0: the intercept takes them up, and every number of the certificate holds."""

import numpy as np
import pytest

import cases
from adasdca import AdaSDCARegressor, Status, certify, solve
from adasdca.backends.cpu import LocalBackend
from adasdca.problem.losses import LOSSES, SquaredEpsilonInsensitive
from adasdca.problem.problem import Problem

COEF = np.array([1.0, -2.0, 0.5])
REGRESSION = [name for name in cases.LOSSES if not cases.is_classification(name)]


def make(seed, dtype=np.float64):
    """Rows, and targets whose mean goes from 300 to 1e5 with the seed."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 3)).astype(dtype)
    return X, X @ COEF + rng.standard_normal(40) + 300 * (1e5 / 300) ** (seed / 199)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", ["squared", "huber", "absolute"])
def test_far_targets_converge(loss, dtype):
    for seed in range(200):
        X, y = make(seed, dtype)
        model = AdaSDCARegressor(loss=loss, random_state=0).fit(X, y)
        assert model.status_ is Status.CONVERGED
        assert model.certificate_.dual <= model.certificate_.primal


def test_features_far_from_0_do_not_blow_the_bounds_up():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = X @ COEF + rng.standard_normal(200)
    near, far = (AdaSDCARegressor(random_state=0).fit(X + c, y) for c in (0.0, 1e4))
    assert (far.certified_error(X + 1e4) < 1e-3).all()
    apart = np.abs(near.predict(X) - far.predict(X + 1e4))
    assert (apart <= near.certified_error(X) + far.certified_error(X + 1e4)).all()


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 5000.0])
@pytest.mark.parametrize("loss", REGRESSION)
def test_targets_that_are_all_the_same(loss, value):
    """The least objective is 0: a relative gap is reached at that very point, and nowhere else."""
    X, _ = make(0)
    X[:, 0] += 1e3
    model = AdaSDCARegressor(loss=loss).fit(X, np.full(40, value))
    assert model.status_ is Status.CONVERGED
    found = model.certificate_
    assert found.primal == found.dual == found.gap == 0
    assert not model.coef_.any()
    assert model.intercept_ == value


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_targets_in_a_zone_without_loss(loss):
    X, _ = make(0)
    weight = np.r_[np.ones(39), 0]
    for spread in (0.05, 0.19999, 0.20001):
        y = np.r_[7 + spread * np.linspace(0, 1, 39) ** 4, 1e3]  # most near one end
        model = AdaSDCARegressor(loss=loss, C=1e4).fit(X, y, sample_weight=weight)
        assert model.status_ is Status.CONVERGED
        assert (model.certificate_.primal == 0) == (spread < 0.2)


def test_duals_far_below_the_last_digit_of_a_score():
    """All targets are fitted with next to no loss: 1e-10 beyond the zone, and scores are 1e6."""
    loss = SquaredEpsilonInsensitive(epsilon=1.7)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = 1e3 * rng.standard_normal((12, 2))
        y = X @ [-300.0, 200.0] + rng.uniform(-1, 1, 12) + 1e6
        found = solve(X, y, loss=loss, lam=1e-10, fit_intercept=True, tol=1e-6, random_state=0)
        assert found.status is Status.CONVERGED
        assert 0 < abs(found.dual_coef).max() < 1e-8


@pytest.mark.parametrize("loss", ["squared_epsilon_insensitive", "huber", "squared_hinge"])
def test_derivatives_are_the_same_at_residuals(loss):
    """But for digits: there each residual has all of its own."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 2)), rng.choice([-1.0, 1.0], 300)
    off, change = rng.standard_normal((2, 300))
    core = LocalBackend(Problem.checked(X, y, loss=loss, lam=1.0)).workspace
    centre = 0.3 * y
    for length in (0.0, 0.5):
        beta, curvature = np.empty((2, 2, 300))
        for k, at in enumerate((off + y, off)):
            core.derive(at, length, centre, beta[k], curvature[k], None, 1, residuals=k == 1)
        np.testing.assert_allclose(beta[0], beta[1], atol=1e-14)
        np.testing.assert_array_equal(curvature[0], curvature[1])
        along = (change, 0.7, length, centre, 1)
        slopes = core.slope_along(off + y, *along), core.slope_along(off, *along, residuals=True)
        np.testing.assert_allclose(*slopes, rtol=1e-12)
        line = (change, length, centre, 1.0, 1.0, (0.0, 1.0, 1.0), -300.0, 1)
        steps = core.search_along(off + y, *line), core.search_along(off, *line, residuals=True)
        np.testing.assert_allclose(*steps, rtol=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 3.0])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_targets_at_the_very_edge_of_the_zone(loss, epsilon):
    """No difference of a target and a score of 0 is rounded: a loss of 0 is none."""
    X, _ = make(0)
    sides = np.where(np.arange(40) % 3 == 0, epsilon, -epsilon)
    cases = [(sides, False), (np.full(40, epsilon), False), (sides, True)]
    if epsilon != 0.1:  # with an intercept where the numbers allow it, as at 1/2 for 0 and 1
        cases += [(sides + 1000, True), ((sides > 0) * 2 * epsilon, True)]
    for y, intercept in cases:
        model = AdaSDCARegressor(loss=loss, epsilon=epsilon, fit_intercept=intercept).fit(X, y)
        assert model.status_ is Status.CONVERGED
        assert model.certificate_.primal == model.certificate_.gap == 0
        assert not model.coef_.any()
    # One unit in the last place beyond the edge is a loss.
    y = np.where(np.arange(40) == 7, np.nextafter(epsilon, 9), epsilon)
    rounded = certify(X, y, np.zeros(3), loss=LOSSES[loss](epsilon=epsilon), lam=1.0)
    assert rounded.primal > 0
