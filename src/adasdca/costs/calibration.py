"""Microbenchmarks of the rates: each kernel on small data, the best of several runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backend import LocalBackend
from adasdca.blas import one_thread
from adasdca.costs.rates import Rates
from adasdca.finishes.systems import PrimalSystem, cholesky
from adasdca.problem import Problem
from adasdca.solver import solve

REPEATS = 7
FOREVER = 1e18
Matrix = NDArray[np.float64]


def best(task: Callable[[], object]) -> float:
    """Return the nanoseconds of the fastest of several runs."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter_ns()
        task()
        times.append(time.perf_counter_ns() - began)
    return float(max(min(times), 1))


def _backend(X: Any, loss: str) -> tuple[Problem, LocalBackend]:
    n = X.shape[0]
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    problem = Problem.checked(X, y, loss=loss, lam=1 / n)
    return problem, LocalBackend(problem, pack=True)


def _sparse(n: int, d: int, entries: int) -> sp.csr_array:
    """Return rows of so many entries each."""
    rng = np.random.default_rng(0)
    columns = np.sort(rng.permuted(np.tile(np.arange(d), (n, 1)), axis=1)[:, :entries], axis=1)
    start = entries * np.arange(n + 1)
    return sp.csr_array((rng.normal(size=n * entries), columns.ravel(), start), shape=(n, d))


def _survey(X: Any) -> float:
    backend = _backend(X, "squared_hinge")[1]
    # Surveys at 0 have less to do: measure after an epoch.
    backend.workspace.ascend(_core.draw_permutation(X.shape[0], 0), FOREVER)
    needs = frozenset({"adaptive"})
    return best(lambda: backend.survey(needs, FOREVER))


def _visit(X: Any, loss: str) -> float:
    backend = _backend(X, loss)[1]
    rows = _core.draw_permutation(X.shape[0], 0)
    return best(lambda: backend.workspace.ascend(rows, FOREVER)) / float(X.shape[0])


def measure() -> Rates:
    """Measure all rates."""
    published = Rates()

    def difference(value: float, name: str) -> float:
        # Of two timings: on a busy machine it may come out as nothing, which no rate is.
        return max(value, 0.1 * float(getattr(published, name)))

    with one_thread():
        rng = np.random.default_rng(0)
        n = 2000
        short, long = _sparse(n, 256, 4), _sparse(n, 256, 64)
        survey = _survey(short), _survey(long)
        entry = difference((survey[1] - survey[0]) / (2 * 60 * n), "sparse_entry")
        visit = _visit(short, "squared_hinge")
        narrow, wide = rng.normal(size=(500, 64)), rng.normal(size=(500, 1024))
        dense = (_survey(wide) - _survey(narrow)) / (2 * 960 * 500)
        planner, law = _core.Planner(), rng.exponential(size=n)
        return Rates(
            dense_entry=difference(dense, "dense_entry"),
            sparse_entry=entry,
            row=difference(survey[0] / n - 8 * entry, "row"),
            update=difference(visit - 8 * entry, "update"),
            transcendental=difference(_visit(short, "logistic") - visit, "transcendental"),
            draw=best(lambda: planner.plan(law, 2.0, n, 0)) / n,
            shuffle=best(lambda: _core.draw_permutation(n, 0)) / n,
            dense_pair=_dense_pair(rng.normal(size=(1000, 256))),
            sparse_pair=_sparse_pair(_sparse(5000, 256, 16)),
            product=_product(_sparse(500, 2000, 64)),
            factor=_factor(400),
            interpreter=difference(_epoch(narrow[:20]), "interpreter"),
        )


def _epoch(X: Matrix) -> float:
    """Time an epoch of hardly any rows, which is all interpreter."""
    y = np.where(X[:, 0] > 0, 1.0, -1.0)

    def run(epochs: int) -> None:
        solve(X, y, loss="logistic", lam=1e-3, method="sdca", tol=0.0, max_epochs=epochs)

    return (best(lambda: run(20)) - best(lambda: run(0))) / 20


def _dense_pair(X: Matrix) -> float:
    problem, backend = _backend(X, "squared")
    system = PrimalSystem(problem, backend.workspace, 1)
    h = np.ones(len(X))
    return best(lambda: system.form(h, None, FOREVER)) / float(X.shape[0] * X.shape[1] ** 2)


def _sparse_pair(X: sp.csr_array) -> float:
    workspace = _backend(X, "squared")[1].workspace
    n, d = X.shape
    h, out = np.ones(n), np.empty((d, d))
    none, side = np.empty((0, n)), np.empty((0, d))
    return best(lambda: workspace.gram(h, none, out, side, 1, FOREVER)) / float(n * (X.nnz / n) ** 2)


def _product(X: sp.csr_array) -> float:
    workspace = _backend(X, "squared")[1].workspace
    n, d = X.shape
    rows, out = np.arange(n), np.empty((n, n))
    shared = (X.nnz / n) ** 2 / d
    pairs = float(n * n * (0.5 * shared + 2 * X.nnz / n**2))
    return best(lambda: workspace.products(rows, 0, out, 1, FOREVER)) / pairs


def _factor(m: int) -> float:
    """Time a factorisation; its matrix is lost each time, so a copy goes in."""
    matrix = np.full((m, m), 0.5)
    return best(lambda: cholesky(matrix.copy(), float(m))) / float(m) ** 3
