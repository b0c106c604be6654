"""Option III: rows weighed by what their exact steps gain."""

import dataclasses
import re

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
import reference as ref
from adasdca import AdaSDCAPlus, solve
from adasdca.ascent.sampling import Mixture, StepResidue
from adasdca.backends.cpu import LocalBackend
from adasdca.duality.theory import theta, theta_star
from adasdca.problem.problem import Problem
from cases import LOSSES, SMOOTH, make_data
from test_kernels import make_options, make_start

SETTINGS = {
    "l2": ("l2", False, False),
    "elastic-net-bounds": ("elastic-net-bounds", True, False),
    "intercept": ("l2", True, True),
}


def weights(problem, beta, offset=0.0):
    backend = LocalBackend(problem)
    backend.restart(beta, offset)
    return StepResidue(problem)(backend.survey(frozenset({"score"})))


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("loss", LOSSES)
def test_weights_are_those_of_the_oracle(loss, setting):
    X, y = make_data(loss)
    options = make_options(*SETTINGS[setting])
    oracle = ref.Problem(X, y, loss, **options)
    offset = 0.3 if options["fit_intercept"] else 0.0
    for seed in range(3):
        beta = make_start(oracle, seed)
        wanted = ref.step(oracle, ref.survey(oracle, beta, offset))
        found = weights(Problem.checked(X, y, loss=loss, **options), beta, offset)
        # The oracle's gain is a difference, of which a root is taken.
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7 * wanted.max())


@pytest.mark.parametrize("loss", LOSSES)
def test_a_gain_is_what_the_dual_gains(loss):
    X, y = make_data(loss)
    oracle = ref.Problem(X, y, loss, lam=0.05)
    beta = make_start(oracle)
    before = oracle.dual(beta)
    after = [oracle.dual(ref.ascend(oracle, beta, [i])) for i in range(oracle.n)]
    gains = ref.gains(oracle, ref.survey(oracle, beta))
    np.testing.assert_allclose(gains / oracle.N, np.array(after) - before, rtol=1e-9, atol=1e-13)


