"""The losses in array operations, for arrays of NumPy or of a device.

The formulas are those of core/math/loss.hpp, in the coordinates of a row: z = y·score, b = yβ and
t = 1 for classification, z = score, b = β and t = y for regression.
"""

from __future__ import annotations

import math
from typing import Any

from adasdca.problem.losses import Logistic, Loss, PiecewiseQuadratic

#: −log of the least s = −φ' that the excess of the logistic loss divides by.
TINY, FAR = 1e-300, 690.7755278982137


class PiecewiseFormulas:
    """The losses that are four numbers.

    Parameters
    ----------
    xp : module
        `numpy`, or one that is like it.
    loss : PiecewiseQuadratic
        The loss.
    """

    def __init__(self, xp: Any, loss: PiecewiseQuadratic) -> None:
        self.xp = xp
        self.gamma, self.epsilon = loss.smoothness, loss.dead_zone
        self.lower, self.upper = loss.domain

    def _best(self, s: Any, h: float) -> Any:
        """Return the b within the bounds that maximises s b − ε|b| − h b²/2."""
        xp = self.xp
        shrunk = xp.maximum(xp.abs(s) - self.epsilon, 0.0)
        if h > 0:
            return xp.clip(xp.copysign(shrunk, s) / h, self.lower, self.upper)
        rest = min(max(0.0, self.lower), self.upper)
        return xp.where(shrunk > 0, xp.where(s > 0, self.upper, self.lower), rest)

    def _inside(self, b: Any) -> Any:
        """Whether b is strictly inside the domain and off the dead zone."""
        inside = (b > self.lower) & (b < self.upper)
        return inside & (b != 0) if self.epsilon > 0 else inside

    def ascent(self, z: Any, t: Any, length: float = 0.0, centre: Any = 0.0) -> Any:
        """Return −φ', with kinks rounded over a length about a centre."""
        s = t - z if length == 0 else t - z + length * centre
        return self._best(s, self.gamma + length)

    def curvature(self, b: Any, length: float = 0.0) -> Any:
        """Return φ'' where −φ' = b."""
        bend = self.gamma + length
        return self._inside(b) * (1.0 / bend if bend > 0 else 0.0)

    def value(self, z: Any, t: Any) -> Any:
        """Return φ."""
        b = self.ascent(z, t)
        return (t - z) * b - self.epsilon * self.xp.abs(b) - 0.5 * self.gamma * b * b

    def excess(self, z: Any, b: Any, t: Any) -> Any:
        """Return φ + φ*(−b) + z b as a sum of terms that are never negative."""
        xp, s = self.xp, self.ascent(z, t)
        apart = s - b
        sign = xp.copysign(1.0, xp.where(s != 0, s, b))
        slack = t - z - self.epsilon * sign - self.gamma * s
        outward = xp.where(self._inside(s), 0.0, xp.maximum(slack * apart, 0.0))
        value = 0.5 * self.gamma * apart * apart + outward
        if self.epsilon > 0:
            value = value + self.epsilon * (xp.abs(b) - b * sign)
        return xp.where((b >= self.lower) & (b <= self.upper), value, math.inf)

    def variation(self, z: Any, t: Any, delta: Any) -> Any:
        """Bound the change of φ' over z ± δ."""
        return self.ascent(z - delta, t) - self.ascent(z + delta, t)


class LogisticFormulas:
    """log(1 + exp(−z)).

    Parameters
    ----------
    xp : module
        `numpy`, or one that is like it.
    """

    gamma, epsilon, lower, upper = 4.0, 0.0, 0.0, 1.0

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def ascent(self, z: Any, t: Any, length: float = 0.0, centre: Any = 0.0) -> Any:
        """Return −φ'; there are no kinks to round."""
        xp = self.xp
        e = xp.exp(-xp.abs(z))
        return xp.where(z > 0, e, 1.0) / (1.0 + e)

    def curvature(self, b: Any, length: float = 0.0) -> Any:
        """Return φ'' where −φ' = b."""
        return b * (1.0 - b)

    def value(self, z: Any, t: Any) -> Any:
        """Return φ."""
        xp = self.xp
        return xp.maximum(-z, 0.0) + xp.log1p(xp.exp(-xp.abs(z)))

    def excess(self, z: Any, b: Any, t: Any) -> Any:
        """Return the Kullback–Leibler divergence of b from s = −φ'.

        As s f((b − s)/s) + (1 − s) f((s − b)/(1 − s)) with f(x) = (1 + x) log(1 + x) − x ≥ 0.
        """
        xp = self.xp
        s, rest = xp.maximum(self.ascent(z, t), TINY), xp.maximum(self.ascent(-z, t), TINY)
        beyond = b * xp.maximum(z - FAR, 0.0) + (1.0 - b) * xp.maximum(-z - FAR, 0.0)
        apart = xp.where(s <= 0.5, b - s, rest - (1.0 - b))
        value = s * self._entropy(apart / s) + rest * self._entropy(-apart / rest) + beyond
        return xp.where((b >= 0) & (b <= 1), value, math.inf)

    def _entropy(self, x: Any) -> Any:
        xp = self.xp
        one = xp.maximum(1.0 + x, TINY)
        lost, log = x - (one - 1.0), xp.log(one)  # what the rounding of 1 + x took
        direct = xp.maximum(one * log + lost * log - (x - lost), 0.0)
        near = xp.clip(x, -0.03, 0.03)
        series = 1.0 / 56
        for k in (42, 30, 20, 12, 6, 2):
            series = 1.0 / k - near * series
        return xp.where(xp.abs(x) < 0.03, near * near * series, direct)

    def variation(self, z: Any, t: Any, delta: Any) -> Any:
        """Bound the change of φ' over z ± δ."""
        return 0.5 * delta


Formulas = PiecewiseFormulas | LogisticFormulas


def formulas(xp: Any, loss: Loss) -> Formulas:
    """Return the formulas of a loss; a loss outside the families is refused."""
    if isinstance(loss, Logistic):
        return LogisticFormulas(xp)
    if isinstance(loss, PiecewiseQuadratic):
        return PiecewiseFormulas(xp, loss)
    raise ValueError(
        f"loss = {loss!r} is neither logistic nor piecewise quadratic, and this backend knows no "
        "other; leave out backend=, or derive the loss from PiecewiseQuadratic."
    )
