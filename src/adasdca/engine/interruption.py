"""Ctrl-C as a wish, which solves come to at a safe point: between kernels, with a result to return.

An exception at any line would leave estimators half fitted and lose solutions that are as good as
returned. So a call that solves takes Ctrl-C over while it runs. The handler raises nothing but
makes a wish. Kernels of the threads that heed it are left by KeyboardInterrupt, which a solve turns
into its last certified point; whoever called that solve asks whether the whole is to stop.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from adasdca import _core
from adasdca.backends.base import FOREVER

SIGINT = int(signal.SIGINT)
#: The interpreter's own, whose handlers are no members of an enumeration: 20 -> 2 µs a solve.
_signal: Any = sys.modules.get("_signal", signal)
#: What a thread is in: `around`, the interruption of the call; `heeding`, until when, if at all.
_thread = threading.local()


class Interruption:
    """The wish to stop one call, which may be many solves in several threads.

    Parameters
    ----------
    tell : callable, optional
        Called at the first Ctrl-C. The second one raises KeyboardInterrupt at once.
    """

    def __init__(self, tell: Callable[[], None] | None = None) -> None:
        self._tell = tell
        self._wish = _core.Wish()
        self._owner = threading.get_ident()
        self._pressed = self._open = False
        self._before: Any = None

    @property
    def wished(self) -> bool:
        """Whether the call is to stop."""
        return self._wish.made

    def wish(self) -> None:
        """Let the call stop: at the next kernel of every thread that heeds this."""
        self._wish.make()

    def check(self) -> None:
        """Raise KeyboardInterrupt if the call is to stop."""
        if self.wished:
            raise KeyboardInterrupt

    @contextmanager
    def heeded(self, seconds: float = FOREVER) -> Iterator[None]:
        """Let this thread's kernels be left by KeyboardInterrupt, or by Expired after that time."""
        before = getattr(_thread, "heeding", None)
        try:
            self._heed(time.perf_counter() + seconds)
            yield
        finally:
            self._heed(before)

    def _heed(self, deadline: float | None) -> None:
        _thread.heeding = deadline
        if deadline is None:
            _core.heed(None)
        else:
            _core.heed(self._wish, deadline - time.perf_counter())

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Let solves in this thread belong to the call."""
        before = _around()
        _thread.around = self
        try:
            yield
        finally:
            _thread.around = before

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Let Ctrl-C raise at once, as well, and solves in here be calls of their own.

        For what loses nothing by it: checks of the input, and callbacks of the user's.
        """
        before, heeding = _around(), getattr(_thread, "heeding", None)
        owner = threading.get_ident() == self._owner
        try:
            _thread.around = None
            self._heed(None)
            self._open = self._open or owner
            yield
        finally:
            self._open = self._open and not owner
            self._heed(heeding)
            _thread.around = before

    def _take_over(self) -> None:
        handler = _signal.getsignal(SIGINT)
        # A program started with interrupts ignored, in the background, keeps ignoring them; and
        # only the main thread has handlers.
        if callable(handler):
            self._before = handler
            with suppress(ValueError):
                _signal.signal(SIGINT, self._handle)

    def _give_back(self) -> None:
        if _signal.getsignal(SIGINT) == self._handle:
            _signal.signal(SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        try:
            self._before(number, frame)
        except KeyboardInterrupt:
            again, self._pressed = self._pressed, True
            self.wish()
            if self._tell is not None and not again:
                self._tell()
            if again or self._open:
                raise


def _around() -> Interruption | None:
    found: Interruption | None = getattr(_thread, "around", None)
    return found


@contextmanager
def interruption(tell: Callable[[], None] | None = None) -> Iterator[Interruption]:
    """Yield the interruption of the call around this one, or take Ctrl-C over until the end."""
    around = _around()
    if around is not None:
        yield around
        return
    mine = Interruption(tell)
    try:
        mine._take_over()
        with mine.joined():
            yield mine
    finally:
        mine._give_back()  # from here on Ctrl-C is what it was
