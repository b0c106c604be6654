"""Where the time of a solve goes: ``python -m benchmarks.profile [--data …] [--loss …] [--tol …]``.

Medians over repeats of `Solution.timings`: setup (checks, packing), surveys, plans, ascent, the
second-order phase, and Python's own part, which is the rest of the wall time.
"""

import argparse
import statistics
import time
from collections.abc import Sequence

import numpy as np

import adasdca

PARTS = ("setup", "survey", "plan", "ascent", "second order")


def small() -> tuple[np.ndarray, np.ndarray]:
    """A problem so small that Python is most of its cost."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 10))
    return X, np.where(X @ rng.normal(size=10) + rng.normal(size=100) > 0, 1.0, -1.0)


def profile(X, y, loss: str, method: str, tol: float, repeats: int) -> dict[str, float]:
    runs = []
    for seed in range(repeats):
        start = time.perf_counter()
        solution = adasdca.solve(
            X,
            y,
            loss=loss,
            lam=1 / len(y),
            method=method,
            tol=tol,
            random_state=seed,
            max_time=60.0,
        )
        total = time.perf_counter() - start
        parts = {part: solution.timings[part] for part in PARTS}
        runs.append({"total": total, **parts, "python": total - sum(parts.values())})
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def table(
    data: Sequence[str], losses: Sequence[str], method: str, tol: float, repeats: int
) -> None:
    """Print a line for every data set and loss."""
    print(f"{method}, tol {tol:g}, milliseconds, medians of {repeats} runs")
    print(f"{'data':10s} {'loss':15s}" + "".join(f"{p:>10s}" for p in ("total", *PARTS, "python")))
    for name in data:
        for loss in losses:
            X, y = small() if name == "small" else adasdca.datasets.load(name)
            found = profile(X, y, loss, method, tol, repeats)
            print(f"{name:10s} {loss:15s}" + "".join(f"{1e3 * t:10.3f}" for t in found.values()))


def main() -> None:
    parser = argparse.ArgumentParser(description="Where the time of a solve goes.")
    parser.add_argument("--data", nargs="+", default=["small", *adasdca.datasets.available()])
    parser.add_argument("--loss", nargs="+", default=["squared", "smoothed_hinge", "logistic"])
    parser.add_argument("--method", default="auto")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    table(options.data, options.loss, options.method, options.tol, options.repeats)


if __name__ == "__main__":
    main()
