"""The finish of `auto` as a plan: Newton steps, free duals for kinks, the span of few rows."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from adasdca import _core
from adasdca.ascent.schedules import Plan
from adasdca.ascent.survey import Survey
from adasdca.auto.costs import Costs
from adasdca.backends.blas import GAINING, THREADED, one_thread
from adasdca.duality.certificate import relative_gap
from adasdca.newton.kernel_matrix import KernelMatrix
from adasdca.newton.kinks import FreeDuals
from adasdca.newton.newton import MOST_FEATURES, Newton
from adasdca.newton.span import Span, fits
from adasdca.problem.data import DenseRows
from adasdca.problem.problem import Problem

#: Stored entries that the finish of kinks may copy, below 1 GB.
COPY = 2**26


class Finish(Protocol):
    """A way to end a solve from a point near the optimum."""

    def ready(self, relative: float) -> bool:
        """Whether it can be tried at this relative gap."""

    def cost(self, survey: Survey, steps: float) -> float:
        """Its price in nanoseconds, for that many steps."""

    def plan(self, survey: Survey, tol: float) -> Plan:
        """Plan it, to a relative gap of tol."""


@dataclass(frozen=True)
class NewtonSteps:
    """Newton steps from the point of the last survey."""

    problem: Problem
    survey: Survey
    tol: float
    threads: int
    costs: Costs
    kernel: KernelMatrix
    label: str = "Newton"
    clock: str = "finish"

    def run(self, workspace: _core.Workspace, seconds: float) -> int:
        """Take the steps; they are no coordinate updates, so the count is 0."""
        newton = Newton(self.problem, workspace, self.threads, self.costs, self.kernel)
        dense = isinstance(self.problem.rows, DenseRows)
        small = not dense and workspace.d < GAINING
        alone = (self.threads == 1 or small) and (workspace.d >= THREADED or dense)
        with one_thread() if alone else nullcontext():
            newton.run(self.survey, 0.5 * self.tol, 40, seconds)
        return 0


@dataclass(frozen=True)
class NewtonFinish:
    """The finish of smooth losses."""

    problem: Problem
    costs: Costs
    threads: int
    kernel: KernelMatrix

    def ready(self, relative: float) -> bool:
        """Whether the rows with curvature are nearly the right ones, where that may change."""
        lower, upper = getattr(self.problem.loss, "domain", (-math.inf, math.inf))
        # Where 0 is inside the domain rows have curvature around any target near their score.
        return relative < 0.05 or math.isinf(upper) or lower < 0 < upper

    def cost(self, survey: Survey, steps: float) -> float:
        """Price by the rows that have curvature, taken to be those not at 0."""
        flat = 0
        if self.problem.loss.kind == "classification" and self.problem.loss.name != "logistic":
            flat = int(np.count_nonzero(survey.beta == 0))
            if flat == len(survey.beta):
                flat = 0  # the start, from where a step takes all rows in
        return self.costs.newton(steps, len(survey.beta) - flat, self.kernel.size)

    def plan(self, survey: Survey, tol: float) -> Plan:
        """Plan Newton steps from this survey's point."""
        return NewtonSteps(self.problem, survey, tol, self.threads, self.costs, self.kernel)


@dataclass(frozen=True)
class KinkSteps:
    """The method of multipliers on the free duals, from the point of the last survey."""

    problem: Problem
    survey: Survey
    tol: float
    threads: int
    label: str = "free duals"
    clock: str = "finish"

    def run(self, workspace: _core.Workspace, seconds: float) -> int:
        """Run it; there are no coordinate updates, so the count is 0."""
        method = FreeDuals(self.problem, workspace, self.threads)
        with one_thread() if workspace.d >= THREADED else nullcontext():
            method.run(self.survey, 0.5 * self.tol, 30, seconds)
        return 0


