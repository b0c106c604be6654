"""The second-order phase of `auto`: its price, and how the equations of its steps are solved."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from adasdca.ascent.survey import Survey
from adasdca.auto.costs import Costs
from adasdca.backends.base import Backend, RowTerm
from adasdca.backends.blas import GAINING, THREADED, one_thread
from adasdca.newton.equations import ConjugateGradients, Equations, Step, solve_by_features
from adasdca.newton.linear import LinearObjective
from adasdca.newton.moreau import Ridge
from adasdca.newton.multipliers import Multipliers
from adasdca.newton.newton import Ending, minimise
from adasdca.problem.problem import Problem

#: Steps that are expected, when the way to solve their equations is chosen.
EXPECTED = 4.0
#: Problems of at most this many rows and stored values are solved to the last digits: that takes a
#: few steps more, and the answer then depends neither on the seed nor on the order of the rows.
SMALL = 2048
#: Steps that may be taken for the last digits; far fewer are enough where rounding is seen for it.
LAST_STEPS = 30
#: The relative gap that stands for the last digits where P has kinks.
LAST_GAP = 1e-16


class EquationChoice:
    """Solves the equations of a step in the way that costs least.

    Parameters
    ----------
    costs : Costs
        The prices.
    ridge : bool
        Whether the penalty is ½‖w‖², without which there is no way by rows.
    """

    def __init__(self, costs: Costs, ridge: bool, steps: float) -> None:
        self.costs, self.ridge, self.steps = costs, ridge, steps
        self.iterations = ConjugateGradients()

    def __call__(self, term: RowTerm, equations: Equations, deadline: float) -> Step | None:
        """Solve the equations; None if time ran out."""
        way, _ = self.costs.equations(self.steps, term.curved, term.known, self.ridge)
        if way == "rows":
            found = term.solve_by_rows(
                equations.right, equations.balance, equations.intercept, deadline
            )
            if found is not None or time.perf_counter() >= deadline:
                return found
            way = "features" if len(equations.right) <= self.costs.most_unknowns else "iterations"
        if way == "features":
            return solve_by_features(term, equations, deadline)
        return self.iterations.solve(term, equations, deadline)


@dataclass(frozen=True)
class SecondOrderPlan:
    """Second-order steps from the point of the last survey."""

    phase: SecondOrder
    survey: Survey
    tol: float
    last: bool
    label: str
    clock: str = "second order"

    def run(self, backend: Backend, seconds: float) -> int:
        """Take the steps; they are no coordinate updates, so the count is 0."""
        deadline = time.perf_counter() + seconds
        self.phase.run(backend, self.survey, self.tol, self.last, deadline)
        return 0


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
    """

    def __init__(self, problem: Problem, costs: Costs, threads: int, tol: float) -> None:
        self.problem, self.costs, self.threads, self.tol = problem, costs, threads, tol
        self.plain = problem.bounds is None and problem.l1_ratio == 0
        self.smooth = problem.loss.smoothness > 0
        self.quadratic = problem.loss.is_quadratic and self.plain
        self.small = max(problem.rows.n_stored, problem.rows.shape[0]) <= SMALL
        #: Whether the last run ended because double precision shows no more.
        self.exhausted = False

    def plan(self, survey: Survey, tol: float, last: bool) -> SecondOrderPlan:
        """Plan the phase from this survey's point.

        Parameters
        ----------
        survey : Survey
            Where to begin.
        tol : float
            The relative gap to reach.
        last : bool
            Whether to go on to the last digits from there.
        """
        label = "Newton" if self.smooth and self.plain else "multipliers"
        return SecondOrderPlan(self, survey, tol, last, label)

    def run(
        self, backend: Backend, survey: Survey, tol: float, last: bool, deadline: float
    ) -> None:
        """Leave the backend at the best point found."""
        d = self.problem.rows.shape[1]
        alone = d >= THREADED and (self.threads == 1 or d < GAINING)
        with one_thread() if alone else nullcontext():
            steps = 1.0 if self.quadratic else EXPECTED
            solve = EquationChoice(self.costs, self.plain, steps)
            if self.smooth and self.plain:
                self._newton(backend, survey, tol, last, deadline, solve)
            else:
                method = Multipliers(backend, self.problem, solve)
                best, ending = method.run(survey, min(tol, LAST_GAP) if last else tol, deadline)
                self.exhausted = ending is Ending.EXHAUSTED
                backend.place(best.duals, best.w, best.b)

    def _newton(
        self,
        backend: Backend,
        survey: Survey,
        tol: float,
        last: bool,
        deadline: float,
        solve: EquationChoice,
    ) -> None:
        problem = self.problem
        term = backend.term()
        objective = LinearObjective(
            term,
            Ridge(),
            problem.strength * problem.total,
            problem.fit_intercept,
            False,
            solve,
            survey.coef,
            survey.intercept,
        )
        enough = 0.5 * tol * survey.primal * problem.total
        ending, _ = minimise(objective, enough, deadline)
        if last and ending is Ending.REACHED:
            # A quadratic function is at its least after one step; another one mends its rounding.
            most = 1 if self.quadratic else LAST_STEPS
            ending, _ = minimise(objective, 0.0, deadline, most)
        self.exhausted = ending is Ending.EXHAUSTED
        backend.place(term.duals(), objective.v, objective.b)

    def cost(self, survey: Survey, steps: float) -> float:
        """Price so many Newton steps in nanoseconds."""
        active = self.problem.rows.shape[0]
        lower, _ = self.problem.loss.domain
        if lower == 0 and not self.problem.loss.curvature_varies:
            # Rows with curvature are taken to be those not at 0; at the start all are at 0, and
            # a step takes all in.
            active = int(np.count_nonzero(survey.beta)) or active
        if self.smooth and self.plain:
            return self.costs.newton(steps, active)
        if self.smooth:
            return 3.0 * self.costs.newton(steps, active)
        return self._cost_of_kinks(survey)

    def _cost_of_kinks(self, survey: Survey) -> float:
        """Price by the accuracy still to be gained and the rows that are not yet settled."""
        costs, (n, d) = self.costs, self.problem.rows.shape
        relative = min(survey.relative_gap, 1.0)
        decades = max(math.log10(relative / max(self.tol, 1e-15)), 1.0)
        moving = min(n, max(2 * survey.active, 4 * min(d, 1000), 500))
        share = moving / n
        step = 3.0 * costs.rates.interpreter + share * costs.pass_
        _, solving = costs.equations(1.0, min(n, max(survey.active // 2, 1)), 0, self.plain)
        look = 2.0 * costs.survey
        return decades * look + 8.0 * decades * (step + solving)
