"""The rows' part of a second-order objective, in sums of twice the digits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backends.base import Derivatives
from adasdca.backends.cpu_term import CpuTerm

Array = NDArray[np.float64]


class ExactCpuTerm(CpuTerm):
    """A `CpuTerm` whose scores and sums are taken in twice the digits: an `ExactTerm`.

    No rows are left out of it: what some of them add up to can be far larger than what all do, and
    has fewer digits. Scores are rounded once their targets are taken off: duals that are small
    beside the last digit of a target are found only that way. (Those of margins are 1, and have no
    coarser digits than the duals.)
    """

    @property
    def residuals(self) -> bool:
        loss = self.problem.loss
        return loss.kind == "regression" and not loss.curvature_varies

    def place_exactly(self, v: Array, b: float, rest: tuple[Array, float]) -> Derivatives:
        self._score(v, b)
        if rest[0].any() or rest[1]:
            lost = _core.vector(self.workspace.n)
            self.workspace.scores(rest[0], lost, self.threads, rest[1])
            self.scores += lost
        self._first = self.scores
        return self._derivatives()

    def settle(self) -> Derivatives:
        """Go to the line's end; the duals go where the equations of the step say.

        To β − φ''(z)(x·Δv + Δb), whose u is v + Δv if the step solves its equations, whatever β is.
        Those of the scores carry the rounding of v, times φ''|x|²/(λN): here it is that of β only.
        """
        loss, y, weight = self.problem.loss, self.problem.y, self.problem.weight
        slope = self.curvature
        if weight is not None:
            slope = np.divide(slope, weight, out=np.zeros_like(slope), where=weight > 0)
        sign = y if loss.kind == "classification" else 1.0
        self.beta = sign * np.clip(sign * (self.beta - slope * self.change), *loss.domain)
        # What is below the last digit of a dual is lost: the next step is for the smallest ones.
        curved, few = np.flatnonzero(self.curvature), 4 * (self.workspace.d + 1)
        if len(curved) > few:
            order = np.argpartition(np.abs(self.beta[curved]), few)
            self.curvature[curved[order[few:]]] = 0.0
        self._sums = 0.0, float(self.curvature.sum())
        self.curved = int(np.count_nonzero(self.curvature))
        u = np.empty(self.workspace.d)
        balance = self.workspace.combine_exactly(self.beta, u, self.threads)
        return self._with_others(u, balance)

    def _score(self, v: Array, b: float) -> None:
        self.scores = _core.vector(self.workspace.n)
        self.workspace.exact_scores(v, b, self.scores, self.threads, self.residuals)

    def _derivatives(self) -> Derivatives:
        u = np.empty(self.workspace.d)
        self._sums = self._derive()
        balance = self.workspace.combine_exactly(self.beta, u, self.threads)
        return self._with_others(u, balance)
