"""Kinks, L1 terms and bounds: the proximal method of multipliers with semismooth Newton steps.

The problem is solved with the kinks of the loss rounded over a length γ about the duals at hand,
and those of the regulariser with a stiffness ρ about the u at hand; the duals of that solution
are the next centres, γ falls and ρ rises. The dual objective rises from one round to the next
whatever γ and ρ are, and the smaller γ the fewer rounds are needed. (X. Li, D. Sun and K.-C. Toh,
"A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso problems",
SIAM Journal on Optimization 28, 2018.)
"""

from __future__ import annotations

import math
import time
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.ascent.survey import Survey
from adasdca.backends.abilities import Rounds
from adasdca.backends.base import Backend
from adasdca.duality.certificate import Certificate, CertificateError
from adasdca.newton.budget import Budget
from adasdca.newton.interior import EXPECTED, CentralPath, affordable
from adasdca.newton.linear import Best, LinearObjective, Point, Solver
from adasdca.newton.moreau import ElasticBox, Penalty, Ridge
from adasdca.newton.newton import MOST_STEPS, Ending, minimise
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: The first γ, in units of the one at which moves by 1 of the free duals would cost the gap.
FIRST = 5.0
#: The largest and the least γ, in units of the mean residual; below the least, duals are rounding.
WIDEST, NARROWEST = 4.0, 1e-7
#: What is left to gain where a round begins after another, in units of the gap: 10 to 30 of them.
CONSISTENT = 30.0
#: How exactly a round is solved, in units of the gap; beyond the finest, as exactly as can be.
SHARE, FINEST = 0.03, 1e-6
#: How many times as much may be left where steps are iterated.
COARSER = 3.0
#: By what γ is multiplied after a round of so many Newton steps at most: about ten are right.
FACTORS = ((3, 0.03), (6, 0.1), (10, 0.3), (16, 0.7), (24, 1.5), (40, 4.0))
#: The same, and the first γ in units of its own, where n·d² is so small that steps in one call take
#: less than the interpreter does between rounds (100 × 10: 6.6 rounds of 24 steps -> 4.3 of 28).
#: All rounds are one call then, as long as they halve the gap (100 × 10, hinge: 1.07 -> 0.83 ms).
SWIFT, SWIFT_FACTORS, SWIFT_FIRST = 2**17, ((12, 0.01), (24, 0.03), (40, 0.1)), 0.03
#: The same where steps are iterated, whose iterations go with 1/√γ: about six are right (hinge, 4e6
#: x 200,000: 2600 iterations for 7600).
GENTLE = ((3, 0.2), (6, 0.5), (10, 1.0), (16, 1.5), (24, 2.0), (40, 4.0))
#: Newton steps after which kinks are made blunter, by what γ is multiplied then, and where a round
#: has gained nothing, at most. The steps go on: where no kinks can be blunter, twice as many each
#: time.
HARD, BLUNTER, SHARPER = 40, 10.0, 0.3
#: The share of the gap that the rounding of scores may make, and that of a double.
HIDDEN_SHARE, EPSILON = 1e-3, 2.0**-52
#: Steps along the central path that rounds may cost before they give way to it: half of what that
#: takes. It is good for about seven digits: rounds that have these go on.
GIVEN, DIGITS = 0.5 * EXPECTED, 1e-7
#: How much stiffer than at first the regulariser's kinks become; v − w must keep digits.
STIFFER = 1e6
#: Without an L2 term duals of which u is beyond σ are worth nothing, and u has the rounding of the
#: duals in it. Exact rounds have a smaller σ, by this share at most, and by one that takes this
#: share of the gap: next to nothing where features are large, and rounding as well.
ROOM, ROOM_SHARE = 0.5, 0.01
#: Rows are near a kink within so many times the mean move of the scores in the round before.
NEAR = 5.0


def best_point(
    backend: Backend, objective: LinearObjective, deadline: float
) -> tuple[Point, Certificate]:
    """Return the point of an objective, or that among those it settles at, of the least gap."""
    certified = (
        (point, backend.certify(point.w, point.b, point.duals))
        for point in objective.points(deadline)
    )
    return min(certified, key=lambda pair: pair[1].gap)


