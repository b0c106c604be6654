"""The certificate of a multinomial model.

With U = (1/μ) Σ_i α_i x_iᵀ and any probabilities p', with an intercept those for which Σ_i α_i = 0,

    N (P − D) = Σ_i c_i KL(p'_i, p_i) + μ/2 ‖W − U‖²,

a sum of non-negative terms; the first is 0 where p' = p. Bounds on the rounding of scores, of U and
of Σα are added, so that the bound holds for the data as given.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.blas import one_thread
from adasdca.duality.certificate import Certificate
from adasdca.multinomial.device import RowMaker, row_maker
from adasdca.multinomial.intercept import (
    LONGEST,
    InterceptObjective,
    fallback_cost,
    shift_error,
    solve_laplacian,
)
from adasdca.multinomial.margins import ROUNDOFF, DualPoint, Multinomial, Rounding, RowLosses
from adasdca.newton.newton import minimise
from adasdca.problem.data import check_rows, check_weights

Array = NDArray[np.float64]

#: The intercept may contribute this fraction of the tolerance to the gap,
SHARE = 1e-2
#: or this fraction of the objective, which double precision does not resolve.
LEAST = 1e-24
#: Most steps for an intercept; the rest is part of the bound.
MOST_STEPS = 200


class Feasible(NamedTuple):
    """A dual point with Σα = 0."""

    point: DualPoint
    combined: Array  #: (K, d), Σ_i α_i x_iᵀ.
    cost: float = 0.0  #: Σ_i c_i KL(p'_i, p_i).
    moved: float = 0.0  #: How far U may be from that of the point, which is not quite feasible.
    #: What rounding may add to the cost, and to `moved`.
    slip: float = 0.0
    drift: float = 0.0
    tilted: bool = True  #: Whether it is p_i + (diag p_i − p_i p_iᵀ) δ, |δ| ≤ ½.


def sum_error(problem: Multinomial) -> float:
    """Bound the rounding of Σ_i α_i, in units of its terms."""
    return ROUNDOFF * (math.log2(problem.rows.shape[0]) + problem.n_classes + 8.0)


def relative_error(problem: Multinomial) -> float:
    """Bound the rounding of sums of terms of one sign, in units of the sum."""
    return 4.0 * ROUNDOFF * (256.0 + 0.5 * problem.rows.shape[1])


def primal_error(problem: Multinomial, off_by: Rounding, value: float) -> float:
    """Bound the rounding of N·P."""
    return 1.001 * (off_by.reach + 0.5 * off_by.bent + relative_error(problem) * value)


def slope_of(at: InterceptObjective, off_by: Rounding) -> tuple[Array, Array]:
    """Return the couplings of the classes, and a bound on |Σ_i α_i|.

    A score that is off by e moves that by 2‖α‖e at most.
    """
    left = np.abs(at.balance) + sum_error(at.dual.problem) * at.dual.sizes()
    return at.coupling, left + 2.0 * off_by.reach


def feasible(
    problem: Multinomial, losses: RowLosses, best: InterceptObjective | None, exact: bool
) -> Feasible:
    """Return a dual point at the best intercept, if there is one; its sums may be exact."""
    dual = losses.dual() if best is None else best.dual
    cost = 0.0 if best is None else best.cost()
    if best is not None and math.isfinite(cost):
        dual = dual.moved(losses, best.newton.step)
    if exact:
        combined, sums, *_ = dual.combined_exactly(losses)
    else:
        combined, sums = dual.combined(), dual.sums()
    if best is None:
        return Feasible(dual, combined)
    unit = sum_error(problem)
    if exact:
        unit = (4.0 * ROUNDOFF * (problem.rows.shape[0] + problem.n_classes)) ** 2
    left = unit * dual.sizes()
    if math.isfinite(cost):
        left += np.abs(sums)
        # A second move of this kind would cancel the rest; its cost bounds the error.
        rest = solve_laplacian(best.coupling, left)
        if rest.exact and float(np.ptp(rest.step)) <= 0.5 * LONGEST:
            slip = 2.0 * (rest.energy + math.sqrt(rest.energy * cost))
            drift = math.sqrt(problem.moment * rest.energy) / problem.mu
            return Feasible(dual, combined, cost, 0.0, slip, drift)
    else:
        cost = fallback_cost(losses, best.balance)
    longest = problem.longest / problem.mu
    moved = longest * float(np.abs(sums).sum())
    slip, drift = fallback_cost(losses, left), longest * float(left.sum())
    return Feasible(dual, combined, cost, moved, slip, drift, False)


@dataclass(frozen=True)
class Point:
    """A model, and the parts of its certificate."""

    #: The model.
    coef: Array
    intercept: Array
    losses: RowLosses  #: The rows' part there.
    #: The dual point, and (K, d), its U.
    dual: DualPoint
    u: Array
    #: The path of W from 0 along which scores were updated: its length in each feature, its steps.
    travel: Array
    hops: int
    lost: float  #: N times the gap, without what bounds rounding.
    #: The part of `lost` that is the intercept's, and Σ_i ‖α_i‖‖x_i‖.
    cost: float
    mass: float
    certificate: Certificate
    #: With an intercept, the couplings of its classes, and a bound on its slope |Σ_i α_i|.
    slope: tuple[Array, Array] | None

    @property
    def intercept_error(self) -> float:
        """How far differences of the intercept can be from the best ones for W."""
        return 0.0 if self.slope is None else shift_error(*self.slope)


def certified(
    problem: Multinomial,
    coef: Array,
    intercept: Array,
    losses: RowLosses,
    travel: Array,
    hops: int,
    tol: float,
    deadline: float,
) -> Point:
    """Certify a model; its intercept is moved to the best place, and its losses with it."""
    penalty = 0.5 * problem.mu * float(np.vdot(coef, coef))
    best = None
    if problem.fit_intercept:
        best = InterceptObjective(problem, losses)
        enough = max(SHARE * tol, LEAST) * (losses.value() + penalty)
        minimise(best, enough, deadline, MOST_STEPS)
        intercept = intercept + best.shift
        intercept = intercept - intercept.mean()
    found = _certified(problem, coef, intercept, losses, best, travel, hops, False)
    known = found.certificate
    doubtful = known.rounding > 0.1 * known.gap and known.gap > max(tol, 1e-12) * known.primal
    if doubtful:
        finer = _certified(problem, coef, intercept, losses, best, travel, hops, True)
        found = finer if finer.certificate.gap < known.gap else found
    return found


def _certified(
    problem: Multinomial,
    coef: Array,
    intercept: Array,
    losses: RowLosses,
    best: InterceptObjective | None,
    travel: Array,
    hops: int,
    finely: bool,
) -> Point:
    """Certify a model by plain sums and lengths of rows, or finely.

    In twice the digits, where the rows have them, for features far larger than U cancel; and with
    the scores' terms, whose sizes add up to far less than the lengths of W and x_i multiplied where
    features differ in scale.
    """
    exact = finely and problem.exact
    mu, total = problem.mu, problem.total
    dual = feasible(problem, losses, best, exact)
    value, penalty = losses.value(), 0.5 * mu * float(np.vdot(coef, coef))
    u = dual.combined / mu
    distance = 0.5 * mu * (float(np.linalg.norm(coef - u)) + dual.moved) ** 2
    lost = distance + dual.cost
    off_by = dual.point.rounding(losses, travel, hops, float(np.abs(intercept).max()), finely)
    # |U − truth|.
    chain = 2.0 * ROUNDOFF * (problem.rows.chain + problem.n_classes + 8.0)
    drift = dual.drift + chain * off_by.mass / mu
    # Half the square, for the slope of the loss varies by half of what the scores do. Probabilities
    # that an intercept has moved, by their own share at most, differ as the curvature says.
    square = off_by.bent if dual.tilted else off_by.square
    slip = dual.slip + math.sqrt(2.0 * square * dual.cost) + 0.5 * off_by.bent
    if exact:
        chain = 4.0 * ROUNDOFF * (problem.rows.shape[0] + problem.n_classes)
        drift = dual.drift + 4.0 * ROUNDOFF * float(np.linalg.norm(u)) + chain**2 * off_by.mass / mu
        # Duals as they are stored belong to other probabilities: 1 − p of the own class is rounded,
        # which matters where that is far from likely, and its loss large.
        slip += 8.0 * ROUNDOFF * value
    off = math.sqrt(2.0 * mu * distance) * drift + 0.5 * mu * drift**2
    rounding = 1.001 * (slip + off + relative_error(problem) * lost)
    value += penalty
    slope = None if best is None else slope_of(best, off_by)
    blur = primal_error(problem, off_by, value)
    certificate = Certificate.of(
        value / total, (lost + rounding) / total, rounding / total, blur / total, problem.lam
    )
    return Point(
        coef,
        intercept,
        copy(losses),
        dual.point,
        u,
        travel,
        hops,
        lost,
        dual.cost,
        off_by.mass,
        certificate,
        slope,
    )


def certify_multinomial(
    X: Any,
    codes: NDArray[np.intp],
    coef: Array,
    intercept: Array,
    *,
    lam: float,
    sample_weight: Any = None,
    fit_intercept: bool = False,
    backend: str | RowMaker | None = None,
) -> Certificate:
    """Certify a multinomial logistic model, of the objective and arguments of its solver.

    The dual point is that of the best intercept for these coefficients; what the model's own
    intercept costs above it is part of the gap. That is at most Σα·(b − b*), whose digits a
    difference of two objectives does not have.
    """
    weight = check_weights(sample_weight, len(codes))
    with np.errstate(all="ignore"), one_thread():
        rows = row_maker(backend)(check_rows(X, device=backend == "cuda"), len(coef))
        problem = Multinomial(rows, codes, weight, lam, len(coef), fit_intercept)
        losses = problem.losses(coef, intercept)
        penalty = 0.5 * problem.mu * float(np.vdot(coef, coef))
        own = losses.value() + penalty
        travel = 1.25 * np.linalg.norm(coef, axis=0)
        shift, above = float(np.abs(intercept).max()), 0.0
        off_by = losses.dual().rounding(losses, travel, 0, shift, False)
        if fit_intercept:
            coupling, left = slope_of(InterceptObjective(problem, losses), off_by)
            above = 0.5 * float(left.sum()) * shift_error(coupling, left) / problem.total
        best = certified(problem, coef, intercept, losses, travel, 0, 0.0, math.inf).certificate
    total, blur = problem.total, primal_error(problem, off_by, own) / problem.total
    unknown = blur + max(best.primal - best.gap - best.dual, 0.0)
    plain = max(own / total - best.primal, 0.0) + unknown
    gap, rounding = best.gap + min(plain, above), best.rounding + unknown * (not above <= plain)
    return Certificate.of(own / total, gap, rounding, blur, lam)
