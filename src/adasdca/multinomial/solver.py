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
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from adasdca.duality.certificate import Certificate, Certified, relative_gap
from adasdca.engine.stop import Callback, StopRule
from adasdca.multinomial.risk import Hessian, Multinomial
from adasdca.problem.data import check_weights
from adasdca.problem.products import RowProducts
from adasdca.solution import History, Record, Status

Array = NDArray[np.float64]

#: Up to this many unknowns Newton's system is formed and solved; beyond, conjugate gradients.
DIRECT = 300
#: Share of the gradient that conjugate gradients may leave, at most.
FORCING = 0.25


@dataclass(frozen=True)
class MultinomialSolution(Certified):
    """A multinomial model with its certificate.

    Attributes
    ----------
    coef : (K, d) array
        Coefficients W.
    intercept : (K,) array
        Intercepts b, which sum to 0; 0 unless fit_intercept.
    dual_coef : (K, n) array
        α_ki = c_i ([k = k_i] − p_ik).
    certificate : Certificate
        P, a lower bound on its minimum, the gap, and a radius ≥ ‖W − W*‖ (Frobenius).
    status : Status
        How the solve ended.
    n_epochs, n_updates : int
        Newton steps taken, and passes over the rows made.
    history : History
        The certificate after each step.
    """

    coef: Array
    intercept: Array
    dual_coef: Array
    certificate: Certificate
    status: Status
    n_epochs: int
    n_updates: int
    history: History = field(repr=False)

    @property
    def converged(self) -> bool:
        """Whether the gap asked for was reached."""
        return self.status is Status.CONVERGED


@dataclass(frozen=True)
class Point:
    """A model and all that its certificate is made of."""

    coef: Array
    intercept: Array
    scores: Array  # with the intercept
    p: Array
    alpha: Array
    u: Array
    primal: float
    dual: float
    gap: float


def certified(problem: Multinomial, coef: Array, intercept: Array) -> Point:
    """Move the intercept to its best place for `coef` and certify that point."""
    scores = problem.rows.times(coef)
    if problem.fit_intercept:
        intercept = problem.best_intercept(scores, intercept)
    scores += intercept
    p = softmax(scores, axis=1)
    alpha = problem.residual(p)
    u = problem.rows.transposed(alpha) / (problem.lam * problem.total)
    primal = problem.risk(scores) + 0.5 * problem.lam * float(np.vdot(coef, coef))
    # P − D without the cancellation of two nearly equal numbers. What rounding leaves of Σα, which
    # ought to be 0, counts against the bound.
    excess = float(np.abs(intercept * alpha.sum(axis=0)).sum()) / problem.total
    gap = 0.5 * problem.lam * float(np.sum((coef - u) ** 2)) + excess
    dual = primal - gap
    return Point(coef, intercept, scores, p, alpha, u, primal, dual, gap)


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
) -> MultinomialSolution:
    """Fit a multinomial logistic model; see the head of this module for the objective.

    Parameters
    ----------
    X : (n, d) array or CSR matrix of float32 or float64
        The rows; float32 is read in blocks, never copied whole.
    codes : (n,) array of int
        Classes 0 … K−1, each with a row of positive weight.
    n_classes : int
        K.
    lam : float
        Strength of the regularisation, above 0. LIBLINEAR's C is lam = 1/(C·N).
    sample_weight, fit_intercept, tol, max_time, callback
        As in `solve`; `tol` is the relative gap.
    max_epochs : int, default 1000
        Most Newton steps.
    warm_start : (coef, intercept), optional
        Where to begin.

    Returns
    -------
    MultinomialSolution
    """
    stop = StopRule(time.perf_counter(), tol, max_epochs, max_time, callback)
    weight = check_weights(sample_weight, len(codes))
    rows = RowProducts(X)
    problem = Multinomial(rows, codes, weight, lam, n_classes, fit_intercept)
    shape = (n_classes, X.shape[1])
    coef, intercept = warm_start or (np.zeros(shape), np.zeros(n_classes))
    point = certified(problem, coef, intercept)
    records: list[Record] = []
    status: Status | None = None
    try:
        while True:
            records.append(
                Record(
                    len(records),
                    rows.passes,
                    stop.elapsed(),
                    point.primal,
                    point.dual,
                    point.gap,
                    len(codes),
                )
            )
            if (status := stop.judge(records[-1])) is not None:
                break
            better = step(problem, point, stop)
            if better is None:
                status = Status.STALLED if stop.seconds_left() > 0 else Status.TIME_LIMIT
                break
            point = better
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return MultinomialSolution(
        coef=point.coef,
        intercept=point.intercept,
        dual_coef=np.ascontiguousarray(point.alpha.T),
        certificate=Certificate.of(
            point.primal, point.gap, 0.0, 4e-16 * point.primal, lam
        ),
        status=status,
        n_epochs=records[-1].epoch,
        n_updates=rows.passes,
        history=History.of(records),
    )


def step(problem: Multinomial, at: Point, stop: StopRule) -> Point | None:
    """Return the point after a damped Newton step; None if there is no better one."""
    gradient = problem.lam * (at.coef - at.u)
    hessian = Hessian(problem, at.p)
    k, d = gradient.shape
    if k * (d + 1) <= DIRECT:
        move, shift = hessian.solved(gradient)
    else:
        # The usual forcing term: loose far away, tight near the optimum, so that steps end
        # quadratic.
        accuracy = min(FORCING, math.sqrt(relative_gap(at.gap, at.primal)))
        move, shift = hessian.descent(gradient, accuracy, lambda: stop.seconds_left() > 0)
    change = problem.rows.times(move) + shift
    slope = float(np.vdot(gradient, move))
    size = 1.0
    while size > 1e-10:
        coef = at.coef + size * move
        value = problem.risk(at.scores + size * change) + 0.5 * problem.lam * float(
            np.vdot(coef, coef)
        )
        if value <= at.primal + 1e-4 * size * slope:
            return certified(problem, coef, at.intercept + size * shift)
        if size == 1.0 and -slope <= 1e-12 * at.primal:
            # The fall is lost in the rounding of P, but not in the gap, a squared gradient.
            new = certified(problem, coef, at.intercept + shift)
            return new if new.gap < at.gap else None
        size /= 2
    return None
