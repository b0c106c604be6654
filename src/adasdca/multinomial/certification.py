"""The certificate of a multinomial model that somebody else fitted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.blas import one_thread
from adasdca.duality.certificate import Certificate
from adasdca.multinomial.certificate import certified
from adasdca.multinomial.device import RowMaker, row_maker
from adasdca.multinomial.margins import Multinomial
from adasdca.problem.data import check_rows, check_weights

Array = NDArray[np.float64]


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
    intercept costs above it is part of the gap.
    """
    weight = check_weights(sample_weight, len(codes))
    with np.errstate(all="ignore"), one_thread():
        rows = row_maker(backend)(check_rows(X, device=backend == "cuda"), len(coef))
        problem = Multinomial(rows, codes, weight, lam, len(coef), fit_intercept)
        losses = problem.losses(coef, intercept)
        penalty = 0.5 * problem.mu * float(np.vdot(coef, coef))
        own = (losses.value() + penalty) / problem.total
        travel = 1.25 * float(np.linalg.norm(coef))
        best = certified(problem, coef, intercept, losses, travel, 0, 0.0, math.inf).certificate
    blur = max(best.primal - best.gap - best.dual, 0.0)
    above = max(own - best.primal, 0.0)
    rounding = best.rounding + (2.0 * blur if above else 0.0)
    gap = best.gap + above + (2.0 * blur if above else 0.0)
    return Certificate.of(own, gap, rounding, blur, lam)
