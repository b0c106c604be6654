"""Steps of a loss on few features and a penalty with kinks: by a quadratic model of the rows.

With s and M the slope and the curvature of the rows at w, a step minimises

    ½ Δ·MΔ − s·Δ + μ g(w + Δ),

kinks and bounds included. What an intercept takes is eliminated from M and s.
"""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backends.base import FOREVER, Derivatives, Gram
from adasdca.backends.term import RowTerm
from adasdca.newton.moreau import ElasticBox
from adasdca.problem.data import FAR
from adasdca.problem.device_rows import to_host
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]
UNBOUNDED = -math.inf, math.inf
#: The Moreau envelope of infinite stiffness is the penalty itself, wherever its centre is.
NOWHERE, RIGID = np.zeros(1), np.full(1, math.inf)

#: The length of a step is found so many times more closely than its end.
HALVINGS = 5


class ModelStep(NamedTuple):
    """Where a step leads."""

    w: Array
    db: float  #: What the intercept changes by.
    gained: float  #: By how much the model falls.


class Model(NamedTuple):
    """The curvature of the rows.

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

        It may end where a sweep over all features gains no more than `enough`.
        """
        g, mu, before = problem.regularizer, problem.mu, w
        force, balance = self.alone(*at), at[1] if self.mass > 0 else 0.0
        slope, w = force.copy(), w.copy()
        ridge, kink, lower, upper = (
            np.full(len(w), each)
            for each in (mu * g.curvature, mu * g.threshold, *(g.bounds or UNBOUNDED))
        )
        seconds = min(deadline - time.perf_counter(), FOREVER)
        if not _core.minimise_separable(
            self.matrix, ridge, kink, lower, upper, w, slope, enough, seconds
        ):
            return None
        step = w - before
        gained = 0.5 * float((force + slope) @ step) - mu * (g.value(w) - g.value(before))
        db = (balance - float(self.column @ step)) / self.mass if self.mass > 0 else 0.0
        return ModelStep(w, db, gained)


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


def reach(problem: Problem, term: RowTerm, w: Array, dw: Array) -> float:
    """Return how far to go along a step, at most 1: where the slope is about 0.

    Rows may have more curvature on the way than where the step began.
    """
    g, mu = problem.regularizer, problem.mu

    def slope(length: float) -> float:
        at = w + length * dw
        kinks = g.threshold * np.where(at == 0, np.sign(dw), np.sign(at))
        return term.slope(length).value + mu * float((g.curvature * at + kinks) @ dw)

    low, high = 0.0, 1.0
    if slope(high) <= 0:
        return high
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) <= 0 else (low, middle)
    return low or high
