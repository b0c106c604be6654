"""The second-order phase of `auto`: its steps, and its price."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.ascent.survey import Survey
from adasdca.auto.costs import Costs
from adasdca.auto.equations import MORE, EquationChoice
from adasdca.auto.jump import CLOSE, Jump, Start, equations_at
from adasdca.auto.policy import Policy
from adasdca.backends.abilities import EquationIterator, able
from adasdca.backends.backend import Backend
from adasdca.backends.base import Gram
from adasdca.backends.blas import GAINING, LONG, THREADED, one_thread
from adasdca.backends.facts import Facts
from adasdca.newton.budget import Budget
from adasdca.newton.equations import Solve, solve_formed
from adasdca.newton.interior import CentralPath, interpolated
from adasdca.newton.linear import Best, LinearObjective
from adasdca.newton.moreau import Ridge
from adasdca.newton.multipliers import HARD, Multipliers, best_point
from adasdca.newton.newton import MOST_STEPS, Ending, Share, minimise
from adasdca.newton.proximal import GramModels, ProximalObjective
from adasdca.newton.working_set import FeatureSets
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: What steps may leave to gain, in units of the gap asked for. The duals may have the other half.
LEFT = 0.5
#: Proximal steps give way to rounds where so many in a row were cut short: models are then wrong
#: about the rows as far as these steps go (1500 x 256 pixels, squared hinge: 1.7 -> 0.27 s).
CUT = 3
#: Features up to which proximal steps are taken by their matrix.
TOGETHER = 1000


@dataclass(frozen=True)
class SecondOrderPlan:
    """Second-order steps from the point of the last survey."""

    phase: SecondOrder
    survey: Survey
    tol: float  #: The relative gap to reach.
    last: bool  #: Whether to go on to the last digits from there.
    most: float  #: What the steps may cost, in nanoseconds by the prices.
    label: str

    @property
    def goal(self) -> float:
        """The relative gap to reach, that of the last digits if these are wanted."""
        return min(self.tol, self.phase.policy.last_gap) if self.last else self.tol

    @property
    def found(self) -> Best | None:
        """The best point that is certified, if the steps were left in their middle."""
        return self.phase.found

    def run(self, backend: Backend, seconds: float) -> None:
        """Take the steps for at most that many seconds."""
        self.phase.run(backend, self, time.perf_counter() + seconds)


class SecondOrder:
    """Newton steps for smooth problems, proximal ones for smooth losses, rounds for the others."""

    def __init__(
        self, problem: Problem, costs: Costs, threads: int, tol: float, policy: Policy
    ) -> None:
        self.problem, self.costs, self.threads, self.tol = problem, costs, threads, tol
        self.policy = policy
        self.plain = problem.regularizer.is_quadratic
        self.kernel = problem.regularizer.is_ridge
        self.smooth = problem.loss.smoothness > 0
        # Kinks need a new matrix in each step, and one in double precision.
        self.costs.rough = self.plain and self.smooth
        self.quadratic = problem.loss.is_quadratic and self.plain
        facts = costs.facts
        few = facts.d <= min(facts.n, TOGETHER) and facts.batch == 1
        #: Whether proximal steps are taken by the matrix of the features, and if one is enough.
        # A step on a set ends at the first bound: where many are near, several models take longer
        # than rounds (mushrooms, squared hinge, C = 1e6, bounds: 0.14 -> 2.0 s). So do models where
        # most rows are on straight pieces (usps, smoothed hinge, C = 1e4: 0.27 -> 1.4 s). With an
        # L2 term rounds are as fast or faster, as they are on sets (elastic nets of two losses, C =
        # 0.01, 1, 100: 1.0, 0.9, 1.4 of the time of rounds; lassos 0.3, 0.5, 0.8).
        bare = problem.regularizer.eta == 0 and problem.bounds is None and not self.flat
        self.separable = (
            few and not self.plain and (problem.loss.is_quadratic or (self.smooth and bare))
        )
        self.one_step = problem.loss.is_quadratic and (self.plain or few)
        self.small = max(costs.facts.stored, costs.facts.n) <= policy.small
        self._jumped = False
        #: The Gram matrix of a squared loss, once it is known.
        self._matrix: list[Gram] | None = [] if self.quadratic else None
        self._whole_gap = math.inf  # the gap before the last coordinate descent
        self._factor: Solve | None = None  # of the Hessian of an earlier step, a preconditioner
        self._cut: Jump | None = None  # the one step of a squared loss, if it was cut short
        self._so_far: tuple[Any, ...] | None = None  # the numbers of that step, for a checkpoint
        self._path: CentralPath | None = None
        #: Where the central path began and the steps taken; the steps that are expected from there.
        self._gone: tuple[float, Any, int] | None = None
        self._ahead: float | None = None
        self._left: tuple[Array, float] | None = None  # where the last rounds have ended
        self._methods: list[Any] = []  # of the run at hand, which know their best points
        self._reached: tuple[Array, float, float] | None = None  # w, b and f after Newton steps
        #: What all runs have spent, what the last one has, and whether its budget has ended it.
        self.spent, self.last_spent, self.cut = 0.0, 0.0, False
        #: Whether the last run ended because rounding hides the rest, and whether it summed in
        #: twice the digits, as the next one does after such an end.
        self.exhausted = self.exact = False
        self._gap = math.inf  # where the last run began
        #: Whether rounds begin near their end. The central path begins far from it in any case
        #: (madelon, hinge, 50 values of C: 4.0 -> 2.9 s).
        self.near = False

    @property
    def found(self) -> Best | None:
        """The best point that the methods of the run at hand have certified."""
        known = [method.best for method in self._methods if method.best is not None]
        return min(known, key=lambda best: best.certificate.gap, default=None)

    @cached_property
    def flat(self) -> bool:
        """Whether no row has curvature at w = 0, where all rows of a loss of margins are alike."""
        loss = self.problem.loss
        return loss.kind == "classification" and not loss.curvature(0.0, 1.0)

    def plan(
        self, survey: Survey, tol: float, last: bool, most: float = math.inf
    ) -> SecondOrderPlan:
        """Plan the phase from this survey's point."""
        label = "Newton" if self.smooth and self.plain else "multipliers"
        return SecondOrderPlan(self, survey, tol, last, most, label)

    def run(self, backend: Backend, plan: SecondOrderPlan, deadline: float) -> None:
        """Leave the backend at the best point found."""
        multiplier, budget, survey = backend.multiplier, Budget(plan.most), plan.survey
        self._methods = []
        self._run(backend, plan, deadline, budget)
        self.spent, self.last_spent = self.spent + budget.spent, budget.spent
        self.cut = budget.over
        if self.cut:
            # Epochs go on from the better point. That is their own point unless much is gained:
            # the duals of another point are balanced, which takes them off their bounds.
            found = _survey(backend, deadline)
            if found is not None and self._cut is not None:
                self._cut.left = found.gap
            if found is not None and found.gap > 0.9 * survey.gap:
                backend.restart(survey.beta, multiplier)
        self._so_far = None if self._cut is None else self._cut.gone

    def _run(
        self, backend: Backend, plan: SecondOrderPlan, deadline: float, budget: Budget
    ) -> None:
        n, d, survey = self.costs.facts.n, self.costs.facts.d, plan.survey
        large = d >= THREADED or n >= LONG
        alone = large and (self.threads == 1 or d < GAINING)
        # A run that has gained nothing, and was not cut short, has met rounding as well.
        self.exact |= self.exhausted or (not self.cut and survey.gap >= self._gap)
        self._gap = survey.gap
        with one_thread() if alone else nullcontext():
            steps = 1.0 if self.quadratic else self.policy.steps_expected
            newton = self.smooth and self.plain
            solve = EquationChoice(
                self.costs, self.kernel, steps, self.exact, budget, newton, self._matrix
            )
            solve.factor = self._factor
            if self.quadratic and not self.exact:
                solve.iterations.share = LEFT * plan.tol
            jumps = self.quadratic and not (plan.last or self.exact)
            separate = self.separable and not self.exact
            found = separate and self._separately(backend, survey, plan.goal, deadline, budget)
            if not (found or (jumps and self._jump(backend, plan, deadline, solve))):
                start = self._newton(backend, plan, deadline, solve) if newton else survey
                self._factor = solve.factor
                if start is not None:
                    self._rounds(backend, replace(plan, survey=start), deadline, solve, budget)
            if self.quadratic and not solve.iterations.done:
                # These iterations were not enough. As many again may be; where they begin anew,
                # several times as many are expected (usps, C = 0.01: 88 -> 52 ms).
                more = MORE if self._cut is None else 1.0
                expected = more * solve.iterations.taken
                self.costs.iterations = max(self.costs.iterations, expected)

    def _rounds(
        self,
        backend: Backend,
        plan: SecondOrderPlan,
        deadline: float,
        solve: EquationChoice,
        budget: Budget,
    ) -> None:
        """Take rounds of the method of multipliers, or go along the central path."""
        survey, goal = plan.survey, plan.goal
        solve.kept = None  # rounds have a curvature of their own
        budget.path = self.costs.path_step(self.kernel)
        budget.entry = self.costs.rates.sparse_entry
        if self._path is None:
            self._path = CentralPath.of(backend)
            if self._path is not None and self._gone is not None:  # a checkpoint has brought it
                start = Best(survey.coef, survey.intercept, survey.certified, survey.certificate)
                self._path.again(self._gone, start)
        if self._path is not None:
            self._methods.append(self._path)
        hard = self.plain if self.smooth else not plan.last and self._rounds_are_hard(survey)
        # Sums in twice the digits are taken of all features only.
        if not (self.plain or self.exact) and self.costs.facts.d >= self.policy.working_set:

            def choice_for(facts: Facts) -> EquationChoice:
                costs = Costs(facts, self.problem.loss)
                steps = self.policy.steps_expected
                if self._path is None:  # sets have their own
                    budget.path = costs.path_step(False)
                return EquationChoice(costs, False, steps, budget=budget, tried=False)

            def price(facts: Facts) -> float:
                costs = Costs(facts, self.problem.loss)
                return self.policy.rounds * costs.newton(self.policy.steps_expected, facts.n)

            sets = FeatureSets(
                backend, self.problem, goal, deadline, choice_for, price, budget, self._path
            )
            self._methods.append(sets)
            best, ending = sets.run(survey, hard)
        else:
            rounds = Multipliers(
                backend, self.problem, solve, self.exact, self._path, hard, plan.tol, budget
            )
            rounds.left = self._left
            self._methods.append(rounds)
            best, ending = rounds.run(survey, goal, deadline)
            self._left = rounds.left
        if self._path is not None and self._path.begun:
            self._gone, self._ahead = self._path.gone, self._path.steps_left(self.tol)
        if ending is Ending.EXHAUSTED:
            best, ending = interpolated(backend, best, goal, deadline)
        self.exhausted = ending is Ending.EXHAUSTED
        backend.place(best.duals, best.w, best.b)

    def _jump(
        self, backend: Backend, plan: SecondOrderPlan, deadline: float, solve: EquationChoice
    ) -> bool:
        """Take the one Newton step of a squared loss, whose length is 1.

        Where equations are solved by features, one pass over the rows gives both gradient and
        matrix. False if the step was taken before: what is left is rounding.
        """
        if self._jumped:
            return False
        survey, left = plan.survey, CLOSE * plan.tol
        problem, jump, step = self.problem, self._cut, None
        if jump is None and self._so_far is not None:  # a checkpoint has brought it
            jump = Jump.again(backend, self._so_far)
        if jump is None or not jump.is_ahead(survey):
            self._cut = jump = None
            term = backend.term()
            start = Start(survey.beta, survey.coef, survey.intercept, survey.primal, survey.gap)
            prices = self.costs.equations(1.0, self.costs.facts.n)
            if min(prices, key=prices.__getitem__) == "features":
                self._jumped = True
                term.go(start.w, start.b)
                for rough in (True, False) if self.costs.rough else (False,):
                    formed = term.gram(problem.fit_intercept, deadline, combined=True, rough=rough)
                    if formed is None:
                        return False
                    assert formed.combined is not None
                    equations = equations_at(problem, start, formed.combined, term.balance)
                    step = solve_formed(formed, equations, deadline, left)
                    if step is not None:
                        break
                if step is None:
                    return False
                backend.place(None, start.w + step[0], start.b + step[1])
                self.exhausted = False
                return True
            if able(term, EquationIterator) is not None:
                return False
            jump = Jump.begin(problem, term, start, left)
        solve.iterations = jump.iterations
        step = solve(jump.term, jump.equations, deadline)
        cut = solve.iterated and not solve.iterations.done
        self._cut, self._jumped = (jump, False) if cut else (None, True)
        if step is None:
            return False
        duals = solve.iterations.duals if solve.iterated else solve.ended
        backend.place(duals, jump.start.w + step[0], jump.start.b + step[1])
        self.exhausted = False
        return True

    def _separately(
        self, backend: Backend, survey: Survey, tol: float, deadline: float, budget: Budget
    ) -> bool:
        """Take proximal steps by the matrix of the features.

        False if it was done before, or if rounding hides what is left: the slopes at its point may
        be no duals to begin rounds with.
        """
        if survey.gap > 0.1 * self._whole_gap and not self.cut:
            return False
        self._whole_gap = survey.gap
        problem = self.problem
        start = survey.coef, survey.intercept, survey.primal * problem.total
        models = GramModels(budget, self.costs.model)
        steps = ProximalObjective(problem, backend.term(), models, start, share=LEFT * tol)
        ending, taken = steps.run(deadline, CUT)
        self.separable = ending is not Ending.STOPPED
        if not (taken or ending is Ending.REACHED) or (
            ending is Ending.EXHAUSTED and not steps.exact
        ):
            return False
        backend.place(None, steps.w, steps.b)
        self.exhausted = False
        return True

    def _newton(
        self, backend: Backend, plan: SecondOrderPlan, deadline: float, solve: EquationChoice
    ) -> Survey | None:
        """Take Newton steps; return a survey of where rounds go on, None if none are needed.

        Rounds go on where there were too many steps, or where the slopes are so steep that the
        coefficients have too few digits for their duals.
        """
        problem, survey, left = self.problem, plan.survey, LEFT * plan.tol
        term = backend.term(exact=self.exact)
        start = survey.coef, survey.intercept, survey.primal * problem.total
        if self._reached is not None and self._reached[2] < start[2]:
            start = self._reached
        objective = LinearObjective(
            term,
            Ridge(problem.regularizer.curvature),
            problem.mu,
            problem.fit_intercept,
            False,
            solve,
            *start,
        )
        objective.sample = self.costs.sample
        most = MOST_STEPS if problem.loss.curvature_varies else HARD
        share = self.policy.last_bound if plan.last else left
        ending, _ = minimise(objective, Share(objective, share), deadline, most)
        if ending is Ending.STEPS and objective.lost() <= left * objective.value:
            ending = Ending.REACHED
        self.exhausted = ending is Ending.EXHAUSTED
        if ending is Ending.STEPS:
            return survey
        if not self.exact:
            self._reached = objective.v, objective.b, objective.value
            backend.place(None, objective.v, objective.b)
            return None
        found, certificate = best_point(backend, objective, deadline)
        backend.place(found.duals, found.w, found.b)
        steep = self.exhausted and certificate.gap > 2.0 * certificate.rounding
        if not steep or problem.loss.curvature_varies:
            return None
        return _survey(backend, deadline)

    def cost(self, survey: Survey, steps: float, relative: float) -> float:
        """Price so many Newton steps in nanoseconds, or rounds from a relative gap."""
        if self._ahead is not None:
            return self._ahead * self.costs.path_step(self.kernel)
        n = self.costs.facts.n
        active = n
        lower, _ = self.problem.loss.domain
        if lower == 0 and not self.problem.loss.curvature_varies:
            # Rows with curvature are taken to be those whose dual is not 0. At the start all duals
            # are 0, and a step takes all rows in.
            active = survey.moved or n
        if self.smooth and self.plain:
            return self.costs.newton(steps, active)
        if self.separable:
            return self.costs.survey + steps * self.costs.model
        if self.smooth:
            return self.policy.rounds * self.costs.newton(steps, active)
        hard = self._rounds_are_hard(survey)
        return self._cost_of_path() if hard else self._cost_of_rounds(survey, relative)

    def _rounds_are_hard(self, survey: Survey) -> bool:
        """Whether rounds for a loss with kinks may well cost more than the central path.

        The cost of the path is known, that of rounds is a guess. On tall data rounds leave most
        rows out, and the path does not.
        """
        policy, facts = self.policy, self.costs.facts
        if self.near or not policy.all_in_play(facts.n, facts.d):
            return False
        rounds = self._cost_of_rounds(survey, survey.relative_gap)
        return self._cost_of_path() <= policy.rounds_at_worst * rounds

    def _cost_of_path(self) -> float:
        return self.policy.path_steps * self.costs.path_step(self.kernel)

    def _cost_of_rounds(self, survey: Survey, relative: float) -> float:
        """Price rounds by the digits still to be gained and the rows that are near their kinks."""
        costs, policy, n, d = self.costs, self.policy, self.costs.facts.n, self.costs.facts.d
        decades = max(math.log10(min(relative, 1.0) / max(self.tol, 1e-15)), 0.0)
        moving = policy.rows_in_play(survey.active, n, d)
        active = max(min(survey.active, moving) // 2, 1)
        iterations = policy.rounded_iterations(costs.iterations)
        solving = min(costs.equations(1.0, active, 0, self.kernel, iterations).values())
        step = costs.between + moving / n * costs.pass_ + solving
        steps = policy.steps_begin + policy.steps_a_decade * decades
        return policy.looks * costs.survey + steps * step


def _survey(backend: Backend, deadline: float) -> Survey | None:
    """Survey the point of a backend; None if there is no time left for it."""
    seconds = deadline - time.perf_counter()
    return backend.survey(frozenset(), seconds) if seconds > 0 else None
