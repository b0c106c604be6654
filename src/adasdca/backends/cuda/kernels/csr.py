"""Sparse rows on a device."""

from __future__ import annotations

import math
from typing import Any

import cupy as cp
import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backends.cuda.kernels.compiled import NULL, THREADS, blocks_for, real
from adasdca.backends.cuda.kernels.epochs import CudaBatches
from adasdca.backends.cuda.kernels.rows import CudaRows, width_for
from adasdca.backends.cuda.products import MiniBatches
from adasdca.backends.facts import KnownFacts

#: Entries of a column that a thread adds, before the sums of all its threads are added.
ENTRIES = 32
#: Numbers from which on a vector is long: about an eighth of the cache that all entries go through.
LONG = 1 << 20


class CudaCsr(CudaRows):
    """Rows of a CSR matrix of cupyx, with a copy by columns.

    Those that are not `whole` are there for products only.
    """

    _centred = "centred_sparse"

    def __init__(self, matrix: Any, whole: bool = True) -> None:
        self.matrix = matrix
        self.shape = n, d = matrix.shape
        self._real = real(matrix.dtype)
        self._start = matrix.indptr.astype(np.int64)
        self._entries = self._start, matrix.indices, matrix.data
        self._width = width_for(matrix.nnz / max(n, 1) / 3.0)
        columns = matrix.tocsc()
        self._columns = columns.indices, columns.data
        ends = columns.indptr.astype(np.int64)
        counts = cp.diff(ends)
        self._segment_width = width_for(matrix.nnz / max(d, 1) / 4.0)
        segment = ENTRIES * self._segment_width
        self._lay_out(ends, cp.maximum(-(-counts // segment), 1), segment)
        if not whole:
            return
        self.sizes = cp.diff(self._start).astype(np.float64)
        more = int(cp.diff(self._first).max()) // 32 + 16
        self.chain, self.chain_of = ENTRIES + more, segment + more
        self.facts = KnownFacts(
            n,
            d,
            matrix.nnz,
            False,
            matrix.dtype.itemsize + 4,
            float((self.sizes**2).mean()),
            counts.get().astype(np.float64),
            ascends=True,
        )

    def _lay_out(self, ends: Any, parts: Any, segment: int) -> None:
        """Cut columns into so many segments; sums of those that are cut have a place of their own.

        Sums of segments are out[slot], and those from out[d] on are added up for the columns `cut`.
        """
        d = len(parts)
        self._first = cp.concatenate([cp.zeros(1, np.int64), cp.cumsum(parts)])
        number = cp.arange(int(self._first[-1]))
        column = cp.searchsorted(self._first[1:], number, side="right")
        begin = ends[column] + segment * (number - self._first[column])
        self._begin = cp.concatenate([begin, ends[-1:]])
        among = parts[column] > 1
        places = d - 1 + cp.cumsum(among)
        self._slot = cp.where(among, places, column).astype(np.int32)
        cut = cp.flatnonzero(parts > 1)
        self._cut = cut.astype(np.int32)
        self._cut_first = cp.concatenate([cp.zeros(1, np.int64), cp.cumsum(parts[cut])])
        self._places = len(number) + len(cut)

    def _run(
        self,
        start: Any,
        entries: tuple[Any, ...],
        x: Any,
        shift: float,
        out: Any,
        slot: Any,
        width: int,
        squared: int,
    ) -> None:
        """Multiply segments of entries by the numbers of x that belong to them."""
        _core.check()
        count = len(start) - 1
        numbers = np.int64(count), np.int32(width), np.int32(squared), np.int32(len(x) >= LONG)
        arguments = start, *entries, x, np.float64(shift), out, slot, *numbers
        self._kernel("segment_dot")(blocks_for(count * width), (THREADS,), arguments)

    def _dot(self, x: Any, shift: float, squared: int) -> Any:
        start, *entries = self._entries
        out, x = cp.empty(self.shape[0]), cp.asarray(x)
        self._run(start, tuple(entries), x, shift, out, NULL, self._width, squared)
        return out

    def _combine(self, r: Any, squared: int) -> Any:
        d, out = self.shape[1], cp.empty(self._places)
        width = self._segment_width
        self._run(self._begin, self._columns, r, 0.0, out, self._slot, width, squared)
        if len(self._cut):
            sums = self._cut_first, out[d:], out, self._cut, np.int64(len(self._cut))
            self._kernel("segment_sum")(blocks_for(32 * len(self._cut)), (THREADS,), sums)
        return out[:d]

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
            sums = self._first, part, line, NULL, np.int64(d)
            self._kernel("segment_sum")(blocks_for(32 * d), (THREADS,), sums)
        return out

    def batches(self, point: MiniBatches, passes: Any, height: int) -> CudaBatches:
        return CudaBatches(self._entries, self._width, passes, point, height)

    def _taken(self, index: Any) -> CudaCsr:
        return CudaCsr(self.matrix[index], whole=False)

    def take_columns(self, features: NDArray[np.intp]) -> CudaCsr:
        return CudaCsr(self.matrix[:, cp.asarray(features)].tocsr())
