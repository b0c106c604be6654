"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

#: A block of a disk: what must fit on it for a file to be begun.
BLOCK = 4096


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a file that takes the place of `path` once it is written whole.

    Until then the old file stays. It stays for good if writing fails or the process ends. The new
    file has the permissions of the old one; of a link, the target is replaced. Devices and pipes
    are written to directly.
    """
    if _is_special(path):
        with open(path, "wb") as file:
            yield file
        return
    with _draft(path) as (goal, file):
        yield file
    _sync_folder(goal.parent)


@contextlib.contextmanager
def _draft(path: str | os.PathLike[str], kept: bool = True) -> Iterator[tuple[Path, BinaryIO]]:
    """Yield where a file will be and a new one beside it, which is put there if it is `kept`."""
    goal = Path(os.path.realpath(path))  # of a link, what it points to
    before = goal.stat() if goal.exists() else None
    if before is not None and not os.access(goal, os.W_OK):
        raise PermissionError(f"{path} is write-protected; choose another name, or lift that.")
    draft = goal.with_name(f".adasdca-{secrets.token_hex(8)}")
    try:
        with open(draft, "xb") as file:
            if before is not None:  # at once: what is private stays so
                _keep_rights(draft, before)
            yield goal, file
            file.flush()
            os.fsync(file.fileno())  # some file systems look for room only now
        if kept:
            os.replace(draft, goal)
    except OSError as error:
        if error.filename == str(draft):  # nobody knows it by that name
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        draft.unlink(missing_ok=True)


def write_whole(path: str | os.PathLike[str], contents: bytes | str) -> None:
    """Write a file at once, text as UTF-8; see `replacing`."""
    with replacing(path) as file:
        file.write(contents.encode() if isinstance(contents, str) else contents)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise the OSError with which a file could not even be begun; nothing is changed."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder; name a file in it.")
    if not Path(os.path.realpath(path)).parent.is_dir():
        raise FileNotFoundError(f"the folder of {path} does not exist; make it first.")
    if not _is_special(path):
        with _draft(path, kept=False) as (_, file):
            file.write(bytes(BLOCK))


def _is_special(path: str | os.PathLike[str]) -> bool:
    """Whether a path names a device or a pipe; not by its real path, which a pipe has none of."""
    return os.path.exists(path) and not os.path.isfile(path)


def _keep_rights(draft: Path, before: os.stat_result) -> None:
    now = draft.stat()
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        with contextlib.suppress(OSError):  # only root may give files away
            chown: Any = getattr(os, "chown", None)
            if chown is not None:
                chown(draft, before.st_uid, before.st_gid)
    draft.chmod(stat.S_IMODE(before.st_mode))


def _sync_folder(folder: Path) -> None:
    """Bring the new name to the disk as well, where folders can be opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
