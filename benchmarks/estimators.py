"""What a fit costs beside its mathematics: `solve` and the estimators on made data of few features.

python -m benchmarks.estimators [--shapes 100x10 1000x60 ...] [--loss ...] [--repeats 9]
                                [--data w8a] [--tol ...] [--out FILE]

The same on data sets. One process, one thread for BLAS, sides in turn, medians of processor time.
The estimator and `solve` get the same seed, so they do the same epochs. Beside them is what
scikit-learn has for the loss, with its own tolerance.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from functools import partial
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
SHAPES = ("100x10", "200x20", "1000x60", "20640x8", "50000x9")
MADE = ("squared", "logistic", "smoothed_hinge", *LOSSES[1:], "absolute", "quantile")
#: Half the square, so that Ridge's alpha = 1 is C = 1.
PEERS: dict[str, Callable[..., Any]] = {
    "squared": Ridge,
    "logistic": LogisticRegression,
    "squared_hinge": partial(LinearSVC, random_state=0),
    "hinge": partial(LinearSVC, loss="hinge", random_state=0),
}


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
    """Return the times of `solve`, of the estimator, and of scikit-learn's."""
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
        if loss in PEERS:
            runs["peer"] = lambda i=intercept: PEERS[loss](fit_intercept=i).fit(X, labels)
        tasks = {side: Task(run, clock=time.process_time) for side, run in runs.items()}
        seconds = interleaved(tasks, repeats)
        rows.append({"data": name, "loss": loss, "intercept": intercept, "tol": tol, **seconds})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES), help="of made data, e.g. 9x2")
    parser.add_argument("--loss", nargs="+", default=list(MADE), help="losses on made data")
    parser.add_argument("--data", nargs="*", default=["w8a"])
    parser.add_argument("--tol", nargs="+", type=float, default=[1e-4, 1e-6])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out")
    options = parser.parse_args()
    with threadpool_limits(1):
        cells = [(name, loss, 1e-4) for name in options.shapes for loss in options.loss]
        cells += itertools.product(options.data, LOSSES, options.tol)
        rows = [row for cell in cells for row in measured(*cell, options.repeats)]
    print(
        table(
            ["data", "loss", "intercept", "tol", "solve ms", "fit ms", "fit/solve", "fit/peer"],
            [
                [
                    r["data"],
                    r["loss"],
                    "free" if r["intercept"] else "none",
                    f"{r['tol']:.0e}",
                    f"{1e3 * r['solve']:.2f}",
                    f"{1e3 * r['fit']:.2f}",
                    f"{r['fit'] / r['solve']:.2f}",
                    f"{r['fit'] / r['peer']:.2f}" if "peer" in r else "",
                ]
                for r in rows
            ],
            left=(0, 1, 2),
        )
    )
    path = save({"rows": rows}, options.out, "estimators.json")
    print(f"\n{path}")


if __name__ == "__main__":
    main()
