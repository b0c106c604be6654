"""The protocol between the loop and the rows.

The loop in `engine` knows only `Backend`. A backend whose rows are elsewhere (workers, a device)
surveys them in parts and adds the parts, plans each part by the same schedule, and adds the changes
of u.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adasdca.ascent.schedules import Plan, Schedule
from adasdca.ascent.survey import Survey

Array = NDArray[np.float64]
#: Seconds that never pass.
FOREVER = 1e18


class ScaleError(ValueError):
    """The squares of the rows are beyond double precision."""


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
