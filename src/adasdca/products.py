"""Products of rows with a few vectors, in double, without a double copy of float32 rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Values converted at a time: a block of float32 rows as doubles stays in the cache.
BLOCK = 1 << 16


class RowProducts:
    """X·Wᵀ, Rᵀ·X and the like for a C-ordered array or CSR matrix X of float32 or float64.

    Attributes
    ----------
    passes : int
        Passes over the rows so far.
    """

    def __init__(self, X: Any) -> None:
        self._X = X
        self._sparse = sp.issparse(X)
        self.passes = 0
        n, d = X.shape
        stored = X.nnz if self._sparse else n * d
        # An empty matrix has one empty block.
        whole = X.dtype == np.float64 or stored <= BLOCK
        self._height = max(1, n if whole else n * BLOCK // stored)

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        self.passes += 1
        n = self._X.shape[0]
        for start in range(0, n, self._height):
            part = slice(start, min(n, start + self._height))
            rows = self._X if self._height >= n else self._X[part]
            yield part, rows.astype(np.float64, copy=False)

    def _squared(self, rows: Any) -> Any:
        if not self._sparse:
            return rows * rows
        return type(rows)((rows.data**2, rows.indices, rows.indptr), shape=rows.shape)

    def times(self, w: Array) -> Array:
        """Return X wᵀ for w of shape (k, d)."""
        out = np.empty((self._X.shape[0], len(w)))
        for part, rows in self._blocks():
            out[part] = rows @ w.T
        return out

    def transposed(self, r: Array) -> Array:
        """Return rᵀ X for r of shape (n, k)."""
        out = np.zeros((r.shape[1], self._X.shape[1]))
        for part, rows in self._blocks():
            out += (rows.T @ r[part]).T
        return out

    def squares(self, r: Array) -> Array:
        """Return rᵀ (X∘X) for r of shape (n, k)."""
        out = np.zeros((r.shape[1], self._X.shape[1]))
        for part, rows in self._blocks():
            out += (self._squared(rows).T @ r[part]).T
        return out

    def norms(self) -> Array:
        """Return the Euclidean lengths of the rows."""
        if not self._sparse:
            # einsum converts in small pieces by itself.
            self.passes += 1
            return np.asarray(np.sqrt(np.einsum("ij,ij->i", self._X, self._X, dtype=np.float64)))
        out = np.zeros(self._X.shape[0])
        start, data = self._X.indptr, self._X.data
        self.passes += 1
        for first in range(0, len(out), self._height):
            last = min(len(out), first + self._height)
            ends = start[first:last] - start[first]
            squares = np.square(data[start[first] : start[last]], dtype=np.float64)
            filled = np.flatnonzero(
                np.diff(start[first : last + 1])
            )  # reduceat skips no empty rows
            out[first + filled] = np.add.reduceat(squares, ends[filled]) if len(filled) else 0.0
        return np.sqrt(out)

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
