"""A squared loss on a working set of features, minimised by their columns."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.problem.data import DenseRows
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: Times that the entries of a set are visited at most: sets that take more are left to others.
VISITS = 3000.0
#: The share of a set's objective by which it may seem to rise.
WORSE = 1e-9


def descend_columns(
    problem: Problem,
    features: NDArray[np.intp],
    at: tuple[Array, float, Array],
    enough: float,
    most: float,
    deadline: float,
) -> tuple[tuple[Array, float, Array], bool, float]:
    """Do what `ColumnDescender` asks for.

    The intercept is eliminated: columns are less their mean, sparse ones within the core.
    """
    w, b, beta = at
    part = problem.restrict(features)
    rows, g, (n, m) = part.rows, part.regularizer, part.rows.shape
    weight = np.ones(n) if problem.weight is None else problem.weight
    root = None if problem.weight is None else np.sqrt(weight)
    free, mass, means = problem.fit_intercept, float(weight.sum()), np.zeros(m)
    start = indices = None
    if isinstance(rows, DenseRows):
        lines = np.array(rows.values.T, dtype=np.float64, order="C")
        if free:
            means = lines @ weight / mass
            lines -= means[:, None]
        if root is not None:
            lines *= root
        values = lines.ravel()
    else:
        columns = rows.matrix.tocsc()
        values = columns.data.astype(np.float64)
        start, indices = columns.indptr.astype(np.int64), columns.indices.astype(np.int32)
        if free:
            means = columns.T @ weight / mass
            # Sums of a full column far from 0 would cancel; others have zeros as far from the mean.
            column = np.repeat(np.arange(m), np.diff(start))
            counts = np.bincount(column, weights=weight[indices] > 0, minlength=m)
            values -= np.where(counts == np.count_nonzero(weight), means, 0.0)[column]
        if root is not None:
            values *= root[indices]
    lower, upper = part.bounds or (np.full(m, -np.inf), np.full(m, np.inf))
    # In units of the residuals' squares: the duals are the residuals over γ.
    gamma = problem.loss.smoothness
    ridge, kink = (np.full(m, gamma * problem.mu * each) for each in (g.curvature, g.threshold))
    moved, residual = w[features], gamma * (beta if root is None else root * beta)
    shift = (np.ones(n) if root is None else root) if free and start is not None else None

    @np.errstate(all="ignore")  # beyond doubles it is no better
    def value() -> float:
        penalty = 0.5 * float(ridge @ moved**2) + float(kink @ np.abs(moved))
        return 0.5 * float(residual @ residual) + penalty

    before = value()
    done, work = _core.descend_columns(
        *(values, start, indices, shift, ridge, kink, lower, upper, moved, residual),
        *(gamma * enough, min(VISITS * len(values), most), deadline - time.perf_counter()),
    )
    if not value() <= before * (1.0 + WORSE):  # rounding has led it astray
        return at, False, work
    b -= float(means @ (moved - w[features]))
    w = w.copy()
    w[features] = moved
    residual /= gamma
    if root is not None:
        np.divide(residual, root, out=residual, where=root > 0)
    return (w, b, residual), done, work
