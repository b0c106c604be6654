"""Conjugate gradients for a positive definite map, and the smoothing of what they leave."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Iterations after which their rate tells how many are to come (the best of six numbers on 38 dense
#: data sets).
LOOKS = 3
#: Most iterations. A step that is cut short still leads down.
MOST_ITERATIONS = 2000

#: A linear map of two unknowns.
Map = Callable[[Array, Any], tuple[Array, Any]]
#: Says how many times too much is left of the right-hand sides: 1 or less will do. It is given what
#: is left of them, and how far ½(x, y)·A(x, y) − right·(x, y) has fallen.
Enough = Callable[[Array, Any, float], float]


class Gradients:
    """Conjugate gradients for A(x, y) = right with a positive definite A and unknowns of any shape.

    After any number of iterations ½(x, y)·A(x, y) − right·(x, y) is below 0.
    """

    def __init__(self, product: Map, precondition: Map, right: tuple[Array, Any]) -> None:
        self._product, self._precondition = product, precondition
        self.r, self._r_y = right[0].copy(), 1.0 * right[1]
        self.x, self.y = np.zeros_like(self.r), np.zeros_like(self._r_y)
        z_x, self._p_y = precondition(self.r, self._r_y)
        self._p = z_x.copy()
        self._energy = self._whole = self._squared(z_x, self._p_y)
        self._gained, self._last, self._first = 0.0, 0.0, math.inf
        #: Iterations so far, and the share of another way's cost before their rate is trusted.
        self.taken, self.patience = 0, 0.0

    def _squared(self, x: Array, y: Any) -> float:
        return float(np.vdot(self.r, x) + np.vdot(self._r_y, y))

    def run(
        self,
        accuracy: float,
        deadline: float,
        most: int = MOST_ITERATIONS,
        enough: Enough | None = None,
        gain: float = 0.0,
        rival: float = math.inf,
    ) -> bool | None:
        """Go on; return whether the iterations were enough, None if time ran out.

        Parameters
        ----------
        accuracy : float
            The share of the right-hand side to leave, in the norm of the preconditioner.
        enough : callable, optional
            Says whether what is left will do.
        gain : float
            The share of the mean gain of all iterations that the last one has to exceed.
        rival : float
            Iterations that another way costs. They end when the rate at which `enough` has fallen
            says that they will be more.
        """
        goal, end = accuracy**2 * self._whole, self.taken + most
        while self.taken < end:
            if self._energy <= goal:
                return True
            if enough is not None:
                left = enough(self.r, self._r_y, self._gained)
                if left <= 1.0:
                    return True
                self._first = left if self.taken == 0 else self._first
                fall = math.log(self._first) - math.log(left)
                total = self.taken * math.log(self._first) / fall if fall > 0 else math.inf
                if self.taken >= max(LOOKS, self.patience * rival) and total > rival:
                    return False
            if self.taken > 2 and self.taken * self._last <= gain * self._gained:
                return True
            if time.perf_counter() >= deadline:
                return None
            q_x, q_y = self._product(self._p, self._p_y)
            curvature = float(np.vdot(self._p, q_x) + np.vdot(self._p_y, q_y))
            if not curvature > 0:
                if self.taken == 0:
                    self.x, self.y = self._precondition(self.r, self._r_y)
                return True
            length = self._energy / curvature
            self._last = 0.5 * length * self._energy
            self._gained += self._last
            # In place: fresh memory for large blocks costs as much as the sums.
            self.x += length * self._p
            self.r -= length * q_x
            self.y, self._r_y = self.y + length * self._p_y, self._r_y - length * q_y
            z_x, z_y = self._precondition(self.r, self._r_y)
            before, self._energy = self._energy, self._squared(z_x, z_y)
            self._p *= self._energy / before
            self._p += z_x
            self._p_y = z_y + (self._energy / before) * self._p_y
            self.taken += 1
        return False


class Smoothed:
    """Minimal residual smoothing: the mean of the iterates with the smallest residual.

    The residuals of the iterates themselves rise and fall (W. Schönauer, "Scientific Computing on
    Vector Computers", 1987; texts and counts, squared loss: a tenth to a third fewer iterations).

    Parameters
    ----------
    root : (n,) array
        √h.
    mass : float
        Its squared length where the intercept, a multiple of it, takes its part of what is left.
    """

    def __init__(self, gradients: Gradients, root: Array, mass: float) -> None:
        self._gradients, self._root, self._mass = gradients, root, mass
        self.x, self.r = gradients.x.copy(), gradients.r.copy()

    def _product(self, a: Array, b: Array) -> float:
        found = float(a @ b)
        if self._mass > 0:
            found -= float(self._root @ a) * float(self._root @ b) / self._mass
        return found

    def take(self) -> float:
        """Take the next point in; return the square of what is left."""
        change = self._gradients.r - self.r
        length = self._product(change, change)
        if length > 0:
            share = -self._product(self.r, change) / length
            self.r += share * change
            self.x += share * (self._gradients.x - self.x)
        return max(self._product(self.r, self.r), 0.0)


def conjugate_gradients(
    product: Map,
    precondition: Map,
    right: tuple[Array, Any],
    accuracy: float,
    deadline: float,
    most: int = MOST_ITERATIONS,
    enough: Enough | None = None,
    gain: float = 0.0,
) -> tuple[Array, Any, int, bool] | None:
    """Run `Gradients` once; return both unknowns, the iterations, and whether they were enough."""
    gradients = Gradients(product, precondition, right)
    done = gradients.run(accuracy, deadline, most, enough, gain)
    return None if done is None else (gradients.x, gradients.y, gradients.taken, done)
