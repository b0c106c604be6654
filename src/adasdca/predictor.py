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
from adasdca.backends.backend import Backend
from adasdca.backends.base import Gram
from adasdca.backends.facts import Facts
from adasdca.backends.term import RowTerm
from adasdca.methods import Method
from adasdca.newton.equations import Equations, Step, solve_formed
from adasdca.newton.linear import LinearObjective
from adasdca.newton.moreau import Ridge
from adasdca.newton.newton import minimise
from adasdca.newton.proximal import SERVES, GramModels, ProximalObjective
from adasdca.problem.losses import Loss
from adasdca.problem.problem import Problem
from adasdca.solution import Guess, State

Array = NDArray[np.float64]

#: Points that are extrapolated, at most.
MOST_POINTS = 4
#: Powers p of λ for which λᵖx is extrapolated.
POWERS = (1.0, 0.5, 0.0)
#: A guess is corrected if its relative gap is below this. For a penalty with kinks steps by models
#: are better than what else there is from anywhere.
NEAR = 0.3
#: Features up to which curvature is kept as a matrix.
MOST_FEATURES = 600
#: Most steps of a correction, and the share of the gap asked for that they may leave.
STEPS, LEFT = 8, 0.02


class Forecast:
    """Extrapolates the solutions along lam.

    λᵖx is interpolated by a polynomial in log λ. Coefficients have p = 1 where they are small and
    grow with C, and p = 0 where they hardly change any more. Of all `powers` p and degrees, the
    combination with the smallest error at the last point is used. The last `free` numbers of a
    point, intercepts, have p = 0.
    """

    def __init__(self, powers: tuple[float, ...], free: int = 1) -> None:
        self._free, self._powers = free, powers
        self._lams: list[float] = []
        self._points: list[Array] = []
        self._kind = 0, 0  # the power, and the degree
        self._ahead: tuple[float, Array] | None = None

    def learn(self, lam: float, point: Array) -> None:
        """Add a point."""
        if self._points:
            errors = self._guesses(lam) - point
            least = int(np.argmin(np.einsum("ij,ij->i", errors, errors)))
            self._kind = divmod(least, len(self._points))
        self._lams = [*self._lams, lam][-MOST_POINTS:]
        self._points = [*self._points, point][-MOST_POINTS:]
        self._ahead = None

    def guess(self, lam: float) -> Array | None:
        """Extrapolate to the next lam; None before the first point."""
        if not self._points:
            return None
        power, degree = self._kind
        return np.array(self._guesses(lam)[power * len(self._points) + degree])

    def split(self, lam: float) -> tuple[Array, float]:
        """Extrapolate to the next lam a vector and the number behind it."""
        found = self.guess(lam)
        assert found is not None
        return found[:-1], float(found[-1])

    def _guesses(self, lam: float) -> Array:
        """Return those of all powers and degrees, which `guess` and `learn` both ask for."""
        if self._ahead is not None and self._ahead[0] == lam:
            return self._ahead[1]
        known, powers = len(self._points), len(self._powers)
        shares, points = np.zeros((known, known)), np.array(self._points)
        for first in range(known):
            places = [math.log(each / lam) for each in self._lams[first:]]
            for k, place in enumerate(places):
                others = places[:k] + places[k + 1 :]
                shares[known - 1 - first, first + k] = math.prod(
                    other / (other - place) for other in others
                )
        scales = np.array([[(each / lam) ** p for each in self._lams] for p in self._powers])
        scaled = shares * scales[:, None, :]
        out = np.asarray(scaled.reshape(powers * known, known) @ points)
        out[:, -self._free :] = np.tile(shares @ points[:, -self._free :], (powers, 1))
        self._ahead = lam, out
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
        narrow = type(method) is Auto and d <= min(n, MOST_FEATURES)
        self._primal = narrow and loss.smoothness > 0
        self._ways = Ways() if narrow and not self._primal else None
        self.method: Method = AutoWithCorrector(ways=self._ways) if narrow else method
        self._forecast = Forecast(POWERS if narrow else (0.0,))
        self._duals = Forecast((0.0,))
        self._last: State | None = None

    def start(self, mu: float) -> Guess | State | None:
        """Return where to begin; None for the first μ."""
        last = self._last
        if last is None:
            return None
        solved = self._solved(mu)
        if solved is not None:
            return solved
        if self._primal:
            coef, b = self._forecast.split(mu)
            if self._curvature is None:  # what rests at 0 stays there, and nothing crosses it
                coef = np.where(coef * self._model[1] > 0, coef, 0.0)
            return Guess(coef, b)
        (beta, multiplier), (lower, upper) = self._duals.split(mu), self._domain
        # Into the domain of the conjugate; duals of classification have a sign.
        sign = np.sign(last.beta) if lower == 0 else 1.0
        beta = np.asarray(sign * np.clip(sign * beta, lower, upper))
        if self._ways is not None and self._ways.choose():
            return Guess(*self._forecast.split(mu), beta)
        return State(beta, multiplier, last.epoch, last.seed)

    def _solved(self, mu: float) -> Guess | None:
        """Return the solution of a squared loss, whose curvature is the same everywhere.

        With XᵀR = μw at the last μ, (Σ x_i x_iᵀ + μ'e) Δw = (μ − μ') e w.
        """
        before, coef, intercept = self._model
        if not self._knows_curvature(len(coef)):
            return None
        assert isinstance(self.method, AutoWithCorrector)
        chord = self.method.chord
        if self._curvature is None:
            found = chord.models.solved(mu, coef, intercept)
            return None if found is None else Guess(*found)
        assert chord.formed is not None
        stiff = mu * self._curvature
        right = (before - mu) * self._curvature * coef
        step = solve_formed(chord.formed, Equations(stiff, right, 0.0, chord.formed.mass > 0))
        return None if step is None else Guess(coef + step[0], intercept + step[1])

    def _knows_curvature(self, d: int) -> bool:
        """Whether the curvature is the same everywhere, and known."""
        if not (self._straight and isinstance(self.method, AutoWithCorrector)):
            return False
        chord = self.method.chord
        known = chord.formed if self._curvature is not None else chord.models.stepped
        return known is not None and len(known.matrix) == d

    def learn(self, mu: float, coef: Array, intercept: float, state: State) -> None:
        """Add a solution."""
        self._last, self._model = state, (mu, coef, intercept)
        if self._knows_curvature(len(coef)):
            return  # no forecast is asked for any more
        if self._primal or self._ways is not None:
            self._forecast.learn(mu, np.append(coef, intercept))
        if not self._primal:
            self._duals.learn(mu, np.append(state.beta, state.multiplier))


