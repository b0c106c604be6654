"""The regulariser g of a problem, coordinate by coordinate.

    lam·Σ_j f_j (η/2 w_j² + (1 − η)|w_j|) = λ g(w),    lower ≤ w ≤ upper,    η = 1 − l1_ratio,

with penalty factors f_j ≥ 0, all 1 unless given. With some of the L2 term, λ = lam·η and
g(w) = Σ_j f_j (½w_j² + σ|w_j|) with σ = (1 − η)/η. Where all f_j > 0, g is 1-strongly convex in
the norm √(Σ_j f_j w_j²), and w = ∇g*(u) is a function of u. Without the L2 term λ = lam and
g(w) = Σ_j f_j|w_j|, whose conjugate is 0 on |u_j| ≤ f_j and infinite elsewhere. Where f_j = 0 only
the bounds are left, both finite, and the conjugate is their support function, the larger one of
u_j·lower_j and u_j·upper_j.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.errors import InputError, counted
from adasdca.problem.data import as_doubles

Array = NDArray[np.float64]
Bounds = tuple[Array, Array]


@dataclass(frozen=True)
class Regularizer:
    """What a solve needs of a regulariser.

    `value`, `primal`, `curvature`, `threshold` and `metric` are coordinatewise: one number for
    each feature, of that feature's numbers alone. `strength` and `feasible_share` gather them. A
    penalty on groups of features would keep `metric`, `strength` and `ascends`, and have a `value`,
    `primal` and `feasible_share` of vectors by group; in the second-order phase it enters by its
    Moreau envelope (`adasdca.newton.moreau`), whose curvature is then a block for each group
    instead of a diagonal. What the core asks is in core/math/regularizer.hpp.

    Attributes
    ----------
    scale : float
        λ: the dual point u is in units of 1/λ.
    eta : float
        1 with an L2 term, 0 without.
    sigma : float
        Weight of the L1 term in g.
    bounds : (lower, upper) or None
        Bounds of the coefficients, d numbers each.
    factors : (d,) array or None
        f, where they are not all 1.
    """

    scale: float
    eta: float
    sigma: float
    bounds: Bounds | None = None
    factors: Array | None = None

    @property
    def is_ridge(self) -> bool:
        """Whether g is ½‖w‖²."""
        return self.is_quadratic and self.factors is None

    @property
    def is_quadratic(self) -> bool:
        """Whether g is ½Σ f_j w_j², without kinks and walls."""
        return self.eta == 1.0 and self.sigma == 0.0 and self.bounds is None

    @property
    def ascends(self) -> bool:
        """Whether g* is smooth, as coordinate ascent needs it."""
        return self.eta > 0 and (self.factors is None or bool((self.factors > 0).all()))

    @property
    def curvature(self) -> float | Array:
        """Second derivative of g_j away from kinks and walls."""
        return self.eta if self.factors is None else self.eta * self.factors

    @property
    def threshold(self) -> float | Array:
        """Half the jump of g_j' at 0."""
        return self.sigma if self.factors is None else self.sigma * self.factors

    @property
    def metric(self) -> float | Array:
        """Units of a curvature of g_j: f_j, without an L2 term f_j², and 1 where that is 0."""
        return 1.0 if self.factors is None else self._units ** (1 if self.eta > 0 else 2)

    @property
    def _units(self) -> float | Array:
        return 1.0 if self.factors is None else np.where(self.factors > 0, self.factors, 1.0)

    @property
    def strength(self) -> float:
        """Modulus of strong convexity of λg in the Euclidean norm; 0 if some f_j is."""
        least = 1.0 if self.factors is None else float(self.factors.min())
        return self.scale * self.eta * least

    def value(self, w: Array) -> float:
        """Return g(w) within the bounds."""
        if self.factors is None:
            return 0.5 * self.eta * float(w @ w) + self.sigma * float(np.abs(w).sum())
        return float(self.factors @ (0.5 * self.eta * w * w + self.sigma * np.abs(w)))

    def feasible_share(self, u: Array) -> float:
        """Return the largest t ≤ 1, but for rounding, with a finite g*(t·u); 1 with an L2 term."""
        if self.eta > 0:
            return 1.0
        lower, upper = self.bounds or (np.full_like(u, -np.inf), np.full_like(u, np.inf))
        relative = u / self._units
        up = np.where(np.isinf(upper), relative, 0.0).max(initial=0.0)
        down = np.where(np.isinf(lower), -relative, 0.0).max(initial=0.0)
        most = max(float(up), float(down))
        # Aimed a little lower than is asked for: the multiple of u is rounded.
        return 1.0 if most < self.sigma * (1.0 - 1e-12) else self.sigma * (1.0 - 2e-12) / most

    def nearest_feasible(self, u: Array, room: float | Array = 0.0) -> Array:
        """Return the point nearest to u where g* is finite without an L2 term.

        That of a σ smaller by a share.
        """
        threshold = (1.0 - room) * self.threshold
        lower, upper = self.bounds or (-np.inf, np.inf)
        low = np.where(np.isinf(lower), -threshold, -np.inf)
        return np.clip(u, low, np.where(np.isinf(upper), threshold, np.inf))

    def nearest_slope(self, w: Array, u: Array) -> Array:
        """Return the point of ∂g(w) that is nearest to u."""
        inner, threshold = self.curvature * w, self.threshold
        low = inner + np.where(w > 0, threshold, -threshold)
        high = inner + np.where(w < 0, -threshold, threshold)
        if self.bounds is not None:
            low = np.where(w <= self.bounds[0], -np.inf, low)
            high = np.where(w >= self.bounds[1], np.inf, high)
        return np.clip(u, low, high)

    def primal(self, u: Array) -> Array:
        """Return ∇g*(u), the w that belongs to u; without an L2 term, 0 where |u_j| ≤ σf_j."""
        if self.is_ridge:
            return np.array(u)
        w = np.sign(u) * np.maximum(np.abs(u) - self.threshold, 0.0)
        if self.factors is not None:
            w /= self._units
            w[(self.factors == 0) & (w != 0)] *= np.inf
        return w if self.bounds is None else np.clip(w, *self.bounds)


def check_factors(factors: Any, d: int, bounds: Bounds | None) -> Array | None:
    """Return d penalty factors, or None where all are 1."""
    if factors is None:
        return None
    name = "penalty_factors"
    values = np.ascontiguousarray(as_doubles(factors, name))
    if values.shape != (d,):
        raise InputError(
            f"{name} has shape {values.shape}, but X has {counted(d, 'column')}: pass "
            f"{counted(d, 'number')}, one for each feature."
        )
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        j = int(bad[0])
        raise InputError(
            f"{name}[{j}] = {float(values[j])!r} is not allowed; choose a finite number, 0 or "
            "more. To keep a feature out, leave its column out of X."
        )
    lower, upper = bounds or (np.full(d, -math.inf), np.full(d, math.inf))
    free = np.flatnonzero((values == 0) & ~(np.isfinite(lower) & np.isfinite(upper)))
    if len(free):
        j = int(free[0])
        raise InputError(
            f"{name}[{j}] = 0 leaves feature {j} without a penalty, and its bounds are "
            f"({lower[j]:g}, {upper[j]:g}): no gap can be certified then. Give it finite bounds on "
            "both sides (bounds), or a small factor such as 1e-6; for a "
            "constant column, drop it and pass fit_intercept=True."
        )
    return None if (values == 1.0).all() else values
