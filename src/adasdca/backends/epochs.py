"""Epochs on rows in the memory of this process: their rows drawn, and the steps taken."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.ascent.plans import (
    AdaptiveSteps,
    AveragedDraws,
    Draws,
    Epoch,
    Permutations,
    Probabilities,
    ThinnedDraws,
    Visits,
)
from adasdca.ascent.sampling import importance_weights

Array = NDArray[np.float64]
Rows = NDArray[np.int32]


@dataclass
class RowFigures:
    """What the probabilities of rows are made from."""

    curvature: Array  #: q_i.
    weight: Array  #: Sample weights c_i.
    gamma: float  #: Smoothness of the loss.
    adaptive: Array | None = None  #: The adaptive weights of the last survey.


class CpuEpochs:
    """Draws the rows of epochs and visits them."""

    def __init__(self, workspace: _core.Workspace, figures: RowFigures, threads: int = 1) -> None:
        self.workspace, self.figures, self._threads = workspace, figures, threads
        self._planner = _core.Planner()
        self._tables: dict[str, tuple[Array, _core.AliasTable]] = {}
        self._decay, self._m = Decay(), 2.0

    def draw(self, plan: Epoch, seconds: float) -> Rows | None:
        """Return the rows of an epoch; None where they are drawn on the way."""
        n = self.workspace.n
        match plan:
            case Visits():
                return plan.rows
            case AdaptiveSteps():
                return None
            case Permutations():
                self._decay = Decay()  # what it remembers is of an epoch further back
                orders = [
                    _core.draw_permutation(n, plan.key if k == 0 else _core.subkey(plan.key, k))
                    for k in range(plan.rounds)
                ]
                return orders[0] if plan.rounds == 1 else np.concatenate(orders)
            case Draws(probabilities="uniform"):
                return _core.draw_uniform(n, n, plan.key)
            case Draws() | AveragedDraws():
                return self._table(plan.probabilities)[1].draw(n, plan.key)
            case ThinnedDraws():
                return self._thinned(plan, seconds)

    def _thinned(self, plan: ThinnedDraws, seconds: float) -> Rows:
        weights = self._weights(plan.probabilities)
        count = max(1, round(plan.epoch * self.workspace.n))
        adaptive = self.figures.adaptive
        if plan.m == "auto":
            assert adaptive is not None
            self._m = self._decay.observe(adaptive, self._m)
        m = self._m if plan.m == "auto" else float(plan.m)
        if plan.tree:
            rows = _core.draw_tree(weights, m, count, plan.key, seconds)
        else:
            rows = self._planner.plan(weights, m, count, plan.key)
        if plan.m == "auto":
            assert adaptive is not None
            self._decay.remember(adaptive, rows)
        return rows

    def ascend(self, plan: Epoch, seconds: float) -> int:
        began = time.perf_counter()
        rows = self.draw(plan, seconds)
        self.drawing = time.perf_counter() - began
        seconds -= self.drawing
        if isinstance(plan, AdaptiveSteps):
            n = self.workspace.n
            return self.workspace.ascend_adaptively(plan.rule, n, plan.key, seconds)
        assert rows is not None
        if isinstance(plan, AveragedDraws):
            weights = self._table(plan.probabilities)[0]
            probability = weights / weights.sum()
            gamma, q = self.figures.gamma, self.figures.curvature
            pace = probability * gamma / (gamma + q)
            theta = float(pace[probability > 0].min())
            updates = self.workspace.quartz(
                rows, probability, theta, seconds, plan.exact, self._threads
            )
            self.workspace.show_average()
            return updates
        return self.workspace.ascend(rows, seconds, self._threads)

    def _weights(self, probabilities: Probabilities) -> Array:
        figures = self.figures
        if isinstance(probabilities, np.ndarray):
            return probabilities
        if probabilities == "adaptive":
            assert figures.adaptive is not None
            return figures.adaptive
        if probabilities == "importance":
            return importance_weights(figures.curvature, figures.gamma, figures.weight)
        return (figures.weight > 0).astype(np.float64)

    def _table(self, probabilities: Probabilities) -> tuple[Array, _core.AliasTable]:
        """Return fixed probabilities, unnormalised, and their table, which is made once."""
        assert isinstance(probabilities, str)
        if probabilities not in self._tables:
            weights = self._weights(probabilities)
            self._tables[probabilities] = weights, _core.AliasTable(weights)
        return self._tables[probabilities]


class Decay:
    """An estimate of m from what visits did: a row's weight falls about m-fold at each.

    The mean of log(before/after) per visit, over a sample of the rows visited in the last epoch, is
    an estimate of log m; m stays between 1.5, below which they hardly adapt, and 10, beyond
    which an epoch is a permutation.
    """

    least, most, sample = 1.5, 10.0, 1024

    def __init__(self) -> None:
        self._before: Array | None = None

    def remember(self, adaptive: Array, indices: Rows) -> None:
        """Keep the weights before an epoch and the visits it will make."""
        # A power of two: rows of the sample are told by their last digits.
        self._stride = 1 << ((len(adaptive) - 1) // self.sample).bit_length()
        self._before = adaptive[:: self._stride].copy()
        self._indices = indices

    def observe(self, adaptive: Array, m: float) -> float:
        """Return the m that the last epoch shows, or the one given if it shows none."""
        if self._before is None:
            return m
        before, after = self._before, adaptive[:: self._stride]
        # Counted only now: after the last epoch nobody asks.
        of_sample = self._indices[(self._indices & (self._stride - 1)) == 0]
        visits = np.bincount(of_sample // self._stride, minlength=len(after))
        seen = (visits > 0) & (before > 0)
        count = int(visits @ seen)
        if count == 0:
            return m
        # A weight that fell to 0 fell at least by the range of what is left. (All rows of the
        # sample are computed: to pick those seen takes as long again.)
        before, after = np.where(seen, before, 1.0), np.where(seen, after, 1.0)
        rate = float(np.log(before / np.maximum(after, 1e-3 * before)).sum()) / count
        return min(max(math.exp(rate), self.least), self.most)
