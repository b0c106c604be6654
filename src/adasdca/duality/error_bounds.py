"""Error bounds: how far the scores of the exact optimum can be from those of a certified model.

The coefficients of every optimum lie within R = √(2·gap/λ) of a certified point's. An unpenalised
intercept has no such bound by itself, but for given coefficients it is the root of the increasing
function F(b) = Σ c_i φ'(x_i·w + b; y_i), and moving w by R moves each x_i·w by at most ‖x_i‖R. So
if F(b + h) > 0 at w, then every optimal intercept is below b + h + R·max‖x_i‖, and likewise from
below. The same holds with x_i − m for x_i, for any m: b + m·w is then the intercept. With m near
the mean of the rows, features that are far from 0 do not loosen the bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.problem.losses import Loss
from adasdca.problem.products import LARGE, RowProducts

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
#: Rows whose mean is the centre.
CENTRE = 256
#: What the flat part of F adds at least, in units of what the radius adds: a finer search for it
#: passes over the rows up to twenty times (20,640 x 8, hinge: 0.8 -> 0.2 ms).
LOOSE = 0.01
#: More than the length of any row whose squares are too small for doubles.
TINY = 1e-150


@dataclass(frozen=True)
class Region:
    """Bounds on the distance of k certified models from the exact ones."""

    radius: Array  #: (k,), radius of the coefficients.
    slack: Array  #: (k,), error of the intercept at the centre.
    centre: Array | None = None  #: (d,), the centre; None: the origin.
    #: The constant feature whose coefficient is a penalised intercept; 0 for none.
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

        `X`, an array, a CSR matrix, or products with such, has the training rows. There is a vector
        of targets for each of the certified `solutions`.
        """
        rows = CentredRows(X)
        scores = rows.scores([s.coef for s in solutions], [s.intercept for s in solutions])
        slack = [
            rows.intercept_error(found, y, weight, loss, s.coef, s.intercept, s.radius)
            for s, y, found in zip(solutions, targets, scores, strict=True)
        ]
        return cls(np.array([s.radius for s in solutions]), np.array(slack), rows.centre)

    @classmethod
    def of_multinomial(
        cls, solution: Any, X: Any, fit_intercept: bool, constant: float = 0.0
    ) -> Region:
        """Return the region of the K classes of a multinomial model.

        One ball contains all classes: ‖(ΔW_k − ΔW_j)x‖ ≤ √2 R‖x‖ for a pair, half of it for each.
        A change of all scores by at most e changes differences of the best intercepts by at most
        2e(K − 1): if a group of classes rose by more than 2e over the rest, its probabilities would
        rise in every row, but their sum over the rows is fixed. The model's intercept is not quite
        the best one for its W either.
        """
        count, radius = len(solution.coef), solution.radius
        each = np.full(count, radius / math.sqrt(2.0))
        if not fit_intercept:
            return cls(each, np.zeros(count), None, constant)
        rows = CentredRows(X)
        slack = (count - 1) * rows.reach * radius + 0.5 * solution.intercept_error
        return cls(each, np.full(count, slack), rows.centre)

    @np.errstate(all="ignore")  # overflow is an infinite error
    def errors(self, X: Any, coef: Array, intercept: Array) -> Array:
        """Bound the errors of the scores of k models on n rows, rounding included: an (n, k) array.

        `coef` is (k, d), `intercept` is (k,).
        """
        rows = products_of(X)
        if self.centre is None:
            lengths = rows.norms() + TINY
            distance = np.hypot(lengths, self.constant)
        else:
            lengths, computed = rows.lengths_about(self.centre)
            lengths += TINY
            distance = bound_distances(lengths, computed, self.centre)
        # (np.linalg.norm takes five times as long on a few features.)
        norms = np.sqrt(np.einsum("kj,kj->k", coef, coef))
        blur = rounding(lengths[:, None] * norms + np.abs(intercept), coef.shape[1])
        return np.asarray(distance[:, None] * self.radius + self.slack + blur)


