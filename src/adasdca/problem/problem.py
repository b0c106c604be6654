"""The frozen problem: rows, targets, weights, loss and regulariser, all checked.

    P(w, b) = (1/N) Σ_i c_i φ(x_i·w + b; y_i)
              + lam·Σ_j f_j ((1 − l1_ratio)/2 w_j² + l1_ratio |w_j|),

lower ≤ w ≤ upper, with N = Σ c_i the sum of the sample weights, and penalty factors f_j, all 1
unless given.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.errors import InputError
from adasdca.problem.data import (
    CsrRows,
    Rows,
    as_doubles,
    check_rows,
    check_targets,
    check_weights,
    is_number,
)
from adasdca.problem.device_rows import device_targets, is_on_device
from adasdca.problem.losses import Loss, get_loss
from adasdca.problem.regularizers import Regularizer, check_factors

Array = NDArray[np.float64]


class ScaleError(InputError):
    """The squares of the rows are beyond double precision."""

    argument = "X"


@dataclass(frozen=True)
class Problem:
    """A regularised risk to be minimised; make one with `Problem.checked`.

    Attributes
    ----------
    rows, y, weight, loss, lam, l1_ratio
        The objective.
    bounds : (lower, upper) or None
        Bounds of the coefficients, an array each.
    fit_intercept : bool
        Whether b is free; it is 0 otherwise.
    constant : float
        The value of the last column of `rows` if that is not the user's but stands for a penalised
        intercept; 0 if there is none.
    penalty_factors : (d,) array or None
        f, where they are not all 1.
    whole : float or None
        N, where the rows are a part of a problem's.
    """

    rows: Rows
    y: Array
    weight: Array | None
    loss: Loss
    lam: float
    l1_ratio: float
    bounds: tuple[Array, Array] | None
    fit_intercept: bool
    constant: float = 0.0
    penalty_factors: Array | None = None
    whole: float | None = None

    @classmethod
    def checked(
        cls,
        X: Any,
        y: Any,
        *,
        loss: str | Loss,
        lam: float,
        l1_ratio: float = 0.0,
        bounds: Any = None,
        penalty_factors: Any = None,
        sample_weight: Any = None,
        fit_intercept: bool = False,
        intercept_scaling: float | None = None,
        device: bool = False,
        stays: bool = False,
    ) -> Problem:
        """Check every argument; errors name the argument, its value and the remedy.

        Rows on a CUDA device are taken where `device`, for a backend that finds them there, and
        targets that are there stay there where `stays`.
        """
        loss = get_loss(loss)
        lam, l1_ratio = check_terms(lam, l1_ratio, fit_intercept)
        rows = check_rows(X, device)
        n, d = rows.shape
        limits = check_bounds(bounds, d)
        factors = check_factors(penalty_factors, d, limits)
        constant = 0.0
        if intercept_scaling is not None:
            constant = check_scaling(intercept_scaling, fit_intercept, rows.values.dtype)
            rows = rows.with_constant(constant)
            if limits is not None:
                limits = np.append(limits[0], -math.inf), np.append(limits[1], math.inf)
            if factors is not None:
                factors = np.append(factors, 1.0)
        targets = None
        if stays and is_on_device(y) and sample_weight is None:
            targets = device_targets(y, n, loss.kind)
        targets = check_targets(y, n, loss.kind) if targets is None else targets
        weight = check_weights(sample_weight, n)
        if weight is not None and loss.kind == "classification":
            for label in (-1.0, 1.0):
                if not weight[targets == label].any():
                    raise InputError(
                        f"sample_weight is 0 on all rows of class {label:g}; a classification loss "
                        "needs both classes."
                    )
        check_range(lam, l1_ratio, n if weight is None else float(weight.sum()), factors)
        free = bool(fit_intercept) and not constant
        return cls(rows, targets, weight, loss, lam, l1_ratio, limits, free, constant, factors)

    def split(self, coef: Array, intercept: float) -> tuple[Array, float]:
        """Return the coefficients of X as given, and the intercept, penalised or not."""
        if not self.constant:
            return coef, intercept
        return coef[:-1], self.constant * float(coef[-1])

    def joined(self, coef: Array, intercept: float) -> tuple[Array, float]:
        """Return what `split` makes these of."""
        if not self.constant:
            return coef, intercept
        return np.append(coef, intercept / self.constant), 0.0

    def restrict(self, features: NDArray[np.intp]) -> Problem:
        """Return the problem on some of the features."""
        bounds, factors = self.bounds, self.penalty_factors
        return replace(
            self,
            rows=self.rows.take_columns(features),
            bounds=None if bounds is None else (bounds[0][features], bounds[1][features]),
            penalty_factors=None if factors is None else factors[features],
            constant=0.0,  # what a part of the features is told as is no model
        )

    def part(self, first: int, last: int) -> Problem:
        """Return the problem on neighbouring rows, with the N of all."""
        y, weight = self.y[first:last], None if self.weight is None else self.weight[first:last]
        rows = self.rows.part(first, last)
        return replace(self, rows=rows, y=y, weight=weight, whole=self.total)

    def without_rows(self) -> Problem:
        """Return the problem for one whose rows are somewhere else."""
        rows = CsrRows.none(self.rows.shape[1])
        return replace(self, rows=rows, y=np.empty(0), weight=None, whole=self.total)

    def check_scale(self, largest: float) -> None:
        """Refuse rows the largest of whose c_i‖x_i‖²/(λN) is not finite."""
        if not math.isfinite(largest):
            raise ScaleError(
                f"X: a row's squared norm over lam·N (lam = {self.lam:g}) overflows; scale the "
                "features to about 1 or choose a larger lam"
                + (" or larger penalty_factors." if self.penalty_factors is not None else ".")
            )

    @cached_property
    def regularizer(self) -> Regularizer:
        """λ and g, of which the penalty is the product."""
        eta = 1.0 - self.l1_ratio
        if eta == 0:
            return Regularizer(self.lam, 0.0, 1.0, self.bounds, self.penalty_factors)
        sigma = self.l1_ratio / eta
        return Regularizer(self.lam * eta, 1.0, sigma, self.bounds, self.penalty_factors)

    @property
    def resting_intercept(self) -> float | None:
        """An intercept with which no row has a loss at w = 0: P is 0 there. None without one."""
        loss, y = self.loss, self.y
        if not self.fit_intercept or loss.kind != "regression" or len(y) == 0:
            return None
        if self.weight is not None:
            y = y[self.weight > 0]
        if abs(y[0] - y[-1]) > 2.0 * loss.dead_zone:
            return None
        low, high = float(y.min()), float(y.max())
        middle = low + 0.5 * (high - low)
        at_zero = not self.regularizer.primal(np.zeros(self.rows.shape[1])).any()
        inside = max(middle - low, high - middle) <= loss.dead_zone
        return middle if inside and at_zero else None

    @property
    def strength(self) -> float:
        """The modulus of strong convexity; 0 without an L2 term on every feature."""
        return self.regularizer.strength

    @property
    def mu(self) -> float:
        """λN."""
        return self.regularizer.scale * self.total

    @cached_property
    def total(self) -> float:
        """N: the sum of the weights."""
        if self.whole is not None:
            return self.whole
        return float(self.rows.shape[0] if self.weight is None else math.fsum(self.weight))


def check_terms(lam: Any, l1_ratio: Any, fit_intercept: Any) -> tuple[float, float]:
    """Check what no row is needed for; return lam and l1_ratio."""
    lam = check_number("lam", lam, 0.0, math.inf, "a finite number above 0", open_low=True)
    top = math.nextafter(1.0, 2.0)
    l1_ratio = check_number("l1_ratio", l1_ratio, 0.0, top, "0 <= l1_ratio <= 1")
    if not isinstance(fit_intercept, (bool, np.bool_)):
        raise InputError(f"fit_intercept = {fit_intercept!r} is not allowed; choose True or False.")
    return lam, l1_ratio


def check_range(lam: float, l1_ratio: float, total: float, factors: Array | None) -> None:
    """Refuse λN, and multiples of it by factors, that double precision cannot hold."""
    size = lam * ((1.0 - l1_ratio) or 1.0) * total
    if not 1e-290 < size < 1e290:
        raise InputError(
            f"lam = {lam!r} times 1 - l1_ratio times the sum of the weights is {size:g}, "
            "beyond double precision; choose lam nearer to 1."
        )
    if factors is None:
        return
    far = np.flatnonzero((factors > 0) & ~((factors > 1e-290 / size) & (factors < 1e290 / size)))
    if len(far):
        j = int(far[0])
        raise InputError(
            f"penalty_factors[{j}] = {float(factors[j])!r} times lam times 1 - l1_ratio times the "
            f"sum of the weights, {size:g}, is beyond double precision; choose a factor nearer to "
            "1."
        )


def check_number(
    name: str, value: Any, low: float, high: float, remedy: str, *, open_low: bool = False
) -> float:
    """Return a real number in [low, high) as a float."""
    ok = is_number(value) and (low < value if open_low else low <= value) and value < high
    if not ok:
        raise InputError(f"{name} = {value!r} is not allowed; choose {remedy}.")
    return float(value)


def check_count(name: str, value: Any, least: int, most: float = math.inf) -> int:
    """Return an integer in [least, most]."""
    try:
        count = operator.index(value)
    except TypeError:
        count = least - 1
    if not least <= count <= most or isinstance(value, bool):
        end = f"{least} or more" if most == math.inf else f"{least} to {most}"
        raise InputError(f"{name} = {value!r} is not allowed; choose an integer of {end}.")
    return count


def check_scaling(intercept_scaling: Any, fit_intercept: bool, dtype: np.dtype[Any]) -> float:
    """Return the constant of a penalised intercept as it is in a column of that dtype."""
    value = check_number(
        "intercept_scaling",
        intercept_scaling,
        0.0,
        math.inf,
        "a finite number above 0, or None for an intercept that is not penalised",
        open_low=True,
    )
    if not fit_intercept:
        raise InputError(
            f"intercept_scaling = {intercept_scaling!r}, but fit_intercept is False: there is no "
            "intercept to scale. Pass fit_intercept=True, or intercept_scaling=None."
        )
    with np.errstate(over="ignore", under="ignore"):
        constant = float(dtype.type(value))
    if not 0 < constant < math.inf:
        raise InputError(
            f"intercept_scaling = {intercept_scaling!r} is {constant:g} in {dtype}, the dtype of "
            "X; choose a number nearer to 1."
        )
    return constant


def check_bounds(bounds: Any, d: int) -> tuple[Array, Array] | None:
    """Return lower and upper bounds of length d, or None for none at all."""
    if bounds is None:
        return None
    try:
        low, high = bounds
    except (TypeError, ValueError) as error:
        raise InputError(
            f"bounds = {bounds!r} is not a pair; pass (lower, upper), each a number, None or an "
            f"array of {d} numbers, e.g. bounds=(0, None) for non-negative coefficients."
        ) from error
    sides = []
    for name, side, default in (("lower", low, -math.inf), ("upper", high, math.inf)):
        values = as_doubles(default if side is None else side, f"bounds: the {name} bound")
        if values.ndim > 1 or (values.ndim == 1 and len(values) != d) or np.isnan(values).any():
            raise InputError(
                f"bounds: the {name} bound must be a number, None or {d} numbers without NaN, "
                f"got {side!r}."
            )
        sides.append(np.ascontiguousarray(np.broadcast_to(values, (d,))))
    lower, upper = sides
    if (lower > upper).any() or np.isposinf(lower).any() or np.isneginf(upper).any():
        raise InputError(f"bounds = {bounds!r}: the lower bound must not be above the upper one.")
    return lower, upper
