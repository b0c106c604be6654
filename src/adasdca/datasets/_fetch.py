"""`fetch`: an original from the web, verified, as a file that `load` reads."""

from __future__ import annotations

import datetime as dt
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from adasdca.datasets._download import FetchError, Patience, Progress, RejectedError, download
from adasdca.datasets._folders import write_npz
from adasdca.datasets._originals import ContentError, read_original
from adasdca.datasets._sources import Data, Source
from adasdca.storage import file_sha256, write_whole


def read_record(folder: Path, name: str) -> dict[str, Any] | None:
    """Return what was written down when a data set was fetched into a folder."""
    try:
        record = json.loads((folder / f"{name}.lock.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def is_intact(folder: Path, name: str) -> bool:
    """Whether a fetched file is there, and as it was written."""
    record, path = read_record(folder, name), folder / f"{name}.npz"
    return record is not None and path.is_file() and file_sha256(path) == record.get("npz_sha256")


def fetch_source(
    source: Source, folder: Path, force: bool, patience: Patience, progress: Progress | None
) -> Path:
    """Fetch a source into a folder, unless it is there."""
    target = folder / f"{source.name}.npz"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if force or not is_intact(folder, source.name):
            _fetch(source, folder, target, patience, progress)
    except FetchError as error:
        raise FetchError(
            f"{source.name} could not be fetched: {error}. Try again later; or get the file by "
            f"other means, see {source.homepage or source.urls[0]}"
        ) from error
    except OSError as error:
        raise FetchError(
            f"{source.name} could not be written to {folder}: {error}; set the environment "
            "variable ADASDCA_DATA to a folder that can be written."
        ) from error
    return target


def _fetch(
    source: Source, folder: Path, target: Path, patience: Patience, progress: Progress | None
) -> None:
    before = read_record(folder, source.name)
    seen: dict[str, Any] = {}

    def accept(part: Path, url: str) -> Data:
        seen.update(url=url, bytes=part.stat().st_size, sha256=file_sha256(part))
        _check_file(source, seen, before, folder)
        try:
            return read_original(source, part)
        except ContentError as error:
            raise RejectedError(str(error)) from error

    # A folder for this process alone. The reader goes by the suffix.
    with tempfile.TemporaryDirectory(prefix=".", dir=folder) as place:
        part = Path(place) / source.filename
        data = download(source.urls, part, source.bytes, accept, patience, progress)
    write_npz(target, data)
    record = {
        "name": source.name,
        **seen,
        "vouched": source.sha256 is not None,
        "content": asdict(source.content) if source.content else None,
        "npz_sha256": file_sha256(target),
        "fetched": dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
    }
    write_whole(folder / f"{source.name}.lock.json", json.dumps(record, indent=1))


def _check_file(
    source: Source, seen: dict[str, Any], before: dict[str, Any] | None, folder: Path
) -> None:
    """Compare size and checksum with what is known, or was recorded the first time."""
    if source.bytes is not None and seen["bytes"] != source.bytes:
        raise RejectedError(f"it has {seen['bytes']} bytes, not {source.bytes}")
    if source.sha256 is not None:
        if seen["sha256"] != source.sha256:
            raise RejectedError(f"its sha256 is {seen['sha256']}, not {source.sha256}")
    elif source.content is None and before and before.get("sha256") != seen["sha256"]:
        # Where the content is known, it decides: the same data packed anew are welcome.
        raise RejectedError(
            f"its sha256 is {seen['sha256']}, but was {before.get('sha256')} when it was first "
            f"fetched; if the change is right, remove {folder / (source.name + '.lock.json')}"
        )
