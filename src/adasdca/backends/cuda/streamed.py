"""Rows that do not fit on a device: every pass copies them there, a part at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.cuda.products import EVERY, Arrays, Products, RowChoice
from adasdca.backends.facts import RowFacts
from adasdca.problem.data import Rows
from adasdca.problem.device_rows import to_host

Array = NDArray[np.float64]
#: Copies some rows to the device.
Copy = Callable[[Rows], Products]


class StreamedRows(Products):
    """`Products` with rows of this process, made on a device.

    `copy` copies rows there, for no more than `height` of which it has room. Vectors of n numbers
    are such `arrays`.
    """

    def __init__(self, rows: Rows, height: int, copy: Copy, arrays: Arrays) -> None:
        self._rows, self._height, self._copy = rows, height, copy
        self._arrays, self.xp = arrays, arrays.xp
        self.shape = n, d = rows.shape
        self.sizes: Any = float(d)
        if not rows.dense:
            self.sizes = arrays.scatter(rows.lengths().astype(np.float64))
        facts = RowFacts(rows)
        facts.ascends = facts.central = False
        self.facts = facts
        # A part adds at most a number for each of its rows, and then the parts are added.
        self.chain = self.chain_of = min(n, height) + -(-n // height) + 4096

    def _parts(self) -> Iterator[tuple[slice, Products]]:
        n = self.shape[0]
        for first in range(0, n, self._height):
            last = min(n, first + self._height)
            yield slice(first, last), self._copy(self._rows.part(first, last))

    def scatter(self, numbers: Array) -> Any:
        return self._arrays.scatter(numbers)

    def sums(self, function: Callable[..., tuple[Any, ...]], *vectors: Any) -> list[float]:
        return self._arrays.sums(function, *vectors)

    def scores(self, v: Any, shift: float = 0.0) -> Any:
        return self.xp.concatenate([rows.scores(v, shift) for _, rows in self._parts()])

    def combine(self, r: Any) -> Any:
        return sum(rows.combine(r[part]) for part, rows in self._parts())

    def scores_of(self, v: Any) -> Any:
        return self.xp.concatenate([rows.scores_of(v) for _, rows in self._parts()], axis=1)

    def combine_of(self, r: Any, squared: bool = False) -> Any:
        whole = self.xp.ascontiguousarray
        return sum(rows.combine_of(whole(r[:, part]), squared) for part, rows in self._parts())

    def begin(self, r: Any, factors: Array) -> tuple[Any, Any]:
        found = [rows.begin(r[part], factors) for part, rows in self._parts()]
        return sum(each for each, _ in found), self.xp.concatenate([each for _, each in found])

    def squares(self, h: Any) -> Any:
        return sum(rows.squares(h[part]) for part, rows in self._parts())

    def row_squares(self, factors: Array) -> Any:
        return self.xp.concatenate([rows.row_squares(factors) for _, rows in self._parts()])

    def line(
        self, v: Any, shift: float, scores: Any, passes: Any, centre: Any, length: float
    ) -> tuple[Any, Any]:
        """Return x_i·v + shift, and Σ_i c_iβ_i x_i at scores + that: one copy for both."""
        ahead: Any = 0.0
        change = self.xp.empty(self.shape[0])
        for part, rows in self._parts():
            change[part] = rows.scores(v, shift)
            own = passes.part(part)
            middle = None if centre is None else centre[part]
            beta = own.derive(scores[part], change[part], 1.0, middle, length).beta
            ahead = ahead + rows.combine(own.weighted(beta))
        return change, ahead

    def curve(self, h: Any, v: Any, shift: float) -> tuple[Any, Any]:
        found = [rows.curve(h[part], v, shift) for part, rows in self._parts()]
        return sum(each for each, _ in found), self.xp.concatenate([image for _, image in found])

    def gram(self, h: Any, centre: Any, deadline: float, rows: RowChoice = EVERY) -> Any:
        total: Any = 0.0
        for part, own in self._parts():
            chosen = rows
            if rows.index is not None:
                index = rows.index
                here = index[(index >= part.start) & (index < part.stop)] - part.start
                chosen = RowChoice(here)
                if len(here) == 0:
                    continue
            elif rows.size:
                share = (part.stop - part.start) / self.shape[0]
                chosen = rows._replace(size=max(1, round(rows.size * share)))
            found = own.gram(h[part], centre, deadline, chosen)
            if found is None:
                return None
            total = total + found
        size = self.shape[1] + 1
        return total if np.ndim(total) else np.zeros((size, size))

    def take_rows(self, index: Any) -> Products | None:
        """Return some of the rows, on the device to stay; None if these are too many as well."""
        if len(index) > self._height:
            return None
        return self._copy(self._rows.take(to_host(index)))

    def take_columns(self, features: NDArray[np.intp]) -> StreamedRows:
        rows = self._rows.take_columns(features)
        return StreamedRows(rows, self._height, self._copy, self._arrays)
