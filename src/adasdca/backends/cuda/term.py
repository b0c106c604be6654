"""The rows' part of a second-order objective, for rows on a device."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.abilities import Preconditioned
from adasdca.backends.base import Derivatives, Gram, RowSlope, centred_product, to_host
from adasdca.backends.cuda.products import Passes, Products, RowChoice, System

Array = NDArray[np.float64]

#: A mean curvature below this is none.
STRAIGHT = 1e-60
#: Rows with curvature are picked out where they are at most this share of all.
FEW = 0.7
#: Rows a feature of a sample, at most: on a device more of them cost more than a step more does.
SAMPLE = 200
#: Rows with curvature a feature from which on a Gram matrix is not made of all.
MANY = 800
#: Rows with curvature are copied for products with their matrix where they are at most this share,
#: and after so many products, which is about what the copy takes; at once below the smaller share,
#: where it takes no more than one or two.
SCARCE, PRODUCTS, EARLY = 0.3, 4, 0.1
#: Features from which on vectors of them stay with the rows: sums here take longer than calls there
#: (0.28 ms of 0.03 for a x + b of 200,000 numbers beside an H200).
LONG = 1 << 15
#: Matrices of fewer features are factorised in this process, and made of all rows.
SMALL = 256


@dataclass(frozen=True)
class WeightedRows:
    """Rows with their loss, targets and weights, where they are."""

    products: Products
    passes: Passes
    centre: Any  #: (d,), their mean.
    #: λN and N.
    mu: float
    total: float

    def combine(self, duals: Any) -> Any:
        """Return u = Σ_i c_iβ_i x_i/(λN), where the rows are."""
        return self.products.combine(self.passes.weighted(duals)) / self.mu


class Others(NamedTuple):
    """Rows that a working set leaves out: their duals stay."""

    duals: Any  #: (n,), of all rows.
    chosen: Any  #: Numbers of the rows that are not left out.
    #: Their parts of u, where the rows are, of Σ c_iβ_i, and of Σ |t − z| as these were last seen.
    u: Any
    balance: float
    residual: float


class DeviceTerm:
    """The `RowTerm` of rows on a device.

    Kinks are rounded over a length about the duals `centre`. Of `known`, a v and its scores x_i·v,
    the latter are not taken again. The rows may be a working set, beside `others`.
    """

    known = 0

    def __init__(
        self,
        at: WeightedRows,
        length: float,
        centre: Any,
        known: tuple[Array, Any],
        others: Others | None = None,
    ) -> None:
        self._at, self.length, self.centre, self._known = at, length, centre, known
        self._others = others
        self._samples, self._asked, self._there = 0, 0, False
        self._curved_rows: tuple[Any, Any] | None = None

    # -- the point

    def bring(self, x: Any) -> Any:
        """Return a vector of features where steps are to keep theirs: long ones with the rows."""
        if len(x) < LONG:
            return x
        there = self._at.passes.xp.asarray(x)
        if x is self._known[0]:
            self._known = there, self._known[1]
        return there

    def go(self, v: Any, b: float) -> None:
        known, scores = self._known
        self._there = not isinstance(v, np.ndarray)
        scores = scores + b if v is known else self._at.products.scores(v, b)
        self._first = scores
        self._derive(scores, None, 0.0)

    def place(self, v: Array, b: float) -> Derivatives:
        self.go(v, b)
        return self._derivatives()

    def move(self, length: float) -> Derivatives:
        self._derive(self.here.scores, self.change, length)
        if length != 1.0 or self._ahead is None:
            return self._derivatives()
        # The sum at the end of the whole step has come with the line.
        return self._together(self._ahead / self._at.mu)

    def _derive(self, scores: Any, change: Any, step: float) -> None:
        here = self._at.passes.derive(scores, change, step, self.centre, self.length)
        if here.mass < STRAIGHT * self._at.total:
            # Nearly straight everywhere: a step would leave the range of doubles.
            here = here._replace(h=0.0 * here.h, mass=0.0, curved=0)
        self.here, self._asked, self._curved_rows = here, 0, None

    def _derivatives(self) -> Derivatives:
        return self._together(self._at.combine(self.here.beta))

    def _together(self, u: Any) -> Derivatives:
        """Return the derivatives by these rows' part of u, with that of the others."""
        if self._others is not None:
            u += self._others.u
        return Derivatives(u if self._there else to_host(u), self.balance, self.here.mass)

    @property
    def balance(self) -> float:
        return self.here.balance + (self._others.balance if self._others is not None else 0.0)

    @property
    def curved(self) -> int:
        return self.here.curved

    @property
    def residual(self) -> float:
        if self._others is None:
            return self.here.residual / self._at.products.shape[0]
        # Rows near their kinks have next to none, and what is left of Σ c_iβ_i is paid by all.
        return (self.here.residual + self._others.residual) / len(self._others.duals)

    @property
    def travel(self) -> float:
        return float(abs(self.here.scores - self._first).mean())

    def duals(self) -> Any:
        if self._others is None:
            return self.here.beta
        duals = self._others.duals.copy()
        duals[self._others.chosen] = self.here.beta
        return duals

    # -- the line

    def aim(self, dv: Any, db: float) -> None:
        """Choose the line."""
        dv = self._at.passes.xp.asarray(dv)
        self.change, self._ahead = self._at.products.line(
            dv, db, self.here.scores, self._at.passes, self.centre, self.length
        )
        self._held = 0.0  # the others' part of the slope
        if self._others is not None:
            self._held = self._at.mu * float(self._others.u @ dv) + self._others.balance * db

    def slope(self, length: float) -> RowSlope:
        here = self.here
        value, size, curvature = self._at.passes.slope(
            here.scores, self.change, length, self.centre, self.length
        )
        # The rounding of a score of a steep row is many times that of its dual.
        size += abs(self._held) + here.reach * math.sqrt(here.mass * curvature)
        return RowSlope(-value - self._held, curvature, size)

    # -- the curvature

    def gram(
        self,
        intercept: bool,
        deadline: float,
        sample: int | None = None,
        combined: bool = False,
        rough: bool = False,
    ) -> Gram | None:
        at, h, (n, d) = self._at, self.here.h, self._at.products.shape
        rows, refined = RowChoice(), False
        if sample is None and d >= SMALL and self.curved > MANY * d:
            # So many of these rows that a sample of them and a few products cost less than all.
            sample, refined = int(SAMPLE * d * (n / self.curved)), True
        if sample is not None and sample < n:
            self._samples, most = self._samples + 1, n if refined else SAMPLE * d
            rows = RowChoice(size=min(sample, most), key=self._samples)
        elif self.curved < FEW * n:
            rows = RowChoice(index=h.nonzero()[0])
        # About the mean of all rows: a far one would cost the digits of their differences.
        centre = at.centre if intercept else None
        found = at.products.gram(h, centre, rows, deadline)
        if found is None:
            return None
        mass, matrix, column = float(found[d, d]), found[:d, :d], found[d, :d]
        # A sample is to be as large as all; where it has no curvature it says nothing.
        share = self.here.mass / mass if rows.size and mass > 0 else 1.0
        moved = np.zeros(d)
        if intercept and mass > 0:
            matrix = matrix - column[:, None] * (column / mass)
            moved = share * (to_host(column) + mass * to_host(at.centre))
        sums = at.mu * to_host(at.combine(self.here.beta)) if combined else None
        mass, product = share * mass if intercept else 0.0, None
        if rows.size and refined:
            if mass > 0:
                mass, moved = self.here.mass, np.asarray(to_host(at.products.combine(h)))
            product = centred_product(self, moved, mass)
        return Gram(_matrix(share * matrix), moved, mass, sums, product)

    def curve(self, p: Any, q: float) -> tuple[Any, float]:
        """Return Σ_i h_i (x_i·p + q) x_i and Σ_i h_i (x_i·p + q), where p is."""
        self._asked += 1
        if self._asked == PRODUCTS:
            self._few()
        rows, h = self._curved_rows or (self._at.products, self.here.h)
        found, image = rows.curve(h, p, q)
        return (to_host(found) if isinstance(p, np.ndarray) else found), float(image.sum())

    def _few(self) -> tuple[Products, Any] | None:
        """Copy the rows with curvature, where these are few."""
        if self._curved_rows is None and 0 < self.curved <= SCARCE * self._at.products.shape[0]:
            index = self.here.h.nonzero()[0]
            rows = self._at.products.take_rows(index)
            self._curved_rows = None if rows is None else (rows, self.here.h[index])
        return self._curved_rows

    def iterate(
        self, equations: Preconditioned, accuracy: float, deadline: float, most: int
    ) -> Any:
        """Solve by conjugate gradients where the rows are; None if time ran out."""
        own = equations.own + self._at.passes.xp.zeros_like(equations.scale)
        system = System(self.here.h, own, *equations[1:], accuracy)
        wait = 0 if self._curved_rows else PRODUCTS
        return self._at.products.iterate(system, self._few, wait, deadline, most)

    def diagonal(self, intercept: bool) -> tuple[Any, float]:
        """Return Σ_i h_i x_ij² and, if that is asked, Σ_i h_i x_ij, where the rows are; Σ_i h_i."""
        if self.curved <= EARLY * self._at.products.shape[0]:
            self._few()
        rows, h = self._curved_rows or (self._at.products, self.here.h)
        lines = [rows.squares(h)] + ([rows.combine(h)] if intercept else [])
        return self._at.passes.xp.stack(lines), self.here.mass


def _matrix(values: Any) -> Any:
    """Return a matrix for those who factorise it: a small one here, others where they are."""
    if isinstance(values, np.ndarray) or len(values) < SMALL:
        return np.asarray(to_host(values))
    from adasdca.backends.cuda.kernels.matrix import DeviceMatrix

    return DeviceMatrix(values)
