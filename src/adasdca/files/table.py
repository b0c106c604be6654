"""What a file of data becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from adasdca.errors import Argument
from adasdca.files.columns import Columns

#: The name of the target in a file; None: by the rules of the format; False: there is none.
Target = str | Literal[False] | None


def other_width(n_features: int) -> tuple[Any, ...]:
    """Return what a message says of a number of features that a file does not have."""
    name = "n_features"
    asked, end = Argument(name, n_features), " that fits."
    return asked, " were asked for; choose the file or ", Argument(name), end


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """The contents of a file: a row for each sample, with its target.

    Parameters
    ----------
    X : CSR matrix or array of shape (n, d)
        The features, C-ordered if dense. float64, or float32 if the file holds float32.
    y : array of shape (n,) or None
        The targets: float64, or text for labels of CSV, Parquet and npz files that are no numbers.
        None if the file has no target.
    names : list of str or None
        The names of the features, where the file has them.
    source : str
        The path of the file.
    columns : Columns or None
        How the columns of a CSV or Parquet file became features; `read(known=)` reads others so.
    dropped : int
        Rows of the file that are not here, since they lack a value (``missing="drop"``).
    """

    X: Any
    y: NDArray[Any] | None
    names: list[str] | None
    source: str
    columns: Columns | None = None
    dropped: int = 0

    def __repr__(self) -> str:
        n, d = self.X.shape
        kind = "dense" if hasattr(self.X, "flags") else f"sparse, {self.X.nnz} stored"
        target = "no target" if self.y is None else f"target {self.y.dtype}"
        return f"Table({n} x {d} {self.X.dtype}, {kind}, {target}, from {self.source!r})"
