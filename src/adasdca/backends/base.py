"""The protocol between the loop and the rows.

The loop in `engine` knows only `Backend`. A backend whose rows are elsewhere (workers, a device)
surveys them in parts and adds the parts, plans each part by the same schedule, and adds the changes
of u.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from adasdca.ascent.schedules import Plan, Schedule
from adasdca.ascent.survey import Survey

Array = NDArray[np.float64]
#: Seconds that never pass.
FOREVER = 1e18


class ScaleError(ValueError):
    """The squares of the rows are beyond double precision."""


class Derivatives(NamedTuple):
    """First derivatives of the rows' part of an objective.

    Attributes
    ----------
    u : (d,) array
        Σ_i c_iβ_i x_i/(λN), with β_i = −φ'.
    balance : float
        Σ_i c_iβ_i.
    mass : float
        Σ_i c_iφ''.
    """

    u: Array
    balance: float
    mass: float


class RowSlope(NamedTuple):
    """Derivative of the rows' part along a line, its own derivative, and the size of its terms."""

    value: float
    bend: float
    size: float


class Gram(NamedTuple):
    """Second derivatives of the rows' part, h_i = c_iφ''.

    Attributes
    ----------
    matrix : (d, d) array
        The lower triangle of Σ_i h_i x_i x_iᵀ; with an intercept that of Σ_i h_i (x_i − m)(x_i − m)ᵀ,
        m the mean of the rows weighted by h.
    column : (d,) array
        Σ_i h_i x_i, 0 without an intercept.
    mass : float
        Σ_i h_i, 0 without an intercept.
    """

    matrix: Array
    column: Array
    mass: float


class RowTerm(Protocol):
    """Σ_i c_i φ_i(x_i·v + b), at a point that it remembers, and along a line from there.

    Row vectors stay where the rows are: what comes back has the size of v, or is a number.
    """

    @property
    def curved(self) -> int:
        """Number of rows with curvature."""

    @property
    def known(self) -> int:
        """Number of rows whose inner products are known."""

    @property
    def residual(self) -> float:
        """Mean distance of the scores from their targets."""

    def place(self, v: Array, b: float) -> Derivatives:
        """Go to a point."""

    def aim(self, dv: Array, db: float) -> None:
        """Choose a line."""

    def slope(self, length: float) -> RowSlope:
        """Return the slope along the line."""

    def move(self, length: float) -> Derivatives:
        """Go along the line."""

    def gram(self, intercept: bool, deadline: float) -> Gram | None:
        """Sum the matrix of the features; None if time ran out."""

    def curve(self, p: Array, q: float) -> tuple[Array, float]:
        """Return Σ_i h_i (x_i·p + q) x_i and Σ_i h_i (x_i·p + q)."""

    def diagonal(self) -> tuple[Array, float]:
        """Return Σ_i h_i x_ij² for every feature, and Σ_i h_i."""

    def solve_by_rows(
        self, right: Array, balance: float, intercept: bool, deadline: float
    ) -> tuple[Array, float] | None:
        """Solve a step's equations in unknowns of the rows, for a ridge; None if it cannot."""

    def duals(self) -> Any:
        """Return the dual point −φ', in a form that `Backend` takes."""


class Backend(Protocol):
    """Rows that can be surveyed and ascended."""

    @property
    def multiplier(self) -> float:
        """b_k of the method of multipliers; 0 without an intercept."""

    def restart(self, beta: Array, multiplier: float) -> None:
        """Continue from these dual variables."""

    def survey(self, needs: frozenset[str], seconds: float) -> Survey | None:
        """Survey all rows; None if that took longer than the seconds given."""

    def plan(self, schedule: Schedule, survey: Survey, key: int) -> Plan | None:
        """Plan an epoch; None if there is no row left to visit."""

    def ascend(self, plan: Plan, seconds: float) -> int:
        """Carry a plan out for at most that many seconds; return the number of updates."""
