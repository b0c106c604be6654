"""Progress on a terminal, in digits of the accuracy asked for; Ctrl-C that loses nothing."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

import rich.console
import rich.progress

from adasdca.cli.output import bars, note
from adasdca.duality.certificate import digits_done, relative_gap
from adasdca.engine.interruption import Interruption, interruption
from adasdca.solution import Record


class Progress:
    """A bar for each solve, full when the gap reaches tol; silent unless on a terminal.

    Its length is the share of the digits that are there.
    """

    #: Seconds between two drawings, which take milliseconds inside the clock of a solve: one that
    #: needs less than this is not disturbed at all.
    interval = 0.25

    def __init__(self, tol: float, console: rich.console.Console | None = None) -> None:
        self._tol = max(tol, 1e-16)
        column = rich.progress.TextColumn
        self._bars = bars(
            column("{task.description:<13}"),
            rich.progress.BarColumn(bar_width=24),
            column("gap {task.fields[gap]:8.1e}"),
            column("{task.fields[epoch]:4d} epochs"),
            rich.progress.TimeElapsedColumn(),
            console=console,
            auto_refresh=False,
        )
        self._tasks: dict[str, rich.progress.TaskID] = {}

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def follow(self, label: str) -> Callable[[Record], None]:
        """Add a bar and return the callback that moves it."""
        task = self._bars.add_task(label, total=1.0, gap=math.inf, epoch=0)
        self._tasks[label] = task
        start, due = math.nan, time.perf_counter() + self.interval

        def look(record: Record) -> None:
            nonlocal start, due
            gap = relative_gap(record.gap, record.primal)
            start = gap if math.isnan(start) else start
            now = time.perf_counter()
            if now < due:
                return
            due = now + self.interval
            share = digits_done(start, gap, self._tol)
            self._bars.update(task, completed=share, gap=gap, epoch=record.epoch, refresh=True)

        return look

    def finish(self, label: str, relative_gap: float, epochs: int, converged: bool) -> None:
        """Show where the solve ended."""
        task = self._tasks[label]
        self._bars.update(task, gap=relative_gap, epoch=epochs)
        if converged:
            self._bars.update(task, completed=1.0)
        self._bars.stop_task(task)
        self._bars.refresh()


def stops_on_ctrl_c() -> AbstractContextManager[Interruption]:
    """Let the first Ctrl-C stop the solve, with a message, and the second one stop at once.

    Solves end with what they have certified, and what is made of that is not disturbed.
    """
    return interruption(tell=_tell)


def _tell() -> None:
    with suppress(RuntimeError):  # in the middle of another line, which cannot be interrupted
        note("Stopping with what is certified; Ctrl-C again to stop at once.")
