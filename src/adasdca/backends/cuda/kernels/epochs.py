"""Mini-batches of dual coordinate ascent on sparse rows of a device."""

from __future__ import annotations

import math
from typing import Any

import cupy as cp
import numpy as np

from adasdca import _core
from adasdca.backends.cuda.epochs import MOST
from adasdca.backends.cuda.kernels.compiled import THREADS, kernel, real
from adasdca.backends.cuda.products import MiniBatches

#: Bits of an integer that the largest number of u may take.
BITS = 61


class CudaBatches:
    """Takes the steps of mini-batches, in the integers that u is kept in.

    Parameters
    ----------
    entries : (start, index, values)
        The sparse rows.
    width : int
        Threads that share a row, a power of two up to 32.
    passes : CudaPasses
        The loss, targets and weights of the rows.
    point : MiniBatches
        Where to begin.
    height : int
        Most rows of a batch.
    """

    def __init__(
        self, entries: tuple[Any, ...], width: int, passes: Any, point: MiniBatches, height: int
    ) -> None:
        self._point, self._width, self._height = point, width, height
        self._rows = *entries, *passes.rows(), point.curvature
        unit = 2.0 ** (math.ceil(math.log2(max(point.largest, 1e-290))) - BITS)
        self._unit = unit
        self._u = cp.rint(point.u / unit).astype(np.int64)
        self._state = cp.array([point.b, point.balance])
        self._scores, self._arrived = cp.empty(height), cp.zeros(1, np.uint32)
        definitions = *passes.definitions, real(entries[2].dtype), f"HEIGHT={MOST}"
        self._kernel = kernel("epochs", "ascend", *definitions, together=True)
        processors = cp.cuda.Device().attributes["MultiProcessorCount"]
        self._blocks = max(1, min(height * width // THREADS, processors))

    def __call__(self, order: Any) -> float:
        """Visit these rows; return the intercept."""
        _core.check()
        point = self._point
        self._arrived.fill(0)
        numbers = np.float64(point.mu), np.float64(self._unit), np.int32(point.free)
        arguments = (
            *self._rows,
            order,
            np.int64(len(order)),
            np.int32(self._height),
            *numbers,
            np.int32(self._width),
            self._state,
            point.beta,
            self._u,
            self._scores,
            self._arrived,
        )
        self._kernel((self._blocks,), (THREADS,), arguments)
        return float(self._state[0])
