"""The step length: the root of the slope along a line, which never falls."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

#: A slope below this share of its terms is rounding.
ROUNDING = 1e-13
#: The slope that may be left at the full step, and after a search, as shares of the first one.
FULL, FOUND = 0.1, 0.01
#: A slope that is left at the full step, as a share of the first one, for which no longer is tried.
SHORT = 0.75
#: A bracket is found and halved in far fewer evaluations.
MOST = 120
#: A bracket that begins at 0 is cut to this share's root.
TINY = 1e-6
#: Evaluations in a row that do not halve the bracket, before it is halved.
SLOW = 2


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
    # (The terms of the other end of a line over kinks may be far larger than those of this one.)
    if -start <= ROUNDING * at.size and -start <= ROUNDING * slope(0.0).size:
        return 1.0, False
    if 0 >= at.value >= SHORT * start:
        # Newton's step has gained most of what there is; a longer one along it would overshoot in
        # the directions that its equations have solved.
        return 1.0, True
    low, f_low, high, f_high = 0.0, start, math.inf, math.inf
    near, slow = FULL * -start, 0
    for _ in range(MOST):
        if abs(at.value) <= max(near, ROUNDING * at.size):
            if at.value <= ROUNDING * at.size:
                return length, True
            # The slope may have risen at once and be flat since, the function above its start.
            middle = 0.5 * (low + length)
            between = slope(middle).value
            if f_low * low + between * (middle - low) + at.value * (length - middle) <= 0:
                return length, True
        near, width = FOUND * -start, high - low
        if at.value < 0:
            low, f_low = length, at.value
        else:
            high, f_high = length, at.value
        guess = length - at.value / at.bend if at.bend > 0 else math.inf
        if high == math.inf:
            length = min(max(guess, 2.0 * low), 64.0 * low)
        else:
            if high - low <= 4e-16 * high:
                break
            slow = slow + 1 if high - low > 0.5 * width else max(slow - 1, 0)
            length = guess if low < guess < high else low - f_low * (high - low) / (f_high - f_low)
            if slow >= SLOW or not low < length < high:
                # In the middle of their digits where there are orders of magnitude between them.
                wide = high > 8.0 * low
                length = math.sqrt(max(low, TINY * high) * high) if wide else 0.5 * (low + high)
        at = slope(length)
    return low, low > 0
