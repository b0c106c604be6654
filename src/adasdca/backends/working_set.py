"""Working sets of a loss with kinks: rows near them, while the duals of the others stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.cpu_term import CpuTerm
from adasdca.backends.kernel_matrix import KernelMatrix
from adasdca.backends.workspace import make_workspace
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: Share of what the duals of a working set can balance that the others may ask for.
ROOM = 0.9
#: No more free duals than this are expected, however many features there are.
MOST_FREE = 1000


class WorkingSet(CpuTerm):
    """Some of the rows, with the duals of the others fixed.

    Parameters
    ----------
    chosen : array of int
        The rows whose duals may move.
    beta : (n,) array
        All duals.
    u : (d,) array
        u at these duals.
    length : float
        Kinks are rounded over this length.
    """

    def __init__(
        self,
        problem: Problem,
        chosen: Index,
        beta: Array,
        u: Array,
        length: float,
        threads: int,
        kernel: KernelMatrix,
    ) -> None:
        weight = np.ones(len(beta)) if problem.weight is None else problem.weight
        # λN is that of the whole, so that these rows' part of u is in its units.
        part = replace(
            problem,
            rows=problem.rows.take(chosen),
            y=problem.y[chosen],
            weight=weight[chosen],
            lam=problem.mu / float(weight[chosen].sum()),
            l1_ratio=0.0,
            bounds=None,
            penalty_factors=None,
            fit_intercept=False,
            whole=None,
        )
        workspace = make_workspace(part, pack=False)
        own = np.empty(workspace.d)
        workspace.combine(beta[chosen], own, threads)
        fixed_balance = float(weight @ beta) - float(weight[chosen] @ beta[chosen])
        super().__init__(
            part,
            workspace,
            threads,
            length,
            beta[chosen],
            u - own,
            fixed_balance,
            kernel.part(chosen),
        )
        self._chosen, self._all = chosen, beta

    def duals(self) -> Array:
        """Return the dual point −φ' of all rows, those left out included."""
        duals: Array = self._all.copy()
        duals[self._chosen] = self.beta
        return duals


def near_kinks(problem: Problem, scores: Array, beta: Array, reach: float | None, d: int) -> Index:
    """Return the rows whose duals are free, wrong, or within reach of a kink.

    Parameters
    ----------
    problem : Problem
        The problem; its loss has kinks.
    scores, beta : (n,) array
        Scores, the intercept included, and duals.
    reach : float, optional
        How near is near; at first as many rows more as are free or wrong.
    d : int
        The number of features.
    """
    loss = problem.loss
    distance = np.abs(np.abs(loss.residual(scores, problem.y)) - loss.dead_zone)
    moving = beta != -loss.slope(scores, problem.y)
    distance[moving] = 0.0
    if problem.weight is not None:
        distance[problem.weight == 0] = np.inf
    return np.asarray(within_reach(distance, reach, d))


def within_reach(distance: Any, reach: float | None, d: int) -> Any:
    """Return the rows whose distance from a kink is 0 or within reach; see `near_kinks`.

    Distances may be on a device: NumPy's functions go on to that array's.
    """
    count = int(np.count_nonzero(distance == 0))
    most = max((2 if reach is None else 4) * count, 4 * min(d, MOST_FREE), 500)
    if reach is None or int(np.count_nonzero(distance <= reach)) > most:
        place = min(most, len(distance)) - 1
        reach = min(float(np.partition(distance, place)[place]), np.finfo(np.float64).max)
    return np.flatnonzero(distance <= max(reach, float(distance.min())))


def can_balance(problem: Problem, chosen: Index, beta: Array) -> bool:
    """Whether duals of some rows can make Σ c_iβ_i = 0 while the others stay, with room to spare.

    If not, the problem on these rows has no best intercept.
    """
    if not problem.fit_intercept:
        return True
    weight = np.ones(len(beta)) if problem.weight is None else problem.weight
    fixed_balance = float(weight @ beta) - float(weight[chosen] @ beta[chosen])
    return has_room(problem, problem.y[chosen], weight[chosen], fixed_balance)


def has_room(problem: Problem, y: Any, weight: Any, fixed_balance: float) -> bool:
    """Whether duals of rows of these targets and weights can balance what the others hold."""
    lower, upper = problem.loss.domain
    margin = problem.loss.kind == "classification"
    up = float(weight[y > 0].sum()) if margin else float(weight.sum())
    down = float(weight.sum()) - up if margin else 0.0
    least, most = lower * up - upper * down, upper * up - lower * down
    return ROOM * least < -fixed_balance < ROOM * most
