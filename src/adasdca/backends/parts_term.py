"""The rows' part of a second-order objective, for rows in parts."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.base import Derivatives, Facts, Gram, Preconditioned, RowSlope
from adasdca.backends.teams import PartVector, columns, sums
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]


class Parts(Protocol):
    """What a term asks of its backend."""

    space: int
    problem: Problem

    @property
    def facts(self) -> Facts:
        """Facts about all rows together."""

    def ask(self, command: str, *args: Any) -> list[Any]:
        """Ask all parts, and wait for all."""

    def stream(self, command: str, *args: Any) -> Iterator[Any]:
        """Ask all parts; what they say is to be taken one by one, and to the end."""

    def vector(self) -> PartVector:
        """Return a vector that is still to be made."""

    def number_of(self, term: PartsTerm) -> int:
        """Return the number of a new term."""

    def passed(self, w: Array, b: float, duals: PartVector | None) -> None:
        """Tell who looks on of a point on the way."""


class PartsTerm:
    """A term that is a sum over parts; `RowTerm` says what each method does."""

    known, exact = 0, False

    def __init__(
        self,
        backend: Parts,
        length: float,
        centre: PartVector | None,
        point: tuple[Array, float] | None,
        reach: float | None,
    ) -> None:
        self._backend, self._centre = backend, centre
        self._number = backend.number_of(self)
        number = None if centre is None else centre.number
        backend.ask("begin", backend.space, self._number, length, number, point, reach)
        self.balance, self.curved, self.residual, self.travel = 0.0, 0, 0.0, 0.0
        # Whether its points are those of the problem itself.
        self._plain = length == 0 and backend.problem.regularizer.is_quadratic

    def go(self, v: Array, b: float) -> None:
        """Go to a point, for its second derivatives alone."""
        self._at = v, b
        balance, *figures = columns(self._backend.stream("go", self._number, v, b))
        self._note(balance, *figures)

    def _note(
        self,
        balance: list[float],
        curved: list[int],
        residual: list[float],
        travel: list[float],
        rows: list[int],
    ) -> None:
        """Keep the figures of a point: none of them is worth a round of its own."""
        self.balance, self.curved = math.fsum(balance), sum(curved)
        self.residual = math.fsum(residual) / sum(rows)
        self.travel = math.fsum(travel) / sum(rows)

    def _take(self, said: Iterator[Any]) -> Derivatives:
        u, balance, mass, *figures = columns(said)
        self._note(balance, *figures)
        return Derivatives(u, self.balance, math.fsum(mass))

    def place(self, v: Array, b: float, rest: Any = None) -> Derivatives:
        """Go to a point."""
        self._at = v, b
        return self._take(self._backend.stream("place", self._number, v, b))

    def aim(self, dv: Array, db: float) -> None:
        """Choose a line."""
        self._line = dv, db
        self._backend.ask("aim", self._number, dv, db)

    def slope(self, length: float) -> RowSlope:
        """Return the slope along the line."""
        return RowSlope(*sums(self._backend.ask("slope", self._number, length)))

    def move(self, length: float) -> Derivatives:
        """Go along the line."""
        (v, b), (dv, db) = self._at, self._line
        self._at = v + length * dv, b + length * db
        if self._plain:
            self._backend.passed(*self._at, None)
        return self._take(self._backend.stream("move", self._number, length))

    def settle(self) -> Derivatives:
        """Refuse: only asked for where sums are in twice the digits."""
        raise NotImplementedError

    def gram(
        self,
        intercept: bool,
        deadline: float,
        sample: int | None = None,
        combined: bool = False,
    ) -> Gram | None:
        """Sum the matrix of the features; None if time ran out.

        Those of two parts are about their own means. About the common mean they are
        (M₁M₂/(M₁ + M₂)) δδᵀ more, M the masses and δ the difference of the means.
        """
        share = None if sample is None else sample / self._backend.facts.n
        seconds = deadline - time.perf_counter()
        total: Gram | None = None
        late = False
        for part in self._backend.stream("gram", self._number, intercept, seconds, share, combined):
            late |= part is None
            if not late:
                total = part if total is None else _together(total, part)
        return None if late else total

    def curve(self, p: Array, q: float) -> tuple[Array, float]:
        """Return Σ_i h_i (x_i·p + q) x_i and Σ_i h_i (x_i·p + q)."""
        vector, numbers = columns(self._backend.stream("curve", self._number, p, q))
        return vector, math.fsum(numbers)

    def diagonal(self) -> tuple[Array, float]:
        """Return Σ_i h_i x_ij² for every feature, and Σ_i h_i."""
        vector, numbers = columns(self._backend.stream("diagonal", self._number))
        return vector, math.fsum(numbers)

    def iterate(
        self, equations: Preconditioned, accuracy: float, deadline: float, most: int
    ) -> Any:
        """Leave iterations to whoever asks for products."""
        return NotImplemented

    def solve_by_rows(
        self,
        diagonal: float | Array,
        right: Array,
        balance: float,
        intercept: bool,
        deadline: float,
    ) -> None:
        """Return None: inner products of rows of different parts are nowhere."""
        return

    def duals(self) -> PartVector:
        """Return the dual point −φ' of all rows."""
        vector = self._backend.vector()
        self._backend.ask("keep", self._number, vector.number)
        return vector


def _together(first: Gram, second: Gram) -> Gram:
    matrix, mass = first.matrix, first.mass + second.mass
    matrix += second.matrix
    if first.mass > 0 and second.mass > 0:
        apart = first.column / first.mass - second.column / second.mass
        matrix += np.outer(first.mass * second.mass / mass * apart, apart)
    combined = None
    if first.combined is not None and second.combined is not None:
        combined = first.combined + second.combined
    return Gram(matrix, first.column + second.column, mass, combined)
