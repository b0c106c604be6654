"""How likely what was drawn is under the distribution it should have."""

import numpy as np
from scipy.stats import binom, chisquare

RARE = 1e-7
WEIGHTS = {
    "equal": np.ones(6),
    "lognormal": np.exp(3 * np.random.default_rng(0).normal(size=8)),
    "powers": 10.0 ** np.arange(-12, 13, 3),
    "zeros": np.array([0.0, 1.0, 0.0, 5.0, 0.1, 0.0]),
    "one": np.array([3.0]),
    "one-of-many": np.array([0.0, 0.0, 7.0, 0.0]),
    "two": np.array([1.0, 0.01]),
}


def luck(seen, expected):
    """The chance of counts at least as far from the expected ones, cells below 10 put together."""
    small = expected < 10
    assert not small.all()
    few, seen = seen[small].sum(), seen[~small]
    share = expected[small].sum() / expected.sum()
    # The small cells are judged together, the others given their own total.
    rare = min(binom.sf(few - 1, few + seen.sum(), share), binom.cdf(few, few + seen.sum(), share))
    expected = expected[~small] * (seen.sum() / expected[~small].sum())
    return min(rare, chisquare(seen, expected).pvalue if len(seen) > 1 else 1.0)
