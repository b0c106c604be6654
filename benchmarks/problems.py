"""Data sets to try solvers on: scikit-learn's, those of the data folder, and made-up nasty ones.

All are small, or made small by leaving rows out, and none is scaled unless that is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import scipy.sparse as sp
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

import adasdca
from adasdca.datasets._folders import read_npz

ROWS, COLUMNS = 1500, 2000  # more rows are left out, more columns stay sparse


class Data(NamedTuple):
    X: Any
    target: Any
    labels: Any = None  # None: regression only
    weight: Any = None


def two_classes(X: Any, positive: Any) -> Data:
    labels = np.where(positive, 1.0, -1.0)
    return Data(X, labels, labels)


def one_against_rest(load: Callable[..., Any], label: int) -> Callable[[], Data]:
    def read() -> Data:
        X, y = load(return_X_y=True)
        return two_classes(X, y == label)

    return read


def diabetes() -> Data:
    return Data(*datasets.load_diabetes(return_X_y=True, scaled=False))


def digits() -> Data:
    X, y = datasets.load_digits(return_X_y=True)
    return two_classes(X, y % 2 == 0)


def mushrooms() -> Data:
    X, y = adasdca.datasets.load_mushrooms()
    return two_classes(X, y > 0)


SHIPPED: dict[str, Callable[[], Data]] = {
    "breast_cancer": one_against_rest(datasets.load_breast_cancer, 1),
    "diabetes": diabetes,
    "wine": one_against_rest(datasets.load_wine, 0),
    "iris_0": one_against_rest(datasets.load_iris, 0),
    "iris_1": one_against_rest(datasets.load_iris, 1),
    "digits": digits,
    "mushrooms": mushrooms,
}
SHAPES = {"one_feature": (400, 1), "more_columns": (40, 200), "three_rows": (3, 2)}
NASTY = (
    *("timestamps", "nanoseconds", "duplicated", "zeros", "separable", "float32", "scales"),
    *("far_target", "far_features", "cauchy", "rare_class", "weights", *SHAPES),
)


def nasty(name: str) -> Data:
    """Return made-up data; what is nasty about them comes after the scores are known."""
    rng = np.random.default_rng(crc32(name.encode()))
    n, d = SHAPES.get(name, (500, 8))
    X = rng.standard_cauchy((n, d)) if name == "cauchy" else rng.standard_normal((n, d))
    score = X @ rng.standard_normal(d)
    target = score + rng.standard_normal(n)
    weight = None
    match name:
        case "timestamps":  # seconds of a month
            X[:, 0] = np.round(1.6e9 + 2.6e6 * rng.random(n))
        case "nanoseconds":
            X[:, 0] = 1.6e18 + 1e9 * np.arange(n)
        case "duplicated":
            X = np.hstack([X, X, X[:, :3]])
        case "zeros":
            X[:, 3] = 0
            X[::10] = 0
        case "separable":
            X, target = X[np.abs(score) > 0.5], score[np.abs(score) > 0.5]
        case "float32":
            X = X.astype(np.float32)
        case "scales":
            X *= np.logspace(-6, 6, d)
        case "far_target":
            return Data(X, 5000 + 2.5 * (target - target.mean()) / target.std())
        case "far_features":
            X += 1000
        case "rare_class":
            return two_classes(X, np.arange(n) == 17)
        case "three_rows":
            target = np.array([1.0, -1.0, 2.0])
        case "weights":
            weight = 10 ** rng.uniform(-3, 3, n)
    return Data(X, target, np.where(target > 0, 1.0, -1.0), weight)


def files(folder: Path) -> dict[str, Path]:
    """Return the files of data in a folder, and in its folder `more`, by name."""
    found = sorted([*folder.glob("*.npz"), *(folder / "more").glob("*.npz")])
    return {path.stem: path for path in found}


def some(X: Any, y: Any, most: int, dense: float = 0.1) -> tuple[Any, Any]:
    """Return some of too many rows; dense if more than this share of the entries is stored."""
    rows = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:most])
    X, y = X[rows], y[rows]
    return (X.toarray() if X.nnz > dense * math.prod(X.shape) else X), y


def signs(target: Any) -> Any:
    """Return targets as ±1: two values by their sign, numbers by their median."""
    return np.where(target > (np.median(target) if len(np.unique(target)) > 2 else 0.0), 1.0, -1.0)


@dataclass(frozen=True)
class Source:
    """A data set: shipped, made up or, with a path, a file."""

    name: str
    path: Path | None = None

    def described(self) -> tuple[bool, bool]:
        """Whether it has classes and whether it can be dense, without reading all of it."""
        if self.path is None:
            return load(self).labels is not None, True
        with np.load(self.path) as file:
            return len(np.unique(file["y"])) <= 20, bool(file["shape"][1] <= COLUMNS)


@lru_cache(maxsize=4)
def load(source: Source) -> Data:
    """Return the data as they are given, of too many rows some."""
    if source.path is None:
        data = nasty(source.name) if source.name in NASTY else SHIPPED[source.name]()
    else:
        X, y = read_npz(source.path, source.name)
        data = two_classes(X, y == 1) if source.described()[0] else Data(X, y)
    n = data.X.shape[0]
    rows = np.sort(np.random.default_rng(0).permutation(n)[:ROWS])
    data = Data(*(None if part is None else part[rows] for part in data))
    if sp.issparse(data.X) and data.X.shape[1] <= COLUMNS:
        data = data._replace(X=data.X.toarray())
    return data


@lru_cache(maxsize=2)
def matrix(source: Source, version: str, form: str) -> Any:
    X = load(source).X
    if version == "std":  # without a shift where that would make zeros many numbers
        X = StandardScaler(with_mean=not sp.issparse(X)).fit_transform(X)
    return sp.csr_matrix(X) if form == "csr" else np.ascontiguousarray(X)


def sources(folder: Path | None) -> tuple[Source, ...]:
    found = {} if folder is None else files(folder)
    stored = [Source(name, found[name]) for name in sorted(found) if name not in SHIPPED]
    return (*map(Source, SHIPPED), *stored, *map(Source, NASTY))
