"""The proximal method of multipliers with semismooth Newton steps (SsNAL).

It is for losses with kinks, L1 terms and bounds. A round minimises the problem with its kinks
rounded. Those of the loss are rounded over a length γ about the duals β of the round before, which
are the proximal centre. Those of the regulariser are rounded with a stiffness ρ about u = Xᵀβ/(λN).
The duals of the solution are the centre of the next round. The dual objective rises from round to
round whatever γ and ρ are. The smaller γ and the larger ρ, the fewer rounds are needed, and the
more Newton steps each of them takes. (X. Li, D. Sun and K.-C. Toh, "A highly efficient semismooth
Newton augmented Lagrangian method for solving Lasso problems", SIAM Journal on Optimization 28,
2018.)
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.ascent.survey import Survey
from adasdca.backends.abilities import Rounds
from adasdca.backends.backend import Backend
from adasdca.duality.certificate import Certificate, CertificateError
from adasdca.newton.budget import Budget
from adasdca.newton.interior import EXPECTED, CentralPath, affordable
from adasdca.newton.linear import Best, LinearObjective, Point, Solver
from adasdca.newton.moreau import ElasticBox, Penalty, Ridge
from adasdca.newton.newton import MOST_STEPS, Ending, minimise
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: The first γ. The unit is the γ at which moves of the free duals by 1 would cost the gap.
FIRST = 5.0
#: The largest and the least γ, in units of the mean residual. Below the least, duals are rounding.
WIDEST, NARROWEST = 4.0, 1e-7
#: What the first round may leave to gain where it begins, in units of the gap. Later rounds begin
#: with 10 to 30 of them.
CONSISTENT = 30.0
#: What the steps of a round may leave to gain, in units of the gap. Once that has become less than
#: the second number, they go on until rounding ends them.
SHARE, FINEST = 0.03, 1e-6
#: How many times as much they may leave where equations are solved by iterations.
COARSER = 3.0
#: Factors of γ after a round, by the most Newton steps that it has taken. About ten are right.
FACTORS = ((3, 0.03), (6, 0.1), (10, 0.3), (16, 0.7), (24, 1.5), (40, 4.0))
#: The largest n·d² at which all rounds are one call of the core. The interpreter takes longer
#: between rounds than the steps do there. So γ falls faster, and begins at a share of its first
#: value (100 × 10: 6.6 rounds of 24 steps -> 4.3 of 28; hinge: 1.07 -> 0.83 ms).
SWIFT, SWIFT_FACTORS, SWIFT_FIRST = 2**17, ((12, 0.01), (24, 0.03), (40, 0.1)), 0.03
#: Factors of γ where equations are solved by iterations, whose number goes with 1/√γ. About six
#: steps are right (hinge, 4e6 x 200,000: 7600 -> 2600 iterations).
GENTLE = ((3, 0.2), (6, 0.5), (10, 1.0), (16, 1.5), (24, 2.0), (40, 4.0))
#: Newton steps of a round, at most. Kinks become blunter then, and the steps go on. Where no kinks
#: can be blunter, the number is doubled each time.
HARD = 40
#: Factors of γ where kinks become blunter, and where a round has gained nothing, at most.
BLUNTER, SHARPER = 10.0, 0.3
#: The share of the gap that the rounding of scores may make, and the unit roundoff.
HIDDEN_SHARE, EPSILON = 1e-3, 2.0**-52
#: Rounds give way to the central path when they have cost this many of its steps, half of what it
#: takes. The path is good for about seven digits. Rounds with a gap below the second number go on.
GIVEN, DIGITS = 0.5 * EXPECTED, 1e-7
#: The largest ρ, in units of the first one. v − w must keep digits.
STIFFER = 1e6
#: Without an L2 term, duals of which u is beyond σ have an infinite conjugate, and u has the
#: rounding of the duals in it. Rounds of exact sums have a smaller σ. The share that is taken off
#: is at most the first number, and costs at most the second one of the gap. So it is next to
#: nothing where features are large, and so is rounding there.
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

    Where the budget allows for a path, rounds may spend half of what is left at most. No solve ends
    here. The central path takes over, and rounds without this limit mend what it leaves.
    """

    def __init__(self, budget: Budget) -> None:
        most = GIVEN * budget.path
        if affordable(EXPECTED, budget):
            most = min(most, 0.5 * budget.left)
        self._budget, self._until = budget, budget.spent + most

    def due(self) -> bool:
        """Whether rounds have cost that."""
        return self._budget.spent >= self._until


