"""What the estimators cost beyond `solve`, and many small fits beside LogisticRegression.

python -m benchmarks.estimators [--repeats 9] [--fits 1000] [--out FILE]

One process, one thread for BLAS, sides in turn, medians. The estimator and `solve` get the same
seed, so they do the same epochs.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import adasdca
from adasdca import AdaSDCAClassifier
from benchmarks.measure import Task, interleaved
from benchmarks.output import save, table

LOSSES = ("logistic", "squared_hinge", "hinge")


def overhead(name: str, tol: float, repeats: int) -> list[dict[str, Any]]:
    """Return fit and solve times on one data set, for each loss with and without intercept."""
    X, y = adasdca.datasets.load(name)
    labels = np.where(y > 0, 1, 0)
    rows = []
    for loss in LOSSES:
        for intercept in (False, True):
            tasks = {
                "solve": Task(
                    lambda loss=loss, intercept=intercept: adasdca.solve(
                        X,
                        y,
                        loss=loss,
                        lam=1 / len(y),
                        fit_intercept=intercept,
                        method="auto",
                        tol=tol,
                        random_state=0,
                    )
                ),
                "fit": Task(
                    lambda loss=loss, intercept=intercept: AdaSDCAClassifier(
                        loss=loss, fit_intercept=intercept, tol=tol, random_state=0
                    ).fit(X, labels)
                ),
            }
            seconds = interleaved(tasks, repeats)
            rows.append({"data": name, "loss": loss, "intercept": intercept, "tol": tol, **seconds})
    return rows


def small_fits(count: int, n: int = 200, d: int = 20) -> dict[str, float]:
    """Return the seconds for that many fits of fresh small data, ours and theirs in turn."""
    rng = np.random.default_rng(0)
    models = {
        "AdaSDCAClassifier": lambda: AdaSDCAClassifier(random_state=0),
        "LogisticRegression(lbfgs)": LogisticRegression,
        "AdaSDCAClassifier(squared_hinge)": lambda: AdaSDCAClassifier(
            loss="squared_hinge", random_state=0
        ),
        "LinearSVC": lambda: LinearSVC(random_state=0),
    }
    seconds: dict[str, list[float]] = {name: [] for name in models}
    truth = rng.normal(size=d)
    for k in range(count + 10):
        X = rng.normal(size=(n, d))
        y = (X @ truth + rng.normal(size=n) > 0).astype(int)
        for name, make in models.items():
            start = time.perf_counter()
            make().fit(X, y)
            if k >= 10:  # the first ones import and warm up
                seconds[name].append(time.perf_counter() - start)
    # The median times the count: a pause of the machine in one fit says nothing about the model.
    return {name: count * statistics.median(times) for name, times in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["w8a"])
    parser.add_argument("--tol", nargs="+", type=float, default=[1e-4, 1e-6])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--fits", type=int, default=1000)
    parser.add_argument("--out")
    options = parser.parse_args()
    with threadpool_limits(1):
        rows = [
            row
            for name in options.data
            for tol in options.tol
            for row in overhead(name, tol, options.repeats)
        ]
        small = small_fits(options.fits)
    print(
        table(
            ["data", "loss", "intercept", "tol", "solve ms", "fit ms", "fit/solve"],
            [
                [
                    r["data"],
                    r["loss"],
                    "free" if r["intercept"] else "none",
                    f"{r['tol']:.0e}",
                    f"{1e3 * r['solve']:.1f}",
                    f"{1e3 * r['fit']:.1f}",
                    f"{r['fit'] / r['solve']:.2f}",
                ]
                for r in rows
            ],
            left=(0, 1, 2),
        )
    )
    print()
    print(
        table(
            [f"{options.fits} fits, n = 200, d = 20", "seconds"],
            [[name, f"{seconds:.2f}"] for name, seconds in small.items()],
        )
    )
    path = save({"overhead": rows, "small": small}, options.out, "estimators.json")
    print(f"\n{path}")


if __name__ == "__main__":
    main()
