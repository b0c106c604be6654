"""Readers of the original files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from adasdca.datasets._content import Content
from adasdca.datasets._sources import Data, Source
from adasdca.files import read
from adasdca.files.streams import seekable
from adasdca.storage import Archive


class ContentError(ValueError):
    """A file that is not the data set it should be."""


def read_original(source: Source, path: Path) -> Data:
    """Read an original file and verify what it contains."""
    try:
        X, y = _read(source, path)
        X = sp.csr_matrix(X, dtype=source.dtype)
        y = np.ascontiguousarray(y, dtype=np.float64)
        if source.positive is not None:
            y = np.where(y == source.positive, 1.0, -1.0)
        if y.shape != X.shape[:1]:
            raise ContentError(f"it has {X.shape[0]} rows and labels of shape {y.shape}")
    except (ValueError, TypeError, LookupError, EOFError, OSError) as error:
        # A damaged archive ends in any of these.
        raise ContentError(f"it cannot be read as {_words(source)}: {error}") from error
    for name, want, got in (("n", source.n, X.shape[0]), ("d", source.d, X.shape[1])):
        if want is not None and want != got:
            raise ContentError(f"it has {name} = {got}, not {want}")
    if source.content is not None:
        found = Content.of(X, y)
        if found != source.content:
            raise ContentError(f"it contains {asdict(found)}, not {asdict(source.content)}")
    return X, y


def _words(source: Source) -> str:
    return source.format if isinstance(source.format, str) else repr(source.format)


def _read(source: Source, path: Path) -> Any:
    if callable(source.format):
        return source.format(path)
    if source.format == "dorothea":
        return read_dorothea(path)
    if source.format == "covtype":
        return read_covtype(path)
    table = read(path, format="svmlight", n_features=source.d)
    return table.X, table.y


def read_dorothea(path: Path) -> Data:
    """Read the training set from UCI's zip: a line of column numbers, from 1, for each row."""
    with Archive(path) as archive:
        members = {Path(name).name: name for name in archive.names}
        lines = archive.read(members["dorothea_train.data"]).splitlines()
        y = np.array(archive.read(members["dorothea_train.labels"]).split(), dtype=np.float64)
    rows = [np.array(line.split(), dtype=np.int64) - 1 for line in lines]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    indices = np.concatenate(rows)
    values = np.ones(len(indices), dtype=np.float32)
    return sp.csr_matrix((values, indices, indptr), shape=(len(rows), 100_000)), y


def read_covtype(path: Path) -> Data:
    """Read UCI's table and treat it as LIBSVM did: class 2 is +1, columns scaled to [0, 1].

    `svm-scale` writes six significant digits, so values are rounded to these.
    """
    table = np.loadtxt(seekable(path), delimiter=",", dtype=np.int32, ndmin=2)
    values, kinds = table[:, :-1], table[:, -1]
    scaled = np.empty(values.shape)
    for j in range(values.shape[1]):
        # A few thousand distinct values a column: rounding in decimal costs nothing this way.
        levels, place = np.unique(values[:, j], return_inverse=True)
        shares = (levels - levels[0]) / max(levels[-1] - levels[0], 1)
        scaled[:, j] = np.array([float(f"{share:g}") for share in shares])[place]
    return sp.csr_matrix(scaled), np.where(kinds == 2, 1.0, -1.0)
