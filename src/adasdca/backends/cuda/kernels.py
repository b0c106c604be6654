"""Products with rows in the memory of a CUDA device, by CuPy and four kernels.

No sum is left to the order in which threads arrive: a run repeats bit for bit on the same device.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import cupy as cp
import numpy as np
from cupyx.scipy import sparse
from numpy.typing import NDArray

from adasdca import _core
from adasdca.problem.data import CsrRows, DenseRows, Rows

Array = NDArray[np.float64]

#: Entries of a column that are added before their sum is added to others.
SEGMENT = 1024
#: Parts of dense rows whose sums are added at last, and the least number of rows in one.
PARTS, LEAST = 4096, 256
#: Doubles of dense rows for a Gram matrix at a time.
BLOCK = 1 << 27
#: Blocks of threads for a sum over the rows.
SUMS = 512
#: Threads of a block, and its lines of columns.
THREADS, LINES = 256, 8

SOURCE = r"""
typedef VALUE_TYPE Real;

// `width` neighbouring threads, a power of two up to 32, add their sums; the first one has it.
__device__ double together(double sum, int width, int lane) {
    const unsigned group = width == 32 ? 0xffffffffu
                         : ((1u << width) - 1u) << ((threadIdx.x % 32) / width * width);
    for (int o = width / 2; o > 0; o /= 2) sum += __shfl_down_sync(group, sum, o, width);
    return sum;
}

__device__ double entry(Real value, int squared) {
    const double v = value;
    return squared ? v * v : v;
}

// Add a number to a sum in twice the digits; no product may be fused into it.
__device__ void add(double& high, double& low, double x) {
    const double sum = __dadd_rn(high, x), back = __dadd_rn(sum, -high);
    low = __dadd_rn(low, __dadd_rn(__dadd_rn(high, -__dadd_rn(sum, -back)), __dadd_rn(x, -back)));
    high = sum;
}

// out[2 p], out[2 p + 1] = sum of a[i] x[i] over the rows of part p in twice the digits.
extern "C" __global__ void exact_dot(const double* a, const double* x, double* out, long long n) {
    __shared__ double highs[THREADS], lows[THREADS];
    double high = 0, low = 0;
    for (long long i = blockIdx.x * (long long)THREADS + threadIdx.x; i < n;
         i += (long long)gridDim.x * THREADS) {
        const double product = a ? __dmul_rn(a[i], x[i]) : x[i];
        if (a) low = __dadd_rn(low, __fma_rn(a[i], x[i], -product));
        add(high, low, product);
    }
    highs[threadIdx.x] = high;
    lows[threadIdx.x] = low;
    for (int o = THREADS / 2; o > 0; o /= 2) {
        __syncthreads();
        if (threadIdx.x < o) {
            add(high, low, highs[threadIdx.x + o]);
            low = __dadd_rn(low, lows[threadIdx.x + o]);
            highs[threadIdx.x] = high;
            lows[threadIdx.x] = low;
        }
    }
    if (threadIdx.x == 0) {
        out[2 * blockIdx.x] = high;
        out[2 * blockIdx.x + 1] = low;
    }
}

// out[s] = sum of values[k] x[index[k]] over start[s] <= k < start[s + 1]; of values[k] without x.
extern "C" __global__ void segment_dot(const long long* start, const int* index, const Real* values,
                                       const double* x, double* out, long long count, int width,
                                       int squared) {
    const long long s = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / width;
    const int lane = threadIdx.x % width;
    if (s >= count) return;
    double sum = 0;
    const long long last = start[s + 1];
    for (long long k = start[s] + lane; k < last; k += width)
        sum += entry(values[k], squared) * (x ? x[index[k]] : 1.0);
    sum = together(sum, width, lane);
    if (lane == 0) out[s] = sum;
}

// out[i] = sum of X[i, j] x[j] over j.
extern "C" __global__ void dense_dot(const Real* X, const double* x, double* out, long long n,
                                     int d, int width, int squared) {
    const long long i = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / width;
    const int lane = threadIdx.x % width;
    if (i >= n) return;
    double sum = 0;
    const Real* row = X + i * d;
    for (int j = lane; j < d; j += width) sum += entry(row[j], squared) * x[j];
    sum = together(sum, width, lane);
    if (lane == 0) out[i] = sum;
}

