"""The finish of losses with kinks: which duals are free, and what they are.

At the optimum a row away from its kinks has the dual that its slope says; the duals of the rows on
their kinks are free, and few. The method of multipliers finds both: it solves the problem with the
kinks rounded over a length γ about the duals at hand, takes the duals of that solution, and repeats
this with a smaller γ. D rises from one to the next whatever γ is, so nothing can cycle, and the
smaller γ the fewer are needed. Rows that are far from their kinks, and right about it, keep their
duals and need not be read, so each problem is one of a few rows (`adasdca.newton.patch`).
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.ascent.survey import Survey
from adasdca.newton.patch import Kinks, Patch, Point, dot
from adasdca.newton.rounding import Ridge, regulariser
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: Parts of P that double precision cannot show.
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
#: The largest stiffness of the regulariser; v − w must keep digits.
STIFFEST = 1e10


class FreeDuals:
    """The method of multipliers on the duals of a loss with kinks.

    Parameters
    ----------
    problem : Problem
        The problem.
    workspace : Workspace
        The rows, and the iterate from which to begin and to which the result is given.
    threads : int
        Threads for passes over the rows.
    """

    #: Rounds without the gap halving after which no more is to be had.
    patience = 3
    #: The first γ, in units of the one at which moves by 1 of the free duals would cost the gap.
    first = 5.0
    #: and its ends, in units of the mean residual; below the lower one duals are rounding.
    widest, narrowest = 4.0, 1e-6
    #: How exactly a rounded problem is solved, in units of the gap.
    share = 0.03
    #: γ falls by `shrink`, and by `leap` more after a problem of no more Newton steps than `easy`.
    shrink, leap, easy = 0.1, 0.3, 3
    #: Rows are taken to be near a kink within so many times the mean move of the scores before.
    near = 5.0

    def __init__(self, problem: Problem, workspace: _core.Workspace, threads: int) -> None:
        self.problem = problem
        self.workspace = workspace
        self.threads = threads
        self.kinks = Kinks.of(problem)
        self.regulariser = regulariser(problem)

    def run(self, survey: Survey, target: float, rounds: int, seconds: float) -> int:
        """Improve a survey's point until gap ≤ target·primal or nothing helps.

        Leaves the workspace at the best primal and the best dual point seen, or untouched if these
        are the survey's, and returns the number of rounds.
        """
        if survey.gap <= target * survey.primal:
            return 0
        deadline = time.perf_counter() + seconds
        kinks, total = self.kinks, self.problem.total
        u = np.empty(self.workspace.d)
        if type(self.regulariser) is Ridge:
            self.workspace.coef(u)
        else:
            self.workspace.combine(survey.beta, u, self.threads)
        dual = kinks.sign * survey.beta
        point = Point(survey.coef, survey.intercept, np.empty(0), dual, u)
        point.z = self._scores(point)
        primal, coef, bias = survey.primal, survey.coef, survey.intercept
        value, best = survey.dual, dual
        mass = dot(kinks.weight, kinks.free(dual).astype(np.float64))
        mass = max(mass, total * min(1.0, len(u) / len(dual)))
        # More than the rows differ by is no use.
        spread = dot(kinks.weight, np.abs(kinks.target - point.z)) / total
        gamma = 2.0 * self.first * survey.gap * total / mass
        floor = self.narrowest * spread
        if spread > 0:
            gamma = max(min(gamma, self.widest * spread / (kinks.upper - kinks.lower)), floor)
        # As stiff as the rounded loss is, by the mean over the features.
        rho = max(float(survey.curvature.sum()) * mass / (total * gamma * len(u)), 1.0)
        reach, shrink, waited, taken = None, self.shrink, 0, 0
        while taken < rounds and waited < self.patience and time.perf_counter() < deadline:
            gap = primal - value
            enough = max(self.share * gap, (0.1 * target + ROUNDING) * primal)
            rows = self._choose(point, reach)
            patch = Patch(self.problem, kinks, rows, point)
            found, good = patch.minimise(point, gamma, rho, total * enough, deadline)
            taken += 1
            dual = point.dual.copy()
            dual[rows] = found.dual
            following = Point(found.w, found.bias, np.empty(0), dual, found.u)
            following.z = self._scores(following)
            new_primal, new_value = self._values(following)
            if new_primal < primal:
                primal, coef, bias = new_primal, following.w, following.bias
            if new_value > value:
                value, best = new_value, dual
            if primal - value <= target * primal:
                break
            waited = 0 if primal - value < 0.5 * gap else waited + 1
            reach = self.near * float(np.abs(following.z - point.z)[rows].mean())
            if good:
                factor = shrink if patch.steps > self.easy else shrink * self.leap
            else:
                # Too short a length for the centre at hand: w may stay, the centre does.
                following.dual, following.u = point.dual, point.u
                factor, shrink = 1.0 / self.shrink, 0.3
            gamma, rho = max(factor * gamma, floor), min(rho / factor, STIFFEST)
            point = following
        if primal < survey.primal or value > survey.dual:
            self.workspace.place(kinks.sign * best, self.regulariser.source(coef), bias)
        return taken

    def _scores(self, point: Point) -> Array:
        """Return the scores of all rows, in their own coordinates."""
        scores = _core.vector(self.workspace.n)
        self.workspace.scores(point.w, scores, self.threads)
        scores += point.bias
        scores *= self.kinks.sign
        return scores

    def _values(self, point: Point) -> tuple[float, float]:
        """Return P and D, with an intercept D where Σ c_iβ_i = 0."""
        kinks, problem = self.kinks, self.problem
        primal = self.workspace.primal_value(kinks.sign * point.z, 0.0, point.w)
        if problem.fit_intercept:
            balanced = _core.vector(self.workspace.n)
            beta = kinks.sign * point.dual
            self.workspace.balanced_dual(beta, 0.0, beta, balanced)
            return primal, self.workspace.dual_value(balanced, self.threads)
        penalty = self.workspace.penalty_conjugate(point.u)
        return primal, kinks.linear(point.dual) / problem.total - penalty

    def _choose(self, point: Point, reach: float | None) -> Index:
        """Return the rows whose duals are free, wrong, or near a kink."""
        kinks = self.kinks
        distance = kinks.distance(point.z)
        moving = (point.dual != kinks.slopes(point.z)) & (kinks.weight > 0)
        distance[moving] = 0.0
        distance[kinks.weight == 0] = np.inf
        count = int(np.count_nonzero(moving))
        # At first as many more as are moving; later the moves of the scores tell how near is near.
        most = max((2 if reach is None else 4) * count, 4 * self.workspace.d, 500)
        if reach is None or np.count_nonzero(distance <= reach) > most:
            place = min(most, len(distance)) - 1
            reach = min(float(np.partition(distance, place)[place]), np.finfo(np.float64).max)
        reach = max(reach, float(distance.min()))
        return np.flatnonzero(distance <= reach)
