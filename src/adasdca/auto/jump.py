"""The one step of a squared loss, by iterations that may go on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca.ascent.survey import Survey
from adasdca.backends.backend import Backend
from adasdca.backends.term import RowTerm
from adasdca.newton.equations import ConjugateGradients, Equations
from adasdca.problem.device_rows import to_host
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: What the step leaves, in units of the gap that is asked for: its duals come with it.
CLOSE = 0.9


class Start(NamedTuple):
    """Where the step begins: duals and a point, and the objective and the gap there."""

    beta: Array
    w: Array
    b: float
    primal: float
    gap: float


def equations_at(problem: Problem, start: Start, combined: Any, balance: float) -> Equations:
    """Return those of the step, where Σ c_iβ_i x_i is given."""
    stiff, value = problem.mu * problem.regularizer.curvature, start.primal * problem.total
    balance = balance if problem.fit_intercept else 0.0
    gradient = stiff * start.w
    right, free = to_host(combined) - gradient, problem.fit_intercept
    return Equations(stiff, right, balance, free, value=value, gradient=gradient)


@dataclass
class Jump:
    """The step as it goes on."""

    iterations: ConjugateGradients  #: Of the step.
    term: RowTerm
    equations: Equations
    start: Start  #: Where it begins.
    left: float = math.inf  #: The gap where it was cut.

    @classmethod
    def begin(cls, problem: Problem, term: RowTerm, start: Start, share: float) -> Jump:
        """Begin at a point; this share of the objective may be left."""
        found = term.place(start.w, start.b)
        equations = equations_at(problem, start, problem.mu * found.u, found.balance)
        return cls(ConjugateGradients(share=share, start=start.beta), term, equations, start)

    @property
    def gone(self) -> tuple[Any, ...]:
        """What `again` asks for."""
        return tuple(self.start), self.iterations.share, self.left, self.iterations.numbers

    @classmethod
    def again(cls, backend: Backend, gone: tuple[Any, ...]) -> Jump:
        """Return another one where it was cut."""
        start, share, left, numbers = gone
        jump = cls.begin(backend.problem, backend.term(), Start(*start), share)
        jump.left = left
        jump.iterations.resume(jump.term, jump.equations, numbers)
        return jump

    def is_ahead(self, survey: Survey) -> bool:
        """Whether epochs since then have gained less than it had."""
        return survey.gap * self.start.gap >= self.left**2
