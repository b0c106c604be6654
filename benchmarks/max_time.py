"""By how much `max_time` is exceeded, on a ladder of problems.

For each problem: the seconds that a first certificate takes, without which nothing can be returned
(`max_time=0`), the seconds of one pass over the rows, and, for each of several limits, the
seconds beyond the limit or the first certificate, whichever is later.

    python -m benchmarks.max_time [--most 10000000] [--limits 0.1 0.5 2]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import adasdca
from adasdca.problem.products import RowProducts

FEATURES = 4
CLASSES = 3

#: A problem: its name, and what solves it within a limit of seconds.
Problem = tuple[str, Callable[[float], Any]]


def problems(n: int) -> Iterator[Problem]:
    """Yield the problems on n rows, none of them solved after any of the limits."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, FEATURES))
    score = X @ rng.standard_normal(FEATURES) + rng.standard_normal(n)
    signs = np.where(score > 0, 1.0, -1.0)
    codes = np.digitize(score, np.quantile(score[:10_000], np.linspace(0, 1, CLASSES + 1)[1:-1]))
    endless = {"tol": 0.0, "random_state": 0}

    def single(y: Any, **options: Any) -> Callable[[float], Any]:
        options |= {"lam": 1 / n, "fit_intercept": True, "max_epochs": 10**6, **endless}
        return lambda seconds: adasdca.solve(X, y, max_time=seconds, **options)

    for loss in ("logistic", "squared_hinge", "hinge"):
        yield loss, single(signs, loss=loss)
    yield "hinge, epochs", single(signs, loss="hinge", method="adasdca+")
    yield "hinge, L1", single(signs, loss="hinge", l1_ratio=0.5)
    for loss in ("squared", "absolute", "quantile"):
        yield loss, single(score, loss=loss)

    # Without an intercept, whose error bounds are no part of the solves.
    fits = {"fit_intercept": False, "max_iter": 10**6, **endless}

    def fit(**options: Any) -> Callable[[float], Any]:
        return lambda seconds: adasdca.AdaSDCAClassifier(max_time=seconds, **options, **fits).fit(
            X, codes
        )

    yield "multinomial", fit()
    yield "one versus rest", fit(loss="hinge")
    options = {"loss": "hinge", "Cs": [1.0], "fit_intercept": True, "max_epochs": 10**6, **endless}
    yield "path", lambda seconds: adasdca.path(X, signs, max_time=seconds, **options)


def clocked(call: Callable[[], Any]) -> float:
    """Return the seconds of a call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=10**7, help="rows of the largest problem")
    parser.add_argument("--limits", type=float, nargs="+", default=[0.1, 0.5, 2.0])
    parser.add_argument("--only", default="", help="only problems whose names begin so")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = "".join(f"{f'limit {limit:g} s':>14}" for limit in options.limits)
    print(f"{'problem':>18}{'rows':>12}{'pass':>9}{'first':>9}{heads}")
    n = 10**5
    while n <= options.most:
        rows = RowProducts(np.zeros((n, FEATURES)))
        once = clocked(lambda: rows.times(np.ones((1, FEATURES))))  # noqa: B023
        for name, solve in problems(n):
            if not name.startswith(options.only):
                continue
            first = clocked(lambda: solve(0.0))  # noqa: B023
            late = [
                clocked(lambda: solve(limit)) - max(limit, first)  # noqa: B023
                for limit in options.limits
            ]
            over = "".join(f"{seconds:>+13.2f}s" for seconds in late)
            print(f"{name:>18}{n:>12}{once:>8.2f}s{first:>8.2f}s{over}", flush=True)
        n *= 10


if __name__ == "__main__":
    main()
