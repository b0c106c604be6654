"""LAPACK by one thread: its threads wait for each other, and a small system is not worth that.

On a busy machine a factorisation of 300 unknowns takes a hundred times as long with two threads as
with one, and the bits of its result depend on their number.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpotrs, spotrf, spotrs

from adasdca import _core

Array = NDArray[np.float64]

#: Smaller systems are factorised by one thread anyway,
THREADED = 128
#: and up to this size by one as fast as by two, who wait for each other (w8a: 47 -> 17 ms).
GAINING = 1000
#: A larger system is factorised by panels of so many columns: a call of LAPACK cannot be ended.
#: Both take as long (3500 unknowns: 0.43 and 0.49 s).
WHOLE, PANEL = 3000, 256
#: What is added to the diagonal of a matrix of single precision, in shares of it, until it can be
#: factorised: about what rounding takes from its eigenvalues (5000 x 784 raw pixels: 3e-5).
DAMPINGS = 3e-6, 3e-5, 3e-4
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
#: The libraries that are limited, and the threads that they had.
_limits: list[tuple[Any, int]] = []


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and LAPACK to one thread; solves in several threads may overlap in any order."""
    user = _User()
    try:
        with _lock:
            # The first to come sets the limit, the last to go lifts it.
            if not len(_users):
                counts = [(each, each.num_threads) for each in _controller().lib_controllers]
                limits = [pair for pair in counts if pair[1] > 1]
                if limits:
                    _limits[:] = limits  # one that Ctrl-C has left is no longer in force
                for library, _ in limits:  # (in a twentieth of the time of the library's own limit)
                    library.set_num_threads(1)
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
        library, count = _limits.pop()
        library.set_num_threads(count)


def available_threads() -> int:
    """Return how many threads this process may use, as scikit-learn counts them.

    That is the processors it may run on, and no more than OMP_NUM_THREADS, threadpoolctl, or a
    worker of joblib allow.
    """
    from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

    return int(_openmp_effective_n_threads())


def cholesky(
    matrix: Any, diagonal: float | Array, deadline: float = math.inf
) -> Callable[[Array], Array] | None:
    """Return a solver with diag(diagonal) + the lower triangle given, which is lost on the way.

    None if the matrix is not positive definite, or if time ran out.
    """
    if not isinstance(matrix, np.ndarray):  # it is somewhere else, and factorised there
        found: Callable[[Array], Array] | None = matrix.cholesky(diagonal)
        return found
    matrix.flat[:: len(matrix) + 1] += diagonal
    if matrix.dtype == np.float32:
        return _cholesky_in_single(matrix)
    if len(matrix) > WHOLE:
        if not _factorise_by_panels(matrix, deadline):
            return None
        factor = matrix.T
    else:
        factor, info = dpotrf(matrix.T, lower=0, overwrite_a=1, clean=0)
        if info != 0:
            return None
    return lambda right: dpotrs(factor, right, lower=0)[0]


def _cholesky_in_single(matrix: Any) -> Callable[[Array], Array] | None:
    """Return a solver of few digits, a preconditioner, for a matrix of single precision.

    Sums have rounded it: a little more diagonal makes it positive definite, if it was one.
    """
    own = matrix.diagonal().copy()
    for damping in DAMPINGS:
        matrix.flat[:: len(matrix) + 1] = (1.0 + damping) * own
        factor, info = spotrf(matrix.T, lower=0, clean=0)
        if info == 0 and np.isfinite(factor.diagonal()).all():
            break
    else:
        return None

    def solve(right: Array) -> Array:
        size = float(np.abs(right).max()) or 1.0  # single precision has a smaller range
        found = spotrs(factor, (right / size).astype(np.float32), lower=0)[0]
        return size * np.asarray(found, dtype=np.float64)

    return solve


def _factorise_by_panels(matrix: Array, deadline: float) -> bool:
    """Write the factor L of A = L Lᵀ over the lower triangle of A; time and Ctrl-C end it between.

    False if A is not positive definite, or if time ran out.
    """
    n = len(matrix)
    for begin in range(0, n, PANEL):
        _core.check()
        if time.perf_counter() >= deadline:
            return False
        end = min(begin + PANEL, n)
        panel = matrix[begin:, begin:end]
        panel -= matrix[begin:, :begin] @ matrix[begin:end, :begin].T
        corner, info = dpotrf(panel[: end - begin].T, lower=0, clean=0)
        if info != 0:
            return False
        panel[: end - begin] = corner.T
        # The panel below is B Uᵀ⁻¹ with U = the corner: in Fortran's order, U⁻ᵀ Bᵀ.
        below = panel[end - begin :]
        below[:] = dtrsm(1.0, corner, below.T, trans_a=1).T
    return True
