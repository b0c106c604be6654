"""What a solver must answer to take part, and who takes part.

A peer's module has a function `solvers()` that returns its solvers. The module of a peer that is
not installed raises `ImportError`; the peer is then left out, and the reason reported.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

#: Modules of this package, a peer each.
PEERS = ("liblinear", "scikit_learn", "cyanure", "snapml")
#: The losses compared; labels ±1 are the targets of the squared loss.
LOSSES = ("squared", "smoothed_hinge", "squared_hinge", "logistic", "hinge")


class Solver(Protocol):
    """One way of one package to solve the problem."""

    name: str
    version: str
    #: Losses it can minimise.
    losses: frozenset[str]
    #: Whether it can use more than one thread.
    parallel: bool = False

    def unsuited(self, n: int, d: int, nnz: int) -> str | None:
        """Return why data of this shape are out of the question, or None."""
        return None

    def prepare(self, X: Any, y: NDArray[np.float64]) -> Any:
        """Bring the data into the form it likes best; not timed."""

    def settings(self, loss: str) -> Sequence[float]:
        """Return its tolerances, from loose to tight (or numbers of epochs, from few to many)."""

    def fit(
        self, prepared: Any, loss: str, lam: float, setting: float, threads: int
    ) -> NDArray[np.float64]:
        """Return the coefficients; timed."""


def decades(first: int, last: int) -> list[float]:
    """Return 10^first, …, 10^last."""
    return [10.0**k for k in range(first, last - 1, -1)]


def is_dense(X: Any) -> bool:
    """Whether a dense array is the faster form for a BLAS: as measured, from about 10 % on."""
    n, d = X.shape
    return bool(X.nnz >= 0.1 * n * d)


def as_csr(X: Any, dtype: Any = np.float64) -> Any:
    return sp.csr_matrix(X, dtype=dtype)


@contextmanager
def quiet(threads: int) -> Iterator[None]:
    """Hold BLAS and OpenMP to that many threads, and let solvers complain in silence.

    That a loose setting "did not converge" is its purpose; the primal value is the judge.
    """
    with threadpool_limits(limits=threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def enlist(names: Sequence[str] = PEERS) -> tuple[list[Solver], dict[str, str]]:
    """Return the solvers of the peers named, and the reason for each peer that is missing."""
    found: list[Solver] = []
    missing: dict[str, str] = {}
    for name in names:
        solvers = _solvers_of(name)
        if isinstance(solvers, str):
            missing[name] = solvers
        else:
            found += solvers
    return found, missing


def _solvers_of(name: str) -> list[Solver] | str:
    """Return a peer's solvers, or why there are none."""
    try:
        with quiet(1):
            solvers: list[Solver] = importlib.import_module(f"benchmarks.peers.{name}").solvers()
    except ImportError as error:
        return str(error)
    return solvers
