"""lightning: SDCA, the one other package with the paper's smoothed hinge. Its objective is ours.

Its settings are numbers of epochs, not tolerances: its own estimate of the gap is taken along
the way at changing points and may stop too early, or never (squared hinge).

It has no wheels for recent Pythons and builds outside of pip's isolation only:

    pip install "setuptools<80" wheel Cython
    pip install --no-build-isolation sklearn-contrib-lightning
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np
from lightning.classification import SDCAClassifier
from numpy.typing import NDArray

from benchmarks.peers.solver import Solver, as_csr

LOSSES = {
    "squared": "squared",
    "smoothed_hinge": "smooth_hinge",
    "squared_hinge": "squared_hinge",
    "hinge": "hinge",
}
EPOCHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class Lightning(Solver):
    """lightning.classification.SDCAClassifier."""

    name = "lightning SDCA"
    losses = frozenset(LOSSES)
    version = metadata.version("sklearn-contrib-lightning")

    def prepare(self, X: Any, y: NDArray[np.float64]) -> Any:
        return as_csr(X), y

    def settings(self, loss: str) -> Sequence[float]:
        return EPOCHS

    def fit(
        self, prepared: Any, loss: str, lam: float, setting: float, threads: int
    ) -> NDArray[np.float64]:
        X, y = prepared
        model = SDCAClassifier(
            loss=LOSSES[loss],
            alpha=lam,
            gamma=1.0,
            tol=0.0,
            max_iter=int(setting),
            random_state=0,
        ).fit(X, y)
        return np.asarray(model.coef_, dtype=np.float64).reshape(-1)


def solvers() -> list[Solver]:
    return [Lightning()]
