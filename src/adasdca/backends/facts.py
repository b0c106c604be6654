"""What the cost model asks of rows: their shape, and what a sample of them shows."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.base import HERE
from adasdca.problem.data import Rows

#: Rows that are looked at for their lengths, for common columns, and for what pairs share.
LENGTHS, COLUMNS, PAIRS = 1024, 256, 64


class RowFacts:
    """Facts about rows in memory; what needs a look at them is found out when it is asked for."""

    ascends, batch, central, distance = True, 1, True, HERE

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
