"""By how much `max_time` is exceeded, on a ladder of problems.

For each problem: the seconds of one pass over the rows, what a limit of 0 takes, and, for each of
several limits, the seconds after the limit. They are seconds of this process, not of the clock on
the wall: neighbours on the machine do not count.

    python -m benchmarks.max_time [--most 10000000] [--limits 0.1 0.5 2]
"""

from __future__ import annotations

import argparse
import math
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import adasdca
from adasdca.multinomial.solver import solve_multinomial
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

    joint = {"n_classes": CLASSES, "lam": 1 / n, "fit_intercept": True, "tol": 0.0}
    yield "multinomial", lambda seconds: solve_multinomial(X, codes, max_time=seconds, **joint)
    # The labels are checked and encoded before the solves begin. Without an intercept, whose error
    # bounds are found after their end.
    fits = {"loss": "hinge", "fit_intercept": False, "max_iter": 10**6, **endless}
    yield (
        "one versus rest",
        lambda seconds: adasdca.AdaSDCAClassifier(max_time=seconds, **fits).fit(X, codes),
    )
    options = {"loss": "hinge", "Cs": [1.0], "fit_intercept": True, "max_epochs": 10**6, **endless}
    yield "path", lambda seconds: adasdca.path(X, signs, max_time=seconds, **options)


def overtime(solve: Callable[[float], Any], limit: float) -> float:
    """Return the seconds of this process from the limit on to the end of a solve."""
    over, at_limit = threading.Event(), [math.nan]

    def look() -> None:
        over.wait(limit)
        at_limit[0] = time.process_time()

    watch = threading.Thread(target=look)
    began = time.process_time()
    if limit > 0:
        watch.start()
    else:
        at_limit[0] = began
    solve(limit)
    ended = time.process_time()
    over.set()
    if limit > 0:
        watch.join()
    return max(0.0, ended - at_limit[0])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=10**7, help="rows of the largest problem")
    parser.add_argument("--limits", type=float, nargs="+", default=[0.1, 0.5, 2.0])
    parser.add_argument("--least", type=int, default=10**5, help="rows of the smallest one")
    parser.add_argument("--only", default="", help="only problems whose names begin so")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = "".join(f"{f'after {limit:g} s':>14}" for limit in options.limits)
    print(f"{'problem':>18}{'rows':>12}{'pass':>9}{'at 0 s':>9}{heads}")
    for _, solve in problems(1000):
        solve(0.0)  # what is done once in a process
    n, worst = options.least, 0.0
    while n <= options.most:
        rows = RowProducts(np.ones((n, FEATURES)))
        once = overtime(lambda _: rows.times(np.ones((1, FEATURES))), 0.0)  # noqa: B023
        for name, solve in problems(n):
            if name.startswith(options.only):
                over = [overtime(solve, limit) for limit in options.limits]
                first = overtime(solve, 0.0)
                worst = max([worst, *(x - once for x in over)])
                figures = "".join(f"{x:>13.2f}s" for x in over)
                print(f"{name:>18}{n:>12}{once:>8.2f}s{first:>8.2f}s{figures}", flush=True)
        n *= 10
    print(f"no limit was exceeded by more than a pass and {worst:.2f} s")


if __name__ == "__main__":
    main()
