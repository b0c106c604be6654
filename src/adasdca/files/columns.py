"""How the columns of a table become features, kept so that later rows become the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from adasdca.storage import FileError

#: What may be done about missing values.
MISSING = ("refuse", "drop", "mean", "median", "most_frequent")


@dataclass(frozen=True)
class Columns:
    """The columns that were read, and what was made of them.

    Attributes
    ----------
    target : str or None
        The column of the target.
    names : list of str
        The columns of the features, in order.
    categories : dict of str to list of str
        Of a column that is one-hot: its values, a feature for each.
    fill : dict of str to float or str
        Of a column: what stands for a missing value.
    left_out : list of str
        The columns that were there and are no features, so that later rows may have them too.
    """

    target: str | None
    names: list[str]
    categories: dict[str, list[str]] = field(default_factory=dict)
    fill: dict[str, float | str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    @property
    def features(self) -> list[str]:
        """The names of the features; ``column=value`` for a value of a one-hot column."""
        return [
            each
            for name in self.names
            for each in (
                [f"{name}={value}" for value in self.categories[name]]
                if name in self.categories
                else [name]
            )
        ]

    @property
    def plain(self) -> bool:
        """Whether every column is a feature as it is."""
        return not self.categories and not self.fill

    @classmethod
    def of(cls, given: Any) -> Columns:
        """Return the columns stored in a model's file, checked."""
        valid = isinstance(given, dict) and given.keys() <= {
            "target",
            "names",
            "categories",
            "fill",
            "left_out",
        }
        if valid:
            target, names = given.get("target"), given.get("names")
            kinds, fill = given.get("categories", {}), given.get("fill", {})
            left_out = given.get("left_out", [])
            valid = (
                (target is None or isinstance(target, str))
                and _texts(names)
                and _texts(left_out)
                and isinstance(kinds, dict)
                and all(_texts(values) and values for values in kinds.values())
                and isinstance(fill, dict)
                and all(isinstance(value, (int, float, str)) for value in fill.values())
                and (kinds.keys() | fill.keys()) <= set(names)
            )
        if not valid:
            raise FileError(
                "columns must be a dictionary of target, names, categories, fill and left_out; fit "
                "the model again."
            )
        return cls(target, names, kinds, fill, left_out)


@dataclass(frozen=True)
class Choice:
    """The options of `read` for the columns of a table."""

    target: Any = None  #: As in `adasdca.files.read`.
    #: The columns to use, or those to leave out.
    columns: Sequence[str] | None = None
    drop: Sequence[str] | None = None
    #: The columns whose values are categories; True: all that hold text.
    one_hot: Sequence[str] | bool = False
    missing: str = "refuse"  #: One of `MISSING`.
    known: Columns | None = None  #: What an earlier table was: this one is read in the same way.
    #: With `known`: whether columns and categories that it does not know are ignored.
    lenient: bool = False

    @property
    def shapes(self) -> bool:
        """Whether it says more than which column is the target."""
        chosen = self.columns or self.drop or self.one_hot or self.missing != "refuse"
        return bool(chosen)


def _texts(value: Any) -> bool:
    return (
        isinstance(value, list)
        and all(isinstance(each, str) for each in value)
        and len(set(value)) == len(value)
    )
