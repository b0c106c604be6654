"""Algorithm 1 on columns of every density: stored in full, as lists of rows, counted in bytes."""

import numpy as np
import pytest
import scipy.sparse as sp

import reference as ref
from adasdca import SmoothedHinge
from adasdca.backends.cpu import make_workspace
from adasdca.problem.problem import Problem
from cases import REGULARIZERS, VALUES
from test_kernels import FOREVER, adaptive_distribution, adaptive_steps, agrees

N, D = 1100, 400  # three blocks of rows; more columns than a byte can count


def make_columns(values, seed=0):
    """Columns from one entry to all, and one row with an entry in every column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < np.geomspace(1 / N, 1.0, D))
    X[N // 2] = rng.normal(size=D)
    if values == "ones":
        X = (X != 0).astype(float)
    if values == "single":
        X = X.astype(np.float32).astype(float)
    if values == "decimal":
        X = np.round(X, 4)
    y = np.where(X @ rng.normal(size=D) + rng.normal(size=N) > 0, 1.0, -1.0)
    return X, y


@pytest.mark.parametrize("loss", ["smoothed_hinge", "absolute"])
@pytest.mark.parametrize("regularizer", ["l2", "elastic-net"])
@pytest.mark.parametrize("values", [*VALUES, "decimal"])
def test_columns_of_every_density(values, regularizer, loss):
    X, y = make_columns(values)
    options = {"lam": 0.05, **REGULARIZERS[regularizer]}
    oracle = ref.Problem(X, y, loss, **options)
    beta = adaptive_steps(oracle, np.zeros(N), 50, 11)
    for rows, packed in [(X, False), (sp.csr_array(X), False), (sp.csr_array(X), True)]:
        workspace = make_workspace(Problem.checked(rows, y, loss=loss, **options), packed)
        workspace.pack()
        assert workspace.ascend_adaptively("relaxed", 50, 11, FOREVER) == 50
        agrees(workspace, oracle, beta, 1e-10)


@pytest.mark.parametrize("regularizer", ["l2", "elastic-net"])
def test_more_ones_in_a_row_than_a_byte_can_count(regularizer):
    """Two equal rows of 400 ones: after a step on either, its score is also the other's."""
    rng = np.random.default_rng(3)
    X = (rng.random((600, D)) < 0.01).astype(float)
    X[[7, 550]] = 1.0
    y = rng.normal(size=600)
    y[[7, 550]] = 1e5, -1e5
    options = {"lam": 0.05, **REGULARIZERS[regularizer]}
    oracle = ref.Problem(X, y, "squared", **options)
    beta = adaptive_steps(oracle, np.zeros(600), 30, 5)
    assert np.all(beta[[7, 550]] != 0)
    workspace = make_workspace(Problem.checked(sp.csr_array(X), y, loss="squared", **options))
    assert workspace.ascend_adaptively("relaxed", 30, 5, FOREVER) == 30
    agrees(workspace, oracle, beta, 1e-9)


@pytest.mark.parametrize("loss", ["squared", "smoothed_hinge", "logistic"])
def test_the_optimal_distribution_over_many_blocks(loss):
    X, y = make_columns("single")
    oracle = ref.Problem(X, y, loss, lam=0.05)
    workspace = make_workspace(Problem.checked(X, y, loss=loss, lam=0.05))
    for seed in range(10):
        b = np.random.default_rng(seed).uniform(0.0, 1.0, N) * y
        workspace.set_beta(b, 1)
        assert workspace.ascend_adaptively("optimal", 1, seed, FOREVER) == 1
        agrees(workspace, oracle, adaptive_steps(oracle, b, 1, seed, rule="optimal"), 1e-12)


def test_many_steps_with_the_optimal_distribution():
    """Steps that end at a bound leave a residue of exactly 0, so that rounding decides nothing."""
    X = make_columns("double")[0]
    X[N // 2] = 0.0
    y = np.random.default_rng(2).choice([-1.0, 1.0], N)  # labels that nothing explains: small w
    gamma = 0.01
    lam = float(np.mean(np.sum(X**2, axis=1))) / (gamma * N)  # q is about gamma
    oracle = ref.Problem(X, y, "smoothed_hinge", lam=lam, gamma=gamma)
    start = np.random.default_rng(1).uniform(0.9, 1.0, N) ** 8 * y
    beta = adaptive_steps(oracle, start, 60, 3, rule="optimal")
    moved = beta != start
    assert np.count_nonzero(moved) == 60
    assert np.isin(beta[moved] * y[moved], [0.0, 1.0]).all()
    distribution = adaptive_distribution(oracle, ref.survey(oracle, start), rule="optimal")
    assert (
        100 < np.count_nonzero(distribution == distribution[distribution > 0].min()) < 1000
    )  # rows at the floor
    workspace = make_workspace(Problem.checked(X, y, loss=SmoothedHinge(gamma), lam=lam))
    workspace.set_beta(start, 1)
    assert workspace.ascend_adaptively("optimal", 60, 3, FOREVER) == 60
    agrees(workspace, oracle, beta, 1e-11)
