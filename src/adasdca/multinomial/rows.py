"""What a multinomial model asks of its rows, and the rows of this process.

Arrays with a number for every row are where the rows are; those with one for every feature come
back to this process, but for blocks, the vectors of conjugate gradients.
"""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk, ssyrk

from adasdca.multinomial.blocks import Block, ClassBlocks, Layout
from adasdca.problem.data import Rows
from adasdca.problem.products import RowProducts

Array = NDArray[np.float64]


class ClassRows(Protocol):
    """Rows as factors of arrays with a class in each row."""

    xp: Any  #: NumPy, or the one like it whose arrays are where the rows are.
    #: The shape of X, and the number of values that it holds.
    shape: tuple[int, int]
    stored: int
    passes: int  #: Passes over the rows so far.
    #: The most additions that a score, and an entry of `combined`, goes through.
    depth: Any
    chain: float
    height: int  #: Rows to be taken at a time.
    single: bool  #: Whether single precision pays.
    layout: Layout  #: Of blocks.
    #: (d,), the part of the centre that is not taken from the rows in products of blocks.
    offset: Array

    def centre_at(self, centre: Array) -> None:
        """Take rows less this in products of blocks, and in matrices."""

    def norms(self) -> Any:
        """Return the Euclidean lengths of the rows."""

    def column_sums(self, weight: Any) -> Array:
        """Return Σ_i c_i x_i."""

    def scores(self, coef: Array) -> Any:
        """Return X Wᵀ, transposed."""

    def combined(self, values: Any) -> Array:
        """Return Σ_i v_i x_iᵀ."""

    def reach(self, travel: Array) -> Any:
        """Return Σ_j |x_ij| t_j for every row, or a little more."""

    def sum(self, values: Any, weight: Any) -> float:
        """Return Σ_i c_i v_i."""

    def sums(self, values: Any) -> Array:
        """Return Σ_i v_i, a number for each class."""

    def as_block(self, p: Any, real: Any) -> Any:
        """Return probabilities in the form that `curve` takes."""

    def curve(self, v: Block, shift: Block, p: Any, codes: Any, weight: Any) -> tuple[Block, Block]:
        """Return Σ_i z_iᵀ A_i s_i and Σ_i A_i s_i, s_i = z_i v + shift, z = x + offset − centre."""

    def gather(self, values: Any, real: Any, squared: bool = False) -> Block:
        """Return Σ_i z_iᵀ v_i, or that with the squares of the entries of z_i."""

    def sample_gram(self, weight: Any, size: int, deadline: float) -> Any:
        """Return Σ_i c_i (x_i − centre)(x_i − centre)ᵀ of `size` rows; None if time ran out."""

    def formed(self, p: Any, rest: Any, weight: Any, free: bool, deadline: float) -> Array | None:
        """Return the lower triangle of the matrix of a step; None if time ran out.

        Unknowns are the features of the first class, its intercept if it is free, and so on; `rest`
        is c p (1 − p).
        """

    def formed_blocks(self, rest: Any, free: bool, deadline: float) -> Array | None:
        """Return the lower triangles of its blocks of a class each; None if time ran out."""


class Exact(NamedTuple):
    """Σ_i v_i x_iᵀ and Σ_i v_i, and what of each is lost by rounding them to doubles."""

    combined: Array
    sums: Array
    lost: Array
    lost_of_sums: Array

    @classmethod
    def of(cls, one: Exact, other: Exact) -> Exact:
        """Add the sums over some rows to those over others."""
        wholes, rests = [], []
        for a, b, rest, more in zip(one[:2], other[:2], one[2:], other[2:], strict=True):
            whole = a + b
            back = whole - a
            rest = rest + more + ((a - (whole - back)) + (b - back))
            wholes.append(whole + rest)
            rests.append(rest - (wholes[-1] - whole))
        return cls(*wholes, *rests)


class ExactRows(Protocol):
    """Rows whose sums can be taken in twice the digits."""

    def combined_exactly(self, values: Any, spare: Any) -> Exact:
        """Return the sums of v_i, whose class `spare` has what others leave of 0."""


