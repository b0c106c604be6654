"""P(w) = (1/n) Σ_i φ(x_i·w; y_i) + lam/2 ‖w‖², the same judge for all, and the best value known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import adasdca
from adasdca.problem.losses import get_loss


@dataclass(frozen=True)
class Objective:
    """The problem that every solver is given, and the judge of what it returns."""

    X: Any
    y: NDArray[np.float64]
    loss: str
    lam: float

    def primal(self, coef: NDArray[np.float64]) -> float:
        """Return P, in double precision whatever the solver used."""
        w = np.asarray(coef, dtype=np.float64)
        if w.shape != (self.X.shape[1],) or not np.isfinite(w).all():
            return float("inf")
        value = get_loss(self.loss).value(self.X @ w, self.y)
        return float(np.mean(value) + 0.5 * self.lam * (w @ w))

    def reference(self, seconds: float) -> dict[str, float]:
        """Return a primal value and a certified lower bound, 1e-12 apart if the time allows."""
        sol = adasdca.solve(
            self.X,
            self.y,
            loss=self.loss,
            lam=self.lam,
            tol=1e-12,
            method="auto",
            max_epochs=10**6,
            max_time=seconds,
            random_state=0,
        )
        return {"primal": self.primal(sol.coef), "dual": sol.dual}
