"""The rows' part of a smooth objective on a working set of features, by their columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backends.abilities import ColumnStep
from adasdca.backends.base import Derivatives
from adasdca.backends.cpu_term import CpuTerm
from adasdca.backends.kernel_matrix import KernelMatrix
from adasdca.problem.data import DenseRows
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: The share of a model's objective by which it may seem to rise.
WORSE = 1e-9
#: The least curvature of a row that has a slope, in units of 1/γ: the model of a row that is
#: straight would lead beyond the digits of its residual. A millionth does not slow steps down.
LEAST = 1e-6


class ColumnTerm(CpuTerm):
    """The rows of some features: a matrix in Fortran's order, or a CSC one, about a centre.

    Sums over a column far from 0 would cancel. Of sparse ones it is the full ones that are less
    their mean; others have zeros as far from it. The intercept is that of the columns as they are
    here.

    Parameters
    ----------
    part : Problem
        The problem on these features.
    workspace : Workspace
        That of all.
    """

    def __init__(
        self, part: Problem, workspace: _core.Workspace, threads: int, kernel: KernelMatrix
    ) -> None:
        super().__init__(part, workspace, threads, kernel=kernel)
        rows, self.middle = part.rows, np.zeros(part.rows.shape[1])
        self._weight = weight = np.ones(len(part.y)) if part.weight is None else part.weight
        self._matrix: Any
        if isinstance(rows, DenseRows):
            self._matrix = np.array(rows.values, dtype=np.float64, order="F")
            if part.fit_intercept:
                self.middle = weight @ self._matrix / part.total
                self._matrix -= self.middle
        else:
            self._matrix = matrix = rows.matrix.tocsc().astype(np.float64)
            if part.fit_intercept:
                column = np.repeat(np.arange(len(self.middle)), np.diff(matrix.indptr))
                counts = np.bincount(column, weight[matrix.indices] > 0, len(self.middle))
                full = counts == np.count_nonzero(weight)
                self.middle = np.where(full, weight @ matrix / part.total, 0.0)
                matrix.data -= self.middle[column]
        #: Number of entries.
        self.entries = int(self._matrix.size)

    def _score(self, v: Array, b: float) -> None:
        self.scores = self._matrix @ v + b

    def _derivatives(self) -> Derivatives:
        self._sums = self._derive()
        return self._with_others(
            self._matrix.T @ (self._weight * self.beta) / self.mu, self._sums[0]
        )

    def aim(self, dv: Array, db: float) -> None:
        """Choose the line."""
        self.change, self._fixed_slope = self._matrix @ dv + db, 0.0

    @np.errstate(all="ignore")  # beyond doubles it is no better
    def minimise_model(
        self,
        w: Array,
        penalty: tuple[Array, Array, Array, Array],
        limits: tuple[float, float, float],
    ) -> ColumnStep | None:
        """Minimise the quadratic model at w; None if rounding leads it astray.

        The intercept is eliminated: columns are less their mean by curvature.
        """
        free, (ridge, kink, *_) = self.problem.fit_intercept, penalty
        least = self._weight * (LEAST / self.problem.loss.smoothness)
        h = np.where(self.beta != 0, np.maximum(self.curvature, least), self.curvature)
        root, force, ahead = np.sqrt(h), self._weight * self.beta, 0.0
        if free:
            if not h.any():
                return None
            ahead = float(force.sum() / h.sum())
        residual = np.divide(force, root, out=np.zeros_like(root), where=root > 0) - ahead * root
        means = h @ self._matrix / h.sum() if free else np.zeros(len(w))
        to = w.copy()

        def value() -> float:
            own = 0.5 * float(ridge @ to**2) + float(kink @ np.abs(to))
            return 0.5 * float(residual @ residual) + own

        before = value()
        lines = self._scaled(root, means)
        done, work = _core.descend_columns(*lines, *penalty, to, residual, *limits)
        after = value()
        if not after <= before * (1.0 + WORSE):
            return None
        gained = before - after + 0.5 * ahead * float(force.sum())
        return ColumnStep(to, ahead - float(means @ (to - w)), gained, done, work)

    def _scaled(self, root: Array, means: Array) -> tuple[Any, Any, Any, Any]:
        """Return the columns times √h for the core, which takes the means off sparse ones."""
        matrix, free = self._matrix, self.problem.fit_intercept
        if isinstance(matrix, np.ndarray):
            values = root[:, None] * (matrix - means if free else matrix)
            return values.ravel(order="F"), None, None, None
        start, rows = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        return matrix.data * root[rows], start, rows, root if free else None
