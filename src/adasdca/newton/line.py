"""The slope along a line, and the length of a step there: the root of the slope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from adasdca import _core


class Slope(NamedTuple):
    """The derivative of a convex function along a line."""

    value: float  #: The derivative.
    curvature: float  #: Its own derivative, to one side where it has two.
    size: float  #: The sum of the sizes of its terms, of which rounding is a share.


#: The slope at a length.
Line = Callable[[float], Slope]


@dataclass(frozen=True)
class StraightLine:
    """A slope that is straight: value, curvature and size at length 0."""

    value: float
    curvature: float
    size: float

    def __call__(self, length: float) -> Slope:
        """Return the slope at a length."""
        return Slope(
            self.value + length * self.curvature,
            self.curvature,
            self.size + length * self.curvature,
        )


def step_length(slope: Line, start: float) -> tuple[float, bool]:
    """Return a length at which the slope is about 0, and whether the slope was above rounding.

    Newton's method inside a bracket; on a slope of straight pieces it ends at the very root.
    """
    return _core.step_length(slope, start)