def test_for_a_quadratic_loss_it_is_option_one():
    X, y = make_data("squared")
    problem = Problem.checked(X, y, loss="squared", lam=0.05, sample_weight=np.arange(1.0, 41.0))
    backend = LocalBackend(problem)
    backend.restart(np.random.default_rng(0).normal(size=40), 0.0)
    survey = backend.survey(frozenset({"score", "adaptive"}))
    np.testing.assert_allclose(StepResidue(problem)(survey), survey.adaptive, rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_row_with_a_share_of_the_gap_is_left_out(loss):
    """An all-zero row, too, has a step to make: it is row 3 of the data."""
    X, y = make_data(loss)
    problem = Problem.checked(X, y, loss=loss, lam=0.05)
    beta = np.zeros(len(y))
    share = ref.survey(ref.Problem(X, y, loss, lam=0.05), beta).share
    found = weights(problem, beta)
    np.testing.assert_array_equal(found > 0, share > 1e-15)
    assert found[3] > 0


def test_a_row_that_would_not_move_has_no_weight():
    X, y = np.eye(3), np.array([1.0, 1.0, -1.0])
    problem = Problem.checked(X, y, loss="smoothed_hinge", lam=1.0)
    solved = solve(X, y, loss="smoothed_hinge", lam=1.0, tol=1e-12)
    assert weights(problem, solved.dual_coef).max() < 1e-6
    assert solve(X, y, loss="smoothed_hinge", lam=1.0, method=AdaSDCAPlus("III")).converged


def make_wide(n=200, d=4000, seed=0):
    """More features than rows, ones, some rows long: a visit carries a row beyond its margin."""
    rng = np.random.default_rng(seed)
    common = np.arange(1, d + 1) ** -0.5
    density = np.minimum(1.0, 0.1 * common / common.mean())
    X = (rng.random((n, d)) < density * rng.exponential(size=(n, 1))).astype(float)
    y = np.where(rng.random(n) < 0.1, 1.0, -1.0)
    return sp.csr_array(X), y


@pytest.mark.parametrize("loss", ["smoothed_hinge", "squared_hinge", "hinge"])
def test_where_residues_saturate_it_needs_fewer_epochs(loss):
    X, y = make_wide()
    runs = {
        option: solve(X, y, loss=loss, lam=1 / 200, tol=1e-6, method=AdaSDCAPlus(option),
                      max_epochs=500, random_state=1)
        for option in ("I", "III", "I+III")
    }  # fmt: skip
    for option in ("III", "I+III"):
        assert runs[option].converged
        assert runs["I"].n_epochs >= 1.5 * runs[option].n_epochs


@pytest.mark.parametrize("loss", SMOOTH)
def test_its_step_gains_more_where_understated_rows_do(loss):
    """Its expected ascent is that of option I and Cov(r, gain)/E[r], r of step and residue."""
    X, y = make_data(loss)
    oracle = ref.Problem(X, y, loss, lam=0.05)
    for seed in range(3):
        beta = make_start(oracle, seed)
        survey = ref.survey(oracle, beta)
        gain = np.array([oracle.dual(ref.ascend(oracle, beta, [i])) for i in range(oracle.n)])
        gain -= oracle.dual(beta)
        p, steps = (
            ref.relaxed(oracle, survey),
            weights(Problem.checked(X, y, loss=loss, lam=0.05), beta),
        )
        live = survey.residue != 0
        assert not steps[~live].any()
        p /= p.sum()
        r = np.sqrt(2 * (oracle.q + oracle.loss.gamma) * ref.gains(oracle, survey))[live]
        r /= oracle.loss.gamma * np.abs(survey.residue[live])
        assert (r >= 1 - 1e-6).all()
        covariance = p[live] @ (r * gain[live]) - (p[live] @ r) * (p @ gain)
        more = covariance / (p[live] @ r)
        assert steps @ gain / steps.sum() == pytest.approx(p @ gain + more, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_mixture_has_half_of_either(loss):
    X, y = make_data(loss)
    problem = Problem.checked(X, y, loss=loss, lam=0.05)
    backend = LocalBackend(problem)
    backend.restart(make_start(ref.Problem(X, y, loss, lam=0.05)), 0.0)
    survey = backend.survey(frozenset({"score", "adaptive"}))
    p = Mixture(problem)(survey)
    halves = [w / w.sum() for w in (survey.adaptive, StepResidue(problem)(survey))]
    np.testing.assert_allclose(p / p.sum(), 0.5 * (halves[0] + halves[1]), rtol=1e-12)


@pytest.mark.parametrize("loss", SMOOTH)
def test_the_mixture_keeps_half_of_the_rate_of_the_steps(loss):
    X, y = make_data(loss)
    oracle = ref.Problem(X, y, loss, lam=0.05)
    problem = Problem.checked(X, y, loss=loss, lam=0.05)
    backend = LocalBackend(problem)
    backend.restart(make_start(oracle), 0.0)
    survey = backend.survey(frozenset({"score", "adaptive"}))
    setting = {"v": survey.curvature * 0.05 * len(y), "lam": 0.05, "gamma": survey.gamma}
    steps, mixed = StepResidue(problem)(survey), Mixture(problem)(survey)
    residue = steps / np.sqrt(survey.curvature + survey.gamma)
    rates = [theta(residue, p / p.sum(), **setting) for p in (mixed, steps)]
    assert rates[0] >= 0.5 * rates[1] >= 0.5 * theta_star(**setting) * (1 - 1e-9)


def test_the_mixture_of_one_with_nothing_is_that_one():
    X, y = make_data("smoothed_hinge")
    problem = Problem.checked(X, y, loss="smoothed_hinge", lam=0.05)
    backend = LocalBackend(problem)
    survey = backend.survey(frozenset({"score", "adaptive"}))
    nothing = dataclasses.replace(survey, adaptive=np.zeros(len(y)))
    np.testing.assert_array_equal(Mixture(problem)(nothing), StepResidue(problem)(survey))


@pytest.mark.parametrize("option", ["III", "I+III"])
def test_the_option_is_the_packages_own(option):
    with pytest.raises(ValueError, match=f"'{re.escape(option)}' belongs to the package"):
        adasdca.register_rule(option, lambda survey: survey.weight)
