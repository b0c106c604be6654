"""Packed data: a folder of raw arrays that are mapped into memory, however large they are.

    header.json    shape, types, and a checksum of each array
    values         the entries, row by row
    columns        their columns (int32), for sparse rows
    start          where rows begin among them (int64), for sparse rows
    target         a number for each row

While a folder is written it has a file `progress.json`, and no header.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.problem.data import CsrRows, DenseRows, Rows
from adasdca.storage import FileError

HEADER, PROGRESS = "header.json", "progress.json"
FORMAT, VERSION = "adasdca packed", 1
#: Bytes that are read at a time for a checksum.
PIECE = 1 << 24
#: The types of the arrays; that of the values is in the header.
TYPES: dict[str, np.dtype[Any]] = {
    "columns": np.dtype("<i4"),
    "start": np.dtype("<i8"),
    "target": np.dtype("<f8"),
}
VALUES: dict[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "float64": np.dtype("<f8")}


@dataclass(frozen=True, eq=False, repr=False)
class Packed:
    """Data in a packed folder.

    Attributes
    ----------
    X : DenseRows or CsrRows
        The rows, in files mapped into memory: for `solve` with a `memory_limit`.
    y : array of shape (n,) or None
        The targets, in memory.
    names : list of str or None
        The names of the features, where the source had them.
    source : str
        The path of the folder.
    """

    X: Rows
    y: NDArray[np.float64] | None
    names: list[str] | None
    source: str

    def __repr__(self) -> str:
        n, d = self.X.shape
        kind = "dense" if self.X.dense else f"sparse, {self.X.n_stored} stored"
        return f"Packed({n} x {d} {self.X.values.dtype}, {kind}, from {self.source!r})"


def open_packed(path: str | os.PathLike[str], *, verify: bool = False) -> Packed:
    """Open a folder written by `pack`.

    Parameters
    ----------
    path : str or path
        The folder.
    verify : bool, default False
        Whether to read everything and compare its checksums.

    Returns
    -------
    Packed
        With X, y, names and source.

    Raises
    ------
    FileError
        If the folder is not complete, or damaged.
    """
    folder = Path(path)
    header = _read_header(folder)
    n, d = header["shape"]
    sparse, stored = header["kind"] == "csr", header["stored"]
    counts = {"values": stored, "target": n if header["target"] else 0}
    if sparse:
        counts |= {"columns": stored, "start": n + 1}
    types = TYPES | {"values": VALUES[header["dtype"]]}
    for name, count in counts.items():
        file = folder / name
        size = file.stat().st_size if file.is_file() else -1
        if size != count * types[name].itemsize:
            raise FileError(
                f"{file} has {size} bytes where {count * types[name].itemsize} belong, so that it "
                "is damaged; pack the source again."
            )
        if verify and checksum(file) != header["crc32"][name]:
            raise FileError(
                f"{file} does not have the checksum that its header names, so that it is damaged; "
                "pack the source again."
            )
    values = _mapped(folder / "values", types["values"], stored)
    if sparse:
        start = _mapped(folder / "start", types["start"], n + 1)
        if start[0] != 0 or start[-1] != stored:
            raise FileError(f"{folder / 'start'} is damaged; pack the source again.")
        X: Rows = CsrRows(
            values, _mapped(folder / "columns", types["columns"], stored), start, (n, d)
        )
    else:
        X = DenseRows(values.reshape(n, d))
    y = np.fromfile(folder / "target", TYPES["target"]) if header["target"] else None
    return Packed(X, y, header["names"], str(folder))


def _read_header(folder: Path) -> dict[str, Any]:
    if not (folder / HEADER).is_file():
        if (folder / PROGRESS).is_file():
            raise FileError(
                f"{folder} is not complete: its packing was stopped; pack the same source to the "
                "same folder to go on."
            )
        raise FileError(f"{folder} is not a packed folder; pass one that `pack` has written.")
    try:
        header: dict[str, Any] = json.loads((folder / HEADER).read_text("utf-8"))
        n, d = header["shape"]
        right = (
            header["format"] == FORMAT
            and header["version"] == VERSION
            and header["kind"] in ("csr", "dense")
            and header["dtype"] in VALUES
            and isinstance(header["target"], bool)
            and all(isinstance(k, int) and k >= 1 for k in (n, d))
            and isinstance(header["stored"], int)
            and (header["stored"] == n * d if header["kind"] == "dense" else header["stored"] >= 0)
            and isinstance(header["crc32"], dict)
            and (header["names"] is None or len(header["names"]) == d)
        )
    except (KeyError, TypeError, ValueError, RecursionError):
        right = False
    if not right:
        raise FileError(
            f"{folder / HEADER} is damaged, or of a later version; pack the source again."
        )
    return header


def _mapped(path: Path, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    if count == 0:  # nothing cannot be mapped
        return np.empty(0, dtype)
    return np.memmap(path, dtype=dtype, mode="r", shape=(count,))


def checksum(path: Path) -> int:
    """Return the checksum (CRC-32) of a file."""
    found = 0
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            found = zlib.crc32(piece, found)
    return found
