"""The Newton finish: from a point near the optimum of a smooth loss to any accuracy.

A step (Δw, Δb) minimises the quadratic model of the risk plus the regulariser. For L2 it solves

    (λN I + G) Δw + k Δb = −N ∇P,          G = Σ_i h_i x_i x_iᵀ,  k = Σ_i h_i x_i,  h_i = c_i φ''_i,
    kᵀ Δw + (Σ_i h_i) Δb = Σ_i c_i β_i,    β_i = −φ'(x_i·w + b),

the second line for an unpenalised intercept, in the cheapest of three ways (`systems`); with an L1
term or bounds coordinate descent on the model takes their place. The result is certified like any
other point: P at w, D at β.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.ascent.survey import Survey
from adasdca.auto.costs import Costs
from adasdca.newton.kernel_matrix import KernelMatrix
from adasdca.newton.systems import DualSystem, Equations, IterativeSystem, PrimalSystem, System
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: The most features of a model under an L1 term or bounds, whose descent cannot be interrupted.
MOST_FEATURES = 1500


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


def _finite(step: tuple[Array, float] | None) -> tuple[Array, float] | None:
    """Return a step only if it is one."""
    if step is None or not np.isfinite(step[0]).all() or not np.isfinite(step[1]):
        return None
    return step


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
    costs : Costs, optional
        By which the way to solve the equations is chosen.
    kernel : KernelMatrix, optional
        The inner products that are known.
    """

    #: Steps without progress after which the point is too far away for Newton.
    patience = 3
    #: Steps that are expected, when the way to solve their equations is chosen.
    expected = 4.0

    def __init__(
        self,
        problem: Problem,
        workspace: _core.Workspace,
        threads: int,
        costs: Costs | None = None,
        kernel: KernelMatrix | None = None,
    ) -> None:
        self.problem = problem
        self.workspace = workspace
        self.threads = threads
        self.costs = costs or Costs(problem)
        self.kernel = kernel or KernelMatrix(problem.rows)
        self.primal = PrimalSystem(problem, workspace, threads)
        self.sigma = problem.l1_ratio / (1.0 - problem.l1_ratio)
        self.plain = problem.bounds is None and self.sigma == 0
        self.quadratic = problem.loss.name == "squared" and self.plain
        self.stiffness = problem.strength * problem.total  # λN
        self.sampling = self.costs.sample < workspace.n
        self._random = np.random.default_rng(0)

    def run(self, survey: Survey, target: float, steps: int, seconds: float) -> int:
        """Take steps from a survey's point until gap ≤ target·primal or none helps.

        Leaves the workspace there and returns the number of steps. Each lowers P; dual variables
        give way to better ones only.
        """
        workspace = self.workspace
        deadline = time.perf_counter() + seconds
        point = self._evaluate(survey.coef, survey.intercept)
        if self.quadratic and self._system(point) is self.primal:
            return self._jump(point, deadline)
        point.measure(workspace, self.threads)
        best, waited, taken = point.gap, 0, 0
        while taken < steps and waited < self.patience and point.gap > target * point.primal:
            following = self._step(point, deadline)
            if following is None:
                if not self.sampling or time.perf_counter() >= deadline:
                    break
                self.sampling = False
                continue
            before, point, taken = point, following, taken + 1
            point.measure(workspace, self.threads)
            # Where λ is small the gap at −φ' says little until the last steps; P tells then.
            better = point.gap < 0.5 * best or point.primal < 0.9 * before.primal
            waited = 0 if better else waited + 1
            # A sample that does not carry on has left out rows that matter.
            self.sampling &= better
            best = min(best, point.gap)
        if taken:
            keep = not self.problem.fit_intercept and point.dual <= survey.dual
            beta = survey.beta if keep else point.beta
            # Any u with ∇g*(u) = w makes the next survey take P at w.
            workspace.place(beta, point.w + self.sigma * np.sign(point.w), point.b)
        return taken

    def _jump(self, point: Point, deadline: float) -> int:
        """One step where the model is the objective; the survey to come says how close it got."""
        # h_i is c_i: the gradient's sum Σ_i c_i β_i x_i comes with the matrix.
        wanted = self.problem.total * point.balance
        equations = Equations(point.curvature, -self.stiffness * point.w, wanted, point.beta)
        direction = _finite(self.primal.solve(equations, deadline))
        if direction is None:
            return 0
        self.workspace.place_primal(point.w + direction[0], point.b + direction[1])
        return 1

    def _evaluate(self, w: Array, b: float, scores: Array | None = None) -> Point:
        """P and the losses' derivatives at (w, b)."""
        workspace = self.workspace
        if scores is None:
            scores = _core.vector(workspace.n)
            if w.any():
                workspace.scores(w, scores, self.threads)
            else:
                scores.fill(0.0)
        beta, curvature = _core.vector(workspace.n), _core.vector(workspace.n)
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
        change = _core.vector(self.workspace.n)
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

    def _curvature(self, point: Point) -> Array:
        """Return the curvature of all rows, or of a sample, drawn anew for every step, as large."""
        h = point.curvature
        if not self.sampling:
            return h
        chosen = self._random.integers(len(h), size=self.costs.sample)
        sample = np.zeros_like(h)
        sample[chosen] = h[chosen]
        mass = float(sample.sum())
        if mass == 0:
            return h
        sample *= float(h.sum()) / mass
        return sample

    def _system(self, point: Point) -> System:
        """Return the cheapest way to solve the equations at a point."""
        active = int(np.count_nonzero(point.curvature))
        steps = 1.0 if self.quadratic else self.expected
        way, _ = self.costs.equations(steps, active, self.kernel.size)
        if way == "dual":
            return DualSystem(self.problem, self.workspace, self.threads, self.kernel)
        if way == "iterative":
            return IterativeSystem(self.problem, self.workspace, self.threads)
        return self.primal

    def _direction(self, point: Point, deadline: float) -> tuple[Array, float] | None:
        """Minimise the model; None if that failed or time ran out."""
        wanted = self.problem.total * point.balance
        if self.plain:
            right = self.stiffness * (point.fresh - point.w)  # −N ∇P
            equations = Equations(self._curvature(point), right, wanted)
            found = self._system(point).solve(equations, deadline)
        else:
            found = self._penalised_move(point, wanted, deadline)
        return _finite(found)

    def _penalised_move(
        self, point: Point, wanted: float, deadline: float
    ) -> tuple[Array, float] | None:
        """Minimise the model under an L1 term or bounds, the intercept eliminated."""
        h = self._curvature(point)
        formed = self.primal.form(h, None, deadline)
        if formed is None:
            return None
        matrix, column, mass = formed.matrix, formed.column, formed.mass
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
