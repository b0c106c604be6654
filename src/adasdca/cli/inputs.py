"""The data that commands are given, their targets, and errors about both."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adasdca import datasets
from adasdca.cli import blocks
from adasdca.cli.output import busy, note, plain
from adasdca.cli.usage import usage_error, usage_errors
from adasdca.errors import counted
from adasdca.files import FORMATS, Table, read
from adasdca.files.columns import Columns
from adasdca.models._certify import quantities
from adasdca.problem.losses import LOSSES, Loss, get_loss

#: The limit that is the memory which is free.
AUTO = "auto"


def chosen_loss(name: str, **parameters: float | None) -> Loss:
    """Return the loss of that name with the parameters that were given."""
    given = {k: v for k, v in parameters.items() if v is not None}
    with usage_errors("--loss"):
        loss = get_loss(name)
    for option in given:
        if option not in _parameters(type(loss)):
            others = [other for other, cls in LOSSES.items() if option in _parameters(cls)]
            raise usage_error(
                f"the loss {name} has no {option}; leave it out, or choose a loss that has one: "
                f"{', '.join(others)}.",
                f"--{option}",
            )
    with usage_errors(" ".join(f"--{option}" for option in given)):
        return get_loss(name, **given)


def _parameters(cls: type[Loss]) -> list[str]:
    return [field.name for field in fields(cls)]  # type: ignore[arg-type]


@dataclass(frozen=True)
class Source:
    """Data as they were read, and where from."""

    table: Table
    sha256: str
    limit: int | None = None  # of the memory of a solve, where the rows stay on the disk

    def describe(self) -> dict[str, Any]:
        """Return what JSON documents and models say of the data."""
        n, d = self.table.X.shape
        nnz = self.table.X.nnz if sp.issparse(self.table.X) else n * d
        return {"source": self.table.source, "sha256": self.sha256, "n": n, "d": d, "nnz": nnz}


@dataclass(frozen=True)
class Reading:
    """How a file is to be read; texts of several columns are separated by commas."""

    file_format: str | None = None
    target: str | None = None
    features: int | None = None
    zero_based: bool = False
    columns: str | None = None
    drop: str | None = None
    one_hot: str | None = None
    missing: str = "refuse"
    known: Columns | None = field(default=None, compare=False)
    lenient: bool = field(default=False, compare=False)

    def read(self, path: str) -> Table:
        """Read the file."""
        hot = self.one_hot == "auto" or _names(self.one_hot) or False
        return read(
            path,
            format=self.file_format,
            target=self.target,
            n_features=self.features,
            zero_based=self.zero_based,
            columns=_names(self.columns),
            drop=_names(self.drop),
            one_hot=hot,
            missing=self.missing,
            known=self.known,
            lenient=self.lenient,
        )


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def chosen_data(data: str | None) -> str:
    """Return what to read: the data named, else what is piped in, else the package's own data."""
    if data is not None:
        return data
    if _piped():
        return "-"
    note("No data given: these are the mushrooms, which come with the package.")
    return "mushrooms"


