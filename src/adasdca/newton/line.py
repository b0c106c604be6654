"""The step length: the root of the slope along a line, which never falls."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

#: A slope below this share of its terms is rounding.
ROUNDING = 1e-13
#: The slope that may be left at the full step, and after a search, as shares of the first one.
FULL, FOUND = 0.1, 0.01
#: A bracket is found and halved in far fewer evaluations.
MOST = 100


class Slope(NamedTuple):
    """The derivative of a convex function along a line.

    Attributes
    ----------
    value : float
        The derivative.
    bend : float
        Its own derivative, to one side where it has two.
    size : float
        The sum of the sizes of its terms, of which rounding is a share.
    """

    value: float
    bend: float
    size: float


def step_length(slope: Callable[[float], Slope], start: float) -> tuple[float, bool]:
    """Return a length at which the slope is about 0, and whether the slope was above rounding.

    Newton's method inside a bracket; on a slope of straight pieces it ends at the very root.

    Parameters
    ----------
    slope : callable
        The slope at a length.
    start : float
        The slope at length 0, below 0.
    """
    length, at = 1.0, slope(1.0)
    if -start <= ROUNDING * at.size:
        return 1.0, False
    if abs(at.value) <= FULL * -start:
        return 1.0, True
    near = FOUND * -start
    low, f_low, high, f_high = 0.0, start, float("inf"), float("inf")
    width = float("inf")
    for count in range(MOST):
        if at.value < 0:
            low, f_low = length, at.value
        else:
            high, f_high = length, at.value
        guess = length - at.value / at.bend if at.bend > 0 else float("inf")
        if high == float("inf"):
            length = min(max(guess, 2.0 * low), 64.0 * low)
        elif count % 4 == 3 and high - low > 0.5 * width:
            # Steep ends draw all guesses to one side.
            length = 0.5 * (low + high)
        elif low < guess < high:
            length = guess
        else:
            length = low - f_low * (high - low) / (f_high - f_low)
            if not low < length < high:
                length = 0.5 * (low + high)
        if high - low <= 4e-16 * high:
            break
        if count % 4 == 3:
            width = high - low
        at = slope(length)
        if abs(at.value) <= max(near, ROUNDING * at.size):
            return length, True
    return (low if low > 0 else high), True
