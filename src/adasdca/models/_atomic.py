"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Yield a file that takes the place of `path` once it is written whole.

    Until then, and for good if writing fails, what was there stays. Devices and pipes are written
    to as they are.
    """
    goal = Path(os.path.realpath(path))  # of a link, what it points to
    if goal.exists() and not goal.is_file():
        with open(goal, "wb") as file:
            yield file
        return
    draft = goal.with_name(f".{goal.name}.{secrets.token_hex(4)}")
    try:
        with open(draft, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, goal)
    finally:
        draft.unlink(missing_ok=True)
