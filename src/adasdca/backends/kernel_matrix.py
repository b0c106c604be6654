"""K = X Xᵀ, as far as it has been needed: the inner products of rows, kept for later steps."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from adasdca import _core
from adasdca.problem.data import DenseRows, Rows

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Entries that one product of dense rows takes in: some milliseconds, between looks at the clock.
BLOCK = 2**18
#: Rows that are kept, 200 MB of products.
MOST = 5000


class KernelMatrix:
    """Inner products of the rows that have been asked for.

    They depend on the data alone: one object may serve all Newton steps of a solve, and rows that
    join later cost their own products only.
    """

    def __init__(self, rows: Rows, workspace: _core.Workspace) -> None:
        self._rows, self._workspace = rows, workspace
        self._forget()

    def _forget(self) -> None:
        self._known: Index = np.empty(0, dtype=np.int64)  # in the order in which they came
        self._matrix: Array = np.empty((0, 0))  # its lower triangle; zeros above

    @property
    def size(self) -> int:
        """Number of rows known."""
        return len(self._known)

    def among(self, active: Index, threads: int, deadline: float) -> tuple[Index, Array] | None:
        """Return these rows, in an order of its own, and a copy of the lower triangle of their K.

        None if time ran out.
        """
        new = np.setdiff1d(active, self._known)
        if self.size + len(new) > MOST and self.size:
            # Rows come and go: begin anew.
            self._forget()
            new = active
        if len(new) and not self._extend(new, threads, deadline):
            return None
        if len(active) == self.size:
            return self._known, self._matrix.copy()
        # Places in rising order, so that what is below the diagonal stays there.
        places = np.flatnonzero(np.isin(self._known, active))
        return self._known[places], self._matrix[np.ix_(places, places)]

    def _extend(self, new: Index, threads: int, deadline: float) -> bool:
        first = self.size
        known = np.concatenate([self._known, new])
        matrix = np.zeros((len(known), len(known)))
        matrix[:first, :first] = self._matrix
        if isinstance(self._rows, DenseRows):
            if not self._multiply(known, first, matrix, deadline):
                return False
        elif not self._workspace.products(
            known, first, None, matrix, threads, deadline - time.perf_counter()
        ):
            return False
        self._known, self._matrix = known, matrix
        return True

    def _multiply(self, known: Index, first: int, matrix: Array, deadline: float) -> bool:
        """Add the lines from the first on, a few columns of dense rows at a time."""
        assert isinstance(self._rows, DenseRows)
        values = self._rows.values
        every = len(known) == len(values)  # then in their own order, and a slice will do
        width = max(16, BLOCK // len(known))
        for begin in range(0, values.shape[1], width):
            if time.perf_counter() >= deadline:
                return False
            part = values[:, begin : begin + width]
            # In double, and together: the products of a strided view are not BLAS's.
            part = np.array(part if every and first == 0 else part[known], np.float64, order="C")
            if first == 0:  # the lower triangle in C order is the upper one in Fortran order
                dsyrk(1.0, part.T, trans=1, beta=1.0, c=matrix.T, overwrite_c=1)
            else:
                matrix[first:] += part[first:] @ part.T
        return True

    def part(self, chosen: Index) -> KernelPart:
        """Return the inner products of some rows, numbered among themselves."""
        return KernelPart(self, chosen)


class KernelPart:
    """Inner products of some of the rows of a `KernelMatrix`, which keeps them."""

    def __init__(self, whole: KernelMatrix, chosen: Index) -> None:
        self._whole, self._chosen = whole, chosen

    @property
    def size(self) -> int:
        """Number of rows known."""
        return self._whole.size

    def among(self, active: Index, threads: int, deadline: float) -> tuple[Index, Array] | None:
        """Return these rows, in an order of its own, and the lower triangle of their K."""
        found = self._whole.among(self._chosen[active], threads, deadline)
        if found is None:
            return None
        order, matrix = found
        return np.searchsorted(self._chosen, order), matrix
