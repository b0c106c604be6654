"""The compiled core's workspace: a problem laid out for the kernels."""

from __future__ import annotations

import math
import os

import numpy as np

from adasdca import _core
from adasdca.problem.data import Rows
from adasdca.problem.problem import Problem


def make_workspace(problem: Problem, pack: bool | str = "auto") -> _core.Workspace:
    """Lay the rows out for the kernels, at β = 0."""
    g = problem.regularizer
    lower, upper = g.bounds or (None, None)
    if not g.is_ridge and lower is None:
        d = problem.rows.shape[1]
        lower, upper = np.full(d, -math.inf), np.full(d, math.inf)
    rows = problem.rows
    packed = not rows.dense and (_packing_fits(rows) if pack == "auto" else bool(pack))
    workspace = _core.Workspace.of(
        rows.core,
        problem.y,
        problem.weight,
        problem.loss.kernel,
        g.scale,
        g.eta,
        g.sigma,
        lower,
        upper,
        problem.fit_intercept,
        packed,
        g.factors,
        problem.whole,
    )
    workspace.constant = problem.constant
    return workspace


def _packing_fits(rows: Rows) -> bool:
    """Whether a packed copy leaves half of the free memory alone."""
    need = rows.n_stored * (4 + rows.values.itemsize) + 72 * rows.shape[0]
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return need < 2**31
    return need < free / 2
