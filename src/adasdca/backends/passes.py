"""Passes over vectors of n numbers: a loss of all rows, and its sums."""

from __future__ import annotations

import math
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.contract import RowVector, Vectors
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps) / 2


class Derived(NamedTuple):
    """The rows at a point: scores, −φ', cφ'', and sums."""

    #: Vectors.
    scores: RowVector
    beta: RowVector
    h: RowVector
    #: Σ c_iβ_i and Σ c_iφ''.
    balance: float
    mass: float
    residual: float  #: Σ |t − z|.
    curved: int  #: Number of rows with curvature.
    reach: float  #: The largest |score|.


class RowSums(NamedTuple):
    """Sums over the rows by which a point is certified."""

    #: Σ c φ, and Σ c (φ + φ* + aβ).
    value: float
    excess: float
    #: What rounding of the scores can add to the excess, and to the value.
    slip: float
    blur: float
    mass: float  #: Σ c |β| |x|.
    imbalance: float  #: Σ c β.
    far: float  #: The largest |t − z|.


class Passes:
    """Passes with the loss, targets and weights of a problem, row by row in NumPy's functions."""

    xp: Any = np  #: NumPy, or the one like it whose arrays vectors are, if they are any.
    y: RowVector  #: The targets.

    def __init__(self, problem: Problem, vectors: Vectors) -> None:
        self.loss, self.vectors = problem.loss, vectors
        weight = np.ones(len(problem.y)) if problem.weight is None else problem.weight
        self.y, self.c = vectors.scatter(problem.y), vectors.scatter(weight)
        self._lost = 0.0 if problem.weight is None else EPS  # of a product with a weight

    def part(self, rows: Any) -> Passes:
        """Return the passes over some of the rows, where vectors are arrays."""
        found = copy(self)
        found.y, found.c = self.y[rows], self.c[rows]
        return found

    def weighted(self, x: RowVector) -> RowVector:
        """Return c_i x_i."""
        return self.vectors.each(np.multiply, self.c, x)

    def derive(
        self, scores: RowVector, change: RowVector, step: float, centre: RowVector, length: float
    ) -> Derived:
        """Go along a line, if there is one, and derive the loss, kinks rounded over a length."""
        if change is not None:
            scores = self.vectors.each(lambda z, dz: z + step * dz, scores, change)
        beta, h = self._rounded(scores, centre, length)

        def figures(c: Any, y: Any, z: Any, t: Any, h: Any) -> tuple[Any, ...]:
            return c * t, h, abs(self.loss.residual(z, y)), h > 0

        sums = self.vectors.sums(figures, self.c, self.y, scores, beta, h)
        reach = self.vectors.largest(np.abs, scores)
        balance, mass, residual, curved = sums
        return Derived(scores, beta, h, balance, mass, residual, int(curved), reach)

    def _rounded(
        self, scores: RowVector, centre: RowVector, length: float
    ) -> tuple[RowVector, RowVector]:
        """Return −φ' and cφ''."""
        loss, each = self.loss, self.vectors.each
        if length == 0:
            h = each(lambda c, y, z: c * loss.curvature(z, y), self.c, self.y, scores)
            return self.slopes(scores, 0.0), h
        if centre is None:
            centre = each(np.zeros_like, scores)
        beta = each(lambda t, z, y: loss.step(t, z, y, length), centre, scores, self.y)
        width = loss.smoothness + length
        return beta, each(lambda c, t, y: c * loss.is_free(t, y) / width, self.c, beta, self.y)

    def slope(
        self, scores: RowVector, change: RowVector, step: float, centre: RowVector, length: float
    ) -> tuple[float, float, float]:
        """Return Σ cβ dz along a line, the sum of the sizes of its terms, and Σ cφ'' dz²."""
        ahead = self.vectors.each(lambda z, dz: z + step * dz, scores, change)

        def figures(c: Any, dz: Any, t: Any, h: Any) -> tuple[Any, ...]:
            return c * t * dz, abs(c * t * dz), h * dz**2

        value, size, curvature = self.vectors.sums(
            figures, self.c, change, *self._rounded(ahead, centre, length)
        )
        return value, size, curvature

    def balance(self, scores: RowVector, b: float) -> tuple[float, float, float]:
        """Return Σ cβ, Σ c|β| and Σ cφ'' at scores + b."""

        def figures(c: Any, y: Any, z: Any) -> tuple[Any, ...]:
            beta = -self.loss.slope(z + b, y)
            return c * beta, c * abs(beta), c * self.loss.curvature(z + b, y)

        total, mass, curvature = self.vectors.sums(figures, self.c, self.y, scores)
        return total, mass, curvature

    def slopes(self, scores: RowVector, b: float) -> RowVector:
        """Return −φ' at scores + b."""
        return self.vectors.each(lambda z, y: -self.loss.slope(z + b, y), scores, self.y)

    def shares(
        self, scores: RowVector, b: float, duals: RowVector, curvature: RowVector
    ) -> tuple[RowVector, RowVector]:
        """Return c (φ + φ* + aβ) and c q|Δβ| of every row at scores + b, Δβ its exact step."""
        loss, rows = self.loss, (self.c, self.y, scores, duals, curvature)
        share = self.vectors.each(lambda c, y, z, t, q: c * loss.excess(t, z + b, y), *rows)
        step = self.vectors.each(
            lambda c, y, z, t, q: c * q * abs(loss.step(t, z + b, y, q) - t), *rows
        )
        return share, step

    def sides(self, duals: RowVector) -> tuple[float, float]:
        """Return Σ c max(β, 0) and Σ c max(−β, 0)."""
        up, down = self.vectors.sums(
            lambda c, t: (c * np.maximum(t, 0.0), c * np.maximum(-t, 0.0)), self.c, duals
        )
        return up, down

    def freedom(self, scores: RowVector, b: float, duals: RowVector) -> tuple[float, float]:
        """Return Σ c over the rows whose duals are free, and Σ c |t − z| at scores + b."""
        each, loss = self.vectors.each, self.loss
        free = self.weighted(each(lambda t, y: 1.0 * loss.is_free(t, y), duals, self.y))
        away = self.weighted(each(lambda z, y: abs(self.loss.residual(z + b, y)), scores, self.y))
        weight, distance = self.vectors.sums(lambda *both: both, free, away)
        return weight, distance

    def row_sums(
        self,
        scores: RowVector,
        b: float,
        duals: RowVector,
        share: RowVector,
        norms: RowVector,
        norm_w: float,
        outer: float,
    ) -> RowSums:
        """Sum over the rows; scores are off by norm_w·share + 4ε(outer + |z| + |t|) at most."""
        loss, margin = self.loss, self.loss.kind == "classification"

        def figures(c: Any, y: Any, z: Any, t: Any, share: Any, norm: Any) -> tuple[Any, ...]:
            a, target = z + b, 1.0 if margin else abs(y)
            delta = norm_w * share + 4.0 * EPS * (outer + abs(a) + target)
            s = -loss.slope(a, y)
            turn = 0.5 * delta
            if not loss.curvature_varies:
                turn = abs(loss.slope(a + delta, y) - loss.slope(a - delta, y))
            value, excess = c * loss.value(a, y), c * loss.excess(t, a, y)
            slip, blur = c * delta * (abs(s - t) + turn), c * delta * (abs(s) + turn)
            return value, excess, slip, blur, c * abs(t) * norm, c * t, c * abs(t)

        sums = self.vectors.sums(figures, self.c, self.y, scores, duals, share, norms)
        far = self.vectors.largest(lambda z, y: abs(self.loss.residual(z + b, y)), scores, self.y)
        imbalance = sums[5] + math.copysign(self._lost * sums[6], sums[5])
        return RowSums(sums[0], sums[1], sums[2], sums[3], sums[4], imbalance, far)
