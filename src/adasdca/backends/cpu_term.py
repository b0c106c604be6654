"""The rows' part of a second-order objective, for rows in the memory of this process."""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyr, ssyr

from adasdca import _core
from adasdca.backends.abilities import Descent, Rounds, RowSystem
from adasdca.backends.base import STRAIGHT, Derivatives, Gram, RowSlope
from adasdca.backends.blas import cholesky
from adasdca.backends.dense_gram import dense_gram
from adasdca.backends.kernel_matrix import KernelMatrix, KernelPart
from adasdca.backends.term import RowTerm
from adasdca.problem.data import DenseRows
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: Every positive sample weight is at least this.
TINY = np.finfo(np.float64).tiny
#: The core sums the matrix of dense rows with at most so many features. BLAS is faster on longer
#: rows. One in single precision that serves several steps pays from fewer on. (Squared loss, 80 to
#: 110 features, double and single precision: 0.8 to 0.9 of the time to 1e-6, against BLAS.)
NARROW, SHARED = 128, 64
#: The largest relative residual, in z, of a solution of a step's equations.
WRONG = 1e-3


class CpuTerm(RowTerm):
    """Σ_i c_i φ_i(x_i·v + b), at a point that it remembers, and along a line from there.

    Parameters
    ----------
    problem : Problem
        The rows, or some of them.
    workspace : Workspace
        The same, laid out for the kernels.
    length, centre : float, (n,) array
        Kinks are rounded over this length about these duals.
    fixed_u : (d,) array, optional
        What rows that are not here add to u, their duals being fixed.
    fixed_balance : float
        What they add to Σ c_iβ_i.
    kernel : KernelMatrix, optional
        The inner products of rows that are known.
    """

    #: Number of rows with curvature, and the mean distance of the scores from their targets.
    curved, residual = 0, 0.0

    def __init__(
        self,
        problem: Problem,
        workspace: _core.Workspace,
        threads: int,
        length: float = 0.0,
        centre: Array | None = None,
        fixed_u: Array | None = None,
        fixed_balance: float = 0.0,
        kernel: KernelMatrix | KernelPart | None = None,
    ) -> None:
        self.problem, self.workspace, self.threads = problem, workspace, threads
        self.length, self.centre = length, centre
        self.fixed_u, self.fixed_balance = fixed_u, fixed_balance
        self.kernel = kernel or KernelMatrix(problem.rows, workspace)
        self.mu = problem.mu
        n = workspace.n
        self.beta, self.curvature = _core.vector(n), _core.vector(n)
        self.scores = self.change = np.empty(0)
        self._random: np.random.Generator | None = None

    # -- the point

    @property
    def residuals(self) -> bool:
        """Whether scores are kept less their targets."""
        return False

    def go(self, v: Array, b: float) -> None:
        self._score(v, b)
        self._first = self.scores
        self._sums = self._derive()

    def place(self, v: Array, b: float) -> Derivatives:
        self._score(v, b)
        self._first = self.scores
        return self._derivatives()

    def move(self, length: float) -> Derivatives:
        # In place: fresh memory takes longer than the sum, which is on one thread.
        self.change *= length
        self.change += self.scores
        self.scores = self.change
        return self._derivatives()

    def _score(self, v: Array, b: float) -> None:
        self.scores = _core.vector(self.workspace.n)
        if not v.any():
            self.scores.fill(b)
        else:
            self.workspace.scores(v, self.scores, self.threads, b)

    def _derive(self, u: Array | None = None) -> tuple[float, float]:
        """Write duals and curvatures, and u if it is given; return the balance and the mass."""
        balance, mass, away, self._reach, self.curved = self.workspace.derive(
            self.scores,
            self.length,
            self.centre,
            self.beta,
            self.curvature,
            u,
            self.threads,
            self.residuals,
        )
        self.residual = away / max(len(self.scores), 1)
        if mass < STRAIGHT * self.problem.total:
            # The loss is nearly straight at all rows: a Newton step would overflow.
            self.curvature.fill(0.0)
            mass, self.curved = 0.0, 0
        return balance, mass

    def _derivatives(self) -> Derivatives:
        u = np.empty(self.workspace.d)
        self._sums = self._derive(u)
        return self._with_others(u, self._sums[0])

    def _with_others(self, u: Array, balance: float) -> Derivatives:
        """Add what rows that are not here have."""
        if self.fixed_u is not None:
            u += self.fixed_u
        self._mass = self._sums[1]
        return Derivatives(u, balance + self.fixed_balance, self._mass)

    @property
    def balance(self) -> float:
        return self._sums[0] + self.fixed_balance

    @property
    def known(self) -> int:
        return self.kernel.size

    @property
    def travel(self) -> float:
        return float(np.abs(self.scores - self._first).sum()) / max(len(self.scores), 1)

    def duals(self) -> Array:
        """Return the dual point −φ' of all rows, those left out included."""
        return self.beta

    # -- the line

    def aim(self, dv: Array, db: float) -> None:
        """Choose the line."""
        self.change = _core.vector(self.workspace.n)
        self.workspace.scores(dv, self.change, self.threads, db)
        self._fixed_slope = -self.fixed_balance * db
        if self.fixed_u is not None:
            self._fixed_slope -= self.mu * float(self.fixed_u @ dv)

    def slope(self, length: float) -> RowSlope:
        value, curvature, size = self.workspace.slope_along(
            self.scores,
            self.change,
            length,
            self.length,
            self.centre,
            self.threads,
            self.residuals,
        )
        # A steep row has a small rounding of its dual, and a large one of its score.
        size += abs(self._fixed_slope) + self._reach * math.sqrt(self._mass * curvature)
        return RowSlope(value + self._fixed_slope, curvature, size)

    def search(self, rest: tuple[float, float, float], start: float) -> tuple[float, bool]:
        value, curvature, size = rest
        fixed = self._fixed_slope
        return self.workspace.search_along(
            self.scores,
            self.change,
            self.length,
            self.centre,
            self._reach,
            self._mass,
            (value + fixed, curvature, size + abs(fixed)),
            start,
            self.threads,
            self.residuals,
        )

    # -- all steps at once

    @property
    def size(self) -> int:
        """The number of rows here."""
        return int(self.workspace.n)

    def descend(
        self,
        at: tuple[Array, float, float],
        stiff: Array,
        free: tuple[bool, bool],
        goal: tuple[float, float, int],
        deadline: float,
        rounds: Rounds | None = None,
    ) -> Descent:
        """Take Newton steps in one call of the core."""
        v, b, value = at[0].copy(), *at[1:]
        u = np.empty(self.workspace.d)
        self._score(v, b)
        self._first = self.scores.copy()
        ending, steps, self.length, b, value, sums = self.workspace.newton_steps(
            (v, u, self.scores, self.beta, self.curvature),
            b,
            value,
            self.length,
            self.centre,
            stiff,
            self.fixed_u,
            self.fixed_balance,
            self.problem.rows.middle if free[0] else None,
            (self.mu, STRAIGHT * self.problem.total, *free),
            goal,
            rounds if self.fixed_u is None else None,  # the gap is that of all rows
            self.threads,
            deadline - time.perf_counter(),
        )
        balance, self._mass, self.residual, self._reach, self.curved = sums
        self._sums = balance - self.fixed_balance, self._mass
        derivatives = Derivatives(u, balance, self._mass)
        return Descent(ending, *steps, self.length, v, b, value, derivatives)

    # -- the curvature

    def gram(
        self,
        intercept: bool,
        deadline: float,
        sample: int | None = None,
        combined: bool = False,
        rough: bool = False,
    ) -> Gram | None:
        """Sum the matrix of the features; None if time ran out.

        That of dense rows is summed in single precision if it may be rough, in half the time. One
        that comes with a sum of the duals is for one step.
        """
        h, d = self._sampled(sample), self.workspace.d
        mass = float(h.sum()) if intercept else 0.0
        rows = self.problem.rows
        # Less about their mean, rows far from 0 keep the digits of their differences.
        centre = rows.middle if mass > 0 else None
        # Lines f of which Σ_i h_i f_i x_i comes with the matrix.
        count = int(mass > 0) + combined
        factors = _core.vector(count * len(h)).reshape(count, len(h))
        if mass > 0:
            factors[0] = 1.0
        if combined:
            factors[-1] = self.beta
        rough = rough and rows.dense and d > (NARROW if combined else SHARED)
        if isinstance(rows, DenseRows) and (rough or d > NARROW):
            kind = np.float32 if rough else np.float64
            # Less a centre, rows are copied (20,000 x 100 in single precision: 5.4 -> 3.6 ms).
            centre = centre if rows.is_far else None
            beside = factors[:0] if centre is None else factors
            formed = dense_gram(rows.values, h, beside, centre, kind, deadline)
            if formed is not None and centre is None:
                formed = formed[0], np.array([self._weighted_sum(h * f) for f in factors])
        else:
            formed = self._core_gram(h, factors, centre, deadline)
        if formed is None:
            return None
        matrix, sides = formed
        column = sides[0] if mass > 0 else np.zeros(d)
        if mass > 0:
            # (300 x 400 in single precision: 4.2 -> 3 ms, against an outer product in doubles.)
            add = ssyr if matrix.dtype == np.float32 else dsyr
            matrix = add(-1.0 / mass, column, lower=0, a=matrix.T, overwrite_a=1).T
        if centre is not None:
            column = column + mass * centre
        sums = None
        if combined:  # the curvature is c/γ
            sums = sides[-1] * self.problem.loss.smoothness
            if centre is not None:
                sums += self._sums[0] * centre
        product = self.centred(column, mass) if rough and h is self.curvature else None
        return Gram(matrix, column, mass, sums, product)

    def _core_gram(
        self, h: Array, factors: Array, centre: Array | None, deadline: float
    ) -> tuple[Array, Array] | None:
        d = self.workspace.d
        matrix, sides = _core.vector(d * d).reshape(d, d), np.empty((len(factors), d))
        seconds = deadline - time.perf_counter()
        done = self.workspace.gram(h, factors, centre, matrix, sides, self.threads, seconds)
        return (matrix, sides) if done else None

    def _sampled(self, count: int | None) -> Array:
        """Return the curvature of all rows, or of a sample, drawn anew each time, as large."""
        h = self.curvature
        if count is None or count >= len(h):
            return h
        if self._random is None:  # one takes as long to make as a step of a small problem
            self._random = np.random.default_rng(0)
        chosen = self._random.integers(len(h), size=count)
        sample = np.zeros_like(h)
        sample[chosen] = h[chosen]
        mass = float(sample.sum())
        if mass == 0:
            return h
        sample *= float(h.sum()) / mass
        return sample

    def curve(self, p: Array, q: float) -> tuple[Array, float]:
        out = np.empty(self.workspace.d)
        return out, self.workspace.curve(self.curvature, p, q, out, self.threads)

    def diagonal(self, intercept: bool) -> tuple[Array, float]:
        """Return Σ_i h_i x_ij² for every feature, Σ_i h_i x_ij, if that is asked, and Σ_i h_i."""
        lines = np.empty((1 + intercept, self.workspace.d))
        self.workspace.squares(self.curvature, lines[0], self.threads)
        if intercept:
            lines[1] = self._weighted_sum(self.curvature)
        return lines, float(self.curvature.sum())

    def row_system(self, diagonal: float | Array, right: Array) -> RowSystem:
        """Return a step's equations in unknowns of the rows, for iterations."""
        n, root, weight = self.workspace.n, np.sqrt(self.curvature), self.problem.weight
        # Of rows alone, and with the diagonal of a plain ridge: about that of the matrix.
        scale = _core.vector(n)
        self.workspace.curvature(scale)
        scale *= self.curvature if weight is None else self.curvature / np.maximum(weight, TINY)
        scale += 1.0

        def image(v: Array) -> Array:
            out = _core.vector(n)
            self.workspace.scores(v, out, self.threads)
            out *= root
            return out

        def product(z: Array) -> Array:
            out = image(self._weighted_sum(root * z) / diagonal)
            out += z
            return out

        def step(z: Array) -> Array:
            return (right - self._weighted_sum(root * z)) / diagonal

        heavy = root if weight is None else root / np.maximum(weight, TINY)

        def duals(z: Array) -> Array:
            return self.beta - heavy * z

        def unknowns(beta: Array) -> Array:
            return np.divide(self.beta - beta, heavy, out=np.zeros(n), where=heavy > 0)

        return RowSystem(root, scale, image(right / diagonal), product, step, duals, unknowns)

    def solve_by_rows(
        self,
        diagonal: float | Array,
        right: Array,
        balance: float,
        intercept: bool,
        deadline: float,
        gradient: Array | None = None,
    ) -> tuple[Array, float] | None:
        """Solve a step's equations in as many unknowns as rows have curvature.

        With D the diagonal, S = diag(√h) and z = S (X Δv + Δb) they become

            (I + S X D⁻¹ Xᵀ S) z = S X D⁻¹ r + Δb √h,    √hᵀ z = t,    Δv = D⁻¹ (r − Xᵀ S z),

        whose Schur complement is computed without a difference. Far from the optimum Xᵀ S z is
        nearly r, and D Δv = r − Xᵀ S z has no digits. Then the unknowns are the duals where the
        step ends, S q = β − S z, with r = p + Xᵀβ and β the duals of these rows:

            (I + S X D⁻¹ Xᵀ S) q = S⁻¹β − S X D⁻¹ p − Δb √h,    √hᵀ q = Σβ − t,
            Δv = D⁻¹ (p + Xᵀ S q).

        None if the factorisation fails, if Δv has no digits (μ is below the rounding of the largest
        eigenvalue of K), or if time runs out.
        """
        curved = np.flatnonzero(self.curvature)
        if not len(curved):
            self.ended = self.beta.copy()
            return right / diagonal, 0.0
        found = self._products(curved, diagonal, deadline)
        if found is None:
            return None
        active, matrix = found
        root = np.sqrt(self.curvature[active])
        if np.all(root == root[0]):
            matrix *= root[0] ** 2
        else:
            matrix *= root
            matrix *= root[:, None]
        solve = cholesky(matrix, 1.0, deadline)
        if solve is None:
            return None
        fixed, side, total = right, np.zeros(len(root)), balance
        weight = self.problem.weight
        others = self.beta if weight is None else weight * self.beta
        owed = others[active]  # what the unknowns do not have of the duals where the step ends
        if gradient is not None and _length(gradient, diagonal) < _length(right, diagonal):
            side, owed = owed / root, np.zeros(len(root))
            others = np.where(self.curvature > 0, 0.0, others)
            fixed = -gradient
            if others.any():
                fixed += self._weighted_sum(others)
            if self.fixed_u is not None:
                fixed += self.mu * self.fixed_u
            total = float(others.sum()) + self.fixed_balance
        image = _core.vector(self.workspace.n)
        self.workspace.scores(fixed / diagonal, image, self.threads)
        z = solve(root * image[active] - side)  # −q from there on, if that is the unknown
        db = 0.0
        if intercept:
            across = solve(root)
            db = float(total - root @ z) / float(root @ across)
            z += db * across
        ends = owed - root * z
        scattered = np.zeros(self.workspace.n)
        scattered[active] = root * z
        dv = (fixed - self._weighted_sum(scattered)) / diagonal
        self.workspace.scores(dv, image, self.threads)
        z += side
        off = root * (image[active] + db) - z
        self.ended = self.beta.copy()
        self.ended[active] = ends if weight is None else ends / weight[active]
        return None if np.linalg.norm(off) > WRONG * np.linalg.norm(z) else (dv, db)

    def _products(
        self, rows: Index, diagonal: float | Array, deadline: float
    ) -> tuple[Index, Array] | None:
        """Return rows, in an order of its own, and the lower triangle of their X D⁻¹ Xᵀ."""
        if np.ndim(diagonal) == 0:
            found = self.kernel.among(rows, self.threads, deadline)
            if found is None:
                return None
            order, matrix = found
            matrix /= diagonal
            return order, matrix
        if isinstance(self.problem.rows, DenseRows):
            scaled = self.problem.rows.values[rows] / np.sqrt(diagonal)
            return rows, scaled @ scaled.T
        matrix = np.zeros((len(rows), len(rows)))  # only its lower triangle is written
        seconds = deadline - time.perf_counter()
        factors = 1.0 / np.asarray(diagonal)
        done = self.workspace.products(rows, 0, factors, matrix, self.threads, seconds)
        return (rows, matrix) if done else None

    def _weighted_sum(self, h: Array) -> Array:
        """Return Σ_i h_i x_i; where a sample weight is 0, h must be."""
        weight = self.problem.weight
        beta = h if weight is None else np.divide(h, weight, out=np.zeros_like(h), where=weight > 0)
        out = np.empty(self.workspace.d)
        self.workspace.combine(beta, out, self.threads)
        return out * self.mu


def _length(force: Array, diagonal: float | Array) -> float:
    """Return the length of a force in the metric of D⁻¹."""
    return float(np.linalg.norm(force / np.sqrt(diagonal)))
