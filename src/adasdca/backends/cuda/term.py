"""The rows' part of a second-order objective, for rows on a device."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.abilities import Preconditioned
from adasdca.backends.base import Derivatives, Gram, RowSlope
from adasdca.backends.cuda.products import EVERY, Products, RowChoice, System
from adasdca.backends.term import RowTerm, WeightedRows
from adasdca.problem.device_rows import to_host

Array = NDArray[np.float64]

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


class Others(NamedTuple):
    """Rows that a working set leaves out: their duals stay."""

    duals: Any  #: (n,), of all rows.
    chosen: Any  #: Numbers of the rows that are not left out.
    #: Their parts of u, where the rows are, of Σ c_iβ_i, and of Σ |t − z| as these were last seen.
    u: Any
    balance: float
    residual: float


class DeviceTerm(RowTerm):
    """The `RowTerm` of rows on a device, which may be a working set beside `others`."""

    def __init__(
        self,
        at: WeightedRows,
        length: float,
        centre: Any,
        at_hand: tuple[Any, Any],
        others: Others | None = None,
    ) -> None:
        super().__init__(at, length, centre, at_hand)
        self._others, self._held = others, 0.0
        self._samples, self._asked, self._there = 0, 0, False
        self._curved_rows: tuple[Any, Any] | None = None

    # -- the point

    def bring(self, x: Any) -> Any:
        """Return a vector of features where steps are to keep theirs: long ones with the rows."""
        if len(x) < LONG:
            return x
        there = self._at.passes.xp.asarray(x)
        if x is self._at_hand[0]:
            self._at_hand = there, self._at_hand[1]
        return there

    def go(self, v: Any, b: float) -> None:
        self._there = not isinstance(v, np.ndarray)
        super().go(v, b)

    def move(self, length: float) -> Derivatives:
        if length != 1.0 or self._ahead is None:
            return super().move(length)
        self._arrive(self.here.scores, self.change, length)
        # The sum at the end of the whole step has come with the line.
        return self._together(self._ahead / self._at.mu)

    def _arrive(self, scores: Any, change: Any, step: float) -> None:
        super()._arrive(scores, change, step)
        self._asked, self._curved_rows = 0, None

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
    def residual(self) -> float:
        if self._others is None:
            return super().residual
        # Rows near their kinks have next to none, and what is left of Σ c_iβ_i is paid by all.
        return (self.here.residual + self._others.residual) / len(self._others.duals)

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
        self.change, self._ahead = self._at.rows.line(
            dv, db, self.here.scores, self._at.passes, self.centre, self.length
        )
        if self._others is not None:  # their part of the slope
            self._held = self._at.mu * float(self._others.u @ dv) + self._others.balance * db

    def slope(self, length: float) -> RowSlope:
        value, curvature, size = super().slope(length)
        return RowSlope(value - self._held, curvature, size + abs(self._held))

    # -- the curvature

    def gram(
        self,
        intercept: bool,
        deadline: float,
        sample: int | None = None,
        combined: bool = False,
        rough: bool = False,
    ) -> Gram | None:
        at, h, (n, d) = self._at, self.here.h, self._at.rows.shape
        rows, refined = EVERY, False
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
        found = at.rows.gram(h, centre, deadline, rows)
        if found is None:
            return None
        # A sample is to be as large as all; where it has no curvature it says nothing.
        mass = float(found[d, d])
        share = self.here.mass / mass if rows.size and mass > 0 else 1.0
        formed = self._formed(found, intercept, combined, share)
        if refined and rows.size:
            if formed.mass > 0:
                column = np.asarray(to_host(at.rows.combine(h)))
                formed = formed._replace(column=column, mass=self.here.mass)
            product = self.centred(formed.column, formed.mass)
            formed = formed._replace(product=product)
        return formed._replace(matrix=_matrix(formed.matrix))

    def curve(self, p: Any, q: float) -> tuple[Any, float]:
        """Return Σ_i h_i (x_i·p + q) x_i and Σ_i h_i (x_i·p + q), where p is."""
        self._asked += 1
        if self._asked == PRODUCTS:
            self._few()
        rows, h = self._curved_rows or (self._at.rows, self.here.h)
        found, image = rows.curve(h, p, q)
        return (to_host(found) if isinstance(p, np.ndarray) else found), float(image.sum())

    def _few(self) -> tuple[Products, Any] | None:
        """Copy the rows with curvature, where these are few."""
        if self._curved_rows is None and 0 < self.curved <= SCARCE * self._at.n:
            index = self.here.h.nonzero()[0]
            rows = self._at.rows.take_rows(index)
            self._curved_rows = None if rows is None else (rows, self.here.h[index])
        return self._curved_rows

    def iterate(
        self, equations: Preconditioned, accuracy: float, deadline: float, most: int
    ) -> Any:
        """Solve by conjugate gradients where the rows are; None if time ran out."""
        own = equations.own + self._at.passes.xp.zeros_like(equations.scale)
        system = System(self.here.h, own, *equations[1:], accuracy)
        wait = 0 if self._curved_rows else PRODUCTS
        return self._at.rows.iterate(system, self._few, wait, deadline, most)

    def diagonal(self, intercept: bool) -> tuple[Any, float]:
        """Return Σ_i h_i x_ij² and, if that is asked, Σ_i h_i x_ij, where the rows are; Σ_i h_i."""
        if self.curved <= EARLY * self._at.n:
            self._few()
        rows, h = self._curved_rows or (self._at.rows, self.here.h)
        return self._lines(rows, h, intercept), self.here.mass


def _matrix(values: Any) -> Any:
    """Return a matrix for those who factorise it: a small one here, others where they are."""
    if isinstance(values, np.ndarray) or len(values) < SMALL:
        return np.asarray(to_host(values))
    from adasdca.backends.cuda.kernels.matrix import DeviceMatrix

    return DeviceMatrix(values)
