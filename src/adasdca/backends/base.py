"""What rows say of an objective: derivatives, slopes along a line, second derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: Seconds that never pass.
FOREVER = 1e18
#: A mean curvature below this is none.
STRAIGHT = 1e-60


class Derivatives(NamedTuple):
    """First derivatives of the rows' part of an objective, with β_i = −φ'."""

    u: Array  #: (d,), Σ_i c_iβ_i x_i/(λN).
    balance: float  #: Σ_i c_iβ_i.
    mass: float  #: Σ_i c_iφ''.


class RowSlope(NamedTuple):
    """Derivative of the rows' part along a line, its own derivative, and the size of its terms."""

    value: float
    curvature: float
    size: float


class Gram(NamedTuple):
    """Second derivatives of the rows' part, h_i = c_iφ'' of all rows or of a sample of them.

    Attributes
    ----------
    matrix : (d, d) array
        The lower triangle of Σ_i h_i x_i x_iᵀ; with an intercept that of
        Σ_i h_i (x_i − m)(x_i − m)ᵀ, m the mean of the rows weighted by h. One that is somewhere
        else has a `diagonal` and a `copy`, and its `cholesky` does what that of `blas` does.
    column : (d,) array
        Σ_i h_i x_i, 0 without an intercept.
    mass : float
        Σ_i h_i, 0 without an intercept.
    combined : (d,) array or None
        Σ_i c_iβ_i x_i, if it was asked for.
    product : callable or None
        If given, `matrix` is that of a sample or has few digits, and is only near the one that is
        meant; this multiplies a vector of d numbers by the latter.
    """

    matrix: Any
    column: Array
    mass: float
    combined: Array | None = None
    product: Callable[[Array], Array] | None = None

    @property
    def single(self) -> bool:
        """Whether the matrix has the few digits of single precision."""
        return isinstance(self.matrix, np.ndarray) and self.matrix.dtype == np.float32