@dataclass
class _Round:
    """What a round minimises, and what the rounds before it have come to."""

    v: Array  #: Where its Newton steps begin.
    b: float
    centre: Any  #: The proximal centre: the duals about which kinks of the loss are rounded.
    u: Array  #: u of the centre, about which those of the regulariser are rounded.
    length: float  #: γ.
    rho: Array  #: ρ.
    widest: float  #: The first γ where kinks have not been rounded yet.
    floor: float  #: The least γ.
    stiffest: Array  #: The largest ρ.
    gap: float  #: The least gap of the rounds before.
    dual: float  #: Their largest dual objective.
    most: int  #: Most Newton steps.
    blunted: bool  #: Whether kinks need not become blunter where rounding hides what is left.
    share: float = SHARE  #: What the steps may leave to gain, in units of the gap.
    reach: float | None = None  #: Rows are near a kink within this distance.
    stalled: bool = False  #: Whether the round before has gained nothing.

    def forbid_sharper(self) -> None:
        """Let no later round be sharper than this one."""
        self.floor, self.stiffest, self.blunted = self.length, self.rho, True


class Multipliers:
    """The proximal method of multipliers on a backend.

    Parameters
    ----------
    solve : callable
        How the equations of Newton steps are solved.
    exact : bool
        Whether sums are to be taken in twice the digits.
    hard : bool
        Whether the central path comes first, as it does where an earlier run was on it.
    asked : float
        The relative gap that is asked for, where the target is one of the last digits. Once it is
        reached, a round that brings nothing is the last.
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
        self.nonsmooth = problem.loss.smoothness == 0
        self.can_round = not problem.loss.curvature_varies
        self.quadratic_penalty = problem.regularizer.is_quadratic
        #: The least ρ.
        self.units = problem.regularizer.metric
        #: The weight of the rows whose duals are free, and the largest γ that is of use.
        self.mass, self.bluntest = problem.total, 0.0
        #: The share of σ that u keeps away from it.
        self.room: float | Array = 0.0
        few = backend.facts.stored * backend.facts.d <= SWIFT
        #: Whether the core takes all rounds in one call.
        self.in_one_call = self.quadratic_penalty and few
        #: The best point of the last rounds.
        self.best: Best | None = None
        #: Where the last steps were left, which another run may go on from.
        self.left: tuple[Array, float] | None = None

    def run(self, survey: Survey, target: float, deadline: float) -> tuple[Best, Ending]:
        """Improve a survey's point until gap ≤ target·primal or double precision shows no more.

        Where rounds are hard, the central path takes over, and rounds mend what it leaves.
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
        centre : dual point
            The centre of the first round.
        handover : Handover, optional
            When it is due, rounds end for the number of their steps.
        """
        at, ready = self._first(best, centre)
        while True:
            if self.exact and self.problem.regularizer.eta == 0:
                self.room = self._room_of(best)
            objective = ready or self._round(
                at.v, at.b, at.centre, at.u, at.length, at.rho, at.reach, best.certificate.primal
            )
            ready = None
            ending, steps = self._solve_round(objective, at, best, target, deadline, handover)
            if ending is Ending.STOPPED:
                return best, Ending.STEPS
            at.v, at.b = self.left = objective.v, objective.b
            if objective.length is not None:
                at.length = objective.length
            if ending is Ending.STEPS and at.most < MOST_STEPS:
                self._keep_centre(at, best)
                continue
            point = None
            at.stalled = True
            made = self._certified(objective, deadline)
            if made is not None:
                point, certificate = made
                at.v, at.b = point.v, point.b
                at.stalled = (
                    certificate.gap > 0.9 * at.gap
                    and certificate.dual <= at.dual + 0.01 * certificate.gap
                )
                best = self.best = self._better(best, point, certificate, ending)
                at.gap, at.dual = min(at.gap, certificate.gap), max(at.dual, certificate.dual)
            noisy = made is None or ending in (Ending.EXHAUSTED, Ending.STEPS)
            over = self._over(best, at, target, deadline, ending, noisy)
            if over is not None:
                return best, over
            at.blunted = made is None or (at.blunted and (at.stalled or not self.exact))
            sharpest = self._is_sharpest(at)
            if at.stalled and noisy and (at.blunted or sharpest):
                # Rounding hides the rest where kinks are as sharp as these.
                if self._is_bluntest(at) or (at.blunted and sharpest and at.share < SHARE):
                    return best, Ending.EXHAUSTED
                self._begin_blunter(at, best)
                continue
            if at.stalled and sharpest and at.share < FINEST:
                return best, Ending.EXHAUSTED  # solved as exactly as can be, and as sharp
            assert point is not None
            self._follow(at, point, steps, sharpest, objective.term.travel)

    def _first(self, best: Best, centre: Any) -> tuple[_Round, LinearObjective | None]:
        """Return the first round, and what it minimises if that is known already."""
        v, b, u = best.w, best.b, self.backend.combine(centre)
        widest, floor = self._lengths(best, centre)
        hidden = self.exact and self.quadratic_penalty  # Newton steps have failed for digits
        length = widest if self.nonsmooth else self._least(best) if hidden else 0.0
        ready = None
        if self.nonsmooth:
            length, ready = self._begin(best, centre, u, length)
            v, b = ready.v, ready.b
        rho = self._stiffness(length)
        known = best.certificate
        return _Round(
            v,
            b,
            centre,
            u,
            length,
            rho,
            widest,
            floor,
            STIFFER * rho,
            known.gap,
            known.dual,
            HARD,
            not self.exact,
        ), ready

    def _solve_round(
        self,
        objective: LinearObjective,
        at: _Round,
        best: Best,
        target: float,
        deadline: float,
        handover: Handover | None,
    ) -> tuple[Ending, int]:
        """Take the Newton steps of a round; return why they ended, and how many."""
        known = best.certificate
        share = COARSER * at.share if self._iterated else at.share
        enough = max(share * at.gap, 0.1 * target * known.primal, 0.1 * known.rounding)
        if at.share < FINEST:
            enough = 0.0  # far features: the bound of a round tells nothing at all
        enough *= self.problem.total
        objective.enough = enough
        if self.in_one_call and self.nonsmooth:
            objective.rounds = Rounds(at.gap, target, at.share, at.floor, SWIFT_FACTORS)
        far = known.relative_gap > DIGITS
        due = handover.due if handover is not None and far else None
        return minimise(objective, enough, deadline, at.most, due)

    def _keep_centre(self, at: _Round, best: Best) -> None:
        """Go on with blunter kinks about the same centre, from where the steps have led.

        The kinks were too sharp for that centre: crossing them took too many steps.
        """
        if at.length >= self.bluntest:
            at.most *= 2
        least = self._least(best)
        self._blunt(at, least if at.length > 0 else max(at.widest, least))
        if at.stalled:  # sharper rounds take too many steps, and others gain nothing
            at.forbid_sharper()

    def _better(self, best: Best, point: Point, found: Certificate, ending: Ending) -> Best:
        """Return the better of the best point and that of a round, or a mixture of both."""
        known = best.certificate
        # Of points that rounding does not tell apart, the one with more zeros.
        alike = not self.quadratic_penalty and found.gap <= known.gap + known.rounding
        sparser = alike and np.count_nonzero(point.w) < np.count_nonzero(best.w)
        if found.gap < known.gap or sparser:
            return Best(point.w, point.b, point.duals, found)
        if ending is not Ending.TIME:
            # Rounding has its part in a gap: points of two rounds may have less of it.
            pair = (best.w, best.b, point.duals)
            if found.dual <= known.dual:
                pair = (point.w, point.b, best.duals)
            mixed = self.backend.certify(*pair)
            if mixed.gap < known.gap:
                return Best(*pair, mixed)
        return best

    def _over(
        self,
        best: Best,
        at: _Round,
        target: float,
        deadline: float,
        ending: Ending,
        noisy: bool,
    ) -> Ending | None:
        """Return why rounds end after one that was solved; None if they go on."""
        known = best.certificate
        if known.relative_gap <= target:
            return Ending.REACHED
        late = self.budget.over or time.perf_counter() >= deadline
        if ending is Ending.TIME or late:
            return Ending.TIME
        if known.gap <= 2.0 * known.rounding:
            return Ending.EXHAUSTED
        vain = at.stalled or (noisy and self._is_sharpest(at))
        return Ending.REACHED if vain and known.relative_gap <= self.asked else None

    def _is_sharpest(self, at: _Round) -> bool:
        """Whether kinks are as sharp as they may be."""
        stiff = self.quadratic_penalty or bool((at.rho >= at.stiffest).all())
        return at.length <= at.floor and stiff

    def _is_bluntest(self, at: _Round) -> bool:
        """Whether no dual moves by a digit where kinks are as blunt as these."""
        if self.can_round:
            return EPSILON * at.length > self.bluntest
        return bool((at.rho <= self.units).all())

    def _begin_blunter(self, at: _Round, best: Best) -> None:
        """Begin again at the best point, with blunter kinks, which are the sharpest from there on.

        They become blunter until a round is solved and gains nothing all the same, or no dual moves
        by a digit.
        """
        self._blunt(at, self._least(best))
        at.forbid_sharper()
        at.share, at.reach = SHARE, None
        at.v, at.b, at.centre = best.w, best.b, best.duals
        at.u = self.backend.combine(at.centre)

    def _follow(self, at: _Round, point: Point, steps: int, sharpest: bool, travel: float) -> None:
        """Let the next round be about the duals of this one, with sharper or blunter kinks."""
        if at.stalled and (steps == 0 or sharpest):
            at.share *= 0.1  # the bound of a round tells little here: its solution must be finer
        at.most = max(at.most // 2, HARD) if at.stalled else HARD
        at.reach = NEAR * travel
        factors = SWIFT_FACTORS if self.in_one_call else GENTLE if self._iterated else FACTORS
        factor = next((factor for limit, factor in factors if steps <= limit), BLUNTER)
        if at.stalled:
            factor = min(factor, SHARPER)
        at.length, at.rho = factor * at.length, np.minimum(at.rho / factor, at.stiffest)
        smooth = not self.nonsmooth and at.length < 0.1 * self.problem.loss.smoothness
        if at.length < at.floor or smooth:
            at.length = at.floor
        at.centre, at.u = point.duals, point.u

    def _blunt(self, at: _Round, least: float) -> None:
        """Make kinks blunter: γ larger, at least so large, and ρ smaller."""
        if self.can_round:
            at.length = max(BLUNTER * at.length, least)
        at.rho = np.maximum(at.rho / BLUNTER, self.units)

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
        near = (v, b) if self.nonsmooth else None
        return LinearObjective(
            self.backend.term(length, centre, near, reach, self.exact),
            self._penalty(u, rho),
            self.mu,
            problem.fit_intercept,
            self.nonsmooth,
            self.solve,
            v,
            b,
            problem.total * primal,
        )

    def _begin(
        self, best: Best, centre: Any, u: Array, length: float
    ) -> tuple[float, LinearObjective]:
        """Return the length of the first round, and what it minimises.

        The duals of epochs may be far better than their coefficients. Steps would then cross sharp
        kinks about these duals one by one. So the length grows until there is no more to gain than
        where rounds follow each other. Where the steps of an earlier run were left, there may be
        less to gain: the round begins at the better one of the two points.
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
        if not self.nonsmooth:
            width = min(width, 2.0 * residual / loss.smoothness)
        mass = self._mass(mass)
        length = 2.0 * FIRST * best.certificate.gap * self.problem.total / mass
        floor = NARROWEST * residual if self.nonsmooth else 0.0
        self.bluntest = length
        if residual > 0:
            self.bluntest = max(WIDEST * residual / width, floor)
            first = SWIFT_FIRST if self.in_one_call else 1.0
            length = max(first * min(length, self.bluntest), floor)
        self.mass = mass
        return length, floor

    def _least(self, best: Best) -> float:
        """Return the least length of a smooth loss at which rounding does not hide what is left.

        A dual is a score divided by the length. Its rounding is ε divided by the length. The
        rounding of all duals makes ½(ε/length)²Σ c_i|x_i|²/(λN) of the gap, which is to be a small
        share of it.
        """
        problem = self.problem
        if self.nonsmooth or not self.can_round:
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
        """Return the first ρ: the mean curvature of the loss, times the squares of each column."""
        if self.quadratic_penalty:
            return np.ones(1)
        curvature = self.mass / (self.problem.total * (length + self.problem.loss.smoothness))
        return np.maximum(self._squares * (curvature / self.mu), self.units)

    def _penalty(self, u: Array, rho: Array) -> Penalty:
        g = self.problem.regularizer
        if self.quadratic_penalty:
            return Ridge(g.curvature)
        lower, upper = g.bounds or (-np.inf, np.inf)
        threshold = (1.0 - self.room) * g.threshold
        return ElasticBox(g.curvature, threshold, lower, upper, u, rho)

    def _room_of(self, best: Best) -> Array:
        """Return the share of σ by which it may be smaller at next to no cost."""
        g = self.problem.regularizer
        _, residual = self.backend.freedom(best.w, best.b, best.duals)
        lengths = np.sqrt(self._squares / self.problem.total)
        usual = np.divide(residual, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        price = g.scale * g.threshold * len(usual) * np.maximum(np.abs(best.w), usual)
        allowed = ROOM_SHARE * best.certificate.gap
        room: Array = allowed / np.maximum(price, allowed / ROOM)
        return room
