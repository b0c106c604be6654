"""Collections of Dask as lists of delayed blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dask.delayed import Delayed


@dataclass(frozen=True)
class Blocks:
    """Blocks of rows with their targets and weights, all delayed."""

    #: Rows and targets.
    X: list[Any]
    y: list[Any]
    weight: list[Any] | None  #: Sample weights.
    names: list[str] | None  #: Names of the features, where X is a data frame.

    @classmethod
    def of(cls, X: Any, y: Any, weight: Any = None) -> Blocks:
        """Take collections apart, which must have the same blocks of rows."""
        columns = getattr(X, "columns", None)
        names = None if columns is None else [str(name) for name in columns]
        if getattr(X, "ndim", 0) == 2 and getattr(X, "numblocks", (1, 1))[1:] != (1,):
            X = X.rechunk({1: -1}) if hasattr(X, "rechunk") else X
        found = [_delayed(X, "X"), _delayed(y, "y")]
        if weight is not None:
            found.append(_delayed(weight, "sample_weight"))
        for name, blocks in zip(("y", "sample_weight"), found[1:], strict=False):
            if len(blocks) != len(found[0]):
                raise ValueError(
                    f"{name} has {len(blocks)} blocks of rows where X has {len(found[0])}; give "
                    f"both the same blocks, e.g. {name}.rechunk(X.chunks[0])."
                )
        return cls(found[0], found[1], found[2] if weight is not None else None, names)

    def groups(self, count: int) -> list[range]:
        """Return runs of neighbouring blocks, `count` of them if there are enough blocks."""
        n = len(self.X)
        count = max(1, min(count, n))
        return [range(k * n // count, (k + 1) * n // count) for k in range(count)]


def _delayed(collection: Any, name: str) -> list[Any]:
    """Return the blocks of a collection, or a list of them as it is."""
    if hasattr(collection, "to_delayed"):
        blocks = collection.to_delayed()
        return list(blocks.ravel()) if hasattr(blocks, "ravel") else list(blocks)
    if is_collection(collection):
        return list(collection)
    raise TypeError(
        f"{name} of type {type(collection).__name__} is no collection of Dask; pass a dask array, "
        "a dask data frame or a list of delayed blocks. For data in memory use adasdca.solve."
    )


def is_collection(X: Any) -> bool:
    """Whether X is a collection of Dask, or a list of delayed blocks or of futures."""
    if not isinstance(X, (list, tuple)):
        return hasattr(X, "to_delayed")
    return bool(X) and all(isinstance(block, Delayed) or hasattr(block, "key") for block in X)
