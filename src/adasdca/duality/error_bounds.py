"""Where the exact optimum can be: how far its scores are from those of a certified model.

The coefficients of every optimum lie within R = √(2·gap/λ) of a certified point's. An unpenalised
intercept has no such ball of its own, but for given coefficients it is the root of the rising
function F(b) = Σ c_i φ'(x_i·w + b; y_i), and moving w by R moves each x_i·w by at most ‖x_i‖R. So
if F(b + h) > 0 at w, then every optimal intercept is below b + h + R·max‖x_i‖, and likewise from
below. The same holds with x_i − m for x_i, for any m: b + m·w is then the intercept. With about the
mean of the rows for m, features that are far from 0 do no harm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.problem.losses import Loss
from adasdca.problem.products import RowProducts

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
#: Rows whose mean is the centre.
CENTRE = 256
#: More than the length of any row whose squares are too small for doubles.
TINY = 1e-150


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

    @classmethod
    def of_models(
        cls,
        solutions: list[Any],
        X: Any,
        targets: Sequence[Array],
        weight: Array | None,
        loss: Loss,
    ) -> Region:
        """Return the region of models with intercepts that are not penalised.

        Parameters
        ----------
        solutions : list of Solution
            The certified models.
        X : (n, d) array, CSR matrix, or products with such
            The training rows.
        targets : list of (n,) arrays
            The targets, one vector a model.
        weight, loss
            The sample weights and the loss.
        """
        cloud = Cloud(X)
        slack = [
            cloud.intercept_error(y, weight, loss, s.coef, s.intercept, s.radius)
            for s, y in zip(solutions, targets, strict=True)
        ]
        return cls(np.array([s.radius for s in solutions]), np.array(slack), cloud.centre)

    @classmethod
    def of_multinomial(
        cls, solution: Any, X: Any, fit_intercept: bool, constant: float = 0.0
    ) -> Region:
        """Return the region of the K classes of a multinomial model.

        One ball holds all classes: ‖(ΔW_k − ΔW_j)x‖ ≤ √2 R‖x‖ for a pair, half of it for each.
        Moving all scores by at most e moves differences of the best intercepts by 2e(K − 1) at
        most: if a group of classes rose by more than 2e over the rest, its probabilities would rise
        in every row, but their sum over the rows is fixed.
        """
        count, radius = len(solution.coef), solution.radius
        each = np.full(count, radius / math.sqrt(2.0))
        if not fit_intercept:
            return cls(each, np.zeros(count), None, constant)
        cloud = Cloud(X)
        return cls(each, np.full(count, (count - 1) * cloud.reach * radius), cloud.centre)

    @np.errstate(all="ignore")  # what is too large for doubles is an infinite error
    def errors(self, X: Any, coef: Array, intercept: Array) -> Array:
        """Return how far scores of the exact models can be from those of these, rounding included.

        Parameters
        ----------
        X : (n, d) array, CSR matrix, or products with such
            Rows.
        coef : (k, d) array
            Coefficients of these models.
        intercept : (k,) array
            Their intercepts.

        Returns
        -------
        (n, k) array
        """
        rows = products_of(X)
        if self.centre is None:
            lengths = rows.norms() + TINY
            apart = np.hypot(lengths, self.constant)
        else:
            lengths, apart = rows.lengths_about(self.centre)
            lengths += TINY
            apart = distances(lengths, apart, self.centre)
        blur = rounding(lengths[:, None], coef, intercept)
        return np.asarray(apart[:, None] * self.radius + self.slack + blur)


class Cloud:
    """Rows and their centre, about which errors are bounded.

    Attributes
    ----------
    centre : (d,) array
        The mean of some of the rows.
    """

    @np.errstate(all="ignore")
    def __init__(self, X: Any) -> None:
        self.rows = products_of(X)
        self.centre = self.rows.mean_of_some(CENTRE)

    @cached_property
    def _about(self) -> tuple[Array, Array]:
        """‖x_i‖ and ‖x_i − m‖, as floating point has them."""
        lengths, apart = self.rows.lengths_about(self.centre)
        return lengths + TINY, apart

    @cached_property
    @np.errstate(all="ignore")
    def _farthest(self) -> tuple[float, float]:
        """The largest ‖x_i‖ and ‖x_i − m‖."""
        lengths, apart = self._about
        return float(lengths.max()), float(apart.max())

    @property
    def longest(self) -> float:
        """Upper bound on all ‖x_i‖."""
        return self._farthest[0]

    @property
    def reach(self) -> float:
        """Upper bound on all ‖x_i − m‖."""
        return float(distances(*self._farthest, self.centre))

    @cached_property
    @np.errstate(all="ignore")
    def apart(self) -> Array:
        """Upper bounds on ‖x_i − m‖."""
        return np.asarray(distances(*self._about, self.centre))

    def _scores(self, coef: Array, intercept: float) -> Array:
        """Return the scores; those of dense rows come with how far these are from the centre."""
        found = self.rows.scores_about(self.centre, coef, intercept)
        if found is None:
            return np.asarray(self.rows.times(coef[None])[:, 0] + intercept)
        scores, apart = found
        # ‖x‖ ≤ ‖x − m‖ + ‖m‖, and the rounding of the two.
        longest = 1.01 * (apart + _length(self.centre)) + TINY
        self.__dict__.setdefault("_farthest", (longest, apart))
        return np.asarray(scores)

    @np.errstate(all="ignore")
    def intercept_error(
        self,
        targets: Array,
        weight: Array | None,
        loss: Loss,
        coef: Array,
        intercept: float,
        radius: float,
    ) -> float:
        """Return a bound on the error of the intercept at the centre, whichever optimum is meant.

        Parameters
        ----------
        targets, weight, loss
            The problem.
        coef, intercept, radius
            The certified model.
        """
        scores = self._scores(coef, intercept)
        blur = float(rounding(self.longest, coef[None], intercept)[0])
        least = 1e-10 * (1.0 + max(float(scores.max()), -float(scores.min())))
        flat = max(_flat(loss, scores, targets, weight, side, least) for side in (-1.0, 1.0))
        return flat + blur + radius * self.reach


def products_of(X: Any) -> Any:
    """Return products with rows; what has such already, as rows on a device do, is returned."""
    return X if hasattr(X, "norms") else RowProducts(X)


def distances(lengths: Any, apart: Any, centre: Array) -> Any:
    """Bound ‖x_i − m‖ from above, of which `apart` is what floating point made of it.

    The difference of large numbers has their rounding.
    """
    size = lengths + _length(centre)
    return np.sqrt(apart**2 + 4.0 * EPS * (len(centre) + 4) * size**2)


def _length(x: Array) -> float:
    """‖x‖, in a third of the time of NumPy's function."""
    return math.sqrt(float(x @ x))


def rounding(lengths: Any, coef: Array, intercept: Any) -> Array:
    """Bound the rounding of scores x·w + b of rows of these lengths."""
    size = lengths * np.linalg.norm(coef, axis=1) + np.abs(intercept)
    return np.asarray(2.0 * EPS * (coef.shape[1] + 2) * size)


def _flat(
    loss: Loss, scores: Array, targets: Array, weight: Array | None, side: float, h: float
) -> float:
    """Return an h with side·F(b + side·h) > 0, that given or close to the least."""
    for _ in range(60):
        balance, slope, mass = loss.kernel.balance(scores, targets, weight, side * h)
        need = 1e-12 * mass + side * balance
        if need < 0:
            return h
        # About where its slope leads, but no farther than eight tries without it would go.
        ahead = h + 1.5 * need / slope if slope > 0 else 0.0
        h = min(max(4.0 * h, ahead), 4.0**8 * h)
    return math.inf
