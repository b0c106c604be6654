"""All that a solve asks of a backend, made of the few operations of `Rows`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.base import STRAIGHT, Derivatives, Gram, RowSlope
from adasdca.backends.contract import RowVector
from adasdca.backends.elsewhere import Elsewhere, Seen
from adasdca.backends.passes import EPS, Passes
from adasdca.duality.certificate import scaled
from adasdca.problem.device_rows import to_host
from adasdca.problem.problem import Problem

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


class PlainTerm:
    """A `RowTerm` of all rows.

    Kinks are rounded over a length about the duals `centre`. Of `at_hand`, a v and its scores
    x_i·v, the latter are not taken again.
    """

    known = 0  # no inner products

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
        at_hand, scores = self._at_hand
        rows = self._at.rows
        self._first = rows.each(lambda z: z + b, scores) if v is at_hand else rows.scores(v, b)
        self._derive(self._first, None, 0.0)

    def place(self, v: Array, b: float) -> Derivatives:
        self.go(v, b)
        return self._derivatives()

    def move(self, length: float) -> Derivatives:
        self._derive(self.here.scores, self.change, length)
        return self._derivatives()

    def _derive(self, scores: RowVector, change: RowVector, step: float) -> None:
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
        return self.here.balance

    @property
    def curved(self) -> int:
        return self.here.curved

    @property
    def residual(self) -> float:
        return self.here.residual / self._at.n

    @property
    def travel(self) -> float:
        way = self.here.scores, self._first
        (total,) = self._at.rows.sums(lambda z, first: (abs(z - first),), *way)
        return float(total / self._at.n)

    def duals(self) -> RowVector:
        return self.here.beta

    # -- the line

    def aim(self, dv: Array, db: float) -> None:
        self.change = self._at.rows.scores(dv, db)

    def slope(self, length: float) -> RowSlope:
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
        rows = self._at.rows
        image = rows.each(np.multiply, self.here.h, rows.scores(p, q))
        (total,) = rows.sums(lambda x: (x,), image)
        return rows.combine(image), total

    def diagonal(self, intercept: bool) -> tuple[Any, float]:
        rows, h = self._at.rows, self.here.h
        return self._lines(rows, h, intercept), self.here.mass

    def _lines(self, rows: Any, h: RowVector, intercept: bool) -> Any:
        lines = [rows.squares(h)] + ([rows.combine(h)] if intercept else [])
        return self._at.passes.xp.stack(lines)


class PlainBackend(Elsewhere):
    """A `Backend` of rows; the problem's own are asked for their shape only.

    Parameters
    ----------
    problem : Problem
        The checked problem.
    rows : Rows
        Its rows.
    passes : Passes, optional
        Its loss, for rows that have passes of their own.
    """

    def __init__(self, problem: Problem, rows: Any, passes: Passes | None = None) -> None:
        self.rows, self.facts = rows, rows.facts
        sizes, links = self._chains()
        super().__init__(problem, links)
        self.passes = passes or Passes(problem, rows)
        d, mu, each = self.facts.d, problem.mu, rows.each
        self._weight = self.passes.weighted(each(np.ones_like, self.passes.y))
        metric = np.broadcast_to(np.asarray(problem.regularizer.metric, np.float64), d)
        total, squares = self._begin(1.0 / metric)
        middle, n = total / problem.total, self.facts.n
        self.at = WeightedRows(rows, self.passes, middle, n, mu, problem.total)
        self._curvature = each(lambda q: q / mu, self.passes.weighted(squares))
        problem.check_scale(rows.largest(np.positive, self._curvature))
        #: The lengths of rows in the dual of the regulariser's metric, and the share of that times
        #: |w| by which a score is off at most: it is a sum of so many products, in any order.
        self.norms = each(np.sqrt, squares)
        self.share = each(lambda norm: EPS * (sizes + 8.0) * norm, self.norms)
        # The weight of the label 1, where y is labels, and the largest |x|²/(λN).
        longest = rows.largest(np.positive, self.norms)
        self._rest = self.passes.sides(self.passes.y)[0], longest**2 / mu
        self.beta = self._none = each(np.zeros_like, self.passes.y)
        self._known: tuple[Any, RowVector] = None, None

    def _chains(self) -> tuple[Any, int]:
        """Return the number of entries of rows, and the most additions of an entry of `combine`."""
        return float(self.facts.d), self.facts.n

    def _begin(self, factors: Array) -> tuple[Any, RowVector]:
        """Return Σ_i c_i x_i, and Σ_j f_j x_ij² of all rows."""
        return self.rows.combine(self._weight), self.rows.row_squares(factors)

    def restrict(self, features: NDArray[np.intp]) -> PlainBackend:
        problem = self.problem.without_rows().restrict(features)
        return type(self)(problem, self.rows.take_columns(features), self.passes)

    def scatter(self, beta: Array) -> RowVector:
        return self.rows.scatter(beta)

    def gather(self, duals: RowVector) -> Array:
        return np.asarray(self.rows.gather(duals))

    def combine(self, duals: RowVector) -> Array:
        if duals is self._none:
            return np.zeros(self.facts.d)
        return np.asarray(to_host(self.at.combine(duals)))

    def column_squares(self) -> Array:
        """Return Σ_i c_i x_ij² for every feature."""
        return np.asarray(to_host(self.rows.squares(self._weight)))

    def freedom(self, w: Array, b: float, duals: RowVector) -> tuple[float, float]:
        free, away = self.passes.freedom(self._scores(w), b, duals)
        return free, away / self.problem.total

    def term(
        self,
        length: float = 0.0,
        centre: RowVector = None,
        point: tuple[Array, float] | None = None,
        reach: float | None = None,
        exact: bool = False,
    ) -> PlainTerm:
        return PlainTerm(self.at, length, centre, self._known)

    # -- what surveys ask

    def _scores(self, w: Array) -> RowVector:
        """Return x_i·w of all rows, those of the last w as they were."""
        if self._known[0] is not w:
            self._known = w, self.rows.scores(w) if w.any() else self._none
        return self._known[1]

    def _balance(self, scores: RowVector, b: float) -> tuple[float, float, float]:
        return self.passes.balance(scores, b)

    def _slopes(self, scores: RowVector, b: float) -> RowVector:
        return self.passes.slopes(scores, b)

    def _sides(self, duals: RowVector) -> tuple[float, float]:
        return self.passes.sides(duals)

    def _moved(self, duals: RowVector) -> int:
        return int(self.rows.sums(lambda t: (t != 0,), duals)[0])

    def _look(
        self, w: Array, b: float, scores: RowVector, duals: RowVector, shares: tuple[float, float]
    ) -> Seen:
        problem, constant = self.problem, self.problem.constant
        if shares != (1.0, 1.0):
            duals = self.rows.each(lambda t: scaled(t, shares), duals)
        outer = abs(b) + (abs(constant * float(w[-1])) if constant else 0.0)
        norm_w = math.sqrt(float((problem.regularizer.metric * w) @ w))
        sums = self.passes.row_sums(scores, b, duals, self.share, self.norms, norm_w, outer)
        positive, square = self._rest
        evidence = np.array([*sums[:6], positive, sums.far, square])
        return Seen(evidence, self.combine(duals), duals)
