"""Products with rows, which are all that passes over them do.

Vectors of n numbers are arrays of the module `xp`; those of d numbers come from and go to this
process. Entries of float32 are read as such, and all sums are of doubles.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backends.base import FOREVER
from adasdca.problem.data import CsrRows, DenseRows, Rows

Array = NDArray[np.float64]

#: Rows of which products are added before they are added to those of others.
HEIGHT = 4096


class Products(Protocol):
    """What a backend asks of rows.

    Attributes
    ----------
    xp : module
        Whose arrays vectors of n numbers are.
    shape : (n, d)
        The shape of X.
    sizes : float or (n,) array
        The number of entries of a row.
    chain : int
        The most additions that a sum over the rows of one feature's entries goes through.
    block : int
        The number of rows that `dense_blocks` may hold at once.
    """

    xp: Any
    shape: tuple[int, int]
    sizes: Any
    chain: int
    block: int

    def dot(self, a: Any, x: Any) -> float:
        """Return Σ_i a_i x_i of vectors of n numbers, in twice the digits; a may be a number."""

    def scores(self, v: Array) -> Any:
        """Return x_i·v of all rows."""

    def combine(self, r: Any) -> Array:
        """Return Σ_i r_i x_i."""

    def squares(self, h: Any) -> Array:
        """Return Σ_i h_i x_ij² for every feature."""

    def row_squares(self, factors: Array) -> Any:
        """Return Σ_j f_j x_ij² of all rows."""

    def take_columns(self, features: NDArray[np.intp]) -> Products:
        """Return the rows with some of the features, given in rising order."""

    def dense(self, part: Any) -> Any:
        """Return some rows, a slice or row numbers, as a dense array of doubles."""


class DenseProducts:
    """Rows of a dense array, by the array module's own operations.

    Parameters
    ----------
    values : (n, d) array
        The rows.
    """

    xp: Any = np

    def __init__(self, values: Any) -> None:
        self.values = values
        self.shape = n, d = values.shape
        self.sizes = float(d)
        self.chain = min(n, HEIGHT) + -(-n // HEIGHT)
        self.block = max(1, (1 << 18) // d)

    def _parts(self) -> Iterator[tuple[slice, Any]]:
        for first in range(0, self.shape[0], HEIGHT):
            _core.check()
            part = slice(first, first + HEIGHT)
            yield part, self.dense(part)

    def dense(self, part: Any) -> Any:
        """Return some rows as doubles."""
        return self.values[part].astype(np.float64, copy=False)

    def dot(self, a: Any, x: Any) -> float:
        """Return Σ_i a_i x_i in twice the digits."""
        return exact_dot(a, x)

    def scores(self, v: Array) -> Any:
        """Return x_i·v of all rows."""
        return np.concatenate([rows @ v for _, rows in self._parts()])

    def combine(self, r: Any) -> Array:
        """Return Σ_i r_i x_i."""
        out = np.zeros(self.shape[1])
        for part, rows in self._parts():
            out += r[part] @ rows
        return out

    def squares(self, h: Any) -> Array:
        """Return Σ_i h_i x_ij² for every feature."""
        out = np.zeros(self.shape[1])
        for part, rows in self._parts():
            out += h[part] @ (rows * rows)
        return out

    def row_squares(self, factors: Array) -> Any:
        """Return Σ_j f_j x_ij² of all rows."""
        return np.concatenate([(rows * rows) @ factors for _, rows in self._parts()])

    def take_columns(self, features: NDArray[np.intp]) -> DenseProducts:
        """Return the rows with some of the features."""
        return type(self)(np.ascontiguousarray(self.values[:, features]))


class CsrProducts:
    """Rows of a CSR matrix, by SciPy.

    Parameters
    ----------
    matrix : CSR matrix
        The rows.
    """

    xp: Any = np

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.shape = matrix.shape
        self.sizes = np.diff(matrix.indptr).astype(np.float64)
        self.chain = int(np.bincount(matrix.indices, minlength=1).max(initial=0))
        self.block = max(1, (1 << 18) // self.shape[1])

    def _squared(self) -> Any:
        matrix = self.matrix
        values = matrix.data.astype(np.float64) ** 2
        return sp.csr_matrix((values, matrix.indices, matrix.indptr), shape=self.shape)

    def dense(self, part: Any) -> Any:
        """Return some rows as a dense array of doubles."""
        return self.matrix[part].toarray().astype(np.float64, copy=False)

    def dot(self, a: Any, x: Any) -> float:
        """Return Σ_i a_i x_i in twice the digits."""
        return exact_dot(a, x)

    def scores(self, v: Array) -> Any:
        """Return x_i·v of all rows."""
        _core.check()
        return self.matrix @ v

    def combine(self, r: Any) -> Array:
        """Return Σ_i r_i x_i."""
        _core.check()
        return np.asarray(self.matrix.T @ r)

    def squares(self, h: Any) -> Array:
        """Return Σ_i h_i x_ij² for every feature."""
        return np.asarray(self._squared().T @ h)

    def row_squares(self, factors: Array) -> Any:
        """Return Σ_j f_j x_ij² of all rows."""
        return self._squared() @ factors

    def take_columns(self, features: NDArray[np.intp]) -> CsrProducts:
        """Return the rows with some of the features."""
        return type(self)(self.matrix[:, features])


def exact_dot(a: Any, x: Array) -> float:
    """Return Σ_i a_i x_i of arrays of NumPy in twice the digits; a may be a number."""
    product = a * x
    error = np.zeros_like(product)
    if np.ndim(a):
        (ah, al), (xh, xl) = _halves(a), _halves(x)
        error = ((ah * xh - product) + ah * xl + al * xh) + al * xl
    # What is lost where halves are added is added as well.
    while len(product) > 1:
        if len(product) % 2:
            product, error = np.append(product, 0.0), np.append(error, 0.0)
        half = len(product) // 2
        first, second = product[:half], product[half:]
        product = first + second
        back = product - first
        error = error[:half] + error[half:] + ((first - (product - back)) + (second - back))
    return float(product[0]) + float(error[0])


def _halves(x: Array) -> tuple[Array, Array]:
    """Split numbers into two of 26 digits each (Dekker)."""
    big = 134217729.0 * x
    high = big - (big - x)
    return high, x - high


def host_products(rows: Rows) -> Products:
    """Return products with rows in the memory of this process."""
    if isinstance(rows, DenseRows):
        return DenseProducts(rows.values)
    assert isinstance(rows, CsrRows)
    return CsrProducts(rows.matrix)


def weighted_gram(
    rows: Products, h: Any, mean: Any, active: Any = None, deadline: float = FOREVER
) -> Array | None:
    """Return Σ_i h_i (x_i − m)(x_i − m)ᵀ, a block of dense rows at a time; None if time ran out.

    Parameters
    ----------
    rows : Products
        The rows.
    h : (n,) array
        Their weights, 0 or more.
    mean : (d,) array of the device, optional
        m, or None for 0.
    active : array of int, optional
        The rows with a weight above 0; all by default.
    deadline : float
        When to stop, on the clock of `time.perf_counter`.
    """
    xp, (n, d) = rows.xp, rows.shape
    total = xp.zeros((d, d))
    count = n if active is None else len(active)
    for first in range(0, count, rows.block):
        _core.check()
        if time.perf_counter() >= deadline:
            return None
        part: Any = slice(first, min(count, first + rows.block))
        if active is not None:
            part = active[part]
        block = rows.dense(part)
        if mean is not None:
            block = block - mean
        # Many short products at once: a device has few tiles of a small matrix to share out.
        whole = len(block) // HEIGHT * HEIGHT
        scaled = block * h[part][:, None]
        if whole:
            left = scaled[:whole].reshape(-1, HEIGHT, d)
            right = block[:whole].reshape(-1, HEIGHT, d)
            total += xp.matmul(left.transpose(0, 2, 1), right).sum(axis=0)
        if whole < len(block):
            total += scaled[whole:].T @ block[whole:]
    return np.asarray(to_host(total))


def to_host(array: Any) -> Any:
    """Return an array of a device, or of NumPy, as one of NumPy."""
    return array.get() if hasattr(array, "get") else array
