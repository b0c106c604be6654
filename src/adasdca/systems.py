"""The linear systems of Newton steps: a factorisation, and the intercept at its border."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

Array = NDArray[np.float64]


def cholesky(matrix: Array, stiffness: float | Array) -> Callable[[Array], Array] | None:
    """Return a solver with diag(stiffness) + the lower triangle given, which is lost on the way.

    None if the matrix is not positive definite.
    """
    matrix[np.diag_indices(len(matrix))] += stiffness
    factor, info = dpotrf(matrix.T, lower=0, overwrite_a=1, clean=0)
    return None if info != 0 else lambda right: dpotrs(factor, right, lower=0)[0]


def bordered(
    solve: Callable[[Array], Array], right: Array, column: Array, mass: float, wanted: float
) -> tuple[Array, float]:
    """Solve with the intercept's row and column as well, by their Schur complement.

    Parameters
    ----------
    solve : callable
        Solves with the matrix of the features.
    right, wanted : (d,) array, float
        The right-hand sides of the features and of the intercept.
    column, mass : (d,) array, float
        k = Σ_i h_i x_i and Σ_i h_i; with 0 the intercept stays.
    """
    move = solve(right)
    if mass <= 0:
        return move, 0.0
    across = solve(column)
    # Rounding may leave nothing of the complement, or less.
    pivot = max(mass - float(column @ across), 1e-14 * mass)
    db = float(wanted - column @ move) / pivot
    return move - db * across, db
