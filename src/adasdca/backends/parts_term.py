"""The rows' part of a second-order objective, for rows in parts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.base import Derivatives, Gram, RowSlope
from adasdca.backends.teams import Handle, Parts, columns, sums
from adasdca.backends.term import RowTerm

Array = NDArray[np.float64]


class PartsTerm(RowTerm):
    """A term that is a sum over parts."""

    balance, curved, residual, travel = 0.0, 0, 0.0, 0.0

    def __init__(
        self,
        parts: Parts,
        space: int,
        n: int,
        watch: Callable[[Array, float, Handle | None], None] | None,
        length: float,
        centre: Handle | None,
        point: tuple[Array, float] | None,
        reach: float | None,
    ) -> None:
        self._parts, self._n, self._watch, self._centre = parts, n, watch, centre
        self._number = parts.number("terms", self)
        number = None if centre is None else centre.number
        parts.ask("begin", space, self._number, length, number, point, reach)

    def go(self, v: Array, b: float) -> None:
        self._where = v, b
        self._note(*columns(self._parts.stream("go", self._number, v, b)))

    def _note(self, *figures: list[Any]) -> None:
        """Keep the figures of a point: none of them is worth a round of its own."""
        self.balance, curved, residual, travel, rows = map(math.fsum, figures)
        self.curved, self.residual, self.travel = int(curved), residual / rows, travel / rows

    def _take(self, said: Iterator[Any]) -> Derivatives:
        u, balance, mass, *figures = columns(said)
        self._note(balance, *figures)
        return Derivatives(u, self.balance, math.fsum(mass))

    def place(self, v: Array, b: float) -> Derivatives:
        self._where = v, b
        return self._take(self._parts.stream("place", self._number, v, b))

    def aim(self, dv: Array, db: float) -> None:
        self._line = dv, db
        self._full = RowSlope(*sums(self._parts.ask("aim", self._number, dv, db)))

    def slope(self, length: float) -> RowSlope:
        if length == 1.0:
            return self._full
        return RowSlope(*sums(self._parts.ask("slope", self._number, length)))

    def move(self, length: float) -> Derivatives:
        (v, b), (dv, db) = self._where, self._line
        self._where = v + length * dv, b + length * db
        if self._watch is not None:
            self._watch(*self._where, None)
        return self._take(self._parts.stream("move", self._number, length))

    def gram(
        self,
        intercept: bool,
        deadline: float,
        sample: int | None = None,
        combined: bool = False,
        rough: bool = False,
    ) -> Gram | None:
        """Sum the matrix of the features; None if time ran out.

        Those of two parts are about their own means. About the common mean they are
        (M₁M₂/(M₁ + M₂)) δδᵀ more, M the masses and δ the difference of the means.
        """
        share = None if sample is None else sample / self._n
        seconds = deadline - time.perf_counter()
        total: Gram | None = None
        late = False
        options = intercept, seconds, share, combined, rough
        for part in self._parts.stream("gram", self._number, *options):
            late |= part is None
            if not late:
                total = part if total is None else _together(total, part)
        if late or total is None:
            return None
        if total.single and sample is None:
            return total._replace(product=self.centred(total.column, total.mass))
        return total

    def curve(self, p: Array, q: float) -> tuple[Array, float]:
        vector, numbers = columns(self._parts.stream("curve", self._number, p, q))
        return vector, math.fsum(numbers)

    def diagonal(self, intercept: bool) -> tuple[Array, float]:
        lines, numbers = columns(self._parts.stream("diagonal", self._number, intercept))
        return lines, math.fsum(numbers)

    def duals(self) -> Handle:
        vector = Handle(self._parts)
        self._parts.ask("keep", self._number, vector.number)
        return vector


def _together(first: Gram, second: Gram) -> Gram:
    matrix, mass = first.matrix, first.mass + second.mass
    matrix += second.matrix
    if first.mass > 0 and second.mass > 0:
        difference = first.column / first.mass - second.column / second.mass
        matrix += np.outer(first.mass * second.mass / mass * difference, difference)
    combined = None
    if first.combined is not None and second.combined is not None:
        combined = first.combined + second.combined
    return Gram(matrix, first.column + second.column, mass, combined)
