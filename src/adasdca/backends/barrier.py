"""Separable convex functions with a logarithmic barrier at their bounds and kinks.

The dual variables of the rows and the coefficients of the features are both of the form

    f(s) = Σ_k c_k (q/2 s_k² − t_k s_k + ε|s_k|),    lower ≤ s ≤ upper,

and an interior-point method asks the same of both. A variable is a sum of pieces

    s = offset + Σ ± p,    0 ≤ p ≤ width,

one above a finite bound or below it, two on either side of a kink at 0, none where it is free.
With multipliers λ of p ≥ 0, ν of p ≤ width, and a force a that is to equal f'(s)/c, a piece asks

    ±(q s − t − a) + cost − λ + ν = 0,    λp = τ/c,    ν(width − p) = τ/c,

whose linearisation gives Δs = h Δa + κ. (S. Mehrotra, "On the implementation of a primal-dual
interior point method", SIAM Journal on Optimization 2, 1992.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: A piece that is bounded on both sides begins so far from them, as a share of its width.
INSIDE = 0.1
#: The h of a variable that cannot move.
LEAST = 1e-150


class Barrier:
    """Variables s inside their bounds, with the multipliers of these.

    Parameters
    ----------
    weight : (m,) array
        c; a variable of weight 0 does not move.
    q, epsilon : float or (m,) array
        The curvature, and the size of the kink at 0.
    target : float or (m,) array
        t.
    lower, upper : float or (m,) array
        The bounds, infinite where there is none.
    """

    def __init__(
        self,
        weight: Array,
        q: float | Array,
        target: float | Array,
        epsilon: float | Array,
        lower: float | Array,
        upper: float | Array,
    ) -> None:
        m = len(weight)
        lower, upper = np.broadcast_to(lower, m), np.broadcast_to(upper, m)
        self.lower, self.upper = lower, upper
        moves = (weight > 0) & (lower < upper)
        self.weight, self.q, self.target = np.where(moves, weight, 1.0), q, target
        kink = (lower < 0) & (upper > 0) & (epsilon > 0)
        above = ~kink & np.isfinite(lower)
        below = ~kink & ~above & np.isfinite(upper)
        self.free = moves & ~(kink | above | below)
        self.offset = np.where(above, lower, np.where(below, upper, 0.0))
        # A bound on the far side of 0 keeps |s| straight.
        straight = epsilon * np.where(lower >= 0, 1.0, -1.0)
        has = moves & np.array([kink | above, kink | below])
        some = has.any(axis=1)
        self.has = has[some]
        self.sign = np.array([[1.0], [-1.0]])[some]
        self.width = np.where(
            self.has, np.array([upper - self.offset, self.offset - lower])[some], 1.0
        )
        self.cost = np.where(kink, epsilon, self.sign * straight)
        self.capped = self.has & np.isfinite(self.width)

    @property
    def count(self) -> int:
        """Number of products λp and ν(width − p)."""
        return int(np.count_nonzero(self.has) + np.count_nonzero(self.capped))

    def start(self, s: Array, force: Array, size: float | Array, tau: float) -> None:
        """Begin near s, no nearer to a bound than allowed.

        Parameters
        ----------
        s, force : (m,) array
            Values, and a.
        size : float or (m,) array
            The size of a value, where nothing bounds it.
        tau : float
            The products that the multipliers are to have at least, times c.
        """
        wanted = np.maximum(self.sign * (s - self.offset), 0.0)
        inside = np.clip(wanted, INSIDE * self.width, (1.0 - INSIDE) * self.width)
        self.p = np.where(self.capped, inside, np.maximum(wanted, size))
        self._room = np.where(self.capped, self.width - self.p, 1.0)
        self._unbounded = np.where(self.free, s, 0.0)
        self._add_up()
        pull = self.sign * (force - self.q * self.s + self.target) - self.cost
        least = tau / self.weight
        self.low = np.where(self.has, np.maximum(least / self.p, -pull), 0.0)
        self.high = np.where(self.capped, np.maximum(least / self._room, pull), 0.0)
        self._dp = self._dlow = self._dhigh = np.zeros_like(self.p)

    def _add_up(self) -> None:
        parts = np.where(self.has, self.sign * self.p, 0.0)
        s = self.offset + parts.sum(axis=0) + self._unbounded
        self.s = np.clip(s, self.lower, self.upper)

    def linearise(self, force: Array, tau: float, corrected: float) -> None:
        """Find h and κ of Δs = h Δa + κ.

        Parameters
        ----------
        force : (m,) array
            a.
        tau : float
            The products to go for, times c.
        corrected : float
            The share of the products of the step before, which began here, to take into account.
        """
        product = tau / self.weight
        of_low, of_high = corrected * self._dlow * self._dp, corrected * self._dhigh * self._dp
        self._rise = np.where(self.has, (product - of_low) / self.p - self.low, 0.0)
        self._fall = np.where(self.capped, (product + of_high) / self._room - self.high, 0.0)
        away = self.sign * (force - self.q * self.s + self.target) - self.cost
        self._right = away + self.low - self.high + self._rise - self._fall
        self._give = np.where(self.has, 1.0, 0.0) / (
            self.low / self.p + self.high / self._room + (~self.has)
        )
        give = self._give.sum(axis=0)
        constant = (self.sign * self._right * self._give).sum(axis=0)
        self.h = np.maximum(give / (1.0 + self.q * give), LEAST)
        self.kappa = constant / (1.0 + self.q * give)
        if self.free.any():
            q = np.broadcast_to(self.q, len(self.s))[self.free]
            self.h[self.free] = 1.0 / q
            self.kappa[self.free] = (force + self.target)[self.free] / q - self.s[self.free]

    def aim(self, ds: Array) -> float:
        """Choose the step; return the length at which a piece or a multiplier is 0."""
        pull = (ds - self.kappa) / self.h - self.q * ds
        self._dp = (self.sign * pull + self._right) * self._give
        self._ds = np.where(self.free, ds, 0.0)
        self._dlow = np.where(self.has, self._rise - self.low / self.p * self._dp, 0.0)
        self._dhigh = np.where(self.capped, self._fall + self.high / self._room * self._dp, 0.0)
        return min(
            _length(self.p, self._dp, self.has),
            _length(self.low, self._dlow, self.has),
            _length(self._room, -self._dp, self.capped),
            _length(self.high, self._dhigh, self.capped),
        )

    def products(self, length: float) -> float:
        """Return Σ c (λp + ν(width − p)) at a length along the step."""
        low, p, high, room = self.low, self.p, self.high, self._room
        if length > 0:
            low, p = low + length * self._dlow, p + length * self._dp
            high, room = high + length * self._dhigh, room - length * self._dp
        return float((self.weight * (low * p + high * room)).sum())

    def move(self, length: float) -> None:
        """Go along the step."""
        self.p = self.p + length * self._dp
        # Not from p, whose digits would hide it.
        self._room = np.where(self.capped, self._room - length * self._dp, 1.0)
        self.low = self.low + length * self._dlow
        self.high = self.high + length * self._dhigh
        self._unbounded = self._unbounded + length * self._ds
        self._add_up()


def _length(x: Array, dx: Array, which: NDArray[np.bool_]) -> float:
    """Return the length at which one of x + length·dx is 0."""
    falling = which & (dx < 0)
    return float((x[falling] / -dx[falling]).min(initial=np.inf))
