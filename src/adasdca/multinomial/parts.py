"""A multinomial problem whose rows are in parts: the sums over them, in the order of the parts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.base import FOREVER
from adasdca.backends.teams import Handle, Parts, Team, columns, sums, vector_of
from adasdca.multinomial.blocks import Block, Layout
from adasdca.multinomial.margins import Rounding, basis_of
from adasdca.multinomial.rows import Exact
from adasdca.newton.line import Slope

Array = NDArray[np.float64]


@dataclass
class PartedRows:
    """What is known of all rows together; `ClassRows` says what each is."""

    shape: tuple[int, int]
    stored: int
    chain: float
    layout: Layout
    passes: int = 0
    xp: Any = field(default=np, repr=False)
    single: bool = True


class PartedMultinomial:
    """The problem, as `Multinomial` is, of rows that a team has, whose parts are `ClassPart`.

    Dual points come here only if it `gathers` them.
    """

    exact = True

    def __init__(
        self,
        team: Team,
        d: int,
        n_classes: int,
        lam: float,
        total: float,
        fit_intercept: bool,
        gathers: bool = False,
    ) -> None:
        self.parts = Parts(team)
        self.lam, self.total, self.mu = lam, total, lam * total
        self.n_classes, self.fit_intercept, self.gathers = n_classes, fit_intercept, gathers
        parts = self.parts.ask("facts")
        n = sum(part.n for part in parts)
        self.longest = max(part.longest for part in parts)
        self.moment = math.fsum(part.moment for part in parts)
        self.centre = np.zeros(d)
        if fit_intercept:
            self.centre = vector_of(part.columns for part in parts) / total
        self.parts.ask("centre", self.centre)
        chain = max(part.n for part in parts) + len(parts)
        stored = sum(part.stored for part in parts)
        self.rows = PartedRows((n, d), stored, float(chain), Layout(n_classes))
        self._basis: tuple[Any, Any] | None = None

    def losses(self, coef: Array, intercept: Array) -> PartedLosses:
        self.rows.passes += 1
        made = Handle(self.parts, "terms")
        self.parts.ask("losses", made.number, coef, intercept)
        return PartedLosses(self, made)

    def basis(self, sample: int, deadline: float) -> tuple[Any, Any] | None:
        if self._basis is None:
            share = min(1.0, sample / self.rows.shape[0])
            said = self.parts.ask("sample_gram", share, left(deadline))
            if any(each is None for each in said):
                return None
            self._basis = basis_of(vector_of(said), np)
        return self._basis


class PartedLosses:
    """Losses at a model, as `RowLosses` are; `at` is never changed, so that copies may share it."""

    def __init__(self, problem: PartedMultinomial, at: Handle) -> None:
        self.problem, self.at = problem, at
        self._seen: tuple[Handle, list[Any]] | None = None

    def _values(self) -> list[Any]:
        if self._seen is None or self._seen[0] is not self.at:
            self._seen = (
                self.at,
                list(zip(*self.problem.parts.ask("value", self.at.number), strict=True)),
            )
        return self._seen[1]

    def value(self) -> float:
        return math.fsum(self._values()[0])

    def margin_range(self) -> float:
        _, least, most = self._values()
        return float(max(most) - min(least))

    def coupling(self) -> Array:
        return vector_of(self.problem.parts.ask("coupling", self.at.number))

    def dual(self) -> PartedDual:
        made = Handle(self.problem.parts)
        said = self.problem.parts.ask("dual", self.at.number, made.number)
        return PartedDual(self.problem, made, said)

    def restore(self, other: PartedLosses) -> None:
        self.at = other.at

    def aim(self, coef: Array | None, intercept: Array) -> None:
        self.problem.rows.passes += coef is not None
        self.problem.parts.ask("aim", self.at.number, coef, intercept)

    def slope(self, length: float) -> Slope:
        said = self.problem.parts.ask("slope", self.at.number, length)
        return Slope(*sums(said))

    def move(self, length: float) -> None:
        made = Handle(self.problem.parts, "terms")
        self.problem.parts.ask("move", self.at.number, made.number, length)
        self.at = made

    def curvature(self, real: Any) -> Callable[[Block, Block], tuple[Block, Block]]:
        """Return the map of v and a shift to sums of curvatures, as `RowLosses` do."""

        def curve(v: Block, shift: Block) -> tuple[Block, Block]:
            self.problem.rows.passes += 1
            image, total = columns(self.problem.parts.ask("curve", self.at.number, v, shift))
            return image, total

        return curve

    def diagonal(self, real: Any) -> tuple[Block, Array]:
        self.problem.rows.passes += 1
        said = self.problem.parts.ask("diagonal", self.at.number, np.dtype(real).name)
        squares, mass = columns(said)
        return squares, mass

    def formed(self, deadline: float) -> Array | None:
        return self._matrix("formed", deadline)

    def blocks(self, deadline: float) -> Array | None:
        return self._matrix("blocks", deadline)

    def _matrix(self, command: str, deadline: float) -> Array | None:
        self.problem.rows.passes += 1
        said = self.problem.parts.ask(command, self.at.number, left(deadline))
        return None if any(each is None for each in said) else vector_of(said)


class PartedDual:
    """A dual point, as `DualPoint` is."""

    def __init__(self, problem: PartedMultinomial, kept: Handle, said: list[Any]) -> None:
        self.problem, self._kept = problem, kept
        self._sums, self._sizes = columns(said)

    def sums(self) -> Array:
        return np.asarray(self._sums)

    def sizes(self) -> Array:
        return np.asarray(self._sizes)

    def combined(self) -> Array:
        self.problem.rows.passes += 1
        return vector_of(self.problem.parts.ask("combine", self._kept.number))

    def combined_exactly(self, losses: PartedLosses) -> Exact:
        """Return Σ_i α_i x_iᵀ and Σ_i α_i in twice the digits, as `DualPoint` does."""
        self.problem.rows.passes += 1
        numbers = self._kept.number, losses.at.number
        found, *others = self.problem.parts.ask("combine_exactly", *numbers)
        for other in others:
            found = Exact.of(found, other)
        return Exact(*found)

    def reach(self, travel: Array) -> float:
        self.problem.rows.passes += 1
        return math.fsum(self.problem.parts.ask("reach", self._kept.number, travel))

    def gather(self) -> Array:
        """Return α in this process, if `gathers`."""
        if not self.problem.gathers:
            return np.empty((self.problem.n_classes, 0))
        return np.concatenate(self.problem.parts.ask("gather", self._kept.number), axis=1)

    def moved(self, losses: PartedLosses, step: Array) -> PartedDual:
        made = Handle(self.problem.parts)
        numbers = self._kept.number, losses.at.number, made.number
        return PartedDual(self.problem, made, self.problem.parts.ask("shift", *numbers, step))

    def rounding(
        self, losses: PartedLosses, travel: Array, hops: int, shift: float, finely: bool
    ) -> Rounding:
        numbers = self._kept.number, losses.at.number
        said = self.problem.parts.ask("rounding", *numbers, travel, hops, shift, finely)
        return Rounding(*sums(said))


def left(deadline: float) -> float:
    """Return the seconds to a deadline: other processes have other clocks."""
    return FOREVER if math.isinf(deadline) else max(deadline - time.perf_counter(), 0.0)
