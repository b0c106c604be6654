"""Numbers from the columns of a table: categories one-hot, missing values filled or refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adasdca.errors import Argument
from adasdca.files.columns import Choice, Columns
from adasdca.storage import FileError

if TYPE_CHECKING:
    import polars as pl

#: More features than this from categories make a sparse matrix.
MANY = 200


def polars() -> Any:
    """Return polars, or say how to get it."""
    try:
        import polars as pl
    except ImportError as error:
        raise ImportError(
            "CSV and Parquet files need polars; install it with `pip install adasdca[files]`."
        ) from error
    return pl


def encoded(
    path: Path, frame: pl.DataFrame, choice: Choice, target: str | None
) -> tuple[Any, Columns]:
    """Return the features of the columns of a frame, and how they were made."""
    if frame.width == 0:
        raise FileError(f"{path} has no columns besides the target; it needs a feature at least.")
    columns = choice.known or _learned(path, frame, choice, target)
    _check_numbers(path, [s for s in frame if s.name not in columns.categories], target)
    if columns.plain:
        return _matrix(path, frame), columns
    blocks: list[Any] = []
    for name in columns.names:
        column = _filled(frame.get_column(name), columns.fill.get(name))
        if name in columns.categories:
            blocks.append(_one_hot(path, column, columns.categories[name], choice.lenient))
        else:
            blocks.append(_matrix(path, column.to_frame()))
    if sum(len(values) for values in columns.categories.values()) > MANY:
        return sp.csr_matrix(sp.hstack(blocks)), columns
    dense = [block.toarray() if sp.issparse(block) else block for block in blocks]
    return np.ascontiguousarray(np.hstack(dense)), columns


def _learned(path: Path, frame: pl.DataFrame, choice: Choice, target: str | None) -> Columns:
    """Return what the columns of a frame become, as was asked for."""
    pl = polars()
    text = [s.name for s in frame if s.dtype in (pl.String, pl.Categorical, pl.Enum)]
    hot = choice.one_hot
    chosen = (text if hot else []) if isinstance(hot, bool) else list(hot)
    for name in chosen:
        if name not in frame.columns:
            raise FileError(
                f"{path} has no feature column {name!r} to make one-hot; its columns are "
                f"{listed(frame.columns)}."
            )
    kinds: dict[str, list[str]] = {}
    fill: dict[str, float | str] = {}
    for name in frame.columns:
        column = _missing_as_null(frame.get_column(name))
        if name in chosen:
            words = _words(column)
            present = words[words != ""]
            if len(present) == 0:
                raise FileError(f"{path}: the column {name!r} is empty; leave it out.")
            values, counts = np.unique(present, return_counts=True)
            kinds[name] = [str(value) for value in values]
            if choice.missing in ("mean", "median", "most_frequent"):
                fill[name] = str(values[counts.argmax()])
        elif choice.missing in ("mean", "median", "most_frequent") and column.dtype.is_numeric():
            found = column.drop_nulls().cast(pl.Float64).to_numpy()
            if len(found) == 0:
                raise FileError(f"{path}: the column {name!r} is empty; leave it out.")
            fill[name] = _middle(found, choice.missing)
    return Columns(target, frame.columns, kinds, fill)


def _middle(values: NDArray[np.float64], how: str) -> float:
    if how == "most_frequent":
        found, counts = np.unique(values, return_counts=True)
        return float(found[counts.argmax()])
    return float(np.mean(values) if how == "mean" else np.median(values))


def _missing_as_null(column: pl.Series) -> pl.Series:
    return column.fill_nan(None) if column.dtype.is_float() else column


def _filled(column: pl.Series, value: float | str | None) -> pl.Series:
    if value is None:
        return column
    column = _missing_as_null(column)
    filled: pl.Series
    if isinstance(value, str):
        words = _words(column)
        filled = polars().Series(column.name, np.where(words == "", value, words))
    else:
        filled = column.cast(polars().Float64).fill_null(value)
    return filled


def _words(column: pl.Series) -> NDArray[Any]:
    """Return the values of a column as text, 3.0 as 3, what is missing as the empty text."""
    if column.dtype.is_numeric():
        numbers = column.cast(polars().Float64).to_list()
        return np.array(["" if x is None or x != x else f"{x:.17g}" for x in numbers])
    return np.array(["" if x is None else str(x) for x in column.cast(polars().String).to_list()])


def _one_hot(path: Path, column: pl.Series, values: list[str], lenient: bool) -> sp.csr_matrix:
    words = _words(column)
    if (words == "").any():
        raise missing_value(path, column.name, int((words == "").argmax()), "is empty")
    order = np.argsort(values)
    place = np.searchsorted(np.array(values)[order], words)
    code = order[np.minimum(place, len(values) - 1)]
    known = np.array(values)[code] == words
    if not known.all() and not lenient:
        row = int((~known).argmax())
        raise FileError(
            f"{path}: column {column.name!r} holds {shortened(words[row])} in row {row + 1}, a "
            f"category that the model does not know ({listed(values)}); leave such rows out, or "
            "let it count as none of them (",
            Argument("lenient", True),
            ").",
        )
    rows = np.flatnonzero(known)
    ones = np.ones(len(rows))
    return sp.csr_matrix((ones, (rows, code[known])), shape=(len(words), len(values)))


def _check_numbers(path: Path, columns: Sequence[pl.Series], target: str | None) -> None:
    pl = polars()
    wrong = [s for s in columns if not (s.dtype.is_numeric() or s.dtype == pl.Boolean)]
    if wrong:
        shown = "; ".join(_describe(s) for s in wrong[:3]) + ("; ..." if len(wrong) > 3 else "")
        several = f"{len(wrong)} feature columns hold"
        number = "a feature column holds" if len(wrong) == 1 else several
        raise FileError(
            f"{path}: {number} no numbers: {shown}. ",
            *(() if target is not None else ("Name the target (", Argument("target", ...), "), ")),
            f"{'Leave' if target is not None else 'leave'} them out (",
            Argument("drop", ...),
            "), make a feature of each category (",
            Argument("one_hot", ...),
            "), or correct the values.",
        )


def _matrix(path: Path, features: pl.DataFrame) -> NDArray[Any]:
    pl = polars()
    single = all(kind == pl.Float32 for kind in features.schema.dtypes())
    numbers = features.cast(pl.Float32 if single else pl.Float64)
    for column, count in zip(numbers, numbers.null_count().row(0), strict=True):
        if count:
            row = column.is_null().arg_max()
            assert row is not None
            raise missing_value(path, column.name, row, "is empty")
    X = np.ascontiguousarray(numbers.to_numpy(order="c"))
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(X.sum())
    if suspicious and len(bad := np.argwhere(~np.isfinite(X))):
        row, k = map(int, bad[0])
        raise missing_value(path, numbers.columns[k], row, f"is {X[row, k]}")
    return X


def missing_value(path: Path, name: str, row: int | None, what: str) -> FileError:
    """Return the error about a value that is not there."""
    assert row is not None
    return FileError(
        f"{path}: column {name!r} {what} in row {row + 1} (counted from 1, names not counted); "
        "drop such rows or fill the values first (",
        Argument("missing", ...),
        ").",
    )


def missing_target(path: Path, name: str, row: int | None, what: str) -> FileError:
    """Return the error about a target that is not there."""
    assert row is not None
    return FileError(
        f"{path}: the target {name!r} {what} in row {row + 1} (counted from 1, names not counted), "
        "and no target is ever filled; leave out the rows with missing values (",
        Argument("missing", "drop"),
        "), or take those without a target out of the file.",
    )


def _describe(column: pl.Series) -> str:
    pl, name = polars(), shortened(column.name)
    if column.dtype != pl.String:
        return f"{name} (of type {column.dtype})"
    # One stray word makes a column text: show that word.
    text = column.cast(pl.Float64, strict=False).is_null() & column.is_not_null()
    row = text.arg_max() if text.any() else column.is_not_null().arg_max()
    if row is None or column[row] is None:
        return f"{name} (empty)"
    return f"{name} ({shortened(column[row])} in row {row + 1})"


def shortened(text: str) -> str:
    """Quote a text, cut if it is long."""
    text = str(text)
    return repr(text if len(text) <= 30 else text[:27] + "...")


def listed(names: Sequence[str]) -> str:
    """Quote the first names."""
    return ", ".join(shortened(name) for name in names[:6]) + (", ..." if len(names) > 6 else "")
