"""Sparse rows on a device."""

from __future__ import annotations

import math
from typing import Any

import cupy as cp
import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backends.base import Facts
from adasdca.backends.cuda.facts import DeviceFacts
from adasdca.backends.cuda.kernels.compiled import THREADS, blocks_for, real
from adasdca.backends.cuda.kernels.epochs import CudaBatches
from adasdca.backends.cuda.kernels.rows import CudaRows, width_for
from adasdca.backends.cuda.products import MiniBatches

#: Entries of a column that are added before their sum is added to others.
SEGMENT = 1024


class CudaCsr(CudaRows):
    """Rows of a CSR matrix of cupyx, with a copy by columns."""

    _centred = "centred_sparse"

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.shape = matrix.shape
        self._real = real(matrix.dtype)
        self._start = matrix.indptr.astype(np.int64)
        self._entries = self._start, matrix.indices, matrix.data
        self.sizes = cp.diff(self._start).astype(np.float64)
        self._width = width_for(matrix.nnz / max(matrix.shape[0], 1) / 3.0)
        columns = matrix.tocsc()
        self._columns = columns.indices, columns.data
        ends = columns.indptr.astype(np.int64)
        counts = cp.diff(ends)
        n, d = matrix.shape
        self.facts: Facts = DeviceFacts(
            n,
            d,
            matrix.nnz,
            False,
            matrix.dtype.itemsize + 4,
            float((self.sizes**2).mean()),
            counts.get().astype(np.float64),
            ascends=True,
        )
        parts = -(-counts // SEGMENT)
        self._first = cp.concatenate([cp.zeros(1, np.int64), cp.cumsum(parts)])
        number = cp.arange(int(self._first[-1]))
        column = cp.searchsorted(self._first[1:], number, side="right")
        begin = ends[column] + SEGMENT * (number - self._first[column])
        self._begin = cp.concatenate([begin, ends[-1:]])
        self._segment_width = width_for(matrix.nnz / max(len(number), 1) / 4.0)
        more = int(parts.max()) // 32 + 16
        self.chain, self.chain_of = -(-SEGMENT // self._segment_width) + more, SEGMENT + more

    def _dot(self, x: Any, shift: float, squared: int) -> Any:
        _core.check()
        n = self.shape[0]
        out = cp.empty(n)
        numbers = np.int64(n), np.int32(self._width), np.int32(squared)
        arguments = *self._entries, cp.asarray(x), np.float64(shift), out, *numbers
        self._kernel("segment_dot")(blocks_for(n * self._width), (THREADS,), arguments)
        return out

    def _combine(self, r: Any, squared: int) -> Any:
        _core.check()
        d, count = self.shape[1], len(self._begin) - 1
        parts, out = cp.empty(count), cp.empty(d)
        numbers = np.int64(count), np.int32(self._segment_width), np.int32(squared)
        arguments = self._begin, *self._columns, r, np.float64(0.0), parts, *numbers
        blocks = blocks_for(count * self._segment_width)
        self._kernel("segment_dot")(blocks, (THREADS,), arguments)
        sums = self._first, parts, out, np.int64(d)
        self._kernel("segment_sum")(blocks_for(32 * d), (THREADS,), sums)
        return out

    def _dots(self, start: Any, index: Any, values: Any, x: Any, squared: bool) -> Any:
        """Return sums of segments of entries with rows of x, a column each."""
        _core.check()
        count, k = len(start) - 1, x.shape[1]
        width, out = int(min(2 ** math.ceil(math.log2(max(k, 1))), 32)), cp.empty((k, count))
        numbers = np.int64(count), np.int32(k), np.int32(width), np.int32(squared)
        arguments = start, index, values, x, out, *numbers
        self._kernel("segment_dots")(blocks_for(count * width), (THREADS,), arguments)
        return out

    def scores_of(self, v: Any) -> Any:
        start, index, values = self._entries
        return self._dots(start, index, values, cp.ascontiguousarray(cp.asarray(v).T), False)

    def combine_of(self, r: Any, squared: bool = False) -> Any:
        d, out = self.shape[1], cp.empty((len(r), self.shape[1]))
        index, values = self._columns
        parts = self._dots(self._begin, index, values, cp.ascontiguousarray(r.T), squared)
        for part, line in zip(parts, out, strict=True):
            sums = self._first, part, line, np.int64(d)
            self._kernel("segment_sum")(blocks_for(32 * d), (THREADS,), sums)
        return out

    def batches(self, point: MiniBatches, passes: Any, height: int) -> CudaBatches:
        """Return a function that visits rows in batches, and returns the intercept."""
        return CudaBatches(self._entries, self._width, passes, point, height)

    def take_rows(self, index: Any) -> CudaCsr:
        return CudaCsr(self.matrix[index])

    def take_columns(self, features: NDArray[np.intp]) -> CudaCsr:
        return CudaCsr(self.matrix[:, cp.asarray(features)].tocsr())
