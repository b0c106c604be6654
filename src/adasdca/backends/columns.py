"""A smooth loss on a working set of features, minimised by their columns.

Proximal Newton steps: each minimises a quadratic model of the rows and the penalty itself, column
by column in the core, and is cut where the objective rises along it. The model of a squared loss is
the loss, and its one step is not cut. (J. D. Lee, Y. Sun and M. A. Saunders, "Proximal Newton-type
methods for minimizing composite functions", SIAM Journal on Optimization 24, 2014.)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.problem.data import DenseRows
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: Times that the entries of a set are visited at most: sets that take more are left to others.
VISITS = 3000.0
#: The share of a model's objective by which it may seem to rise.
WORSE = 1e-9
#: The least curvature of a row that has a slope, in units of 1/γ: the model of a row that is
#: straight would lead beyond the digits of its residual. A millionth does not slow steps down.
STRAIGHT = 1e-6
#: Times that the entries are visited for the first model of a loss that is not its own.
FIRST = 8.0
#: What the model may leave of a step, in units of what the last step has gained.
LEFT = 0.1
#: Steps at most, and halvings of one.
MOST_STEPS, HALVINGS = 40, 30
#: A slope is 0 at a share of the first one below this.
FLAT = 0.1


class Columns(NamedTuple):
    """The columns of a set about `centre`: a matrix in Fortran's order, or a CSC one."""

    matrix: Any
    centre: Array

    @classmethod
    def of(cls, part: Problem, weight: Array) -> Columns:
        """Return all columns of a problem.

        Sums over a column far from 0 would cancel. Of sparse ones it is the full ones that are less
        their mean; others have zeros as far from it.
        """
        rows, centre = part.rows, np.zeros(part.rows.shape[1])
        if isinstance(rows, DenseRows):
            dense = np.array(rows.values, dtype=np.float64, order="F")
            if part.fit_intercept:
                centre = weight @ dense / part.total
                dense -= centre
            return cls(dense, centre)
        matrix = rows.matrix.tocsc().astype(np.float64)
        if part.fit_intercept:
            column = np.repeat(np.arange(len(centre)), np.diff(matrix.indptr))
            counts = np.bincount(column, weight[matrix.indices] > 0, len(centre))
            full = counts == np.count_nonzero(weight)
            centre = np.where(full, weight @ matrix / part.total, 0.0)
            matrix.data -= centre[column]
        return cls(matrix, centre)

    def scaled(self, h: Array, free: bool) -> tuple[Array, tuple[Any, Any, Any, Any]]:
        """Return means by weights h, and the columns times √h for the core.

        With an intercept they are less their mean, sparse ones in the core.
        """
        root, matrix = np.sqrt(h), self.matrix
        means = h @ matrix / h.sum() if free else np.zeros(matrix.shape[1])
        if isinstance(matrix, np.ndarray):
            values = root[:, None] * (matrix - means if free else matrix)
            return means, (values.ravel(order="F"), None, None, None)
        start, rows = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        return means, (matrix.data * root[rows], start, rows, root if free else None)


class ModelStep(NamedTuple):
    """The step to the minimum of a model."""

    w: Array
    db: float
    gained: float  #: By how much the model falls.
    done: bool
    work: float  #: Entries that were visited.


