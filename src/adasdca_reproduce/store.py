"""Raw results as JSON lines: one line a run, appended when it is over, never changed."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adasdca.storage import FileError, guarded, write_whole

Record = dict[str, Any]
KEY = ("experiment", "data", "loss", "method", "seed")


class StoreError(FileError):
    """A file of results that cannot be used."""


def identity(record: Record) -> str:
    """Return key and protocol of a stored run as one string."""
    return json.dumps([*(record[k] for k in KEY), record["protocol"]], sort_keys=True)


@dataclass(frozen=True)
class Store:
    """The results in a folder: `runs.jsonl`, and before it a published `runs.jsonl.xz`."""

    folder: Path

    @property
    def path(self) -> Path:
        """Where lines are appended."""
        return self.folder / "runs.jsonl"

    def exists(self) -> bool:
        """Whether there is anything to read."""
        return self.path.is_file() or self._published().is_file()

    def append(self, record: Record) -> None:
        """Add a run; a line that was cut short by an earlier end is closed, not changed."""
        line = json.dumps(record, allow_nan=False, separators=(",", ":")) + "\n"
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.path, "ab+") as file:
            file.seek(0, 2)
            if file.tell():
                file.seek(-1, 2)
                if file.read(1) != b"\n":
                    line = "\n" + line
            file.write(line.encode())

    def read(self) -> tuple[list[Record], int]:
        """Return all runs, and the number of lines that were cut short."""
        records, cut = [], 0
        for where, line in self._lines():
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):  # not JSON, or not UTF-8
                cut += 1
                continue
            if not isinstance(record, dict) or not {*KEY, "protocol"} <= record.keys():
                raise StoreError(
                    f"{where} is not a run of `adasdca reproduce`; remove the line, or choose "
                    "another folder with --output."
                )
            records.append(record)
        return records, cut

    def _published(self) -> Path:
        return self.folder / "runs.jsonl.xz"

    def _lines(self) -> Iterator[tuple[str, bytes]]:
        for path in (self._published(), self.path):
            if not path.is_file():
                continue
            with lzma.open(path) if path.suffix == ".xz" else open(path, "rb") as file:
                lines = enumerate(file, 1)
                while True:
                    with guarded(path, "is damaged ({error}); get it again."):
                        k, line = next(lines, (0, b""))
                    if not k:
                        break
                    if line.strip():
                        yield f"{path.name}, line {k}", line


def standing(records: list[Record]) -> list[Record]:
    """Return one run for each key: that of the largest budget, of several the latest."""
    best: dict[tuple[Any, ...], Record] = {}
    for record in records:
        key = tuple(record[k] for k in KEY)
        known = best.get(key)
        if known is None or record["protocol"]["budget"] >= known["protocol"]["budget"]:
            best[key] = record
    return list(best.values())


def compress(source: Store, target: Path) -> None:
    """Write the standing runs of a store, xz-compressed, a line each."""
    lines = (json.dumps(r, separators=(",", ":")) + "\n" for r in standing(source.read()[0]))
    write_whole(target, lzma.compress("".join(lines).encode(), preset=9))
