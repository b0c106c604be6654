"""Rows in the memory of a CUDA device, and the kernels that pass over them.

No sum is left to the order in which threads arrive: a run repeats bit for bit on the same device.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import cache
from typing import Any

import cupy as cp
import numpy as np
from cupyx.scipy import sparse
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backends.base import Facts
from adasdca.backends.cuda.facts import DeviceFacts
from adasdca.backends.cuda.products import Derived, Products, RowChoice, RowSums
from adasdca.backends.cuda.source import kernel_source
from adasdca.problem.losses import Logistic
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: Threads of a block, and blocks that share a sum over the rows.
THREADS, SUMS = 256, 1024
#: Rows that a group of threads has at a time, and lines of a block that adds columns.
ROWS, LINES = 4, 8
#: Entries of a column that are added before their sum is added to others.
SEGMENT = 1024
#: Parts of dense rows whose sums are added at last, and the least number of rows in one.
PARTS, LEAST = 4096, 256
#: Most features, the constant one included, of a Gram matrix made in one read of X.
NARROW = 64
#: Rows of a group there that are loaded ahead, in fours.
GROUPS = 2
#: Columns of a panel of a wider Gram matrix, and the doubles of all its panels at a time.
PANEL, BLOCK = 256, 1 << 29
#: Bytes of a piece of an upload, and threads that copy pieces.
PIECE, COPIERS = 1 << 23, 8
#: Bytes of a row that a thread holds in two products at once.
REGISTERS = 128
NULL = np.uintp(0)


@cache
def kernel(source: str, name: str, *definitions: str) -> Any:
    """Return a kernel, compiled when it is first asked for."""
    return _module(source, *definitions).get_function(name)


@cache
def _module(source: str, *definitions: str) -> Any:
    options = ("--device-as-default-execution-space", *(f"-D{each}" for each in definitions))
    return cp.RawModule(code=kernel_source(source), options=options)


def _real(dtype: Any) -> str:
    return "VALUE_TYPE=" + {"float32": "float", "float64": "double"}[np.dtype(dtype).name]


def _blocks(count: int) -> tuple[int]:
    return (max(1, -(-count // THREADS)),)


def _or_null(array: Any) -> Any:
    return NULL if array is None else array


def upload(array: NDArray[Any]) -> Any:
    """Copy an array to the device."""
    out = cp.empty(array.shape, array.dtype)
    _transfer(np.ascontiguousarray(array).reshape(-1), out.reshape(-1), True)
    return out


def download(array: Any) -> NDArray[Any]:
    """Copy an array from the device."""
    out = np.empty(array.shape, array.dtype)
    _transfer(out.reshape(-1), cp.ascontiguousarray(array).reshape(-1), False)
    return out


def _transfer(host: NDArray[Any], there: Any, up: bool) -> None:
    """Copy in pieces, by several threads, through memory that the system does not move."""
    cp.cuda.get_current_stream().synchronize()
    size, device = PIECE // host.itemsize, cp.cuda.Device()
    copiers = max(1, min(COPIERS, -(-len(host) // size)))

    def copy_pieces(first: int) -> None:
        with device, cp.cuda.Stream(non_blocking=True) as stream:
            pinned = np.frombuffer(cp.cuda.alloc_pinned_memory(PIECE), host.dtype, size)
            for begin in range(first * size, len(host), copiers * size):
                part = slice(begin, begin + size)
                piece = pinned[: len(host[part])]
                if up:
                    piece[...] = host[part]
                    there[part].set(piece, stream=stream)
                else:
                    there[part].get(out=piece, stream=stream, blocking=False)
                stream.synchronize()
                if not up:
                    host[part] = piece

    if copiers == 1:
        copy_pieces(0)
        return
    with ThreadPoolExecutor(copiers) as pool:
        list(pool.map(copy_pieces, range(copiers)))


class CudaPasses:
    """Losses of all rows and their sums.

    Parameters
    ----------
    problem : Problem
        Its loss, targets and weights.
    """

    xp: Any = cp

    def __init__(self, problem: Problem) -> None:
        loss = problem.loss
        self.y = upload(problem.y)
        self.c = None if problem.weight is None else upload(problem.weight)
        self.n = len(self.y)
        numbers = loss.smoothness, loss.dead_zone, *loss.domain
        self._loss = tuple(map(np.float64, numbers))
        margin, logistic = loss.kind == "classification", isinstance(loss, Logistic)
        self.definitions = (
            f"THREADS={THREADS}",
            f"MARGIN={int(margin)}",
            f"LOGISTIC={int(logistic)}",
        )
        self._grid = (min(SUMS, *_blocks(self.n)),)

    def part(self, rows: slice) -> CudaPasses:
        """Return the passes over some of the rows."""
        found = copy(self)
        found.y, found.c = self.y[rows], None if self.c is None else self.c[rows]
        found.n = len(found.y)
        found._grid = (min(SUMS, *_blocks(found.n)),)
        return found

    def _run(self, name: str, count: int, *arguments: Any) -> list[float]:
        """Run a kernel that stores so many sums and a maximum; return them."""
        _core.check()
        parts, out = cp.empty(self._grid[0] * (2 * count + 1)), cp.empty(count + 1)
        self._kernel(name)(self._grid, (THREADS,), (*arguments, parts, np.int64(self.n)))
        finish = (parts, np.int32(self._grid[0]), out)
        self._kernel(f"finish{count}")((1,), (THREADS,), finish)
        return list(out.get().tolist())

    def _kernel(self, name: str) -> Any:
        return kernel("passes", name, *self.definitions)

    def rows(self) -> tuple[Any, ...]:
        """Return what kernels are told of the rows and their loss."""
        return (self.y, _or_null(self.c), *self._loss)

    def derive(self, scores: Any, change: Any, step: float, centre: Any, length: float) -> Derived:
        """Go along a line, if there is one, and derive the loss, kinks rounded over a length."""
        beta, h = cp.empty(self.n), cp.empty(self.n)
        moved = scores if change is None else cp.empty(self.n)
        line = scores, _or_null(change), np.float64(step), _or_null(centre), np.float64(length)
        stay = NULL if change is None else moved
        balance, mass, residual, curved, reach = self._run(
            "derive", 4, *line, *self.rows(), stay, beta, h
        )
        return Derived(moved, beta, h, balance, mass, residual, int(curved), reach)

    def slope(
        self, scores: Any, change: Any, step: float, centre: Any, length: float
    ) -> tuple[float, float, float]:
        """Return Σ cβ dz along a line, the sum of the sizes of its terms, and Σ cφ'' dz²."""
        line = scores, change, np.float64(step), _or_null(centre), np.float64(length)
        value, size, bend, _ = self._run("slope", 3, *line, *self.rows())
        return value, size, bend

    def balance(self, scores: Any, b: float) -> tuple[float, float, float]:
        """Return Σ cβ, Σ c|β| and Σ cφ'' at scores + b."""
        total, mass, bend, _ = self._run("balance", 3, scores, np.float64(b), *self.rows(), NULL)
        return total, mass, bend

    def slopes(self, scores: Any, b: float) -> Any:
        """Return −φ' at scores + b."""
        beta = cp.empty(self.n)
        self._run("balance", 3, scores, np.float64(b), *self.rows(), beta)
        return beta

    def sides(self, duals: Any) -> tuple[float, float]:
        """Return Σ c max(β, 0) and Σ c max(−β, 0)."""
        up, down, _ = self._run("sides", 2, duals, _or_null(self.c))
        return up, down

    def row_sums(
        self, scores: Any, b: float, duals: Any, share: Any, norms: Any, norm_w: float, outer: float
    ) -> RowSums:
        """Sum over the rows; scores are off by norm_w·share + 4ε(outer + |z| + |t|) at most."""
        numbers = np.float64(norm_w), np.float64(outer)
        point = scores, np.float64(b), duals, share, norms, *numbers
        return RowSums(*self._run("certify", 6, *point, *self.rows()))

    def weighted(self, x: Any) -> Any:
        """Return c_i x_i."""
        return x if self.c is None else self.c * x


