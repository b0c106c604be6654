"""The rows' part of an interior-point method, for rows in the memory of this process."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backends.barrier import Barrier
from adasdca.backends.blas import cholesky
from adasdca.backends.cpu_term import CpuTerm

Array = NDArray[np.float64]
#: From right-hand sides of the features, the rows and the balance to Δw, Δb and Δα.
Factor = Callable[[Array, Array, float], tuple[Array, float, Array]]

#: The largest system that is factorised.
MOST_UNKNOWNS = 5000
#: The share of its diagonal that a matrix gets more, then 100 times it, until it is definite.
DAMPING = 1e-15


class InteriorTerm:
    """The rows' part of an interior-point method: dual variables inside their bounds.

    Their products with the multipliers of the bounds are led to 0 together with those of the
    coefficients, which are not the rows'. With α = cβ, D the diagonal of the features and H = ch
    that of the rows, a step solves

        D Δw − Xᵀ Δα = f,    Δα/H + X Δw + Δb = κ/h,    Σ Δα = −Σ α.
    """

    def __init__(self, term: CpuTerm) -> None:
        self._term, problem, n = term, term.problem, term.workspace.n
        self._sign = problem.y if problem.loss.kind == "classification" else np.ones(n)
        self._weight = np.ones(n) if problem.weight is None else problem.weight
        self._intercept = problem.fit_intercept
        self._barrier: Barrier
        self._solve: Factor

    @property
    def count(self) -> int:
        """Number of products."""
        return self._barrier.count

    def start(self, w: Array, b: float, tau: float) -> Array:
        """Begin near β = 0, at these scores and with products of τ at least; return u."""
        problem, loss = self._term.problem, self._term.problem.loss
        target = 1.0 if loss.kind == "classification" else problem.y
        gamma = loss.smoothness
        self._barrier = Barrier(self._weight, gamma, target, loss.dead_zone, *loss.domain)
        self._score(w, b)
        residual = float(np.abs(loss.residual(self._term.scores, problem.y)).mean())
        size = max(residual / gamma, 1e-300) if gamma > 0 else 1.0
        self._barrier.start(np.zeros(len(self._sign)), self._force, size, tau)
        return self._combine()

    def _score(self, w: Array, b: float) -> None:
        self._term._score(w, b)
        self._force = -self._sign * self._term.scores

    def _combine(self) -> Array:
        u = np.empty(self._term.workspace.d)
        self._term.workspace.combine(self.duals(), u, self._term.threads)
        return u

    def duals(self) -> Array:
        return np.ascontiguousarray(self._sign * self._barrier.s)

    def products(self, length: float) -> float:
        """Return the sum of the products at a length along the step."""
        return self._barrier.products(length)

    def linearise(self) -> None:
        """Prepare steps from here, the first of which leads all products to 0."""
        self._barrier.linearise(self._force)

    def correct(self, tau: float) -> None:
        """Let the next step go for products τ, and mind what the last one would have left."""
        self._barrier.correct(tau)

    def centre(self, tau: float, length: float) -> None:
        """Let the next step go for products that are no outliers at a length along the last one."""
        self._barrier.centre(tau, length)

    def factorise(self, diagonal: float | Array, deadline: float) -> bool:
        """Factorise the equations of steps, of the rows or the features, whichever are fewer.

        The diagonal is the curvature of the features. False if time ran out.
        """
        h = self._weight * self._barrier.h
        fewer_rows = self._term.workspace.n < self._term.workspace.d
        by = self._by_rows if fewer_rows else self._by_features
        found = by(diagonal, np.maximum(h, np.finfo(np.float64).tiny), deadline)
        if found is not None:
            self._solve = found
        return found is not None

    def _by_rows(self, diagonal: float | Array, h: Array, deadline: float) -> Factor | None:
        term, every = self._term, np.arange(len(h))
        found = term._products(every, diagonal, deadline)
        if found is None:
            return None
        order, matrix = found
        solve = factorise(matrix, 1.0 / h[order], deadline)
        if solve is None:
            return None
        back = np.empty_like(order)
        back[order] = every

        def inverse(right: Array) -> Array:
            return solve(right[order])[back]

        across = inverse(np.ones(len(h)))

        def step(f: Array, rows: Array, balance: float) -> tuple[Array, float, Array]:
            alpha, db = inverse(rows - self._image(f / diagonal)), 0.0
            if self._intercept:
                db = float(alpha.sum() - balance) / float(across.sum())
                alpha -= db * across
            return (f + self._scattered_sum(alpha)) / diagonal, db, alpha

        return step

    def _by_features(self, diagonal: float | Array, h: Array, deadline: float) -> Factor | None:
        self._term.curvature = h
        formed = self._term.gram(self._intercept, deadline)
        if formed is None:
            return None
        column, mass = formed.column, formed.mass
        solve = factorise(formed.matrix, diagonal, deadline)
        if solve is None:
            return None

        def step(f: Array, rows: Array, balance: float) -> tuple[Array, float, Array]:
            right, db = f + self._scattered_sum(h * rows), 0.0
            if self._intercept:
                short = float(h @ rows) - balance
                dw = solve(right - column * (short / mass))
                db = (short - float(column @ dw)) / mass
            else:
                dw = solve(right)
            return dw, db, h * (rows - self._image(dw) - db)

        return step

    def _image(self, v: Array) -> Array:
        image = _core.vector(self._term.workspace.n)
        self._term.workspace.scores(v, image, self._term.threads)
        return image

    def _scattered_sum(self, alpha: Array) -> Array:
        return self._term._weighted_sum(np.where(self._weight > 0, alpha, 0.0))

    def aim(self, f: Array) -> tuple[Array, float]:
        """Choose the next step, f the features' right-hand side; return its Δw and Δb."""
        barrier = self._barrier
        balance = float(self._weight @ (self._sign * barrier.s))
        dw, db, alpha = self._solve(f, self._sign * barrier.kappa / barrier.h, -balance)
        ds = np.divide(
            self._sign * alpha, self._weight, out=np.zeros_like(alpha), where=self._weight > 0
        )
        barrier.aim(ds)
        return dw, db

    def reach(self, share: float) -> float:
        """Return the length at which a dual variable or a multiplier meets its bound.

        That is along a mixture of two steps, the last one and, with this share, the next one.
        """
        return self._barrier.reach(share)

    def mix(self, share: float) -> None:
        """Take this mixture as the step, and as the last one."""
        self._barrier.mix(share)

    def move(self, length: float, w: Array, b: float) -> Array:
        """Go along the step, to these w and b; return u."""
        self._barrier.move(length)
        self._score(w, b)
        return self._combine()


def factorise(
    matrix: Array, diagonal: float | Array, deadline: float = math.inf
) -> Callable[[Array], Array] | None:
    """Return a solver with diag(diagonal) + the lower triangle given, scaled to a diagonal of 1.

    None if its numbers are beyond double precision, or if time ran out.
    """
    # (A square that rounding has made negative is none.)
    root = 1.0 / np.sqrt(np.maximum(matrix.diagonal(), 0.0) + diagonal)
    if not np.isfinite(root).all():
        return None
    matrix *= root
    matrix *= root[:, None]
    np.fill_diagonal(matrix, 1.0)
    damping = DAMPING
    while damping < 1.0 and time.perf_counter() < deadline:
        solve = cholesky(matrix.copy(), damping, deadline)
        if solve is not None:
            factor = solve
            return lambda right: np.asarray(root * factor(root * right))
        damping *= 100.0
    return None
