"""The objective of a multinomial model for Newton's method: N·P as a function of W and b."""

from __future__ import annotations

import math
from copy import copy

import numpy as np
from numpy.typing import NDArray

from adasdca.multinomial.certificate import Point, certified
from adasdca.multinomial.equations import FORCING, solve_step
from adasdca.multinomial.margins import Multinomial, RowLosses
from adasdca.newton.line import Slope
from adasdca.newton.moreau import Ridge

Array = NDArray[np.float64]


class MultinomialObjective:
    """N·P at a certified point, where b is best for W.

    Parameters
    ----------
    problem : Multinomial
        The problem.
    coef, intercept : (K, d) array, (K,) array
        Where to begin.
    tol : float
        The relative gap asked for: nothing need be more exact.
    deadline : float
        When to stop, on the clock of `time.perf_counter`.
    """

    def __init__(
        self, problem: Multinomial, coef: Array, intercept: Array, tol: float, deadline: float
    ) -> None:
        self.problem, self.tol, self.deadline = problem, tol, deadline
        self._ridge = Ridge()
        margins = problem.margins(coef, intercept) if coef.any() else problem.shifts(intercept)
        travel = 1.25 * float(np.linalg.norm(coef))
        self._arrive(coef, intercept, RowLosses(problem, margins), travel, 0)

    def _arrive(
        self, coef: Array, intercept: Array, losses: RowLosses, travel: float, hops: int
    ) -> None:
        self.point: Point = certified(
            self.problem, coef, intercept, losses, travel, hops, self.tol, self.deadline
        )

    def lost(self) -> float:
        """Bound N·P − min N·P, but for rounding."""
        return self.point.lost

    def aim(self, deadline: float) -> float | None:
        """Choose the line of the Newton step; return the slope at its beginning."""
        at = self.point
        right = self.problem.mu * (at.u - at.coef)
        relative = at.certificate.relative_gap
        # Loose far away and tight near the optimum, so that the last steps are quadratic; but no
        # tighter than the goal asks for, the gap being a squared gradient.
        accuracy = (
            min(FORCING, max(math.sqrt(relative), 0.5 * math.sqrt(self.tol / relative)))
            if relative > 0
            else FORCING
        )
        found = solve_step(self.problem, at.losses, right, accuracy, deadline)
        if found is None:
            return None
        self._dw, self._db = found
        if not (np.isfinite(self._dw).all() and np.isfinite(self._db).all()):
            return 0.0
        self._losses = copy(at.losses)
        self._losses.aim(self.problem.margins(self._dw, self._db))
        return -float(np.vdot(right, self._dw))

    def slope(self, length: float) -> Slope:
        """Return the slope along the line."""
        mu, rows = self.problem.mu, self._losses.slope(length)
        value, bend, size = self._ridge.slope(self.point.coef.ravel(), self._dw.ravel(), length)
        return Slope(rows.value + mu * value, rows.bend + mu * bend, rows.size + mu * size)

    def move(self, length: float) -> None:
        """Go along the line."""
        at = self.point
        self._losses.move(length)
        coef = at.coef + length * self._dw
        intercept = at.intercept + length * self._db
        # W and the way to it are rounded as well, by an eighth of what a product of rows may be.
        travel = length * 1.125 * float(np.linalg.norm(self._dw)) + 0.125 * float(
            np.linalg.norm(coef)
        )
        self._arrive(coef, intercept, self._losses, at.travel + travel, at.hops + 1)

    def keep(self) -> None:
        """Remember this point as the best so far."""
        self._best = self.point

    def recall(self) -> None:
        """Go back to the best point."""
        self.point = self._best
