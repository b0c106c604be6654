"""`read`: which format a file has, and the call of its reader."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from pathlib import Path

from adasdca.errors import Argument, InputError
from adasdca.files.arrays import read_npz
from adasdca.files.columns import MISSING, Choice, Columns
from adasdca.files.frames import read_csv, read_parquet
from adasdca.files.streams import first_bytes, strip_compression
from adasdca.files.svmlight import read_svmlight
from adasdca.files.table import Table, Target

FORMATS = ("svmlight", "csv", "parquet", "npz")

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
    ".svm": "svmlight",
    ".libsvm": "svmlight",
    ".svmlight": "svmlight",
    ".txt": "svmlight",
}
_MAGIC = {b"PAR1": "parquet", b"PK\x03\x04": "npz"}


def read(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - the word that people look for
    target: Target = None,
    n_features: int | None = None,
    zero_based: bool = False,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    one_hot: Sequence[str] | bool = False,
    missing: str = "refuse",
    known: Columns | None = None,
    lenient: bool = False,
) -> Table:
    r"""Read a file of data.

    Parameters
    ----------
    path : str or path
        The file, plain or compressed with gzip, bzip2, xz or Zstandard, as its first bytes tell.
    format : {"svmlight", "csv", "parquet", "npz"}, optional
        By default the suffix decides, after that of a compression: ``.csv``, ``.tsv`` and
        ``.tab``, ``.parquet`` and ``.pq``, ``.npz``; all else is svmlight, unless it begins like
        Parquet or a zip archive.
    target : str or False, optional
        The column of the target in CSV and Parquet files, or its array in npz files. By default the
        one column called "target", "label" or "y" ("y" in npz files), and if there is none the
        table has no target. With False everything is a feature. Not for svmlight files, whose lines
        begin with the target.
    n_features : int, optional
        The number of features, e.g. of a model: svmlight files get that many columns, other files
        must have them. By default the largest index in an svmlight file.
    zero_based : bool, default False
        Whether the indices of an svmlight file count from 0. LIBSVM's count from 1, and an index 0
        is an error by default: a guess could be wrong for one of two files that belong together.
    columns, drop : sequence of str, optional
        Of CSV and Parquet files: the columns to use as features, or those to leave out.
    one_hot : sequence of str or bool, default False
        Of CSV and Parquet files: the columns whose values are categories, each of which becomes a
        feature of zeros and ones called ``column=value``; True: all columns that hold text.
    missing : {"refuse", "drop", "mean", "median", "most_frequent"}, default "refuse"
        Of CSV and Parquet files: what to do about empty and NaN entries: an error, leave their rows
        out, or fill them from the other rows of the column (categories by the most frequent one).
    known : Columns, optional
        The `columns` of an earlier table: the same features are made here, from columns of the same
        names in any order.
    lenient : bool, default False
        With `known`: whether other columns are left out and an unknown category counts as none of
        them, instead of an error.

    Returns
    -------
    Table
        With X, y, names and source.

    Raises
    ------
    FileError
        If the contents cannot be used; the message says where and what to do.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from adasdca import files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "three.svm"
    ...     _ = path.write_text("+1 1:0.5 3:2\n-1 2:1.5 # a comment\n+1\n")
    ...     table = files.read(path)
    >>> table.X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1.5, 0. ],
           [0. , 0. , 0. ]])
    >>> table.y
    array([ 1., -1.,  1.])
    """
    path = Path(path)
    if n_features is not None and (n_features := operator.index(n_features)) < 1:
        raise InputError(f"n_features = {n_features} must be at least 1, or None.")
    if missing not in MISSING:
        raise InputError(
            f"missing = {missing!r} is unknown; choose one of {', '.join(map(repr, MISSING))}."
        ).about("missing")
    choice = Choice(target, columns, drop, one_hot, missing, known, lenient)
    chosen = guess_format(path) if format is None else format
    if chosen in ("svmlight", "npz") and choice.shapes:
        raise InputError(
            *_listed("columns", "drop", "one_hot", "missing"),
            f" are for CSV and Parquet files, not for {chosen}; leave them out, or say what the "
            "file is with ",
            Argument("format", ...),
            ".",
        )
    if chosen == "svmlight":
        return read_svmlight(path, target, n_features, zero_based, guessed=format is None)
    if chosen not in FORMATS:
        raise InputError(
            f"format = {format!r} is unknown; choose one of {', '.join(map(repr, FORMATS))}."
        )
    if zero_based:
        raise InputError(
            Argument("zero_based"), f" is for svmlight files only, not for {chosen}; leave it out."
        )
    if chosen == "npz":
        return read_npz(path, target, n_features)
    reader = {"csv": read_csv, "parquet": read_parquet}[chosen]
    return reader(path, choice, n_features)


def _listed(*names: str) -> list[Argument | str]:
    """Return the parts of a message that name these arguments."""
    between = [", "] * (len(names) - 2) + [" and ", ""]
    return [part for pair in zip(map(Argument, names), between, strict=True) for part in pair]


def guess_format(path: Path) -> str:
    """Return the format of a file, by its suffix or its first bytes."""
    suffix = strip_compression(path)[0].suffix.lower()
    return _SUFFIXES.get(suffix) or _MAGIC.get(first_bytes(path, 4), "svmlight")
