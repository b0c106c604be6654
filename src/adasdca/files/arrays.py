"""npz files: sparse or dense arrays with their targets."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adasdca.errors import counted
from adasdca.files.streams import first_bytes, seekable
from adasdca.files.table import Table, Target, other_width
from adasdca.problem.data import check_rows
from adasdca.storage import FileError, check_size, read_arrays

_LAYOUTS = (
    "a dense X, or the arrays of scipy.sparse.save_npz, or data, indices, indptr and shape "
    "of a CSR matrix; each with an array y"
)


def read_npz(path: Path, target: Target, n_features: int | None) -> Table:
    """Read arrays saved by numpy.savez or scipy.sparse.save_npz; nothing is unpickled."""
    source = seekable(path)
    if first_bytes(path, 6) == b"\x93NUMPY":
        raise FileError(f"{path} holds a single array, no archive; save {_LAYOUTS}.")
    remedy = (
        f"is not an npz archive of plain arrays ({{error}}); save {_LAYOUTS}, with numpy.savez."
    )
    arrays = read_arrays(path, source if isinstance(source, io.BytesIO) else None, remedy)
    X = _matrix(path, arrays, n_features)
    return Table(X, _targets(path, arrays, target, X.shape[0]), None, str(path))


def _matrix(path: Path, arrays: Mapping[str, NDArray[Any]], n_features: int | None) -> Any:
    found = ", ".join(sorted(arrays)) or "nothing"
    try:
        if "X" in arrays:
            X: Any = arrays["X"]
        elif {"data", "shape"} <= arrays.keys():
            X = _sparse(path, arrays)
        else:
            raise ValueError("neither X nor data and shape are in it")
        if n_features is not None and sp.issparse(X) and X.shape[1] < n_features:
            X.resize(X.shape[0], n_features)
    except FileError:
        raise
    except (IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise FileError(
            f"{path} (it holds {found}): {error}. What can be read is {_LAYOUTS}."
        ) from error
    try:
        rows = check_rows(X)
    except (TypeError, ValueError) as error:
        raise FileError(f"{path} (it holds {found}): {error}") from error
    if n_features is not None and rows.shape[1] != n_features:
        width = counted(rows.shape[1], "feature")
        raise FileError(f"{path} has {width} where ", *other_width(n_features))
    return rows.matrix


def _sparse(path: Path, arrays: Mapping[str, NDArray[Any]]) -> Any:
    for name in ("shape", "indices", "indptr", "row", "col", "coords"):
        if name in arrays and arrays[name].dtype.kind not in "iu":
            raise ValueError(f"{name} is of {arrays[name].dtype}, not of integers")
    shape = tuple(int(k) for k in arrays["shape"])
    if len(shape) != 2 or min(shape) < 0:
        raise ValueError(f"shape is {shape}, not that of a matrix")
    # CSR has a number for each row, whatever the row holds.
    check_size(path, 8 * shape[0], sum(array.nbytes for array in arrays.values()))
    kind = arrays["format"].item() if "format" in arrays else b"csr"
    kind = kind.decode("ascii") if isinstance(kind, bytes) else str(kind)
    if kind in ("csr", "csc"):
        make = sp.csr_matrix if kind == "csr" else sp.csc_matrix
        return make((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
    if kind == "coo":
        if "coords" in arrays:
            row, col = arrays["coords"]
        else:
            row, col = arrays["row"], arrays["col"]
        return sp.coo_matrix((arrays["data"], (row, col)), shape=shape)
    raise ValueError(f"the sparse format {kind!r} is not one of csr, csc and coo")


def _targets(
    path: Path, arrays: Mapping[str, NDArray[Any]], target: Target, n: int
) -> NDArray[Any] | None:
    if target is False:
        return None
    name = target or "y"
    if name not in arrays:
        if target is None:
            return None
        raise FileError(
            f"{path} has no array {target!r} for the target; it holds {', '.join(sorted(arrays))}."
        )
    y = arrays[name]
    if y.shape != (n,):
        rows = counted(n, "row")
        raise FileError(f"{path}: {name} has shape {y.shape}, but X has {rows}; save ({n},).")
    if y.dtype.kind == "U":
        return y
    if y.dtype.kind not in "biuf":
        raise FileError(f"{path}: {name} has dtype {y.dtype}; save numbers, or labels as text.")
    y = y.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(y))
    if len(bad):
        raise FileError(
            f"{path}: {name}[{bad[0]}] is {y[bad[0]]}; drop such rows or correct them first."
        )
    return y
