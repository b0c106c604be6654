"""What the steps of a solve cost, so that `auto` can choose between them.

Costs are nanoseconds of a typical core: rates of this package's kernels, fixed so that the same
seed takes the same path on every run. Only their ratios matter; ``python -m benchmarks.epochs``
prints the rates.
"""

from __future__ import annotations

import numpy as np

from adasdca.data import DenseRows
from adasdca.problem import Problem

#: Nanoseconds of an epoch outside of its kernels.
INTERPRETER = 5e4
#: Bytes that stay close to a core.
CACHE = 2**24


class Costs:
    """What the steps of a solve cost on a problem, in nanoseconds."""

    def __init__(self, problem: Problem) -> None:
        rows = problem.rows
        n, d = rows.shape
        stored = rows.n_stored
        entry = 0.25 if isinstance(rows, DenseRows) else 0.65
        transcendental = 40.0 if problem.loss.name == "logistic" else 0.0
        # Surveys take the losses of many rows at once, updates one after the other.
        self.survey = 2 * entry * stored + (4 + 0.1 * transcendental) * n
        self.update = 2 * entry * stored / n + 12 + transcendental
        self.draw_adaptive, self.draw_permutation = 15.0, 5.0
        if 8 * stored + 64 * n > CACHE:
            # Rows in random order come from memory.
            self.update += 15.0
            self.draw_adaptive += 8.0
        # A Newton step: two passes and the curvatures, then the Gram matrix and its factor.
        self.pass_ = 2 * entry * stored + (3 + 0.1 * transcendental) * n
        if isinstance(rows, DenseRows):
            entries = float(d * d)
        else:
            entries = float((np.diff(rows.start) ** 2.0).mean())
        self.gram_row = min(0.25 * entries, 0.05 * d * d)
        self.factor = 0.1 * d**3 + 20000.0

    def epoch(self, picks: int, adaptive: bool) -> float:
        """Survey, plan and ascent of an epoch."""
        draw = self.draw_adaptive if adaptive else self.draw_permutation
        return INTERPRETER + self.survey + picks * (self.update + draw)

    def newton(self, steps: float, active: int) -> float:
        """Newton steps with so many rows in the Gram matrix, and the survey that judges them."""
        step = 2 * INTERPRETER + self.pass_ + active * self.gram_row + self.factor
        return INTERPRETER + self.survey + steps * step
