"""How a file that cannot be used is reported, and how much memory one may ask for."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from adasdca.errors import InputError

#: Bytes that any file may become in memory.
FREE = 1 << 30
#: Beyond these, what a byte on disk may become. Data seldom shrink to less than a fiftieth.
EXPANSION = 200


class FileError(InputError):
    """A file that cannot be used; the message names the file, the place in it, and a remedy."""


@contextmanager
def guarded(path: str | os.PathLike[str], remedy: str, *more: Any) -> Iterator[None]:
    """Turn what another library's reader raises over damaged contents into a `FileError`.

    Its message is the path, the remedy with the reader's words for {error}, and the parts `more`.
    Such readers raise nearly anything, so only their calls belong inside. An error of the disk
    stays an OSError.
    """
    try:
        yield
    except (FileError, ImportError):
        raise
    except BaseException as error:
        # A panic of polars is no Exception; an OSError over contents has no errno, or that of a
        # seek to where nothing can be.
        panic = type(error).__name__ == "PanicException"
        disk = isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
        if disk or not (panic or isinstance(error, Exception)):
            raise
        words = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise FileError(f"{os.fspath(path)} {remedy.format(error=words)}", *more) from error


def file_sha256(path: str | os.PathLike[str]) -> str:
    """Return the checksum of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def allowance(size: int) -> int:
    """Return the bytes that a file of this size may become in memory."""
    return max(FREE, EXPANSION * size)


def check_size(path: str | os.PathLike[str], needed: int, size: int) -> None:
    """Refuse contents out of proportion to the bytes on disk, before memory is taken."""
    if needed > allowance(size):
        raise FileError(
            f"{os.fspath(path)}: {size} bytes would become {needed} in memory, more than "
            f"{EXPANSION} times as many, so that it is damaged or made to exhaust memory; if it is "
            "neither, store it uncompressed."
        )
