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

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: A piece that is bounded on both sides begins so far from them, as a share of its width.
INSIDE = 0.1
#: The h of a variable that cannot move.
LEAST = 1e-150
#: Products so many times as large or as small as the others are outliers (J. Gondzio, "Multiple
#: centrality corrections in a primal-dual method for linear programming", Computational
#: Optimization and Applications 6, 1996).
OUTLYING = 10.0


class Step(NamedTuple):
    """Moves of pieces x and of their multipliers y, as shares of these, and of s.

    With them, the products that they lead to as far as these are linear, in units of those where
    the step begins.
    """

    x: Array
    y: Array
    wanted: Array
    s: Array


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
        has = has[some]
        self.sign = np.array([[1.0], [-1.0]])[some]
        width = np.where(has, np.array([upper - self.offset, self.offset - lower])[some], 1.0)
        self.cost = np.where(kink, epsilon, self.sign * straight)
        # Of every piece p, and then, of those that may meet another bound, width − p.
        capped = has & np.isfinite(width)
        self._capped = np.flatnonzero(capped.any(axis=1))
        self._pieces, self._has = len(has), has.astype(np.float64)
        self._width, self._is_capped = width, capped
        held = np.concatenate([has, capped[self._capped]])
        self.count = int(np.count_nonzero(held))
        self._share, self._hole = held / self.weight, 1.0 - held

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
        width = np.where(self._is_capped, self._width, np.inf)
        p = np.where(
            self._is_capped,
            np.clip(wanted, INSIDE * self._width, (1.0 - INSIDE) * self._width),
            np.maximum(wanted, size),
        )
        room = (width - p)[self._capped]
        self._x = np.where(self._hole, 1.0, np.concatenate([p, room]))
        self.s = self._added_up(np.where(self.free, s, self.offset + self._sum()))
        pull = self._pull(force)
        least = np.concatenate([-pull, pull[self._capped]])
        self._y = np.where(self._hole, 0.0, np.maximum(tau * self._share / self._x, least))

    def _sum(self) -> Array:
        parts: Array = (self._has * self.sign * self._x[: self._pieces]).sum(axis=0)
        return parts

    def _added_up(self, moved: Array) -> Array:
        """Return s, of values that have moved along.

        What has pieces from 0 on is their sum. Other pieces have not the digits of a value near 0.
        """
        s = np.where(self.free | (self.offset != 0), moved, self._sum())
        return np.asarray(np.clip(s, self.lower, self.upper))

    def _pull(self, force: Array) -> Array:
        """Return what pulls the pieces up, the multipliers apart."""
        pull: Array = self.sign * (force - self.q * self.s + self.target) - self.cost
        return pull

    def _netted(self, values: Array) -> Array:
        """Return values of the pieces, less those of what is left above them."""
        net: Array = values[: self._pieces].copy()
        net[self._capped] -= values[self._pieces :]
        return net

    def linearise(self, force: Array) -> None:
        """Find h and κ of Δs = h Δa + κ, for a step that leads all products to 0.

        Parameters
        ----------
        force : (m,) array
            a.
        """
        stiff = self._y / self._x
        stiff[self._capped] += stiff[self._pieces :]
        self._give = self._has / (stiff[: self._pieces] + (1.0 - self._has))
        give = self._give.sum(axis=0)
        self.h = np.maximum(give / (1.0 + self.q * give), LEAST)
        if self.free.any():
            self.h[self.free] = 1.0 / np.broadcast_to(self.q, len(self.s))[self.free]
        self._force, self._away = force, self._pull(force)
        self._unit = self._share / (self._x * self._y + self._hole)
        self._want(self._hole)

    def _want(self, products: Array) -> None:
        """Let the next step lead to these products, in units of those here."""
        self._wanted = products
        self._right = self._away + self._netted(products * self._y)
        give = self._give.sum(axis=0)
        constant = (self.sign * self._right * self._give).sum(axis=0)
        self.kappa = constant / (1.0 + self.q * give)
        if self.free.any():
            pull = (self._force + self.target)[self.free]
            self.kappa[self.free] = pull * self.h[self.free] - self.s[self.free]

    def correct(self, tau: float) -> None:
        """Go for products τ/c, and take those of the step's own moves into account."""
        step = self._step
        self._want(self._hole + tau * self._unit - step.x * step.y)

    def centre(self, tau: float, length: float) -> None:
        """Go for products that are no outliers at a length along the step."""
        step, wanted = self._step, tau * self._unit
        there = (1.0 + length * step.x) * (1.0 + length * step.y)
        most = OUTLYING * wanted
        # (Large ones are taken back by no more than they may be.)
        back = np.maximum(np.clip(there, wanted / OUTLYING, most) - there, -most)
        self._want(step.wanted + back)

    def aim(self, ds: Array) -> None:
        """Choose the next step."""
        pull = (ds - self.kappa) / self.h - self.q * ds
        dp = (self.sign * pull + self._right) * self._give
        # Together the pieces move as s does, which the digits of a pull may not show.
        give = self._give.sum(axis=0)
        rest = np.divide(
            ds - (self.sign * dp).sum(axis=0), give, out=np.zeros_like(ds), where=give > 0
        )
        dp += self.sign * self._give * rest
        x = np.concatenate([dp, -dp[self._capped]]) / self._x
        self._next = Step(x, self._wanted - 1.0 - x, self._wanted, ds)

    def reach(self, share: float) -> float:
        """Return the length at which a piece or a multiplier is 0.

        That is along a mixture of two steps, the last one and, with this share, the next one.
        """
        new = self._next
        if share == 1.0:
            least = min(new.x.min(initial=0.0), new.y.min(initial=0.0))
        else:
            old = self._step
            least = min(
                (old.x + share * (new.x - old.x)).min(initial=0.0),
                (old.y + share * (new.y - old.y)).min(initial=0.0),
            )
        return -1.0 / float(least) if least < 0 else math.inf

    def mix(self, share: float) -> None:
        """Take this mixture as the step."""
        if share == 1.0:
            self._step = self._next
        else:
            pairs = zip(self._step, self._next, strict=True)
            self._step = Step(*(old + share * (new - old) for old, new in pairs))

    def products(self, length: float) -> float:
        """Return Σ c (λp + ν(width − p)) at a length along the step."""
        x, y = self._x, self._y
        if length > 0:
            x, y = x * (1.0 + length * self._step.x), y * (1.0 + length * self._step.y)
        return float(np.einsum("j,ij,ij", self.weight, x, y))

    def move(self, length: float) -> None:
        """Go along the step."""
        step = self._step
        # What is left above a piece is not taken from it, whose digits would hide it.
        self._x = self._x * (1.0 + length * step.x)
        self._y = self._y * (1.0 + length * step.y)
        self.s = self._added_up(self.s + length * step.s)