@dataclass
class Chord:
    """The chord method: steps with the matrix of an earlier point, formed anew after a few."""

    formed: Gram | None = None
    models: GramModels = field(default_factory=GramModels)  #: The same for penalties with kinks.
    _left: int = 0

    def begin(self, quadratic: bool) -> None:
        """Begin with the next lam."""
        self._left = STEPS if quadratic else SERVES
        self.models.begin()

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


class Ways:
    """How a loss with kinks goes on at the next lam: epochs from the duals, or rounds from a pair.

    Epochs need duals to which the coefficients belong. Where the penalty is weak these say nothing,
    however near the duals are, and rounds begin at coefficients that are extrapolated by
    themselves. What was cheaper at the last lam, by its prices, goes on until it costs more than
    the other one did when it was tried last (a9a, 5000 rows, hinge: 740 -> 240 ms).
    """

    def __init__(self) -> None:
        self._costs: dict[bool, float] = {}
        self._rounds = False  # what is tried now
        self._tried: Any = None  # by this schedule
        self._warm = False  # whether that began at an earlier solution

    def choose(self) -> bool:
        """Take note of what the last solve has cost; return whether rounds come first now."""
        if self._tried is not None and self._warm:
            self._costs[self._rounds] = self._tried.work
        self._tried, self._warm = None, True
        if len(self._costs) < 2:
            self._rounds = False in self._costs
        else:
            self._rounds = self._costs[True] < self._costs[False]
        return self._rounds

    def begin(self, schedule: Any) -> bool:
        """Watch a solve; return whether rounds come first."""
        self._tried = schedule
        return self._rounds


@dataclass(frozen=True)
class AutoWithCorrector(Auto):
    """`auto` from a predicted point, which is corrected first."""

    chord: Chord = field(default_factory=Chord)
    ways: Ways | None = None

    def schedule(self, problem: Problem, facts: Facts, tol: float, threads: int) -> Schedule:
        """Return what the method does during one solve."""
        auto = super().schedule(problem, facts, tol, threads)
        return CorrectorSchedule(auto, problem, tol, self.chord, self.ways)


class CorrectorSchedule:
    """A correction, then the schedule of `auto`."""

    def __init__(
        self, auto: Any, problem: Problem, tol: float, chord: Chord, ways: Ways | None
    ) -> None:
        self._auto, self._problem, self._tol, self._chord = auto, problem, tol, chord
        self._rounds = ways is not None and ways.begin(auto)
        self._corrected = ways is not None and not self._rounds

    @property
    def needs(self) -> frozenset[str]:
        """What surveys are to show of every row."""
        needs: frozenset[str] = self._auto.needs
        return needs

    def plan(self, survey: Survey, key: int) -> Any:
        """Plan the correction, or the next epoch or second-order phase."""
        far = self._problem.regularizer.is_quadratic and not survey.relative_gap < NEAR
        if self._corrected or far:
            return self._auto.plan(survey, key)
        self._corrected = True
        if self._rounds:
            return self._auto.second_order_first(survey)
        return Correction(self._problem, survey, self._tol, self._chord)


@dataclass(frozen=True)
class Correction:
    """Newton steps with the curvature of an earlier point."""

    problem: Problem
    survey: Survey
    tol: float
    chord: Chord
    label: str = "Newton"
    found: None = None  #: The survey after it certifies where it has led.

    def run(self, backend: Backend, seconds: float) -> None:
        """Take the steps for at most that many seconds."""
        deadline = time.perf_counter() + seconds
        self.chord.begin(self.problem.loss.is_quadratic)
        steps = self._steps if self.problem.regularizer.is_quadratic else self._model_steps
        backend.place(None, *steps(backend, deadline))

    def _steps(self, backend: Backend, deadline: float) -> tuple[Array, float]:
        """Return where steps of a quadratic penalty lead."""
        problem, survey = self.problem, self.survey
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
        minimise(objective, lambda: LEFT * self.tol * objective.value, deadline, STEPS)
        return objective.v, objective.b

    def _model_steps(self, backend: Backend, deadline: float) -> tuple[Array, float]:
        """Return where steps of a penalty with kinks lead."""
        problem, survey = self.problem, self.survey
        start = survey.coef, survey.intercept, survey.primal * problem.total
        models, share = self.chord.models, LEFT * self.tol
        steps = ProximalObjective(problem, backend.term(), models, start, share=share)
        steps.run(deadline)
        return steps.w, steps.b