class CentredRows:
    """Rows, and distances from their centre, the mean of some of them."""

    @np.errstate(all="ignore")
    def __init__(self, X: Any) -> None:
        self.rows = products_of(X)
        self.centre = self.rows.mean_of_some(CENTRE)

    @cached_property
    def _about(self) -> tuple[Array, Array]:
        """‖x_i‖ and ‖x_i − m‖ as computed."""
        lengths, computed = self.rows.lengths_about(self.centre)
        return lengths + TINY, computed

    @cached_property
    @np.errstate(all="ignore")
    def _farthest(self) -> tuple[float, float]:
        """The largest ‖x_i‖ and ‖x_i − m‖."""
        lengths, computed = self._about
        return float(lengths.max()), float(computed.max())

    @property
    def longest(self) -> float:
        """Upper bound on all ‖x_i‖."""
        return self._farthest[0]

    @property
    def reach(self) -> float:
        """Upper bound on all ‖x_i − m‖."""
        return float(bound_distances(*self._farthest, self.centre))

    @cached_property
    @np.errstate(all="ignore")
    def distances(self) -> Array:
        """Upper bounds on ‖x_i − m‖."""
        return np.asarray(bound_distances(*self._about, self.centre))

    def scores(self, coefs: Sequence[Array], intercepts: Sequence[float]) -> Iterator[Array]:
        """Yield the scores of each model.

        Several are one product, which reads the rows once (60,000 x 784, 10 models: 0.22 -> 0.06
        s), in groups whose scores take next to no memory.
        """
        group = max(1, LARGE // self.rows.shape[0])
        for first in range(0, len(coefs), group):
            part = slice(first, first + group)
            yield from self._scores(np.array(coefs[part]), intercepts[part])

    @np.errstate(all="ignore")
    def _scores(self, coefs: Array, intercepts: Sequence[float]) -> Sequence[Array]:
        """Return the scores; for one model on dense rows one pass finds the largest distance."""
        one = len(coefs) == 1
        found = self.rows.scores_about(self.centre, coefs[0], intercepts[0]) if one else None
        if found is None:
            return [
                np.ascontiguousarray(scores) + b
                for scores, b in zip(self.rows.times(coefs).T, intercepts, strict=True)
            ]
        scores, farthest = found
        # ‖x‖ ≤ ‖x − m‖ + ‖m‖, with their rounding.
        longest = 1.01 * (farthest + _length(self.centre)) + TINY
        self.__dict__.setdefault("_farthest", (longest, farthest))
        return [np.asarray(scores)]

    @np.errstate(all="ignore")
    def intercept_error(
        self,
        scores: Array,
        targets: Array,
        weight: Array | None,
        loss: Loss,
        coef: Array,
        intercept: float,
        radius: float,
    ) -> float:
        """Bound the error of the intercept of a certified model with these scores at the centre."""
        blur = rounding(self.longest * _length(coef) + abs(intercept), len(coef))
        far = radius * self.reach
        if not math.isfinite(far):
            return math.inf
        least = 1e-10 * (1.0 + max(float(scores.max()), -float(scores.min()))) + LOOSE * far
        sides = (0.0,) if loss.is_quadratic else (-1.0, 1.0)
        flat = max(_flat(loss, scores, targets, weight, side, least) for side in sides)
        return float(flat + blur + far)


def products_of(X: Any) -> Any:
    """Return products with rows; what has such already, as rows on a device do, is returned."""
    return X if hasattr(X, "norms") else RowProducts(X)


def bound_distances(lengths: Any, computed: Any, centre: Array) -> Any:
    """Bound ‖x_i − m‖ from above, given its computed value.

    The difference of large numbers has the rounding of those numbers.
    """
    size = lengths + _length(centre)
    return np.sqrt(computed**2 + 4.0 * EPS * (len(centre) + 4) * size**2)


def _length(x: Array) -> float:
    """Return ‖x‖, in a third of the time of NumPy's function."""
    return math.sqrt(float(x @ x))


def rounding(size: Any, d: int) -> Any:
    """Bound the rounding of scores x·w + b of d features, of the size ‖x‖‖w‖ + |b|."""
    return 2.0 * EPS * (d + 2) * size


def _flat(
    loss: Loss, scores: Array, targets: Array, weight: Array | None, side: float, h: float
) -> float:
    """Return an h with side·F(b + side·h) > 0, that given or close to the least.

    Side 0 is both of them, where F is a straight line.
    """
    if side == 0:
        balance, slope, mass = loss.kernel.balance(scores, targets, weight, 0.0)
        return max(h, 1.5 * (abs(balance) + 1e-12 * mass) / slope)
    for _ in range(60):
        balance, slope, mass = loss.kernel.balance(scores, targets, weight, side * h)
        need = 1e-12 * mass + side * balance
        if need < 0:
            return h
        # A Newton step, but at most as far as eight steps by the factor 4.
        ahead = h + 1.5 * need / slope if slope > 0 else 0.0
        h = min(max(4.0 * h, ahead), 4.0**8 * h)
    return math.inf
