"""Features so large that the last digit of one dual hides what is left: moves of several do not."""

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
from adasdca import _core
from adasdca.duality.lattice import MOST_DIGITS, movable, nearest
from adasdca.problem.losses import LOSSES
from adasdca.problem.regularizers import Regularizer

TOL = 1e-6


def stamped(kind, n=120, d=4):
    """Return rows with columns of times since 1970, and targets that the other columns explain."""
    rng = np.random.default_rng(len(kind))
    X = rng.standard_normal((n, d))
    y = X @ rng.standard_normal(d) + rng.standard_normal(n)
    match kind:
        case "nanoseconds":
            X[:, 0] = 1.6e18 + 1e9 * np.arange(n)
        case "microseconds":
            X[:, 0] = 1.6e15 + 1e6 * np.arange(n)
        case "three":
            X[:, :3] = 1.6e18 + 3e16 * rng.random((n, 3))
        case "huge":
            X[:, 0] *= 1e18
    return X, y


def targets_of(loss, y):
    return np.where(y > 0, 1.0, -1.0) if LOSSES[loss].kind == "classification" else y


def check(X, y, loss, C, **options):
    weight = options.get("sample_weight")
    total = len(y) if weight is None else weight.sum()
    problem = {"loss": loss, "lam": 1 / (C * total), **options}
    solution = adasdca.solve(X, targets_of(loss, y), tol=TOL, random_state=0, **problem)
    assert solution.converged, solution.message
    if options:
        return
    # The duals that are returned prove it, as they are.
    proof = adasdca.certify(
        X,
        targets_of(loss, y),
        solution.coef,
        intercept=solution.intercept,
        dual_coef=solution.dual_coef,
        **problem,
    )
    assert proof.relative_gap <= 2 * TOL


@pytest.mark.parametrize("C", [1e-2, 1e2])
@pytest.mark.parametrize("kind", ["nanoseconds", "microseconds"])
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_timestamps_are_solved(loss, kind, C):
    check(*stamped(kind), loss, C)


@pytest.mark.parametrize("loss", ["hinge", "squared", "logistic", "smoothed_hinge"])
@pytest.mark.parametrize("kind", ["nanoseconds", "three", "huge"])
def test_with_an_intercept_the_duals_stay_balanced(loss, kind):
    check(*stamped(kind), loss, 1.0, fit_intercept=True)


@pytest.mark.parametrize("loss", ["hinge", "absolute", "squared"])
@pytest.mark.parametrize("form", ["sparse", "weights", "elastic net", "bounds", "factors"])
def test_other_problems_with_timestamps(loss, form):
    X, y = stamped("nanoseconds")
    options = {
        "weights": {"sample_weight": 1.0 + np.arange(len(y)) % 7},
        "elastic net": {"l1_ratio": 0.5},
        "bounds": {"bounds": (-0.3, 0.3)},
        "factors": {"penalty_factors": [1.0, 2.0, 0.5, 3.0]},
    }.get(form, {})
    check(sp.csr_matrix(X) if form == "sparse" else X, y, loss, 1.0, **options)


def test_moves_of_several_rows_are_finer_than_those_of_one():
    rng = np.random.default_rng(0)
    moves = 177.0 * (1.0 + 1e-7 * rng.random((8, 1)))
    off = np.array([50.0])
    k = nearest(moves, np.full(8, 1e-12), off)
    assert (k == np.rint(k)).all()
    assert abs(off + k @ moves) < 1e-6  # of one row alone: 50
    assert np.abs(k).max() < 1e9


def test_duals_at_0_move_by_their_own_fine_digits():
    beta, low, high = np.array([0.0, 1.0, 0.5]), np.zeros(3), np.ones(3)
    length, reach = np.full(3, 1e18), np.array([1e-9, 1e-9, 1e-3])
    chosen = movable(beta, low, high, length, reach, off=100.0, goal=1e-3)
    assert chosen.rows.tolist() == [0, 2, 1]  # the finest first, and last what is pushed off 1
    assert chosen.free == 2
    assert chosen.unit[0] < 1e-20 < 1e-17 < chosen.unit[1]
    assert (chosen.start >= 0).all()
    assert (chosen.start + chosen.room <= 1).all()
    assert (chosen.start - chosen.room >= 0).all()


