"""Cyanure: accelerated incremental and quasi-Newton methods, solver "auto".

Its objective is ours with lambda_1 = lam, except that its squared hinge is ½ max(0, 1 − z)²:
half of ours, hence lam/2. It is given doubles: with single precision it stopped short of 1e-7 on
w8a.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np
from cyanure.estimators import Classifier
from numpy.typing import NDArray

from benchmarks.peers.solver import Solver, as_csr, decades

LOSSES = {"squared": "square", "squared_hinge": "sqhinge", "logistic": "logistic"}


class Cyanure(Solver):
    """cyanure.estimators.Classifier; its tolerance is a relative duality gap."""

    name = "cyanure (auto)"
    losses = frozenset(LOSSES)
    parallel = True
    version = metadata.version("cyanure")

    def prepare(self, X: Any, y: NDArray[np.float64]) -> Any:
        return as_csr(X), y

    def settings(self, loss: str) -> Sequence[float]:
        return decades(-1, -10)

    def fit(
        self, prepared: Any, loss: str, lam: float, setting: float, threads: int
    ) -> NDArray[np.float64]:
        X, y = prepared
        model = Classifier(
            loss=LOSSES[loss],
            penalty="l2",
            lambda_1=lam / 2 if loss == "squared_hinge" else lam,
            fit_intercept=False,
            tol=setting,
            max_iter=1000,
            n_threads=threads,
            verbose=False,
            random_state=0,
        ).fit(X, y)
        return np.asarray(model.coef_, dtype=np.float64).reshape(-1)


def solvers() -> list[Solver]:
    return [Cyanure()]
