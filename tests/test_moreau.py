"""The rounded regulariser against its definition: values, gradients, bounds, lines."""

import numpy as np
import pytest

from adasdca.newton.moreau import ElasticBox, Ridge

D = 40
KINDS = {
    "elastic net": {"sigma": 0.7},
    "non-negative": {"lower": 0.0},
    "box": {"lower": -0.3, "upper": 0.2},
    "box away from 0": {"lower": 0.1, "upper": 0.5, "sigma": 0.4},
    "fixed": {"lower": np.repeat([0.0, 0.3], D // 2), "upper": np.repeat([0.0, 0.3], D // 2)},
    "factors": {
        "eta": np.tile([0.0, 0.2, 1.0, 7.0], D // 4),
        "sigma": 0.7 * np.tile([0.0, 0.2, 1.0, 7.0], D // 4),
        "lower": -1.5,
        "upper": 2.5,
    },
    "all": {"sigma": 1.3, "lower": np.linspace(-2, 0, D), "upper": np.linspace(0, 2, D)},
}


def make(kind, rho, seed=0):
    options = {"eta": 1.0, "sigma": 0.0, "lower": -np.inf, "upper": np.inf, **KINDS[kind]}
    centre = np.random.default_rng(seed).normal(size=D)
    return ElasticBox(centre=centre, rho=rho * np.linspace(0.5, 2.0, D), **options)


def least(function, lower, upper):
    """The least value of a convex function of every coordinate, by thirds."""
    low, high = np.maximum(lower, -1e3) + np.zeros(D), np.minimum(upper, 1e3) + np.zeros(D)
    for _ in range(250):
        third = (high - low) / 3
        left = function(low + third) < function(high - third)
        low, high = np.where(left, low, low + third), np.where(left, high - third, high)
    return function(0.5 * (low + high)), 0.5 * (low + high)


def g(box, w):
    return 0.5 * box.eta * w**2 + box.sigma * np.abs(w)


def envelope(box, v):
    def inner(w):
        return g(box, w) + box.centre * (v - w) + 0.5 * box.rho * (v - w) ** 2

    return least(inner, box.lower, box.upper)


def conjugate(box, u):
    value, _ = least(lambda w: g(box, w) - u * w, box.lower, box.upper)
    return -value + (u - box.centre) ** 2 / (2 * box.rho)


@pytest.mark.parametrize("rho", [0.1, 3.0, 1e4])
@pytest.mark.parametrize("kind", KINDS)
def test_the_envelope(kind, rho):
    box = make(kind, rho)
    rng = np.random.default_rng(1)
    for scale in (0.1, 3.0):
        v = scale * rng.normal(size=D)
        at = box.at(v)
        value, w = envelope(box, v)
        np.testing.assert_allclose(at.w, w, atol=1e-6)
        assert ((at.w >= box.lower) & (at.w <= box.upper)).all()
        h = 1e-6 / max(rho, 1.0)
        slope = (envelope(box, v + h)[0] - envelope(box, v - h)[0]) / (2 * h)
        np.testing.assert_allclose(at.gradient, slope, atol=2e-4 * (1 + np.abs(slope).max()))
        # It is u⁰ + ρ(v − w), and a subgradient of g at w: E(v) + E*(∇E(v)) = v·∇E(v).
        np.testing.assert_allclose(
            at.gradient, box.centre + box.rho * (v - at.w), atol=1e-9 * (1 + rho)
        )
        both = value + conjugate(box, at.gradient) - v * at.gradient
        np.testing.assert_allclose(both, 0.0, atol=1e-9 * (1 + np.abs(value).max()))
        bent = (box.at(v + h).gradient - box.at(v - h).gradient) / (2 * h)
        off = np.abs(bent - at.curvature) > 1e-5 * (1 + at.curvature)
        assert off.sum() <= 2  # but for a step across a kink


@pytest.mark.parametrize("rho", [0.1, 3.0, 1e4])
@pytest.mark.parametrize("kind", KINDS)
def test_the_excess_is_bounded(kind, rho):
    """By the difference of u and ∇E(v) alone, whatever u is."""
    box = make(kind, rho)
    rng = np.random.default_rng(2)
    for size in (1e-3, 1.0, 10.0):
        v = rng.normal(size=D)
        at = box.at(v)
        u = at.gradient + size * rng.normal(size=D)
        true = envelope(box, v)[0] + conjugate(box, u) - u * v
        assert (true >= -1e-9 * (1 + rho)).all()
        assert box.excess(u - at.gradient) >= true.sum() * (1 - 1e-9) - 1e-9 * (1 + rho)
    assert box.excess(np.zeros(D)) == 0


@pytest.mark.parametrize("rho", [0.1, 3.0, 1e4])
@pytest.mark.parametrize("kind", KINDS)
def test_a_secant_leads_no_further_than_the_residual(kind, rho):
    """Coordinate by coordinate, up to the first kink exactly, and never beyond."""
    box = make(kind, rho)
    rng = np.random.default_rng(5)
    crossed = 0
    for size in (1e-2, 1.0, 10.0, 1e6):
        v = 3.0 * rng.normal(size=D)
        residual = size * rng.normal(size=D)
        at = box.at(v)
        stiff = box.secant(at, residual)
        assert ((stiff >= at.curvature) & (stiff <= box.rho * (1 + 1e-12))).all()
        same = stiff == at.curvature
        dv = residual[~same] / stiff[~same]
        there = v.copy()
        there[~same] += dv
        end = box.at(there)
        rise = end.gradient - at.gradient
        assert (np.abs(rise) <= np.abs(residual) * (1 + 1e-9) + 1e-12 * (1 + rho))[~same].all()
        first = at.w * end.w >= 0  # kink on the way
        stopped = ~same & first & ((end.w == 0) | (end.w == box.lower) | (end.w == box.upper))
        np.testing.assert_allclose(rise[stopped], residual[stopped], rtol=1e-6)
        crossed += int(stopped.sum())
    assert crossed or kind == "fixed"  # which has no room to begin with
    np.testing.assert_array_equal(box.secant(at, np.zeros(D)), at.curvature)


@pytest.mark.parametrize("kind", KINDS)
def test_the_slope_of_a_line(kind):
    rng = np.random.default_rng(3)
    box = make(kind, 3.0)
    for length in (0.0, 0.3, 1.0, 50.0):
        v, dv = rng.normal(size=D), rng.normal(size=D)
        line, h = box.along(v, dv), 1e-6
        value, curvature, size = line(length)
        ahead, behind = line(length + h), line(length - h)
        rise = envelope(box, v + (length + h) * dv)[0] - envelope(box, v + (length - h) * dv)[0]
        assert value == pytest.approx(rise.sum() / (2 * h), rel=1e-4, abs=1e-3)
        assert curvature == pytest.approx((ahead[0] - behind[0]) / (2 * h), rel=0.1)
        assert ahead[0] >= behind[0]
        assert size >= abs(value)


@pytest.mark.parametrize("f", [1.0, np.linspace(0.1, 9.0, D)], ids=["", "factors"])
def test_without_kinks(f):
    rng = np.random.default_rng(4)
    v, dv, u = rng.normal(size=(3, D))
    ridge = Ridge(f)
    at = ridge.at(v)
    np.testing.assert_array_equal(at.w, v)
    np.testing.assert_array_equal(at.gradient, f * v)
    np.testing.assert_array_equal(at.curvature, f)
    excess = 0.5 * (f * v) @ v + 0.5 * (u / f) @ u - u @ v
    assert ridge.excess(u - f * v) == pytest.approx(excess)
    value, curvature, size = ridge.along(v, dv)(0.4)
    assert value == pytest.approx((f * (v + 0.4 * dv)) @ dv)
    assert curvature == pytest.approx((f * dv) @ dv)
    assert size >= abs(value)
