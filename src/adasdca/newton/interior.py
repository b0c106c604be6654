"""A primal-dual interior-point method for piecewise quadratic losses, L1 terms and bounds.

The duals of the rows and the coefficients stay inside their bounds, where a logarithmic barrier
holds them until it is let go. Twenty to forty factorisations lead from anywhere to about seven
digits, however hard the problem: what makes it hard for rounds of multipliers, kinks that are
crossed one after the other, is no obstacle here. But every row takes part in every step, and the
last digits are left to others. (S. Mehrotra, "On the implementation of a primal-dual interior point
method", SIAM Journal on Optimization 2, 1992.)
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.barrier import Barrier
from adasdca.backends.base import Backend, InteriorTerm
from adasdca.duality.certificate import Certificate, CertificateError
from adasdca.newton.budget import Budget
from adasdca.newton.linear import Best
from adasdca.newton.newton import Ending

Array = NDArray[np.float64]

#: The share of the way to the nearest bound that a step goes.
NEARLY = 0.995
#: The products of the beginning, in units of a row's mean residual.
FIRST = 1.0
#: The scores that the coefficients of the beginning make, in units of the mean residual.
SMALL = 1.0
#: The products of a step that has done well, in units of those before.
FALLING = 0.9
#: The share of the residuals of the beginning that is none any more.
FEASIBLE = 1e-12
#: Steps in a row that do not lessen the gap, where nothing but rounding is left; and most steps.
IDLE, MOST = 5, 100


def follow_the_path(
    backend: Backend,
    rows: InteriorTerm,
    best: Best,
    target: float,
    deadline: float,
    budget: Budget | None = None,
) -> tuple[Best, Ending]:
    """Go along the central path; return the best point on it, or that given.

    Parameters
    ----------
    backend : Backend
        The rows.
    rows : InteriorTerm
        Their part of the method.
    best : Best
        The best point so far; the path begins at w = 0 and at its intercept.
    target : float
        The relative gap to reach.
    deadline : float
        When to stop, on the clock of `time.perf_counter`.
    budget : Budget, optional
        What the steps may cost.
    """
    problem, budget = backend.problem, budget or Budget()
    g, mu = problem.regularizer, problem.mu
    lower, upper = g.bounds or (-np.inf, np.inf)
    d = len(best.w)
    features = Barrier(np.full(d, mu), g.curvature, 0.0, g.threshold, lower, upper)
    b = best.b
    mean_weight = problem.total / backend.facts.n
    _, spread = backend.freedom(np.zeros(d), b, best.duals)
    spread = spread or 1.0
    tau = FIRST * mean_weight * spread
    squares = backend.column_squares() / problem.total
    size = SMALL * spread / np.sqrt(np.where(squares > 0, squares, 1.0) * d)
    zero, resting = np.zeros(d), g.primal(np.zeros(d))
    features.start(zero, zero, size, tau)
    u = rows.start(features.s, b, tau)
    features.start(zero, u, size, tau)
    count = rows.count + features.count
    least, before, idle, infeasible = math.inf, math.inf, 0, 1.0
    for _ in range(MOST):
        w, duals = features.s, rows.duals()
        points = [w]
        if not g.is_ridge:
            # Inside of its bounds no coefficient is at rest; the dual point says which ones are.
            points = [np.where(g.primal(u) == resting, resting, w), w]
        w, found = _certified(backend, points, b, duals, target)
        if found.gap < best.certificate.gap:
            best = Best(w, b, duals, found)
        if best.certificate.relative_gap <= target:
            return best, Ending.REACHED
        if budget.over or time.perf_counter() >= deadline:
            return best, Ending.TIME
        budget.pay(budget.path)
        products = rows.products(0.0) + features.products(0.0)
        rest = infeasible < FEASIBLE and products < least * problem.total
        idle = idle + 1 if rest and found.gap > 0.9 * least else 0
        least = min(least, found.gap)
        hidden = best.certificate.gap <= 2.0 * best.certificate.rounding
        if hidden or idle >= IDLE:
            break
        diagonal: float | Array = mu
        aim = corrected = 0.0
        for stage in ("predictor", "corrector"):
            features.linearise(u, aim, corrected)
            rows.linearise(aim, corrected)
            if stage == "predictor":
                if not g.is_ridge:
                    diagonal = mu / features.h
                if not rows.factorise(diagonal, deadline):
                    late = time.perf_counter() >= deadline
                    return best, Ending.TIME if late else Ending.EXHAUSTED
            dw, db, most = rows.aim(diagonal * features.kappa)
            most = min(most, features.aim(dw))
            if stage == "predictor" and count > 0:
                full = min(most, 1.0)
                left = rows.products(full) + features.products(full)
                aim = max(left / products, 0.0) ** 3 * products / count
                # Of a step that is cut short most is never made: all of it may lead into circles.
                corrected = 1.0 if products < FALLING * before else full**2
        length = min(NEARLY * most, 1.0)
        before = products
        if not (np.isfinite(dw).all() and math.isfinite(db) and length > 0):
            break
        infeasible *= 1.0 - length  # as linear residuals do
        features.move(length)
        b += length * db
        u = rows.move(length, features.s, b)
    return best, Ending.EXHAUSTED


def _certified(
    backend: Backend, points: list[Array], b: float, duals: Any, target: float
) -> tuple[Array, Certificate]:
    """Return the first point that reaches the target, or that of the least gap.

    Far from the end a dual point may be beyond what can be certified.
    """
    least = points[-1], Certificate(math.inf, -math.inf, math.inf, math.inf)
    for w in points:
        try:
            found = backend.certify(w, b, duals)
        except CertificateError:
            continue
        if found.gap < least[1].gap:
            least = w, found
        if found.relative_gap <= target:
            break
    return least
