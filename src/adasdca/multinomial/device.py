"""Rows of a multinomial model on a CUDA device, or wherever their products are made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.cuda.products import Products, RowChoice, Told
from adasdca.multinomial.blocks import Block, Layout
from adasdca.multinomial.margins import curvature_times
from adasdca.multinomial.rows import ClassRows, LocalRows
from adasdca.problem.data import Rows
from adasdca.problem.device_rows import to_host

Array = NDArray[np.float64]
#: Makes rows of checked ones, for a number of classes.
RowMaker = Callable[[Rows, int], ClassRows]


def row_maker(backend: str | RowMaker | None, threads: int = 1) -> RowMaker:
    """Return what makes the rows of a backend, given by name or as it is.

    Threads are for those of this process.
    """
    if backend is None:
        return partial(LocalRows, threads=threads)
    if callable(backend):
        return backend
    if backend != "cuda":
        raise ValueError(
            f"backend = {backend!r} is unknown; choose 'cuda', or leave it out for this process."
        )
    from adasdca.backends.cuda.device import class_products, short_of

    def made(rows: Rows, n_classes: int) -> ClassRows:
        return DeviceRows(class_products(rows, n_classes), n_classes, partial(short_of, rows))

    return made


class DeviceRows:
    """`ClassRows` by `Products`; every vector of n numbers stays where these are."""

    #: Kernels take all rows at once; this bounds what they write on the way.
    height = 1 << 24
    single = False

    def __init__(
        self,
        products: Products,
        n_classes: int,
        told: Told | None = None,
    ) -> None:
        self._products, self._told, self.xp = products, told, products.xp
        self.shape, self.stored = products.shape, products.facts.stored
        self.passes = 0
        self.depth, self.chain = products.sizes, float(products.chain_of)
        self.layout = Layout(n_classes, n_classes, self.xp)

    def short_of_memory(self, error: MemoryError) -> MemoryError:
        """Return an error that says what to do where the device has too little memory."""
        return error if self._told is None else self._told(error)

    def centre_at(self, centre: Array) -> None:
        """Take rows less this in matrices; products of blocks are of the rows as they are."""
        self.offset = centre

    def norms(self) -> Any:
        self.passes += 1
        return self.xp.sqrt(self._products.row_squares(np.ones(self.shape[1])))

    def column_sums(self, weight: Any) -> Array:
        self.passes += 1
        ones = self.xp.ones(self.shape[0]) if weight is None else weight
        return np.asarray(to_host(self._products.combine(ones)))

    def scores(self, coef: Array) -> Any:
        self.passes += 1
        return self._products.scores_of(self.xp.asarray(coef))

    def combined(self, values: Any) -> Array:
        self.passes += 1
        return np.asarray(to_host(self._products.combine_of(values)))

    def reach(self, travel: Array) -> Any:
        self.passes += 1
        return self.xp.sqrt(self._products.sizes * self._products.row_squares(travel**2))

    def sum(self, values: Any, weight: Any) -> float:
        (found,) = self._products.sums(lambda v: (v if weight is None else weight * v,), values)
        return found

    def sums(self, values: Any) -> Array:
        return np.array(self._products.sums(lambda *each: each, *values))

    def as_block(self, p: Any, real: Any) -> Any:
        """Return probabilities as they are."""
        return p

    def curve(self, v: Block, shift: Block, p: Any, codes: Any, weight: Any) -> tuple[Block, Block]:
        """Return Σ_i x_iᵀ A_i (x_i v + shift) and Σ_i A_i (x_i v + shift)."""
        self.passes += 1
        scores = self._products.scores_of(self.xp.ascontiguousarray(v.T))
        scores += shift[:, None]
        image = curvature_times(self.xp, scores, p, codes, weight)
        combined = self._products.combine_of(image)
        return self.xp.ascontiguousarray(combined.T), image.sum(axis=1)

    def gather(self, values: Any, real: Any, squared: bool = False) -> Block:
        """Return Σ_i x_iᵀ v_i, or that with the squares of the entries of x_i."""
        self.passes += 1
        found: Block = self.xp.ascontiguousarray(self._products.combine_of(values, squared).T)
        return found

    def _gram(self, h: Any, rows: RowChoice, deadline: float) -> Any:
        """Return Σ_i h_i z_i z_iᵀ of the rows less their centre, with a feature that is 1."""
        self.passes += 1
        centre = self.xp.asarray(self.offset) if self.offset.any() else None
        return self._products.gram(h, centre, deadline, rows)

    def sample_gram(self, weight: Any, size: int, deadline: float) -> Any:
        n, d = self.shape
        h = self.xp.ones(n) if weight is None else weight
        some = size < n
        found = self._gram(h, RowChoice(size=size, key=1) if some else RowChoice(), deadline)
        if found is None:
            return None
        share = float(h.sum()) / float(found[d, d]) if some else 1.0
        return share * self.xp.asarray(found[:d, :d])

    def formed(self, p: Any, rest: Any, weight: Any, free: bool, deadline: float) -> Array | None:
        k, wide = len(p), self.shape[1] + free
        matrix = np.zeros((k * wide, k * wide))
        for a in range(k):
            own = p[a] if weight is None else weight * p[a]
            for b in range(a + 1):
                found = self._gram(rest[a] if a == b else own * p[b], RowChoice(), deadline)
                if found is None:
                    return None
                at = slice(a * wide, (a + 1) * wide), slice(b * wide, (b + 1) * wide)
                matrix[at] = (1.0 if a == b else -1.0) * to_host(found)[:wide, :wide]
        return matrix

    def formed_blocks(self, rest: Any, free: bool, deadline: float) -> Array | None:
        wide, blocks = self.shape[1] + free, []
        for h in rest:
            found = self._gram(h, RowChoice(), deadline)
            if found is None:
                return None
            blocks.append(np.asarray(to_host(found))[:wide, :wide])
        return np.array(blocks)
