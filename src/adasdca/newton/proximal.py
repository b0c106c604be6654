"""Proximal Newton steps, for a smooth loss and a penalty with kinks or bounds.

With s and M the slope and the curvature of the rows at w, a step minimises the model

    ½ Δ·MΔ − s·Δ + μ g(w + Δ),

kinks and bounds included. What an intercept takes is eliminated from M and s. There are two kinds
of models: by the matrix of few features, and by the columns of many. The model of a squared loss is
the loss, and its steps have length 1. Others end where the slope along them is about 0: rows may
have more curvature on the way than where a step began. (J. D. Lee, Y. Sun and M. A. Saunders,
"Proximal Newton-type methods for minimizing composite functions", SIAM Journal on Optimization 24,
2014.)
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backends.abilities import ColumnRows
from adasdca.backends.base import FOREVER, Derivatives, Gram
from adasdca.backends.term import RowTerm
from adasdca.newton.budget import Budget
from adasdca.newton.line import Slope, step_length
from adasdca.newton.linear import HIDDEN
from adasdca.newton.moreau import ElasticBox
from adasdca.newton.newton import Ending, minimise
from adasdca.problem.data import FAR
from adasdca.problem.device_rows import to_host
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]
UNBOUNDED = -math.inf, math.inf
#: The Moreau envelope of infinite stiffness is the penalty itself, wherever its centre is.
NOWHERE, RIGID = np.zeros(1), np.full(1, math.inf)

#: Steps at most: of models that are right they double the digits, and others are formed anew.
MOST_STEPS = 40
#: No step of a squared loss gains more than the whole objective, which is 0 or more; with 1 % for
#: rounding.
MOST_GAIN = 1.01
#: The gain of a step that seems to gain nothing.
TINY = sys.float_info.min
#: A matrix serves so many steps at first. A step that leaves more than a share SLOW asks for a
#: matrix of its own, which serves two.
SERVES, SLOW = 3, 0.3
#: Coordinate descent on a matrix ends where a sweep gains less than this share of what the steps
#: may leave: more than a gain is not known.
FOUND = 1e-3
#: Times that the entries of columns are visited at most: sets that take more are left to others.
VISITS = 3000.0
#: Times that they are visited for the first model of a loss that is not its own, and what a model
#: may leave of a step, in units of what the last step has gained.
FIRST, LEFT = 8.0, 0.1


class ModelStep(NamedTuple):
    """Where a step leads."""

    w: Array
    db: float  #: What the intercept changes by.
    gained: float  #: By how much the model falls.
    settled: bool  #: Whether its minimum is as good as asked for, the duals included.


class Models(Protocol):
    """Where steps come from."""

    def step(self, at: ProximalObjective, deadline: float) -> ModelStep | None:
        """Minimise a model where the objective is.

        None if time or the budget ran out, or if rounding has left the model no minimum.
        """


class ProximalObjective:
    """f(w, b) = Σ_i c_i φ_i(x_i·w + b) + μ g(w) at a point that it remembers, for `minimise`.

    Parameters
    ----------
    value : float
        f there, about.
    least, share : float
        What may be left to gain, and the same as a share of f.
    """

    def __init__(
        self,
        problem: Problem,
        term: RowTerm,
        models: Models,
        at: tuple[Array, float, float],
        least: float = 0.0,
        share: float = 0.0,
    ) -> None:
        self.problem, self.term, self._models = problem, term, models
        self.w, self.b, self.value = at
        self._least, self._share = least, share
        #: Whether the loss is its own model.
        self.exact = problem.loss.is_quadratic
        #: Whether the last step was not cut short, and how many in a row were.
        self.whole, self.cut = True, 0
        self._found: Derivatives | None = None
        self._lost = math.nan

    def run(self, deadline: float, cut: float = math.inf) -> tuple[Ending, int]:
        """Take steps until no more is left than may be; return why they ended, and how many.

        They are left where so many in a row were cut short: models are not right about the rows.
        """
        return minimise(self, self.enough, deadline, MOST_STEPS, lambda: self.cut >= cut)

    def enough(self) -> float:
        """Return what may be left to gain."""
        return max(self._least, self._share * self.value)

    @property
    def found(self) -> Derivatives:
        """What the rows have at the point."""
        if self._found is None:
            self._found = self.term.place(self.w, self.b)
        return self._found

    def lost(self) -> float:
        """Return a bound on f − min f."""
        if math.isnan(self._lost):
            self._lost = left_to_gain(self.problem, self.w, self.found, self.value)
        return self._lost

    def aim(self, deadline: float) -> float | None:
        step = self._models.step(self, deadline)
        if step is None:
            return None
        self._step, self._dw = step, step.w - self.w
        if self.exact:
            # What rounding hides of a gain may still be digits of the duals.
            self._slope = -max(step.gained, TINY) if self._dw.any() or step.db else 0.0
            return self._slope
        found, problem = self.found, self.problem
        self._slope = self._penalty(0.0).value - problem.mu * float(to_host(found.u) @ self._dw)
        if problem.fit_intercept:
            self._slope -= found.balance * step.db
        if not math.isfinite(self._slope):
            return 0.0
        self.term.aim(self._dw, step.db)
        return self._slope

    def _penalty(self, length: float) -> Slope:
        """Return the slope of the penalty along the step; at a kink, that from where it came."""
        g, mu, dw = self.problem.regularizer, self.problem.mu, self._dw
        there = self.w + length * dw
        side = np.where(there != 0, there, np.where(self.w != 0, self.w, dw))
        terms = mu * (g.curvature * there + g.threshold * np.sign(side)) * dw
        curvature = mu * float((g.curvature * dw) @ dw)
        return Slope(float(terms.sum()), curvature, float(np.abs(terms).sum()))

    def _along(self, length: float) -> Slope:
        rows, own = self.term.slope(length), self._penalty(length)
        return Slope(*(a + b for a, b in zip(rows, own, strict=True)))

    def search(self) -> tuple[float, bool]:
        """Return how far to go, at most 1: beyond it features would leave kinks and bounds."""
        length, sharp = 1.0, True
        if not (self.exact or self._along(1.0).value <= 0):
            length, sharp = step_length(self._along, self._slope)
        return length, sharp and -length * self._slope > HIDDEN * self.value

    def move(self, length: float) -> None:
        step, self.whole = self._step, length == 1.0
        self.cut = 0 if self.whole else self.cut + 1
        self.w = step.w if self.whole else self.w + length * self._dw
        self.b += length * step.db
        if self.exact:
            self.value = max(self.value - step.gained, 0.0)
            self._found, self._lost = None, 0.0 if step.settled else math.nan
            return
        # The slope rises from its first value to about 0, and f is positive.
        self.value = max(self.value + 0.5 * length * self._slope, 0.1 * self.value)
        self._found, self._lost = self.term.move(length), math.nan

    def keep(self) -> None:
        self._best = self.w, self.b, self.value

    def recall(self) -> None:
        self.w, self.b, self.value = self._best
        self._found = None


def left_to_gain(problem: Problem, w: Array, found: Derivatives, value: float) -> float:
    """Bound what is left to gain at w, where the objective is `value`, about."""
    g, u = problem.regularizer, to_host(found.u)
    lower, upper = g.bounds or UNBOUNDED
    box = ElasticBox(g.curvature, g.threshold, lower, upper, NOWHERE, RIGID)
    residual = u - g.nearest_slope(w, u)
    lost = problem.mu * box.excess(residual) + value * box.violation(residual)
    if g.eta == 0:
        lost += problem.mu * float(np.abs(residual) @ np.abs(w))
    if problem.fit_intercept and found.balance != 0:
        lost += 0.5 * found.balance**2 / found.mass if found.mass > 0 else math.inf
    return lost


def _by_feature(problem: Problem) -> tuple[Array, Array, Array, Array]:
    """Return μ times curvature and kink of the penalty, and the bounds."""
    g, d = problem.regularizer, problem.rows.shape[1]
    mu, bounds = problem.mu, g.bounds or UNBOUNDED
    ridge, kink, lower, upper = (
        np.full(d, each) for each in (mu * g.curvature, mu * g.threshold, *bounds)
    )
    return ridge, kink, lower, upper


class Model(NamedTuple):
    """The curvature of the rows, as a matrix of the features.

    What rounding may hide of it is added to the matrix. So the model of a squared loss is nowhere
    below the objective: what lowers the model lowers the objective, too.
    """

    matrix: Array
    column: Array  #: Σ h_i x_i.
    mass: float  #: Σ h_i with an intercept, else 0.
    rough: bool  #: Whether the matrix was summed in single precision.

    @classmethod
    def of(cls, formed: Gram) -> Model | None:
        """Return that of a Gram matrix; None if it overflows."""
        lines = np.tril(to_host(formed.matrix))
        epsilon = float(np.finfo(lines.dtype).eps)
        whole = lines.astype(np.float64) + np.tril(lines, -1).T
        own = whole.diagonal()
        if formed.mass > 0:  # the rounding of centred sums is that of the sums before centring
            own = own + np.minimum(formed.column**2 / formed.mass, FAR * own)
        if not np.isfinite(own).all():
            return None
        np.fill_diagonal(whole, whole.diagonal() + len(own) * epsilon * own)
        return cls(whole, formed.column, formed.mass, formed.single or formed.product is not None)

    @classmethod
    def formed_at(
        cls, term: RowTerm, intercept: bool, deadline: float, rough: bool
    ) -> Model | None:
        """Return that of the rows where the term is; None if time ran out."""
        formed = term.gram(intercept, deadline, rough=rough)
        if formed is None:
            return None
        return cls.of(formed) or (
            cls.formed_at(term, intercept, deadline, False) if rough else None
        )

    @classmethod
    def of_squares(
        cls, problem: Problem, term: RowTerm, deadline: float, rough: bool
    ) -> Model | None:
        """Return that of a squared loss, or None if time ran out.

        All solves with these rows, weights and this loss share it, as those of a path do.
        """
        known: dict[Any, Any] = getattr(problem.rows, "known", {})
        key = problem.fit_intercept, problem.loss, rough
        weight, found = known.get(key, (None, None))
        if found is not None and weight is problem.weight:
            return cast(Model, found)
        made = cls.formed_at(term, problem.fit_intercept, deadline, rough)
        if made is not None:
            known[key] = problem.weight, made
        return made

    def alone(self, slope: Array, balance: float) -> Array:
        """Return the slope of the coefficients, where the intercept follows them."""
        return slope - self.column * (balance / self.mass) if self.mass > 0 else slope

    def step(
        self,
        problem: Problem,
        w: Array,
        at: tuple[Array, float],
        enough: float,
        deadline: float = math.inf,
    ) -> ModelStep | None:
        """Minimise the model at w, where rows have this slope and balance; None if time ran out.

        What is left to gain is less than `enough` then, about.
        """
        g, mu, before = problem.regularizer, problem.mu, w
        force, balance = self.alone(*at), at[1]
        slope, w = force.copy(), w.copy()
        seconds = min(deadline - time.perf_counter(), FOREVER)
        if not _core.minimise_separable(
            self.matrix, *_by_feature(problem), w, slope, FOUND * enough, seconds
        ):
            return None
        step = w - before
        gained = 0.5 * float((force + slope) @ step) - mu * (g.value(w) - g.value(before))
        db = 0.0
        if self.mass > 0:
            gained += 0.5 * balance**2 / self.mass
            db = (balance - float(self.column @ step)) / self.mass
        # Where the penalty is weak, rounding of the step may leave infeasible duals.
        settled = g.eta > 0 and (not self.rough or gained <= enough)
        return ModelStep(w, db, gained, settled)


class GramModels:
    """Models by the matrix of the features, which may be of an earlier point, or another μ.

    Parameters
    ----------
    budget, price : Budget, float
        What steps may cost, and the price of one by a matrix of its own.
    """

    def __init__(self, budget: Budget | None = None, price: float = 0.0) -> None:
        self.model: Model | None = None
        self._budget, self._price = budget or Budget(), price
        #: The problem of the last step, where it began, the slope there, and its accuracy.
        self._at: tuple[Problem, Array, Array, float] | None = None
        self._left, self._last = 0, math.inf

    def begin(self) -> None:
        """Begin with another μ."""
        self._left, self._last = SERVES, math.inf

    @property
    def stepped(self) -> Model | None:
        """The model, if a step was taken by it."""
        return None if self._at is None else self.model

    def step(self, at: ProximalObjective, deadline: float) -> ModelStep | None:
        """Minimise a model, formed anew where the last one was slow, or has lost its minimum."""
        problem, left = at.problem, at.lost()
        slow, self._last = left > SLOW * self._last or not at.whole, left
        known = self.model is not None and len(self.model.matrix) == len(at.w)
        if not known or slow or (self._left <= 0 and not at.exact):
            self.model = self._formed(at, not (known and at.exact), deadline)
        self._left -= 1
        while self.model is not None:
            slope, enough = (problem.mu * to_host(at.found.u), at.found.balance), at.enough()
            self._at = problem, at.w, self.model.alone(*slope), enough
            step = self.model.step(problem, at.w, slope, enough, deadline)
            most = MOST_GAIN * at.value if at.exact else sys.float_info.max
            if step is None or step.gained <= most:
                return step
            self.model = self._formed(at, False, deadline) if self.model.rough else None
        return None

    def _formed(self, at: ProximalObjective, rough: bool, deadline: float) -> Model | None:
        """Return the model where the objective is; None if time or the budget ran out."""
        self._left = 2
        if self._budget.over:
            return None
        self._budget.pay(self._price)
        if at.exact:
            return Model.of_squares(at.problem, at.term, deadline, rough)
        return Model.formed_at(at.term, at.problem.fit_intercept, deadline, rough)

    def solved(self, mu: float, w: Array, b: float) -> tuple[Array, float] | None:
        """Return the solution for another μ, after a step, where the curvature is the same."""
        assert self._at is not None
        assert self.model is not None
        problem, before, slope, enough = self._at
        there = replace(problem, lam=mu / problem.total)
        slope = slope - self.model.matrix @ (w - before)
        step = self.model.step(there, w, (slope, 0.0), enough)
        return None if step is None else (step.w, b + step.db)


class ColumnModels:
    """Models by the columns of a set, of the rows where they are, and what they cost.

    Parameters
    ----------
    most : float
        The most entries to visit.
    """

    def __init__(self, rows: ColumnRows, most: float) -> None:
        self._rows, self.work = rows, 0.0  #: Entries that were visited.
        self._most = min(VISITS * rows.entries, most)
        self._visits, self._gained, self._done = FIRST, math.inf, True

    def step(self, at: ProximalObjective, deadline: float) -> ModelStep | None:
        """Minimise the model; of a loss that is not its own, no better than the last one was."""
        enough, room = at.enough(), self._most - self.work
        if room <= 0:
            return None
        if not at.exact:
            # A model that is right as far as its minimum is worth more work, another one is not.
            self._visits *= 2.0 if at.whole and not self._done else 1.0
            room = min(self._visits * self._rows.entries, room)
            last = 100.0 * enough if math.isinf(self._gained) else self._gained
            enough = max(0.5 * enough, LEFT * last)
        limits = enough, room, deadline - time.perf_counter()
        found = self._rows.minimise_model(at.w, _by_feature(at.problem), limits)
        if found is None:
            return None
        self._gained, self._done = found.gained, found.done
        self.work += found.work
        return ModelStep(found.w, found.db, found.gained, found.done)
