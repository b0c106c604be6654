"""The data of a task: a known data set, or a synthetic one from its name."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from adasdca import datasets


@lru_cache(maxsize=8)
def load(name: str, rows: int | None = None) -> tuple[Any, Any]:
    """Return (X, y) of a data set, or of the first rows of it in a fixed random order."""
    X, y = datasets.load(name)
    if rows is None or rows >= len(y):
        return X, y
    kept = np.random.default_rng(0).permutation(len(y))[:rows]
    return X[kept], y[kept]


@lru_cache(maxsize=1)
def generate(name: str) -> tuple[Any, Any]:
    """Return (CSR matrix of float32, labels ±1) as the name of synthetic data describes them.

    Row entries are drawn one from each of `per_row` equal strata of the features: sorted and
    distinct without a sort. Labels are the signs of a random linear model with noise.
    """
    sizes = dict(part.split("=") for part in name.split()[1:])
    n, per_row, d = (int(sizes[key]) for key in ("n", "per_row", "d"))
    rng = np.random.default_rng(0)
    stratum = d // per_row
    columns = rng.integers(0, stratum, size=(n, per_row), dtype=np.int32)
    columns += np.arange(per_row, dtype=np.int32) * stratum
    # Rows of norm about 1, whatever their number of entries.
    values = rng.random(size=n * per_row, dtype=np.float32) * np.float32((3 / per_row) ** 0.5)
    start = np.arange(n + 1, dtype=np.int64) * per_row
    X = sp.csr_matrix((values, columns.reshape(-1), start), shape=(n, d))
    score = X @ rng.standard_normal(d).astype(np.float32)
    y = np.where(score + 0.1 * rng.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


def problem(name: str, rows: int | None = None) -> tuple[Any, Any]:
    """Return the (X, y) of a task."""
    return generate(name) if name.startswith("synthetic ") else load(name, rows)