class _CudaRows:
    """What dense and sparse rows on a device have in common."""

    shape: tuple[int, int]
    _real: str
    _centred: str  #: name of the kernel of weighted rows
    _entries: tuple[Any, ...]  #: what it reads

    def to_device(self, x: Array) -> Any:
        """Return a vector of this process on the device."""
        return upload(x)

    def from_device(self, x: Any) -> Array:
        """Return a vector of the device in this process."""
        return download(x)

    def _dot(self, x: Any, shift: float, squared: int) -> Any:
        raise NotImplementedError

    def _combine(self, r: Any, squared: int) -> Any:
        raise NotImplementedError

    def scores(self, v: Any, shift: float = 0.0) -> Any:
        """Return x_i·v + shift of all rows."""
        return self._dot(v, shift, 0)

    def combine(self, r: Any) -> Any:
        """Return Σ_i r_i x_i."""
        return self._combine(r, 0)

    def squares(self, h: Any) -> Any:
        """Return Σ_i h_i x_ij² for every feature."""
        return self._combine(h, 1)

    def row_squares(self, factors: Array) -> Any:
        """Return Σ_j f_j x_ij² of all rows."""
        return self._dot(factors, 0.0, 1)

    def _kernel(self, name: str) -> Any:
        return kernel("products", name, self._real, f"ROWS={ROWS}", f"LINES={LINES}")

    def _panels(self, h: Any, centre: Any, rows: RowChoice, first: int, count: int) -> list[Any]:
        """Return √h·z of some rows, a panel of columns at a time."""
        n, d = self.shape
        index, key = _or_null(rows.index), np.uint64(rows.key)
        chosen = index, np.int64(rows.size), key, np.int64(first), np.int64(count), np.int64(n)
        grid, out = (min(-(-count // 8), 1 << 16),), []
        for column in range(0, d + 1, PANEL):
            panel = cp.empty((count, min(PANEL, d + 1 - column)))
            where = np.int32(d), np.int32(column), np.int32(panel.shape[1]), panel
            arguments = *self._entries, h, _or_null(centre), *chosen, *where
            self._kernel(self._centred)(grid, (32, 8), arguments)
            out.append(panel)
        return out

    def line(
        self, v: Any, shift: float, scores: Any, passes: Any, centre: Any, length: float
    ) -> tuple[Any, Any]:
        """Return x_i·v + shift of all rows, and no more."""
        return self._dot(v, shift, 0), None

    def curve(self, h: Any, v: Any, shift: float) -> tuple[Any, Any]:
        """Return Σ_i r_i x_i, and r_i = h_i (x_i·v + shift)."""
        image = h * self._dot(v, shift, 0)
        return self._combine(image, 0), image

    def gram(self, h: Any, centre: Any, rows: RowChoice, deadline: float) -> Any:
        """Return Σ_i h_i z_i z_iᵀ for z = (x − centre, 1), by panels; None if time ran out."""
        n, size = self.shape[0], self.shape[1] + 1
        total = cp.zeros((size, size))
        many = len(rows.index) if rows.index is not None else rows.size or n
        most = max(1, BLOCK // size)
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


class CudaDense(_CudaRows):
    """Rows of a dense array on a device.

    Parameters
    ----------
    values : (n, d) array of CuPy
        The rows, in C order.
    """

    _centred = "centred_dense"

    def __init__(self, values: Any) -> None:
        self.values = values
        self.shape = n, d = values.shape
        self.sizes = float(d)
        self._entries = (values,)
        self._real = _real(values.dtype)
        self._height = max(LEAST, -(-n // PARTS))
        self._parts = -(-n // self._height)
        self.chain = -(-self._height // LINES) + LINES + _additions(self._parts)
        self._width = _width(d / 8.0)
        self.facts: Facts = DeviceFacts(
            n, d, n * d, True, values.itemsize, float(d) ** 2, np.full(d, float(n))
        )
        capable = int(cp.cuda.Device().compute_capability) >= 80
        self._narrow = capable and d < NARROW
        self._processors = cp.cuda.Device().attributes["MultiProcessorCount"]
        self._fuses = _fused_shape(d, values.itemsize)
        if self._fuses is not None:
            width, per = self._fuses
            groups = THREADS // width
            self._fused_blocks = min((4 if per <= 8 else 2) * self._processors, -(-n // groups))
            rows = -(-n // (self._fused_blocks * groups))
            self.chain = rows + 5 + THREADS // 32 + _additions(self._fused_blocks)

    def _dot(self, x: Any, shift: float, squared: int) -> Any:
        n, d = self.shape
        out = cp.empty(n)
        if self._fuses is not None and not squared:
            line = cp.asarray(x), np.float64(shift), NULL, NULL, np.float64(0.0)
            self._fused("SCORES", line, None, out)
            return out
        _core.check()
        blocks = _blocks(-(-n // ROWS) * self._width)
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
        modes = [f"{each}={int(each == mode)}" for each in ("LINE", "CURVE", "COMBINE", "SCORES")]
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
        line = cp.asarray(v), np.float64(shift), scores, _or_null(centre), np.float64(length)
        return image, self._fused("LINE", line, passes, image)

    def curve(self, h: Any, v: Any, shift: float) -> tuple[Any, Any]:
        """Return Σ_i r_i x_i, and r_i = h_i (x_i·v + shift)."""
        if self._fuses is None:
            return super().curve(h, v, shift)
        image = cp.empty(self.shape[0])
        line = cp.asarray(v), np.float64(shift), h, NULL, np.float64(0.0)
        return self._fused("CURVE", line, None, image), image

    def gram(self, h: Any, centre: Any, rows: RowChoice, deadline: float) -> Any:
        """Return Σ_i h_i z_i z_iᵀ for z = (x − centre, 1); of few features, always of all rows."""
        if not self._narrow:
            return super().gram(h, centre, rows, deadline)
        _core.check()
        n, d = self.shape
        tiles = -(-(d + 1) // 8)
        pairs = [(t, s) for t in range(tiles) for s in range(t + 1)]
        blocks = 4 * self._processors
        parts = cp.empty((blocks, len(pairs), 8, 8))
        made = kernel("gram", "narrow_gram", self._real, f"TILES={tiles}", f"GROUPS={GROUPS}")
        arguments = self.values, h, _or_null(centre), parts, np.int64(n), np.int32(d)
        made((blocks,), (128,), arguments)
        sums, out = parts.sum(axis=0).get(), np.zeros((8 * tiles, 8 * tiles))
        for (t, s), tile in zip(pairs, sums, strict=True):
            out[8 * t : 8 * t + 8, 8 * s : 8 * s + 8] = tile
            out[8 * s : 8 * s + 8, 8 * t : 8 * t + 8] = tile.T
        return out[: d + 1, : d + 1]

    def take_columns(self, features: NDArray[np.intp]) -> CudaDense:
        """Return the rows with some of the features."""
        return CudaDense(cp.ascontiguousarray(self.values[:, cp.asarray(features)]))


def _additions(parts: int) -> int:
    """Return how many additions one of so many parts goes through in their sum."""
    return -(-parts // 32) + 5


def _width(terms: float) -> int:
    """Return how many threads share a sum, a power of two up to 32."""
    return int(min(max(2 ** round(np.log2(max(terms, 1.0))), 1), 32))


def _fused_shape(d: int, itemsize: int) -> tuple[int, int] | None:
    """Return threads for a row and columns for a thread, if a row fits into registers."""
    width = min(max(2 ** math.ceil(math.log2(d / 8.0)), 1), 32) if d > 8 else 1
    per = -(-d // width)
    return (width, per) if per * itemsize <= REGISTERS else None


class CudaCsr(_CudaRows):
    """Rows of a CSR matrix on a device, with a copy by columns.

    Parameters
    ----------
    matrix : cupyx CSR matrix
        The rows.
    """

    _centred = "centred_sparse"

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.shape = matrix.shape
        self._real = _real(matrix.dtype)
        self._start = matrix.indptr.astype(np.int64)
        self._entries = self._start, matrix.indices, matrix.data
        self.sizes = cp.diff(self._start).astype(np.float64)
        self._width = _width(matrix.nnz / max(matrix.shape[0], 1) / 4.0)
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
        )
        parts = -(-counts // SEGMENT)
        self._first = cp.concatenate([cp.zeros(1, np.int64), cp.cumsum(parts)])
        number = cp.arange(int(self._first[-1]))
        column = cp.searchsorted(self._first[1:], number, side="right")
        begin = ends[column] + SEGMENT * (number - self._first[column])
        self._begin = cp.concatenate([begin, ends[-1:]])
        self._segment_width = _width(matrix.nnz / max(len(number), 1) / 4.0)
        self.chain = -(-SEGMENT // self._segment_width) + int(parts.max()) // 32 + 16

    def _dot(self, x: Any, shift: float, squared: int) -> Any:
        _core.check()
        n = self.shape[0]
        out = cp.empty(n)
        numbers = np.int64(n), np.int32(self._width), np.int32(squared)
        arguments = *self._entries, cp.asarray(x), np.float64(shift), out, *numbers
        self._kernel("segment_dot")(_blocks(n * self._width), (THREADS,), arguments)
        return out

    def _combine(self, r: Any, squared: int) -> Any:
        _core.check()
        d, count = self.shape[1], len(self._begin) - 1
        parts, out = cp.empty(count), cp.empty(d)
        numbers = np.int64(count), np.int32(self._segment_width), np.int32(squared)
        arguments = self._begin, *self._columns, r, np.float64(0.0), parts, *numbers
        blocks = _blocks(count * self._segment_width)
        self._kernel("segment_dot")(blocks, (THREADS,), arguments)
        sums = self._first, parts, out, np.int64(d)
        self._kernel("segment_sum")(_blocks(32 * d), (THREADS,), sums)
        return out

    def take_columns(self, features: NDArray[np.intp]) -> CudaCsr:
        """Return the rows with some of the features."""
        return CudaCsr(self.matrix[:, cp.asarray(features)].tocsr())


def device_matrix(rows: Any) -> Any:
    """Copy rows to the device, unless they are there: an array or a CSR matrix of CuPy."""
    matrix = rows.matrix
    if isinstance(matrix, np.ndarray):
        return upload(matrix)
    if not isinstance(matrix, cp.ndarray) and rows.n_stored >= 2**31:
        raise ValueError(
            f"X has {rows.n_stored} stored values; backend='cuda' takes up to 2**31 - 1: leave out "
            "backend=, or split the rows."
        )
    if isinstance(matrix, (cp.ndarray, sparse.csr_matrix)):
        return matrix
    arrays = (
        upload(matrix.data[: rows.n_stored]),
        upload(matrix.indices[: rows.n_stored].astype(np.int32, copy=False)),
        upload(matrix.indptr.astype(np.int32, copy=False)),
    )
    found = sparse.csr_matrix(arrays, shape=rows.shape)
    found.has_canonical_format = True  # checked rows are sorted and have no duplicates
    return found


def device_products(rows: Any) -> Products:
    """Copy rows to the device, unless they are there."""
    matrix = device_matrix(rows)
    return CudaDense(matrix) if isinstance(matrix, cp.ndarray) else CudaCsr(matrix)


class DeviceMatrix:
    """A symmetric matrix on the device, for those who factorise it.

    Parameters
    ----------
    values : (d, d) array of CuPy
        The matrix.
    """

    def __init__(self, values: Any) -> None:
        self.values = values

    def diagonal(self) -> Array:
        """Return the diagonal."""
        return np.asarray(self.values.diagonal().get())

    def copy(self) -> DeviceMatrix:
        """Return the matrix itself: nobody writes into it."""
        return self

    def cholesky(self, diagonal: float | Array) -> Any:
        """Return a solver with diag(diagonal) added; None if that is not positive definite."""
        import cupyx
        from cupyx.scipy.linalg import solve_triangular

        matrix = self.values.copy()
        where = cp.arange(len(matrix))
        matrix[where, where] += cp.asarray(diagonal)
        try:
            with cupyx.errstate(linalg="raise"):
                factor = cp.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            return None

        def solve(right: Array) -> Array:
            half = solve_triangular(factor, cp.asarray(right), lower=True)
            return np.asarray(solve_triangular(factor, half, trans="T", lower=True).get())

        return solve
