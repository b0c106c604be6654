"""LIBLINEAR through its own Python package (liblinear-official).

Its objective is ½‖w‖² + C Σ_i loss_i, so C = 1/(lam·n); its squared loss (-s 11, 12 with -p 0) is
r², twice ours. The number of iterations of its dual solvers is fixed inside (300 for -s 3), which
bounds the accuracy they can reach, and their random numbers go on from fit to fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np
from liblinear.liblinearutil import parameter, problem, train
from numpy.typing import NDArray

from benchmarks.peers.solver import Solver, as_csr, decades


class Liblinear(Solver):
    """One of LIBLINEAR's solver types."""

    version = metadata.version("liblinear-official")

    def __init__(self, kind: int, what: str, loss: str, ladder: Sequence[float]) -> None:
        self.kind = kind
        self.name = f"liblinear -s {kind} ({what})"
        self.losses = frozenset({loss})
        self._ladder = ladder

    def prepare(self, X: Any, y: NDArray[np.float64]) -> Any:
        return problem(y, as_csr(X))

    def settings(self, loss: str) -> Sequence[float]:
        return self._ladder

    def fit(
        self, prepared: Any, loss: str, lam: float, setting: float, threads: int
    ) -> NDArray[np.float64]:
        cost = (0.5 if loss == "squared" else 1.0) / (lam * prepared.l)
        model = train(
            prepared, parameter(f"-s {self.kind} -c {cost!r} -e {setting!r} -p 0 -B -1 -q")
        )
        coef: NDArray[np.float64] = np.ctypeslib.as_array(model.w, (prepared.n,)).copy()
        # The first label it meets is its positive class.
        if loss != "squared" and model.label[0] < 0:
            np.negative(coef, out=coef)
        return coef


def solvers() -> list[Solver]:
    newton, dual = decades(0, -9), decades(0, -9)
    return [
        Liblinear(0, "primal", "logistic", newton),
        Liblinear(1, "dual", "squared_hinge", dual),
        Liblinear(2, "primal", "squared_hinge", newton),
        Liblinear(3, "dual", "hinge", dual),
        Liblinear(7, "dual", "logistic", dual),
        Liblinear(11, "primal", "squared", newton),
        Liblinear(12, "dual", "squared", dual),
    ]
