"""Newton steps that look at the curvature of a sample of the rows only."""

import numpy as np
import pytest

from adasdca import certify, solve
from adasdca.auto.costs import Costs
from adasdca.backends.cpu import LocalBackend
from adasdca.newton.newton import Newton
from adasdca.problem.problem import Problem

N, D = 20_000, 6


def make_data(rare=0):
    """Rows enough for a sample; the last `rare` features are 0 in all but three rows."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, D))
    X[3:, D - rare :] = 0.0
    X[:3, D - rare :] *= 100.0
    y = np.where(X @ rng.normal(size=D) + rng.logistic(size=N) > 0.5, 1.0, -1.0)
    return X, y


SETTINGS = {
    "plain": {},
    "intercept": {"fit_intercept": True},
    "weights": {"sample_weight": np.random.default_rng(6).exponential(size=N)},
    "elastic net": {"l1_ratio": 0.5},
    "bounds": {"bounds": (0.0, np.inf)},
}


@pytest.mark.parametrize("rare", [0, 2], ids=["common", "rare"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_ends_at_the_optimum(setting, rare):
    """From the start, and though the sample hardly ever sees the rare features."""
    X, y = make_data(rare)
    options = {"loss": "logistic", "lam": 1e-4, **SETTINGS[setting]}
    problem = Problem.checked(X, y, **options)
    backend = LocalBackend(problem)
    newton = Newton(problem, backend.workspace, 1)
    assert newton.sampling
    newton.run(backend.survey(frozenset()), 1e-9, 40, 1e9)
    found = backend.survey(frozenset())
    proof = certify(X, y, found.coef, intercept=found.intercept, **options)
    assert proof.gap <= 1e-8 * proof.primal
    assert proof.gap >= 0


def test_draws_only_what_the_costs_say():
    X, y = make_data()
    problem = Problem.checked(X, y, loss="logistic", lam=1e-4)
    backend = LocalBackend(problem)
    newton = Newton(problem, backend.workspace, 1)
    survey = backend.survey(frozenset())
    point = newton._evaluate(survey.coef, survey.intercept)
    sample = newton._curvature(point)
    assert 0 < np.count_nonzero(sample) <= Costs(problem).sample < N / 4
    assert sample.sum() == pytest.approx(point.curvature.sum())
    assert not np.array_equal(sample, newton._curvature(point))


@pytest.mark.parametrize("loss", ["squared_hinge", "smoothed_hinge", "squared"])
def test_other_losses_look_at_all_rows(loss):
    """Their curvature jumps: a sample would take a step past the next kink."""
    X, y = make_data()
    assert Costs(Problem.checked(X, y, loss=loss, lam=1e-4)).sample == N


def test_the_same_bits_every_time():
    X, y = make_data()
    first, second = (solve(X, y, loss="logistic", lam=1e-4, method="auto") for _ in range(2))
    assert np.array_equal(first.coef, second.coef)
    assert first.phases[-1].name == "Newton"
