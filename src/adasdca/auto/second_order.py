"""The second-order phase of `auto`: its price, and how the equations of its steps are solved."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.ascent.survey import Survey
from adasdca.auto.costs import FEW, Costs
from adasdca.auto.policy import Policy
from adasdca.backends.base import Backend, Facts, RowEquations, RowTerm, able
from adasdca.backends.blas import GAINING, LONG, THREADED, one_thread
from adasdca.newton.budget import Budget
from adasdca.newton.equations import (
    GAIN,
    MOST_ITERATIONS,
    ConjugateGradients,
    Equations,
    Step,
    solve_by_features,
    solve_formed,
)
from adasdca.newton.interior import EXPECTED, CentralPath
from adasdca.newton.linear import Best, LinearObjective
from adasdca.newton.moreau import Ridge
from adasdca.newton.multipliers import HARD, Multipliers, best_point
from adasdca.newton.newton import MOST_STEPS, Ending, Share, minimise
from adasdca.newton.working_set import solve_on_features
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: What steps leave to be gained, in units of the gap that is asked for: the duals have the rest.
LEFT = 0.5
#: How many times the iterations that were not enough are expected from then on.
MORE = 4.0


class EquationChoice:
    """Solves the equations of a step in the way that costs least.

    Parameters
    ----------
    costs : Costs
        The prices.
    ridge : bool
        Whether the penalty is ½‖w‖²: the inner products of rows then serve all steps.
    steps : float
        Steps that are expected.
    exact : bool
        Whether the matrix of the features is to be factorised if it can be: only that way does not
        mind features of different scales.
    budget : Budget, optional
        What the steps may cost.
    tried : bool
        Whether the predicted price of iterations is trusted. Those of rounded kinks depend on where
        these are: they are tried once, and may cost as much as the next way.
    """

    def __init__(
        self,
        costs: Costs,
        ridge: bool,
        steps: float,
        exact: bool = False,
        budget: Budget | None = None,
        tried: bool = True,
    ) -> None:
        self.costs, self.ridge, self.steps, self.exact = costs, ridge, steps, exact
        self._tried = tried or exact
        self.budget = budget or Budget()
        self.iterations = ConjugateGradients(gain=0.0 if tried else GAIN)
        self.iterated = False  # whether the last step was
        self._expected = costs.iterations
        #: What the prices were asked for, and these, the least one first.
        self._facts: tuple[int, int, float] | None = None
        self._prices: dict[str, float] = {}

    def __call__(self, term: RowTerm, equations: Equations, deadline: float) -> Step | None:
        """Solve the equations; None if time or the budget ran out."""
        if self.budget.over:
            return None
        self.budget.pay(self.costs.step(term.curved))
        facts = term.curved, term.known, self._expected
        if facts != self._facts:
            curved, known, expected = self._facts = facts
            prices = self.costs.equations(self.steps, curved, known, self.ridge, expected)
            if self.exact and "features" in prices:
                prices["features"] = 0.0
            self._prices = dict(sorted(prices.items(), key=lambda item: item[1]))
        ways = list(self._prices)
        if not self._tried:
            ways.sort(key=lambda way: way != "iterations")
        for way in ways:
            found = self._solve(way, term, equations, self._prices, deadline)
            if found is not None or time.perf_counter() >= deadline:
                return found
        self.iterated = True
        return self.iterations.solve(term, equations, deadline)

    def afford(self, n: int) -> int:
        """Return how many steps on n rows may be taken in one call: 0 if features are not the way.

        They are, too, where their sums cost less than the interpreter does between two steps.
        """
        costs, d = self.costs, self.costs.facts.d
        if d > FEW or self.exact or self.budget.over:
            return 0
        solving = n * costs.gram_row + costs.rates.factor * d**3
        if solving > costs.rates.interpreter:
            prices = costs.equations(self.steps, n, 0, self.ridge, self._expected)
            if min(prices, key=prices.__getitem__) != "features":
                return 0
        # No interpreter between them: priced with it, 53 steps on 100 rows cost all patience.
        self._once = costs.pass_ + solving
        return int(min(self.budget.left / self._once, MOST_STEPS)) + 1

    def pay(self, steps: int) -> None:
        """Pay for steps that were taken in one call."""
        self.budget.pay(steps * self._once)

    def _solve(
        self,
        way: str,
        term: RowTerm,
        equations: Equations,
        prices: dict[str, float],
        deadline: float,
    ) -> Step | None:
        by_rows, self.iterated = None, way == "iterations"
        if way == "rows":
            rows: RowEquations | None = able(term, RowEquations)
            if rows is None or not np.all(equations.diagonal):
                return None
            by_rows = rows.solve_by_rows
        if way != "iterations":
            once = self.costs.equations(1.0, term.curved, term.known, self.ridge)
            self.budget.pay(once.get(way, 0.0))
        if by_rows is not None:
            return by_rows(*equations[:4], deadline)
        if way == "features":
            return solve_by_features(term, equations, deadline)
        # Iterations may cost as much as the other ways do, and no more.
        other = min((price for name, price in prices.items() if name != way), default=math.inf)
        most = other / (self.steps * self.costs.iteration)
        if self._tried:
            most = max(most, 2.0 * self._expected)
        self._tried = True
        enough = self.budget.left / self.costs.iteration
        most = min(most, enough, MOST_ITERATIONS)
        # One at least: a step of none would look like one that rounding hides.
        found = self.iterations.solve(term, equations, deadline, max(int(most), 0) + 1)
        self.budget.pay(self.iterations.taken * self.costs.iteration)
        self._expected = max(float(self.iterations.taken), 10.0)
        # What a budget has cut short still leads down.
        if self.iterations.done or len(prices) == 1 or most == enough:
            return found
        self._expected *= MORE
        return None


@dataclass(frozen=True)
class SecondOrderPlan:
    """Second-order steps from the point of the last survey."""

    phase: SecondOrder
    survey: Survey
    tol: float
    last: bool
    most: float
    label: str

    def run(self, backend: Backend, seconds: float) -> None:
        """Take the steps for at most that many seconds."""
        deadline = time.perf_counter() + seconds
        self.phase.run(backend, self.survey, self.tol, self.last, deadline, self.most)


class SecondOrder:
    """Newton steps for smooth problems, the proximal method of multipliers for the others.

    Parameters
    ----------
    problem : Problem
        The problem.
    costs : Costs
        The prices.
    threads : int
        Threads for passes over the rows.
    tol : float
        The relative gap asked for.
    policy : Policy
        What to decide by.
    """

    def __init__(
        self, problem: Problem, costs: Costs, threads: int, tol: float, policy: Policy
    ) -> None:
        self.problem, self.costs, self.threads, self.tol = problem, costs, threads, tol
        self.policy = policy
        self.plain = problem.regularizer.is_quadratic
        self.kernel = problem.regularizer.is_ridge
        self.smooth = problem.loss.smoothness > 0
        self.quadratic = problem.loss.is_quadratic and self.plain
        self.small = max(costs.facts.stored, costs.facts.n) <= policy.small
        self._jumped = False
        self._path: CentralPath | None = None
        #: How far it was gone, and the steps that are expected from there.
        self._gone: tuple[float, Any, int] | None = None
        self._ahead: float | None = None
        self._left: tuple[Array, float] | None = None  # where rounds were left
        self._reached: tuple[Array, float, float] | None = None  # w, b and f where steps were cut
        #: What all runs have spent, the last one, and whether its budget has ended it.
        self.spent, self.last_spent, self.cut = 0.0, 0.0, False
        #: Whether the last run ended because rounding hides the rest, and whether it summed in
        #: twice the digits, as the next one does after such an end.
        self.exhausted = self.exact = False
        self._gap = math.inf  # where the last run began

    @cached_property
    def flat(self) -> bool:
        """Whether no row has curvature at w = 0, where all rows of a loss of margins are alike."""
        loss = self.problem.loss
        return loss.kind == "classification" and not loss.curvature(0.0, 1.0)

    def plan(
        self, survey: Survey, tol: float, last: bool, most: float = math.inf
    ) -> SecondOrderPlan:
        """Plan the phase from this survey's point.

        Parameters
        ----------
        survey : Survey
            Where to begin.
        tol : float
            The relative gap to reach.
        last : bool
            Whether to go on to the last digits from there.
        most : float
            What the phase may spend, in nanoseconds by the prices.
        """
        label = "Newton" if self.smooth and self.plain else "multipliers"
        return SecondOrderPlan(self, survey, tol, last, most, label)

    def run(
        self,
        backend: Backend,
        survey: Survey,
        tol: float,
        last: bool,
        deadline: float,
        most: float = math.inf,
    ) -> None:
        """Leave the backend at the best point found."""
        multiplier, budget = backend.multiplier, Budget(most)
        self._run(backend, survey, tol, last, deadline, budget)
        self.spent, self.last_spent = self.spent + budget.spent, budget.spent
        self.cut = budget.over
        if self.cut:
            # Epochs go on from the better point, which is their own unless much is gained: the
            # duals of another one are balanced, and off their bounds for it.
            found = _survey(backend, deadline)
            if found is not None and found.gap > 0.9 * survey.gap:
                backend.restart(survey.beta, multiplier)

    def _run(
        self,
        backend: Backend,
        survey: Survey,
        tol: float,
        last: bool,
        deadline: float,
        budget: Budget,
    ) -> None:
        n, d = self.costs.facts.n, self.costs.facts.d
        large = d >= THREADED or n >= LONG
        alone = large and (self.threads == 1 or d < GAINING)
        # A run that has gained nothing and says that nothing is left has seen rounding, too.
        self.exact |= self.exhausted or (not self.cut and survey.gap >= self._gap)
        self._gap = survey.gap
        with one_thread() if alone else nullcontext():
            steps = 1.0 if self.quadratic else self.policy.steps_expected
            newton = self.smooth and self.plain
            solve = EquationChoice(self.costs, self.kernel, steps, self.exact, budget, newton)
            if self.quadratic and not self.exact:
                solve.iterations.share = LEFT * tol
            jumps = self.quadratic and not (last or self.exact)
            if jumps and self._jump(backend, survey, deadline):
                return
            start: Survey | None = survey
            if newton:
                start = self._newton(backend, survey, tol, last, deadline, solve)
            if start is not None:
                self._rounds(backend, start, tol, last, deadline, solve, budget)
            if self.quadratic and not solve.iterations.done:
                # So many were not enough, and would be begun anew (usps, C = 0.01: 88 -> 52 ms).
                taken = MORE * solve.iterations.taken
                self.costs.iterations = max(self.costs.iterations, taken)

    def _rounds(
        self,
        backend: Backend,
        survey: Survey,
        tol: float,
        last: bool,
        deadline: float,
        solve: EquationChoice,
        budget: Budget,
    ) -> None:
        """Take rounds of the method of multipliers, or go along the central path."""
        goal = min(tol, self.policy.last_gap) if last else tol
        budget.path = self.costs.path_step(self.kernel)
        if self._path is None:
            self._path = CentralPath.of(backend)
            if self._path is not None and self._gone is not None:  # a checkpoint has brought it
                start = Best(survey.coef, survey.intercept, survey.certified, survey.certificate)
                self._path.again(self._gone, start)
        hard = self.plain if self.smooth else not last and self._rounds_are_hard(survey)
        if not self.plain and self.costs.facts.d >= self.policy.working_set:

            def choice_for(facts: Facts) -> EquationChoice:
                costs = Costs(facts, self.problem.loss)
                steps = self.policy.steps_expected
                if self._path is None:  # sets have their own
                    budget.path = costs.path_step(False)
                return EquationChoice(costs, False, steps, budget=budget, tried=False)

            best, ending = solve_on_features(
                backend, self.problem, survey, goal, deadline, choice_for, budget, self._path, hard
            )
        else:
            rounds = Multipliers(
                backend, self.problem, solve, self.exact, self._path, hard, tol, budget
            )
            rounds.left = self._left
            best, ending = rounds.run(survey, goal, deadline)
            self._left = rounds.left
        if self._path is not None and self._path.begun:
            self._gone, self._ahead = self._path.gone, self._path.steps_left(self.tol)
        self.exhausted = ending is Ending.EXHAUSTED
        backend.place(best.duals, best.w, best.b)

    def _jump(self, backend: Backend, survey: Survey, deadline: float) -> bool:
        """Take the one step of a squared loss, its gradient and matrix from one pass over the rows.

        False if another way is cheaper, or if it was taken and what is left is rounding.
        """
        prices = self.costs.equations(1.0, self.costs.facts.n)
        if self._jumped or min(prices, key=prices.__getitem__) != "features":
            return False
        self._jumped = True
        problem, term = self.problem, backend.term()
        term.go(survey.coef, survey.intercept)
        formed = term.gram(problem.fit_intercept, deadline, combined=True)
        if formed is None:
            return False
        assert formed.combined is not None
        stiff = problem.mu * problem.regularizer.curvature
        right = formed.combined - stiff * survey.coef
        balance = term.balance if problem.fit_intercept else 0.0
        equations = Equations(stiff, right, balance, problem.fit_intercept)
        dv, db = solve_formed(formed, equations)
        backend.place(None, survey.coef + dv, survey.intercept + db)
        self.exhausted = False
        return True

    def _newton(
        self,
        backend: Backend,
        survey: Survey,
        tol: float,
        last: bool,
        deadline: float,
        solve: EquationChoice,
    ) -> Survey | None:
        """Take Newton steps; return a survey where rounds with rounded kinks are to go on.

        They are where steps were too many, or where the digits of the coefficients are too few for
        slopes so steep.
        """
        problem = self.problem
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
        share = self.policy.last_bound if last else LEFT * tol
        ending, _ = minimise(objective, Share(objective, share), deadline, most)
        if ending is Ending.STEPS and objective.lost() <= LEFT * tol * objective.value:
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
            # Rows with curvature are taken to be those not at 0; at the start all are at 0, and
            # a step takes all in.
            active = survey.moved or n
        if self.smooth and self.plain:
            return self.costs.newton(steps, active)
        if self.smooth:
            return self.policy.rounds * self.costs.newton(steps, active)
        return self._cost_of_kinks(survey, relative)

    def _rounds_are_hard(self, survey: Survey) -> bool:
        """Whether rounds for a loss with kinks may well cost more than the central path.

        What that costs is known, what they cost is a guess. On tall data they leave most rows out,
        which a path does not.
        """
        costs, policy = self.costs, self.policy
        if not policy.all_in_play(costs.facts.n, costs.facts.d):
            return False
        path = EXPECTED * costs.path_step(self.kernel)
        return path <= policy.rounds_at_worst * self._cost_of_kinks(survey, survey.relative_gap)

    def _cost_of_kinks(self, survey: Survey, relative: float) -> float:
        """Price by the accuracy still to be gained and the rows that are not yet settled."""
        costs, policy, n, d = self.costs, self.policy, self.costs.facts.n, self.costs.facts.d
        relative = min(relative, 1.0)
        decades = max(math.log10(relative / max(self.tol, 1e-15)), 0.0)
        moving = min(n, policy.rows_in_play(survey.active, d))
        share = moving / n
        step = 3.0 * costs.rates.interpreter + share * costs.pass_
        active = min(n, max(survey.active // 2, 1))
        iterations = policy.rounded_iterations(costs.iterations)
        solving = min(costs.equations(1.0, active, 0, self.kernel, iterations).values())
        begin = policy.steps_begin if relative > policy.near else policy.steps_begin_near
        looks = policy.looks + policy.looks_a_decade * decades
        free = policy.crossings * math.sqrt(min(active, d, policy.most_crossings))
        steps = max(begin + policy.steps_a_decade * decades, free)
        return looks * costs.survey + steps * (step + solving)


def _survey(backend: Backend, deadline: float) -> Survey | None:
    """Survey the point of a backend; None if there is no time left for it."""
    seconds = deadline - time.perf_counter()
    return backend.survey(frozenset(), seconds) if seconds > 0 else None
