"""Dense rows on a device."""

from __future__ import annotations

import math
from typing import Any

import cupy as cp
import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backends.cuda.kernels.compiled import (
    NULL,
    THREADS,
    blocks_for,
    kernel,
    or_null,
    real,
)
from adasdca.backends.cuda.kernels.rows import LINES, ROWS, CudaRows, width_for
from adasdca.backends.cuda.products import EVERY, Few, RowChoice, System
from adasdca.backends.facts import dense_facts

#: Parts of dense rows whose sums are added at last, and the least number of rows in one.
PARTS, LEAST = 4096, 256
#: Most features, the constant one included, of a Gram matrix made in one read of X.
NARROW = 64
#: Rows of a group there that are loaded ahead, in fours.
GROUPS = 2
#: What two products at once are for; `fused.cu` says what each is.
MODES = "LINE", "CURVE", "COMBINE", "SCORES", "SQUARES"
#: Bytes of a row that a thread holds in two products at once.
REGISTERS = 128


class CudaDense(CudaRows):
    """Rows of a dense array of CuPy, in C order."""

    _centred = "centred_dense"

    def __init__(self, values: Any) -> None:
        self.values = values
        self.shape = n, d = values.shape
        self.sizes = float(d)
        self._entries = (values,)
        self._real = real(values.dtype)
        self._height = max(LEAST, -(-n // PARTS))
        self._parts = -(-n // self._height)
        plain = -(-self._height // LINES) + LINES + additions(self._parts)
        self.chain = self.chain_of = plain
        self._width = width_for(d / 8.0)
        self.facts = dense_facts(n, d, values.itemsize)
        capable = int(cp.cuda.Device().compute_capability) >= 80
        self._narrow = capable and d < NARROW
        self._processors = cp.cuda.Device().attributes["MultiProcessorCount"]
        self._fuses = _fused_shape(d, values.itemsize)
        if self._fuses is not None:
            width, per = self._fuses
            groups = THREADS // width
            self._fused_blocks = min((4 if per <= 8 else 2) * self._processors, -(-n // groups))
            rows = -(-n // (self._fused_blocks * groups))
            self.chain = rows + 5 + THREADS // 32 + additions(self._fused_blocks)
            self.chain_of = max(plain, self.chain)

    def _dot(self, x: Any, shift: float, squared: int) -> Any:
        n, d = self.shape
        out = cp.empty(n)
        if self._fuses is not None and not squared:
            line = cp.asarray(x), np.float64(shift), NULL, NULL, np.float64(0.0)
            self._fused("SCORES", line, None, out)
            return out
        _core.check()
        blocks = blocks_for(-(-n // ROWS) * self._width)
        numbers = np.int64(n), np.int32(d), np.int32(self._width), np.int32(squared)
        arguments = self.values, cp.asarray(x), np.float64(shift), out, *numbers
        self._kernel("dense_dot")(blocks, (THREADS,), arguments)
        return out

    def _combine(self, r: Any, squared: int) -> Any:
        if self._fuses is not None and not squared:
            line = NULL, np.float64(0.0), r, NULL, np.float64(0.0)
            return self._fused("COMBINE", line, None, NULL)
        _core.check()
        n, d = self.shape
        out = cp.empty((self._parts, d))
        numbers = np.int64(n), np.int32(d), np.int32(self._height), np.int32(squared)
        grid = self._parts, -(-d // 32)
        self._kernel("dense_combine")(grid, (32, LINES), (self.values, r, out, *numbers))
        return self._sum_parts(out)

    def _fused(self, mode: str, arguments: tuple[Any, ...], passes: Any, image: Any) -> Any:
        """Run two products in one read of X; return Σ_i r_i x_i."""
        _core.check()
        assert self._fuses is not None
        (n, d), (width, per) = self.shape, self._fuses
        out = cp.empty((self._fused_blocks, d))
        defined = ("THREADS=256", "MARGIN=0", "LOGISTIC=0"), (NULL, NULL, *4 * (np.float64(0.0),))
        definitions, rows = defined if passes is None else (passes.definitions, passes.rows())
        modes = [f"{each}={int(each == mode)}" for each in MODES]
        shape = f"WIDTH={width}", f"PER={per}"
        made = kernel("fused", "fused", self._real, *modes, *shape, *definitions)
        numbers = np.int64(n), np.int32(d)
        grid = (self._fused_blocks,)
        made(grid, (THREADS,), (self.values, *arguments, *rows, image, out, *numbers))
        return None if mode == "SCORES" else self._sum_parts(out)

    def _sum_parts(self, parts: Any) -> Any:
        count, d = parts.shape
        out = cp.empty(d)
        arguments = parts, out, np.int32(count), np.int32(d)
        self._kernel("sum_parts")((-(-d // 32),), (32, 32), arguments)
        return out

    def line(
        self, v: Any, shift: float, scores: Any, passes: Any, centre: Any, length: float
    ) -> tuple[Any, Any]:
        """Return x_i·v + shift of all rows, and where it pays Σ_i c_iβ_i x_i at the line's end."""
        if self._fuses is None:
            return super().line(v, shift, scores, passes, centre, length)
        image = cp.empty(self.shape[0])
        line = cp.asarray(v), np.float64(shift), scores, or_null(centre), np.float64(length)
        return image, self._fused("LINE", line, passes, image)

    def begin(self, r: Any, factors: Any) -> tuple[Any, Any]:
        if self._fuses is None:
            return super().begin(r, factors)
        image = cp.empty(self.shape[0])
        line = cp.asarray(factors), np.float64(0.0), r, NULL, np.float64(0.0)
        return self._fused("SQUARES", line, None, image), image

    def curve(self, h: Any, v: Any, shift: float) -> tuple[Any, Any]:
        if self._fuses is None:
            return super().curve(h, v, shift)
        image = cp.empty(self.shape[0])
        line = cp.asarray(v), np.float64(shift), h, NULL, np.float64(0.0)
        return self._fused("CURVE", line, None, image), image

    def iterate(self, system: System, few: Few, wait: int, deadline: float, most: int) -> Any:
        """Solve a system by conjugate gradients, if its products are not made in one read of X."""
        if self._fuses is not None:
            return NotImplemented
        return super().iterate(system, few, wait, deadline, most)

    def gram(self, h: Any, centre: Any, deadline: float, rows: RowChoice = EVERY) -> Any:
        """Return Σ_i h_i z_i z_iᵀ for z = (x − centre, 1); of few features, always of all rows."""
        if not self._narrow:
            return super().gram(h, centre, deadline, rows)
        _core.check()
        n, d = self.shape
        tiles = -(-(d + 1) // 8)
        pairs = [(t, s) for t in range(tiles) for s in range(t + 1)]
        blocks = 4 * self._processors
        parts = cp.empty((blocks, len(pairs), 8, 8))
        made = kernel("gram", "narrow_gram", self._real, f"TILES={tiles}", f"GROUPS={GROUPS}")
        arguments = self.values, h, or_null(centre), parts, np.int64(n), np.int32(d)
        made((blocks,), (128,), arguments)
        sums, out = parts.sum(axis=0).get(), np.zeros((8 * tiles, 8 * tiles))
        for (t, s), tile in zip(pairs, sums, strict=True):
            out[8 * t : 8 * t + 8, 8 * s : 8 * s + 8] = tile
            out[8 * s : 8 * s + 8, 8 * t : 8 * t + 8] = tile.T
        return out[: d + 1, : d + 1]

    def _taken(self, index: Any) -> CudaDense:
        return CudaDense(self.values[index])

    def take_columns(self, features: NDArray[np.intp]) -> CudaDense:
        return CudaDense(cp.ascontiguousarray(self.values[:, cp.asarray(features)]))


def additions(parts: int) -> int:
    """Return how many additions one of so many parts goes through in their sum."""
    return -(-parts // 32) + 5


def _fused_shape(d: int, itemsize: int) -> tuple[int, int] | None:
    """Return threads for a row and columns for a thread, if a row fits into registers."""
    width = min(max(2 ** math.ceil(math.log2(d / 8.0)), 1), 32) if d > 8 else 1
    per = -(-d // width)
    return (width, per) if per * itemsize <= REGISTERS else None
