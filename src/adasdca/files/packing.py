"""`pack`: a file of any size becomes a packed folder, a piece at a time.

After each piece the folder says how far it is (`progress.json`), so that a packing that was stopped
goes on from there.
"""

from __future__ import annotations

import io
import json
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.errors import Argument, InputError
from adasdca.files.columns import Choice
from adasdca.files.frames import parquet_pieces, parse_csv, separator_of
from adasdca.files.packed import (
    FORMAT,
    HEADER,
    PROGRESS,
    TYPES,
    VALUES,
    VERSION,
    Packed,
    open_packed,
)
from adasdca.files.reading import guess_format
from adasdca.files.streams import chunks
from adasdca.files.svmlight import refusal
from adasdca.files.table import Target
from adasdca.storage import FileError, write_whole

#: Bytes of text, or rows of a Parquet file, that are packed at a time.
PIECE, ROWS = 1 << 25, 1 << 16


class _Piece(NamedTuple):
    """Some rows: entries, where rows begin among them, targets, and the place behind them."""

    values: NDArray[Any]
    columns: NDArray[Any] | None
    start: NDArray[np.int64] | None
    y: NDArray[np.float64] | None
    rows: int
    width: int
    position: int
    lines: int = 0
    names: list[str] | None = None


def pack(
    source: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - as in `read`
    target: Target = None,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: str = "float64",
    tell: Callable[[int, int], None] | None = None,
) -> Packed:
    """Convert a file of any size to a packed folder, with little memory.

    Parameters
    ----------
    source : str or path
        An svmlight, CSV or Parquet file, as `read` takes it; text may be compressed. Sparse rows
        stay sparse, and all else is dense.
    path : str or path
        The folder to write. If it holds the beginning of the same packing, that is gone on with.
    format, target, n_features, zero_based
        As in `read`.
    dtype : {"float64", "float32"}
        The type of the entries.
    tell : callable, optional
        Called after each piece with the numbers of rows and entries so far.

    Returns
    -------
    Packed
        The open folder.
    """
    source, folder = Path(source), Path(path)
    if dtype not in VALUES:
        raise InputError(f"dtype = {dtype!r} is not allowed; choose 'float64' or 'float32'.")
    kind = format or guess_format(source)
    if kind not in ("svmlight", "csv", "parquet"):
        raise InputError(
            f"format = {kind!r} cannot be packed; choose 'svmlight', 'csv' or 'parquet'. An array "
            "of a .npy file needs no packing: numpy.load(path, mmap_mode='r')."
        )
    if kind == "svmlight" and isinstance(target, str):
        raise InputError(
            Argument("target", target),
            " is for files with named columns; the lines of an svmlight file begin with the "
            "target: leave it out.",
        )
    options = [kind, target, n_features, zero_based, dtype]
    done = _begin(folder, source, options)
    pieces: Iterator[_Piece]
    if kind == "svmlight":
        pieces = _svmlight(source, done, n_features, zero_based)
    elif kind == "csv":
        pieces = _csv(source, done, target, n_features)
    else:
        pieces = _parquet(source, done, target, n_features)
    for piece in pieces:
        _append(folder, done, piece, VALUES[dtype])
        if tell is not None:
            tell(done["rows"], done["stored"])
    return _finish(folder, done, n_features, dtype, kind)


