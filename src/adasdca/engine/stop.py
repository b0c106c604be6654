"""When a solve stops: the goal, the limits, the wish of a callback, or no progress."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

from adasdca.backends.base import FOREVER
from adasdca.engine.interruption import Interruption
from adasdca.solution import Record, Status

#: After so many surveys in which nothing moves beyond rounding, double precision has no more to
#: give: a dual that gains less than the last digits of D from survey to survey would gain less than
#: 1e-11 of it in all epochs that a solve has by default. One such survey is not enough, since rows
#: are drawn by chance.
UNMOVED = 20

Callback = Callable[[Record], Any]


class StopRule:
    """Judges a record: go on, or stop with a status."""

    def __init__(
        self,
        start: float,
        tol: float,
        max_epochs: int,
        max_time: float | None,
        callback: Callback | None,
        interruption: Interruption,
        unmoved: float = UNMOVED,
    ) -> None:
        self.start = start
        self.tol = tol
        self.max_epochs = max_epochs
        self.deadline = math.inf if max_time is None else start + max_time
        self.callback = callback
        self.interruption = interruption
        self.unmoved = unmoved
        self._best_gap = self._best_dual = self._last_gap = math.inf
        self._waited = 0

    def elapsed(self) -> float:
        """Return the seconds since the start."""
        return time.perf_counter() - self.start

    def seconds_left(self) -> float:
        """Return the seconds to the deadline, negative past it."""
        return min(FOREVER, self.deadline - time.perf_counter())

    def judge(self, record: Record) -> Status | None:
        """Return why to stop after this record, or None."""
        wanted = self._wanted(record)
        if record.gap <= self.tol * record.primal:
            return Status.CONVERGED
        if wanted:
            return Status.INTERRUPTED
        if record.epoch >= self.max_epochs:
            return Status.EPOCH_LIMIT
        if self.seconds_left() <= 0:
            return Status.TIME_LIMIT
        return Status.STALLED if self._stalled(record) else None

    def _wanted(self, record: Record) -> bool:
        """Tell the callback; return whether it, or Ctrl-C, wants an end."""
        try:
            if self.callback is not None:
                with self.interruption.opened():
                    if self.callback(record):
                        return True
        except KeyboardInterrupt:
            self.interruption.wish()
        return self.interruption.wished

    def _stalled(self, record: Record) -> bool:
        """Whether neither gap nor dual has moved beyond rounding in the last surveys."""
        rounding = 4 * sys.float_info.epsilon * (abs(record.primal) + abs(record.dual))
        first = math.isinf(self._best_gap)
        moved = record.gap < self._best_gap - rounding or record.dual > self._best_dual + rounding
        # With an intercept the certificate swings for a while before it settles.
        swung = abs(record.gap - self._last_gap) > 1e4 * rounding
        self._waited = 0 if first or moved or swung else self._waited + 1
        self._last_gap = record.gap
        self._best_gap = min(self._best_gap, record.gap)
        self._best_dual = record.dual if first else max(self._best_dual, record.dual)
        return self._waited >= self.unmoved
