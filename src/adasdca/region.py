"""Where the exact optimum can be: how far its scores are from those of a certified model.

The coefficients of every optimum lie within R = √(2·gap/λ) of a certified point's. An unpenalised
intercept has no such ball of its own, but for given coefficients it is the root of the rising
function F(b) = Σ c_i φ'(x_i·w + b; y_i), and moving w by R moves each x_i·w by at most ‖x_i‖R. So
if F(b + h) > 0 at w, then every optimal intercept is below b + h + R·max‖x_i‖, and likewise from
below.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.losses import Logistic, Loss, Squared
from adasdca.products import RowProducts

Array = NDArray[np.float64]


def intercept_error(
    rows: RowProducts,
    reach: float,
    targets: Array,
    weight: Array | None,
    loss: Loss,
    coef: Array,
    intercept: float,
    radius: float,
) -> float:
    """Return a bound on |b* − b| for every optimal intercept b*.

    Parameters
    ----------
    rows : RowProducts
        The training rows.
    reach : float
        max ‖x_i‖ over them.
    targets, weight, loss
        The problem.
    coef, intercept, radius
        The certified model, its intercept the best one for its coefficients.
    """
    slack = 0.0
    if not isinstance(loss, (Logistic, Squared)):  # for these two F rises strictly: b is unique
        scores = rows.times(coef[None])[:, 0]
        slack = max(_flat(loss, scores + intercept, targets, weight, side) for side in (-1.0, 1.0))
    return slack + radius * reach


def _flat(loss: Loss, scores: Array, targets: Array, weight: Array | None, side: float) -> float:
    """Return an h with side·F(b + side·h) > 0, close to the least."""
    h = 1e-10 * (1.0 + float(np.abs(scores).max()))
    for _ in range(60):
        slope = loss.slope(scores + side * h, targets)
        if weight is not None:
            slope = weight * slope
        if side * slope.sum() > 1e-12 * np.abs(slope).sum():
            return h
        h *= 4.0
    return float(np.inf)


def score_errors(
    X: Any, coef: Array, radius: Array, slack: Array, constant: float
) -> tuple[Array, Array]:
    """Return scores without intercept, and how far the exact optimum's can be from them.

    Parameters
    ----------
    X : (n, d) array or CSR matrix
        Rows to predict.
    coef : (k, d) array
        Coefficients.
    radius, slack : (k,) array
        Radius of the coefficients, and error of the intercept.
    constant : float
        The constant feature whose coefficient is a penalised intercept; 0 for none.

    Returns
    -------
    scores, errors : (n, k) arrays
        Rounding of the scores is part of the errors.
    """
    rows = RowProducts(X)
    lengths = np.sqrt(rows.norms() ** 2 + constant**2)
    sizes = np.linalg.norm(coef, axis=1)
    rounding = 2.0 * np.finfo(np.float64).eps * (coef.shape[1] + 2)
    return rows.times(coef), np.outer(lengths, radius + rounding * sizes) + slack
