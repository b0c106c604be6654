"""The Newton finish: from a point near the optimum of a smooth loss to any accuracy.

A step (Δw, Δb) minimises the quadratic model of the risk plus the regulariser. For L2 it solves

    (λN I + G) Δw + k Δb = −N ∇P,          G = Σ_i h_i x_i x_iᵀ,  k = Σ_i h_i x_i,  h_i = c_i φ''_i,
    kᵀ Δw + (Σ_i h_i) Δb = Σ_i c_i β_i,    β_i = −φ'(x_i·w + b),

the second line for an unpenalised intercept; with an L1 term or bounds coordinate descent on the
model takes the place of the factorisation. The result is certified like any other point: P at w,
D at β.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from adasdca import _core
from adasdca.data import DenseRows
from adasdca.problem import Problem
from adasdca.survey import Survey
from adasdca.systems import bordered, cholesky

Array = NDArray[np.float64]

#: The largest system that is factorised; a larger one goes to conjugate gradients. A factorisation
#: cannot be interrupted, and this one ends within 0.1 s.
LARGEST = 1500


@dataclass
class Point:
    """(w, b) with its scores, and what the losses say there."""

    w: Array
    b: float
    scores: Array
    beta: Array
    curvature: Array
    primal: float
    conjugate: float
    balance: float

    def measure(self, workspace: _core.Workspace, threads: int) -> None:
        """Take the dual value as well, which costs a pass over the rows."""
        self.fresh = np.empty_like(self.w)
        workspace.combine(self.beta, self.fresh, threads)
        self.dual = -self.conjugate - workspace.penalty_conjugate(self.fresh)
        # With an intercept Σ c_iβ_i = 0 is still to come, and what it lacks is added.
        self.gap = self.primal - self.dual + abs(self.balance) * abs(self.b)


class Newton:
    """Newton steps on the primal of a smooth loss.

    Parameters
    ----------
    problem : Problem
        The problem; its loss must be smooth.
    workspace : Workspace
        The rows, and the iterate from which to begin and to which the result is given.
    threads : int
        Threads for passes over the rows.
    """

    #: Steps without the gap halving after which the point is too far away for Newton.
    patience = 3

    def __init__(self, problem: Problem, workspace: _core.Workspace, threads: int) -> None:
        self.problem = problem
        self.workspace = workspace
        self.threads = threads
        self.sigma = problem.l1_ratio / (1.0 - problem.l1_ratio)
        self.plain = problem.bounds is None and self.sigma == 0
        self.quadratic = problem.loss.name == "squared" and self.plain
        self.stiffness = problem.strength * problem.total  # λN

    def run(self, survey: Survey, target: float, steps: int, seconds: float) -> int:
        """Take steps from a survey's point until gap ≤ target·primal or none helps.

        Leaves the workspace there and returns the number of steps. Each lowers P; dual variables
        give way to better ones only.
        """
        workspace = self.workspace
        deadline = time.perf_counter() + seconds
        point = self._evaluate(survey.coef, survey.intercept)
        if self.quadratic:
            return self._jump(point, deadline)
        point.measure(workspace, self.threads)
        best, waited, taken = point.gap, 0, 0
        while taken < steps and waited < self.patience and point.gap > target * point.primal:
            following = self._step(point, deadline)
            if following is None:
                break
            point, taken = following, taken + 1
            point.measure(workspace, self.threads)
            waited = 0 if point.gap < 0.5 * best else waited + 1
            best = min(best, point.gap)
        if taken:
            better = self.problem.fit_intercept or point.dual > survey.dual
            beta = point.beta if better else survey.beta
            # Any u with ∇g*(u) = w makes the next survey take P at w.
            workspace.place(beta, point.w + self.sigma * np.sign(point.w), point.b)
        return taken

    def _jump(self, point: Point, deadline: float) -> int:
        """One step where the model is the objective; the survey to come says how close it got."""
        point.measure(self.workspace, self.threads)
        direction = self._direction(point, deadline)
        if direction is None:
            return 0
        self.workspace.place_primal(point.w + direction[0], point.b + direction[1])
        return 1

    def _evaluate(self, w: Array, b: float, scores: Array | None = None) -> Point:
        """P and the losses' derivatives at (w, b)."""
        workspace = self.workspace
        if scores is None:
            scores = np.zeros(workspace.n)
            if w.any():
                workspace.scores(w, scores, self.threads)
        beta, curvature = np.empty(workspace.n), np.empty(workspace.n)
        value, conjugate, balance = workspace.assess(scores, b, beta, curvature, self.threads)
        return Point(
            w, b, scores, beta, curvature, value + workspace.penalty(w), conjugate, balance
        )

    def _step(self, point: Point, deadline: float) -> Point | None:
        """One step with a search along it; None if none lowers P."""
        direction = self._direction(point, deadline)
        if direction is None:
            return None
        dw, db = direction
        change = np.empty(self.workspace.n)
        self.workspace.scores(dw, change, self.threads)
        length = 1.0
        while length > 1e-3 and time.perf_counter() < deadline:
            trial = self._evaluate(
                point.w + length * dw, point.b + length * db, point.scores + length * change
            )
            if trial.primal < point.primal:
                return trial
            if trial.primal <= point.primal * (1 + 1e-12):
                # Near the optimum P cannot tell points apart any more, the gap still can.
                trial.measure(self.workspace, self.threads)
                if trial.gap < 0.5 * point.gap:
                    return trial
            length *= 0.5
        return None

    def _direction(self, point: Point, deadline: float) -> tuple[Array, float] | None:
        """Minimise the model; None if that failed or time ran out."""
        d = self.workspace.d
        mass = float(point.curvature.sum()) if self.problem.fit_intercept else 0.0
        column = self._weighted_sum(point.curvature) if mass > 0 else np.zeros(d)
        wanted = self.problem.total * point.balance
        if d <= LARGEST:
            matrix = self._gram(point.curvature, deadline)
            if matrix is None:
                return None
            move = self._plain_move if self.plain else self._penalised_move
            found = move(point, matrix, column, mass, wanted)
        else:
            found = (
                self._iterative_move(point, column, mass, wanted, deadline) if self.plain else None
            )
        if found is None or not np.isfinite(found[0]).all() or not np.isfinite(found[1]):
            return None
        return found

    def _plain_move(
        self, point: Point, matrix: Array, column: Array, mass: float, wanted: float
    ) -> tuple[Array, float] | None:
        """Solve the equations of L2 by a Cholesky factorisation."""
        solve = cholesky(matrix, self.stiffness)
        return None if solve is None else bordered(solve, self._right(point), column, mass, wanted)

    def _right(self, point: Point) -> Array:
        """Return −N ∇P."""
        return self.stiffness * (point.fresh - point.w)

    def _iterative_move(
        self, point: Point, column: Array, mass: float, wanted: float, deadline: float
    ) -> tuple[Array, float] | None:
        """Solve the equations of L2 by conjugate gradients; None if time ran out."""
        diagonal = self.stiffness + self._diagonal(point.curvature)
        found = bordered(
            lambda b: self._conjugate_gradients(point.curvature, diagonal, b, deadline),
            self._right(point),
            column,
            mass,
            wanted,
        )
        return found if time.perf_counter() < deadline else None

    def _penalised_move(
        self, point: Point, matrix: Array, column: Array, mass: float, wanted: float
    ) -> tuple[Array, float]:
        """Minimise the model under an L1 term or bounds, the intercept eliminated."""
        lower = np.tril_indices(len(matrix), -1)
        matrix.T[lower] = matrix[lower]
        right = self.stiffness * point.fresh
        if mass > 0:
            matrix -= np.outer(column, column / mass)
            right = right - column * (wanted / mass)
        best = np.empty_like(point.w)
        self.workspace.descend_model(matrix, right, point.w, self.stiffness, best)
        dw = best - point.w
        return dw, float((wanted - column @ dw) / mass) if mass > 0 else 0.0

    def _weighted_sum(self, h: Array) -> Array:
        """Return Σ_i h_i x_i."""
        weight = self.problem.weight
        beta = h if weight is None else np.divide(h, weight, out=np.zeros_like(h), where=weight > 0)
        out = np.empty(self.workspace.d)
        self.workspace.combine(beta, out, self.threads)
        return out * self.stiffness

    def _gram(self, h: Array, deadline: float) -> Array | None:
        """Return the lower triangle of Σ_i h_i x_i x_iᵀ; None if time ran out."""
        rows, d = self.problem.rows, self.workspace.d
        if isinstance(rows, DenseRows):
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
        matrix = np.empty((d, d))
        seconds = deadline - time.perf_counter()
        return matrix if self.workspace.gram(h, matrix, self.threads, seconds) else None

    def _conjugate_gradients(
        self, h: Array, diagonal: Array, right: Array, deadline: float
    ) -> Array:
        """Solve (λN I + G) x = right to three digits, preconditioned by the diagonal, in time."""
        scores = np.empty(self.workspace.n)

        def product(x: Array) -> Array:
            self.workspace.scores(x, scores, self.threads)
            return self.stiffness * x + self._weighted_sum(h * scores)

        x = np.zeros_like(right)
        residual = right.copy()
        size = float(np.linalg.norm(right))
        z = residual / diagonal
        p, rz = z.copy(), float(residual @ z)
        for _ in range(100):
            if np.linalg.norm(residual) <= 1e-3 * size or time.perf_counter() >= deadline:
                break
            q = product(p)
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
