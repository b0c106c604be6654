"""`adasdca datasets`: which data sets there are, what is known of them, and fetching them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import rich.progress
import typer

from adasdca import datasets
from adasdca.cli import options
from adasdca.cli.output import bars, emit, emit_json, print_rows
from adasdca.cli.usage import check_finite, usage_error, usage_errors

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="The paper's data sets: list them, tell about them, fetch them.",
)


def _show(name: str) -> dict[str, Any]:
    facts = datasets.info(name)
    content = facts.get("content") or {}
    return {
        "name": name,
        "n": facts.get("n"),
        "d": facts.get("d"),
        "nnz": content.get("nnz"),
        "path": facts["path"],
        "available": name in datasets.available(),
    }


def _example(text: str) -> str:
    return f"\b\nExample:\n  {text}"


@app.command("list", epilog=_example("adasdca datasets list"))
def list_(as_json: options.Json = False, plugin: options.PluginFiles = None) -> None:
    """List the data sets, and where they lie."""
    rows = [_show(name) for name in datasets.names()]
    if as_json:
        emit_json(rows)
        return
    lines = []
    for row in rows:
        where = row["path"] or ("made by a function" if row["available"] else "not here")
        sizes = ("" if row[k] is None else str(row[k]) for k in ("n", "d", "nnz"))
        lines.append((row["name"], *sizes, where))
    columns = ("name", "n", "d", "non-zeros", "where")
    print_rows(None, columns, lines, left=("name", "where"))


@app.command(epilog=_example("adasdca datasets info cov1"))
def info(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a data set.")],
    as_json: options.Json = False,
    plugin: options.PluginFiles = None,
) -> None:
    """Tell what is known of a data set: origin, size, licence."""
    with usage_errors("NAME"):
        facts = datasets.info(name)
    if as_json:
        emit_json(facts)
        return
    for key, value in facts.items():
        for words in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(words, dict):
                words = ", ".join(f"{k} {v}" for k, v in words.items())
            typer.echo(f"{key:9} {'-' if words in (None, '') else words}")


@app.command(epilog=_example("adasdca datasets fetch w8a ijcnn1"))
def fetch(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAMES", help="Names of data sets.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of the paper's.")] = False,
    directory: Annotated[
        Path | None,
        typer.Option(help="Where to put them.", show_default="$ADASDCA_DATA or the user's cache"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Fetch even what is there.")] = False,
    timeout: Annotated[
        float, typer.Option(min=0.001, help="Seconds to wait for a byte.", callback=check_finite)
    ] = 30.0,
    attempts: Annotated[int, typer.Option(min=1, help="Attempts for each address.")] = 5,
    wait: Annotated[
        float,
        typer.Option(min=0.0, help="Seconds before the second one.", callback=check_finite),
    ] = 1.0,
    as_json: options.Json = False,
    plugin: options.PluginFiles = None,
) -> None:
    """Fetch data sets from their origin and verify them, entry by entry."""
    wanted = [*(names or []), *(datasets.NAMES if everything else ())]
    if not wanted:
        known = ", ".join(datasets.names())
        raise usage_error(f"no data set is named; choose of {known}, or pass --all.", "NAMES")
    done = []
    with usage_errors("NAMES"):
        for name in wanted:
            datasets.info(name)  # an unknown name is told before anything is fetched
        for name in dict.fromkeys(wanted):
            with _bar(name) as progress:
                path = datasets.fetch(
                    name,
                    directory=directory,
                    force=force,
                    timeout=timeout,
                    attempts=attempts,
                    wait=wait,
                    progress=progress,
                )
            done.append({"name": name, "path": str(path)})
            if not as_json:
                emit(str(path))
    if as_json:
        emit_json(done)


@contextlib.contextmanager
def _bar(name: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show on a terminal how much has arrived."""
    shown = bars(
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.DownloadColumn(),
        rich.progress.TransferSpeedColumn(),
        transient=True,
    )
    with shown:
        task = shown.add_task(name, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
