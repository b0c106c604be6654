"""A primal-dual interior-point method for piecewise quadratic losses, L1 terms and bounds.

A logarithmic barrier keeps the duals of the rows and the coefficients inside their bounds, and its
weight goes to 0. Ten to forty factorisations lead from anywhere to about seven digits, however hard
the problem is for rounds of multipliers, which cross its kinks one after the other. But every row
takes part in every step, and the last digits are left to rounds. A factorisation serves several
directions: the predictor of Mehrotra and the correctors of Gondzio, mixed by the weights that allow
the longest step. (S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM
Journal on Optimization 2, 1992; M. Colombo and J. Gondzio, "Further development of multiple
centrality correctors for interior point methods", Computational Optimization and Applications 41,
2008.)
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.abilities import Interpolator, able
from adasdca.backends.backend import Backend
from adasdca.backends.barrier import Barrier
from adasdca.backends.interior import InteriorTerm
from adasdca.duality.certificate import Certificate, CertificateError
from adasdca.newton.budget import Budget
from adasdca.newton.linear import Best
from adasdca.newton.newton import Ending

Array = NDArray[np.float64]

#: The share of the way to the nearest bound that a step takes.
NEARLY = 0.995
#: The complementarity products of the start, in units of a row's mean residual.
FIRST = 1.0
#: The size of the scores at the start, in units of the mean residual.
SMALL = 1.0
#: Directions are mixed by the best of so many weights.
SHARES = 5
#: Gondzio's correctors: most of them in a step, by how much each is to lengthen the step, and the
#: least share of that length that it must gain for another one to follow.
CORRECTIONS, FARTHER, GAINING = 3, 0.3, 0.1
#: Residuals below this share of those at the start count as 0.
FEASIBLE = 1e-12
#: Steps in a row that do not lower the gap, after which nothing but rounding is left; most steps.
IDLE, MOST = 5, 100
#: The rest of the path may cost so many times the budget of the whole phase.
STRETCH = 3.0
#: Steps that are expected from the start (6 to 39 on problems of four wide data sets, 12 in the
#: median), and the number of last steps whose pace is extrapolated.
EXPECTED, PACE = 16.0, 6


def affordable(steps: float, budget: Budget) -> bool:
    """Whether so many steps are taken whatever else the budget has paid for."""
    return steps * budget.path <= STRETCH * budget.most


class CentralPath:
    """The central path of a problem, and how far it has been gone.

    It may be left and gone on from where it was left.
    """

    def __init__(self, backend: Backend, rows: InteriorTerm) -> None:
        self._backend, self._rows = backend, rows
        self._gaps: list[float] = []  # the least relative gap, point by point
        self._steps = 0
        self._start: tuple[float, Any] | None = None  # the intercept and the duals given at first
        self.best: Best | None = None  #: The best point so far.

    @classmethod
    def of(cls, backend: Backend) -> CentralPath | None:
        """Return the path of a backend; None if it has none."""
        rows = backend.interior()
        return None if rows is None else cls(backend, rows)

    @property
    def begun(self) -> bool:
        """Whether it was begun."""
        return self._start is not None

    @property
    def gone(self) -> tuple[float, Any, int] | None:
        """What `again` asks for: where it began, and the steps taken; None if it was not begun."""
        return None if self._start is None else (*self._start, self._steps)

    def again(self, gone: tuple[float, Any, int], best: Best) -> None:
        """Take the steps of another path, which nothing but their beginning decides."""
        b, duals, steps = gone
        self._begin(b, duals, len(best.w))
        self.follow(best, 0.0, math.inf, most=steps)

    def steps_left(self, target: float) -> float:
        """Return how many steps more are expected to a relative gap.

        That is at the pace of the last ones, once there have been as many as usual: the first ones
        may bring nothing, and the last ones most.
        """
        usual = EXPECTED - self._steps
        if self._steps < PACE or not self._gaps[-1] < 1:
            return max(usual, 1.0)
        fall = math.log(min(self._gaps[-1 - PACE], 1.0) / self._gaps[-1]) / PACE
        need = math.log(max(self._gaps[-1] / max(target, 1e-15), 1.0))
        left = min(need / fall, MOST) if fall > 0 else MOST
        return min(left, usual) if usual >= PACE else left

    def _begin(self, b: float, duals: Any, d: int) -> None:
        """Begin at w = 0 and at an intercept; the duals tell the weight of the rows."""
        backend, rows = self._backend, self._rows
        problem = backend.problem
        g, mu = problem.regularizer, problem.mu
        lower, upper = g.bounds or (-np.inf, np.inf)
        self._start = b, duals
        self._features = Barrier(np.full(d, mu), g.curvature, 0.0, g.threshold, lower, upper)
        self._b = b
        mean_weight = problem.total / backend.facts.n
        _, residual = backend.freedom(np.zeros(d), b, duals)
        residual = residual or 1.0
        tau = FIRST * mean_weight * residual
        squares = backend.column_squares() / problem.total
        size = SMALL * residual / np.sqrt(np.where(squares > 0, squares, 1.0) * d)
        zero = np.zeros(d)
        self._resting = g.primal(zero)
        self._features.start(zero, zero, size, tau)
        self._u = rows.start(self._features.s, self._b, tau)
        self._features.start(zero, self._u, size, tau)
        self._least, self._idle, self._infeasible = math.inf, 0, 1.0

    def follow(
        self,
        best: Best,
        target: float,
        deadline: float,
        budget: Budget | None = None,
        most: int = MOST,
    ) -> tuple[Best, Ending]:
        """Go on along the path; return the best point on it, or that given.

        Parameters
        ----------
        best : Best
            The best point so far; the path begins at its intercept.
        budget : Budget, optional
            What the steps may cost. The path is followed to its end all the same if the rest is
            expected to be no longer than what lies behind, or to cost a few times the budget: the
            cost of the path is known in advance, that of anything else is not.
        most : int
            Most steps of the whole path.
        """
        budget = budget or Budget()
        if not self.begun:
            self._begin(best.b, best.duals, len(best.w))
        problem, rows, features = self._backend.problem, self._rows, self._features
        while self._steps < most:
            best, gap = self._look(best, target)
            self.best = best
            if best.certificate.relative_gap <= target:
                return best, Ending.REACHED
            left = self.steps_left(target)
            short = left <= self._steps or affordable(left, budget)
            if (budget.over and not short) or time.perf_counter() >= deadline:
                return best, Ending.TIME
            budget.pay(budget.path)
            products = rows.products(0.0) + features.products(0.0)
            rest = self._infeasible < FEASIBLE and products < self._least * problem.total
            self._idle = self._idle + 1 if rest and gap > 0.9 * self._least else 0
            self._least = min(self._least, gap)
            hidden = best.certificate.gap <= 2.0 * best.certificate.rounding
            if hidden or self._idle >= IDLE:
                break
            ending = self._step(products, deadline)
            if ending is not None:
                return best, ending
        here = self._features.s, self._b, rows.duals()
        return interpolated(self._backend, best, target, deadline, here)

    def _look(self, best: Best, target: float) -> tuple[Best, float]:
        """Return the better of two points, that given and that of the path, and the path's gap."""
        backend, g = self._backend, self._backend.problem.regularizer
        w, duals = self._features.s, self._rows.duals()
        points = [w]
        if not g.is_ridge:
            # No coefficient of the path is at its bound or at 0. The dual point says which are.
            resting = self._resting
            points = [np.where(g.primal(self._u) == resting, resting, w), w]
        w, found = _certified(backend, points, self._b, duals, target)
        relative = found.relative_gap if math.isfinite(found.gap) else math.inf
        if len(self._gaps) == self._steps:
            self._gaps.append(min(relative, *self._gaps[-1:], math.inf))
        if found.gap < best.certificate.gap:
            best = Best(w, self._b, duals, found)
        return best, found.gap

    def _step(self, products: float, deadline: float) -> Ending | None:
        """Take a step; return why the path ends here, if it does."""
        problem, rows, features = self._backend.problem, self._rows, self._features
        features.linearise(self._u)
        rows.linearise()
        diagonal: float | Array = problem.mu
        if not problem.regularizer.is_ridge:
            diagonal = problem.mu / features.h
        if not rows.factorise(diagonal, deadline):
            late = time.perf_counter() >= deadline
            return Ending.TIME if late else Ending.EXHAUSTED
        step: tuple[Array, float] = np.zeros_like(self._u), 0.0
        step, most = self._aim(diagonal, step, (1.0,))
        count = rows.count + features.count
        if count > 0:
            full = min(most, 1.0)
            left = rows.products(full) + features.products(full)
            tau = max(left / products, 0.0) ** 3 * products / count
            features.correct(tau)
            rows.correct(tau)
            # A step that is cut short has a corrector for a length that it does not take. Without
            # a smaller weight the steps may cycle.
            step, most = self._aim(diagonal, step, np.linspace(1.0, full**2, SHARES))
            for _ in range(CORRECTIONS):
                if most >= 1.0:
                    break
                farther = min(most + FARTHER, 1.0)
                features.centre(tau, farther)
                rows.centre(tau, farther)
                before = most
                step, most = self._aim(diagonal, step, np.linspace(1.0, 0.0, SHARES))
                if most < before + GAINING * FARTHER:
                    break
        (dw, db), length = step, min(NEARLY * most, 1.0)
        if not (np.isfinite(dw).all() and math.isfinite(db) and length > 0):
            return Ending.EXHAUSTED
        self._steps += 1
        self._infeasible *= 1.0 - length  # as linear residuals do
        features.move(length)
        self._b += length * db
        self._u = rows.move(length, features.s, self._b)
        return None

    def _aim(
        self, diagonal: float | Array, step: tuple[Array, float], shares: Iterable[float]
    ) -> tuple[tuple[Array, float], float]:
        """Mix a step with the next one, by the share that goes farthest; return it, and how far."""
        rows, features = self._rows, self._features
        dw, db = rows.aim(diagonal * features.kappa)
        features.aim(dw)
        most, share = max((min(rows.reach(s), features.reach(s)), s) for s in shares)
        rows.mix(share)
        features.mix(share)
        return (step[0] + share * (dw - step[0]), step[1] + share * (db - step[1])), most


