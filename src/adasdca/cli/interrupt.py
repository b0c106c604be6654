"""Ctrl-C that loses nothing, also where one command is several solves."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress

from adasdca.cli.output import note
from adasdca.engine.interruption import Interruption, interruption


def stoppable() -> AbstractContextManager[Interruption]:
    """Inside this context the first Ctrl-C asks to stop, and is told; the second one stops at once.

    Solves end with what they have certified, and what is made of that is not disturbed.
    """
    return interruption(tell=_tell)


def _tell() -> None:
    with suppress(RuntimeError):  # in the middle of another line, which cannot be interrupted
        note("Stopping with what is certified; Ctrl-C again to stop at once.")
