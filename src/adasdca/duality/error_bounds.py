"""Where the exact optimum can be: how far its scores are from those of a certified model.

The coefficients of every optimum lie within R = √(2·gap/λ) of a certified point's. An unpenalised
intercept has no such ball of its own, but for given coefficients it is the root of the rising
function F(b) = Σ c_i φ'(x_i·w + b; y_i), and moving w by R moves each x_i·w by at most ‖x_i‖R. So
if F(b + h) > 0 at w, then every optimal intercept is below b + h + R·max‖x_i‖, and likewise from
below. The same holds with x_i − m for x_i, for any m: b is then the intercept at m.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.problem.losses import Logistic, Loss, Squared
from adasdca.problem.products import RowProducts

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Region:
    """Bounds on what separates k certified models from the exact ones.

    Attributes
    ----------
    radius : (k,) array
        Radius of the coefficients.
    slack : (k,) array
        Error of the intercept at the centre.
    centre : (d,) array or None
        The centre; None: the origin.
    constant : float
        The constant feature whose coefficient is a penalised intercept; 0 for none.
    """

    radius: Array
    slack: Array
    centre: Array | None = None
    constant: float = 0.0

    def errors(self, X: Any, coef: Array) -> Array:
        """Return how far scores of the exact models can be from those of these, rounding included.

        Parameters
        ----------
        X : (n, d) array or CSR matrix
            Rows.
        coef : (k, d) array
            Coefficients of these models.

        Returns
        -------
        (n, k) array
        """
        rows = RowProducts(X)
        square = rows.norms() ** 2 + self.constant**2
        size = np.sqrt(square)
        if self.centre is not None:
            toward = rows.times(self.centre[None])[:, 0]
            square = np.maximum(square - 2.0 * toward + self.centre @ self.centre, 0.0)
            # The difference of large numbers has their rounding.
            square += 8.0 * np.finfo(np.float64).eps * coef.shape[1] * size**2
        rounding = 2.0 * np.finfo(np.float64).eps * (coef.shape[1] + 2)
        lengths = np.linalg.norm(coef, axis=1)
        return np.asarray(
            np.outer(np.sqrt(square), self.radius) + rounding * np.outer(size, lengths) + self.slack
        )


def sound_radius(solution: Any, strength: float) -> float:
    """Return the radius that a solution's certificate proves, the rounding of its values included.

    Parameters
    ----------
    solution : Solution or MultinomialSolution
        What was certified.
    strength : float
        λ, the modulus of strong convexity.
    """
    rounding = 8.0 * np.finfo(np.float64).eps * (abs(solution.primal) + abs(solution.dual))
    return math.sqrt(2.0 * (solution.gap + rounding) / strength)


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
        scores = rows.times(coef[None])[:, 0] + intercept
        slack = max(_flat(loss, scores, targets, weight, side) for side in (-1.0, 1.0))
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
    return math.inf
