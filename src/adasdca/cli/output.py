"""Where words go: results to stdout, for machines or as asked; all else to stderr, for people."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import math
import os
import secrets
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import rich.box
import rich.console
import rich.progress
import rich.table
import typer

from adasdca.duality.certificate import in_figures
from adasdca.errors import counted
from adasdca.models._model import FIGURES
from adasdca.storage import write_whole

#: Columns of a terminal that has room for every table.
WIDE = 1000


class _Voice:
    """Whether messages are printed."""

    quiet = False


def set_quiet(wanted: bool) -> bool:
    """Print no messages from now on if --quiet is given: its callback."""
    _Voice.quiet = wanted
    return wanted


def note(text: str) -> None:
    """Print a message on stderr, unless --quiet was given."""
    if not _Voice.quiet:
        print_error(text)


def print_error(text: str) -> None:
    """Print a message on stderr; a closed pipe there ends nothing."""
    try:
        typer.echo(text, err=True)
    except BrokenPipeError:
        discard(sys.stderr)


def emit(text: str) -> None:
    """Write a result, with a newline; a reader that has closed its end has had enough of it."""
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
        raise typer.Exit(0) from None


def is_quiet() -> bool:
    """Whether --quiet was given."""
    return _Voice.quiet


def discard(stream: TextIO) -> None:
    """Point a stream to nowhere, so that Python's last flush has no pipe to break."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def emit_json(document: Any) -> None:
    """Write one JSON document on one line."""
    emit(json.dumps(document, allow_nan=False))


def finite(x: float) -> float | None:
    """Return a number for JSON, which has no infinities."""
    return float(x) if math.isfinite(x) else None


def plain(label: Any) -> Any:
    """Return a label as Python's own type, 1.0 as 1, for JSON and for people."""
    value = label.item() if isinstance(label, np.generic) else label
    return int(value) if isinstance(value, float) and value.is_integer() else value


def described(thing: Any) -> dict[str, Any]:
    """Return the name and the parameters of a loss or a method, ready for JSON."""
    return {"name": thing.name} | dataclasses.asdict(thing)


def print_rows(
    title: str | None, columns: Sequence[str], rows: Iterable[Sequence[str]], *, left: Sequence[str]
) -> None:
    """Print a table on stdout; numbers to the right, the columns `left` to the left."""
    table = rich.table.Table(box=rich.box.SIMPLE)
    for column in columns:
        table.add_column(column, justify="left" if column in left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    # No number and no path is cut: lines too long for a terminal are broken by it.
    console = rich.console.Console(width=WIDE, highlight=False, markup=False)
    if title is not None:  # as that of the table it would be broken at the table's width
        console.print(title, soft_wrap=True)
    console.print(table, soft_wrap=True)


def certificate(point: Any, label: Any = None) -> dict[str, Any]:
    """Return the certificate of a point, ready for JSON; `label` names its class if any."""
    return {"class": label, **{name: finite(getattr(point, name)) for name in FIGURES}}


def certificate_lines(certificates: list[dict[str, Any]], most: int = 6) -> list[str]:
    """Say certificates in words, a line each; of many, the weakest."""
    ordered = certificates
    if len(certificates) > most:
        ordered = sorted(certificates, key=lambda c: -math.inf if c["gap"] is None else -c["gap"])
    lines = []
    for c in ordered[:most]:
        name = "" if c["class"] is None else f"class {c['class']}: "
        # JSON has null for what is not finite: an objective that overflows, and gaps with it.
        primal, gap, relative, radius = (
            math.inf if c[key] is None else c[key]
            for key in ("primal", "gap", "relative_gap", "radius")
        )
        dual = -math.inf if c["dual"] is None else c["dual"]
        within = "unbounded" if math.isinf(radius) else in_figures(radius, 2)
        lines.append(
            f"{name}objective {primal:.8g}; no model has less than {dual:.8g}: "
            f"gap {in_figures(gap, 2)} (relative {relative:.2g}), radius {within}"
        )
    if len(certificates) > most:
        lines.append(f"and {counted(len(certificates) - most, 'class')} with smaller gaps")
    return lines


@dataclasses.dataclass(frozen=True)
class Saved:
    """Where a result was written, after some trouble perhaps; nowhere, and then `text` has it."""

    path: Path | None
    trouble: str = ""
    text: str = ""


def save_somewhere(contents: bytes, path: Path) -> Saved:
    """Write what took long to compute; where that fails, to another place, or into text."""
    try:
        write_whole(path, contents)
        return Saved(path)
    except OSError as error:
        trouble = f"{path} could not be written ({error.strerror or error})"
    for find in (tempfile.gettempdir, Path.home, lambda: "/dev/shm"):
        with contextlib.suppress(OSError, RuntimeError):
            place = Path(find(), f"adasdca-{secrets.token_hex(8)}-{path.name}")
            write_whole(place, contents)
            return Saved(place, f"{trouble}; the model is in {place}: move it from there.")
    return Saved(
        None,
        f"{trouble}, nor could any other place; its bytes are on stdout as base64: make room, and "
        f"give them to `base64 -d > {path}`.",
        base64.b64encode(contents).decode("ascii"),
    )


class _Bars(rich.progress.Progress):
    def stop(self) -> None:
        """Stop; rich before 14.3 ends those that are hidden, too, with an empty line."""
        if not self.disable:
            super().stop()


def bars(
    *columns: rich.progress.ProgressColumn,
    console: rich.console.Console | None = None,
    **settings: Any,
) -> rich.progress.Progress:
    """Return bars on stderr that are seen on a terminal only, and not with --quiet."""
    console = console or rich.console.Console(stderr=True)
    hidden = not console.is_terminal or _Voice.quiet
    return _Bars(*columns, console=console, disable=hidden, **settings)


@contextlib.contextmanager
def busy(text: str) -> Iterator[None]:
    """Show on a terminal that something goes on."""
    console = rich.console.Console(stderr=True)
    if console.is_terminal and not _Voice.quiet:
        with console.status(text):
            yield
    else:
        yield
