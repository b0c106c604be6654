"""Kinks of the loss and of the regulariser at once, and stalls that are none."""

import numpy as np
import pytest

import cases
from adasdca import solve
from adasdca.backends.cpu import LocalBackend
from adasdca.newton.kinks import FreeDuals
from adasdca.newton.rounding import ElasticBox, Ridge, regulariser
from adasdca.problem.problem import Problem

KINKED = [name for name in cases.LOSSES if name not in cases.SMOOTH]
REGULARISERS = [
    {"l1_ratio": 0.5},
    {"bounds": (0.0, None)},
    {"bounds": (-0.3, 0.2), "l1_ratio": 0.3},
    {"bounds": (0.1, 0.5), "l1_ratio": 0.3},
]
NEEDS = frozenset({"adaptive"})


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("options", REGULARISERS)
@pytest.mark.parametrize("loss", KINKED)
def test_the_optimum_where_epochs_crawl(loss, options, fit_intercept, monkeypatch):
    X, y = cases.make_data(loss, n=200, seed=1)
    call = {"loss": loss, "lam": 1e-6, "fit_intercept": fit_intercept, **options}
    how = {"method": "auto", "tol": 1e-9, "max_epochs": 300, "random_state": 0}
    sol = solve(X, y, **call, **how)
    assert sol.converged, sol
    monkeypatch.setattr("adasdca.auto.schedule.make_finish", lambda *_: None)
    alone = solve(X, y, **call, **how)
    assert not alone.converged
    assert alone.primal >= sol.dual
    assert alone.dual <= sol.primal


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("options", REGULARISERS)
@pytest.mark.parametrize("loss", KINKED)
def test_never_makes_the_point_worse(loss, options, fit_intercept):
    for seed in range(3):
        X, y = cases.make_data(loss, n=80, seed=seed)
        problem = Problem.checked(
            X, y, loss=loss, lam=10.0 ** (-2 * seed), fit_intercept=fit_intercept, **options
        )
        backend = LocalBackend(problem)
        before = backend.survey(NEEDS)
        for rounds in (1, 1, 2, 30):
            FreeDuals(problem, backend.workspace, 1).run(before, 1e-14, rounds, 1e9)
            after = backend.survey(NEEDS)
            assert after.primal <= before.primal * (1 + 1e-13)
            assert after.dual >= before.dual - 1e-13 * abs(before.primal)
            before = after
        assert before.gap < 1e-9 * before.primal


@pytest.mark.parametrize("options", [{}, *REGULARISERS])
@pytest.mark.parametrize("loss", ["quantile", "absolute"])
def test_duals_at_rest_with_an_intercept_far_away(loss, options):
    """Strong regularisation: no dual moves while the intercept is on its way."""
    X, y = cases.make_data(loss, n=200)
    y = 100.0 + 50.0 * y
    sol = solve(
        X, y, loss=loss, lam=1.0, fit_intercept=True, method="auto", tol=1e-9, **options,
        random_state=0,
    )  # fmt: skip
    assert sol.converged, sol


def test_which_regulariser():
    X, y = cases.make_data("hinge")
    plain = Problem.checked(X, y, loss="hinge", lam=1.0)
    assert type(regulariser(plain)) is Ridge
    for options in REGULARISERS:
        problem = Problem.checked(X, y, loss="hinge", lam=1.0, **options)
        box = regulariser(problem)
        assert isinstance(box, ElasticBox)
        u = np.random.default_rng(0).normal(size=X.shape[1])
        w = ref_w(problem, u)
        np.testing.assert_allclose(ref_w(problem, box.source(w)), w, atol=1e-15)


def ref_w(problem, u):
    """∇g*(u)."""
    sigma = problem.l1_ratio / (1 - problem.l1_ratio)
    shrunk = np.sign(u) * np.maximum(np.abs(u) - sigma, 0)
    return np.clip(shrunk, *(problem.bounds or (-np.inf, np.inf)))


@pytest.mark.parametrize("rho", [0.1, 3.0, 100.0])
@pytest.mark.parametrize("options", [{}, *REGULARISERS])
def test_the_rounded_regulariser(options, rho):
    """p = ∇E(v) is u⁰ + ρ(v − w) and a subgradient of g at w; E* bends no more than it says."""
    rng = np.random.default_rng(0)
    X, y = cases.make_data("hinge")
    problem = Problem.checked(X, y, loss="hinge", lam=1.0, **options)
    for _ in range(20):
        v, u, dv = rng.normal(size=(3, X.shape[1]))
        box = regulariser(problem).about(u, rho)
        place = box.at(v)
        np.testing.assert_allclose(ref_w(problem, place.p), place.w, atol=1e-9)
        if options:
            np.testing.assert_allclose(place.p, u + rho * (v - place.w), atol=1e-9 * (1 + rho))
        near = box.at(v + 1e-7 * dv)
        change = np.abs((near.p - place.p) / 1e-7 - place.curvature * dv)
        assert np.median(change) < 1e-5 * (1 + rho)  # but for a step across a kink
        assert box.along(v, dv)(0.3) == pytest.approx(float(box.at(v + 0.3 * dv).p @ dv))
        # λN times the bend bounds what a step of ∇E leaves of the gap.
        assert np.max(1 / place.curvature) <= box.bend * (1 + 1e-15)
