"""The finish of `auto` as a plan: Newton steps for smooth losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from adasdca import _core
from adasdca.costs import Costs
from adasdca.newton import LARGEST, Newton
from adasdca.problem import Problem
from adasdca.schedules import Plan
from adasdca.survey import Survey


class Finish(Protocol):
    """A way to end a solve from a point near the optimum."""

    def ready(self, relative: float) -> bool:
        """Whether it can be tried at this relative gap."""

    def cost(self, costs: Costs, survey: Survey, steps: int) -> float:
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
    label: str = "Newton"

    def run(self, workspace: _core.Workspace, seconds: float) -> int:
        """Take the steps; they are no coordinate updates, so the count is 0."""
        newton = Newton(self.problem, workspace, self.threads)
        newton.run(self.survey, 0.5 * self.tol, 40, seconds)
        return 0


@dataclass(frozen=True)
class NewtonFinish:
    """The finish of smooth losses."""

    problem: Problem
    threads: int

    def ready(self, relative: float) -> bool:
        """Whether the rows with curvature are nearly the right ones, where that may change."""
        clipped = not math.isinf(max(map(abs, getattr(self.problem.loss, "domain", (math.inf,)))))
        return relative < 0.05 or not clipped

    def cost(self, costs: Costs, survey: Survey, steps: int) -> float:
        """Price by the rows that have curvature, taken to be those not at 0."""
        if self.problem.rows.shape[1] > LARGEST:
            return steps * 160 * costs.pass_
        flat = 0
        if self.problem.loss.kind == "classification" and self.problem.loss.name != "logistic":
            flat = int(np.count_nonzero(survey.beta == 0))
        return costs.newton(steps, len(survey.beta) - flat)

    def plan(self, survey: Survey, tol: float) -> Plan:
        """Plan Newton steps from this survey's point."""
        return NewtonSteps(self.problem, survey, tol, self.threads)


def make_finish(problem: Problem, threads: int) -> Finish | None:
    """Return the finish that fits the problem, if any."""
    plain = problem.bounds is None and problem.l1_ratio == 0
    if problem.loss.smoothness > 0 and (plain or problem.rows.shape[1] <= LARGEST):
        return NewtonFinish(problem, threads)
    return None
