"""Results as files, and tables on the screen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adasdca.storage import write_whole

RESULTS = Path(__file__).parent / "results"


def save(result: dict[str, Any], out: str | Path | None, default: str) -> Path:
    """Write a result as JSON, by default under `benchmarks/results/`."""
    path = Path(out) if out else RESULTS / default
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(result, indent=1) + "\n")
    return path


def load(path: str | Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(Path(path).read_text())
    return result


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Return aligned columns, those numbered in `left` flush left."""
    widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]

    def line(row: Sequence[str]) -> str:
        cells = (
            cell.ljust(width) if k in left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    return "\n".join([line(head), "  ".join("-" * w for w in widths), *map(line, rows)])


def seconds(value: float | None) -> str:
    """Return a time in three digits with its unit."""
    if value is None:
        return "–"
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * scale >= 1 or unit == "µs":
            return f"{value * scale:#.3g}".rstrip(".") + f" {unit}"
    raise AssertionError


def size(count: float | None) -> str:
    """Return a number of bytes in three digits with its unit."""
    if count is None:
        return "–"
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= scale:
            return f"{count / scale:#.3g}".rstrip(".") + f" {unit}"
    return f"{count:.0f} B"


def ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
