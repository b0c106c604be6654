"""The penalty of a second-order step: a regulariser, with its kinks rounded where it has any.

An L1 term has a kink at 0, and a bound is an infinite step. With a stiffness ρ about a point u⁰ the
regulariser is replaced by its Moreau envelope

    E(v) = min_w g(w) + u⁰·(v − w) + ρ/2 ‖v − w‖²,    E*(u) = g*(u) + ‖u − u⁰‖²/(2ρ),

which is smooth in v. The dual is that of g with a proximal term ‖u − u⁰‖²/(2ρ).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from adasdca.newton.line import Line, Slope, StraightLine
from adasdca.problem.device_rows import to_host

Array = NDArray[np.float64]


class PenaltyAt(NamedTuple):
    """What a penalty is at some v."""

    w: Array  #: The coefficients that belong to v.
    gradient: Array  #: ∇E(v).
    curvature: float | Array  #: ∇²E(v), its diagonal.


class Penalty(Protocol):
    """A smooth convex E."""

    def at(self, v: Array) -> PenaltyAt:
        """Return what E is at v."""

    def secant(self, at: PenaltyAt, residual: Array) -> float | Array:
        """Return the curvature, up to where ∇E(v) has risen by the residual, for the next step."""

    def along(self, v: Array, dv: Array) -> Line:
        """Return the slope of E along v + length·dv."""

    def excess(self, residual: Array) -> float:
        """Bound E(v) + E*(u) − u·v by u − ∇E(v), for feasible u."""

    def violation(self, residual: Array) -> float:
        """Return the share to take off the duals to make u feasible."""


@dataclass(frozen=True)
class Ridge:
    """g(w) = ½Σ η_j w_j², all η_j > 0, which has no kinks: E is g itself."""

    eta: float | Array = 1.0

    def excess(self, residual: Array) -> float:
        """Bound E(v) + E*(u) − u·v by u − ∇E(v)."""
        return 0.5 * float((residual / self.eta) @ residual)

    def violation(self, residual: Array) -> float:
        """Every u is feasible."""
        return 0.0

    def at(self, v: Array) -> PenaltyAt:
        return PenaltyAt(v, self.eta * v, self.eta)

    def secant(self, at: PenaltyAt, residual: Array) -> float | Array:
        """Return the curvature: it is the same everywhere."""
        return at.curvature

    def along(self, v: Array, dv: Array) -> StraightLine:
        stiff = self.eta * dv
        return StraightLine(*inner_products((v, stiff), (stiff, dv), (abs(v), abs(stiff))))


@dataclass(frozen=True)
class ElasticBox:
    """g(w) = Σ η_j/2 w_j² + σ_j|w_j| between bounds, rounded about u⁰ with a stiffness ρ_j each.

    Where η_j = σ_j = 0 both bounds are finite.
    """

    eta: float | Array
    sigma: float | Array
    lower: float | Array
    upper: float | Array
    centre: Array
    rho: Array

    def excess(self, residual: Array) -> float:
        """Bound E(v) + E*(u) − u·v by u − ∇E(v)."""
        eta = np.asarray(self.eta)
        inverse = 1.0 / self.rho + np.divide(1.0, eta, out=np.zeros_like(eta), where=eta > 0)
        lost = 0.5 * float((residual * inverse) @ residual)
        free = np.broadcast_to((eta == 0) & (np.asarray(self.sigma) == 0), residual.shape)
        if free.any():
            # With bounds alone g* has a kink at 0, and its slope changes there by their distance.
            width = np.broadcast_to(np.subtract(self.upper, self.lower), residual.shape)
            lost += float(np.abs(residual[free]) @ width[free])
        return lost

    def violation(self, residual: Array) -> float:
        """Without an L2 term E* is infinite beyond σ: return the share to take off the duals."""
        bare = np.asarray((self.eta == 0) & (np.asarray(self.sigma) > 0))
        if not bare.any():
            return 0.0
        beyond = np.abs(residual) * bare
        return float((beyond / np.where(bare, self.sigma + beyond, 1.0)).max(initial=0.0))

    def at(self, v: Array) -> PenaltyAt:
        y = self.centre + self.rho * v
        stiff = self.eta + self.rho
        shrunk = np.copysign(np.maximum(np.abs(y) - self.sigma, 0.0), y) / stiff
        w = np.clip(shrunk, self.lower, self.upper)
        free = (w == shrunk) & ((w != 0) | (np.asarray(self.sigma) == 0))
        # The second form would lose digits where the first one holds.
        p = np.where(free, self.eta * w + self.sigma * np.sign(w), y - self.rho * w)
        return PenaltyAt(w, p, np.where(free, self.rho * self.eta / stiff, self.rho))

    def secant(self, at: PenaltyAt, residual: Array) -> Array:
        """Return the curvature, up to where ∇E(v) has risen by the residual.

        A coefficient has the curvature of E up to the next kink, and ρ beyond it. Where no row has
        curvature, nothing else limits a step: one coefficient moved by 1e80, and the line search
        kept all others where they were (raw pixels, logistic loss, L1 term: a gap of 1). As the
        residual vanishes the secant becomes the curvature of E.
        """
        w, rises, size = at.w, residual > 0, np.abs(residual)
        kinked = np.asarray(self.sigma) > 0
        upper = np.where(kinked & (w < 0), np.minimum(self.upper, 0.0), self.upper)
        lower = np.where(kinked & (w > 0), np.maximum(self.lower, 0.0), self.lower)
        end = np.where(rises, upper, lower)
        ends = np.abs(end) < np.inf
        room = np.abs(np.where(ends, end, w) - w) * (1.0 + self.eta / self.rho)
        beyond = size - at.curvature * room
        crosses = ends & (at.curvature < self.rho) & (beyond > 0)
        reach = np.where(crosses, room + beyond / self.rho, 1.0)
        return np.where(crosses, size / reach, at.curvature)

    def along(self, v: Array, dv: Array) -> Line:

        def slope(length: float) -> Slope:
            at = self.at(v + length * dv)
            return Slope(
                float(at.gradient @ dv),
                float((at.curvature * dv) @ dv),
                float(np.abs(at.gradient) @ np.abs(dv)),
            )

        return slope


def inner_products(*pairs: tuple[Any, Any]) -> list[float]:
    """Return inner products; those of a device are waited for once."""
    found: Any = [a @ b for a, b in pairs]
    if isinstance(found[0], float):
        return list(map(float, found))
    return list(to_host(np.stack(found)).tolist())