class LocalRows(RowProducts):
    """The `ClassRows` of this process."""

    xp: Any = np
    #: Their arrays fit a cache, and a solve can be left between two blocks.
    height = 1 << 14
    single = True

    def __init__(self, data: Rows, n_classes: int, threads: int = 1) -> None:
        super().__init__(data.matrix)
        self._data, self._n_classes, self._threads = data, n_classes, threads
        n, d = self.shape
        # BLAS runs one chain for a score, as long as the row where this is short.
        self.depth: Any = float(d)
        self.chain = float(n)
        self._by_core = not data.dense
        self._link = max(64, math.isqrt(n))
        if self._by_core:
            self.depth = data.lengths() + 1.0
        else:
            self.chain = min(n, self._link + n / self._link + n / self._height + 2.0)

    def centre_at(self, centre: Array) -> None:
        self._centre = centre
        self._in_blocks = ClassBlocks(self._data, self._n_classes, centre, self._threads)
        self.layout: Layout = self._in_blocks
        self.offset = self._in_blocks.offset

    def column_sums(self, weight: Array | None) -> Array:
        ones = np.ones(self.shape[0]) if weight is None else weight
        return np.asarray(self.transposed(ones[:, None])[0])

    def scores(self, coef: Array) -> Array:
        if not self._by_core:
            return np.ascontiguousarray(self.times(coef).T)
        self.passes += 1
        return self._in_blocks.times(coef)

    def combined(self, values: Array) -> Array:
        if not self._by_core:
            # Sums of sums: the bound of their rounding is that of the longest chain.
            out = np.zeros((len(values), self.shape[1]))
            for part, rows in self._blocks():
                for first in range(0, len(rows), self._link):
                    link = slice(first, first + self._link)
                    out += values[:, part][:, link] @ rows[link]
            return out
        self.passes += 1
        return self._in_blocks.classes(self._in_blocks.gather(values))

    def combined_exactly(self, values: Array, spare: NDArray[np.intp]) -> Exact:
        self.passes += 1
        return Exact(*self._in_blocks.gather_exactly(values, spare))

    def reach(self, travel: Array) -> Array:
        return np.concatenate([abs(rows) @ travel for _, rows in self._blocks()])

    def sum(self, values: Array, weight: Array | None) -> float:
        return float(values.sum() if weight is None else weight @ values)

    def sums(self, values: Array) -> Array:
        return np.asarray(values.sum(axis=1))

    def as_block(self, p: Array, real: Any) -> Block:
        """Return probabilities as a block."""
        return self._in_blocks.block(p, real)

    def curve(
        self, v: Block, shift: Block, p: Block, codes: Any, weight: Any
    ) -> tuple[Block, Block]:
        self.passes += 1
        return self._in_blocks.curve(v, shift, p, codes, weight)

    def gather(self, values: Array, real: Any, squared: bool = False) -> Block:
        self.passes += 1
        return self._in_blocks.gather(values, real, squared)

    def sample_gram(self, weight: Array | None, size: int, deadline: float) -> Any:
        n, d = self.shape
        gram = np.zeros((d, d), order="F", dtype=np.float32)
        rows: RowProducts = self
        root = np.ones(n) if weight is None else np.sqrt(weight)
        if size < n:
            chosen = np.sort(np.random.default_rng(0).permutation(n)[:size])
            rows, root = self.some(chosen), math.sqrt(n / size) * root[chosen]
        for part, block in rows.dense_blocks(d):
            if time.perf_counter() >= deadline:
                return None
            z = (block - self._centre) * root[part, None]
            gram = ssyrk(1.0, z.astype(np.float32).T, beta=1.0, c=gram, overwrite_c=1)
        return gram.T

    def formed(
        self, p: Array, rest: Array, weight: Array | None, free: bool, deadline: float
    ) -> Array | None:
        (k, n), d = p.shape, self.shape[1]
        wide, root = d + free, np.ones(n) if weight is None else np.sqrt(weight)
        cross = np.zeros((k * wide, k * wide), order="F")
        # (By centred rows like the rest: what is left of their sums is less than rounding.)
        blocks = self._blocks_of_dense(rest, wide, deadline)
        if blocks is None:
            return None
        for part, rows in self.dense_blocks(k * wide):
            if time.perf_counter() >= deadline:
                return None
            z = np.ones((len(rows), wide))
            np.subtract(rows, self._centre, out=z[:, :d])
            weighted = (p[:, part] * root[part]).T[:, :, None] * z[:, None, :]
            cross = dsyrk(-1.0, weighted.reshape(len(rows), -1).T, beta=1.0, c=cross, overwrite_c=1)
        # The upper triangle in Fortran order is the lower one in C order.
        matrix: Array = np.asarray(cross).T
        for a in range(k):
            own = slice(a * wide, (a + 1) * wide)
            matrix[own, own] = blocks[a]
        return matrix

    def formed_blocks(self, rest: Array, free: bool, deadline: float) -> Array | None:
        form = self._blocks_of_sparse if self._sparse else self._blocks_of_dense
        return form(rest, self.shape[1] + free, deadline)

    def _blocks_of_dense(self, rest: Array, wide: int, deadline: float) -> Array | None:
        k, d = len(rest), self.shape[1]
        blocks = np.zeros((k, wide, wide))
        for part, rows in self.dense_blocks(wide):
            if time.perf_counter() >= deadline:
                return None
            z = np.ones((len(rows), wide))
            np.subtract(rows, self._centre, out=z[:, :d])
            for a in range(k):
                blocks[a] += z.T @ (rest[a, part, None] * z)
        return blocks

    def _blocks_of_sparse(self, rest: Array, wide: int, deadline: float) -> Array | None:
        self.passes += 1
        (n, d), m = self.shape, self._centre
        blocks = np.zeros((len(rest), d + 1, d + 1))
        # Pieces whose products take about as long as it takes to add them.
        height = max(1, int(4.0 * (d + 1.0) ** 2 * n * n / max(self.stored, 1) ** 2))
        for first in range(0, n, height):
            part = slice(first, first + height)
            piece = RowProducts(self._X[part])
            for block, h in zip(blocks, rest[:, part], strict=True):
                if time.perf_counter() >= deadline:
                    return None
                block += piece.gram(h)
        for block in blocks:
            column = block[:d, d].copy()
            moved = column - block[d, d] * m
            block[:d, :d] -= np.outer(m, moved) + np.outer(column, m)
            block[:d, d] = block[d, :d] = moved
        return blocks[:, :wide, :wide]
