"""Ctrl-C that loses nothing, also where one command is several solves."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from adasdca.cli.output import note
from adasdca.solution import Record


class Interrupt:
    """Inside this context the first Ctrl-C asks to stop, the second one stops at once.

    As a callback of solves it stops the one that runs after its epoch, and those that follow at
    their first certificate: every one has a point to hand over.

    Attributes
    ----------
    seen : bool
        Whether there was a Ctrl-C.
    """

    def __init__(self) -> None:
        self.seen = False
        self._before: Any = None

    def __enter__(self) -> Interrupt:
        # A program started with interrupts ignored, in the background, keeps ignoring them; and
        # Python handles signals in its main thread alone.
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            self._before = signal.signal(signal.SIGINT, self._stop)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.seen:
            raise KeyboardInterrupt
        self.seen = True
        note("Stopping after this epoch; Ctrl-C again to stop at once.")

    def __call__(self, record: Record) -> bool:
        """Say to a solve whether to stop."""
        return self.seen
