"""`adasdca reproduce`: the paper's experiments in one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import rich.progress
import typer

from adasdca import datasets
from adasdca.cli.output import bars, emit, emit_json, note
from adasdca.cli.usage import check_finite, usage_errors
from adasdca.plugins import load_all

if TYPE_CHECKING:
    from adasdca_reproduce.grid import Scope, Task
    from adasdca_reproduce.results import Results
    from adasdca_reproduce.store import Record, Store
    from adasdca_reproduce.verdicts import Case

FAILED, INTERRUPTED = 1, 130
#: The experiments, for the help: their own package is imported only when the command runs.
EXPERIMENTS = ("table1", "table2", "full", "methods", "m", "optimal", "theory", "samplers")


def reproduce(
    output: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of results, figures and page.")
    ] = Path("reproduction"),
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="EXPERIMENT", help=f"One of {', '.join(EXPERIMENTS)}; may repeat."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A representative subset, about a minute.")
    ] = False,
    figures_only: Annotated[
        bool, typer.Option("--figures-only", help="Draw from stored results; run nothing.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="Skip runs that are stored already.")
    ] = True,
    jobs: Annotated[int, typer.Option(min=1, help="Processes, one thread each.")] = 1,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Seeds.", show_default="3 to 5, by experiment")
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            help="Most seconds of a run.",
            show_default="by data set",
            callback=check_finite,
        ),
    ] = None,
    plugin: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE.py", help="Registers rules, methods, losses or data; may repeat."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Verdicts and files as JSON on stdout.")
    ] = False,
) -> None:
    """Run the paper's experiments, and judge its claims.

    Results are JSON lines in DIR/runs.jsonl, written run by run: after an interruption the same
    command continues. The page is DIR/index.html, and DIR/index.md with DIR/figures.
    Runs of other machines (--only) are put together by joining their files of lines, and drawn with
    --figures-only. Seconds are compared within an experiment: run each on one machine.
    """
    from adasdca_reproduce import grid, page, runner
    from adasdca_reproduce.results import Results
    from adasdca_reproduce.store import Store

    store = Store(output)
    with usage_errors("--only"):
        for name in only or ():
            if name not in EXPERIMENTS:
                raise ValueError(f"{name!r} is unknown; choose one of {', '.join(EXPERIMENTS)}.")
    with usage_errors("--plugin"):
        plugins = load_all(plugin or ())
    scope = grid.Scope(
        only=tuple(dict.fromkeys(only or ())),
        available=tuple(datasets.available()),
        quick=quick,
        seeds=seeds,
        budget=budget,
        more_methods=tuple(
            name for p in plugins for name in (*p.methods, *(f"option {rule}" for rule in p.rules))
        ),
        more_losses=tuple(name for p in plugins for name in p.losses),
        more_data=tuple(name for p in plugins for name in p.datasets),
    )
    with usage_errors("--output"):
        records, cut = store.read()
        if figures_only and not store.exists():
            raise ValueError(f"{store.path} does not exist; run without --figures-only first.")
    if cut:
        note(f"{cut} line{'s' * (cut > 1)} of {store.path} cut short; skipped.")
    interrupted, made = False, []
    if not figures_only:
        todo = grid.tasks(scope)
        left = runner.pending(todo, records) if resume else todo
        _announce(scope, todo, left, jobs)
        with _Progress(len(left)) as progress:
            try:
                files = [str(p.path) for p in plugins]
                runner.run(left, store, jobs=jobs, plugins=files, see=progress.see)
            except runner.Interrupted:
                interrupted = True
        made = progress.failed
    with usage_errors("--output"):
        results = Results(store.read()[0])
    files_written: list[Path] = []
    if results.records and not interrupted:
        files_written = page.write(results, output)
    _report(results, store, output, files_written, as_json)
    for line in made:
        note(line)
    if interrupted:
        note(
            "Interrupted; what was done is stored. The same command goes on from here, and "
            "--figures-only draws what there is."
        )
        raise typer.Exit(INTERRUPTED)
    if made:
        raise typer.Exit(FAILED)


class _Progress:
    """A bar over all runs on a terminal, nothing in a pipe; gathers what failed."""

    def __init__(self, count: int) -> None:
        self._bar = bars(
            rich.progress.BarColumn(bar_width=24),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TimeElapsedColumn(),
            rich.progress.TimeRemainingColumn(),
            rich.progress.TextColumn("{task.description}"),
            auto_refresh=False,  # no thread beside the runs that are timed
        )
        self._task = self._bar.add_task("", total=count)
        self.failed: list[str] = []

    def __enter__(self) -> _Progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def see(self, task: Task, record: Record) -> None:
        """Count a run."""
        words = " ".join(filter(None, (task.experiment, task.data, task.loss, task.method)))
        if record["status"] == "failed":
            self.failed.append(f"{words}, seed {task.seed}, failed: {record['error']}")
        self._bar.update(self._task, advance=1, description=words, refresh=True)


def _announce(scope: Scope, todo: list[Task], left: list[Task], jobs: int) -> None:
    """Say what is going to happen and how long it can take."""
    from adasdca_reproduce import grid

    stored = f", {len(todo) - len(left)} stored already" if len(left) < len(todo) else ""
    usual, most = grid.usual_seconds(left, jobs), grid.most_seconds(left, jobs)
    times = f"; usually about {_duration(usual)}, at most {_duration(most)}" if left else ""
    note(f"{len(left)} runs{stored}{times}.")
    absent = grid.missing(scope)
    if absent:
        words = ", ".join(absent)
        note(f"Left out, not here: {words}; get them with `adasdca datasets fetch NAME`.")
    for words in grid.left_out(scope):
        note(f"Left out of a quick run: {words}")


def _duration(seconds: float) -> str:
    """Return a time in words: minutes from 90 seconds on, hours from 90 minutes on."""
    for unit, size in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{max(round(seconds), 1)} s"


def _report(results: Results, store: Store, output: Path, files: list[Path], as_json: bool) -> None:
    from adasdca_reproduce.page import judge
    from adasdca_reproduce.verdicts import summary

    judged = judge(results)
    if as_json:
        document = {
            "runs": len(results.records),
            "results": str(store.path),
            "files": [str(path) for path in files],
            "claims": {name: [_case(case) for case in cases] for name, cases in judged.items()},
        }
        emit_json(document)
        return
    for name, cases in judged.items():
        counts = summary(cases)
        if counts.total:
            emit(f"{name}: {counts}")
    if files:
        emit(f"Page: {output / 'index.html'}")


def _case(case: Case) -> dict[str, Any]:
    data, loss = case.problem
    return {
        "data": data,
        "loss": loss,
        "gap": case.gap,
        "verdict": case.verdict.value,
        "close": case.close,
        "tied": case.tied,
        "note": case.note,
    }
