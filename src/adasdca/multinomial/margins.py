"""The rows' part of a multinomial objective, in margins t_ik = s_ik − s_{i,k_i}.

A row's own margin is 0, its loss is log Σ_k exp t_ik. Written so, the loss, 1 − p of the own class
and all slopes are sums of terms of one sign: they keep their digits where classes are separated.
Arrays are (K, n), a class a row: sums over the classes are then sums of long vectors.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import ssyrk

from adasdca import _core
from adasdca.multinomial.blocks import ClassBlocks
from adasdca.newton.line import Slope
from adasdca.problem.data import CsrRows, Rows
from adasdca.problem.products import RowProducts

Array = NDArray[np.float64]

#: Rows that are taken at a time: their arrays fit a cache, and a solve can be left between two.
BLOCK = 1 << 14


def blocks(n: int) -> Iterator[slice]:
    """Yield the rows in blocks, as long as nobody wants the solve to end."""
    for first in range(0, n, BLOCK):
        _core.check()
        yield slice(first, min(n, first + BLOCK))


class Multinomial:
    """The problem: rows, class codes 0 … K−1, weights, strength.

    Attributes
    ----------
    total, mu : float
        N and μ = lam·N.
    centre : (d,) array
        The mean of the rows with an intercept, else 0.
    lengths : (n,) array
        ‖x_i‖.
    """

    def __init__(
        self,
        data: Rows,
        codes: NDArray[np.intp],
        weight: Array | None,
        lam: float,
        n_classes: int,
        fit_intercept: bool,
    ) -> None:
        rows = RowProducts(data.matrix)
        self.rows, self.weight, self.lam = rows, weight, lam
        self.n_classes, self.fit_intercept = n_classes, fit_intercept
        self.total = float(len(codes) if weight is None else math.fsum(weight))
        self.mu = lam * self.total
        self.codes = codes
        self._basis: tuple[Array, NDArray[np.float32]] | None = None
        self.own = codes, np.arange(len(codes))
        self.lengths = rows.norms()
        self.centre = np.zeros(rows.shape[1])
        if fit_intercept:
            ones = np.ones((len(codes), 1)) if weight is None else weight[:, None]
            self.centre = rows.transposed(ones)[0] / self.total
        self._sparse = isinstance(data, CsrRows)
        self.blocks = ClassBlocks(data, n_classes, self.centre)

    def weighted(self, values: Array) -> Array:
        """Return c_i times column i."""
        return values if self.weight is None else values * self.weight

    def sum(self, values: Array) -> float:
        """Return Σ c_i values_i."""
        return float(values.sum() if self.weight is None else self.weight @ values)

    def margins(self, coef: Array, intercept: Array) -> Array:
        """Return the margins of a model."""
        if self._sparse:
            self.rows.passes += 1
            scores = self.blocks.times(coef)
        else:
            scores = np.ascontiguousarray(self.rows.times(coef).T)
        scores += intercept[:, None]
        scores -= scores[self.own]
        return scores

    def shifts(self, intercept: Array) -> Array:
        """Return the margins of an intercept alone."""
        out = np.empty((self.n_classes, len(self.codes)))
        for part in blocks(len(self.codes)):
            np.subtract(intercept[:, None], intercept[self.codes[part]], out=out[:, part])
        return out

    def basis(self, sample: int, deadline: float) -> tuple[Array, NDArray[np.float32]] | None:
        """Return the eigenvalues and eigenvectors of Σ_i c_i z_i z_iᵀ; None if time ran out.

        They are of single precision, and of no more rows than `sample`.
        """
        if self._basis is None:
            n, d = self.rows.shape
            gram = np.zeros((d, d), order="F", dtype=np.float32)
            rows, root = self.rows, np.ones(n) if self.weight is None else np.sqrt(self.weight)
            if sample < n:
                chosen = np.sort(np.random.default_rng(0).permutation(n)[:sample])
                rows, root = rows.some(chosen), math.sqrt(n / sample) * root[chosen]
            for part, block in rows.dense_blocks(d):
                if time.perf_counter() >= deadline:
                    return None
                z = (block - self.centre) * root[part, None]
                gram = ssyrk(1.0, z.astype(np.float32).T, beta=1.0, c=gram, overwrite_c=1)
            if not np.isfinite(gram).all():
                return None
            values, vectors = np.linalg.eigh(gram.T, UPLO="L")
            self._basis = np.maximum(values.astype(np.float64), 0.0), vectors
        return self._basis

    def combined(self, alpha: Array) -> Array:
        """Return Σ_i α_i x_iᵀ."""
        if not self._sparse:
            return self.rows.transposed(alpha.T)
        self.rows.passes += 1
        return self.blocks.classes(self.blocks.gather(alpha))


class Chances(NamedTuple):
    """What the margins make.

    Attributes
    ----------
    p : (K, n) array
        Probabilities.
    short : (n,) array
        1 − p of the own class.
    loss : (n,) array
        The losses.
    """

    p: Array
    short: Array
    loss: Array


def chances(problem: Multinomial, margins: Array) -> Chances:
    """Return probabilities and losses at some margins."""
    n = margins.shape[1]
    found = Chances(np.empty_like(margins), np.empty(n), np.empty(n))
    for part in blocks(n):
        t, codes = margins[:, part], problem.codes[part]
        own = codes, np.arange(len(codes))
        top = t.max(axis=0)
        p = np.exp(t - top)
        first = p[own]  # exp(−top): 1 where the own class is the likeliest
        p[own] = 0.0
        others = p.sum(axis=0)
        p[own] = first
        whole = others + first
        np.divide(p, whole, out=found.p[:, part])
        np.divide(others, whole, out=found.short[part])
        found.loss[part] = top + np.log1p(others + np.expm1(-top))
    return found


class RowLosses:
    """Σ_i c_i log Σ_k exp t_ik at margins that it remembers, and along a line from there."""

    def __init__(self, problem: Multinomial, margins: Array) -> None:
        self.problem, self.margins = problem, margins
        self.at = chances(problem, margins)

    def value(self) -> float:
        """Return the sum."""
        return self.problem.sum(self.at.loss)

    def spread(self) -> float:
        """Return the distance of the margins from each other at most."""
        return float(self.margins.max() - self.margins.min())

    def coupling(self) -> Array:
        """Return Σ_i c_i p_ik p_ij for classes k ≠ j, and 0 for k = j."""
        p = self.at.p
        coupling = np.asarray(self.problem.weighted(p) @ p.T)
        np.fill_diagonal(coupling, 0.0)
        return coupling

    def alpha(self) -> Array:
        """Return α: c_i (e_{k_i} − p_i), a column each."""
        alpha = np.empty_like(self.at.p)
        for part in blocks(alpha.shape[1]):
            np.negative(self.at.p[:, part], out=alpha[:, part])
        alpha[self.problem.own] = self.at.short
        return self.problem.weighted(alpha)

    def aim(self, change: Array) -> None:
        """Choose the line, by its margins."""
        self.change = change
        self._tried: tuple[float, Array, Chances] | None = None

    def _try(self, length: float) -> tuple[float, Array, Chances]:
        if self._tried is None or self._tried[0] != length:
            margins = np.empty_like(self.margins)
            for part in blocks(margins.shape[1]):
                np.add(self.margins[:, part], length * self.change[:, part], out=margins[:, part])
            self._tried = length, margins, chances(self.problem, margins)
        return self._tried

    def slope(self, length: float) -> Slope:
        """Return the slope along the line."""
        p, change = self._try(length)[2].p, self.change
        mean, size, bend = (np.empty(p.shape[1]) for _ in range(3))
        for part in blocks(len(mean)):
            pull = p[:, part] * change[:, part]
            pull.sum(axis=0, out=mean[part])
            np.abs(pull).sum(axis=0, out=size[part])
            pull *= change[:, part]
            bend[part] = np.maximum(pull.sum(axis=0) - mean[part] ** 2, 0.0)
        return Slope(*map(self.problem.sum, (mean, bend, size)))

    def move(self, length: float) -> None:
        """Go along the line; what the search has tried last is known."""
        _, self.margins, self.at = self._try(length)
        self._tried = None

    def curved(self, scores: Array, part: slice) -> Array:
        """Return c_i (diag p_i − p_i p_iᵀ) times the columns of `scores`, for some rows."""
        p, weight = self.at.p[:, part], self.problem.weight
        # From the own class on, differences keep their digits.
        codes = self.problem.codes[part]
        out = scores - scores[codes, np.arange(len(codes))]
        out -= (p * out).sum(axis=0)
        out *= p
        if weight is not None:
            out *= weight[part]
        return out
