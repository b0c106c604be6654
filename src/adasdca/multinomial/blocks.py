"""Products of rows with a vector for every class, in the core's layout.

A block has a line for every feature or row and a lane for every class, the last ones of them 0.
Single precision is enough for the iterations of a step, and takes half of the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.problem.data import Rows
from adasdca.problem.device_rows import to_host

Array = NDArray[np.float64]
Block = NDArray[Any]

#: Lanes come in these numbers.
LANES = 8


class Layout:
    """Blocks of arrays of `xp`, by default as wide as the core wants them, and what they hold."""

    def __init__(self, n_classes: int, lanes: int | None = None, xp: Any = np) -> None:
        self.n_classes, self.xp = n_classes, xp
        self.lanes = lanes or -(-n_classes // LANES) * LANES

    def block(self, values: Array, real: Any = np.float64) -> Block:
        """Return an array with a class in each row as a block."""
        out: Block = self.xp.zeros((values.shape[1], self.lanes), dtype=real)
        out[:, : self.n_classes] = self.xp.asarray(values).T
        return out

    def line(self, values: Array, real: Any = np.float64) -> Block:
        """Return a number for each class as a line of a block."""
        out: Block = self.xp.zeros(self.lanes, dtype=real)
        out[: self.n_classes] = self.xp.asarray(values)
        return out

    def classes(self, block: Block) -> Array:
        """Return a block as an array of this process with a class in each row."""
        return np.ascontiguousarray(to_host(block).T[: self.n_classes], dtype=np.float64)


class ClassBlocks(Layout):
    """The rows, if dense less their mean, as factors of blocks.

    Attributes
    ----------
    offset : (d,) array
        The part of the mean that is still in the rows: that of sparse ones, else 0.
    """

    def __init__(self, rows: Rows, n_classes: int, centre: Array, threads: int) -> None:
        super().__init__(n_classes)
        centred = rows.dense and bool(centre.any())
        self._rows = _core.ClassRows(rows.core, centre if centred else None, threads)
        self.offset = np.zeros_like(centre) if rows.dense else centre
        self.shape = rows.shape

    def times(self, coef: Array) -> Array:
        """Return the scores of all rows, a class in each row."""
        out = np.empty((self.shape[0], self.lanes))
        self._rows.times(self.block(coef), out)
        return self.classes(out)

    def gather(self, values: Array, real: Any = np.float64, squared: bool = False) -> Block:
        """Return Σ_i x_iᵀ v_i, or that with the squares of the entries of x_i."""
        out = np.empty((self.shape[1], self.lanes), dtype=real)
        self._rows.gather(self.block(values, real), out, squared)
        return out

    def gather_exactly(self, values: Array, spare: NDArray[np.intp]) -> tuple[Array, ...]:
        """Return Σ_i x_iᵀ v_i and Σ_i v_i, a class in each row, and what these lose by rounding.

        Each v_i adds up to 0 exactly: that of its class `spare` is what the others leave.
        """
        d, k = self.shape[1], self.n_classes
        out, sums = np.empty((2 * d, self.lanes)), np.empty((2, self.lanes))
        self._rows.gather_exactly(self.block(values), spare, out, sums.ravel())
        return self.classes(out[:d]), sums[0, :k], self.classes(out[d:]), sums[1, :k]

    def curve(
        self, v: Block, shift: Array, p: Block, codes: NDArray[np.intp], weight: Array | None
    ) -> tuple[Block, Array]:
        """Return Σ_i x_iᵀ A_i (x_i v + shift) and Σ_i A_i (x_i v + shift)."""
        out, sums = np.empty_like(v), np.empty(self.lanes)
        self._rows.curve(v, shift.astype(v.dtype), p, codes, weight, out, sums)
        return out, sums