def test_slopes_of_the_regulariser():
    plain = Regularizer(1.0, 1.0, 0.5, (np.full(4, -2.0), np.full(4, 2.0)), None)
    w, u = np.array([1.0, 0.0, 2.0, -2.0]), np.array([7.0, 0.25, 7.0, 7.0])
    assert plain.nearest_slope(w, u).tolist() == [1.5, 0.25, 7.0, -2.5]


def dated(seed, n=145, d=2):
    """Return a column of dates in nanoseconds, in their order, beside codes, and targets."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 1000, (n, d)).astype(float)
    X[:, 0] = 1e9 * (1.6e9 + np.sort(rng.integers(0, 86400 * 900, n)))
    return X, np.sqrt(X[:, 1]) + 3.0 * rng.standard_normal(n) - 20.0


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_a_lasso_of_dates_is_solved(loss):
    """What of σ a large feature may leave unused costs next to nothing: its u may be anywhere.

    An intercept has the moves add up to 0, where all dates are alike to 1 %.
    """
    check(*dated(0), loss, 1e5, l1_ratio=1.0, fit_intercept=True)


@pytest.mark.parametrize("seed", [0, 2, 4])
def test_a_lasso_of_dates_and_a_feature_without_penalty(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 6))
    X[:, 1] = 1.6e18 + rng.integers(0, 10**13, 30)
    factors, lower, upper = np.ones(6), np.full(6, -np.inf), np.full(6, np.inf)
    factors[0], lower[0], upper[0] = 0.0, -3.0, 3.0
    options = {"l1_ratio": 1.0, "penalty_factors": factors, "bounds": (lower, upper)}
    y = X[:, 2] + rng.standard_normal(30)
    found = adasdca.solve(X, y, loss="squared", lam=1e-2, tol=1e-6, **options)
    assert found.converged


def test_moves_from_an_end_add_up_to_0():
    """Where rows are alike, moves that cancel are longer than one that may be alone."""
    beta, one = np.zeros(3), np.ones(3)
    alone, apart = (
        movable(beta, 0 * one, one, one, 1e-9 * one, 1e-6, 1e-8, spread) for spread in (1.0, 70.0)
    )
    assert (apart.start == 70.0 * alone.start).all()


def test_no_more_moves_than_doubles_can_add():
    beta, one = np.array([0.0, 0.5]), np.ones(2)
    found = movable(beta, -one, one, one, np.full(2, 0.1), 1e-3, 1e-12)
    assert (found.room <= MOST_DIGITS * found.unit).all()


def test_a_basis_is_reduced_to_another_one_of_the_same_lattice():
    """Its vectors are what the combinations say, of determinant ±1, and no pair shortens much."""
    rng = np.random.default_rng(0)
    # Integers: all sums are exact.
    given = np.hstack([np.eye(12), np.rint(1e6 * rng.standard_normal((12, 3)))])
    basis, made = given.copy(), np.eye(12)
    _core.reduce_pairs(basis, made)
    np.testing.assert_array_equal(made @ given, basis)
    assert round(abs(np.linalg.det(made))) == 1
    squares = (basis**2).sum(axis=1)
    assert squares.max() < 1e-4 * (given**2).sum(axis=1).min()
    shorter = ((basis[:, None] - basis[None]) ** 2).sum(axis=2) + np.diag(squares)
    assert (shorter >= 0.99 * squares[:, None]).all()


def test_made_has_a_row_and_a_column_per_vector():
    with pytest.raises(ValueError, match="per vector"):
        _core.reduce_pairs(np.eye(3), np.ones((3, 2)))
