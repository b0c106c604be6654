"""What dense and sparse rows on a device have in common."""

from __future__ import annotations

import time
from typing import Any

import cupy as cp
import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backends.cuda.kernels.compiled import kernel, or_null
from adasdca.backends.cuda.kernels.gradients import iterate
from adasdca.backends.cuda.kernels.passes import CudaArrays
from adasdca.backends.cuda.products import EVERY, Few, Products, RowChoice, System

Array = NDArray[np.float64]

#: Rows that a group of threads has at a time, and lines of a block that adds columns.
ROWS, LINES = 4, 8
#: Columns of a panel of a Gram matrix, and the doubles of all its panels at a time.
PANEL, BLOCK = 256, 1 << 29


class CudaRows(CudaArrays, Products):
    """The `Products` that dense and sparse rows on a device have in common."""

    _real: str
    _centred: str  #: name of the kernel of weighted rows
    _entries: tuple[Any, ...]  #: what it reads

    def _dot(self, x: Any, shift: float, squared: int) -> Any:
        raise NotImplementedError

    def _combine(self, r: Any, squared: int) -> Any:
        raise NotImplementedError

    def scores(self, v: Any, shift: float = 0.0) -> Any:
        return self._dot(v, shift, 0)

    def combine(self, r: Any) -> Any:
        return self._combine(r, 0)

    def scores_of(self, v: Any) -> Any:
        return cp.stack([self._dot(each, 0.0, 0) for each in v])

    def combine_of(self, r: Any, squared: bool = False) -> Any:
        return cp.stack([self._combine(each, int(squared)) for each in r])

    def iterate(self, system: System, few: Few, wait: int, deadline: float, most: int) -> Any:
        """Solve a system by conjugate gradients; None if time ran out."""
        return iterate(self, system, few, wait, deadline, most)

    def squares(self, h: Any) -> Any:
        return self._combine(h, 1)

    def row_squares(self, factors: Array) -> Any:
        return self._dot(factors, 0.0, 1)

    def take_rows(self, index: Any) -> Products | None:
        try:
            return self._taken(index)
        except cp.cuda.memory.OutOfMemoryError:
            return None

    def _taken(self, index: Any) -> Products:
        raise NotImplementedError

    def _kernel(self, name: str) -> Any:
        return kernel("products", name, self._real, f"ROWS={ROWS}", f"LINES={LINES}")

    def _panels(self, h: Any, centre: Any, rows: RowChoice, first: int, count: int) -> list[Any]:
        """Return √h·z of some rows, a panel of columns at a time."""
        n, d = self.shape
        index, key = or_null(rows.index), np.uint64(rows.key)
        chosen = index, np.int64(rows.size), key, np.int64(first), np.int64(count), np.int64(n)
        grid, out = (min(-(-count // 8), 1 << 16),), []
        for column in range(0, d + 1, PANEL):
            panel = cp.empty((count, min(PANEL, d + 1 - column)))
            where = np.int32(d), np.int32(column), np.int32(panel.shape[1]), panel
            arguments = *self._entries, h, or_null(centre), *chosen, *where
            self._kernel(self._centred)(grid, (32, 8), arguments)
            out.append(panel)
        return out

    def gram(self, h: Any, centre: Any, deadline: float, rows: RowChoice = EVERY) -> Any:
        """Return Σ_i h_i z_i z_iᵀ for z = (x − centre, 1), by panels; None if time ran out."""
        n, size = self.shape[0], self.shape[1] + 1
        total = cp.zeros((size, size))
        many = len(rows.index) if rows.index is not None else rows.size or n
        free = cp.cuda.runtime.memGetInfo()[0] + cp.get_default_memory_pool().free_bytes()
        most = max(1, min(BLOCK, int(free) // 32) // size)  # at most a quarter of the free memory
        for first in range(0, many, most):
            _core.check()
            if time.perf_counter() >= deadline:
                return None
            panels = self._panels(h, centre, rows, first, min(most, many - first))
            for a, left in enumerate(panels):
                for b, right in enumerate(panels[: a + 1]):
                    at = slice(a * PANEL, (a + 1) * PANEL), slice(b * PANEL, (b + 1) * PANEL)
                    total[at] += left.T @ right
        lower = cp.tril(total)
        return lower + cp.tril(total, -1).T


def width_for(terms: float) -> int:
    """Return how many threads share a sum, a power of two up to 32."""
    return int(min(max(2 ** round(np.log2(max(terms, 1.0))), 1), 32))
