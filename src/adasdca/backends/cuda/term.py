"""The rows' part of a second-order objective, for rows on a device."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.base import Derivatives, Gram, RowSlope
from adasdca.backends.cuda.losses import Formulas
from adasdca.backends.cuda.products import Products, weighted_gram

Array = NDArray[np.float64]

#: A mean curvature below this is none.
STRAIGHT = 1e-60
#: Rows with curvature are picked out where they are at most this share of all.
FEW = 0.7


@dataclass(frozen=True)
class WeightedRows:
    """Rows with their loss, targets and weights, where they are.

    Attributes
    ----------
    rows : Products
        Products with the rows.
    loss : Formulas
        The loss in the coordinates of a row.
    c : (n,) array or 1.0
        Weights.
    sign, target : (n,) array or 1.0
        y and 1 for classification, 1 and y for regression.
    mu, total : float
        λN and N.
    """

    rows: Products
    loss: Formulas
    c: Any
    sign: Any
    target: Any
    mu: float
    total: float

    def combine(self, duals: Any) -> Array:
        """Return u = Σ_i c_iβ_i x_i/(λN)."""
        return self.rows.combine(self.c * duals) / self.mu


class ArrayTerm:
    """Σ_i c_i φ_i(x_i·v + b), at a point that it remembers, and along a line from there.

    Parameters
    ----------
    at : WeightedRows
        The rows.
    length, centre : float, (n,) array
        Kinks are rounded over this length about these duals.
    """

    exact, known = False, 0

    def __init__(self, at: WeightedRows, length: float, centre: Any) -> None:
        self._at, self.rows, self.xp = at, at.rows, at.rows.xp
        self.loss, self.length = at.loss, length
        self.centre: Any = 0.0 if centre is None else at.sign * centre
        self._random = np.random.default_rng(0)

    # -- the point

    def go(self, v: Array, b: float) -> None:
        """Go to a point, for its second derivatives alone."""
        self.scores = self._first = self._images(v, b)
        self._derive()

    def place(self, v: Array, b: float) -> Derivatives:
        """Go to a point."""
        self.go(v, b)
        return self._derivatives()

    def move(self, length: float) -> Derivatives:
        """Go along the line."""
        self.scores = self.scores + length * self.change
        self._derive()
        return self._derivatives()

    def settle(self) -> Derivatives:
        """Refuse: sums are not in twice the digits."""
        raise NotImplementedError("this term is not exact")

    def _images(self, v: Array, b: float) -> Any:
        return self.rows.scores(v) + b if v.any() else self.xp.full(self.rows.shape[0], float(b))

    def _ascent(self, scores: Any) -> Any:
        at = self._at
        return self.loss.ascent(at.sign * scores, at.target, self.length, self.centre)

    def _derive(self) -> None:
        at = self._at
        own = self._ascent(self.scores)
        self.beta = at.sign * own
        self.h = at.c * self.loss.curvature(own, self.length)
        self.balance = self.rows.dot(at.c, self.beta)
        self._mass = self.rows.dot(1.0, self.h)
        if self._mass < STRAIGHT * at.total:
            # Nearly straight everywhere: a step would leave the range of doubles.
            self.h, self._mass = self.xp.zeros_like(self.h), 0.0

    def _derivatives(self) -> Derivatives:
        return Derivatives(self._at.combine(self.beta), self.balance, self._mass)

    @property
    def curved(self) -> int:
        """Number of rows with curvature."""
        return int(self.xp.count_nonzero(self.h))

    @property
    def residual(self) -> float:
        """Mean distance of the scores from their targets."""
        at = self._at
        return float(self.xp.abs(at.target - at.sign * self.scores).mean())

    @property
    def travel(self) -> float:
        """Mean distance of the scores from where they began."""
        return float(self.xp.abs(self.scores - self._first).mean())

    def duals(self) -> Any:
        """Return the dual point −φ' of all rows."""
        return self.beta

    # -- the line

    def aim(self, dv: Array, db: float) -> None:
        """Choose the line."""
        self.change = self._images(dv, db)
        self._reach = float(self.xp.abs(self.scores).max())

    def slope(self, length: float) -> RowSlope:
        """Return the slope along the line."""
        at, xp = self._at, self.xp
        own = self._ascent(self.scores + length * self.change)
        terms, dot = (at.sign * own) * self.change, self.rows.dot
        bend = dot(at.c, self.loss.curvature(own, self.length) * self.change**2)
        # The rounding of a score of a steep row is many times that of its dual.
        size = dot(at.c, xp.abs(terms)) + self._reach * math.sqrt(self._mass * bend)
        return RowSlope(-dot(at.c, terms), bend, size)

    # -- the curvature

    def gram(
        self,
        intercept: bool,
        deadline: float,
        sample: int | None = None,
        combined: bool = False,
    ) -> Gram | None:
        """Sum the matrix of the features; None if time ran out."""
        xp, h, n = self.xp, self.h, self.rows.shape[0]
        active = None
        if sample is not None and sample < n:
            h, active = self._sampled(sample)
        elif self.curved < FEW * n:
            active = xp.flatnonzero(h)
        mass = float(h.sum()) if intercept else 0.0
        column = self.rows.combine(h) if mass > 0 else np.zeros(self.rows.shape[1])
        # Rows less their mean: a far one would cost the digits of their differences.
        mean = xp.asarray(column / mass) if mass > 0 else None
        matrix = weighted_gram(self.rows, h, mean, active, deadline)
        if matrix is None:
            return None
        sums = self._at.mu * self._at.combine(self.beta) if combined else None
        return Gram(matrix, column, mass, sums)

    def _sampled(self, count: int) -> tuple[Any, Any]:
        """Return the curvature of a sample, drawn anew each time, as large as that of all."""
        xp, h = self.xp, self.h
        chosen = xp.asarray(np.unique(self._random.integers(len(h), size=count)))
        sample = xp.zeros_like(h)
        sample[chosen] = h[chosen]
        mass = float(sample.sum())
        if mass == 0:
            return h, None
        return sample * (self._mass / mass), chosen

    def curve(self, p: Array, q: float) -> tuple[Array, float]:
        """Return Σ_i h_i (x_i·p + q) x_i and Σ_i h_i (x_i·p + q)."""
        image = self.h * self._images(p, q)
        return self.rows.combine(image), float(image.sum())

    def diagonal(self) -> tuple[Array, float]:
        """Return Σ_i h_i x_ij² for every feature, and Σ_i h_i."""
        return self.rows.squares(self.h), self._mass

    def solve_by_rows(
        self,
        diagonal: float | Array,
        right: Array,
        balance: float,
        intercept: bool,
        deadline: float,
    ) -> tuple[Array, float] | None:
        """Return None: equations are solved by features or by conjugate gradients."""
        return None
