"""Epochs of dual coordinate ascent where rows are elsewhere: mini-batches of exact steps.

The rows of a mini-batch take their steps from the same point. What keeps them from overshooting
together is a larger curvature: with ω_j of all n rows having feature j, the dual is expected to
rise for a batch of B rows drawn evenly with

    q_i = (c_i/(λN)) Σ_j (1 + (B − 1)(ω_j − 1)/(n − 1)) x_ij²

(P. Richtárik and M. Takáč, "Parallel coordinate descent methods for big data optimization",
Mathematical Programming 156, 2016). Adaptive draws are not even: the bound is a guide there, and
the certificate does not depend on it. With an intercept Σ c_iβ_i = 0 has to stay: the steps of a
batch are those at the one b for which their sum is 0, its Lagrange multiplier.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.ascent.plans import Epoch, Permutations, ThinnedDraws
from adasdca.backends.cuda.products import BatchProducts, MiniBatches
from adasdca.backends.passes import Passes
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: Rows of a mini-batch, at most as many as double the curvature. An epoch of batches that must be
#: smaller than the least, on data with features that most rows have, takes as long as hundreds of
#: passes over the rows.
LEAST, MOST = 256, 1024
#: Features a row, from which on they pay: on text-like rows of 0.1 to 0.5 features each rounds of
#: the method of multipliers were 2 to 6 times as fast in 10 of 11 cases (1e6 x 500,000, hinge:
#: 0.48 s for 1.5), on rows of 5 features each epochs 1.4 to 3 times in 3 of 4.
WIDE = 1.0
#: The share of rows that are drawn by no weight of their own, with an intercept.
OTHERS = 0.1
#: Rounds of an adaptive epoch: a row that matters is visited in each.
ROUNDS = 4
#: Mini-batches between two looks at the clock.
LOOK = 1024


class DeviceEpochs:
    """Draws the rows of epochs and visits them, in mini-batches.

    Parameters
    ----------
    problem : Problem
        The problem, of a ridge penalty and a loss of bounded duals.
    products, passes : BatchProducts, Passes
        Its rows, where these are.
    counts : (d,) array
        ω_j.
    curvature : (n,) array
        c_i|x_i|²/(λN).

    Attributes
    ----------
    height : int
        Rows of a mini-batch.
    """

    def __init__(
        self,
        problem: Problem,
        products: BatchProducts,
        passes: Passes,
        counts: Array,
        curvature: Any,
    ) -> None:
        self._problem, self._products, self._passes = problem, products, passes
        n = products.shape[0]
        overlap = (counts - 1.0).clip(0.0) / max(n - 1.0, 1.0)
        extra = passes.weighted(products.row_squares(overlap)) / problem.mu
        ratio = float(extra.sum()) / max(float(curvature.sum()), 1e-300)
        self.height = int(min(1.0 + 1.0 / max(ratio, 1e-300), MOST, n))
        self._curvature = curvature
        self._safe_curvature = curvature + (self.height - 1.0) * extra
        squares = float(products.squares(passes.weighted(passes.xp.ones(n))).max())
        reach = max(map(abs, problem.loss.domain))
        # |u_j| ≤ Σ_i c_i reach |x_ij|/(λN), by Cauchy's inequality.
        self._largest = reach * math.sqrt(problem.total * squares) / problem.mu
        self._adaptive: Any = None
        self._active = 0

    @property
    def pays(self) -> bool:
        """Whether mini-batches are large enough, and rows few."""
        n, d = self._products.shape
        return self.height >= LEAST and d >= WIDE * n

    def look(self, scores: Any, b: float, beta: Any) -> tuple[int, float]:
        """Take note of the adaptive weights at a point.

        They are the mean of two probabilities: by the rows' shares of the gap, and by their exact
        dual steps, so that neither starves a row that the other visits. Return how many rows have
        one, and the share of the rows that are visited in effect.
        """
        share, step = self._passes.shares(scores, b, beta, self._curvature)
        sums = float(share.sum()), float(step.sum())
        weights = share / max(sums[0], 1e-300) + step / max(sums[1], 1e-300)
        total, squares = float(weights.sum()), float((weights**2).sum())
        effective_share = total * total / (squares * len(beta)) if squares > 0 else 0.0
        self._adaptive, self._active = weights, int(self._passes.xp.count_nonzero(weights))
        return self._active, effective_share

    def draw(self, plan: Epoch) -> list[Any]:
        """Return the rows of an epoch in rounds, none of them twice in a round."""
        xp, n = self._passes.xp, self._products.shape[0]
        random = xp.random.default_rng(getattr(plan, "key", 0))
        if isinstance(plan, Permutations):
            return [xp.argsort(random.random(n)) for _ in range(plan.rounds)]
        if not isinstance(plan, ThinnedDraws) or not isinstance(plan.probabilities, str):
            raise ValueError(
                f"{plan.label!r} visits rows one by one, which is not done on a device; choose "
                "method='auto' or 'sdca-perm'."
            )
        rates, count = self._adaptive, self._active
        if self._problem.fit_intercept:
            # Rows that would all go the same way cannot: some of the others must be there.
            rates = rates + OTHERS * float(rates.mean())
            count = math.ceil((1.0 + OTHERS) * count) + self.height
        count = min(max(round(plan.epoch * n), 1), count, n)
        rates = xp.maximum(rates, 1e-300)
        # In a round, the first visits of exponential clocks, in their order.
        rings = (-xp.log1p(-random.random(n)) / rates for _ in range(ROUNDS))
        return [xp.argsort(ring)[: -(-count // ROUNDS)] for ring in rings]

    def ascend(self, plan: Epoch, beta: Any, b: float, seconds: float) -> tuple[Any, float, int]:
        """Carry a plan out; return the duals, the intercept, and the number of visits."""
        deadline = time.perf_counter() + seconds
        rounds, beta, problem = self.draw(plan), beta.copy(), self._problem
        u = self._products.combine(self._passes.weighted(beta)) / problem.mu
        balance = 0.0
        if problem.fit_intercept:
            up, down = self._passes.sides(beta)
            balance = up - down
        numbers = b, balance, problem.fit_intercept, self._safe_curvature, self._largest, problem.mu
        point = MiniBatches(beta, u, *numbers)
        visit = self._products.batches(point, self._passes, self.height)
        size, done = LOOK * self.height, 0
        parts = (order[at : at + size] for order in rounds for at in range(0, len(order), size))
        for part in parts:
            if time.perf_counter() >= deadline:
                break
            b = visit(part)
            done += len(part)
        return beta, b, done
