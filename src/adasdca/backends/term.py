"""The rows' part of a second-order objective, of the few operations of `Rows`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.base import STRAIGHT, Derivatives, Gram, RowSlope
from adasdca.backends.contract import RowVector
from adasdca.backends.passes import Passes
from adasdca.problem.device_rows import to_host

Array = NDArray[np.float64]


@dataclass(frozen=True)
class WeightedRows:
    """Rows with their loss, targets and weights, where they are."""

    rows: Any  #: `Rows`, or what does more.
    passes: Passes
    centre: Any  #: (d,), their mean.
    n: int  #: Their number.
    #: λN and N, of all rows if these are some.
    mu: float
    total: float

    def combine(self, duals: RowVector) -> Any:
        """Return u = Σ_i c_iβ_i x_i/(λN), where products have it."""
        return self.rows.combine(self.passes.weighted(duals)) / self.mu


class RowTerm:
    """Σ_i c_i φ_i(x_i·v + b), at a point that it remembers, and along a line from there.

    What comes back has the size of v, or is a number. A term may do more: see `abilities.py`.
    Kinks are rounded over a length about the duals `centre`. Of `at_hand`, a v and its scores
    x_i·v, the latter are not taken again.
    """

    def __init__(
        self,
        at: WeightedRows,
        length: float,
        centre: RowVector,
        at_hand: tuple[Array, RowVector],
    ) -> None:
        self._at, self.length, self.centre, self._at_hand = at, length, centre, at_hand

    # -- the point

    def go(self, v: Array, b: float) -> None:
        """Go to a point, for its second derivatives alone."""
        at_hand, scores = self._at_hand
        rows = self._at.rows
        self._first = rows.each(lambda z: z + b, scores) if v is at_hand else rows.scores(v, b)
        self._arrive(self._first, None, 0.0)

    def place(self, v: Array, b: float) -> Derivatives:
        """Go to a point."""
        self.go(v, b)
        return self._derivatives()

    def move(self, length: float) -> Derivatives:
        """Go along the line."""
        self._arrive(self.here.scores, self.change, length)
        return self._derivatives()

    def _arrive(self, scores: RowVector, change: RowVector, step: float) -> None:
        here = self._at.passes.derive(scores, change, step, self.centre, self.length)
        if here.mass < STRAIGHT * self._at.total:
            # Nearly straight everywhere: a step would leave the range of doubles.
            h = self._at.rows.each(np.zeros_like, here.h)
            here = here._replace(h=h, mass=0.0, curved=0)
        self.here = here

    def _derivatives(self) -> Derivatives:
        return Derivatives(self._at.combine(self.here.beta), self.balance, self.here.mass)

    @property
    def balance(self) -> float:
        """Σ_i c_iβ_i."""
        return self.here.balance

    @property
    def known(self) -> int:
        """Number of rows whose inner products are known."""
        return 0

    @property
    def curved(self) -> int:
        """Number of rows with curvature."""
        return self.here.curved

    @property
    def residual(self) -> float:
        """Mean distance of the scores from their targets."""
        return self.here.residual / self._at.n

    @property
    def travel(self) -> float:
        """Mean distance of the scores from where they began."""
        way = self.here.scores, self._first
        (total,) = self._at.rows.sums(lambda z, first: (abs(z - first),), *way)
        return float(total / self._at.n)

    def duals(self) -> RowVector:
        """Return the dual point −φ' of all rows."""
        return self.here.beta

    # -- the line

    def aim(self, dv: Array, db: float) -> None:
        """Choose a line."""
        self.change = self._at.rows.scores(dv, db)

    def slope(self, length: float) -> RowSlope:
        """Return the slope along the line."""
        here = self.here
        value, size, curvature = self._at.passes.slope(
            here.scores, self.change, length, self.centre, self.length
        )
        # The rounding of a score of a steep row is many times that of its dual.
        size += here.reach * math.sqrt(here.mass * curvature)
        return RowSlope(-value, curvature, size)

    # -- the curvature

    def gram(
        self,
        intercept: bool,
        deadline: float,
        sample: int | None = None,
        combined: bool = False,
        rough: bool = False,
    ) -> Gram | None:
        """Sum the matrix of the features; None if time ran out.

        Parameters
        ----------
        intercept : bool
            Whether there is one.
        deadline : float
            When to stop, on the clock of `time.perf_counter`.
        sample : int, optional
            So many rows may stand for all.
        combined : bool
            Whether Σ_i c_iβ_i x_i is wanted from the same pass, for a loss whose curvature is 1/γ.
        rough : bool
            Whether single precision will do if it costs less; that of all rows has a `product`.
        """
        # About the mean of all rows: a far one would cost the digits of their differences.
        centre = self._at.centre if intercept else None
        found = self._at.rows.gram(self.here.h, centre, deadline)
        return None if found is None else self._formed(found, intercept, combined)

    def _formed(self, found: Any, intercept: bool, combined: bool, share: float = 1.0) -> Gram:
        """Return what a matrix of rows about their mean shows, a share of it standing for all."""
        at, d = self._at, len(found) - 1
        mass, matrix, column = float(found[d, d]), found[:d, :d], found[d, :d]
        moved = np.zeros(d)
        if intercept and mass > 0:
            matrix = matrix - column[:, None] * (column / mass)
            moved = share * (to_host(column) + mass * to_host(at.centre))
        sums = at.mu * to_host(at.combine(self.here.beta)) if combined else None
        return Gram(share * matrix, moved, share * mass if intercept else 0.0, sums)

    def curve(self, p: Array, q: float) -> tuple[Array, float]:
        """Return Σ_i h_i (x_i·p + q) x_i and Σ_i h_i (x_i·p + q)."""
        rows = self._at.rows
        image = rows.each(np.multiply, self.here.h, rows.scores(p, q))
        (total,) = rows.sums(lambda x: (x,), image)
        return rows.combine(image), total

    def diagonal(self, intercept: bool) -> tuple[Any, float]:
        """Return Σ_i h_i x_ij² for every feature, with an intercept Σ_i h_i x_ij, too, and Σ_i h_i.

        The former are lines of one array, which may be one of a device that NumPy's functions go on
        to. Conjugate gradients then keep their vectors there, and `curve` is given them.
        """
        rows, h = self._at.rows, self.here.h
        return self._lines(rows, h, intercept), self.here.mass

    def centred(self, column: Array, mass: float) -> Callable[[Array], Array]:
        """Return the product with Σ_i h_i (x_i − m)(x_i − m)ᵀ, m = column/mass or 0."""
        mean = column / mass if mass > 0 else column

        def product(p: Array) -> Array:
            found, total = self.curve(p, -float(mean @ p))
            return np.asarray(found - total * mean)

        return product

    def _lines(self, rows: Any, h: RowVector, intercept: bool) -> Any:
        lines = [rows.squares(h)] + ([rows.combine(h)] if intercept else [])
        return self._at.passes.xp.stack(lines)
