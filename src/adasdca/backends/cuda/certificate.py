"""The certificate of a primal and a dual point on a device, with a bound of its rounding.

The formulas are those of core/duality/certificate.hpp and core/duality/intercept.hpp. Sums over
the rows are taken on the device and those over the features in this process. What an addition can
lose is charged for as many additions as a sum goes through at most, in whatever order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.cuda.products import Passes, Products, RowSums
from adasdca.duality.certificate import Certificate
from adasdca.problem.losses import Logistic
from adasdca.problem.problem import Problem
from adasdca.problem.regularizers import Regularizer

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps) / 2


class PenaltySide:
    """What the features' side of a certificate asks of the regulariser."""

    def __init__(self, g: Regularizer, d: int) -> None:
        self.g = g
        self.f = np.ones(d) if g.factors is None else g.factors
        self.metric = np.broadcast_to(np.asarray(g.metric, dtype=np.float64), (d,))
        none = np.full(d, -math.inf), np.full(d, math.inf)
        lower, upper = none if g.bounds is None else g.bounds
        self.lower: Array = lower
        self.upper: Array = upper
        self.slope = self.f * g.sigma
        self.curved = g.eta * self.f > 0

    def norm(self, w: Array) -> float:
        """Return |w| in the metric."""
        return math.sqrt(float(self.metric @ (w * w)))

    def maximiser(self, u: Array) -> Array:
        """Return where u x − f σ|x| is largest, infinite at an infinite bound."""
        rest = np.clip(np.zeros_like(u), self.lower, self.upper)
        return np.where(u > self.slope, self.upper, np.where(u < -self.slope, self.lower, rest))

    def excess(self, w: Array, u: Array) -> Array:
        """Return g_j(w_j) + g*_j(u_j) − u_j w_j, as sums of terms that are never negative."""
        f, slope = self.f, self.slope
        x = self.g.primal(u)
        if self.g.is_quadratic and self.curved.all():
            return np.asarray(0.5 * f * (w - x) ** 2)
        if not self.curved.all():
            x = np.where(self.curved, x, 0.0)
        difference, s = w - x, u - f * x
        inner = np.clip(np.divide(s, slope, out=np.zeros_like(s), where=slope > 0), -1.0, 1.0)
        t = np.where(x == 0, inner, np.copysign(1.0, x))
        kink = np.maximum(np.abs(w) - t * w, 0.0)
        free = (x > self.lower) & (x < self.upper)
        wall = np.where(free, 0.0, np.maximum((slope * t - s) * difference, 0.0))
        out = np.asarray(0.5 * f * difference * difference + slope * kink + wall)
        if not self.curved.all():
            maximiser = self.maximiser(u)
            bounded = np.isfinite(maximiser)
            maximiser = np.where(bounded, maximiser, 0.0)
            flat = u * (maximiser - w) - slope * (np.abs(maximiser) - np.abs(w))
            out = np.where(self.curved, out, np.where(bounded, flat, math.inf))
        return out

    def reach(self, w: Array, u: Array, off: float) -> float:
        """Return how far from w maximisers can be where g is not curved, u being off by a norm."""
        if self.curved.all():
            return 0.0
        each = off * np.sqrt(self.metric)
        low, high = np.abs(w - self.maximiser(u - each)), np.abs(w - self.maximiser(u + each))
        distance = np.where(self.curved, 0.0, np.maximum(low, high))
        return math.sqrt(float(self.metric @ (distance * distance)))

    def unbounded_distance(self, w: Array, level: float) -> float:
        """Bound |w − w*| over the features where strong convexity gives no bound."""
        if self.curved.all():
            return 0.0
        width = np.maximum(self.upper - w, w - self.lower)
        square = np.where(self.curved, 0.0, self.metric * width * width)
        whole = math.sqrt(float(square.sum()))
        if self.g.eta > 0:
            return whole
        free = math.sqrt(float(square[self.f == 0].sum()))
        return min(whole, free + level + self.g.value(w))


