"""This package: `adasdca.solve` with all that it does (checks, packing, certificates) timed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import adasdca
from adasdca.methods import get_method
from benchmarks.peers.solver import LOSSES, Solver, decades

#: A run longer than this tells nothing more; the peers have bounds of their own.
MOST_SECONDS = 120.0


class Ours(Solver):
    """`solve` with one method; its tolerance is a certified relative gap."""

    losses = frozenset(LOSSES)
    parallel = True
    version = adasdca.__version__

    def __init__(self, method: str = "auto") -> None:
        get_method(method)  # an unknown name is an error now, not after the first data set
        self.method = method
        self.name = f"adasdca {method}"

    def prepare(self, X: Any, y: NDArray[np.float64]) -> Any:
        return X, y

    def settings(self, loss: str) -> Sequence[float]:
        return decades(0, -10)

    def fit(
        self, prepared: Any, loss: str, lam: float, setting: float, threads: int
    ) -> NDArray[np.float64]:
        X, y = prepared
        return adasdca.solve(
            X,
            y,
            loss=loss,
            lam=lam,
            method=self.method,
            tol=setting,
            max_epochs=10_000,
            max_time=MOST_SECONDS,
            random_state=0,
            n_threads=threads,
        ).coef


def solvers(methods: Sequence[str]) -> list[Solver]:
    return [Ours(method) for method in methods]