class Handover:
    """When rounds give way to the central path: once they have cost half of what that does.

    Nor may they spend all that is left, where the path would be gone beyond that. No solve ends
    here: the path is gone on, and what it leaves, rounds mend without any such limit.

    Parameters
    ----------
    budget : Budget
        What is spent, and what a step along the path costs.
    """

    def __init__(self, budget: Budget) -> None:
        most = GIVEN * budget.path
        if affordable(EXPECTED, budget):
            most = min(most, 0.5 * budget.left)
        self._budget, self._until = budget, budget.spent + most

    def due(self) -> bool:
        """Whether they have cost that."""
        return self._budget.spent >= self._until


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
    exact : bool
        Whether sums are to be taken in twice the digits.
    path : CentralPath, optional
        The central path, where there is one.
    hard : bool
        Whether the central path is gone at once, as it is where it was left before.
    asked : float
        The relative gap that is asked for, where rounds go on for the last digits: from there on,
        one that brings nothing is the last.
    budget : Budget, optional
        What steps may cost; the solver pays for those of rounds.
    """

    def __init__(
        self,
        backend: Backend,
        problem: Problem,
        solve: Solver,
        exact: bool = False,
        path: CentralPath | None = None,
        hard: bool = False,
        asked: float = 0.0,
        budget: Budget | None = None,
    ) -> None:
        self.backend, self.problem, self.solve = backend, problem, solve
        self.exact, self.path, self.asked = exact, path, asked
        self.hard = hard or (path is not None and path.begun)
        self.budget = budget or Budget()
        self.mu = problem.mu
        self.kinked = problem.loss.smoothness == 0
        self.can_round = not problem.loss.curvature_varies
        self.plain, self.units = problem.regularizer.is_quadratic, problem.regularizer.metric
        self.mass, self.bluntest = problem.total, 0.0
        #: The share of σ that u keeps away from it.
        self.room: float | Array = 0.0
        self.swift = self.plain and backend.facts.stored * backend.facts.d <= SWIFT
        #: Where the last steps were left, which another run may go on from.
        self.left: tuple[Array, float] | None = None

    def run(self, survey: Survey, target: float, deadline: float) -> tuple[Best, Ending]:
        """Improve a survey's point until gap ≤ target·primal or double precision shows no more.

        Where rounds are hard, along the central path; what that leaves, rounds mend.
        """
        best = Best(survey.coef, survey.intercept, survey.certified, survey.certificate)
        if self.path is None or self.exact:
            return self.rounds(best, survey.beta, target, deadline)
        ending = Ending.STEPS
        if not self.hard:
            handover = Handover(self.budget)
            best, ending = self.rounds(best, survey.beta, target, deadline, handover)
        vain = ending is Ending.EXHAUSTED and best.certificate.relative_gap > DIGITS
        if ending is Ending.STEPS or vain:
            self.hard = True
            best, ending = self.path.follow(best, target, deadline, self.budget)
            if ending is Ending.EXHAUSTED:
                best, ending = self.rounds(best, best.duals, target, deadline)
        return best, ending

    def rounds(
        self,
        best: Best,
        centre: Any,
        target: float,
        deadline: float,
        handover: Handover | None = None,
    ) -> tuple[Best, Ending]:
        """Improve a point round by round.

        Parameters
        ----------
        best : Best
            The point.
        centre : dual point
            The centre of the first round.
        target : float
            The relative gap to reach.
        deadline : float
            When to stop, on the clock of `time.perf_counter`.
        handover : Handover, optional
            When it is due, rounds end for the number of their steps.
        """
        backend, problem = self.backend, self.problem
        v, b, u = best.w, best.b, backend.combine(centre)
        widest, floor = self._lengths(best, centre)
        hidden = self.exact and self.plain  # Newton steps have failed for digits
        length = widest if self.kinked else self._least(best) if hidden else 0.0
        ready: LinearObjective | None = None
        if self.kinked:
            length, ready = self._begin(best, centre, u, length)
            v, b = ready.v, ready.b
        rho = self._stiffness(length)
        stiffest = STIFFER * rho
        reach, most, share = None, HARD, SHARE
        gap, dual = best.certificate.gap, best.certificate.dual  # of rounds, the best ones
        stalled, blunt = False, not self.exact  # whether rounds that rounding hides are too sharp
        while True:
            known = best.certificate
            left = COARSER * share if self._iterated else share
            enough = max(left * gap, 0.1 * target * known.primal, 0.1 * known.rounding)
            if share < FINEST:
                enough = 0.0  # far features: the bound of a round tells nothing at all
            enough *= problem.total
            if self.exact and problem.regularizer.eta == 0:
                self.room = self._room_of(best)
            objective = ready or self._round(v, b, centre, u, length, rho, reach, known.primal)
            objective.enough, ready = enough, None
            if self.swift and self.kinked:
                objective.rounds = Rounds(gap, target, share, floor, SWIFT_FACTORS)
            far = known.relative_gap > DIGITS
            due = handover.due if handover is not None and far else None
            ending, steps = minimise(objective, enough, deadline, most, due)
            if ending is Ending.STOPPED:
                return best, Ending.STEPS
            v, b = self.left = objective.v, objective.b
            length = length if objective.length is None else objective.length
            if ending is Ending.STEPS and most < MOST_STEPS:
                # Too sharp for the centre at hand: it stays, and so do the steps taken.
                if length >= self.bluntest:
                    most *= 2
                least = self._least(best) if length > 0 else max(widest, self._least(best))
                length, rho = self._blunter(length, rho, least)
                if stalled:  # sharper rounds take too many steps, and others gain nothing
                    floor, stiffest, blunt = length, rho, True
                continue
            made = self._certified(objective, deadline)
            noise, stalled = ending in (Ending.EXHAUSTED, Ending.STEPS), made is None
            if made is None:
                noise = blunt = True
            else:
                here, found = made
                v, b, duals = here.v, here.b, here.duals
                stalled = found.gap > 0.9 * gap and found.dual <= dual + 0.01 * found.gap
                # Of points that rounding does not tell apart, the one with more zeros.
                alike = not self.plain and found.gap <= known.gap + known.rounding
                sparser = alike and np.count_nonzero(here.w) < np.count_nonzero(best.w)
                if found.gap < known.gap or sparser:
                    best = Best(here.w, b, duals, found)
                elif ending is not Ending.TIME:
                    # Rounding has its part in a gap: points of two rounds may have less of it.
                    pair = (best.w, best.b, duals)
                    if found.dual <= known.dual:
                        pair = (here.w, b, best.duals)
                    mixed = backend.certify(*pair)
                    if mixed.gap < known.gap:
                        best = Best(*pair, mixed)
                gap, dual = min(gap, found.gap), max(dual, found.dual)
            if best.certificate.relative_gap <= target:
                return best, Ending.REACHED
            late = self.budget.over or time.perf_counter() >= deadline
            if ending is Ending.TIME or late:
                return best, Ending.TIME
            if best.certificate.gap <= 2.0 * best.certificate.rounding:
                return best, Ending.EXHAUSTED
            last = length <= floor and (self.plain or bool((rho >= stiffest).all()))
            if (stalled or (last and noise)) and best.certificate.relative_gap <= self.asked:
                return best, Ending.REACHED
            blunt = blunt and (stalled or not self.exact)
            if stalled and noise and (blunt or last):
                # Rounding hides the rest where kinks are as sharp. Blunter ones about the best
                # point come next, until a round is solved and gains nothing all the same, or no
                # dual moves by a digit.
                bluntest = EPSILON * length > self.bluntest
                if not self.can_round:
                    bluntest = bool((rho <= self.units).all())
                if bluntest or (blunt and last and share < SHARE):
                    return best, Ending.EXHAUSTED
                length, rho = self._blunter(length, rho, self._least(best))
                floor, stiffest, blunt = length, rho, True
                share, v, b, centre = SHARE, best.w, best.b, best.duals
                u, reach = backend.combine(centre), None
                continue
            if stalled and last and share < FINEST:
                return best, Ending.EXHAUSTED  # solved as exactly as can be, and as sharp
            if stalled and (steps == 0 or last):
                share *= 0.1  # the bound of a round tells little here: its solution must be finer
            most = max(most // 2, HARD) if stalled else HARD
            reach = NEAR * objective.term.travel
            factors = SWIFT_FACTORS if self.swift else GENTLE if self._iterated else FACTORS
            factor = next((factor for limit, factor in factors if steps <= limit), BLUNTER)
            if stalled:
                factor = min(factor, SHARPER)
            length, rho = factor * length, np.minimum(rho / factor, stiffest)
            if length < floor or (not self.kinked and length < 0.1 * problem.loss.smoothness):
                length = floor
            centre, u = duals, here.u

    def _blunter(self, length: float, rho: Array, least: float) -> tuple[float, Array]:
        """Return a length and a stiffness of blunter kinks."""
        if self.can_round:
            length = max(BLUNTER * length, least)
        return length, np.maximum(rho / BLUNTER, self.units)

    def _certified(
        self, objective: LinearObjective, deadline: float
    ) -> tuple[Point, Certificate] | None:
        """Return the best point of a round, None if it is beyond what can be certified."""
        if not (np.isfinite(objective.w).all() and math.isfinite(objective.b)):
            return None
        try:
            return best_point(self.backend, objective, deadline)
        except CertificateError:
            return None

    @property
    def _iterated(self) -> bool:
        return getattr(self.solve, "iterated", False)

    def _round(
        self,
        v: Array,
        b: float,
        centre: Any,
        u: Array,
        length: float,
        rho: Array,
        reach: float | None,
        primal: float,
    ) -> LinearObjective:
        """Return what a round minimises, at the point where it begins."""
        problem = self.problem
        near = (v, b) if self.kinked else None
        return LinearObjective(
            self.backend.term(length, centre, near, reach, self.exact),
            self._penalty(u, rho),
            self.mu,
            problem.fit_intercept,
            self.kinked,
            self.solve,
            v,
            b,
            problem.total * primal,
        )

    def _begin(
        self, best: Best, centre: Any, u: Array, length: float
    ) -> tuple[float, LinearObjective]:
        """Return the length of the first round, and what it minimises.

        The duals of epochs may be far better than their coefficients are: sharp kinks about them
        would be crossed again, one by one. Then the length is one at which there is as much left
        to gain as where rounds follow each other, or the steps that were cut short are gone on.
        """
        known = best.certificate
        starts = [(best.w, best.b)] + ([self.left] if self.left is not None else [])
        allowed = CONSISTENT * known.gap * self.problem.total
        while True:
            rho = self._stiffness(length)
            least = min(
                (
                    self._round(*start, centre, u, length, rho, None, known.primal)
                    for start in starts
                ),
                key=LinearObjective.lost,
            )
            lost = least.lost()
            if lost <= allowed or length >= self.bluntest or not 0 < allowed < lost < math.inf:
                return length, least
            length = min(length * max(math.sqrt(lost / allowed), 2.0), self.bluntest)

    def _lengths(self, best: Best, centre: Any) -> tuple[float, float]:
        """Return the first length and the least one; 0 for a loss that cannot be rounded."""
        loss, backend = self.problem.loss, self.backend
        if not self.can_round:
            return 0.0, 0.0
        lower, upper = loss.domain
        mass, residual = backend.freedom(best.w, best.b, centre)
        width = upper - lower
        if not self.kinked:
            width = min(width, 2.0 * residual / loss.smoothness)
        mass = self._mass(mass)
        length = 2.0 * FIRST * best.certificate.gap * self.problem.total / mass
        floor = NARROWEST * residual if self.kinked else 0.0
        self.bluntest = length
        if residual > 0:
            self.bluntest = max(WIDEST * residual / width, floor)
            length = max(min(length, self.bluntest) * (SWIFT_FIRST if self.swift else 1.0), floor)
        self.mass = mass
        return length, floor

    def _least(self, best: Best) -> float:
        """Return the least length of a smooth loss at which rounding does not hide what is left.

        A dual is a score over the length, and has its rounding ε over the length. Those of all rows
        make ½(ε/length)²Σ c_i|x_i|²/(λN) of the gap: this is a small share of it.
        """
        problem = self.problem
        if self.kinked or not self.can_round:
            return 0.0
        squares = float(self._squares.sum()) / problem.total
        goal = 2.0 * problem.mu / problem.total * HIDDEN_SHARE * best.certificate.gap
        return EPSILON * math.sqrt(squares / goal) if goal > 0 else 0.0

    @cached_property
    def _squares(self) -> Array:
        """Σ_i c_i x_ij² for every feature."""
        return self.backend.column_squares()

    def _mass(self, free: float) -> float:
        """Return the weight of the rows that matter: of free duals, or as many as may be."""
        facts = self.backend.facts
        return max(free, self.problem.total * min(1.0, facts.d / facts.n))

    def _stiffness(self, length: float) -> Array:
        """Return ρ as stiff as the loss is, feature by feature, so that scales do not matter."""
        if self.plain:
            return np.ones(1)
        curvature = self.mass / (self.problem.total * (length + self.problem.loss.smoothness))
        return np.maximum(self._squares * (curvature / self.mu), self.units)

    def _penalty(self, u: Array, rho: Array) -> Penalty:
        g = self.problem.regularizer
        if self.plain:
            return Ridge(g.curvature)
        lower, upper = g.bounds or (-np.inf, np.inf)
        threshold = (1.0 - self.room) * g.threshold
        return ElasticBox(g.curvature, threshold, lower, upper, u, rho)

    def _room_of(self, best: Best) -> Array:
        """Return the share of σ that u may be away from it at next to no price."""
        g = self.problem.regularizer
        _, residual = self.backend.freedom(best.w, best.b, best.duals)
        lengths = np.sqrt(self._squares / self.problem.total)
        usual = np.divide(residual, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        price = g.scale * g.threshold * len(usual) * np.maximum(np.abs(best.w), usual)
        allowed = ROOM_SHARE * best.certificate.gap
        room: Array = allowed / np.maximum(price, allowed / ROOM)
        return room
