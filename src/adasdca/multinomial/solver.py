"""Multinomial logistic regression: Newton's method on the primal, judged by its duality gap.

With scores s_i = W x_i + b ∈ ℝᴷ, labels k_i, weights c_i and N = Σ c_i,

    P(W, b) = (1/N) Σ_i c_i (log Σ_k exp s_ik − s_{i,k_i}) + (lam/2) ‖W‖²
    D(p)    = (1/N) Σ_i c_i H(p_i) − (lam/2) ‖U‖²,   U = (1/(lam·N)) Σ_i c_i (e_{k_i} − p_i) x_iᵀ

for any p_i in the simplex, H the entropy; with an intercept, which is not penalised, only p with
Σ_i c_i (e_{k_i} − p_i) = 0 count. p_i = softmax(s_i) at the best b for W is such a point, and there
the loss and its conjugate add up to −s_i·(e_{k_i} − p_i), so that P − D = (lam/2) ‖W − U‖²: the
squared gradient, in the units of the objective.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backends.abilities import memory_told
from adasdca.backends.blas import one_thread
from adasdca.duality.certificate import Certificate
from adasdca.engine.interruption import interruption
from adasdca.engine.loop import GRACE
from adasdca.engine.stop import Callback, StopRule
from adasdca.multinomial.continuation import descend
from adasdca.multinomial.device import RowMaker, row_maker
from adasdca.multinomial.margins import Multinomial
from adasdca.multinomial.objective import MultinomialObjective
from adasdca.multinomial.rows import ClassRows
from adasdca.newton.newton import Ending
from adasdca.problem.data import check_rows, check_weights
from adasdca.solution import History, Record, Solved, Status
from adasdca.solver import FIRST, check_threads

Array = NDArray[np.float64]

#: What an ending of Newton's method means for the solve.
ENDINGS = {
    Ending.EXHAUSTED: Status.STALLED,
    Ending.STEPS: Status.EPOCH_LIMIT,
    Ending.TIME: Status.TIME_LIMIT,
}


@dataclass(frozen=True)
class MultinomialSolution(Solved):
    """A multinomial model with its certificate."""

    coef: Array  #: (K, d), coefficients W.
    intercept: Array  #: (K,), intercepts b, which sum to 0; 0 unless fit_intercept.
    dual_coef: Array  #: (K, n), α_ki = c_i ([k = k_i] − p_ik).
    #: P, a lower bound on its minimum, the gap, and a radius ≥ ‖W − W*‖ (Frobenius).
    certificate: Certificate
    status: Status  #: How the solve ended.
    #: Newton steps taken, and passes over the rows made.
    n_epochs: int
    n_updates: int
    history: History = field(repr=False)  #: The certificate after each step.
    #: How far differences of the intercept can be from the best ones for W.
    intercept_error: float = math.inf


def solve_multinomial(
    X: Any,
    codes: NDArray[np.intp],
    *,
    n_classes: int,
    lam: float,
    sample_weight: Any = None,
    fit_intercept: bool = False,
    tol: float = 1e-4,
    max_epochs: int = 1000,
    max_time: float | None = None,
    warm_start: tuple[Array, Array] | None = None,
    callback: Callback | None = None,
    n_threads: int = 1,
    backend: str | RowMaker | None = None,
) -> MultinomialSolution:
    """Fit a multinomial logistic model; see the head of this module for the objective.

    Parameters
    ----------
    X : (n, d) array or CSR matrix of float32 or float64
        The rows; float32 is read in blocks, never copied whole.
    codes : (n,) array of int
        Classes 0 … K−1, each with a row of positive weight.
    n_classes, lam
        K, and the strength of the regularisation: LIBLINEAR's C is lam = 1/(C·N).
    warm_start : (coef, intercept), optional
        Where to begin.
    sample_weight, fit_intercept, tol, max_epochs, max_time, callback, n_threads, backend
        As in `solve`; epochs are Newton steps, and a user-defined backend makes `ClassRows` of the
        checked rows and K.
    """
    start = time.perf_counter()
    weight = check_weights(sample_weight, len(codes))
    make = row_maker(backend, check_threads(n_threads))
    rows = check_rows(X, device=backend == "cuda")

    def problem() -> Multinomial:
        placed = make(rows, n_classes)
        return Multinomial(placed, codes, weight, lam, n_classes, fit_intercept)

    return solve_posed(
        problem,
        (n_classes, rows.shape[1]),
        len(codes),
        lam,
        tol=tol,
        max_epochs=max_epochs,
        max_time=max_time,
        warm_start=warm_start,
        callback=callback,
        start=start,
    )


def solve_posed(
    make: Callable[[], Any],
    shape: tuple[int, int],
    n: int,
    lam: float,
    *,
    tol: float,
    max_epochs: int,
    max_time: float | None,
    warm_start: tuple[Array, Array] | None,
    callback: Callback | None,
    start: float,
) -> MultinomialSolution:
    """Solve a problem that `make` is still to make; the options are those of `solve_multinomial`.

    `shape` and `n` are the numbers of classes, features and rows; the solve began at `start`.
    """
    # Rows pass in blocks that fit a cache: BLAS has no work for several threads, which would wait
    # for each other. Underflow is no error of the softmax, and what is not finite is found by the
    # certificate.
    with interruption() as around, np.errstate(all="ignore"), one_thread():
        stop = StopRule(start, tol, max_epochs, max_time, callback, around, unmoved=math.inf)
        coef, intercept = warm_start or (np.zeros(shape), np.zeros(shape[0]))
        try:
            with around.heeded(max(stop.seconds_left(), 0.0) + FIRST):
                _core.check()
                problem = make()
                objective = MultinomialObjective(problem, coef, intercept, tol, stop.deadline)
        except _core.Expired:
            return _unsolved(shape, n, lam)
        watch = Watch(objective, stop, problem.rows)
        try:
            with memory_told(problem.rows), around.heeded(stop.seconds_left() + GRACE):
                ending = descend(objective, stop.deadline, watch)
            status = watch.status or ENDINGS[ending]
        except KeyboardInterrupt:
            around.wish()
            if not watch.records:
                raise
            status = Status.INTERRUPTED
        except _core.Expired:
            status = Status.TIME_LIMIT
        return watch.solution(status)


def _unsolved(shape: tuple[int, int], n: int, lam: float) -> MultinomialSolution:
    """Return the model 0 where a first certificate takes too long.

    At W = 0 and b = 0 every loss is log K, and D = 0 at p_i = e_{k_i}.
    """
    least = math.log(shape[0])
    blur = 4 * sys.float_info.epsilon * least
    found = Certificate.of(least, least + blur, blur, blur, lam)
    record = Record(0, 0, 0.0, found.primal, found.dual, found.gap, n)
    return MultinomialSolution(
        coef=np.zeros(shape),
        intercept=np.zeros(shape[0]),
        dual_coef=np.zeros((shape[0], n)),
        certificate=found,
        status=Status.TIME_LIMIT,
        n_epochs=0,
        n_updates=0,
        history=History.of([record]),
    )


class Watch:
    """Records every step, remembers the best point, and says when to stop."""

    def __init__(self, objective: MultinomialObjective, stop: StopRule, rows: ClassRows) -> None:
        self.objective, self.stop, self.rows = objective, stop, rows
        self.best = objective.point
        self.records: list[Record] = []
        self.status: Status | None = None

    def __call__(self) -> bool:
        """Look at the point; return whether to stop."""
        point = self.objective.point
        found = point.certificate
        record = Record(
            len(self.records),
            self.rows.passes,
            self.stop.elapsed(),
            found.primal,
            found.dual,
            found.gap,
            self.rows.shape[0],
        )
        self.records.append(record)
        if found.gap < self.best.certificate.gap:
            self.best = point
        self.status = self.stop.judge(record)
        if self.status is Status.CONVERGED:
            self.best = point
        return self.status is not None

    def solution(self, status: Status) -> MultinomialSolution:
        """Return the best point."""
        point = self.best
        return MultinomialSolution(
            coef=point.coef,
            intercept=point.intercept,
            dual_coef=point.dual.gather(),
            certificate=point.certificate,
            status=status,
            n_epochs=self.records[-1].epoch,
            n_updates=self.rows.passes,
            history=History.of(self.records),
            intercept_error=point.intercept_error,
        )
