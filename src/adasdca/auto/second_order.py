"""The second-order phase of `auto`: its steps, and its price."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.ascent.survey import Survey
from adasdca.auto.costs import Costs
from adasdca.auto.equations import MORE, EquationChoice
from adasdca.auto.jump import CLOSE, Jump, Start, equations_at
from adasdca.auto.policy import Policy
from adasdca.backends.abilities import EquationIterator, able
from adasdca.backends.base import Backend, Facts, Gram, RowTerm, to_host
from adasdca.backends.blas import GAINING, LONG, THREADED, one_thread
from adasdca.newton.budget import Budget
from adasdca.newton.equations import Solve, solve_formed
from adasdca.newton.interior import CentralPath
from adasdca.newton.linear import Best, LinearObjective
from adasdca.newton.moreau import Ridge
from adasdca.newton.multipliers import HARD, Multipliers, best_point
from adasdca.newton.newton import MOST_STEPS, Ending, Share, minimise
from adasdca.newton.working_set import solve_on_features
from adasdca.problem.data import FAR
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: What steps leave to be gained, in units of the gap that is asked for: the duals have the rest.
LEFT = 0.5
#: Most features of which a squared loss is minimised by its matrix where the penalty is not
#: quadratic, times that is done, the first of them with a matrix of few digits, and the share of
#: the goal that is left: a sweep of coordinates shows no more than what it gains.
TOGETHER, AGAIN, ROUGH, FOUND = 1000, 4, 2, 1e-3
#: What can be gained at most, in units of the objective, which is never below 0; and rounding.
MOST_GAIN = 1.01


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
        # Kinks change the matrix from step to step, and ask for its digits.
        self.costs.rough = self.plain and self.smooth
        self.quadratic = problem.loss.is_quadratic and self.plain
        facts = costs.facts
        few = facts.d <= min(facts.n, TOGETHER) and facts.batch == 1
        #: Whether it is minimised as a function of its features alone, though it has kinks.
        self.separable = problem.loss.is_quadratic and not self.plain and few
        self.small = max(costs.facts.stored, costs.facts.n) <= policy.small
        self._jumped = False
        #: That of a squared loss, once it is known.
        self._matrix: list[Gram] | None = [] if self.quadratic else None
        self._whole_gap = math.inf  # where all features were minimised at once the last time
        self._factor: Solve | None = None  # of Newton's steps, in few digits
        self._cut: Jump | None = None  # the one step of a squared loss, where it was cut
        self._so_far: tuple[Any, ...] | None = None  # by which another one goes on with it
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
            if found is not None and self._cut is not None:
                self._cut.left = found.gap
            if found is not None and found.gap > 0.9 * survey.gap:
                backend.restart(survey.beta, multiplier)
        self._so_far = None if self._cut is None else self._cut.gone

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
            solve = EquationChoice(
                self.costs, self.kernel, steps, self.exact, budget, newton, self._matrix
            )
            solve.factor = self._factor
            if self.quadratic and not self.exact:
                solve.iterations.share = LEFT * tol
            jumps = self.quadratic and not (last or self.exact)
            goal = min(tol, self.policy.last_gap) if last else tol
            separate = self.separable and not self.exact
            found = separate and self._separately(backend, survey, goal, deadline)
            if not (found or (jumps and self._jump(backend, survey, tol, deadline, solve))):
                start: Survey | None = survey
                if newton:
                    start = self._newton(backend, survey, tol, last, deadline, solve)
                self._factor = solve.factor
                if start is not None:
                    self._rounds(backend, start, tol, last, deadline, solve, budget)
            if self.quadratic and not solve.iterations.done:
                # So many were not enough, and as many again may be.
                # (begun anew: usps, C = 0.01: 88 -> 52 ms)
                more = MORE if self._cut is None else 1.0
                expected = more * solve.iterations.taken
                self.costs.iterations = max(self.costs.iterations, expected)

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
        solve.kept = None  # rounds have a curvature of their own
        budget.path = self.costs.path_step(self.kernel)
        budget.entry = self.costs.rates.sparse_entry
        if self._path is None:
            self._path = CentralPath.of(backend)
            if self._path is not None and self._gone is not None:  # a checkpoint has brought it
                start = Best(survey.coef, survey.intercept, survey.certified, survey.certificate)
                self._path.again(self._gone, start)
        hard = self.plain if self.smooth else not last and self._rounds_are_hard(survey)
        # Sums in twice the digits are those of all features.
        if not (self.plain or self.exact) and self.costs.facts.d >= self.policy.working_set:

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

    def _jump(
        self,
        backend: Backend,
        survey: Survey,
        tol: float,
        deadline: float,
        solve: EquationChoice,
    ) -> bool:
        """Take the one step of a squared loss, whose length is 1.

        The gradient and the matrix of the features come from one pass over the rows, if that is the
        way. False if it was taken before, and what is left is rounding.
        """
        if self._jumped:
            return False
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
                for rough in (True, False):
                    formed = term.gram(problem.fit_intercept, deadline, combined=True, rough=rough)
                    if formed is None:
                        return False
                    assert formed.combined is not None
                    equations = equations_at(problem, start, formed.combined, term.balance)
                    step = solve_formed(formed, equations, deadline, CLOSE * tol)
                    if step is not None:
                        break
                if step is None:
                    return False
                backend.place(None, start.w + step[0], start.b + step[1])
                self.exhausted = False
                return True
            if able(term, EquationIterator) is not None:
                return False
            jump = Jump.begin(problem, term, start, CLOSE * tol)
        solve.iterations = jump.iterations
        step = solve(jump.term, jump.equations, deadline)
        cut = solve.iterated and not solve.iterations.done
        self._cut, self._jumped = (jump, False) if cut else (None, True)
        if step is None:
            return False
        duals = solve.iterations.duals if solve.iterated else None
        backend.place(duals, jump.start.w + step[0], jump.start.b + step[1])
        self.exhausted = False
        return True

    def _separately(self, backend: Backend, survey: Survey, tol: float, deadline: float) -> bool:
        """Minimise a squared loss and a separable penalty, by the matrix of the features.

        False where that was done before, and what is left is rounding.
        """
        if survey.gap > 0.1 * self._whole_gap:
            return False
        self._whole_gap = survey.gap
        problem, g = self.problem, self.problem.regularizer
        term, d = backend.term(), self.costs.facts.d
        w, b, value = survey.coef, survey.intercept, survey.primal * problem.total
        ridge, kink = (np.full(d, self.problem.mu * each) for each in (g.curvature, g.threshold))
        lower, upper = g.bounds or (np.full(d, -math.inf), np.full(d, math.inf))
        most, settled, wrong = MOST_GAIN * value, False, False
        for attempt in range(AGAIN):
            found = term.place(w, b)
            # Where the penalty is weak, rounding of the step leaves duals that are not feasible.
            if settled and g.feasible_share(to_host(found.u)) > 1.0 - tol:
                break
            formed = self._gram_of_all(term, deadline, attempt < ROUGH and not wrong)
            if formed is None:
                return False
            matrix, column, mass, rough = formed
            balance = found.balance if mass > 0 else 0.0
            slope = problem.mu * to_host(found.u) - column * (balance / mass if mass > 0 else 0.0)
            before, force = w, slope.copy()
            w = w.copy()
            seconds = deadline - time.perf_counter()
            if not _core.minimise_separable(
                matrix, ridge, kink, lower, upper, w, slope, FOUND * tol * value, seconds
            ):
                return False
            step = w - before
            gained = 0.5 * float((force + slope) @ step)
            gained -= problem.mu * (g.value(w) - g.value(before))
            if not gained <= most:  # rounding has left the matrix no minimum
                if not rough:
                    return False
                w, wrong = before, True
                continue
            b += (balance - float(column @ step)) / mass if mass > 0 else 0.0
            value = max(value - gained, 0.0)
            settled = not rough or gained <= LEFT * tol * value
            if settled and g.eta > 0:
                break
        backend.place(None, w, b)
        self.exhausted = False
        return True

    def _gram_of_all(
        self, term: RowTerm, deadline: float, rough: bool
    ) -> tuple[Array, Array, float, bool] | None:
        """Return the matrix of a squared loss, Σ h_i x_i, Σ h_i, and whether they have few digits.

        What rounding may hide of the curvature is added to the matrix. So the quadratic function is
        nowhere below the one that is meant, which falls with it, whatever the penalty is worth.

        It is that of all solves with these rows, weights and loss, as those of a path are.
        """
        problem = self.problem
        known: dict[Any, Any] = getattr(problem.rows, "known", {})
        key = problem.fit_intercept, problem.loss, rough
        weight, found = known.get(key, (None, None))
        if found is not None and weight is problem.weight:
            return found  # type: ignore[no-any-return]
        formed = term.gram(problem.fit_intercept, deadline, rough=rough)
        if formed is None:
            return None
        lines = np.tril(to_host(formed.matrix))
        epsilon = float(np.finfo(lines.dtype).eps)
        whole = lines.astype(np.float64) + np.tril(lines, -1).T
        own = whole.diagonal()
        if formed.mass > 0:  # less a mean that is not far, digits are those of the squares
            own = own + np.minimum(formed.column**2 / formed.mass, FAR * own)
        if not np.isfinite(own).all():
            return self._gram_of_all(term, deadline, False) if rough else None
        np.fill_diagonal(whole, whole.diagonal() + len(own) * epsilon * own)
        found = whole, formed.column, formed.mass, formed.product is not None
        known[key] = problem.weight, found
        return found

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
            rounds = 1.0 if self.separable else self.policy.rounds
            return rounds * self.costs.newton(steps, active)
        hard = self._rounds_are_hard(survey)
        return self._cost_of_path() if hard else self._cost_of_rounds(survey, relative)

    def _rounds_are_hard(self, survey: Survey) -> bool:
        """Whether rounds for a loss with kinks may well cost more than the central path.

        What that costs is known, what they cost is a guess. On tall data they leave most rows out,
        which a path does not.
        """
        policy, facts = self.policy, self.costs.facts
        if not policy.all_in_play(facts.n, facts.d):
            return False
        rounds = self._cost_of_rounds(survey, survey.relative_gap)
        return self._cost_of_path() <= policy.rounds_at_worst * rounds

    def _cost_of_path(self) -> float:
        return self.policy.path_steps * self.costs.path_step(self.kernel)

    def _cost_of_rounds(self, survey: Survey, relative: float) -> float:
        """Price by the accuracy still to be gained and the rows that are not yet settled."""
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
