"""Wide data in fewer coordinates: n rows span a space of at most n dimensions.

For L2 the solution lies in that space, and scores and norms are matters of the inner products
K = X Xᵀ alone. With K = L Lᵀ the rows of L, at most n long, have the inner products of the rows of
X: the problem on L has the same P, the same D and the same dual solution, and its epochs and Newton
steps cost what n features cost, not d.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from adasdca import _core
from adasdca.ascent.survey import Survey
from adasdca.newton.kernel_matrix import KernelMatrix
from adasdca.problem.data import DenseRows
from adasdca.problem.problem import Problem
from adasdca.problem.products import RowProducts

Array = NDArray[np.float64]

#: The most rows; their factorisation cannot be interrupted and takes up to 0.5 s.
MOST_ROWS = 2000
#: Surveys of the small problem before the rows themselves are looked at again.
ROUNDS = 100


@dataclass(frozen=True)
class Coordinates:
    """L, (n, rank), and the rows that form a basis: L of those is a lower triangle."""

    rows: Array
    basis: NDArray[np.intp]

    @classmethod
    def of(cls, products: Array) -> Coordinates:
        """Factorise K, given by its lower triangle, which is lost on the way.

        The largest remainder goes first, so that duplicate and dependent rows do no harm.
        """
        factor, order, rank, _ = dpstrf(products.T, lower=0, overwrite_a=1)
        order = np.asarray(order, dtype=np.intp) - 1
        rows = np.empty((len(order), rank))
        rows[order] = np.triu(factor)[:rank].T
        return cls(rows, order[:rank])

    def weights(self, w: Array) -> Array:
        """Return weights of the rows whose sum in these coordinates is w."""
        out = np.zeros(len(self.rows))
        triangle = self.rows[self.basis]
        out[self.basis] = solve_triangular(triangle, w, trans=1, lower=True, check_finite=False)
        return out


class Span:
    """The problem in the coordinates of its rows' span; they are computed once."""

    def __init__(self, problem: Problem, kernel: KernelMatrix, threads: int) -> None:
        self.problem = problem
        self.kernel = kernel
        self.threads = threads
        self.coordinates: Coordinates | None = None
        #: Whether the small problem was solved as exactly as asked for.
        self.exhausted = False

    def improve(
        self, workspace: _core.Workspace, survey: Survey, tol: float, seconds: float
    ) -> int:
        """Solve from a survey's point to a relative gap of tol; return the number of updates.

        Leaves the workspace at the result, or untouched if that is no better or time ran out.
        """
        # These choose among finishes, of which this is one: the one known cycle of imports, which
        # `tests/test_layout.py` lists.
        from adasdca.auto.schedule import AutoSchedule
        from adasdca.backends.cpu import LocalBackend
        from adasdca.engine.loop import Loop
        from adasdca.engine.stop import StopRule
        from adasdca.solution import Status

        start = time.perf_counter()
        if not self._prepare(workspace, start + seconds):
            return 0
        assert self.coordinates is not None
        small = replace(self.problem, rows=DenseRows(self.coordinates.rows))
        backend = LocalBackend(small, self.threads)
        backend.restart(survey.beta, survey.intercept)
        stop = StopRule(
            start=start,
            tol=tol,
            max_epochs=ROUNDS,
            max_time=seconds if seconds < 1e9 else None,
            callback=None,
        )
        outcome = Loop(backend, AutoSchedule(small, tol, self.threads), stop, seed=0).run()
        self.exhausted = outcome.status in (Status.CONVERGED, Status.STALLED)
        found = outcome.survey
        if found.gap < survey.gap:
            self._place(workspace, found)
        if outcome.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return outcome.records[-1].updates

    def _prepare(self, workspace: _core.Workspace, deadline: float) -> bool:
        """Factorise K; False if time ran out or no row has any entry."""
        if self.coordinates is None:
            every = np.arange(workspace.n)
            found = self.kernel.among(every, workspace, self.threads, deadline)
            if found is None:
                return False
            known, products = found
            coordinates = Coordinates.of(products)
            rows = np.empty_like(coordinates.rows)
            rows[known] = coordinates.rows
            self.coordinates = Coordinates(rows, known[coordinates.basis])
        return self.coordinates.rows.shape[1] > 0 and time.perf_counter() < deadline

    def _place(self, workspace: _core.Workspace, found: Survey) -> None:
        """Take (w, β) back to the features: w as the sum that β says, and the rest."""
        assert self.coordinates is not None
        rows, total = self.coordinates.rows, self.problem.strength * self.problem.total
        weight = self.problem.weight
        alpha = found.certified if weight is None else weight * found.certified
        rest = self.coordinates.weights(total * found.coef - rows.T @ alpha)
        # The basis may hold rows of weight 0, which `combine` could not take.
        u = np.empty(workspace.d)
        workspace.combine(found.certified, u, self.threads)
        source = self.problem.rows
        if isinstance(source, DenseRows):
            X: Any = source.values
        else:
            X = sp.csr_array((source.values, source.columns, source.start), shape=source.shape)
        part = RowProducts(X).transposed(rest[:, None])[0]
        workspace.place(found.certified, u + part / total, found.intercept)


def fits(problem: Problem) -> bool:
    """Whether a problem is one of L2 with few rows and at least twice as many features."""
    n, d = problem.rows.shape
    plain = problem.bounds is None and problem.l1_ratio == 0
    return plain and n <= MOST_ROWS and d >= 2 * n
