"""The regulariser g of a problem, coordinate by coordinate.

    lam·(η/2 ‖w‖² + (1 − η) ‖w‖₁) = λ g(w),    lower ≤ w ≤ upper,    η = 1 − l1_ratio.

With some of the L2 term, λ = lam·η and g(w) = ½‖w‖² + σ‖w‖₁ with σ = (1 − η)/η: g is 1-strongly
convex, and w = ∇g*(u) is a function of u. Without it λ = lam and g(w) = ‖w‖₁, whose conjugate is 0
on |u_j| ≤ 1 and infinite elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Regularizer:
    """What a solve needs of a regulariser.

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
    """

    scale: float
    eta: float
    sigma: float
    bounds: tuple[Array, Array] | None = None

    @property
    def is_ridge(self) -> bool:
        """Whether g is ½‖w‖²."""
        return self.eta == 1.0 and self.sigma == 0.0 and self.bounds is None

    @property
    def strength(self) -> float:
        """Modulus of strong convexity of λg."""
        return self.scale * self.eta

    def value(self, w: Array) -> float:
        """Return g(w) within the bounds."""
        return 0.5 * self.eta * float(w @ w) + self.sigma * float(np.abs(w).sum())

    def feasible_share(self, u: Array, blur: float = 0.0) -> float:
        """Return a t ≤ 1, nearly the largest, with a finite g*(t·u); 1 with an L2 term.

        Parameters
        ----------
        u : (d,) array
            The dual point.
        blur : float
            How far that of rounded multiples of the duals can be from the multiple of u.
        """
        if self.eta > 0:
            return 1.0
        lower, upper = self.bounds or (np.full_like(u, -np.inf), np.full_like(u, np.inf))
        up = np.where(np.isinf(upper), u, 0.0).max(initial=0.0)
        down = np.where(np.isinf(lower), -u, 0.0).max(initial=0.0)
        most = max(float(up), float(down)) + blur
        return min(1.0, self.sigma * (1.0 - 1e-12) / most) if most > 0 else 1.0

    def primal(self, u: Array) -> Array:
        """Return ∇g*(u), the w that belongs to u; without an L2 term, 0 where |u_j| ≤ σ."""
        w = np.sign(u) * np.maximum(np.abs(u) - self.sigma, 0.0)
        return w if self.bounds is None else np.clip(w, *self.bounds)
