"""What a survey of all rows shows: the certificate at the current point and figures by row."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from adasdca.duality.certificate import Certificate, Certified

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Survey(Certified):
    """Figures of one pass over the rows.

    Attributes
    ----------
    certificate : Certificate
        Objective, lower bound and gap at this point.
    n : int
        Number of rows.
    intercept : float
        The intercept at which `primal` was taken.
    active : int
        Number of rows with a positive weight in the adaptive distribution.
    moved : int
        Number of rows whose dual is not 0.
    coef : (d,) array
        The coefficients at which `primal` was taken.
    beta : (n,) array
        Dual variables per unit of weight, as the ascent left them.
    certified : (n,) array
        Dual variables at which `dual` was taken: `beta`, or with an intercept a point near it that
        satisfies Σ c_iβ_i = 0.
    gamma : float
        Smoothness of the loss.
    curvature : (n,) array
        q_i = c_i‖x_i‖²/(λN).
    weight : (n,) array
        Sample weights c_i.
    effective_share : float
        Share of the rows that the adaptive distribution visits in effect: 1 if all matter alike.
    adaptive : (n,) array or None
        Weights of the adaptive distribution: |κ_i|√(c_i(q_i + γ)), or c_i G_i where γ = 0.
    score, residue, share : (n,) array or None
        x_i·w, κ_i = β_i + φ'(score_i), and G_i = φ + φ* + score·β; None unless the method asks.
    """

    certificate: Certificate
    n: int
    intercept: float
    active: int
    moved: int
    coef: Array
    beta: Array
    certified: Array
    gamma: float
    curvature: Array
    weight: Array
    effective_share: float = 1.0
    adaptive: Array | None = None
    score: Array | None = None
    residue: Array | None = None
    share: Array | None = None

    def read_only(self) -> Survey:
        """Return it for functions of others: its arrays are what may be returned to the user."""
        found = vars(self).items()
        views = {name: value.view() for name, value in found if isinstance(value, np.ndarray)}
        for view in views.values():
            view.flags.writeable = False
        return replace(self, **views)