class Certifier:
    """Certifies points of a problem whose rows are on a device.

    `norms` are the lengths of the rows in the dual of the regulariser's metric.
    """

    def __init__(self, problem: Problem, products: Products, passes: Passes, norms: Any) -> None:
        self.problem, self.products, self.passes = problem, products, passes
        self.norms, self.longest = norms, float(norms.max())
        # A sum of so many products, in whatever order; the core runs two chains and halves it.
        self._share = EPS * (products.sizes + 8.0) * norms
        self.side = PenaltySide(problem.regularizer, products.shape[1])
        self._positive = passes.sides(passes.y)[0]  # the weight of the label 1, where y is labels

    def row_sums(self, scores: Any, b: float, duals: Any, w: Array) -> RowSums:
        """Sum over the rows, at scores + b with these duals."""
        constant = self.problem.constant
        outer = abs(b) + (abs(constant * float(w[-1])) if constant else 0.0)
        norm = self.side.norm(w)
        return self.passes.row_sums(scores, b, duals, self._share, self.norms, norm, outer)

    def off(self, mass: float) -> float:
        """Return how far u can be from the truth, in the dual of the regulariser's metric."""
        return 2.0 * EPS * (self.products.chain + 12) * mass / self.problem.mu

    def certificate(self, sums: RowSums, w: Array, u: Array) -> Certificate:
        """Certify w and a dual point with its u, by the rows' part."""
        problem, side = self.problem, self.side
        g, n, d = problem.regularizer, problem.total, len(w)
        scale, each = g.scale, side.excess(w, u)
        excess, off = float(each.sum()), self.off(sums.mass)
        slope = math.sqrt(2.0 * excess) + 0.5 * off if g.eta > 0 else 0.0
        lost = scale * (slope + side.reach(w, u, off)) * off
        last = self._rounded_last(w, u, float(each[-1])) if problem.constant else 0.0
        relative = 4.0 * EPS * (256.0 + 0.5 * d)
        nothing = sums.value == 0 and sums.mass == 0 and not w.any()
        tiny = 0.0 if nothing else 1e-300
        primal = sums.value / n + scale * g.value(w)
        gap = sums.excess / n + scale * excess
        rounding = 1.001 * (sums.slip / n + lost + scale * last + relative * gap) + tiny
        blur = 1.001 * (sums.blur / n + relative * primal) + tiny
        gap += rounding
        if problem.fit_intercept and sums.imbalance != 0:
            price = self._price(gap, sums, primal + blur, w)
            gap, rounding = gap + price, rounding + price
        return Certificate.of(primal, gap, rounding, blur, problem.strength)

    def _rounded_last(self, w: Array, u: Array, here: float) -> float:
        """Return how far the excess can rise if the last of w is rounded."""
        if math.isinf(here):
            return 0.0
        most = here
        for off in (-2.0 * EPS * abs(w[-1]), 2.0 * EPS * abs(w[-1])):
            moved = w.copy()
            moved[-1] += off
            most = max(most, float(self.side.excess(moved, u)[-1]))
        return most - here

    def _price(self, gap: float, sums: RowSums, level: float, w: Array) -> float:
        """Return what an imbalance of the duals adds to the gap."""
        problem, n, far = self.problem, self.problem.total, sums.far
        scale = problem.regularizer.scale
        if isinstance(problem.loss, Logistic):
            lighter = min(self._positive, n - self._positive)
            far += 1.0 + math.log(2.0 * n / max(lighter, 1e-300))
        else:
            far += problem.loss.dead_zone
        far += self.longest * self.side.unbounded_distance(w, level / scale)
        mean = 1.001 * abs(sums.imbalance) / n
        half = 0.5 * mean * self.longest * math.sqrt(2.0 / scale)
        plus = half * half + mean * far
        return 1.001 * (plus + 2.0 * half * math.sqrt(gap + plus) + half * half)
