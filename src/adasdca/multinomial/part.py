"""One part of the rows of a multinomial model, and the sums over it that a solve asks for.

A part stores losses and dual points of its rows under numbers that the caller chooses. Arguments
and results are arrays of features and classes and single numbers: a part may be in another process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca.multinomial.blocks import Block
from adasdca.multinomial.margins import DualPoint, Multinomial, Rounding, RowLosses
from adasdca.multinomial.rows import Exact, LocalRows
from adasdca.problem.data import Rows

Array = NDArray[np.float64]

#: Commands that change a part.
CHANGES = frozenset(("centre", "losses", "aim", "move", "dual", "shift", "forget"))
#: Commands that pass over the rows.
PASSES = frozenset(
    (
        *("facts", "losses", "aim", "combine", "combine_exactly", "curve", "diagonal", "formed"),
        *("blocks", "sample_gram"),
    )
)
#: Commands that are methods of the losses.
FORWARDED = frozenset(("coupling", "aim", "slope"))


@dataclass(frozen=True)
class ClassTask:
    """A multinomial problem without its rows."""

    classes: list[Any]  #: The labels.
    lam: float
    whole: float  #: N of all rows.
    fit_intercept: bool
    #: By what the weights of rows are multiplied, by label.
    factors: dict[Any, float] | None = None


class ClassFacts(NamedTuple):
    """Rows and values of a part, its longest row, Σ c‖x‖², and Σ c x."""

    n: int
    stored: int
    longest: float
    moment: float
    columns: Array


class ClassPart:
    """Rows of a multinomial problem with their classes and weights, and arrays of theirs."""

    def __init__(
        self, rows: Rows, codes: NDArray[np.intp], weight: Array | None, task: ClassTask
    ) -> None:
        self._rows = LocalRows(rows, len(task.classes))
        self._problem = Multinomial(self._rows, codes, weight, task.lam, len(task.classes), False)
        self._free, self._whole = task.fit_intercept, task.whole
        self._losses: dict[int, RowLosses] = {}
        self._duals: dict[int, DualPoint] = {}
        self._curves: dict[tuple[int, str], Callable[..., tuple[Block, Block]]] = {}

    def do(self, command: str, *args: Any) -> Any:
        """Carry a command out."""
        with np.errstate(all="ignore"):
            if command in FORWARDED:
                return getattr(self._losses[args[0]], command)(*args[1:])
            return getattr(self, command)(*args)

    def facts(self) -> ClassFacts:
        """Say what the rows are."""
        problem = self._problem
        columns = self._rows.column_sums(problem.weight)
        return ClassFacts(
            self._rows.shape[0], self._rows.stored, problem.longest, problem.moment, columns
        )

    def centre(self, centre: Array) -> None:
        """Take over the mean of all rows."""
        self._problem.join(self._whole, centre, self._free)

    def forget(self, vectors: list[int], terms: list[int], spaces: list[int]) -> None:
        """Drop what the caller holds no more."""
        for number in vectors:
            self._duals.pop(number, None)
        for number in terms:
            self._losses.pop(number, None)
            for real in ("float32", "float64"):
                self._curves.pop((number, real), None)

    # -- losses

    def losses(self, number: int, coef: Array, intercept: Array) -> None:
        """Go to a model."""
        self._losses[number] = self._problem.losses(coef, intercept)

    def value(self, number: int) -> tuple[float, float, float]:
        """Return the sum of the losses, and the least and the largest margin."""
        losses = self._losses[number]
        return losses.value(), float(losses.margins.min()), float(losses.margins.max())

    def move(self, number: int, new: int, length: float) -> None:
        """Go along it."""
        moved = copy(self._losses[number])
        moved.move(length)
        self._losses[new] = moved

    def curve(self, number: int, v: Block, shift: Block) -> tuple[Block, Block]:
        """Return what `RowLosses.curvature` makes of these."""
        key = number, str(v.dtype)
        if key not in self._curves:
            self._curves = {key: self._losses[number].curvature(v.dtype)}
        return self._curves[key](v, shift)

    def diagonal(self, number: int, real: str) -> tuple[Block, Array]:
        """Return `RowLosses.diagonal`."""
        return self._losses[number].diagonal(np.dtype(real))

    def formed(self, number: int, seconds: float) -> Array | None:
        """Return this part of the matrix of a step; None if time ran out."""
        return self._losses[number].formed(time.perf_counter() + seconds)

    def blocks(self, number: int, seconds: float) -> Array | None:
        """Return this part of its blocks of a class each; None if time ran out."""
        return self._losses[number].blocks(time.perf_counter() + seconds)

    def sample_gram(self, share: float, seconds: float) -> Any:
        """Return Σ_i c_i z_i z_iᵀ, by that share of the rows; None if time ran out."""
        size = max(1, round(share * self._rows.shape[0]))
        return self._rows.sample_gram(self._problem.weight, size, time.perf_counter() + seconds)

    # -- dual points

    def dual(self, number: int, new: int) -> tuple[Array, Array]:
        """Make α of losses; return Σ α and Σ |α|."""
        return self._kept(new, self._losses[number].dual())

    def shift(self, dual: int, number: int, new: int, step: Array) -> tuple[Array, Array]:
        """Move a dual point; return Σ α and Σ |α|."""
        return self._kept(new, self._duals[dual].moved(self._losses[number], step))

    def _kept(self, new: int, dual: DualPoint) -> tuple[Array, Array]:
        self._duals[new] = dual
        return dual.sums(), dual.sizes()

    def combine(self, dual: int) -> Array:
        """Return Σ_i α_i x_iᵀ."""
        return self._duals[dual].combined()

    def combine_exactly(self, dual: int, number: int) -> Exact:
        """Return Σ_i α_i x_iᵀ and Σ_i α_i in twice the digits."""
        return self._duals[dual].combined_exactly(self._losses[number])

    def rounding(
        self, dual: int, number: int, travel: Array, hops: int, shift: float, finely: bool
    ) -> Rounding:
        """Return this part of `DualPoint.rounding`."""
        return self._duals[dual].rounding(self._losses[number], travel, hops, shift, finely)

    def reach(self, dual: int, travel: Array) -> float:
        """Return this part of `DualPoint.reach`."""
        return self._duals[dual].reach(travel)

    def gather(self, dual: int) -> Array:
        """Return α."""
        return self._duals[dual].gather()
