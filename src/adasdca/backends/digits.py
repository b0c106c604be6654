"""Duals of rows in this process, moved by units in the last place until u is where w wants it.

That is close to w, or within σ, where there is no L2 term. The method is that of
`duality/lattice.py`.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.duality.certificate import evened
from adasdca.duality.lattice import MOST_DIGITS, movable, nearest
from adasdca.problem.data import DenseRows
from adasdca.problem.problem import Problem
from adasdca.problem.products import RowProducts

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
#: Without an L2 term, lattices that are reduced in vain, one after the other: seconds. (What rounds
#: leave differs in its digits, and one of 180 had moves where all before had none.)
VAIN = 256
#: Without an L2 term u stays this share of σ away from it at most: then 0 is in the middle of what
#: is allowed, which the moves may lead to where they lead to nothing else.
ROOM = 0.5
#: Rows that tell how long they are in units of what tells them apart, and the most of that.
SOME, FARTHEST = 64, 1e6
#: Rows that move: a number of them, and more for each coarse feature.
ROWS, ROWS_EACH = 8, 4
#: A feature is coarse if a move changes it by more than this fraction of the goal.
VISIBLE = 1e-3
#: Most coarse features: to reduce such a basis takes hundredths of a second.
MOST_COARSE = 8


class FinerDuals:
    """Finds the duals with the smallest gap for a given w.

    `curvature` is c|x|²/(λN) of the rows.
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
        #: The units of u, feature by feature, and change of u per unit of a dual in these.
        self.units = np.broadcast_to(np.sqrt(problem.regularizer.metric), problem.rows.shape[1])
        self.length = np.sqrt(np.maximum(curvature, 0.0) * weight / problem.mu)
        lower, upper = problem.loss.domain
        flipped = problem.loss.kind == "classification" and problem.y < 0
        self.low = np.where(flipped, -upper, lower)
        self.high = np.where(flipped, -lower, upper)
        self._vain = 0

    def near(
        self, w: Array, b: float, beta: Array, found: _core.Certified
    ) -> tuple[_core.Certified, Array] | None:
        """Return a better certificate than that found for w, b, and its duals near those given.

        Without an L2 term these need not be feasible.
        """
        if self.problem.regularizer.eta == 0:
            return self._feasible(w, b, beta, found)
        scale, eased, made = self.problem.regularizer.scale, 1.0, None
        for _ in range(ROUNDS):
            off, _ = self._off(w, beta)
            part = 0.5 * scale * float(off @ off)
            worth = max(WORTH * found.gap, LEAST * found.primal)
            if not worth < part <= 0.5 * scale * self._far(beta) ** 2:
                break
            rest = eased * max(found.gap - part, HIDDEN * found.gap, LEAST * found.primal)
            if rest > found.gap:
                break
            share = SHARE * rest
            moved = self._moved(w, b, beta, share, math.sqrt(2.0 * share / scale))
            better = None if moved is None else self.workspace.certify(w, b, moved, self.threads)
            if moved is not None and better is not None and better.gap < found.gap:
                beta, found, eased = moved, better, 1.0
                made = found, beta
            else:
                eased *= EASED  # longer moves reach more
        return made

    def _feasible(
        self, w: Array, b: float, beta: Array, found: _core.Certified
    ) -> tuple[_core.Certified, Array] | None:
        """Do it where u has to be within σ.

        Duals whose u is beyond it for their digits are worth nothing: scaled until it is within,
        little is left of them. A share of σ_j that u stays away from it costs that of σ_j|w_j|,
        which is next to nothing where a feature is large: there much is allowed.
        """
        regularizer, primal = self.problem.regularizer, found.primal
        lost, u = max(self._lost(w, b, beta), LEAST * primal), np.empty(len(w))
        threshold = np.broadcast_to(regularizer.threshold, len(w))
        price = regularizer.scale * threshold * np.abs(w) * max(int(np.count_nonzero(w)), 1)
        digit, given = float(np.spacing(np.abs(beta).max())), beta
        for _ in range(ROUNDS):
            if lost > WORTH * found.gap or self._vain >= VAIN:
                break
            least = min(SHARE * lost / primal, ROOM) if primal > 0 else ROOM
            room = SHARE * lost / np.maximum(price, SHARE * lost / ROOM)
            # Where digits are not seen, all duals are made smaller by what u is beyond σ.
            # Without a threshold the conjugate is finite everywhere: bounds are on both sides.
            fine = (digit * self._columns <= VISIBLE * least * threshold) | (threshold == 0)
            self.workspace.combine_exactly(given, u, self.threads)
            share = regularizer.feasible_share(np.where(fine, u / (1.0 - least), 0.0))
            beta = given if share == 1.0 else share * given
            # Multiples of powers of two are exact.
            self.units = np.exp2(np.floor(np.log2(np.where(fine, np.inf, room * threshold))))
            off = np.linalg.norm(self._off(w, beta, 2.0 * room)[0])
            if not off > 1.0:
                break
            lengths = RowProducts(self.problem.rows.matrix).lengths_in(self.units)
            self.length = lengths * self.weight / self.problem.mu
            if off > self._far(beta):
                break
            moved = self._moved(w, b, beta, SHARE * lost, 1.0, 2.0 * room)
            if moved is not None:
                better = self.workspace.certify(w, b, moved, self.threads)
                if better.gap < found.gap:
                    self._vain = 0
                    return better, moved
                self._vain += 1
            lost *= EASED
        return None

    def _lost(self, w: Array, b: float, beta: Array) -> float:
        """Return the gap without an L2 term, if u were within σ."""
        problem, regularizer = self.problem, self.problem.regularizer
        scores, u = _core.vector(self.workspace.n), np.empty(len(w))
        self.workspace.scores(w, scores, self.threads, b)
        self.workspace.combine_exactly(beta, u, self.threads)
        excess = self.weight @ problem.loss.excess(beta, scores, problem.y) / problem.total
        rest = np.maximum((regularizer.nearest_slope(w, u) - u) * w, 0.0).sum()
        return float(excess + regularizer.scale * rest)

    @cached_property
    def _columns(self) -> Array:
        """Return how far moves by 1 of all duals can move u, as squares add up."""
        rows = RowProducts(self.problem.rows.matrix)
        lengths: Array = np.sqrt(rows.squares(self.weight[:, None] ** 2)[0]) / self.problem.mu
        return lengths

    def _far(self, beta: Array) -> float:
        """Return how far the last digits of all duals can move u."""
        return MOST_DIGITS * float(np.spacing(np.abs(beta)) @ self.length)

    def _off(self, w: Array, beta: Array, room: float | Array = 0.0) -> tuple[Array, float]:
        """Return how far u is from the subgradients of the regulariser at w, and Σ c_iβ_i.

        Without an L2 term, from being within a smaller σ, by this share.
        """
        u, regularizer = np.empty(len(w)), self.problem.regularizer
        balance = self.workspace.combine_exactly(beta, u, self.threads)
        if regularizer.eta > 0:
            nearest = regularizer.nearest_slope(w, u)
        else:
            nearest = regularizer.nearest_feasible(u, room)
        return (u - nearest) / self.units, balance

    def _moved(
        self,
        w: Array,
        b: float,
        beta: Array,
        share: float,
        goal: float,
        room: float | Array = 0.0,
    ) -> Array | None:
        """Return duals with u about as near as the goal; None if none can move.

        Each may cost this share of the gap in its loss.
        """
        problem, weight = self.problem, self.weight
        away = np.abs(self._off(w, beta, room)[0])
        off = float(np.linalg.norm(away))
        reach = self._reach(w, b, beta, share)
        ends = self.low, self.high
        chosen = movable(beta, *ends, self.length, reach, off, goal, self._spread())
        chosen = chosen.first(ROWS + ROWS_EACH * MOST_COARSE)
        # Multiplied by λN: without weights and penalty factors these numbers are exact.
        goal *= problem.mu
        masses = weight[chosen.rows] * chosen.unit
        least = np.where(away > VISIBLE * goal / problem.mu, 0.0, VISIBLE * goal)
        coarse, rows = self._coarse(chosen.rows, masses, self.units * least)
        if not 0 < len(coarse) <= MOST_COARSE:
            return None
        count = ROWS_EACH * len(coarse)
        count = min(max(count, chosen.free), ROWS + count, len(chosen.rows))
        chosen, masses = chosen.first(count), masses[:count]
        moves = rows[:count] * masses[:, None] / self.units[coarse]
        moved: Array = beta.copy()
        moved[chosen.rows] = chosen.start
        rest, balance = self._off(w, moved, room)
        rest = problem.mu * rest[coarse]
        if problem.fit_intercept:  # Σ c_iβ_i must be 0 to the last digit
            dear = 4.0 * goal / masses.min()
            moves = np.column_stack([moves, dear * masses])
            rest = np.append(rest, dear * balance)
        if not (np.isfinite(moves).all() and np.isfinite(rest).all()):
            return None
        k = nearest(moves, 4.0 * goal * chosen.unit / chosen.room, rest)
        moved[chosen.rows] = chosen.start + k * chosen.unit
        moved = np.minimum(np.maximum(moved, self.low), self.high)
        if problem.fit_intercept:
            moved = evened(moved, weight, self._off(w, moved)[1])
        return moved

    def _spread(self) -> float:
        """Return how many times longer rows are than they are about their mean, by some of them."""
        if not self.problem.fit_intercept:
            return 1.0
        n = len(self.length)
        some = RowProducts(self.problem.rows.matrix).some(np.arange(0, n, -(-n // SOME)))
        rows = np.concatenate([block for _, block in some.dense_blocks(1)]) / self.units
        apart = float(np.linalg.norm(rows - rows.mean(axis=0)))
        return min(float(np.linalg.norm(rows)) / apart, FARTHEST) if apart > 0 else 1.0

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
