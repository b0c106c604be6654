"""CSV and Parquet files, through polars."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from adasdca.files.streams import seekable, strip_compression
from adasdca.files.table import Table, Target
from adasdca.storage import FileError, check_size, guarded

if TYPE_CHECKING:
    import polars as pl

#: A column of one of these names is the target, if no other one is named.
TARGETS = ("target", "label", "y")


def read_csv(path: Path, target: Target, n_features: int | None) -> Table:
    """Read a CSV file with a line of names; tabs separate the columns of a .tsv file."""
    separator = "\t" if strip_compression(path)[0].suffix.lower() == ".tsv" else ","
    return parse_csv(path, seekable(path), separator, target, n_features)


def parse_csv(
    path: Path,
    source: Path | io.BytesIO,
    separator: str,
    target: Target,
    n_features: int | None,
) -> Table:
    """Read text with a line of names, from a file or from memory."""
    pl = _polars()
    try:
        with guarded(
            path,
            "is not a CSV file with one value per column in every line ({error}); correct it, or "
            "say what it is with format=.",
        ):
            first = pl.read_csv(
                source, separator=separator, has_header=False, n_rows=1, infer_schema=False
            )
            names = ["" if name is None else str(name).strip() for name in first.row(0)]
            _check_header(path, names, separator)
            if isinstance(source, io.BytesIO):
                source.seek(0)
            # All rows are looked at before a column has a type: a late 0.5 makes integers real.
            frame = pl.read_csv(source, separator=separator, infer_schema_length=None)
            frame.columns = names
            frame = frame.with_columns(_as_number(column) for column in frame)
            return _table(path, frame, target, n_features)
    except FileError as error:
        if isinstance(error.__cause__, pl.exceptions.NoDataError):
            raise _no_rows(path) from error.__cause__
        raise


def _as_number(column: pl.Series) -> pl.Series:
    """Return a column of text as numbers if all of it are; polars knows neither ' 5' nor '+1'."""
    pl = _polars()
    if column.dtype != pl.String:
        return column
    numbers = column.str.strip_chars().cast(pl.Float64, strict=False)
    return numbers if numbers.null_count() == column.null_count() else column


def read_parquet(path: Path, target: Target, n_features: int | None) -> Table:
    """Read a Parquet file."""
    pl = _polars()
    source = seekable(path)
    with guarded(
        path,
        "is not a Parquet file, or is damaged ({error}); get it again, or say what it is with "
        "format=.",
    ):
        # Equal values take next to no room in such a file: look at what it says before.
        lazy = pl.scan_parquet(source)
        entries = lazy.select(pl.len()).collect().item() * len(lazy.collect_schema())
        size = path.stat().st_size if isinstance(source, Path) else source.getbuffer().nbytes
        check_size(path, 8 * entries, size)
        return _table(path, lazy.collect(), target, n_features)


def parquet_pieces(
    path: Path, target: Target, n_features: int | None, row: int, rows: int
) -> Iterator[tuple[Table, int]]:
    """Yield so many rows of a Parquet file at a time, from one on, with the row behind them."""
    pl = _polars()
    with guarded(path, "is not a Parquet file, or is damaged ({error}); get it again."):
        lazy = pl.scan_parquet(path)
        count = lazy.select(pl.len()).collect().item()
        while row < count:
            frame = lazy.slice(row, rows).collect()
            row += frame.height
            yield _table(path, frame, target, n_features), row


def _polars() -> Any:
    try:
        import polars as pl
    except ImportError as error:
        raise ImportError(
            "CSV and Parquet files need polars; install it with `pip install adasdca[files]`."
        ) from error
    return pl


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
            f"{path}: the first line has a single column, {_short(names[0])}; it looks separated "
            f"by {other[0]!r}: separate by commas, or by tabs in a file named .tsv."
        )
    if all(map(is_number, names)):
        raise FileError(
            f"{path}: the first line holds numbers only ({_list(names)}); "
            "put a line with the names of the columns above it."
        )
    if "" in names:
        raise FileError(
            f"{path}: column {names.index('') + 1} has no name in the first line; give it one."
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise FileError(f"{path}: several columns are called {_list(twice)}; rename them.")


def _table(path: Path, frame: pl.DataFrame, target: Target, n_features: int | None) -> Table:
    if frame.height == 0:
        raise _no_rows(path)
    chosen = _target_column(path, frame.columns, target)
    y = None if chosen is None else _targets(path, frame.get_column(chosen))
    features = frame if chosen is None else frame.drop(chosen)
    if n_features is not None and features.width != n_features:
        raise FileError(
            f"{path} has {features.width} feature columns ({_list(features.columns)}) where "
            f"n_features = {n_features} were asked for; choose the file or n_features that fits."
        )
    return Table(_matrix(path, features), y, features.columns, str(path))


def _target_column(path: Path, names: Sequence[str], target: Target) -> str | None:
    if target is False:
        return None
    if target is not None:
        if target not in names:
            raise FileError(
                f"{path} has no column {target!r} for the target; its columns are {_ends(names)}."
            )
        return target
    found = [name for name in TARGETS if name in names]
    if len(found) > 1:
        raise FileError(
            f"{path}: each of the columns {_list(found)} could be the target; "
            f"choose one, e.g. target={found[0]!r}."
        )
    return found[0] if found else None


def _matrix(path: Path, features: pl.DataFrame) -> NDArray[Any]:
    pl = _polars()
    if features.width == 0:
        raise FileError(f"{path} has no columns besides the target; it needs a feature at least.")
    kinds = features.schema.dtypes()
    wrong = [s for s in features if not (s.dtype.is_numeric() or s.dtype == pl.Boolean)]
    if wrong:
        shown = "; ".join(_describe(s) for s in wrong[:3]) + ("; ..." if len(wrong) > 3 else "")
        raise FileError(
            f"{path}: {len(wrong)} feature column(s) hold no numbers: {shown}. Drop them, encode "
            "categories as numbers (one column per category), and write missing values as numbers."
        )
    single = all(kind == pl.Float32 for kind in kinds)
    numbers = features.cast(pl.Float32 if single else pl.Float64)
    for column, count in zip(numbers, numbers.null_count().row(0), strict=True):
        if count:
            raise _missing(path, column.name, column.is_null().arg_max(), "is empty")
    X = np.ascontiguousarray(numbers.to_numpy(order="c"))
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(X.sum())
    if suspicious and len(bad := np.argwhere(~np.isfinite(X))):
        row, k = map(int, bad[0])
        raise _missing(path, numbers.columns[k], row, f"is {X[row, k]}")
    return X


def _targets(path: Path, column: pl.Series) -> NDArray[Any]:
    pl = _polars()
    if column.null_count():
        raise _missing(path, column.name, column.is_null().arg_max(), "is empty")
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        y: NDArray[Any] = column.cast(pl.Float64).to_numpy()
        if len(bad := np.flatnonzero(~np.isfinite(y))):
            raise _missing(path, column.name, int(bad[0]), f"is {y[bad[0]]}")
        return y
    if column.dtype in (pl.String, pl.Categorical, pl.Enum):
        return np.array(column.cast(pl.String).to_list(), dtype=object)
    raise FileError(
        f"{path}: the target column {column.name!r} is of type {column.dtype}; "
        "make it numbers, or labels as text."
    )


def _missing(path: Path, name: str, row: int | None, what: str) -> FileError:
    assert row is not None
    return FileError(
        f"{path}: column {name!r} {what} in row {row + 1} (counted from 1, names not counted); "
        "drop such rows or fill the values first."
    )


def _describe(column: pl.Series) -> str:
    pl = _polars()
    if column.dtype != pl.String:
        return f"{column.name!r} (of type {column.dtype})"
    # One stray word makes a column text: show that word.
    text = column.cast(pl.Float64, strict=False).is_null() & column.is_not_null()
    row = text.arg_max() if text.any() else column.is_not_null().arg_max()
    if row is None or column[row] is None:
        return f"{column.name!r} (empty)"
    return f"{column.name!r} ({_short(column[row])} in row {row + 1})"


def _short(text: str) -> str:
    return repr(text if len(text) <= 30 else text[:27] + "...")


def _ends(names: Sequence[str]) -> str:
    """Show the first names and the last, where the target often is."""
    if len(names) <= 6:
        return _list(names)
    return f"{_list(names[:4])}, ..., {_list(names[-2:])}"


def _list(names: Sequence[str]) -> str:
    return ", ".join(_short(name) for name in names[:6]) + (", ..." if len(names) > 6 else "")
