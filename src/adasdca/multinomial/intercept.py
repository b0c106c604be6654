"""The best intercept of a multinomial model, and dual points that it makes feasible.

With r = Σ_i α_i and H = Σ_i c_i (diag p_i − p_i p_iᵀ) a Newton step of b is δ = H⁺ r. A dual point
must have r = 0: moved along with δ to p_i + (diag p_i − p_i p_iᵀ) δ, the probabilities have, to
rounding, and they stay probabilities as long as |δ| ≤ 1/2. That costs Σ_i c_i KL(new, old), at most
(1/2 + |δ|) r·δ.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from adasdca.multinomial.margins import Multinomial, RowLosses
from adasdca.newton.equations import damped_solve
from adasdca.newton.line import Slope

Array = NDArray[np.float64]

#: The longest δ along which probabilities stay in the simplex.
LONGEST = 0.5


class InterceptObjective:
    """The sum of the losses as a function of a shift of b."""

    def __init__(self, problem: Multinomial, losses: RowLosses) -> None:
        self.problem, self.losses = problem, losses
        self.shift = np.zeros(problem.n_classes)
        self._derive()

    def _derive(self) -> None:
        self.alpha = self.losses.alpha()
        self.balance = self.alpha.sum(axis=1)
        self.step, self.inverse = newton_step(self.problem, self.losses.at.p, self.balance)

    def cost(self) -> float:
        """Return what it costs to move the probabilities to r = 0; infinite if that cannot be."""
        longest = float(np.abs(self.step).max())
        if not longest <= LONGEST:
            return math.inf
        return (0.5 + longest) * max(float(self.balance @ self.step), 0.0)

    def lost(self) -> float:
        """Bound what is left to gain."""
        cost = self.cost()
        return cost if math.isfinite(cost) else hard_cost(self.losses, self.balance)

    def aim(self, deadline: float) -> float | None:
        """Choose the line of the Newton step; return the slope at its beginning."""
        if not np.isfinite(self.step).all():
            return 0.0
        self.losses.aim(self.problem.shifts(self.step))
        return -float(self.balance @ self.step)

    def slope(self, length: float) -> Slope:
        """Return the slope along the line."""
        return self.losses.slope(length)

    def move(self, length: float) -> None:
        """Go along the line."""
        self.losses.move(length)
        self.shift = self.shift + length * self.step
        self._derive()

    def keep(self) -> None:
        """Remember this point as the best so far."""
        self._best = (
            self.losses.margins,
            self.losses.at,
            self.shift,
            self.alpha,
            self.balance,
            self.step,
            self.inverse,
        )

    def recall(self) -> None:
        """Go back to the best point."""
        (
            self.losses.margins,
            self.losses.at,
            self.shift,
            self.alpha,
            self.balance,
            self.step,
            self.inverse,
        ) = self._best


def newton_step(problem: Multinomial, p: Array, balance: Array) -> tuple[Array, Array | None]:
    """Return H⁺·balance, and the diagonal of H⁺ or more; None if H is singular to rounding."""
    k = len(p)
    matrix = -(problem.weighted(p) @ p.T)
    # Rows of H sum to 0: its diagonal by the others has their digits, that of the products not.
    np.fill_diagonal(matrix, 0.0)
    own = -matrix.sum(axis=1)
    mass = float(own.sum())
    if not mass > 0:
        return np.zeros(k), None
    # Σb is free in the scores. This pins it, in the units of each class.
    matrix += np.outer(own, own / mass)
    found, damping = damped_solve(matrix, own, np.column_stack([balance, np.eye(k)]))
    step = found[:, 0] - found[:, 0].mean()
    return step, np.diagonal(found[:, 1:]) if damping == 0 else None


def hard_cost(losses: RowLosses, balance: Array) -> float:
    """Bound the cost of any probabilities with r = 0: too large ones are scaled down.

    What they lose goes to the others in the same rows, and costs its logarithm.
    """
    spread = float(losses.margins.max() - losses.margins.min())
    return 0.5 * float(np.abs(balance).sum()) * (spread + 1.0 + math.log(len(balance)))
