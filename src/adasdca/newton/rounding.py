"""The regulariser of a problem with its kinks rounded, about the u at hand.

An L1 term has a kink at 0, bounds have a wall each. Rounded with a stiffness ρ they become

    E(v) = min_w g(w) + u⁰·(v − w) + ρ/2 ‖v − w‖²,    E*(u) = g*(u) + ‖u − u⁰‖²/(2ρ),

smooth in v; the dual is that of g with a term that holds u near u⁰, as γ holds the duals of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adasdca.problem.problem import Problem

Array = NDArray[np.float64]


@dataclass
class Place:
    """What the regulariser says at some v: the w that belongs to it, ∇E, and its curvatures."""

    w: Array
    p: Array
    curvature: float | Array


class Ridge:
    """g(w) = ½‖w‖², which has no kinks."""

    #: How far E* may curve.
    bend = 1.0
    #: How many times the usual number of Newton steps a rounded problem may take.
    effort = 1

    def about(self, u: Array, rho: float) -> Ridge:
        """Return this regulariser rounded about u: itself."""
        return self

    def at(self, v: Array) -> Place:
        """Return what E is at v."""
        return Place(v, v, 1.0)

    def along(self, v: Array, dv: Array) -> Callable[[float], float]:
        """Return the derivative of E along a line, by the length."""
        start, square = float(v @ dv), float(dv @ dv)
        return lambda length: start + length * square

    def source(self, w: Array) -> Array:
        """Return a u with ∇g*(u) = w."""
        return w


@dataclass(frozen=True)
class ElasticBox(Ridge):
    """g(w) = ½‖w‖² + σ‖w‖₁ between bounds."""

    sigma: float
    lower: float | Array
    upper: float | Array
    centre: Array
    rho: float = 1.0
    effort = 3

    def about(self, u: Array, rho: float) -> ElasticBox:
        """Return this regulariser rounded about u, with a stiffness ρ."""
        return ElasticBox(self.sigma, self.lower, self.upper, u, rho)

    @property
    def bend(self) -> float:  # type: ignore[override]
        """How far E* may curve."""
        return 1.0 + 1.0 / self.rho

    def at(self, v: Array) -> Place:
        """Return what E is at v."""
        y = self.centre + self.rho * v
        shrunk = np.copysign(np.maximum(np.abs(y) - self.sigma, 0.0), y) / (1.0 + self.rho)
        w = np.clip(shrunk, self.lower, self.upper)
        free = w == shrunk
        if self.sigma > 0:
            free &= w != 0
        # The second form would lose digits where the first one holds.
        p = np.where(free, w + self.sigma * np.sign(w), y - self.rho * w)
        return Place(w, p, np.where(free, self.rho / (1.0 + self.rho), self.rho))

    def along(self, v: Array, dv: Array) -> Callable[[float], float]:
        """Return the derivative of E along a line, by the length."""
        return lambda length: float(self.at(v + length * dv).p @ dv)

    def source(self, w: Array) -> Array:
        """Return a u with ∇g*(u) = w."""
        source: Array = w + self.sigma * np.sign(w)
        return source


def regulariser(problem: Problem) -> Ridge:
    """Return the regulariser of a problem."""
    if problem.bounds is None and problem.l1_ratio == 0:
        return Ridge()
    lower, upper = problem.bounds or (-np.inf, np.inf)
    sigma = problem.l1_ratio / (1.0 - problem.l1_ratio)
    return ElasticBox(sigma, lower, upper, np.zeros(problem.rows.shape[1]))
