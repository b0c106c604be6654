"""Wide data in the coordinates of their rows' span."""

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
import cases
import reference as ref
from adasdca.auto.costs import Costs
from adasdca.newton.span import Coordinates

STORAGES = {
    "dense": lambda X: X,
    "dense-single": lambda X: X.astype(np.float32),
    "sparse": sp.csr_matrix,
}


@pytest.fixture
def always(monkeypatch):
    """Let the span cost nothing, so that it is chosen at once."""
    monkeypatch.setattr(Costs, "span", lambda self, known=0: 0.0)


def wide_data(loss):
    """Rows with two duplicates, one of them with another target, a sum of others, and no entry."""
    X, y = cases.make_data(loss, "single", n=30, d=80)
    X[5], X[6], X[7] = X[4], X[4], X[8] + X[9]
    y[6] = -y[4]
    return X, y


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", cases.LOSSES)
def test_reaches_the_optimum(loss, storage, intercept, weighted, always):
    X, y = wide_data(loss)
    weight = np.random.default_rng(1).integers(0, 4, len(y)).astype(float) if weighted else None
    options = {"loss": loss, "lam": 0.05, "sample_weight": weight, "fit_intercept": intercept}
    sol = adasdca.solve(STORAGES[storage](X), y, method="auto", tol=1e-7, random_state=0, **options)
    assert sol.phases[0].name == "span"
    assert sol.converged, sol
    proof = adasdca.certify(
        X, y, sol.coef, intercept=sol.intercept, dual_coef=sol.dual_coef, **options
    )
    assert proof.gap <= 2e-7 * proof.primal


def test_agrees_with_the_oracle(always):
    X, y = wide_data("logistic")
    value, *_ = ref.optimum(X, y, "logistic", lam=0.05)
    sol = adasdca.solve(X, y, loss="logistic", lam=0.05, method="auto", tol=1e-9, random_state=0)
    assert sol.primal == pytest.approx(value, rel=1e-8)


def test_coordinates_keep_inner_products():
    X, _ = wide_data("logistic")
    expected = X @ X.T
    coordinates = Coordinates.of(np.tril(expected))
    rank = np.linalg.matrix_rank(X)
    assert coordinates.rows.shape == (30, rank)
    np.testing.assert_allclose(
        coordinates.rows @ coordinates.rows.T, expected, atol=1e-12 * expected.max()
    )
    w = np.random.default_rng(0).normal(size=rank)
    np.testing.assert_allclose(coordinates.rows.T @ coordinates.weights(w), w, rtol=1e-8)


@pytest.mark.parametrize("loss", ["squared_hinge", "smoothed_hinge", "squared", "logistic"])
def test_chosen_for_dense_wide_data_at_small_lam(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4000)) + 3.0 * rng.normal(size=(100, 1))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    sol = adasdca.solve(X, y, loss=loss, lam=1e-6, method="auto", tol=1e-9, random_state=0)
    assert sol.converged, sol
    assert "span" in {phase.name for phase in sol.phases}


def test_rows_without_entries(always):
    sol = adasdca.solve(np.zeros((3, 9)), [1.0, -1.0, 1.0], loss="logistic", lam=1.0, method="auto")
    assert sol.converged
    assert not sol.coef.any()


@pytest.mark.parametrize("storage", STORAGES)
def test_no_time_is_left(storage, always):
    X, y = wide_data("logistic")
    sol = adasdca.solve(
        STORAGES[storage](X), y, loss="logistic", lam=1.0, method="auto", tol=0.0, max_time=0.0
    )
    assert sol.status is adasdca.Status.TIME_LIMIT


def test_an_interrupt_inside_is_one_of_the_whole(always, monkeypatch):
    from adasdca.auto.schedule import AutoSchedule

    plan = AutoSchedule.plan

    def interrupted(self, survey, key):
        if len(survey.coef) < 80 and self._last is not None:
            raise KeyboardInterrupt
        return plan(self, survey, key)

    monkeypatch.setattr(AutoSchedule, "plan", interrupted)
    X, y = wide_data("logistic")
    sol = adasdca.solve(X, y, loss="logistic", lam=1e-6, method="auto", tol=1e-12, random_state=0)
    assert sol.status is adasdca.Status.INTERRUPTED
    assert sol.gap >= 0


def test_same_seed_same_bits(always):
    X, y = wide_data("hinge")
    runs = [
        adasdca.solve(X, y, loss="hinge", lam=0.01, method="auto", tol=1e-8, random_state=seed)
        for seed in (3, 3)
    ]
    np.testing.assert_array_equal(runs[0].coef, runs[1].coef)
