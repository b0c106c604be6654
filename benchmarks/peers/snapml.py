"""Snap ML: coordinate descent in the dual (or the primal), in single precision.

Its objective is ours times n, with regularizer = lam·n. It gets a dense array where that is the
faster form for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np
import snapml
from numpy.typing import NDArray

from benchmarks.peers.solver import Solver, as_csr, decades, is_dense

DUAL: dict[str, tuple[Any, dict[str, Any]]] = {
    "squared": (snapml.LinearRegression, {"dual": True}),
    "logistic": (snapml.LogisticRegression, {"dual": True}),
    "hinge": (snapml.SupportVectorMachine, {"loss": "hinge"}),
    "squared_hinge": (snapml.SupportVectorMachine, {"loss": "squared_hinge"}),
}
PRIMAL: dict[str, tuple[Any, dict[str, Any]]] = {
    "squared": (snapml.LinearRegression, {"dual": False}),
    "logistic": (snapml.LogisticRegression, {"dual": False}),
}


class SnapML(Solver):
    """Its linear models, by formulation; the tolerance bounds the change of the coefficients."""

    parallel = True
    version = metadata.version("snapml")

    def __init__(self, dual: bool) -> None:
        self.dual = dual
        self.name = f"snapml ({'dual' if dual else 'primal'})"
        self.models = DUAL if dual else PRIMAL
        self.losses = frozenset(self.models)

    def prepare(self, X: Any, y: NDArray[np.float64]) -> Any:
        csr = as_csr(X, np.float32)
        if is_dense(X):
            return np.asarray(csr.toarray(), order="C" if self.dual else "F"), y
        return (csr if self.dual else csr.tocsc()), y

    def settings(self, loss: str) -> Sequence[float]:
        return decades(-1, -9)

    def fit(
        self, prepared: Any, loss: str, lam: float, setting: float, threads: int
    ) -> NDArray[np.float64]:
        X, y = prepared
        make, options = self.models[loss]
        model = make(
            regularizer=float(lam * len(y)),
            tol=setting,
            max_iter=1000,
            n_jobs=threads,
            fit_intercept=False,
            random_state=0,
            **options,
        ).fit(X, y)
        return np.asarray(model.coef_, dtype=np.float64).reshape(-1)


def solvers() -> list[Solver]:
    return [SnapML(dual=True), SnapML(dual=False)]