def _piped() -> bool:
    """Whether something is at the standard input: a pipe, a file or a socket."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError, AttributeError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def read_data(data: str, how: Reading, memory_limit: str | None = None) -> Source:
    """Read a file, or load the data set of that name if there is no such file.

    With a limit, even if it is "auto", rows that would not fit into memory stay on the disk.
    """
    if how.file_format is not None and how.file_format not in FORMATS:
        raise usage_error(
            f"{how.file_format!r} is unknown; choose one of {', '.join(FORMATS)}.", "--format"
        )
    piped = data == "-"
    data = "/dev/stdin" if piped else data
    is_file = os.path.exists(data)
    if not is_file and data not in datasets.names():
        raise usage_error(
            f"{data} is neither a file nor a data set; check the name, or choose one of "
            f"{', '.join(datasets.names())}.",
            "DATA",
        )
    with usage_errors("DATA"), busy(f"Reading {data}"):
        limit = None
        if is_file and not piped and memory_limit is not None:
            asked = None if memory_limit == AUTO else memory_limit
            limit = blocks.limit_for(data, how.file_format, asked)
        if limit is not None:
            blocks.refuse_others(
                columns=how.columns,
                drop=how.drop,
                one_hot=how.one_hot,
                missing=how.missing != "refuse",
            )
            packed = data, how.file_format, how.target, how.features, how.zero_based
            return Source(*blocks.packed_table(*packed), limit)
        if is_file:
            table = how.read(data)
            if piped:
                table = replace(table, source="standard input")
            if table.dropped:
                note(
                    f"{table.dropped} of {counted(table.dropped + table.X.shape[0], 'row')} of "
                    f"{table.source} lack a value and are left out."
                )
            if how.known is None:
                _tell_odd_columns(table, how.one_hot == "auto")
            return Source(table, _digest(table))
        if how != Reading():
            raise usage_error(
                f"{data} is a data set; --format, --target, --features, --zero-based, --columns, "
                "--drop, --one-hot and --missing are for files.",
                "DATA",
            )
        table = Table(*datasets.load(data), None, data)
        return Source(table, _digest(table))


def _tell_odd_columns(table: Table, unasked: bool) -> None:
    """Mention a column without a name, and unasked categories of fewer than two rows each."""
    if table.columns is None:
        return
    if "" in table.columns.left_out:
        note(
            f"The first column of {table.source} has no name, like the index of a table; it is "
            "left out."
        )
    for name, values in table.columns.categories.items() if unasked else ():
        if 2 * len(values) > table.X.shape[0]:
            note(
                f"The column {name!r} of {table.source} has {len(values)} different texts on "
                f"{table.X.shape[0]} rows, and each is a feature now. If they are no categories, "
                "leave it out (--drop), or correct the values."
            )


def _digest(table: Table) -> str:
    """Return the SHA-256 of rows and targets as they are in memory: no file is read twice."""
    X, y = table.X, table.y
    arrays = [X.indptr, X.indices, X.data] if sp.issparse(X) else [X]
    if y is not None:
        arrays.append(y.astype(str) if y.dtype.kind == "O" else y)
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def labels(table: Table, loss: Loss, hint: str = "--loss") -> NDArray[Any]:
    """Return the targets, of a kind that fits the loss; `hint` is what else could be chosen."""
    y = table.y
    if y is None:
        raise usage_error(
            f"{table.source} has no target; name its column with --target, or choose data with "
            "labels.",
            "DATA",
        )
    text = y.dtype.kind in "OUS"
    other = "a loss" if hint == "--loss" else "a model"
    if loss.kind == "regression":
        if text:
            raise usage_error(
                f"the target of {table.source} holds text such as {str(y[0])!r}, but {loss.name!r} "
                f"is a loss for regression; choose another --target, or {other} for "
                "classification.",
                hint,
            )
        return y
    y = y.astype(str) if text else y
    odd = [] if text else y[y != np.floor(y)]
    if len(odd):
        raise usage_error(
            f"the target of {table.source} holds {odd[0]:g}, which is no label, but {loss.name!r} "
            f"is a loss for classification; choose another --target, or {other} for regression"
            f"{' such as squared' if hint == '--loss' else ''}.",
            hint,
        )
    found, counts = np.unique(y, return_counts=True)
    if len(found) < 2:
        raise usage_error(
            f"all labels of {table.source} are {plain(found[0])}; two classes are needed.", "DATA"
        )
    if hint == "--loss" and (why := quantities(found, counts)):
        note(
            f"{why}, in the target of {table.source}. If they are quantities, choose a loss for "
            "regression: --loss squared."
        )
    return y


def positives(table: Table, y: NDArray[Any], loss: Loss, label: str | None) -> list[Any]:
    """Return the classes that are +1 in the problems of these targets, [None] for regression.

    Of two classes the larger, of more each against the rest, or the class of `label`.
    """
    if loss.kind == "regression":
        if label is not None:
            raise usage_error("there are no classes in regression.", "--class")
        return [None]
    classes: list[Any] = np.unique(y).tolist()
    if label is None:
        return classes[1:] if len(classes) == 2 else classes
    found = [k for k in classes if str(plain(k)) == label.strip()]
    if not found:
        names = ", ".join(str(plain(k)) for k in classes)
        raise usage_error(f"{label!r} is none of the classes {names} of {table.source}.", "--class")
    return found


def signs(y: NDArray[Any], positive: Any) -> NDArray[np.float64]:
    """Return the targets for `solve`: +1 for that class and -1 for the rest; None: numbers."""
    if positive is None:
        return np.asarray(y, dtype=np.float64)
    return np.where(y == positive, 1.0, -1.0)
