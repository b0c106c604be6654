"""What a grid of 50 values of C costs, in single fits.

python -m benchmarks.paths [--data a9a w8a …] [--half 1] [--loss …] [--l1_ratio 0 0.5]
                           [--count 50] [--rows 20000] [--folder …] [--out FILE]

Processor time on one thread, the least of some repetitions: `path` over the grid of the CV
estimators, beside solves from nothing for its middle and its last value. A line shows what the path
costs in units of each of these, and how many of its solves did not reach the tolerance. The data
sets of a folder are split in two halves, one to develop on (0) and one to report (1).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import adasdca
from adasdca.datasets._folders import read_npz
from benchmarks.measure import machine
from benchmarks.output import ratio, save, seconds, table
from benchmarks.peers.summary import geometric_mean
from benchmarks.problems import files, some

CLASSIFICATION = ("logistic", "squared_hinge", "smoothed_hinge", "hinge")
REGRESSION = ("squared",)
#: Repetitions, fewer where one takes longer than some seconds.
REPEATS, LONG = 3, 2.0


def least(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least processor time of some repetitions, and what the last one has returned."""
    times: list[float] = []
    while len(times) < (1 if times and times[-1] > LONG else REPEATS):
        start = time.process_time()
        found = run()
        times.append(time.process_time() - start)
    return min(times), found


def measured(X: Any, y: Any, loss: str, l1_ratio: float, count: int) -> dict[str, Any]:
    """Return the processor seconds of a path and of single solves."""
    shared = {"loss": loss, "l1_ratio": l1_ratio, "fit_intercept": True, "random_state": 0}
    grid = np.logspace(-4, 4, count)

    def single(C: float) -> float:
        return least(lambda: adasdca.solve(X, y, lam=1.0 / (C * len(y)), **shared))[0]

    whole, path = least(lambda: adasdca.path(X, y, Cs=grid, **shared))
    middle, last = single(grid[count // 2]), single(grid[-1])
    return {
        "loss": loss,
        "l1_ratio": l1_ratio,
        "path": whole,
        "middle": middle,
        "last": last,
        "unfinished": int((~path.converged).sum()),
    }


def shown(rows: list[dict[str, Any]]) -> str:
    """Return the table."""
    heads = ["data", "loss", "l1_ratio", "path", "middle fit", "last fit"]
    return table(
        [*heads, "in middle fits", "in last fits", "unfinished"],
        [
            [
                row["data"],
                row["loss"],
                f"{row['l1_ratio']:g}",
                *(seconds(row[name]) for name in ("path", "middle", "last")),
                *(ratio(row["path"] / row[name]) for name in ("middle", "last")),
                str(row["unfinished"]),
            ]
            for row in rows
        ],
        left=(0, 1),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="npz files of data sets")
    parser.add_argument("--half", type=int, choices=(0, 1), help="of the data sets")
    parser.add_argument("--data", nargs="+", help="only these")
    parser.add_argument("--loss", nargs="+", default=[*CLASSIFICATION, *REGRESSION])
    parser.add_argument("--l1_ratio", nargs="+", type=float, default=[0.0, 0.5])
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--rows", type=int, default=20_000, help="most rows of a data set")
    parser.add_argument("--out")
    options = parser.parse_args()
    chosen = list(files(options.folder).items())
    if options.half is not None:
        chosen = chosen[options.half :: 2]
    rows = []
    with threadpool_limits(1):
        for name, path in chosen:
            if options.data and name not in options.data:
                continue
            X, y = some(*read_npz(path, name), options.rows)
            two = len(np.unique(y)) == 2
            for loss in options.loss:
                if two != (loss in CLASSIFICATION):
                    continue
                for l1_ratio in options.l1_ratio:
                    found = measured(X, y, loss, l1_ratio, options.count)
                    rows.append({"data": name, **found})
                    print(shown(rows[-1:]).splitlines()[-1], flush=True)
    print()
    print(shown(rows))
    for name in ("middle", "last"):
        fits = [row["path"] / row[name] for row in rows]
        mean, most = geometric_mean(fits), max(fits)
        print(f"In {name} fits: geometric mean {mean:.2f}, largest {most:.2f}.")
    result = {"machine": machine(), "count": options.count, "rows": rows}
    print(f"{save(result, options.out, 'paths.json')}")


if __name__ == "__main__":
    main()