def _begin(folder: Path, source: Path, options: list[Any]) -> dict[str, Any]:
    """Return how far the folder is, made empty if it is new."""
    state = source.stat()
    identity = [source.name, state.st_size, state.st_mtime_ns, *options]
    if (folder / HEADER).exists():
        raise FileError(f"{folder} is packed already; remove it, or choose another name.").about(
            "folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / PROGRESS).exists():
        try:
            done: dict[str, Any] = json.loads((folder / PROGRESS).read_text("utf-8"))
            same = done["identity"] == identity
            for name, size in done["sizes"].items():
                if (folder / name).stat().st_size < size:
                    raise FileError(f"{folder / name} is damaged; remove {folder}.")
                os.truncate(folder / name, size)
        except (KeyError, TypeError, AttributeError, ValueError, OSError) as error:
            raise FileError(f"{folder / PROGRESS} is damaged; remove {folder}.") from error
        if not same:
            raise FileError(
                f"{folder} holds the beginning of another packing, or its source or options have "
                "changed since; remove it, or choose another name."
            )
        return done
    if any(folder.iterdir()):
        raise FileError(f"{folder} is not empty, and no packed folder; choose another name.")
    done = {
        "identity": identity,
        "position": 0,
        "lines": 0,
        "rows": 0,
        "stored": 0,
        "width": 0,
        "names": None,
        "sizes": {},
        "crc32": {},
    }
    _save(folder, done)
    return done


def _save(folder: Path, done: dict[str, Any]) -> None:
    write_whole(folder / PROGRESS, json.dumps(done))


def _append(folder: Path, done: dict[str, Any], piece: _Piece, dtype: np.dtype[Any]) -> None:
    with np.errstate(over="ignore"):
        values = piece.values.astype(dtype)
    if not np.isfinite(values).all():
        raise FileError(
            f"rows {done['rows'] + 1} to {done['rows'] + piece.rows} hold a value beyond {dtype}; "
            "pack with dtype='float64'."
        )
    arrays = {"values": values}
    if piece.columns is not None:
        assert piece.start is not None
        first = [0] if done["rows"] == 0 else []
        arrays["columns"] = piece.columns
        arrays["start"] = np.concatenate([first, piece.start[1:] + done["stored"]])
    if piece.y is not None:
        arrays["target"] = piece.y
    for name, array in arrays.items():
        data = np.ascontiguousarray(array, TYPES.get(name, dtype)).tobytes()
        with (folder / name).open("ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        done["sizes"][name] = done["sizes"].get(name, 0) + len(data)
        done["crc32"][name] = zlib.crc32(data, done["crc32"].get(name, 0))
    done["rows"] += piece.rows
    done["stored"] += len(values.ravel())
    done["width"] = max(done["width"], piece.width)
    done["position"], done["lines"], done["names"] = piece.position, piece.lines, piece.names
    _save(folder, done)


def _finish(
    folder: Path, done: dict[str, Any], n_features: int | None, dtype: str, kind: str
) -> Packed:
    width = done["width"] if n_features is None else n_features
    if done["rows"] == 0 or width == 0:
        raise FileError(f"{folder}: the source has no rows, or no features; check how it was made.")
    if width >= 2**31:
        raise FileError(f"{folder}: {width} features; up to 2**31 - 1 are supported.")
    header = {
        "format": FORMAT,
        "version": VERSION,
        "kind": "csr" if kind == "svmlight" else "dense",
        "shape": [done["rows"], width],
        "stored": done["stored"],
        "dtype": dtype,
        "target": "target" in done["sizes"],
        "names": done["names"],
        "crc32": done["crc32"],
    }
    for name in ("values", "columns") if kind == "svmlight" else ():
        (folder / name).touch()  # of rows without any entry
        header["crc32"].setdefault(name, 0)
    if not header["target"]:
        (folder / "target").touch()
        header["crc32"]["target"] = 0
    write_whole(folder / HEADER, json.dumps(header))
    (folder / PROGRESS).unlink()
    return open_packed(folder)


def _texts(source: Path, position: int) -> Iterator[tuple[bytes, int]]:
    """Yield whole lines from a place on, decompressed, with the place behind them."""
    rest, here = b"", 0
    for piece in chunks(source, PIECE):
        begin, here = here, here + len(piece)
        if here <= position:
            continue
        rest += piece[max(position - begin, 0) :]
        cut = rest.rfind(b"\n") + 1
        if cut:
            yield rest[:cut], here - (len(rest) - cut)
            rest = rest[cut:]
    if rest:
        yield rest, here


def _svmlight(
    source: Path, done: dict[str, Any], n_features: int | None, zero_based: bool
) -> Iterator[_Piece]:
    for text, position in _texts(source, done["position"]):
        reader = _core.SvmlightReader(0 if zero_based else 1, n_features)
        if flaw := reader.feed(text) or reader.finish():
            raise refusal(source, flaw, n_features, False, done["lines"])
        values, columns, start, y, width = reader.take()
        lines = done["lines"] + text.count(b"\n")
        yield _Piece(
            values,
            np.asarray(columns),
            np.asarray(start, dtype=np.int64),
            y,
            len(y),
            width,
            position,
            lines,
        )


def _csv(
    source: Path, done: dict[str, Any], target: Target, n_features: int | None
) -> Iterator[_Piece]:
    separator = separator_of(source)
    head = b""
    for piece in chunks(source, 1 << 16):
        head += piece
        if b"\n" in head:
            break
    head = head[: head.find(b"\n") + 1] or head
    for text, position in _texts(source, max(done["position"], len(head))):
        table = parse_csv(source, io.BytesIO(head + text), separator, Choice(target), n_features)
        yield _dense(source, table, position, done["rows"])


def _parquet(
    source: Path, done: dict[str, Any], target: Target, n_features: int | None
) -> Iterator[_Piece]:
    pieces = parquet_pieces(source, Choice(target), n_features, done["position"], ROWS)
    for table, position in pieces:
        yield _dense(source, table, position, done["rows"])


def _dense(source: Path, table: Any, position: int, before: int) -> _Piece:
    if table.y is not None and table.y.dtype == object:
        raise FileError(
            f"{source}: the target holds text ({str(table.y[0])!r} in row {before + 1}); number "
            "the classes, e.g. -1 and +1."
        )
    n, d = table.X.shape
    return _Piece(table.X, None, None, table.y, n, d, position, 0, table.names)
