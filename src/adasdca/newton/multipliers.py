"""Kinks, L1 terms and bounds: the proximal method of multipliers with semismooth Newton steps.

The problem is solved with the kinks of the loss rounded over a length γ about the duals at hand,
and those of the regulariser with a stiffness ρ about the u at hand; the duals of that solution
are the next centres, γ falls and ρ rises. The dual objective rises from one round to the next
whatever γ and ρ are, and the smaller γ the fewer rounds are needed. (X. Li, D. Sun and K.-C. Toh,
"A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso problems",
SIAM Journal on Optimization 28, 2018.)
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.ascent.survey import Survey
from adasdca.backends.base import Backend
from adasdca.duality.certificate import Certificate
from adasdca.newton.linear import LinearObjective, Solver
from adasdca.newton.moreau import ElasticBox, Penalty, Ridge
from adasdca.newton.newton import Ending, minimise
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: The first γ, in units of the one at which moves by 1 of the free duals would cost the gap.
FIRST = 5.0
#: The largest and the least γ, in units of the mean residual; below the least, duals are rounding.
WIDEST, NARROWEST = 4.0, 1e-7
#: How exactly a round is solved, in units of the gap.
SHARE = 0.03
#: γ falls by this factor, and by another one after a round of no more Newton steps than `EASY`.
SHRINK, LEAP, EASY = 0.1, 0.3, 3
#: Newton steps of a round after which a longer γ would have been better.
HARD = 50
#: How much stiffer than at first the regulariser's kinks become; v − w must keep digits.
STIFFER = 1e6
#: Rows are near a kink within so many times the mean move of the scores in the round before.
NEAR = 5.0
#: Rounds at the least γ and the largest ρ that bring neither the gap nor the dual any further.
IDLE = 3


@dataclass
class Best:
    """The best certified point so far."""

    w: Array
    b: float
    duals: Any
    certificate: Certificate


class Multipliers:
    """The proximal method of multipliers on a backend.

    Parameters
    ----------
    backend : Backend
        The rows.
    problem : Problem
        The problem.
    solve : callable
        How the equations of Newton steps are solved.
    """

    def __init__(self, backend: Backend, problem: Problem, solve: Solver) -> None:
        self.backend, self.problem, self.solve = backend, problem, solve
        self.mu = problem.strength * problem.total
        self.kinked = problem.loss.smoothness == 0
        self.plain = problem.bounds is None and problem.l1_ratio == 0

    def run(self, survey: Survey, target: float, deadline: float) -> tuple[Best, Ending]:
        """Improve a survey's point until gap ≤ target·primal or double precision shows no more."""
        backend, problem = self.backend, self.problem
        best = Best(survey.coef, survey.intercept, survey.certified, survey.certificate)
        w, b, centre = best.w, best.b, survey.beta
        u = backend.combine(centre)
        mass, spread = backend.freedom(w, b, centre) if self.kinked else (problem.total, 1.0)
        mass = max(mass, problem.total * min(1.0, backend.facts.d / backend.facts.n))
        gamma, floor = self._first_length(survey, mass, spread) if self.kinked else (0.0, 0.0)
        rho = self._first_stiffness(gamma, mass)
        stiffest = STIFFER * rho
        reach, idle, dual = None, 0, survey.dual
        while True:
            known = best.certificate
            enough = max(SHARE * known.gap, 0.1 * target * known.primal, 0.1 * known.rounding)
            term = backend.term(gamma, centre, (w, b), reach) if self.kinked else backend.term()
            objective = LinearObjective(
                term,
                self._penalty(u, rho),
                self.mu,
                problem.fit_intercept,
                self.kinked,
                self.solve,
                w,
                b,
            )
            ending, steps = minimise(objective, problem.total * enough, deadline)
            duals = term.duals()
            w, b = objective.w, objective.b
            found = backend.certify(w, b, duals)
            if found.gap < best.certificate.gap:
                best = Best(w, b, duals, found)
            if best.certificate.relative_gap <= target:
                return best, Ending.REACHED
            if best.certificate.gap <= 2.0 * best.certificate.rounding:
                return best, Ending.EXHAUSTED
            if ending is Ending.TIME or time.perf_counter() >= deadline:
                return best, Ending.TIME
            last = (not self.kinked or gamma <= floor) and (self.plain or bool((rho >= stiffest).all()))
            still = best.certificate.gap > 0.9 * known.gap and found.dual <= dual + 0.01 * found.gap
            dual = max(dual, found.dual)
            idle = idle + 1 if last and still else 0
            if idle >= IDLE:
                return best, Ending.EXHAUSTED
            if self.kinked:
                reach = NEAR * term.travel
            factor = SHRINK if steps > EASY else SHRINK * LEAP
            if steps > HARD:
                factor = 0.5
            gamma, rho = max(factor * gamma, floor), np.minimum(rho / factor, stiffest)
            centre, u = duals, objective.u

    def _first_length(self, survey: Survey, mass: float, spread: float) -> tuple[float, float]:
        """Return the first γ and the least one."""
        gamma = 2.0 * FIRST * survey.gap * self.problem.total / mass
        lower, upper = self.problem.loss.domain
        floor = NARROWEST * spread
        if spread > 0:
            gamma = max(min(gamma, WIDEST * spread / (upper - lower)), floor)
        return gamma, floor

    def _first_stiffness(self, gamma: float, mass: float) -> Array:
        """Return ρ as stiff as the loss is, feature by feature, so that scales do not matter."""
        if self.plain:
            return np.ones(1)
        curvature = mass / (self.problem.total * max(gamma, self.problem.loss.smoothness))
        return np.maximum(self.backend.column_squares() * (curvature / self.mu), 1.0)

    def _penalty(self, u: Array, rho: Array) -> Penalty:
        if self.plain:
            return Ridge()
        lower, upper = self.problem.bounds or (-np.inf, np.inf)
        ratio = self.problem.l1_ratio
        return ElasticBox(1.0, ratio / (1.0 - ratio), lower, upper, u, rho)
