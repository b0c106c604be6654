"""The text format of SVMlight, LIBSVM and LIBLINEAR: a line per row, ``label index:value ...``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from adasdca.data import as_doubles
from adasdca.files.streams import create, seekable
from adasdca.files.table import FileError, Table, Target


def read_svmlight(
    path: Path, target: Target, n_features: int | None, zero_based: bool, guessed: bool
) -> Table:
    """Read a text file of the form described above."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(
            seekable(path), n_features=n_features, zero_based=zero_based, dtype=np.float64
        )
    except ValueError as error:
        raise FileError(f"{path}: {error}") from error
    return Table(sp.csr_matrix(X), None if target is False else y, None, str(path))


def write_svmlight(
    path: str | os.PathLike[str], X: Any, y: Any, *, zero_based: bool = False
) -> None:
    """Write rows and targets as svmlight text, compressed as the suffix of the path says."""
    from sklearn.datasets import dump_svmlight_file

    with create(Path(path)) as file:
        dump_svmlight_file(X, as_doubles(y, "y"), file, zero_based=zero_based)
