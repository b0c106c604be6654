"""CSV and Parquet files, through polars; `encoding.py` makes numbers of their columns."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from adasdca.errors import Argument, counted
from adasdca.files.columns import Choice
from adasdca.files.encoding import encoded, listed, missing_target, polars, shortened
from adasdca.files.streams import seekable, strip_compression
from adasdca.files.table import Table, other_width
from adasdca.storage import FileError, check_size, guarded

if TYPE_CHECKING:
    import polars as pl

#: What stands for a missing value in a CSV file: among numbers, and in text if there may be some.
_NOTHING = ["", "NA", "N/A", "NaN", "nan", "null", "None", "?"]
#: A column of one of these names is the target, if no other one is named.
TARGETS = ("target", "label", "y")


def read_csv(path: Path, choice: Choice, n_features: int | None) -> Table:
    """Read a CSV file with a line of names."""
    return parse_csv(path, seekable(path), separator_of(path), choice, n_features)


def separator_of(path: Path) -> str:
    """Return what separates the columns of a file of that name."""
    return "\t" if strip_compression(path)[0].suffix.lower() in (".tsv", ".tab") else ","


def parse_csv(
    path: Path,
    source: Path | io.BytesIO,
    separator: str,
    choice: Choice,
    n_features: int | None,
) -> Table:
    """Read text with a line of names, from a file or from memory."""
    pl = polars()
    try:
        with guarded(
            path,
            "is not a CSV file with one value per column in every line ({error}); correct it, or "
            "say what it is with ",
            Argument("format", ...),
            ".",
        ):
            first = pl.read_csv(
                source,
                separator=separator,
                has_header=False,
                n_rows=1,
                infer_schema=False,
                truncate_ragged_lines=True,  # decimal commas below a header with semicolons
            )
            names = ["" if name is None else str(name).strip() for name in first.row(0)]
            _check_header(path, names, separator)
            if isinstance(source, io.BytesIO):
                source.seek(0)
            # All rows are looked at before a column has a type: a late 0.5 makes integers real.
            frame = pl.read_csv(
                source,
                separator=separator,
                infer_schema_length=None,
                null_values=_NOTHING if _fills(choice) else None,
            )
            frame.columns = names
            frame = frame.with_columns(_as_number(column) for column in frame)
            return _table(path, frame, choice, n_features)
    except FileError as error:
        if isinstance(error.__cause__, pl.exceptions.NoDataError):
            raise _no_rows(path) from error.__cause__
        if "utf-8" in str(error.__cause__):
            raise FileError(f"{path} is not in UTF-8; save it in this encoding.") from error
        raise


def _fills(choice: Choice) -> bool:
    return choice.missing != "refuse" or (choice.known is not None and bool(choice.known.fill))


def _as_number(column: pl.Series) -> pl.Series:
    """Return a column of text as numbers if all of it are; polars knows neither ' 5' nor '+1'.

    Words for a missing value among numbers are missing numbers, and no reason for categories.
    """
    pl = polars()
    if column.dtype != pl.String:
        return column
    words = column.str.strip_chars()
    numbers = words.cast(pl.Float64, strict=False)
    known = numbers.is_not_null() | words.is_in(_NOTHING) | words.is_null()
    some = numbers.is_not_null().any() or words.is_null().all()
    return numbers if known.all() and some else column


def read_parquet(path: Path, choice: Choice, n_features: int | None) -> Table:
    """Read a Parquet file."""
    pl = polars()
    source = seekable(path)
    with guarded(
        path,
        "is not a Parquet file, or is damaged ({error}); get it again, or say what it is with ",
        Argument("format", ...),
        ".",
    ):
        # Equal values take next to no room in such a file: look at what it says before.
        lazy = pl.scan_parquet(source)
        entries = lazy.select(pl.len()).collect().item() * len(lazy.collect_schema())
        size = path.stat().st_size if isinstance(source, Path) else source.getbuffer().nbytes
        check_size(path, 8 * entries, size)
        return _table(path, lazy.collect(), choice, n_features)


def parquet_pieces(
    path: Path, choice: Choice, n_features: int | None, row: int, rows: int
) -> Iterator[tuple[Table, int]]:
    """Yield the rows of a Parquet file from `row` on, `rows` at a time, and the next row."""
    pl = polars()
    with guarded(path, "is not a Parquet file, or is damaged ({error}); get it again."):
        lazy = pl.scan_parquet(path)
        count = lazy.select(pl.len()).collect().item()
        while row < count:
            frame = lazy.slice(row, rows).collect()
            row += frame.height
            yield _table(path, frame, choice, n_features), row


def _no_rows(path: Path) -> FileError:
    return FileError(f"{path} has no rows; check how it was written.")


def _check_header(path: Path, names: Sequence[str], separator: str) -> None:
    def is_number(name: str) -> bool:
        try:
            float(name)
        except ValueError:
            return False
        return True

    if len(names) == 1 and (other := [c for c in ";\t," if c != separator and c in names[0]]):
        raise FileError(
            f"{path}: the first line has a single column, {shortened(names[0])}; it looks "
            f"separated by {other[0]!r}: separate by commas, or by tabs in a file named .tsv."
        )
    if all(map(is_number, names)):
        raise FileError(
            f"{path}: the first line holds numbers only ({listed(names)}); "
            "put a line with the names of the columns above it."
        )
    nameless = [k for k, name in enumerate(names, 1) if not name]
    if nameless and (nameless != [1] or len(names) == 1):
        raise FileError(
            f"{path}: column {nameless[-1]} has no name in the first line; give it one. (Only the "
            "first one, the index of a table, may have none.)"
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise FileError(f"{path}: several columns are called {listed(twice)}; rename them.")


def _table(path: Path, frame: pl.DataFrame, choice: Choice, n_features: int | None) -> Table:
    if frame.height == 0:
        raise _no_rows(path)
    chosen = _target_column(path, frame.columns, choice)
    given = frame.height
    if choice.missing == "drop":
        frame = _complete(path, frame, choice, chosen)
    target = None if chosen is None else frame.get_column(chosen)
    if choice.known is not None and target is not None and target.null_count() == len(target):
        target = None  # rows to predict, with an empty column where their targets will be
    y = None if target is None else _targets(path, target)
    features = _features(path, frame if chosen is None else frame.drop(chosen), choice)
    if n_features is not None and features.width != n_features:
        raise FileError(
            f"{path} has {counted(features.width, 'feature column')} "
            f"({listed(features.columns)}) where ",
            *other_width(n_features),
        )
    X, columns = encoded(path, features, choice, chosen)
    if choice.known is None:
        left_out = [name for name in frame.columns if name not in (chosen, *features.columns)]
        columns = replace(columns, left_out=left_out)
    return Table(X, y, columns.features, str(path), columns, given - frame.height)


def _complete(path: Path, frame: pl.DataFrame, choice: Choice, target: str | None) -> pl.DataFrame:
    """Return the rows without missing values in the columns that are used."""
    pl = polars()
    used = _features(path, frame if target is None else frame.drop(target), choice).columns
    used = used if target is None else [*used, target]
    whole = frame.with_columns(pl.col(pl.Float32, pl.Float64).fill_nan(None)).drop_nulls(used)
    if whole.height == 0:
        raise FileError(f"{path}: a value is missing in every row; fill some columns instead.")
    return whole


def _features(path: Path, frame: pl.DataFrame, choice: Choice) -> pl.DataFrame:
    """Return the columns that are chosen, in the order of the table or of the model.

    One without a name, the index of a table, never is.
    """
    frame = frame.drop("", strict=False)
    known = choice.known
    if known is not None:
        lost = [name for name in known.names if name not in frame.columns]
        if lost:
            raise FileError(
                f"{path} lacks the column {lost[0]!r} ({len(lost)} in all), which the model was "
                "fitted on."
            )
        extra = sorted(set(frame.columns) - {*known.names, *known.left_out, known.target})
        if extra and not choice.lenient:
            raise FileError(
                f"{path} has the column {extra[0]!r} ({len(extra)} in all), which the model was "
                "not fitted on; pass rows of the columns that the model was fitted on, or ",
                Argument("lenient", True),
                " to leave the others out.",
            )
        return frame.select(known.names)
    for name in [*(choice.columns or ()), *(choice.drop or ())]:
        if name not in frame.columns:
            raise FileError(
                f"{path} has no feature column {name!r}; these are {_ends(frame.columns)}."
            )
    if choice.columns is not None:
        frame = frame.select(list(dict.fromkeys(choice.columns)))
    return frame.drop(choice.drop or [])


def _target_column(path: Path, names: Sequence[str], choice: Choice) -> str | None:
    target = choice.target
    if target is False:
        return None
    if target is None and choice.known is not None and choice.known.target is not None:
        # The model knows its target, which new rows may lack.
        return choice.known.target if choice.known.target in names else None
    if target is not None:
        if target not in names:
            raise FileError(
                f"{path} has no column {target!r} for the target; its columns are {_ends(names)}."
            )
        return str(target)
    found = [name for name in TARGETS if name in names]
    if choice.known is not None:
        found = [name for name in found if name not in choice.known.names]
    if len(found) > 1:
        raise FileError(
            f"{path}: each of the columns {listed(found)} could be the target; choose one, e.g. ",
            Argument("target", found[0]),
            ".",
        )
    return found[0] if found else None


def _targets(path: Path, column: pl.Series) -> NDArray[Any]:
    pl = polars()
    if column.null_count():
        raise missing_target(path, column.name, column.is_null().arg_max(), "is empty")
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        y: NDArray[Any] = column.cast(pl.Float64).to_numpy()
        if len(bad := np.flatnonzero(~np.isfinite(y))):
            raise missing_target(path, column.name, int(bad[0]), f"is {y[bad[0]]}")
        return y
    if column.dtype in (pl.String, pl.Categorical, pl.Enum):
        return np.array(column.cast(pl.String).to_list(), dtype=object)
    raise FileError(
        f"{path}: the target column {column.name!r} is of type {column.dtype}; "
        "make it numbers, or labels as text."
    )


def _ends(names: Sequence[str]) -> str:
    """Show the first names and the last, where the target often is."""
    if len(names) <= 6:
        return listed(names)
    return f"{listed(names[:4])}, ..., {listed(names[-2:])}"
