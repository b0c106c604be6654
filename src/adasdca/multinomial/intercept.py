"""The best intercept of a multinomial model, and dual points that it makes feasible.

With r = Σ_i α_i and H = Σ_i c_i (diag p_i − p_i p_iᵀ) a Newton step of b is δ = H⁺ r. A feasible
dual point has r = 0. The probabilities p_i + (diag p_i − p_i p_iᵀ) δ satisfy that up to rounding,
and they stay in the simplex if |δ| ≤ 1/2. The cost of this move is Σ_i c_i KL(new, old), at most
(1/2 + |δ|) r·δ.
"""

from __future__ import annotations

import math
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca.multinomial.margins import Multinomial, RowLosses
from adasdca.newton.line import step_length

Array = NDArray[np.float64]

#: The longest δ for which probabilities stay in the simplex.
LONGEST = 0.5
#: A sum r below this fraction of its terms is rounding.
NOISE = 1e-15


class LaplacianStep(NamedTuple):
    """A solution of Hδ = r."""

    step: Array  #: (K,), δ, with a mean of 0.
    energy: float  #: r·δ.
    exact: bool  #: Whether no component was truncated.


def solve_laplacian(coupling: Array, balance: Array, most: float = math.inf) -> LaplacianStep:
    """Solve Hδ = balance for the graph Laplacian H with the off-diagonal elements −coupling.

    Rows of H sum to 0. Elimination that computes its diagonal from the other elements adds numbers
    of one sign only, so it does not cancel however many decades they span. (W. Grassmann, M. Taksar
    and D. Heyman, Operations Research 33, 1985.) Components longer than `most` are truncated; δ is
    a descent direction still.
    """
    k = len(balance)
    rest, left, step = coupling.copy(), balance.copy(), np.zeros(k)
    pivots, energy, exact = np.zeros(k), 0.0, True
    for a in range(k - 1):
        row = rest[a, a + 1 :]
        pivots[a] = pivot = row.sum()
        if pivot > 0:
            share = row / pivot
            left[a + 1 :] += left[a] * share
            rest[a + 1 :, a + 1 :] += row[:, None] * share
            rest[a, a + 1 :] = share
    for a in range(k - 2, -1, -1):
        own = 0.0
        if left[a] != 0:
            own = left[a] / pivots[a] if pivots[a] > 0 else math.copysign(math.inf, left[a])
        if not abs(own) <= most:
            own, exact = math.copysign(min(most, 1e300), own), False
        energy += left[a] * own
        step[a] = own + rest[a, a + 1 :] @ step[a + 1 :]
    return LaplacianStep(step - step.mean(), energy, exact and math.isfinite(energy))


def shift_error(coupling: Array, balance: Array) -> float:
    """Bound the differences δ_k − δ_j of the best shift δ, where no |r_k| is above `balance`.

    With ρ the largest of them and v = δ/ρ, let f(τ) be the sum of the losses at b + τv. Its third
    derivative is a third central moment of numbers whose range is 1, and no larger than the second.
    So f″(τ) ≥ f″(0) exp(−τ), and 0 = f′(ρ) ≥ −r·v + f″(0)(1 − exp(−ρ)), where r·v ≤ √(r·H⁺r f″(0)),
    and f″(0) = v·Hv is at least half the smallest eigenvalue of H but 0.
    """
    energy = solve_laplacian(coupling, balance).energy
    if not math.isfinite(energy + float(coupling.sum())):
        return math.inf
    values = np.linalg.eigvalsh(np.diag(coupling.sum(axis=0)) - coupling)
    least = float(values[1] - 1e-12 * values[-1])  # of their rounding
    share = 1.01 * math.sqrt(2.0 * energy / least) if least > 0 else math.inf
    return -math.log1p(-share) if share < 1 else math.inf


class InterceptObjective:
    """The sum of the losses as a function of a shift of b; an `Objective` of Newton's method."""

    def __init__(self, problem: Multinomial, losses: RowLosses) -> None:
        self.problem, self.losses = problem, losses
        self.shift = np.zeros(problem.n_classes)
        self._derive()

    def _derive(self) -> None:
        self.dual = self.losses.dual()
        self.balance = self.dual.sums()
        self.coupling = self.losses.coupling()
        # No best shift is longer than the range of the margins.
        self.newton = solve_laplacian(
            self.coupling, self.balance, self.losses.margin_range() + 10.0
        )

    def cost(self) -> float:
        """Return the cost of moving the probabilities to r = 0; infinite if that is impossible."""
        longest = float(np.abs(self.newton.step).max())
        if not (self.newton.exact and longest <= LONGEST):
            return math.inf
        return (0.5 + longest) * self.newton.energy

    def lost(self) -> float:
        """Bound the distance from the least value."""
        cost = self.cost()
        return cost if math.isfinite(cost) else fallback_cost(self.losses, self.balance)

    def aim(self, deadline: float) -> float | None:
        """Choose the line of the Newton step; return the slope at its beginning."""
        if (np.abs(self.balance) <= NOISE * self.dual.sizes()).all():
            return 0.0
        self.losses.aim(None, self.newton.step)
        return -self.newton.energy

    def search(self) -> tuple[float, bool]:
        return step_length(self.losses.slope, -self.newton.energy)

    def move(self, length: float) -> None:
        self.losses.move(length)
        self.shift = self.shift + length * self.newton.step
        self._derive()

    def keep(self) -> None:
        self._best = copy(self.losses), self.shift

    def recall(self) -> None:
        if self._best[1] is not self.shift:
            self.losses.restore(self._best[0])
            self.shift = self._best[1]
            self._derive()


def fallback_cost(losses: RowLosses, balance: Array) -> float:
    """Bound the cost of probabilities with r = 0 where the Newton step is too long.

    Those of too heavy classes are scaled down. The mass goes to other classes of the same rows.
    """
    share = losses.margin_range() + 1.0 + math.log(len(balance))
    return 0.5 * float(np.abs(balance).sum()) * share
