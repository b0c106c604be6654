"""How the equations of a Newton step are solved: by features, by rows, or iteratively.

A step (Δw, Δb) solves, with h_i ≥ 0, μ = λN and X the rows x_i,

    (μ I + Xᵀ diag(h) X) Δw + k Δb = r,        k = Σ_i h_i x_i,
    kᵀ Δw + (Σ_i h_i) Δb = t,

the second line with an intercept only. `PrimalSystem` factorises the matrix of the features,
`DualSystem` one of the rows with h_i > 0, `IterativeSystem` none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs

from adasdca import _core
from adasdca.newton.kernel_matrix import KernelMatrix
from adasdca.problem.data import DenseRows
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Equations:
    """The equations of a step: h, r and t.

    Where `factor` is given, Σ_i h_i f_i x_i is still to be added to r: for a `PrimalSystem`, which
    does so in the same pass.
    """

    h: Array
    right: Array
    wanted: float
    factor: Array | None = None


@dataclass(frozen=True)
class Formed:
    """What the equations have of the rows: G, its lower triangle, k, Σ_i h_i and Σ_i h_i f_i x_i.

    k and Σ_i h_i are 0 without an intercept, the last is without a factor.
    """

    matrix: Array
    column: Array
    mass: float
    extra: Array


class System(Protocol):
    """A way to solve them."""

    def solve(self, equations: Equations, deadline: float) -> tuple[Array, float] | None:
        """Return Δw and Δb (0 without an intercept); None if that failed or time ran out."""


def cholesky(matrix: Array, stiffness: float | Array) -> Callable[[Array], Array] | None:
    """Return a solver with diag(stiffness) + the lower triangle given, which is lost on the way.

    None if the matrix is not positive definite.
    """
    matrix[np.diag_indices(len(matrix))] += stiffness
    factor, info = dpotrf(matrix.T, lower=0, overwrite_a=1, clean=0)
    return None if info != 0 else lambda right: dpotrs(factor, right, lower=0)[0]


def bordered(
    solve: Callable[[Array], Array], right: Array, column: Array, mass: float, wanted: float
) -> tuple[Array, float]:
    """Solve with the intercept's row and column as well, by their Schur complement.

    Parameters
    ----------
    solve : callable
        Solves with the matrix of the features.
    right, wanted : (d,) array, float
        The right-hand sides of the features and of the intercept.
    column, mass : (d,) array, float
        k = Σ_i h_i x_i and Σ_i h_i; with 0 the intercept stays.
    """
    move = solve(right)
    if mass <= 0:
        return move, 0.0
    across = solve(column)
    # Rounding may leave nothing of the complement, or less.
    pivot = max(mass - float(column @ across), 1e-14 * mass)
    db = float(wanted - column @ move) / pivot
    return move - db * across, db


class _Rows:
    """What all systems ask of the rows."""

    def __init__(self, problem: Problem, workspace: _core.Workspace, threads: int) -> None:
        self.problem = problem
        self.workspace = workspace
        self.threads = threads
        self.stiffness = problem.strength * problem.total

    def scores(self, w: Array) -> Array:
        """Return x_i·w for every row."""
        out = _core.vector(self.workspace.n)
        self.workspace.scores(w, out, self.threads)
        return out

    def weighted_sum(self, h: Array) -> Array:
        """Return Σ_i h_i x_i; where a sample weight is 0, h must be."""
        weight = self.problem.weight
        beta = h if weight is None else np.divide(h, weight, out=np.zeros_like(h), where=weight > 0)
        out = np.empty(self.workspace.d)
        self.workspace.combine(beta, out, self.threads)
        return out * self.stiffness

    def border(self, h: Array) -> tuple[Array, float]:
        """Return k and Σ_i h_i, or zeros without an intercept."""
        mass = float(h.sum()) if self.problem.fit_intercept else 0.0
        return (self.weighted_sum(h) if mass > 0 else np.zeros(self.workspace.d)), mass


class PrimalSystem(_Rows):
    """The matrix of the features, factorised."""

    def solve(self, equations: Equations, deadline: float) -> tuple[Array, float] | None:
        """Form the matrix and factorise it."""
        formed = self.form(equations.h, equations.factor, deadline)
        solve = None if formed is None else cholesky(formed.matrix, self.stiffness)
        if formed is None or solve is None:
            return None
        right = equations.right + formed.extra
        return bordered(solve, right, formed.column, formed.mass, equations.wanted)

    def form(self, h: Array, factor: Array | None, deadline: float) -> Formed | None:
        """Sum all that the equations have of the rows; None if time ran out."""
        n, d = self.workspace.n, self.workspace.d
        mass = float(h.sum()) if self.problem.fit_intercept else 0.0
        lines = [np.ones(n)] if mass > 0 else []
        if factor is not None:
            lines.append(factor)
        # A single line is not copied.
        factors = lines[0][None] if len(lines) == 1 else np.array(lines).reshape(-1, n)
        sums = np.empty((len(factors), d))
        matrix = self._sum(h, factors, sums, deadline)
        if matrix is None:
            return None
        zero = np.zeros(d)
        column = sums[0] if mass > 0 else zero
        return Formed(matrix, column, mass, zero if factor is None else sums[-1])

    def _sum(self, h: Array, factors: Array, sums: Array, deadline: float) -> Array | None:
        """Return Σ_i h_i x_i x_iᵀ, and write Σ_i h_i f_i x_i for every line f of the factors."""
        rows, d = self.problem.rows, self.workspace.d
        if isinstance(rows, DenseRows):
            for f, to in zip(factors, sums, strict=True):
                to[:] = self.weighted_sum(h * f)
            matrix = np.zeros((d, d), order="F")
            active = np.flatnonzero(h)
            for part in np.array_split(active, max(1, len(active) * d // 2**18)):
                if time.perf_counter() >= deadline:
                    return None
                scaled = rows.values[part] * np.sqrt(h[part])[:, None]
                matrix = dsyrk(1.0, scaled.T, beta=1.0, c=matrix, lower=0, overwrite_c=1)
            # The upper triangle in Fortran order is the lower one in C order.
            lower: Array = np.asarray(matrix).T
            return lower
        matrix = _core.vector(d * d).reshape(d, d)
        seconds = deadline - time.perf_counter()
        done = self.workspace.gram(h, factors, matrix, sums, self.threads, seconds)
        return matrix if done else None


class DualSystem(_Rows):
    """A matrix of the rows with curvature, factorised: for fewer of them than features.

    With S = diag(√h), K = X Xᵀ and z = S (X Δw + Δb) the equations become

        (μ I + S K S) z = S X r + μ Δb √h,    √hᵀ z = t,    Δw = (r − Xᵀ S z)/μ.

    Their Schur complement μ √hᵀ (μ I + S K S)⁻¹ √h has no difference in it, where `bordered` would
    take one of nearly equal numbers: with few rows w alone almost fits all scores.
    """

    def __init__(
        self, problem: Problem, workspace: _core.Workspace, threads: int, kernel: KernelMatrix
    ) -> None:
        super().__init__(problem, workspace, threads)
        self.kernel = kernel

    def solve(self, equations: Equations, deadline: float) -> tuple[Array, float] | None:
        """Take the rows with curvature out of K, and factorise."""
        curved = np.flatnonzero(equations.h)
        if not len(curved):
            return equations.right / self.stiffness, 0.0
        found = self.kernel.among(curved, self.workspace, self.threads, deadline)
        if found is None:
            return None
        active, matrix = found
        root = np.sqrt(equations.h[active])
        matrix *= root
        matrix *= root[:, None]
        solve = cholesky(matrix, self.stiffness)
        if solve is None:
            return None
        z = solve(root * self.scores(equations.right)[active])
        db = 0.0
        if self.problem.fit_intercept:
            across = solve(root)
            db = float(equations.wanted - root @ z) / (self.stiffness * float(root @ across))
            z += (self.stiffness * db) * across
        spread = np.zeros(self.workspace.n)
        spread[active] = root * z
        return (equations.right - self.weighted_sum(spread)) / self.stiffness, db


class IterativeSystem(_Rows):
    """Conjugate gradients, preconditioned by the diagonal, to three digits."""

    def solve(self, equations: Equations, deadline: float) -> tuple[Array, float] | None:
        """Iterate; a product with the matrix is two passes over the rows."""
        diagonal = self.stiffness + self._diagonal(equations.h)
        found = bordered(
            lambda right: self._iterate(equations.h, diagonal, right, deadline),
            equations.right,
            *self.border(equations.h),
            equations.wanted,
        )
        return found if time.perf_counter() < deadline else None

    def _iterate(self, h: Array, diagonal: Array, right: Array, deadline: float) -> Array:
        x = np.zeros_like(right)
        residual = right.copy()
        size = float(np.linalg.norm(right))
        z = residual / diagonal
        p, rz = z.copy(), float(residual @ z)
        for _ in range(100):
            if np.linalg.norm(residual) <= 1e-3 * size or time.perf_counter() >= deadline:
                break
            q = self.stiffness * p + self.weighted_sum(h * self.scores(p))
            step = rz / float(p @ q)
            x += step * p
            residual -= step * q
            z = residual / diagonal
            rz, previous = float(residual @ z), rz
            p = z + (rz / previous) * p
        return x

    def _diagonal(self, h: Array) -> Array:
        """Return Σ_i h_i x_ij² for every feature j."""
        rows = self.problem.rows
        if isinstance(rows, DenseRows):
            sums: Array = np.einsum("i,ij,ij->j", h, rows.values, rows.values, dtype=np.float64)
            return sums
        counts = np.diff(rows.start)
        weights = np.repeat(h, counts) * rows.values.astype(np.float64) ** 2
        return np.asarray(
            np.bincount(rows.columns, weights=weights, minlength=rows.shape[1]), dtype=np.float64
        )