// out[p, j] = sum of r[i] X[i, j] over the rows of part p.
extern "C" __global__ void dense_combine(const Real* X, const double* r, double* out, long long n,
                                         int d, int height, int squared) {
    __shared__ double lines[LINES][32];
    const int j = blockIdx.y * 32 + threadIdx.x;
    const long long first = blockIdx.x * (long long)height;
    const long long last = first + height < n ? first + height : n;
    double sum = 0;
    if (j < d) {
#pragma unroll 4
        for (long long i = first + threadIdx.y; i < last; i += LINES)
            sum += entry(X[i * d + j], squared) * r[i];
    }
    lines[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || j >= d) return;
    for (int line = 1; line < LINES; ++line) sum += lines[line][threadIdx.x];
    out[blockIdx.x * (long long)d + j] = sum;
}
"""


@cache
def kernel(name: str, dtype: str) -> Any:
    """Return a kernel for values of a type, compiled when it is first asked for."""
    number = {"float32": "float", "float64": "double"}[dtype]
    options = (f"-DVALUE_TYPE={number}", f"-DLINES={LINES}", f"-DTHREADS={THREADS}")
    return cp.RawModule(code=SOURCE, options=options).get_function(name)


def exact_dot(a: Any, x: Any) -> float:
    """Return Σ_i a_i x_i in twice the digits; a may be a number."""
    blocks = min(SUMS, -(-len(x) // THREADS))
    out, weighted = cp.empty(2 * blocks), isinstance(a, cp.ndarray)
    x = cp.ascontiguousarray(x, dtype=np.float64)
    arguments = (a if weighted else np.uintp(0), x, out, np.int64(len(x)))
    kernel("exact_dot", "float64")((blocks,), (THREADS,), arguments)
    return math.fsum(out.get()) * (1.0 if weighted else float(a))


def _width(mean: float) -> int:
    """Return how many threads share a sum of so many terms: about four terms each."""
    return int(min(max(2 ** round(np.log2(max(mean / 4.0, 1.0))), 1), 32))


class CudaDense:
    """Rows of a dense array on a device.

    Parameters
    ----------
    values : (n, d) array
        The rows, in C order.
    """

    xp: Any = cp

    def __init__(self, values: Any) -> None:
        self.values = cp.asarray(values, order="C")
        self.shape = n, d = self.values.shape
        self.sizes = float(d)
        self.block = max(1, BLOCK // d)
        self._height = max(LEAST, -(-n // PARTS))
        self._parts = -(-n // self._height)
        self.chain = -(-self._height // LINES) + LINES + self._parts
        self._width = _width(d)

    def _dot(self, x: Array, squared: int) -> Any:
        _core.check()
        n, d = self.shape
        out = cp.empty(n)
        blocks = -(-n * self._width // THREADS)
        arguments = (self.values, cp.asarray(x), out, np.int64(n), np.int32(d))
        shape = np.int32(self._width), np.int32(squared)
        kernel("dense_dot", self.values.dtype.name)((blocks,), (THREADS,), (*arguments, *shape))
        return out

    def _combine(self, r: Any, squared: int) -> Array:
        _core.check()
        n, d = self.shape
        out = cp.empty((self._parts, d))
        arguments = (self.values, cp.ascontiguousarray(r), out, np.int64(n), np.int32(d))
        shape = np.int32(self._height), np.int32(squared)
        kernel("dense_combine", self.values.dtype.name)(
            (self._parts, -(-d // 32)), (32, LINES), (*arguments, *shape)
        )
        return np.asarray(out.sum(axis=0).get())

    def dot(self, a: Any, x: Any) -> float:
        """Return Σ_i a_i x_i in twice the digits."""
        return exact_dot(a, x)

    def dense(self, part: Any) -> Any:
        """Return some rows as doubles."""
        return self.values[part].astype(np.float64)

    def scores(self, v: Array) -> Any:
        """Return x_i·v of all rows."""
        return self._dot(v, 0)

    def combine(self, r: Any) -> Array:
        """Return Σ_i r_i x_i."""
        return self._combine(r, 0)

    def squares(self, h: Any) -> Array:
        """Return Σ_i h_i x_ij² for every feature."""
        return self._combine(h, 1)

    def row_squares(self, factors: Array) -> Any:
        """Return Σ_j f_j x_ij² of all rows."""
        return self._dot(factors, 1)

    def take_columns(self, features: NDArray[np.intp]) -> CudaDense:
        """Return the rows with some of the features."""
        return CudaDense(cp.ascontiguousarray(self.values[:, cp.asarray(features)]))


class _Segments:
    """Sums of neighbouring entries, a group of threads to each.

    Parameters
    ----------
    start : (count + 1,) array
        Where they begin.
    index, values : (m,) array
        Entries; the index may be None.
    """

    def __init__(self, start: Any, index: Any, values: Any) -> None:
        self.start, self.index, self.values = start, index, values
        self.count = len(start) - 1
        self.width = _width(len(values) / max(self.count, 1))

    def dot(self, x: Any, squared: int = 0, values: Any = None) -> Any:
        """Return the sums of entries times x at their indices."""
        values = self.values if values is None else values
        out = cp.empty(self.count)
        blocks = max(1, -(-self.count * self.width // THREADS))
        null = np.uintp(0)
        arguments = (
            self.start,
            null if x is None else self.index,
            values,
            null if x is None else x,
        )
        shape = np.int64(self.count), np.int32(self.width), np.int32(squared)
        kernel("segment_dot", values.dtype.name)((blocks,), (THREADS,), (*arguments, out, *shape))
        return out


class CudaCsr:
    """Rows of a CSR matrix on a device, with a copy by columns.

    Parameters
    ----------
    matrix : cupyx CSR matrix
        The rows.
    """

    xp: Any = cp

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.shape = _, d = matrix.shape
        start = matrix.indptr.astype(np.int64)
        self.sizes = cp.diff(start).astype(np.float64)
        self.block = max(1, BLOCK // d)
        self._rows = _Segments(start, matrix.indices, matrix.data)
        columns = matrix.tocsc()
        ends = columns.indptr.astype(np.int64)
        counts = -(-cp.diff(ends) // SEGMENT)
        first = cp.concatenate([cp.zeros(1, np.int64), cp.cumsum(counts)])
        number = cp.arange(int(first[-1]))
        column = cp.searchsorted(first[1:], number, side="right")
        begin = ends[column] + SEGMENT * (number - first[column])
        begin = cp.concatenate([begin, ends[-1:]])
        self._segments = _Segments(begin, columns.indices, columns.data)
        self._columns = _Segments(first, None, number)
        most = int(counts.max()) if d else 0
        self.chain = -(-SEGMENT // self._segments.width) + -(-most // self._columns.width) + 12

    def _combine(self, r: Any, squared: int) -> Array:
        _core.check()
        if not self._segments.count:
            return np.zeros(self.shape[1])
        parts = self._segments.dot(cp.ascontiguousarray(r), squared)
        return np.asarray(self._columns.dot(None, values=parts).get())

    def dot(self, a: Any, x: Any) -> float:
        """Return Σ_i a_i x_i in twice the digits."""
        return exact_dot(a, x)

    def dense(self, part: Any) -> Any:
        """Return some rows as a dense array of doubles."""
        return self.matrix[part].toarray().astype(np.float64)

    def scores(self, v: Array) -> Any:
        """Return x_i·v of all rows."""
        _core.check()
        return self._rows.dot(cp.asarray(v))

    def combine(self, r: Any) -> Array:
        """Return Σ_i r_i x_i."""
        return self._combine(r, 0)

    def squares(self, h: Any) -> Array:
        """Return Σ_i h_i x_ij² for every feature."""
        return self._combine(h, 1)

    def row_squares(self, factors: Array) -> Any:
        """Return Σ_j f_j x_ij² of all rows."""
        _core.check()
        return self._rows.dot(cp.asarray(factors), 1)

    def take_columns(self, features: NDArray[np.intp]) -> CudaCsr:
        """Return the rows with some of the features."""
        return CudaCsr(self.matrix[:, cp.asarray(features)].tocsr())


def device_products(rows: Rows) -> CudaDense | CudaCsr:
    """Copy rows to the device."""
    if isinstance(rows, DenseRows):
        return CudaDense(rows.values)
    assert isinstance(rows, CsrRows)
    if rows.n_stored >= 2**31:
        raise ValueError(
            f"X has {rows.n_stored} stored values; backend='cuda' takes up to 2**31 - 1: leave out "
            "backend=, or split the rows."
        )
    arrays = (
        cp.asarray(rows.values[: rows.n_stored]),
        cp.asarray(rows.columns[: rows.n_stored].astype(np.int32, copy=False)),
        cp.asarray(rows.start.astype(np.int32)),
    )
    return CudaCsr(sparse.csr_matrix(arrays, shape=rows.shape))