def interpolated(
    backend: Backend,
    best: Best,
    target: float,
    deadline: float,
    here: tuple[Array, float, Any] | None = None,
) -> tuple[Best, Ending]:
    """Return the best point where rounding has ended a method, digits of w moved if that helps.

    Parameters
    ----------
    here : (w, b, duals), optional
        Where they are moved, if that is not the best point.
    """
    finer: Interpolator | None = able(backend, Interpolator)
    # What bounds of rounding make of the gap, no digit of w takes back (100 x 10, hinge: a quarter
    # of a solve).
    hidden = best.certificate.gap <= 2.0 * best.certificate.rounding
    if finer is not None and backend.problem.loss.smoothness == 0 and not hidden:
        w, b, duals = here or (best.w, best.b, best.duals)
        moved = finer.interpolate(w, b, duals, deadline)
        if moved is not None:
            moved, found = _certified(backend, [moved], b, duals, target)
            if found.gap < best.certificate.gap:
                best = Best(moved, b, duals, found)
    reached = best.certificate.relative_gap <= target
    return best, Ending.REACHED if reached else Ending.EXHAUSTED


def _certified(
    backend: Backend, points: list[Array], b: float, duals: Any, target: float
) -> tuple[Array, Certificate]:
    """Return the first point that reaches the target, or that of the least gap.

    Far from the end a dual point may be beyond what can be certified.
    """
    least = points[-1], Certificate(math.inf, -math.inf, math.inf, math.inf)
    for w in points:
        try:
            found = backend.certify(w, b, duals)
        except CertificateError:
            continue
        if found.gap < least[1].gap:
            least = w, found
        if found.relative_gap <= target:
            break
    return least
