"""The multinomial risk of a linear model: values, best intercept, and its second derivative."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from adasdca.problem.products import RowProducts

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Multinomial:
    """The problem: rows, class codes 0 … K−1, weights, strength."""

    rows: RowProducts
    codes: NDArray[np.intp]
    weight: Array | None
    lam: float
    n_classes: int
    fit_intercept: bool

    @property
    def total(self) -> float:
        """N."""
        return float(len(self.codes) if self.weight is None else math.fsum(self.weight))

    def scaled(self, rows: Array) -> Array:
        """Return c_i times row i."""
        return rows if self.weight is None else rows * self.weight[:, None]

    def mean(self, values: Array) -> float:
        """Return (1/N) Σ c_i values_i."""
        return float(np.average(values, weights=self.weight))

    def risk(self, scores: Array) -> float:
        """Return the mean loss at these scores, intercept included."""
        own = scores[np.arange(len(self.codes)), self.codes]
        return self.mean(logsumexp(scores, axis=1) - own)

    def residual(self, p: Array) -> Array:
        """Return α: c_i (e_{k_i} − p_i), a row each."""
        alpha = -p
        alpha[np.arange(len(self.codes)), self.codes] += 1.0
        return self.scaled(alpha)

    def best_intercept(self, scores: Array, b: Array) -> Array:
        """Return the b, summing to 0, that minimises the risk of scores + b."""
        ones = np.ones((self.n_classes, self.n_classes))  # keeps Σb = 0, where the risk is flat
        value = self.risk(scores + b)
        for _ in range(100):
            p = softmax(scores + b, axis=1)
            slope = self.residual(p).sum(axis=0)
            weighted = self.scaled(p)
            hessian = np.diag(weighted.sum(axis=0)) - weighted.T @ p
            step = np.linalg.solve(hessian + ones * (np.trace(hessian) / self.n_classes), slope)
            step -= step.mean()
            size = 1.0
            while (new := self.risk(scores + b + size * step)) > value * (
                1 + 1e-15
            ) and size > 1e-3:
                size /= 2
            b, value = b + size * step, new
            # To the last digits: the dual point is feasible only at the very root.
            if np.abs(size * step).max() <= 1e-15 * max(1.0, np.abs(b).max()):
                break
        return b


class Hessian:
    """The second derivative of P at a point, as a map and as a matrix."""

    def __init__(self, problem: Multinomial, p: Array) -> None:
        self._problem, self._p = problem, p

    def _curved(self, t: Array) -> Array:
        """Return c_i (diag p_i − p_i p_iᵀ) t_i / N, a row each."""
        spread = self._p * (t - np.einsum("ik,ik->i", self._p, t)[:, None])
        return self._problem.scaled(spread) / self._problem.total

    def solved(self, gradient: Array) -> tuple[Array, Array]:
        """Return the Newton step (for W and b) by a Cholesky-sized system."""
        problem, p = self._problem, self._p
        k, d = gradient.shape
        blocks = np.empty((k, d + 1, k, d + 1))
        for a in range(k):
            for b in range(a, k):
                curvature = p[:, a] * ((a == b) - p[:, b])
                if problem.weight is not None:
                    curvature = curvature * problem.weight
                blocks[a, :, b] = problem.rows.gram(curvature / problem.total)
                blocks[b, :, a] = blocks[a, :, b].T
        matrix = blocks.reshape(k * (d + 1), -1)
        diagonal = np.full((k, d + 1), problem.lam)
        diagonal[:, d] = 0.0
        matrix[np.diag_indices_from(matrix)] += diagonal.ravel()
        last = np.arange(d, k * (d + 1), d + 1)
        if problem.fit_intercept:
            # Σb is free in the scores: pin it, at the scale of the matrix.
            matrix[np.ix_(last, last)] += max(problem.lam, np.trace(matrix) / len(matrix))
        else:
            matrix[last], matrix[:, last] = 0.0, 0.0
            matrix[last, last] = 1.0
        right = np.zeros((k, d + 1))
        right[:, :d] = -gradient
        step = np.linalg.solve(matrix, right.ravel()).reshape(k, d + 1)
        return step[:, :d], step[:, d] - step[:, d].mean()

    def descent(
        self, gradient: Array, accuracy: float, in_time: Callable[[], bool]
    ) -> tuple[Array, Array]:
        """Return a truncated Newton step by conjugate gradients, preconditioned by the diagonal."""
        problem = self._problem
        spread = problem.scaled(self._p * (1.0 - self._p)) / problem.total
        scale_w = 1.0 / (problem.rows.squares(spread) + problem.lam)
        mass = spread.sum(axis=0)
        scale_b = 1.0 / np.where(mass > 0, mass, 1.0)
        w, b = np.zeros_like(gradient), np.zeros(len(gradient))
        r_w, r_b = -gradient, np.zeros(len(gradient))
        first = None
        z_w, z_b = scale_w * r_w, scale_b * r_b
        d_w, d_b = z_w, z_b
        energy = float(np.vdot(r_w, z_w) + np.vdot(r_b, z_b))
        for _ in range(min(1000, 2 * gradient.size)):
            first = energy if first is None else first
            if energy <= accuracy**2 * first or not in_time():
                break
            bend = self._curved(problem.rows.times(d_w) + d_b)
            h_w = problem.rows.transposed(bend) + problem.lam * d_w
            h_b = bend.sum(axis=0) if problem.fit_intercept else np.zeros_like(b)
            length = energy / float(np.vdot(d_w, h_w) + np.vdot(d_b, h_b))
            w, b = w + length * d_w, b + length * d_b
            r_w, r_b = r_w - length * h_w, r_b - length * h_b
            z_w, z_b = scale_w * r_w, scale_b * (r_b - r_b.mean())
            before, energy = energy, float(np.vdot(r_w, z_w) + np.vdot(r_b, z_b))
            d_w, d_b = z_w + energy / before * d_w, z_b + energy / before * d_b
        return w, b - b.mean()
