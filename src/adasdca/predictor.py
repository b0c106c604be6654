"""Numerical continuation in lam: a predictor, and a corrector with the curvature of earlier points.

The predictor extrapolates the last solutions. The corrector takes Newton steps with a matrix that
was formed before. (E. Allgower and K. Georg, Introduction to Numerical Continuation Methods, 1990.)
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.ascent.schedules import Schedule
from adasdca.ascent.survey import Survey
from adasdca.auto.method import Auto
from adasdca.backends.base import Backend, Facts, Gram, RowTerm
from adasdca.methods import Method
from adasdca.newton.equations import Equations, Step, solve_formed
from adasdca.newton.linear import LinearObjective
from adasdca.newton.moreau import Ridge
from adasdca.newton.newton import minimise
from adasdca.problem.losses import Loss
from adasdca.problem.problem import Problem
from adasdca.solution import Guess, State

Array = NDArray[np.float64]

#: Points that are extrapolated, at most.
MOST_POINTS = 4
#: Powers p of λ for which λᵖx is extrapolated.
POWERS = (1.0, 0.5, 0.0)
#: A guess is corrected if its relative gap is below this.
NEAR = 0.3
#: Features up to which curvature is kept as a matrix.
MOST_FEATURES = 600
#: Steps with one matrix at one lam.
SERVES = 3
#: Most steps of a correction.
STEPS = 8


class Forecast:
    """Extrapolates the solutions along lam.

    λᵖx is interpolated by a polynomial in log λ. Coefficients have p = 1 where they are small and
    grow with C, and p = 0 where they hardly change any more. Of all `powers` p and degrees, the
    combination with the smallest error at the last point is used. The last `free` numbers of a
    point, intercepts, have p = 0.
    """

    def __init__(self, powers: tuple[float, ...], free: int = 1) -> None:
        self._free = free
        self._kinds = [(p, count) for p in powers for count in range(1, MOST_POINTS + 1)]
        self._lams: list[float] = []
        self._points: list[Array] = []
        self._kind = self._kinds[0]

    def learn(self, lam: float, point: Array) -> None:
        """Add a point."""
        if self._points:
            kinds = [kind for kind in self._kinds if kind[1] <= len(self._points)]
            errors = self._guesses(lam, kinds) - point
            self._kind = kinds[int(np.argmin(np.einsum("ij,ij->i", errors, errors)))]
        self._lams = [*self._lams, lam][-MOST_POINTS:]
        self._points = [*self._points, point][-MOST_POINTS:]

    def guess(self, lam: float) -> Array | None:
        """Extrapolate to the next lam; None before the first point."""
        return self._guesses(lam, [self._kind])[0] if self._points else None

    def _guesses(self, lam: float, kinds: list[tuple[float, int]]) -> Array:
        known = len(self._points)
        scaled, plain = np.zeros((len(kinds), known)), np.zeros((len(kinds), known))
        for row, (p, count) in enumerate(kinds):
            first = known - count
            places = [math.log(each / lam) for each in self._lams[first:]]
            for k, place in enumerate(places):
                others = places[:k] + places[k + 1 :]
                share = math.prod(other / (other - place) for other in others)
                plain[row, first + k] = share
                scaled[row, first + k] = share * math.exp(p * place)
        points = np.array(self._points)
        out = np.asarray(scaled @ points)
        out[:, -self._free :] = plain @ points[:, -self._free :]
        return out


class Track:
    """The starting point for the next μ = λN, and the method.

    `curvature` is that of the penalty; None if it is not quadratic.
    """

    def __init__(
        self,
        loss: Loss,
        shape: tuple[int, int],
        curvature: float | Array | None,
        method: Method,
    ) -> None:
        (n, d), self._domain = shape, loss.domain
        self._curvature, self._straight = curvature, loss.is_quadratic
        # Newton steps by features: the matrix of one lam serves the next.
        self._primal = (
            type(method) is Auto
            and loss.smoothness > 0
            and curvature is not None
            and d <= min(n, MOST_FEATURES)
        )
        self.method: Method = AutoWithCorrector() if self._primal else method
        self._forecast = Forecast(POWERS if self._primal else (0.0,))
        self._last: State | None = None

    def start(self, mu: float) -> Guess | State | None:
        """Return where to begin; None for the first μ."""
        point, last = self._forecast.guess(mu), self._last
        if point is None or last is None:
            return None
        if self._primal:
            return self._solved(mu) or Guess(point[:-1], float(point[-1]))
        beta, (lower, upper) = point[:-1], self._domain
        # Into the domain of the conjugate; duals of classification have a sign.
        sign = np.sign(last.beta) if lower == 0 else 1.0
        beta = np.asarray(sign * np.clip(sign * beta, lower, upper))
        return State(beta, float(point[-1]), last.epoch, last.seed)

    def _solved(self, mu: float) -> Guess | None:
        """Return the solution of a squared loss, whose curvature is the same everywhere.

        With XᵀR = μw at the last μ, (Σ x_i x_iᵀ + μ'e) Δw = (μ − μ') e w.
        """
        formed = self.method.chord.formed if isinstance(self.method, AutoWithCorrector) else None
        before, coef, intercept = self._model
        if not self._straight or formed is None or len(formed.matrix) != len(coef):
            return None
        assert self._curvature is not None
        stiff = mu * self._curvature
        right = (before - mu) * self._curvature * coef
        step = solve_formed(formed, Equations(stiff, right, 0.0, formed.mass > 0))
        return None if step is None else Guess(coef + step[0], intercept + step[1])

    def learn(self, mu: float, coef: Array, intercept: float, state: State) -> None:
        """Add a solution."""
        self._last, self._model = state, (mu, coef, intercept)
        ends = (coef, intercept) if self._primal else (state.beta, state.multiplier)
        self._forecast.learn(mu, np.append(*ends))


@dataclass
class Chord:
    """The chord method: steps with the matrix of an earlier point, formed anew after a few."""

    formed: Gram | None = None
    _left: int = 0

    def begin(self, quadratic: bool) -> None:
        """Begin with the next lam."""
        self._left = STEPS if quadratic else SERVES

    def __call__(self, term: RowTerm, equations: Equations, deadline: float) -> Step | None:
        """Solve the equations; None if time ran out."""
        fits = self.formed is not None and len(self.formed.matrix) == len(equations.right)
        if not fits or self._left <= 0:
            self.formed = term.gram(equations.intercept, deadline)
            self._left = 2
        if self.formed is None:
            return None
        self._left -= 1
        return solve_formed(self.formed, equations)


@dataclass(frozen=True)
class AutoWithCorrector(Auto):
    """`auto` from a predicted point, which is corrected first."""

    chord: Chord = field(default_factory=Chord)

    def schedule(self, problem: Problem, facts: Facts, tol: float, threads: int) -> Schedule:
        """Return what the method does during one solve."""
        auto = super().schedule(problem, facts, tol, threads)
        return CorrectorSchedule(auto, problem, tol, self.chord)


class CorrectorSchedule:
    """A correction, then the schedule of `auto`."""

    def __init__(self, auto: Any, problem: Problem, tol: float, chord: Chord) -> None:
        self._auto, self._problem, self._tol, self._chord = auto, problem, tol, chord
        self._corrected = False

    @property
    def needs(self) -> frozenset[str]:
        """What surveys are to show of every row."""
        needs: frozenset[str] = self._auto.needs
        return needs

    def plan(self, survey: Survey, key: int) -> Any:
        """Plan the correction, or the next epoch or second-order phase."""
        if self._corrected or not survey.relative_gap < NEAR:
            return self._auto.plan(survey, key)
        self._corrected = True
        return Correction(self._problem, survey, self._tol, self._chord)


@dataclass(frozen=True)
class Correction:
    """Newton steps with the curvature of an earlier point."""

    problem: Problem
    survey: Survey
    tol: float
    chord: Chord
    label: str = "Newton"

    def run(self, backend: Backend, seconds: float) -> None:
        """Take the steps for at most that many seconds."""
        problem, survey = self.problem, self.survey
        self.chord.begin(problem.loss.is_quadratic)
        objective = LinearObjective(
            backend.term(),
            Ridge(problem.regularizer.curvature),
            problem.mu,
            problem.fit_intercept,
            False,
            self.chord,
            survey.coef,
            survey.intercept,
            survey.primal * problem.total,
        )
        deadline = time.perf_counter() + seconds
        minimise(objective, lambda: 0.02 * self.tol * objective.value, deadline, STEPS)
        backend.place(None, objective.v, objective.b)
