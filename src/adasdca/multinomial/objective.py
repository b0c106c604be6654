"""The objective of a multinomial model for Newton's method: N·P as a function of W and b."""

from __future__ import annotations

import math
from copy import copy

import numpy as np
from numpy.typing import NDArray

from adasdca.multinomial.certificate import Point, certified
from adasdca.multinomial.equations import StepEquations
from adasdca.multinomial.margins import Multinomial, RowLosses
from adasdca.newton.line import Slope, step_length
from adasdca.newton.moreau import Ridge

Array = NDArray[np.float64]

#: The largest relative residual of conjugate gradients (forcing term).
FORCING = 0.25
#: The smallest factor of it where steps gain little.
TIGHTEST = 1e-6
#: Terms whose sizes add up to less than so many times a slope leave it at least three digits.
CLEAR = 1e12


class MultinomialObjective:
    """N·P at a certified point, where b is best for W.

    Nothing is computed more accurately than a relative gap of `tol` requires. `mu` may be raised
    temporarily; certificates are those of the problem. `length` is that of the last step.
    """

    def __init__(
        self, problem: Multinomial, coef: Array, intercept: Array, tol: float, deadline: float
    ) -> None:
        self.problem, self.tol, self.deadline = problem, tol, deadline
        self.mu, self.length = problem.mu, 1.0
        self._before, self._tight = math.inf, 1.0
        self._equations, self._ridge = StepEquations(problem), Ridge()
        self._begin(coef, intercept)

    def _begin(self, coef: Array, intercept: Array) -> None:
        losses = self.problem.losses(coef, intercept)
        self._arrive(coef, intercept, losses, 1.25 * np.linalg.norm(coef, axis=0), 0)

    def _arrive(
        self, coef: Array, intercept: Array, losses: RowLosses, travel: Array, hops: int
    ) -> None:
        self.point: Point = certified(
            self.problem, coef, intercept, losses, travel, hops, self.tol, self.deadline
        )
        known = self.point.certificate
        far = float(np.linalg.norm(travel)) > 3.0 * float(np.linalg.norm(coef))
        if 2.0 * known.rounding > known.gap and far:
            # Updates over a long path have left rounding in the margins: compute them again.
            self._begin(coef, self.point.intercept)

    def lost(self) -> float:
        """Bound N·P − min N·P, but for rounding."""
        at, share = self.point, self.problem.mu / self.mu
        if share == 1.0:
            return at.lost
        return 0.5 * self.mu * float(np.sum((at.coef - share * at.u) ** 2)) + at.cost

    def value(self) -> float:
        """Return N·P."""
        coef = self.point.coef
        return self.point.losses.value() + 0.5 * self.mu * float(np.vdot(coef, coef))

    def aim(self, deadline: float) -> float | None:
        """Choose the line of the Newton step; return the slope at its beginning."""
        at = self.point
        known = at.certificate
        if self.mu == self.problem.mu and known.gap <= 2.0 * known.rounding:
            return 0.0  # the gap is the bound of rounding alone
        right = self.problem.mu * at.u - self.mu * at.coef
        # Loose far away and tight near the optimum, so that the last steps are quadratic; but no
        # tighter than the goal asks for, the gap being a squared gradient.
        relative = max(known.relative_gap, 1e-300)
        accuracy = max(math.sqrt(relative), 0.5 * math.sqrt(self.tol / relative))
        accuracy = min(accuracy, FORCING)
        # A step that gained little was not exact enough.
        lost = self.lost()
        self._tight = max(0.1 * self._tight, TIGHTEST) if lost > 0.5 * self._before else 1.0
        self._before = lost
        accuracy *= self._tight
        found = self._equations.solve(at.losses, self.mu, right, accuracy, deadline)
        if found is None:
            return None
        self._dw, self._db = found
        if not (np.isfinite(self._dw).all() and np.isfinite(self._db).all()):
            return 0.0
        self._losses = copy(at.losses)
        self._losses.aim(self._dw, self._db)
        self._slope = -float(np.vdot(right, self._dw))
        self._noise = 1e-3 * at.mass * float(np.linalg.norm(self._dw))
        if not self._noise < CLEAR * -self._slope:
            # Where features differ in scale, lengths multiplied are far above the terms' own sum.
            self._noise = 1e-3 * at.dual.reach(np.linalg.norm(self._dw, axis=0))
        return self._slope

    def search(self) -> tuple[float, bool]:
        mu, line = self.mu, self._ridge.along(self.point.coef.ravel(), self._dw.ravel())

        def slope(length: float) -> Slope:
            rows, own = self._losses.slope(length), line(length)
            # Where all scores change nearly alike, U has more rounding than the margins.
            size = rows.size + mu * own.size + self._noise
            return Slope(rows.value + mu * own.value, rows.curvature + mu * own.curvature, size)

        return step_length(slope, self._slope)

    def move(self, length: float) -> None:
        at = self.point
        self.length = length
        self._losses.move(length)
        coef = at.coef + length * self._dw
        intercept = at.intercept + length * self._db
        # W and the way to it are rounded as well, by an eighth of what a product of rows may be.
        travel = length * 1.125 * np.linalg.norm(self._dw, axis=0)
        travel += 0.125 * np.linalg.norm(coef, axis=0)
        self._arrive(coef, intercept, self._losses, at.travel + travel, at.hops + 1)

    def keep(self) -> None:
        self._best = self.point

    def recall(self) -> None:
        self.point = self._best