@dataclass(frozen=True)
class KinkFinish:
    """The finish of losses with kinks."""

    problem: Problem
    costs: Costs
    threads: int
    tol: float

    def ready(self, relative: float) -> bool:
        """From anywhere: only its price depends on the point."""
        return True

    def cost(self, survey: Survey, steps: float) -> float:
        """Price by the accuracy still to be gained and the rows that are not yet settled."""
        costs = self.costs
        n, d = self.problem.rows.shape
        relative = min(relative_gap(survey.gap, survey.primal), 1.0)
        decades = max(math.log10(relative / self.tol), 0.0)
        # Newton steps are fewer from a point where most free duals are known.
        newton = 5.0 + 8.0 * decades + 8.0 * max(math.log10(relative / 1e-5), 0.0)
        newton *= min(1.0, math.log2(1.0 + d) / 8.0)
        moving = min(n, max(2 * survey.active, 4 * d, 500))
        entries = self.problem.rows.n_stored / n
        if moving * entries > COPY:
            return math.inf
        python = 3.0 * costs.rates.interpreter
        gram = min(n, survey.active) * costs.gram_row
        step = python + 25.0 * moving + gram + 2.0 * costs.factor(d)
        copy = moving * (200.0 + 50.0 * entries)
        look = python + costs.pass_ + 30.0 * n
        price = costs.survey + 2.0 * copy + (2.0 + 0.7 * decades) * look + newton * step
        if relative > 1e-2:
            # While the gap falls fast, so does the number of rows in play.
            price *= 3.0
        # Epochs slow down on kinks as they go: more will be needed than the last foretells.
        return price / (1.0 + 0.5 * decades)

    def plan(self, survey: Survey, tol: float) -> Plan:
        """Plan the method of multipliers from this survey's point."""
        return KinkSteps(self.problem, survey, tol, self.threads)


@dataclass(frozen=True)
class SpanSteps:
    """The problem in the span of its rows, from the point of the last survey."""

    span: Span
    survey: Survey
    tol: float
    label: str = "span"
    clock: str = "finish"

    def run(self, workspace: _core.Workspace, seconds: float) -> int:
        """Solve it; its updates count like those of epochs."""
        with one_thread() if self.span.threads == 1 else nullcontext():
            return self.span.improve(workspace, self.survey, 0.5 * self.tol, seconds)


@dataclass(frozen=True)
class SpanFinish:
    """The finish of few rows with many features, then another for what rounding leaves."""

    span: Span
    costs: Costs
    other: Finish | None

    def ready(self, relative: float) -> bool:
        """From anywhere."""
        return True

    def cost(self, survey: Survey, steps: float) -> float:
        """Price it; when it has been solved to the accuracy asked for, the other one."""
        if not self.span.exhausted:
            return self.costs.span(self.span.kernel.size)
        relative = relative_gap(survey.gap, survey.primal)
        if self.other is None or not self.other.ready(relative):
            return math.inf
        return self.other.cost(survey, steps)

    def plan(self, survey: Survey, tol: float) -> Plan:
        """Plan the one that was priced."""
        if self.span.exhausted and self.other is not None:
            return self.other.plan(survey, tol)
        return SpanSteps(self.span, survey, tol)


def make_finish(problem: Problem, costs: Costs, threads: int, tol: float) -> Finish | None:
    """Return the finish that fits the problem, to a relative gap of tol, if there is one."""
    kernel = KernelMatrix(problem.rows)
    finish = _make_finish(problem, costs, threads, tol, kernel)
    if fits(problem):
        return SpanFinish(Span(problem, kernel, threads), costs, finish)
    return finish


def _make_finish(
    problem: Problem, costs: Costs, threads: int, tol: float, kernel: KernelMatrix
) -> Finish | None:
    plain = problem.bounds is None and problem.l1_ratio == 0
    few = problem.rows.shape[1] <= MOST_FEATURES
    if problem.loss.smoothness > 0:
        return NewtonFinish(problem, costs, threads, kernel) if plain or few else None
    # The duals of losses with kinks must be bounded, on both sides of 0, as those of all known are.
    domain = getattr(problem.loss, "domain", (-math.inf, math.inf))
    bounded = -math.inf < domain[0] <= 0.0 <= domain[1] < math.inf
    return KinkFinish(problem, costs, threads, tol) if few and bounded else None
