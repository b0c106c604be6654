"""Products with rows of a device for those who are not there: predictions and bounds of errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.cuda.device import placed
from adasdca.backends.cuda.products import Products
from adasdca.problem.device_rows import to_host

Array = NDArray[np.float64]

#: Vectors of n doubles that are on the device at a time.
VECTORS = 4


class ProductsHere:
    """What `RowProducts` has, of rows on a device; what comes back is in this process."""

    def __init__(self, products: Products) -> None:
        self._products = products
        self.shape = products.shape

    @classmethod
    def of(cls, rows: Any) -> ProductsHere:
        """Return products with checked rows, which are copied to the device if need be."""
        return cls(placed(rows, VECTORS))

    def times(self, w: Array) -> Array:
        """Return X wᵀ for w of shape (k, d)."""
        found = [self._products.gather(self._products.scores(each)) for each in w]
        return np.column_stack(found)

    def transposed(self, r: Array) -> Array:
        """Return rᵀ X for r of shape (n, k)."""
        columns = map(self._products.scatter, np.ascontiguousarray(r.T))
        return np.array([to_host(self._products.combine(each)) for each in columns])

    def mean_of_some(self, count: int) -> Array:
        """Return the mean of so many rows at most, which are equally far from each other."""
        chosen = np.zeros((self.shape[0], 1))
        chosen[:: -(-self.shape[0] // count)] = 1.0
        return np.asarray(self.transposed(chosen / chosen.sum())[0])

    def norms(self) -> Array:
        """Return the Euclidean lengths of the rows."""
        squares = self._products.row_squares(np.ones(self.shape[1]))
        return np.sqrt(self._products.gather(squares))

    def scores_about(self, centre: Array, w: Array, b: float) -> None:
        """Leave these to `times` and `lengths_about`."""

    def lengths_about(self, centre: Array) -> tuple[Array, Array]:
        """Return ‖x_i‖ and ‖x_i − m‖ for a centre m."""
        lengths = self.norms()
        toward = self.times(centre[None])[:, 0]
        square = lengths**2 - 2.0 * toward + centre @ centre
        return lengths, np.sqrt(np.maximum(square, 0.0))
