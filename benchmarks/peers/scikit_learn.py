"""scikit-learn: LinearSVC, LogisticRegression and Ridge.

The first two minimise ½‖w‖² + C Σ_i loss_i, so C = 1/(lam·n); Ridge ‖y − Xw‖² + alpha‖w‖², so
alpha = lam·n. LogisticRegression and Ridge get a dense array where that is the faster form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from benchmarks.peers.solver import Solver, as_csr, decades, is_dense

# Bounds of what one fit may cost, for it cannot be interrupted. The stochastic and the dual solvers
# go over all rows in every iteration; the others converge long before.
PASSES, ITERATIONS = 1000, 100_000
STOCHASTIC = ("sag", "saga")


class _Estimator:
    """What the three have in common."""

    version = sklearn.__version__
    name: str
    losses: frozenset[str]
    parallel = False
    #: The largest d for which a d×d matrix is thinkable; None if the solver makes none.
    most_features: int | None = None

    def unsuited(self, n: int, d: int, nnz: int) -> str | None:
        if self.most_features is not None and d > self.most_features:
            return f"{d}×{d} matrix"
        return None

    def settings(self, loss: str) -> Sequence[float]:
        return decades(-1, -10)

    def estimator(self, loss: str, strength: float, tolerance: float) -> Any:
        """Return the estimator for lam·n = strength."""
        raise NotImplementedError

    def fit(
        self, prepared: Any, loss: str, lam: float, setting: float, threads: int
    ) -> NDArray[np.float64]:
        X, y = prepared
        model = self.estimator(loss, lam * len(y), setting).fit(X, y)
        return np.asarray(model.coef_, dtype=np.float64).reshape(-1)


class Svc(_Estimator):
    """LinearSVC; it copies the data into LIBLINEAR's form at every fit."""

    def __init__(self, dual: bool, losses: set[str]) -> None:
        self.dual = dual
        self.name = f"sklearn LinearSVC ({'dual' if dual else 'primal'})"
        self.losses = frozenset(losses)

    def settings(self, loss: str) -> Sequence[float]:
        return decades(0, -9)

    def prepare(self, X: Any, y: NDArray[np.float64]) -> Any:
        return as_csr(X), y

    def estimator(self, loss: str, strength: float, tolerance: float) -> Any:
        return LinearSVC(
            loss=loss,
            dual=self.dual,
            C=1 / strength,
            tol=tolerance,
            fit_intercept=False,
            max_iter=PASSES,
            random_state=0,
        )


class _Dense(_Estimator):
    """An estimator at home in dense arrays as well."""

    parallel = True  # through BLAS and OpenMP

    def prepare(self, X: Any, y: NDArray[np.float64]) -> Any:
        csr = as_csr(X)
        return (csr.toarray() if is_dense(X) else csr), y


class Logistic(_Dense):
    """LogisticRegression with one of its solvers."""

    losses = frozenset({"logistic"})

    def __init__(self, solver: str, most_features: int | None = None) -> None:
        self.solver = solver
        self.name = f"sklearn LogisticRegression ({solver})"
        self.most_features = most_features

    def estimator(self, loss: str, strength: float, tolerance: float) -> Any:
        return LogisticRegression(
            solver=self.solver,
            C=1 / strength,
            tol=tolerance,
            fit_intercept=False,
            max_iter=PASSES if self.solver in STOCHASTIC else ITERATIONS,
            random_state=0,
        )


class Squared(_Dense):
    """Ridge with one of its solvers."""

    losses = frozenset({"squared"})

    def __init__(self, solver: str, direct: bool = False) -> None:
        self.solver = solver
        self.name = f"sklearn Ridge ({solver})"
        self.direct = direct

    def settings(self, loss: str) -> Sequence[float]:
        return [0.0] if self.direct else super().settings(loss)

    def unsuited(self, n: int, d: int, nnz: int) -> str | None:
        # It factors XᵀX or XXᵀ, whichever is smaller.
        return f"{min(n, d)}×{min(n, d)} matrix" if self.direct and min(n, d) > 10_000 else None

    def estimator(self, loss: str, strength: float, tolerance: float) -> Any:
        return Ridge(
            solver=self.solver,
            alpha=strength,
            tol=tolerance,
            fit_intercept=False,
            max_iter=PASSES if self.solver in STOCHASTIC else ITERATIONS,
            random_state=0,
        )


def solvers() -> list[Solver]:
    return [
        Svc(dual=True, losses={"squared_hinge", "hinge"}),
        Svc(dual=False, losses={"squared_hinge"}),
        Logistic("lbfgs"),
        Logistic("newton-cg"),
        Logistic("newton-cholesky", most_features=10_000),
        Logistic("saga"),
        Squared("cholesky", direct=True),
        Squared("sparse_cg"),
        Squared("lsqr"),
        Squared("sag"),
    ]
