"""Safe screening: rows and features that provably do not matter at the optimum.

From a certified point with gap G on a problem of strength s, every optimal w lies within √(2G/s),
so every optimal score within e_i of score_i. A row whose loss is flat over [score_i − e_i,
score_i + e_i] has β_i = 0 at the optimum. For a γ-smooth loss Σ c_i(β_i − β_i*)² ≤ 2NG/γ as well,
so u_j is within r_j = √(Σ_i c_i x_ij²)·√(2NG/γ)/(λN) of the optimal one, and a feature whose w_j
= (∇g*(u))_j, with an L1 term the clipped S(u_j, σf_j)/f_j, is 0 over that interval is 0 at the
optimum. Both are theorems, not guesses: nothing needs to be undone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.duality.error_bounds import CentredRows, rounding
from adasdca.problem.problem import Problem
from adasdca.problem.products import RowProducts
from adasdca.solution import Solution

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Intervals are widened by this, relative: a row or feature exactly at its threshold stays.
SAFETY = 1e-9


@np.errstate(invalid="ignore")  # an infinite radius screens nothing
def idle_rows(problem: Problem, X: Any, solution: Solution) -> Mask:
    """Return which rows have β = 0 at every optimum."""
    if problem.fit_intercept:
        w, b, radius = solution.coef, solution.intercept, solution.radius
        centred = CentredRows(X)
        (scores,) = centred.scores([w], [b])
        given = problem.y, problem.weight, problem.loss
        errors = centred.distances * radius + centred.intercept_error(scores, *given, w, b, radius)
    else:
        rows = RowProducts(X)
        lengths = rows.norms()
        errors = lengths * solution.radius
        errors += rounding(lengths * np.linalg.norm(solution.coef), X.shape[1])
        scores = rows.times(solution.coef[None])[:, 0]
    errors += SAFETY * (1.0 + np.abs(scores))
    low, high = scores - errors, scores + errors
    slope, y = problem.loss.slope, problem.y
    return np.asarray(np.isfinite(errors) & (slope(low, y) == 0) & (slope(high, y) == 0))


def idle_features(problem: Problem, X: Any, solution: Solution) -> Mask:
    """Return which features have w = 0 at every optimum; none for losses with a kink."""
    gamma, scale, read = problem.loss.smoothness, problem.mu, problem.regularizer.primal
    if gamma == 0:
        return np.zeros(X.shape[1], dtype=bool)
    rows = RowProducts(X)
    alpha = solution.dual_coef
    u = rows.transposed(alpha[:, None])[0] / scale
    weight = np.ones(len(problem.y)) if problem.weight is None else problem.weight
    lengths = np.sqrt(rows.squares(weight[:, None])[0])
    r = lengths * math.sqrt(2.0 * problem.total * solution.gap / gamma) / scale
    # By Cauchy, the sizes of the terms of u add up to no more than this.
    most = lengths * math.sqrt(float(alpha @ (alpha / np.maximum(weight, 1e-300)))) / scale
    r += SAFETY * (1.0 + np.abs(u)) + rounding(most, len(alpha))
    return np.asarray((read(u - r) == 0) & (read(u + r) == 0))
