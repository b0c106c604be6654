"""The step length on lines of every kind: straight pieces, smooth slopes, jumps, flat ends."""

import math

import numpy as np
import pytest
from scipy.special import expit

from adasdca import _core
from adasdca.newton.line import Slope, StraightLine, step_length

SEEDS = range(300)
#: What of the first slope may be left: at the full step, after a search, and where the full step
#: ends before the root.
FULL, FOUND, SHORT = 0.1, 0.01, 0.75
#: A slope below this share of its terms is rounding.
ROUNDING = 1e-13


class Pieces:
    """A slope of straight pieces that never falls, with jumps, and its integral from 0 on."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        count = int(rng.integers(1, 12))
        reach = 10.0 ** rng.uniform(-3, 3)
        self.knots = np.sort(np.append(reach * rng.random(count), 0.0))
        rises = rng.exponential(size=count + 1) * (rng.random(count + 1) < 0.7)
        rises[-1] += 0.1  # the last piece rises for ever, so that there is a root
        jumps = rng.exponential(size=count) * (rng.random(count) < 0.3) * reach
        self.rises = rises
        level = np.append(0.0, np.cumsum(rises[:-1] * np.diff(self.knots) + jumps))
        self.levels = level - rng.uniform(0.01, 1.2) * max(level[-1], reach)
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        k = int(np.searchsorted(self.knots, x, side="right")) - 1
        value = self.levels[k] + self.rises[k] * (x - self.knots[k])
        return Slope(value, self.rises[k], abs(value) + abs(self.levels[0]))

    def integral(self, x):
        """The function at x less its value at 0."""
        ends = np.append(self.knots[1:], math.inf)
        total = 0.0
        for knot, end, level, rise in zip(self.knots, ends, self.levels, self.rises, strict=True):
            width = min(x, end) - knot
            if width <= 0:
                break
            total += width * (level + 0.5 * rise * width)
        return total

    def root(self):
        """Where the slope changes its sign."""
        k = int(np.flatnonzero(self.levels <= 0)[-1])
        crossing = self.knots[k] - self.levels[k] / self.rises[k] if self.rises[k] else math.inf
        return min(crossing, self.knots[k + 1] if k + 1 < len(self.knots) else math.inf)


def lines():
    """Slopes below 0 at the beginning."""
    for seed in SEEDS:
        slope = Pieces(seed)
        if slope.levels[0] < 0:
            yield slope, slope.levels[0]


def test_there_are_lines():
    assert sum(1 for _ in lines()) > 250


def test_a_slope_of_straight_pieces_is_nearly_0_or_jumps_there():
    for slope, start in lines():
        length, sharp = step_length(slope, start)
        assert sharp
        left = abs(slope(length).value)
        root = slope.root()
        if length == 1.0 and slope(length).value <= 0:
            assert left <= SHORT * -start  # the full step has gained most
        elif left > (FULL if length == 1.0 else FOUND) * -start:
            assert length == pytest.approx(root, rel=1e-12)  # a jump over 0


def test_the_very_root_where_nothing_else_is_accepted():
    for slope, start in lines():
        length, _ = _core.step_length(slope, start, full=0.0, found=0.0, before=0.0)
        flat = abs(slope(length).value) <= 4 * ROUNDING * slope(length).size
        assert flat or length == pytest.approx(slope.root(), rel=1e-12)
        assert slope.calls < 120


def test_the_function_is_never_larger_than_at_the_beginning():
    for slope, start in lines():
        length, _ = step_length(slope, start)
        assert length > 0
        assert slope.integral(length) <= 1e-12 * slope.integral(slope.root()) * -1


def test_a_kink_next_to_the_beginning():
    """A full step over it ends where the slope is small, and the function higher than before."""

    def slope(x):
        value = -1.0 + 100.0 * min(x, 0.0105) + 1e-3 * x
        return Slope(value, 100.0 if x < 0.0105 else 1e-3, 1.0)

    length, sharp = step_length(slope, -1.0)
    assert sharp
    assert length < 0.03


def softplus(a, t):
    """Σ log(1 + exp(a_i t + c_i)) and a parabola, along a line."""
    x = a[0] * t + a[1]
    e = expit(x)
    value = np.logaddexp(0.0, x).sum() + 0.5 * a[2] * t**2 - a[3] * t
    terms = a[0] * e
    return value, Slope(
        terms.sum() + a[2] * t - a[3],
        float(a[0] ** 2 @ (e * (1 - e))) + a[2],
        float(np.abs(terms).sum()) + a[2] * t + abs(a[3]),
    )


def test_smooth_slopes():
    rng = np.random.default_rng(0)
    tried = 0
    for _ in range(300):
        scale = 10.0 ** rng.uniform(-4, 4)
        a = (scale * rng.normal(size=20), 5 * rng.normal(size=20), 10.0 ** rng.uniform(-6, 2),
             scale * rng.normal())  # fmt: skip
        start = softplus(a, 0.0)[1].value
        if start >= 0:
            continue
        tried += 1
        calls = []

        def slope(t, a=a, calls=calls):
            calls.append(t)
            return softplus(a, t)[1]

        length, sharp = step_length(slope, start)
        assert sharp
        assert len(calls) < 40
        value, at = softplus(a, length)
        left = SHORT if length == 1.0 and at.value <= 0 else FULL
        assert abs(at.value) <= max(left * -start, ROUNDING * at.size)
        assert value <= softplus(a, 0.0)[0] * (1 + 1e-15)
    assert tried > 100


@pytest.mark.parametrize("far", [1e-12, 1e-3, 1.0, 70.0, 1e9])
@pytest.mark.parametrize("after", [1e-6, 1.0, 1e9])
def test_a_straight_line_to_a_jump(far, after):
    """No curvature tells where it is, nor how high the other side."""

    def slope(x):
        return Slope(-1.0 if x < far else after, 0.0, 1.0)

    length, sharp = step_length(slope, -1.0)
    assert sharp
    fall = -min(length, far) + after * max(length - far, 0.0)
    assert fall <= 0
    if after > FULL:
        assert length == pytest.approx(far, rel=1e-9)


@pytest.mark.parametrize("share", [0.1, 0.47, 0.9])
@pytest.mark.parametrize("far", [1e-10, 1e-41, 1e-90])
def test_a_slope_that_rises_at_once_and_is_flat_since(far, share):
    """Secants halve the bracket, and would never come to where the root is."""
    calls = []

    def slope(x):
        calls.append(x)
        t = math.tanh(min(x / far, 300.0))
        return Slope(t - share + 1e-3 * x, (1 - t * t) / far + 1e-3, 1.0)

    length, sharp = step_length(slope, -share)
    assert sharp
    assert abs(slope(length).value) <= FULL * share
    assert len(calls) < 80


def test_flat_from_the_beginning():
    """A slope within its rounding: the full step, and the word that it is in the noise."""
    assert step_length(lambda x: Slope(-1e-14, 0.0, 1.0), -1e-14) == (1.0, False)
    assert step_length(lambda x: Slope(0.0, 0.0, 1.0), -1.0) == (1.0, True)


def test_a_slope_that_never_rises_ends():
    length, _ = step_length(lambda x: Slope(-1.0, 0.0, 1.0), -1.0)
    assert length > 1e9
    assert math.isfinite(length)


def test_what_a_slope_raises_is_raised():
    def slope(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        step_length(slope, -1.0)


def test_a_straight_slope():
    line = StraightLine(-3.0, 2.0, 4.0)
    assert line(0.0) == (-3.0, 2.0, 4.0)
    assert line(1.5) == (0.0, 2.0, 7.0)
