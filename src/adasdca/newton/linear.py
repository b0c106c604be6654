"""The objective of a linear model for Newton's method: a term of the rows and a penalty.

    f(v, b) = Σ_i c_i φ_i(x_i·v + b) + μ E(v),    μ = λN,

which is N·P where the penalty E is the regulariser itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.abilities import (
    Descender,
    ExactTerm,
    LineSearcher,
    Rounds,
    VectorKeeper,
    able,
)
from adasdca.backends.term import RowTerm
from adasdca.duality.certificate import Certificate
from adasdca.newton.equations import Equations, Step
from adasdca.newton.line import Slope, StraightLine, step_length
from adasdca.newton.moreau import Penalty, Ridge
from adasdca.newton.newton import ENDINGS, Ending, Share
from adasdca.problem.device_rows import to_host

Array = NDArray[np.float64]

#: The longest step of the intercept, in units of the mean residual.
FARTHEST = 1e12
#: A step that gains less than this share of the value is lost in rounding. The bound on what is
#: left to gain does not tell: where the penalty is weak, it is the rounding of slopes.
HIDDEN = 1e-13
#: Full steps that mend the last digits of a point. Each leaves the relative error of its equations,
#: 1e-8 at worst.
SETTLING = 3
#: The equations of the last step may leave the square of this share of what may be left to gain.
LEAVING = 0.3
#: The rounding errors of v where these are not kept.
NOTHING = np.zeros(0)
#: Solves the equations of a step. With `afford` and `pay` it lets a term take several steps in one
#: call: as many as the budget can pay.
Solver = Callable[[RowTerm, Equations, float], Step | None]


def lost_in(a: Any, b: Any, total: Any) -> Any:
    """Return a + b − total without rounding, where total is their sum in doubles (D. E. Knuth)."""
    second = total - a
    return (a - (total - second)) + (b - second)


class Point(NamedTuple):
    """A primal point v with its w, b, and a dual one with its u."""

    v: Array
    b: float
    w: Array
    u: Array
    duals: Any


@dataclass
class Best:
    """The best certified point so far."""

    w: Array
    b: float
    duals: Any
    certificate: Certificate


class LinearObjective:
    """f at a point (v, b) that it remembers.

    Parameters
    ----------
    intercept : bool
        Whether b is free; it is 0 otherwise.
    rounded : bool
        Whether the kinks of the loss are rounded in the term: its duals are then feasible for the
        loss itself only after their heavier side is scaled down.
    value : float
        f there, about: the price of a share of the duals.
    sample : int, optional
        So many rows may stand for all in the curvature, as long as the steps carry on.

    Attributes
    ----------
    enough : float
        What may be left to gain; no step has to leave less.
    rounds : Rounds, optional
        How a term that takes all steps in one call goes on to the next round.
    length : float, optional
        Over which kinks were rounded in the last of these.
    """

    def __init__(
        self,
        term: RowTerm,
        penalty: Penalty,
        mu: float,
        intercept: bool,
        rounded: bool,
        solve: Solver,
        v: Array,
        b: float,
        value: float = 0.0,
        sample: int | None = None,
    ) -> None:
        self.enough = 0.0
        self.rounds: Rounds | None = None
        self.length: float | None = None
        self.value, self.sample, self._last = value, sample, math.inf
        self.term, self.penalty, self.mu = term, penalty, mu
        self._exact: ExactTerm | None = able(term, ExactTerm)
        self._searcher: LineSearcher | None = able(term, LineSearcher)
        self.intercept, self.rounded, self._solve = intercept, rounded, solve
        rest = NOTHING if self._exact is None else np.zeros_like(v)
        plain = isinstance(penalty, Ridge) and isinstance(penalty.eta, float)
        self._keeper: VectorKeeper | None = able(term, VectorKeeper) if plain else None
        self._v, self.b, self._rest = self._bring(v), b, (rest, 0.0)
        self._copied: tuple[Any, Array] = v, v
        self._placed = False

    def _bring(self, x: Array) -> Any:
        """Return a vector of features where steps keep theirs."""
        return x if self._keeper is None else self._keeper.bring(x)

    def _here_of(self, x: Any) -> Array:
        """Return a vector of steps in this process, the same for the same."""
        if self._copied[0] is not x:
            self._copied = x, to_host(x)
        return self._copied[1]

    @property
    def v(self) -> Array:
        """The point."""
        return self._here_of(self._v)

    def _place(self) -> None:
        """Let the term be where this is: before the first step, unless the term takes all."""
        if not self._placed:
            self._go(self._v, self.b, self._rest)

    def _go(self, v: Any, b: float, rest: tuple[Array, float]) -> None:
        self._v, self.b, self._rest, self._placed = v, b, rest, True
        if self._exact is None:
            self._derivatives = self.term.place(v, b)
        else:
            self._derivatives = self._exact.place_exactly(v, b, rest)
        self._settle()

    def _ahead(self, length: float) -> tuple[Array, float, tuple[Array, float]]:
        """Return a point of the line, and its rounding errors.

        Where v and b are large beside the residuals, their last digits are too coarse for duals.
        So Newton's method keeps v and b in twice the digits, and rounds them at its end.
        """
        step = length * self._dv + self._rest[0], length * self._db + self._rest[1]
        v, b = self._v + step[0], self.b + step[1]
        return v, b, (lost_in(self._v, step[0], v), lost_in(self.b, step[1], b))

    def _settle(self) -> None:
        """Take note of the penalty at the new point, and of what is left to gain there."""
        self._penalty = self.penalty.at(self._v)
        self._dual_residual = self._derivatives.u - self._penalty.gradient
        self._lost = math.nan  # until it is asked for

    @property
    def w(self) -> Array:
        """The coefficients that belong to v."""
        self._place()
        return self._here_of(self._penalty.w)

    @property
    def u(self) -> Array:
        """The dual point of the features."""
        self._place()
        return np.asarray(to_host(self._derivatives.u))

    def lost(self) -> float:
        """Return a bound on f − min f."""
        self._place()
        if math.isnan(self._lost):
            self._lost = self._bound()
        return self._lost

    def _bound(self) -> float:
        """Bound f − min f by the conjugate: E(v) + E*(u) − u·v, and what the intercept may gain."""
        dual_residual = self._dual_residual
        lost = self.mu * self.penalty.excess(dual_residual) + self.value * self.penalty.violation(
            dual_residual
        )
        balance, mass = self._derivatives.balance, self._derivatives.mass
        if self.intercept and balance != 0:
            steep = abs(balance) * self.term.residual
            flat = 0.5 * balance**2 / mass if mass > 0 else math.inf
            lost += steep if self.rounded else min(steep, flat)
        return lost if math.isfinite(lost) else math.inf

    def aim(self, deadline: float) -> float | None:
        """Choose the line of the Newton step; return the slope at its beginning."""
        lost = self.lost()
        right = self.mu * self._dual_residual
        balance = self._derivatives.balance if self.intercept else 0.0
        # Steps by a sample of the rows that gain little have left out rows that matter.
        if lost > 0.5 * self._last:
            self.sample = None
        self._last = lost
        # What is left to gain is quadratic in what is left of the right-hand side.
        enough = LEAVING * math.sqrt(self.enough / lost) if lost > 0 else 0.0
        stiff = self.mu * self.penalty.secant(self._penalty, self._dual_residual)
        numbers = self.intercept, self.sample, enough, self.value
        equations = Equations(
            stiff, right, balance, *numbers, gradient=self.mu * self._penalty.gradient
        )
        found = self._solve(self.term, equations, deadline)
        if found is None:
            return None
        self._dv, self._db = self._bring(found[0]), found[1]
        if self.intercept and self._derivatives.mass == 0 and balance != 0:
            # No row has curvature: any length will do, and the line search corrects it.
            self._db = math.copysign(self.term.residual, balance)
        slope = -float(right @ self._dv) - balance * self._db
        if not math.isfinite(slope):
            return 0.0
        farthest = FARTHEST * self.term.residual if self.intercept else math.inf
        if abs(self._db) > farthest > 0:
            # Hardly any curvature is left: take a shorter step on the same line.
            share = farthest / abs(self._db)
            self._dv, self._db, slope = share * self._dv, share * self._db, share * slope
        self.term.aim(self._dv, self._db)
        self._slope = slope
        return slope

    def search(self) -> tuple[float, bool]:
        mu, rest = self.mu, self.penalty.along(self._v, self._dv)
        if self._searcher is not None and isinstance(rest, StraightLine):
            straight = mu * rest.value, mu * rest.curvature, mu * rest.size
            length, sharp = self._searcher.search(straight, self._slope)
        else:

            def slope(length: float) -> Slope:
                rows, own = self.term.slope(length), rest(length)
                return Slope(
                    rows.value + mu * own.value,
                    rows.curvature + mu * own.curvature,
                    rows.size + mu * own.size,
                )

            length, sharp = step_length(slope, self._slope)
        return length, sharp and -length * self._slope > HIDDEN * self.value

    def move(self, length: float) -> None:
        # The slope rises from its first value to about 0, about linearly, and f is positive.
        self.value = max(self.value + 0.5 * length * self._slope, 0.1 * self.value)
        if self._exact is not None:
            self._go(*self._ahead(length))
            return
        self._v = self._v + length * self._dv
        self.b += length * self._db
        self._derivatives = self.term.move(length)
        self._settle()

    def descend(
        self, enough: float | Callable[[], float], deadline: float, most: int
    ) -> tuple[Ending, int] | None:
        """Take all steps in one call of the term; None where it has none, or another way is due."""
        afford = getattr(self._solve, "afford", None)
        term: Descender | None = able(self.term, Descender)
        if term is None or not isinstance(self.penalty, Ridge):
            return None
        if afford is None or self._exact is not None or self.sample is not None:
            return None
        if isinstance(enough, Share):
            goal = 0.0, enough.share
        elif callable(enough):
            return None
        else:
            goal = enough, 0.0
        allowed: int = min(most, afford(term.size))
        if allowed == 0 or time.perf_counter() >= deadline:
            return None
        stiff = np.empty_like(self._v)
        stiff[:] = self.mu * self.penalty.eta
        at, free = (self._v, self.b, self.value), (self.intercept, self.rounded)
        found = term.descend(at, stiff, free, (*goal, allowed), deadline, self.rounds)
        self._v, self.b, self.value, self._derivatives = found[4:]
        self.length, self._placed = found.length, True
        ending = ENDINGS[found.ending]
        self._settle()
        self._solve.pay(found.taken)  # type: ignore[attr-defined]
        if ending is Ending.STEPS and allowed < most:
            ending = Ending.TIME  # the budget has ended them
        return ending, found.steps

    def points(self, deadline: float) -> Iterator[Point]:
        """Yield this point, and where the term is exact the points with better last digits."""
        self._place()
        yield self._here()
        if self._exact is None or self._derivatives.mass == 0:
            return
        for _ in range(SETTLING):
            if self.aim(deadline) is None:
                return
            self._v, self.b, self._rest = self._ahead(1.0)
            self._derivatives = self._exact.settle()
            self._settle()
            yield self._here()

    def _here(self) -> Point:
        return Point(self.v, self.b, self.w, self.u, self.term.duals())

    def keep(self) -> None:
        self._best = self._v, self.b, self._rest

    def recall(self) -> None:
        if self._best[0] is not self._v:
            self._go(*self._best)