def descend_columns(
    problem: Problem,
    features: NDArray[np.intp],
    at: tuple[Array, float],
    enough: float,
    most: float,
    deadline: float,
) -> tuple[tuple[Array, float], bool, float]:
    """Do what `ColumnDescender` asks for, but for the duals."""
    part = problem.restrict(features)
    loss, y, g = part.loss, part.y, part.regularizer
    c = np.ones(len(y)) if part.weight is None else part.weight
    columns = Columns.of(part, c)
    entries = columns.matrix.size
    w, b = at[0][features], at[1] + float(columns.centre @ at[0][features])
    scores, work, done, gained = columns.matrix @ w + b, 0.0, False, 100.0 * enough
    visits = VISITS if loss.is_quadratic else FIRST

    def slope(length: float) -> float:
        """Return the slope of the objective so far along the step."""
        there, sign = w + length * dw, np.sign(w + length * dw)
        sign = np.where(sign != 0, sign, np.where(w != 0, np.sign(w), np.sign(dw)))
        own = part.mu * float((g.curvature * there + g.threshold * sign) @ dw)
        return float((c * loss.slope(scores + length * change, y)) @ change) + own

    for _ in range(MOST_STEPS):
        left = enough if loss.is_quadratic else max(0.5 * enough, LEFT * gained)
        room = min(visits * entries, VISITS * entries - work, most - work)
        step = _minimise_model(part, columns, w, scores, c, left, room, deadline)
        if step is None:
            break
        work += step.work
        dw, gained = step.w - w, step.gained
        change = columns.matrix @ dw + step.db
        length = 1.0 if loss.is_quadratic else _length(slope)
        w, b, scores = w + length * dw, b + length * step.db, scores + length * change
        if length == 1.0:
            w = step.w
        # A model that is right as far as its minimum is worth more work, another one is not.
        visits *= 2.0 if length == 1.0 and not step.done else 1.0
        done = step.done and length == 1.0 and (loss.is_quadratic or gained <= enough)
        if (
            done
            or loss.is_quadratic
            or work >= min(VISITS * entries, most)
            or time.perf_counter() >= deadline
        ):
            break
    whole = at[0].copy()
    whole[features] = w
    return (whole, b - float(columns.centre @ w)), done, work


def _length(slope: Callable[[float], float]) -> float:
    """Return how far to go along a step, at most 1: about to where the slope is 0.

    The objective is convex: the slopes at the ends of two halves bound how far it has risen.
    """
    first, low, high, at = slope(0.0), 0.0, 1.0, 1.0
    here = slope(at)
    if not first < 0 or here <= 0:
        return 1.0
    for _ in range(HALVINGS):
        if abs(here) <= -FLAT * first and (here <= 0 or slope(0.5 * at) + here <= 0):
            return at
        low, high = (at, high) if here < 0 else (low, at)
        at = 0.5 * (low + high)
        here = slope(at)
    return low


@np.errstate(all="ignore")  # beyond doubles it is no better
def _minimise_model(
    part: Problem,
    columns: Columns,
    w: Array,
    scores: Array,
    c: Array,
    enough: float,
    most: float,
    deadline: float,
) -> ModelStep | None:
    """Minimise the quadratic model at w; None if rounding leads it astray.

    The intercept is eliminated: columns are less their mean by curvature, sparse ones in the core.
    """
    loss, g, m = part.loss, part.regularizer, len(w)
    slope = -loss.slope(scores, part.y)
    h = loss.curvature(scores, part.y)
    h = c * np.where(slope != 0, np.maximum(h, STRAIGHT / loss.smoothness), h)
    root, force, ahead = np.sqrt(h), c * slope, 0.0
    if part.fit_intercept:
        if not h.any():
            return None
        ahead = float(force.sum() / h.sum())
    residual = np.divide(force, root, out=np.zeros_like(root), where=root > 0) - ahead * root
    means, lines = columns.scaled(h, part.fit_intercept)
    ridge, kink = (np.full(m, part.mu * each) for each in (g.curvature, g.threshold))
    lower, upper = part.bounds or (np.full(m, -np.inf), np.full(m, np.inf))

    def value() -> float:
        penalty = 0.5 * float(ridge @ to**2) + float(kink @ np.abs(to))
        return 0.5 * float(residual @ residual) + penalty

    to = w.copy()
    before = value()
    penalty, limits = (ridge, kink, lower, upper), (enough, most, deadline - time.perf_counter())
    done, work = _core.descend_columns(*lines, *penalty, to, residual, *limits)
    after = value()
    if not after <= before * (1.0 + WORSE):
        return None
    return ModelStep(to, ahead - float(means @ (to - w)), before - after, done, work)
