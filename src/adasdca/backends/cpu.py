"""Rows in the memory of this process, ascended by the compiled core."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.ascent.schedules import Plan, Schedule
from adasdca.ascent.survey import Survey
from adasdca.backends.base import FOREVER, ScaleError
from adasdca.duality.certificate import certified_gap
from adasdca.problem.data import CsrRows, DenseRows
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]


class LocalBackend:
    """Rows in the memory of this process, ascended by the compiled core.

    Parameters
    ----------
    problem : Problem
        The checked problem.
    n_threads : int
        Threads for the surveys. The result does not depend on it.
    pack : bool or "auto"
        Whether sparse rows are copied into records, which makes updates in random order 2–3 times
        as fast; ``"auto"`` does so if the copy fits into half of the free memory.
    """

    def __init__(self, problem: Problem, n_threads: int = 1, pack: bool | str = "auto") -> None:
        self.problem = problem
        self._threads = n_threads
        self.workspace = make_workspace(problem, pack)
        n = self.workspace.n
        self._curvature = _core.vector(n)
        self.workspace.curvature(self._curvature)
        if not np.isfinite(self._curvature).all():
            raise ScaleError(
                f"X: a row's squared norm over lam·N (lam = {problem.lam:g}) overflows; scale the "
                "features to about 1 or choose a larger lam."
            )
        one = np.broadcast_to(np.float64(1.0), n)  # n ones that take no memory
        self._weight = one if problem.weight is None else problem.weight
        self._gamma = problem.loss.smoothness
        self._intercept = 0.0

    @property
    def multiplier(self) -> float:
        """b_k of the method of multipliers."""
        return self.workspace.multiplier

    @property
    def packed_bytes(self) -> int:
        """Size of the packed copy of the rows, 0 if there is none."""
        return self.workspace.packed_bytes

    def restart(self, beta: Array, multiplier: float) -> None:
        """Continue from these dual variables."""
        self.workspace.set_beta(beta, self._threads)
        self.workspace.multiplier = multiplier

    def survey(self, needs: frozenset[str], seconds: float = FOREVER) -> Survey | None:
        """Survey all rows; None if that took longer than the seconds given."""
        n, d = self.workspace.n, self.workspace.d
        if self.problem.fit_intercept:
            needs = needs | {"score"}
        arrays: dict[str, Any] = {
            name: _core.vector(n) if name in needs else None
            for name in ("score", "residue", "share", "adaptive")
        }
        beta, coef = _core.vector(n), np.empty(d)
        primal, dual, magnitude, active, spread, complete = self.workspace.survey(
            arrays["score"],
            arrays["residue"],
            arrays["share"],
            arrays["adaptive"],
            beta,
            coef,
            self._threads,
            seconds,
        )
        if not complete:
            return None
        intercept, certified = 0.0, beta
        if self.problem.fit_intercept:
            primal, dual, intercept, certified = self._balance(arrays["score"], beta, coef)
            self.workspace.multiplier = self.workspace.bias
        return Survey(
            primal=primal,
            dual=dual,
            gap=certified_gap(primal, dual, magnitude, n + d),
            intercept=intercept,
            active=active,
            coef=coef,
            beta=beta,
            certified=certified,
            gamma=self._gamma,
            curvature=self._curvature,
            weight=self._weight,
            spread=spread,
            **arrays,
        )

    def _balance(self, score: Array, beta: Array, coef: Array) -> tuple[float, float, float, Array]:
        """Return P, D, b and β with an intercept: b the best for these scores, Σ c_iβ_i = 0."""
        workspace = self.workspace
        self._intercept = workspace.best_intercept(score, self._intercept or workspace.bias)
        balanced = _core.vector(len(beta))
        workspace.balanced_dual(score, self._intercept, beta, balanced)
        primal = workspace.primal_value(score, self._intercept, coef)
        dual = workspace.dual_value(balanced, self._threads)
        return primal, dual, self._intercept, balanced

    def plan(self, schedule: Schedule, survey: Survey, key: int) -> Plan | None:
        """Plan an epoch."""
        return schedule.plan(survey, key)

    def ascend(self, plan: Plan, seconds: float = FOREVER) -> int:
        """Carry a plan out."""
        return plan.run(self.workspace, seconds)


def make_workspace(problem: Problem, pack: bool | str = "auto") -> _core.Workspace:
    """Lay the rows out for the kernels, at β = 0."""
    lower, upper = problem.bounds or (None, None)
    sigma = problem.l1_ratio / (1.0 - problem.l1_ratio)
    if sigma > 0 and lower is None:
        d = problem.rows.shape[1]
        lower, upper = np.full(d, -math.inf), np.full(d, math.inf)
    common = (
        problem.y,
        problem.weight,
        problem.loss.kernel,
        problem.strength,
        sigma,
        lower,
        upper,
        problem.intercept_scale,
    )
    if isinstance(problem.rows, DenseRows):
        return _core.Workspace.dense(problem.rows.values, *common)
    packed = _packing_fits(problem.rows) if pack == "auto" else bool(pack)
    rows = problem.rows
    return _core.Workspace.csr(
        rows.values, rows.columns, rows.start, rows.shape[1], *common, packed
    )


def _packing_fits(rows: CsrRows) -> bool:
    """Whether a packed copy leaves half of the free memory alone."""
    need = rows.n_stored * (4 + rows.values.itemsize) + 72 * rows.shape[0]
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return need < 2**31
    return need < free / 2
