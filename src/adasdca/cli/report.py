"""Words for a comparison: the progress on stderr, the table, and the JSON document."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import rich.box
import rich.console
import rich.progress
import rich.table

import adasdca
from adasdca.cli.compare import Entrant, Limits, Run, Setting
from adasdca.solution import Record, Solution


class Progress:
    """A bar for each method, full when the gap asked for is reached; silent unless on a terminal.

    Its length is the share of the digits: log(first gap / gap) over log(first gap / goal).
    """

    #: Seconds between two drawings, which take milliseconds inside the clock of a solve: a method
    #: that needs less than this is not disturbed at all.
    interval = 0.25

    def __init__(self, tol: float, console: rich.console.Console | None = None) -> None:
        self._tol = max(tol, 1e-16)
        console = console or rich.console.Console(stderr=True)
        column = rich.progress.TextColumn
        self._bars = rich.progress.Progress(
            column("{task.description:<13}"),
            rich.progress.BarColumn(bar_width=24),
            column("gap {task.fields[gap]:8.1e}"),
            column("{task.fields[epoch]:4d} epochs"),
            rich.progress.TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
            auto_refresh=False,
        )
        self._tasks: dict[str, rich.progress.TaskID] = {}

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def follow(self, label: str) -> Callable[[Record], None]:
        """Add a bar and return the callback that moves it."""
        task = self._bars.add_task(label, total=1.0, gap=math.inf, epoch=0)
        self._tasks[label] = task
        start, due = math.nan, time.perf_counter() + self.interval

        def look(record: Record) -> None:
            nonlocal start, due
            gap = record.gap / record.primal if record.primal > 0 else 0.0
            start = gap if math.isnan(start) else start
            now = time.perf_counter()
            if now < due:
                return
            due = now + self.interval
            share = self._share(start, gap)
            self._bars.update(task, completed=share, gap=gap, epoch=record.epoch, refresh=True)

        return look

    def _share(self, start: float, gap: float) -> float:
        if gap <= self._tol:
            return 1.0
        return max(0.0, math.log(start / gap) / math.log(start / self._tol))

    def finish(self, label: str, solution: Solution) -> None:
        """Show where the method ended."""
        task = self._tasks[label]
        gap, epoch = solution.relative_gap, solution.n_epochs
        self._bars.update(task, gap=gap, epoch=epoch)
        if solution.converged:
            self._bars.update(task, completed=1.0)
        self._bars.stop_task(task)
        self._bars.refresh()


def print_table(setting: Setting, entrants: list[Entrant], runs: list[Run]) -> None:
    """Print a line for each method."""
    columns = ("method", "epochs", "updates/n", "seconds", "relative gap", "status")
    table = rich.table.Table(box=rich.box.SIMPLE, title=setting.title(), title_justify="left")
    for column in columns:
        right = column not in ("method", "status")
        table.add_column(column, justify="right" if right else "left", no_wrap=True)
    done = {run.label: run for run in runs}
    for entrant in entrants:
        run = done.get(entrant.label)
        if run is None:
            words = f"left out: {entrant.excuse}" if entrant.excuse else "not run"
            table.add_row(entrant.label, "", "", "", "", words)
        else:
            solution = run.solution
            table.add_row(
                run.label,
                str(solution.n_epochs),
                f"{run.passes:.1f}",
                f"{run.seconds:.3f}",
                f"{solution.relative_gap:.1e}",
                solution.status.value,
            )
    console = rich.console.Console(highlight=False)
    if not console.is_terminal:
        console.width = 100  # a file has no width; let no line break
    console.print(table)


def as_dict(
    setting: Setting, limits: Limits, entrants: list[Entrant], runs: list[Run]
) -> dict[str, Any]:
    """Return all that was measured, ready for JSON; a figure that is not finite is null."""
    return {
        "adasdca": adasdca.__version__,
        "problem": dataclasses.asdict(setting) | {"loss": _described(setting.loss)},
        "limits": dataclasses.asdict(limits),
        "runs": [_run(run) for run in runs],
        "left_out": {e.label: e.excuse for e in entrants if e.excuse},
    }


def _described(thing: Any) -> dict[str, Any]:
    """Return the name and the parameters of a loss or a method."""
    return {"name": thing.name} | dataclasses.asdict(thing)


def _finite(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None


def _run(run: Run) -> dict[str, Any]:
    solution, history = run.solution, run.solution.history
    return {
        "label": run.label,
        "method": _described(run.method),
        "epochs": solution.n_epochs,
        "updates": solution.n_updates,
        "seconds": run.seconds,
        **{
            name: _finite(getattr(solution, name))
            for name in ("primal", "dual", "gap", "relative_gap", "radius")
        },
        "status": solution.status.value,
        "history": {
            field.name: getattr(history, field.name).tolist()
            for field in dataclasses.fields(history)
        },
    }
