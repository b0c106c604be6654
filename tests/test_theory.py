"""The formulas of the paper: the probabilities are the maximisers they claim to be."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize

import reference as ref
from adasdca import theory


def random_instance(rng, n=None):
    """Residues from equal to very heavy-tailed, some zero, and curvatures from 0 to large."""
    n = n or int(rng.integers(1, 40))
    kappa = np.exp(rng.choice([0.0, 1.0, 4.0]) * rng.normal(size=n)) * rng.choice([-1.0, 1.0], n)
    kappa[rng.random(n) < rng.choice([0.0, 0.5])] = 0.0
    kappa[rng.integers(n)] = 1.0
    v = rng.choice([0.0, 1.0, 100.0]) * rng.exponential(size=n) ** rng.choice([1.0, 3.0])
    gamma = rng.choice([0.01, 1.0])
    if rng.random() < 0.3:
        gamma = gamma * rng.exponential(size=n) + 1e-3
    return kappa, {"v": v, "lam": float(rng.choice([1e-3, 0.1, 1.0])), "gamma": gamma}


def test_importance_probabilities_have_rate_theta_star_whatever_the_residue():
    rng = np.random.default_rng(0)
    for _ in range(200):
        kappa, view = random_instance(rng)
        p, rate = theory.importance_probabilities(**view), theory.theta_star(**view)
        assert p.sum() == pytest.approx(1.0, rel=1e-12)
        assert theory.theta(kappa, p, **view) == pytest.approx(rate, rel=1e-10)
        assert rate <= p.min() * (1 + 1e-12)


def test_importance_probabilities_are_the_equation_of_the_paper():
    v, lam, gamma = np.array([1.0, 5.0, 0.0, 2.0]), 0.3, 0.7
    weights = v + 4 * lam * gamma
    np.testing.assert_allclose(
        theory.importance_probabilities(v=v, lam=lam, gamma=gamma), weights / weights.sum()
    )
    rate = 4 * lam * gamma / weights.sum()
    assert theory.theta_star(v=v, lam=lam, gamma=gamma) == pytest.approx(rate, rel=1e-14)


def test_lemma_2_relaxed_probabilities_maximise_theta():
    rng = np.random.default_rng(1)
    for _ in range(10):
        kappa, view = random_instance(rng, n=6)
        best = theory.theta(kappa, theory.relaxed_probabilities(kappa, **view), **view)
        tried = rng.dirichlet(np.ones(6), size=300) + 1e-9
        assert max(theory.theta(kappa, p / p.sum(), **view) for p in tried) <= best * (1 + 1e-12)

        def descent(x, kappa=kappa, view=view):  # softmax: the simplex without constraints
            p = np.exp(x - x.max())
            return -np.log(theory.theta(kappa, p / p.sum() + 1e-300, **view))

        found = minimize(descent, np.zeros(6), method="BFGS")
        assert np.exp(-found.fun) == pytest.approx(best, rel=1e-4)


def upper_bound(kappa, view):
    """Largest min(theta(kappa, p), min p) over the simplex: no feasible p of (optp) exceeds it.

    A convex problem in p and tau = 1 / bound: sum s^2/p <= target tau and 1/p <= tau.
    """
    live = kappa != 0
    stiffness = kappa.size * view["lam"] * (view["gamma"] * np.ones(kappa.size))[live]
    squares = kappa[live] ** 2 * (view["v"][live] + stiffness) / (stiffness @ kappa[live] ** 2)
    p, tau = cp.Variable(live.sum()), cp.Variable()
    limits = [squares @ cp.inv_pos(p) <= tau, cp.inv_pos(p) <= tau, cp.sum(p) == 1]
    problem = cp.Problem(cp.Minimize(tau), limits)
    ref.solve_tightly(problem)
    return 1 / problem.value


def test_optimal_probabilities_attain_the_upper_bound():
    rng, floored = np.random.default_rng(2), 0
    for _ in range(40):
        n = int(rng.integers(2, 9))
        kappa = np.exp(2 * rng.normal(size=n)) * (rng.random(n) < 0.8)
        kappa[0] = 1.0
        gamma = float(rng.choice([0.1, 1.0, 10.0]))
        view = {"v": rng.exponential(size=n), "lam": 0.5, "gamma": gamma}
        p = theory.optimal_probabilities(kappa, **view)
        attained = theory.theta(kappa, p, **view)
        assert attained <= p[kappa != 0].min() * (1 + 1e-12)
        assert attained == pytest.approx(upper_bound(kappa, view), rel=1e-7)
        floored += attained < 0.999 * theory.theta(
            kappa, theory.relaxed_probabilities(kappa, **view), **view
        )
    assert 10 <= floored <= 38  # both branches, with the floor and without, were met


def test_optimal_probabilities_are_feasible_and_never_lose_to_importance_sampling():
    rng = np.random.default_rng(4)
    for _ in range(2000):
        kappa, view = random_instance(rng)
        p = theory.optimal_probabilities(kappa, **view)
        rate = theory.theta(kappa, p, **view)
        assert p.sum() == pytest.approx(1.0, rel=1e-12)
        assert ((p > 0) == (kappa != 0)).all()
        assert rate <= p[kappa != 0].min() * (1 + 1e-10)
        assert rate >= theory.theta_star(**view) * (1 - 1e-10)
        ceiling = theory.theta(kappa, theory.relaxed_probabilities(kappa, **view), **view)
        assert rate <= ceiling * (1 + 1e-10)


def test_water_fill_returns_the_theta_of_its_probabilities():
    rng = np.random.default_rng(5)
    for _ in range(300):
        s = rng.exponential(size=int(rng.integers(1, 30))) ** 3
        target = float(rng.uniform(0.001, 1.0) * (s @ s))
        p, best = theory.water_fill(s, target)
        assert target / np.sum(s**2 / p) == pytest.approx(best, rel=1e-9)
        assert best <= p.min() * (1 + 1e-9)


def test_optimal_probabilities_at_the_edges():
    edge = {"lam": 0.5, "gamma": 2.0}
    solve = theory.optimal_probabilities
    np.testing.assert_array_equal(solve([3.0], v=[4.0], **edge), [1.0])
    np.testing.assert_array_equal(solve([0.0, -3.0], v=[4.0, 1.0], **edge), [0.0, 1.0])
    np.testing.assert_allclose(solve(np.full(7, 0.3), v=np.ones(7), **edge), np.full(7, 1 / 7))
    # Without curvature (v = 0) the target is sum(s^2) itself and only uniform is feasible.
    kappa = np.exp(5 * np.random.default_rng(6).normal(size=1000))
    np.testing.assert_allclose(solve(kappa, v=np.zeros(1000), **edge), np.full(1000, 1e-3))
    # The scale of the residue does not matter, down to numbers whose squares underflow.
    tiny = solve([1e-200, 3e-200], v=[1.0, 2.0], **edge)
    np.testing.assert_allclose(tiny, solve([1.0, 3.0], v=[1.0, 2.0], **edge))


def test_bounds_by_hand():
    thetas = [0.5, 0.2, 0.25]
    by_hand = [3 / 0.5, 3 / 0.2 * 0.5, 3 / 0.25 * 0.5 * 0.8]
    np.testing.assert_allclose(theory.adaptive_bound(thetas, 3.0), by_hand)
    constant = theory.adaptive_bound(np.full(9, 0.3), 3.0)
    steps = theory.importance_bound(np.arange(9), theta_star=0.3, dual_error=3.0)
    np.testing.assert_allclose(constant, steps)
    assert float(theory.importance_bound(2, theta_star=0.5, dual_error=1.0)) == 0.5


def test_epoch_cost_is_table_1():
    size = {"n": 256, "nnz": 5000}
    assert theory.epoch_cost("sdca", **size) == theory.epoch_cost("quartz", **size) == 5000
    assert theory.epoch_cost("iprox-sdca", **size) == 5000 + 256 * 8
    assert theory.epoch_cost("adasdca+", **size) == 5000 + 256 * 8
    assert theory.epoch_cost("adasdca", **size) == 256 * 5000
    with pytest.raises(ValueError, match=r"'adam'.*sdca, sdca-perm, quartz, iprox-sdca, adasdca,"):
        theory.epoch_cost("adam", **size)


GOOD = {"kappa": [1.0, 2.0], "p": [0.5, 0.5], "v": [1.0, 1.0], "lam": 1.0, "gamma": 1.0}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kappa": [0.0, 0.0]}, "kappa is zero in every row"),
        ({"kappa": [1.0]}, r"kappa has shape \(1,\).*\(2,\)"),
        ({"kappa": [1.0, np.nan]}, "kappa has the entry nan"),
        ({"p": [1.0, 0.0]}, r"p\[1\] = 0 although kappa\[1\].*coherent"),
        ({"p": [1.5, -0.5]}, "p has the entry -0.5"),
        ({"v": [1.0, -1.0]}, "v has the entry -1"),
        ({"v": [[1.0, 1.0]]}, r"v has shape \(1, 2\)"),
        ({"lam": 0.0}, "lam = 0.0"),
        ({"gamma": 0.0}, "gamma = 0 must be positive.*smoothed_hinge"),
        ({"gamma": [1.0, 1.0, 1.0]}, r"gamma has shape \(3,\)"),
    ],
)
def test_wrong_arguments_are_named(wrong, message):
    assert theory.theta(**GOOD) > 0
    with pytest.raises(ValueError, match=message):
        theory.theta(**{**GOOD, **wrong})


def test_wrong_arguments_of_the_other_functions_are_named():
    with pytest.raises(ValueError, match=r"target = 9 must lie in \(0, sum\(s\^2\) = 5\]"):
        theory.water_fill([1.0, 2.0], 9.0)
    with pytest.raises(ValueError, match="s must be >= 0 and not all zero"):
        theory.water_fill([0.0, 0.0], 1.0)
    with pytest.raises(ValueError, match="thetas must lie"):
        theory.adaptive_bound([0.5, 0.0], 1.0)
    with pytest.raises(ValueError, match="dual_error = -1"):
        theory.adaptive_bound([0.5], -1.0)
    with pytest.raises(ValueError, match="theta_star = 2"):
        theory.importance_bound(1, theta_star=2.0, dual_error=1.0)
    with pytest.raises(ValueError, match=r"t = .* must be >= 0"):
        theory.importance_bound(-1, theta_star=0.5, dual_error=1.0)
    with pytest.raises(ValueError, match="n = 0 must be >= 1"):
        theory.epoch_cost("sdca", n=0, nnz=1)
