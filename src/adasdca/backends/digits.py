"""Duals of rows in this process, moved by units in the last place until u is close to w.

The method is that of `duality/lattice.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.duality.certificate import evened
from adasdca.duality.lattice import MOST_DIGITS, movable, nearest
from adasdca.problem.data import DenseRows
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: Rounds; the goal of each is a fraction of the rest of the gap after the last one.
ROUNDS = 6
#: Fractions of the gap: that allowed to ‖u − w‖², and that from which on a round is worth its cost.
SHARE, WORTH = 1e-3, 0.1
#: The least rest of the gap, relative to P, and relative to the gap.
LEAST, HIDDEN = 1e-13, 1e-12
#: By this factor moves may cost more after a round without success.
EASED = 100.0
#: Rows that move: a number of them, and more for each coarse feature.
ROWS, ROWS_EACH = 8, 4
#: A feature is coarse if a move changes it by more than this fraction of the goal.
VISIBLE = 1e-3
#: Most coarse features: to reduce such a basis takes hundredths of a second.
MOST_COARSE = 8


class FinerDuals:
    """Finds the duals with the smallest gap for a given w.

    The regulariser of the problem has an L2 term. `curvature` is c|x|²/(λN) of the rows.
    """

    def __init__(
        self,
        problem: Problem,
        workspace: _core.Workspace,
        curvature: Array,
        weight: Array,
        threads: int,
    ) -> None:
        self.problem, self.workspace, self.weight = problem, workspace, weight
        self.threads = threads
        #: Change of u per unit of a dual, in the norm of the regulariser.
        self.length = np.sqrt(np.maximum(curvature, 0.0) * weight / problem.mu)
        lower, upper = problem.loss.domain
        flipped = problem.loss.kind == "classification" and problem.y < 0
        self.low = np.where(flipped, -upper, lower)
        self.high = np.where(flipped, -lower, upper)

    def near(
        self, w: Array, b: float, beta: Array, found: _core.Certified
    ) -> tuple[_core.Certified, Array]:
        """Return duals near those given with a smaller gap, if any, and their certificate.

        `found` is the certificate of the primal point w, b and the duals given.
        """
        regularizer, eased = self.problem.regularizer, 1.0
        for _ in range(ROUNDS):
            off, _ = self._off(w, beta)
            part = 0.5 * regularizer.scale * float(off @ off)
            far = MOST_DIGITS * float(np.spacing(np.abs(beta)) @ self.length)
            worth = max(WORTH * found.gap, LEAST * found.primal)
            if not worth < part <= 0.5 * regularizer.scale * far**2:
                break
            rest = eased * max(found.gap - part, HIDDEN * found.gap, LEAST * found.primal)
            if rest > found.gap:
                break
            moved = self._moved(w, b, beta, math.sqrt(float(off @ off)), SHARE * rest)
            better = None if moved is None else self.workspace.certify(w, b, moved, self.threads)
            if moved is not None and better is not None and better.gap < found.gap:
                beta, found, eased = moved, better, 1.0
            else:
                eased *= EASED  # longer moves reach more
        return found, beta

    def _off(self, w: Array, beta: Array) -> tuple[Array, float]:
        """Return u less the nearest subgradient of the regulariser at w, and Σ c_iβ_i."""
        u, regularizer = np.empty(len(w)), self.problem.regularizer
        balance = self.workspace.combine_exactly(beta, u, self.threads)
        return (u - regularizer.nearest_slope(w, u)) / np.sqrt(regularizer.metric), balance

    def _moved(self, w: Array, b: float, beta: Array, off: float, share: float) -> Array | None:
        """Return duals for which ‖u − w‖² adds about `share` to the gap; None if none can move."""
        problem, weight = self.problem, self.weight
        goal = math.sqrt(2.0 * share / problem.regularizer.scale)
        reach = self._reach(w, b, beta, share)
        chosen = movable(beta, self.low, self.high, self.length, reach, off, goal)
        chosen = chosen.first(ROWS + ROWS_EACH * MOST_COARSE)
        # Multiplied by λN: without weights and penalty factors these numbers are exact.
        goal *= problem.mu
        factor = np.broadcast_to(np.sqrt(problem.regularizer.metric), len(w))
        masses = weight[chosen.rows] * chosen.unit
        coarse, rows = self._coarse(chosen.rows, masses, factor * (VISIBLE * goal))
        if not 0 < len(coarse) <= MOST_COARSE:
            return None
        count = ROWS_EACH * len(coarse)
        count = min(max(count, chosen.free), ROWS + count, len(chosen.rows))
        chosen, masses = chosen.first(count), masses[:count]
        moves = rows[:count] * masses[:, None] / factor[coarse]
        moved = beta.copy()
        moved[chosen.rows] = chosen.start
        rest, balance = self._off(w, moved)
        rest = problem.mu * rest[coarse]
        if problem.fit_intercept:  # Σ c_iβ_i must be 0 to the last digit
            dear = 4.0 * goal / masses.min()
            moves = np.column_stack([moves, dear * masses])
            rest = np.append(rest, dear * balance)
        if not (np.isfinite(moves).all() and np.isfinite(rest).all()):
            return None
        k = nearest(moves, 4.0 * goal * chosen.unit / chosen.room, rest)
        moved[chosen.rows] = chosen.start + k * chosen.unit
        moved = np.clip(moved, self.low, self.high)
        return evened(moved, weight, self._off(w, moved)[1]) if problem.fit_intercept else moved

    def _coarse(self, rows: Index, masses: Array, enough: Array) -> tuple[Index, Array]:
        """Return the coarse features, and the columns of these rows."""
        taken = self.problem.rows.take(rows)
        if isinstance(taken, DenseRows):
            values = taken.values.astype(np.float64)
            coarse = np.flatnonzero((np.abs(values) * masses[:, None] > enough).any(axis=0))
            return coarse, values[:, coarse]
        matrix: Any = taken.matrix.astype(np.float64)
        each = np.repeat(masses, np.diff(taken.start))
        coarse = np.unique(matrix.indices[np.abs(matrix.data) * each > enough[matrix.indices]])
        return coarse, matrix[:, coarse].toarray()

    def _reach(self, w: Array, b: float, beta: Array, share: float) -> Array:
        """Return how far a dual may move at the cost `share`: κδ + ½γδ² for a row.

        κ is at most the residual, and 0 for a dual of a smooth loss inside of its domain.
        """
        problem = self.problem
        scores = _core.vector(self.workspace.n)
        self.workspace.scores(w, scores, self.threads, b)
        away, gamma = np.abs(problem.loss.residual(scores, problem.y)), problem.loss.smoothness
        if gamma > 0:
            away = np.where((beta > self.low) & (beta < self.high), 0.0, away)
        with np.errstate(all="ignore"):
            cost = share * problem.total / self.weight
            reach: Array = 2.0 * cost / (away + np.sqrt(away**2 + 2.0 * gamma * cost))
        return reach
