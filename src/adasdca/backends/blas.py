"""One thread for LAPACK: its threads wait for each other, and a small system is not worth that.

On a busy machine a factorisation of 300 unknowns takes a hundred times as long with two threads as
with one, and the bits of its result depend on their number.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

#: Smaller systems are factorised by one thread anyway,
THREADED = 128
#: and up to this size by one as fast as by two, who wait for each other (w8a: 47 -> 17 ms).
GAINING = 1000


@cache
def _controller() -> Any:
    """Return the libraries loaded, which takes milliseconds to find out."""
    # scikit-learn brings it along.
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController().select(user_api="blas")


_lock = threading.Lock()
_users: list[Any] = []


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and LAPACK to one thread; solves in several threads may overlap in any order."""
    with _lock:
        limit = None if _users else _controller().limit(limits=1)
        _users.append(limit)
    try:
        yield
    finally:
        with _lock:
            # The first to come holds the limit, the last to go lifts it.
            if len(_users) == 1:
                _users.pop().restore_original_limits()
            else:
                _users.pop()
