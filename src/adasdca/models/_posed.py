"""A problem that fitted coefficients are an answer to, and its certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.certification import certify
from adasdca.duality.certificate import Certificate
from adasdca.multinomial.certification import certify_multinomial
from adasdca.problem.data import CheckedRows, check_rows
from adasdca.problem.losses import Loss

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Posed:
    """Coefficients, and the objective that they are to minimise."""

    #: The point; the latter of a multinomial model.
    coef: Array
    intercept: Any
    targets: NDArray[Any]  #: (n,), ±1 or numbers; of a multinomial model the codes of the classes.
    #: The problem, as in `adasdca.solve`.
    loss: Loss
    lam: float
    l1_ratio: float = 0.0
    bounds: Any = None
    penalty_factors: Any = None
    weight: Array | None = None  #: (n,), sample weights.
    fit_intercept: bool = False
    intercept_scaling: float | None = None
    dual_coef: Any = None  #: (n,), dual variables, where the model has such.

    def certify(self, X: Any, epochs: int, backend: str | None = None) -> Certificate:
        """Certify it on these rows, with that many epochs for a better bound."""
        if self.coef.ndim == 2:
            return self._jointly(X, backend)
        fits = self.dual_coef is not None and np.shape(self.dual_coef) == self.targets.shape
        return certify(
            X,
            self.targets,
            self.coef,
            intercept=float(self.intercept),
            loss=self.loss,
            lam=self.lam,
            l1_ratio=self.l1_ratio,
            bounds=self.bounds,
            penalty_factors=self.penalty_factors,
            sample_weight=self.weight,
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            dual_coef=self.dual_coef if fits else None,
            epochs=epochs,
            backend=backend,
        )

    def _jointly(self, X: Any, backend: str | None) -> Certificate:
        rows = check_rows(X, device=backend == "cuda")
        coef, intercept, constant = self.coef, self.intercept, self.intercept_scaling
        if constant is not None:
            rows = rows.with_constant(constant)
            coef = np.column_stack([coef, intercept / constant])
            intercept = np.zeros(len(coef))
        return certify_multinomial(
            CheckedRows(rows),
            self.targets,
            coef,
            intercept,
            lam=self.lam,
            sample_weight=self.weight,
            fit_intercept=self.fit_intercept and constant is None,
            backend=backend,
        )
