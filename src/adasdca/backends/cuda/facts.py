"""What the cost model asks of rows on a device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.base import HERE, Distance


@dataclass(frozen=True)
class DeviceFacts:
    """Facts about rows; `backends.facts.RowFacts` says what each is."""

    n: int
    d: int
    stored: int
    dense: bool
    entry_bytes: int
    squared_length: float
    counts: NDArray[np.float64]  #: (d,), the number of entries of every column.
    ascends: bool = False
    batch: int = 1  #: Rows of a mini-batch.
    central: bool = False
    distance: Distance = HERE

    @property
    def column_shares(self) -> NDArray[np.float64]:
        return np.sort(self.counts / self.n)[::-1]

    @property
    def shared(self) -> float:
        if self.dense or self.n < 2:
            return self.stored / self.n
        return float((self.counts * (self.counts - 1.0)).sum()) / (self.n * (self.n - 1.0))
