"""Semismooth Newton's method with an exact line search: from any point of a convex function.

It knows its function as an `Objective` only: a point that can be moved along a line, the line of
the next step, the slope along it, and a bound on what is left to gain. The line search makes it
converge from anywhere; it ends because enough is gained or because double precision shows no more.
The loop itself is in core/newton/loop.hpp, for objectives of the core as well.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from adasdca import _core

#: No convex function of floating-point numbers has been seen to need a tenth of these.
MOST_STEPS = 2000


class Objective(Protocol):
    """A convex function at a point that it remembers."""

    def lost(self) -> float:
        """Return a bound on how far the value is above the least one."""

    def aim(self, deadline: float) -> float | None:
        """Choose the next line; return the slope at its beginning, None if time ran out.

        A slope of 0 or more means that no line leads down.
        """

    def search(self) -> tuple[float, bool]:
        """Return the length of the step along the line, and whether it is above rounding."""

    def move(self, length: float) -> None:
        """Go along the line."""

    def keep(self) -> None:
        """Remember this point as the best so far."""

    def recall(self) -> None:
        """Go back to the best point."""


class Ending(enum.Enum):
    """Why the steps ended."""

    REACHED = "enough is gained"
    EXHAUSTED = "rounding hides what is left"
    STEPS = "as many steps as allowed"
    STOPPED = "whoever looks on has seen enough"
    TIME = "the time is over"


#: The same, by the numbers of the core.
ENDINGS = tuple(Ending)


@dataclass(frozen=True)
class Share:
    """A share of an objective's value, which is enough to be left."""

    objective: Any
    share: float

    def __call__(self) -> float:
        """Return it at the point where the objective is."""
        return float(self.share * self.objective.value)


def minimise(
    objective: Objective,
    enough: float | Callable[[], float],
    deadline: float,
    most: int = MOST_STEPS,
    look: Callable[[], bool] | None = None,
) -> tuple[Ending, int]:
    """Take Newton steps until `enough` is left at most; return why they ended, and how many.

    Parameters
    ----------
    objective : Objective
        The function, at the point from which to begin; it is left at the best point.
    enough : float or callable
        The bound to reach; a callable returns it for the point where the objective is.
    look : callable, optional
        Called at the beginning and after every step; where it returns True the objective is left.

    An objective may have a method `descend`, which takes all steps in one call or returns None.
    """
    descend = getattr(objective, "descend", None)
    if descend is not None and not (look is not None and look()):
        found: tuple[Ending, int] | None = descend(enough, deadline, most)
        if found is not None:
            return found

    def aim() -> float | None:
        return objective.aim(deadline) if time.perf_counter() < deadline else None

    allowed = enough if callable(enough) else partial(float, enough)
    ending, steps = _core.minimise(objective, aim, allowed, most, look)
    return ENDINGS[ending], steps
