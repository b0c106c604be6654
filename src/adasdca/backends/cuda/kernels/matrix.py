"""Symmetric matrices on a device."""

from __future__ import annotations

from typing import Any

import cupy as cp
import cupyx
import numpy as np
from cupyx.scipy.linalg import solve_triangular
from numpy.typing import NDArray

Array = NDArray[np.float64]


class DeviceMatrix:
    """A symmetric matrix of CuPy, for those who factorise it."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def diagonal(self) -> Array:
        """Return the diagonal."""
        return np.asarray(self.values.diagonal().get())

    def copy(self) -> DeviceMatrix:
        """Return the matrix itself: nobody writes into it."""
        return self

    def cholesky(self, diagonal: float | Array) -> Any:
        """Return a solver with diag(diagonal) added; None if that is not positive definite."""
        matrix = self.values.copy()
        where = cp.arange(len(matrix))
        matrix[where, where] += cp.asarray(diagonal)
        try:
            with cupyx.errstate(linalg="raise"):
                factor = cp.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            return None

        def solve(right: Array) -> Array:
            half = solve_triangular(factor, cp.asarray(right), lower=True)
            return np.asarray(solve_triangular(factor, half, trans="T", lower=True).get())

        return solve
