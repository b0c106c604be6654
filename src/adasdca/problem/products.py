"""Products of rows with a few vectors, in double, without a double copy of float32 rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adasdca import _core

Array = NDArray[np.float64]

#: Values converted at a time: 2 MB of doubles, which is next to nothing beside the rows.
BLOCK = 1 << 18
#: Doubles that are multiplied at a time, as they are: some milliseconds.
LARGE = 1 << 22


class RowProducts:
    """X·Wᵀ, Rᵀ·X and the like for a C-ordered array or CSR matrix X of float32 or float64.

    Attributes
    ----------
    passes : int
        Passes over the rows so far.
    shape : (n, d)
        The shape of X.
    stored : int
        The number of values that X holds.
    """

    def __init__(self, X: Any) -> None:
        self._X = X
        self.shape: tuple[int, int] = X.shape
        self._sparse = sp.issparse(X)
        self.passes = 0
        n, d = X.shape
        stored = X.nnz if self._sparse else n * d
        self.stored = int(stored)
        # An empty matrix has one empty block.
        most = LARGE if X.dtype == np.float64 else BLOCK
        self._height = max(1, n if stored <= most else n * most // stored)

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        self.passes += 1
        n = self._X.shape[0]
        for first in range(0, n, self._height):
            _core.check()
            part = slice(first, min(n, first + self._height))
            if self._height >= n:
                yield part, self._X.astype(np.float64, copy=False)
            elif self._sparse:
                start, end = self._X.indptr[part.start], self._X.indptr[part.stop]
                arrays = (
                    self._X.data[start:end].astype(np.float64, copy=False),
                    self._X.indices[start:end],
                    self._X.indptr[part.start : part.stop + 1] - start,
                )
                yield part, sp.csr_array(arrays, shape=(part.stop - part.start, self._X.shape[1]))
            else:
                yield part, self._X[part].astype(np.float64, copy=False)

    def _squared(self, rows: Any) -> Any:
        if not self._sparse:
            return rows * rows
        return type(rows)((rows.data**2, rows.indices, rows.indptr), shape=rows.shape)

    def times(self, w: Array) -> Array:
        """Return X wᵀ for w of shape (k, d)."""
        out = np.empty((self._X.shape[0], len(w)))
        for part, rows in self._blocks():
            out[part] = self._scores(rows, w).T
        return out

    def transposed(self, r: Array) -> Array:
        """Return rᵀ X for r of shape (n, k)."""
        out = np.zeros((r.shape[1], self._X.shape[1]))
        for part, rows in self._blocks():
            out += self._gathered(rows, r[part].T)
        return out

    def some(self, chosen: NDArray[np.intp]) -> RowProducts:
        """Return products of some rows, which are copied."""
        return RowProducts(self._X[chosen])

    def mean_of_some(self, count: int) -> Array:
        """Return the mean of at most `count` rows, equally spaced."""
        every = -(-self.shape[0] // count)
        some = self._X[::every] if every > 1 else self._X
        if self._sparse:  # (in a tenth of the time that the sum of a matrix takes)
            total = np.bincount(some.indices, weights=some.data, minlength=self.shape[1])
        else:
            total = some.sum(axis=0, dtype=np.float64)
        return np.asarray(total / some.shape[0])

    def _scores(self, rows: Any, w: Array) -> Array:
        # BLAS is faster with the long side last.
        return np.asarray((rows @ w.T).T if self._sparse else w @ rows.T)

    def _gathered(self, rows: Any, r: Array) -> Array:
        return np.asarray((rows.T @ r.T).T if self._sparse else r @ rows)

    def squares(self, r: Array) -> Array:
        """Return rᵀ (X∘X) for r of shape (n, k)."""
        out = np.zeros((r.shape[1], self._X.shape[1]))
        for part, rows in self._blocks():
            out += (self._squared(rows).T @ r[part]).T
        return out

    def dense_blocks(self, width: int, values: int = BLOCK) -> Iterator[tuple[slice, Array]]:
        """Yield the rows as dense arrays, few at a time: `width` numbers for each are `values`."""
        self.passes += 1
        n, height = self._X.shape[0], max(1, values // max(width, 1))
        for first in range(0, n, height):
            _core.check()
            part = slice(first, min(n, first + height))
            rows = self._X[part]
            yield part, (rows.toarray() if self._sparse else rows).astype(np.float64, copy=False)

    def lengths_about(self, centre: Array) -> tuple[Array, Array]:
        """Return ‖x_i‖ and ‖x_i − m‖ for a centre m, in one pass over the rows."""
        self.passes += 1
        X, n = self._X, self.shape[0]
        squares, apart = np.empty(n), np.empty(n)
        if self._sparse:
            if not X.has_canonical_format:  # entries of the same place are one
                X = X.copy()
                X.sum_duplicates()
            start = X.indptr.astype(np.int64, copy=False)
            rows = _core.Rows.csr(X.data, X.indices, start, X.shape[1])
        else:
            rows = _core.Rows.dense(np.ascontiguousarray(X))
        rows.squares_about(centre, squares, apart)
        return np.sqrt(squares, out=squares), np.sqrt(apart, out=apart)

    def scores_about(self, centre: Array, w: Array, b: float) -> tuple[Array, float] | None:
        """Return X w + b and the largest ‖x_i − m‖ in one pass; None for sparse rows."""
        if self._sparse:
            return None
        self.passes += 1
        scores = _core.vector(self.shape[0])
        rows = _core.Rows.dense(np.ascontiguousarray(self._X))
        square = rows.scores_about(centre, np.ascontiguousarray(w), float(b), scores)
        return scores, float(np.sqrt(square))

    def lengths_in(self, units: Array) -> Array:
        """Return the lengths of the rows where every feature has a unit of its own."""
        weight = units**-2.0
        parts = [np.sqrt(self._squared(rows) @ weight) for _, rows in self._blocks()]
        return np.concatenate(parts)

    def norms(self) -> Array:
        """Return the Euclidean lengths of the rows."""
        return self.lengths_about(np.zeros(self.shape[1]))[0]

    def gram(self, weight: Array) -> Array:
        """Return [X 1]ᵀ diag(weight) [X 1]."""
        d = self._X.shape[1]
        out = np.zeros((d + 1, d + 1))
        for part, rows in self._blocks():
            c = weight[part]
            scaled = rows.multiply(c[:, None]).tocsr() if self._sparse else rows * c[:, None]
            product = rows.T @ scaled
            out[:d, :d] += product.toarray() if self._sparse else product
            out[:d, d] += np.asarray(scaled.sum(axis=0)).ravel()
            out[d, d] += c.sum()
        out[d, :d] = out[:d, d]
        return out
