"""What a fit costs beside its mathematics: `solve` and the estimators on made data of few features.

python -m benchmarks.estimators [--shapes 100x10 1000x60 ...] [--loss ...] [--repeats 9]
                                [--data w8a] [--fits 1000] [--out FILE]

The same on data sets, and many small fits beside LogisticRegression. One process, one thread for
BLAS, sides in turn, medians of processor time. The estimator and `solve` get the same
seed, so they do the same epochs. Beside a squared loss there is scikit-learn's Ridge.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import adasdca
from adasdca import AdaSDCAClassifier, AdaSDCARegressor
from adasdca.problem.losses import get_loss
from benchmarks.measure import Task, interleaved
from benchmarks.output import save, table

LOSSES = ("logistic", "squared_hinge", "hinge")
#: Rows and features of the data that are made, and the losses there.
SHAPES = ("100x10", "1000x60", "20640x8", "50000x9")
MADE = ("squared", "logistic", "smoothed_hinge", *LOSSES[1:], "absolute", "quantile")


def data(name: str, loss: str) -> tuple[Any, Any]:
    """Return rows and targets: a data set, or made ones of a shape such as 100x10."""
    n, x, d = name.partition("x")
    if not (x and n.isdigit()):
        return adasdca.datasets.load(name)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(int(n), int(d)))
    y = X @ rng.normal(size=int(d)) + rng.normal(size=int(n))
    return X, y if get_loss(loss).kind == "regression" else np.where(y > 0, 1.0, -1.0)


def measured(name: str, loss: str, tol: float, repeats: int) -> list[dict[str, Any]]:
    """Return the times of `solve`, of the estimator, and of Ridge beside a squared loss."""
    X, y = data(name, loss)
    numbers = get_loss(loss).kind == "regression"
    labels = y if numbers else (y > 0).astype(int)
    model: Any = AdaSDCARegressor if numbers else AdaSDCAClassifier
    rows = []
    for intercept in (False, True):
        options = {"loss": loss, "fit_intercept": intercept, "tol": tol, "random_state": 0}
        runs = {
            "solve": lambda o=options: adasdca.solve(X, y, lam=1 / len(y), **o),
            "fit": lambda o=options: model(**o).fit(X, labels),
        }
        if loss == "squared":  # half the square, so that C = 1 is alpha = 1
            runs["Ridge"] = lambda i=intercept: Ridge(fit_intercept=i).fit(X, y)
        tasks = {side: Task(run, clock=time.process_time) for side, run in runs.items()}
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
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES), help="of made data, e.g. 9x2")
    parser.add_argument("--loss", nargs="+", default=list(MADE), help="losses on made data")
    parser.add_argument("--data", nargs="*", default=["w8a"])
    parser.add_argument("--tol", nargs="+", type=float, default=[1e-4, 1e-6])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--fits", type=int, default=1000)
    parser.add_argument("--out")
    options = parser.parse_args()
    with threadpool_limits(1):
        cells = [(name, loss, 1e-4) for name in options.shapes for loss in options.loss]
        cells += itertools.product(options.data, LOSSES, options.tol)
        rows = [row for cell in cells for row in measured(*cell, options.repeats)]
        small = small_fits(options.fits) if options.fits else {}
    print(
        table(
            ["data", "loss", "intercept", "tol", "solve ms", "fit ms", "fit/solve", "fit/Ridge"],
            [
                [
                    r["data"],
                    r["loss"],
                    "free" if r["intercept"] else "none",
                    f"{r['tol']:.0e}",
                    f"{1e3 * r['solve']:.2f}",
                    f"{1e3 * r['fit']:.2f}",
                    f"{r['fit'] / r['solve']:.2f}",
                    f"{r['fit'] / r['Ridge']:.2f}" if "Ridge" in r else "",
                ]
                for r in rows
            ],
            left=(0, 1, 2),
        )
    )
    if small:
        print()
        print(
            table(
                [f"{options.fits} fits, n = 200, d = 20", "seconds"],
                [[name, f"{seconds:.2f}"] for name, seconds in small.items()],
            )
        )
    path = save({"rows": rows, "small": small}, options.out, "estimators.json")
    print(f"\n{path}")


if __name__ == "__main__":
    main()
