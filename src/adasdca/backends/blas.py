"""LAPACK by one thread: its threads wait for each other, and a small system is not worth that.

On a busy machine a factorisation of 300 unknowns takes a hundred times as long with two threads as
with one, and the bits of its result depend on their number.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

Array = NDArray[np.float64]

#: Smaller systems are factorised by one thread anyway,
THREADED = 128
#: and up to this size by one as fast as by two, who wait for each other (w8a: 47 -> 17 ms).
GAINING = 1000
#: From so many numbers on OpenBLAS sums products by its threads (8 ms on a busy machine).
LONG = 10_000


@cache
def _controller() -> Any:
    """Return the libraries loaded, which takes milliseconds to find out."""
    # scikit-learn brings it along.
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController().select(user_api="blas")


class _User:
    """Somebody who wants one thread; forgotten with the frame that holds it."""


_lock = threading.Lock()
#: Weak, so that one whose end was cut off by Ctrl-C does not stay.
_users: weakref.WeakSet[_User] = weakref.WeakSet()
_limits: list[Any] = []


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and LAPACK to one thread; solves in several threads may overlap in any order."""
    user = _User()
    try:
        with _lock:
            # The first to come sets the limit, the last to go lifts it.
            if not len(_users):
                libraries = _controller()
                # Without more than one there is nothing to limit, which takes 0.1 ms to do.
                if any(each.num_threads > 1 for each in libraries.lib_controllers):
                    _limits.clear()  # one that Ctrl-C has left is no longer in force
                    _limits.append(libraries.limit(limits=1))
            _users.add(user)
        yield
    finally:
        with _lock:
            _users.discard(user)
            if not len(_users):
                _lift()


def _lift() -> None:
    """Restore what was before the limit, if there is one."""
    while _limits:
        _limits.pop().restore_original_limits()


def available_threads() -> int:
    """Return how many threads this process may use, as scikit-learn counts them.

    That is the processors it may run on, and no more than OMP_NUM_THREADS, threadpoolctl, or a
    worker of joblib allow.
    """
    from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

    return int(_openmp_effective_n_threads())


def cholesky(matrix: Any, diagonal: float | Array) -> Callable[[Array], Array] | None:
    """Return a solver with diag(diagonal) + the lower triangle given, which is lost on the way.

    None if the matrix is not positive definite.
    """
    if not isinstance(matrix, np.ndarray):  # it is somewhere else, and factorised there
        found: Callable[[Array], Array] | None = matrix.cholesky(diagonal)
        return found
    matrix.flat[:: len(matrix) + 1] += diagonal
    factor, info = dpotrf(matrix.T, lower=0, overwrite_a=1, clean=0)
    return None if info != 0 else lambda right: dpotrs(factor, right, lower=0)[0]
