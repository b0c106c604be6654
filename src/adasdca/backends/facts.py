"""What the cost model asks of rows: their shape, and what a sample of them shows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca.problem.data import Rows

#: Rows that are looked at for their lengths, for common columns, and for what pairs share.
LENGTHS, COLUMNS, PAIRS = 1024, 256, 64


class Distance(NamedTuple):
    """What it costs that rows are elsewhere, in several places."""

    command: float = 0.0  #: Nanoseconds until a command is there and its answer here.
    number: float = 0.0  #: Nanoseconds of a number that travels between here and all places.
    share: float = 1.0  #: Share of the rows that are worked on one after the other.


HERE = Distance()


class Facts:
    """What the cost model asks."""

    n: int  #: Number of rows.
    d: int  #: Number of features.
    stored: int  #: Number of entries in memory.
    dense: bool  #: Whether every entry is stored.
    entry_bytes: int  #: Bytes of an entry, its index included.
    ascends: bool = False  #: Whether coordinate ascent is possible.
    batch: int = 1  #: Rows that it takes steps on at a time.
    #: Whether there may be a central path: whether `interior` returns rows.
    central: bool = False
    distance: Distance = HERE  #: What it costs that rows are elsewhere.
    # (Any: some find these out when they are asked for.)
    squared_length: Any  #: Mean square of the number of entries of a row.
    column_shares: Any  #: Share of the rows that have an entry in a column, the commonest first.
    shared: Any  #: Number of features that two rows share, on average.


class RowFacts(Facts):
    """Facts about rows in memory; what needs a look at them is found out when it is asked for."""

    ascends = central = True

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.n, self.d = rows.shape
        self.stored = rows.n_stored
        self.dense, self.entry_bytes = rows.dense, rows.entry_bytes

    @cached_property
    def squared_length(self) -> float:
        lengths = self._rows.lengths(-(-self.n // LENGTHS)).astype(np.float64)
        return float(lengths @ lengths) / len(lengths)  # (a mean takes five times as long)

    @cached_property
    def column_shares(self) -> NDArray[np.float64]:
        counts, m = self._rows.occurrences(COLUMNS)
        return np.sort(counts / m)[::-1]

    @cached_property
    def shared(self) -> float:
        if self.dense:
            return float(self.d)
        # Long rows share many features, and fewer of them tell as much.
        few = max(PAIRS * PAIRS * self.n // max(self.stored, 1), 16)
        counts, m = self._rows.occurrences(min(PAIRS, few))
        if m < 2:
            return self.stored / self.n
        return float(counts @ counts - counts.sum()) / (m * (m - 1))


@dataclass
class KnownFacts(Facts):
    """Facts about rows that are somewhere else, as their owner says them."""

    n: int
    d: int
    stored: int
    dense: bool
    entry_bytes: int
    squared_length: float
    counts: NDArray[np.float64]  #: (d,), the number of entries of every column.
    ascends: bool = False
    batch: int = 1

    @property
    def column_shares(self) -> NDArray[np.float64]:
        return np.sort(self.counts / self.n)[::-1]

    @property
    def shared(self) -> float:
        if self.dense or self.n < 2:
            return self.stored / self.n
        return float((self.counts * (self.counts - 1.0)).sum()) / (self.n * (self.n - 1.0))


def dense_facts(n: int, d: int, itemsize: int = 8) -> KnownFacts:
    """Return the facts about dense rows, of numbers of so many bytes."""
    return KnownFacts(n, d, n * d, True, itemsize, float(d) ** 2, np.full(d, float(n)))
