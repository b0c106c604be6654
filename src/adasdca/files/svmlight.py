"""The text format of SVMlight, LIBSVM and LIBLINEAR: a line per row, ``label index:value ...``."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from adasdca import _core
from adasdca.errors import Argument, InputError
from adasdca.files.streams import CHUNK, chunks, create
from adasdca.files.table import Table, Target
from adasdca.problem.data import CsrRows, as_doubles, check_rows
from adasdca.storage import FileError


def read_svmlight(
    path: Path, target: Target, n_features: int | None, zero_based: bool, guessed: bool
) -> Table:
    """Read svmlight text; with `guessed` the format was not named by the caller."""
    if isinstance(target, str):
        raise InputError(
            Argument("target", target),
            f" is for files with named columns; the lines of {path}, an svmlight file, begin with "
            "the target: leave it out.",
        )
    reader = _core.SvmlightReader(0 if zero_based else 1, n_features)
    for piece in chunks(path):
        if flaw := reader.feed(piece):
            raise refusal(path, flaw, n_features, guessed)
    if flaw := reader.finish():
        raise refusal(path, flaw, n_features, guessed)
    values, columns, start, y, width = reader.take()
    if len(y) == 0:
        raise FileError(f"{path} has no rows, only blank lines or comments; check how it was made.")
    shape = (len(y), width if n_features is None else n_features)
    X = sp.csr_matrix((values, columns, start), shape=shape)
    X.has_canonical_format = True  # the reader sorts, and refuses an index that comes twice
    return Table(X, None if target is False else y, None, str(path))


def refusal(
    path: Path,
    flaw: _core.SvmlightFlaw,
    n_features: int | None,
    guessed: bool,
    before: int = 0,
) -> FileError:
    """Return the error about a flaw; `before` is the number of lines before the reader's first."""
    line = before + flaw.line
    word, text = (part.decode("utf-8", "backslashreplace") for part in (flaw.word, flaw.text))
    hint: tuple[Any, ...] = ()
    if guessed and line == 1:
        taken = " The file was taken for svmlight text; if it is something else, pass "
        hint = taken, Argument("format", ...), "."
    if "\0" in text:
        return FileError(
            f"{path}, line {line}: a zero byte, so this is no text; name a file of svmlight "
            "text in UTF-8, or decompress or convert this one.",
            *hint,
        )
    reason = _REASONS[flaw.part](word, n_features)
    reason = (reason,) if isinstance(reason, str) else reason
    return FileError(f"{path}, line {line}: ", *reason, f" The line reads: {text!r}.", *hint)


def _is_infinite(word: str) -> bool:
    try:
        return not math.isfinite(float(word))
    except ValueError:
        return False


def _label(word: str, n_features: int | None) -> str:
    if "," in word:
        return f"several labels, {word!r}; give each row one, e.g. by a file for each label."
    if ":" in word:
        return f"no label before {word!r}; put a number first, e.g. 0 if the label is not known."
    if _is_infinite(word):
        return f"the label {word!r} is not finite; remove the line or correct it."
    return f"the label {word!r} is not a number; number the classes, e.g. -1 and +1."


def _entry(word: str, n_features: int | None) -> str:
    index, colon, _ = word.partition(":")
    if colon and index.lstrip("-").isdecimal():
        bounds = "negative" if index.startswith("-") else "too large"
        return f"the index in {word!r} is {bounds}; number the features 1, 2, 3, ..."
    if index == "qid":
        return f"{word!r} is in a place of its own; put it right behind the label, or remove it."
    return f"{word!r} is not of the form index:value; write e.g. 3:0.5, with no blank inside."


def _value(word: str, n_features: int | None) -> str:
    value = word.partition(":")[2]
    if _is_infinite(value):
        return (
            f"the value in {word!r} is not finite; remove the entry (it is 0 then), "
            "fill it, or remove the line."
        )
    return f"the value in {word!r} is not a number; correct or remove it."


_REASONS: dict[str, Callable[[str, int | None], str | tuple[Any, ...]]] = {
    "label": _label,
    "entry": _entry,
    "value": _value,
    "qid": lambda word, _: f"{word!r} needs a whole number; write e.g. qid:7, or remove it.",
    "zero": lambda word, _: (
        f"the index in {word!r} is 0, but the first feature is 1; if this file counts from 0, ",
        "read it with ",
        Argument("zero_based", True),
        ".",
    ),
    "beyond": lambda word, n_features: (
        f"the index in {word!r} is beyond ",
        Argument("n_features", n_features),
        "; remove the entry, or raise ",
        Argument("n_features"),
        ".",
    ),
    "twice": lambda word, _: f"the index {word} comes twice; keep one entry of it, or add them up.",
}


def write_svmlight(
    path: str | os.PathLike[str], X: Any, y: Any, *, zero_based: bool = False
) -> None:
    """Write rows and targets as svmlight text.

    Parameters
    ----------
    path : str or path
        The file to write, compressed as its suffix says: ``.gz``, ``.bz2``, ``.xz`` or ``.zst``.
        One of that name is replaced in one step, once the new one is complete.
    X : array or sparse matrix of shape (n, d)
        The features. Zeros of dense arrays are left out, as the format has it; all other values
        are written so that reading them gives the same doubles. A reader sees the number of columns
        only if the last one has an entry: pass `n_features` to `read` otherwise.
    y : array of shape (n,)
        The targets, finite numbers.
    zero_based : bool, default False
        Count the features from 0, not from 1 as LIBSVM does.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from adasdca import files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "two.svm"
    ...     files.write_svmlight(path, [[0.0, 0.1], [3.0, 0.0]], [1, -1])
    ...     print(path.read_text(), end="")
    1 2:0.1
    -1 1:3
    """
    path = Path(path)
    rows = check_rows(X)
    labels = as_doubles(y, "y")
    if labels.shape != rows.shape[:1] or not np.isfinite(labels).all():
        raise InputError(
            f"y must hold {rows.shape[0]} finite numbers, one for each row of X; "
            f"it has shape {labels.shape}."
        )
    if not isinstance(rows, CsrRows):
        sparse = sp.csr_matrix(rows.values)
        start = sparse.indptr.astype(np.int64)
        rows = CsrRows(sparse.data, sparse.indices, start, rows.shape)
    base, row = (0 if zero_based else 1), 0
    with create(path) as file:
        while row < len(labels):
            text, row = _core.write_svmlight(rows.core, labels, base, CHUNK, row)
            file.write(text)
