"""Measure the rates of this machine: each kernel on small data, the best of several runs.

``python -m adasdca.calibration [-o FILE]`` prints them beside the published ones. Only their ratios
matter to `auto`. ``ADASDCA_RATES`` or `use` puts them in force.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import brentq

from adasdca import _core
from adasdca.auto.costs import Costs
from adasdca.auto.rates import VARIABLE, Rates, use
from adasdca.backends.base import FOREVER
from adasdca.backends.blas import cholesky, one_thread
from adasdca.backends.cpu import LocalBackend
from adasdca.problem.problem import Problem
from adasdca.solver import solve

__all__ = ["Rates", "calibrate", "main", "use"]

REPEATS = 7
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
    """Lay out a problem that can be learnt, but not to the end."""
    rng = np.random.default_rng(1)
    y = np.sign(X @ rng.normal(size=X.shape[1]) + rng.normal(size=X.shape[0]))
    problem = Problem.checked(X, np.where(y == 0, 1.0, y), loss=loss, lam=1 / X.shape[0])
    return problem, LocalBackend(problem, pack=True)


def _even(n: int, d: int, entries: int) -> sp.csr_array:
    """Return rows with this number of entries each, spread evenly over the columns."""
    rng = np.random.default_rng(0)
    columns = np.sort(rng.permuted(np.tile(np.arange(d), (n, 1)), axis=1)[:, :entries], axis=1)
    start = entries * np.arange(n + 1)
    return sp.csr_array((rng.normal(size=n * entries), columns.ravel(), start), shape=(n, d))


def _uneven(n: int, d: int, entries: float) -> sp.csr_array:
    """Return rows with about this number of entries, most of them in few columns."""
    rng = np.random.default_rng(0)
    rate = 1.0 / np.arange(1, d + 1)
    # The chances are to sum to `entries`.
    factor = brentq(lambda f: np.minimum(f * rate, 0.9).sum() - entries, 0.0, float(d))
    chosen = rng.random((n, d)) < rng.permutation(np.minimum(factor * rate, 0.9))
    chosen[:, 0] |= ~chosen.any(axis=1)
    return sp.csr_array(np.where(chosen, rng.normal(size=(n, d)), 0.0))


def _survey(X: Any) -> float:
    backend = _backend(X, "squared_hinge")[1]
    # Surveys at 0 have less to do: measure after an epoch.
    backend.workspace.ascend(_core.draw_permutation(X.shape[0], 0), FOREVER)
    needs = frozenset({"adaptive"})
    return best(lambda: backend.survey(needs, FOREVER))


def _visit(X: Any, loss: str) -> float:
    """Time an update of the second to fourth epoch."""
    n = X.shape[0]
    times = []
    for _ in range(REPEATS):
        workspace = _backend(X, loss)[1].workspace
        rows = [_core.draw_permutation(n, key) for key in range(4)]
        workspace.ascend(rows[0], FOREVER)
        began = time.perf_counter_ns()
        for order in rows[1:]:
            workspace.ascend(order, FOREVER)
        times.append(time.perf_counter_ns() - began)
    return float(min(times)) / (3.0 * float(n))


def calibrate() -> Rates:
    """Measure the rates of this machine, in less than a second, and return them.

    Timings vary from run to run, and with them the paths that solves take: save the rates and load
    them where runs are to be repeated.
    """
    published = Rates()

    def difference(value: float, name: str) -> float:
        # Of two timings: on a busy machine it may come out as nothing, which no rate is.
        return max(value, 0.1 * float(getattr(published, name)))

    with one_thread():
        rng = np.random.default_rng(0)
        n = 4000
        short, long = _uneven(n, 300, 6.0), _uneven(n, 300, 30.0)
        entries = short.nnz, long.nnz
        survey = _survey(short), _survey(long)
        entry = difference(
            (survey[1] - survey[0]) / (2.0 * (entries[1] - entries[0])), "sparse_entry"
        )
        each = 2 * entry * entries[0] / n
        visit = _visit(short, "squared_hinge")
        narrow, wide = rng.normal(size=(500, 64)), rng.normal(size=(500, 1024))
        dense = (_survey(wide) - _survey(narrow)) / (2 * 960 * 500)
        planner, distribution = _core.Planner(), rng.exponential(size=n)
        return Rates(
            dense_entry=difference(dense, "dense_entry"),
            sparse_entry=entry,
            byte=_byte(1 << 26),
            row=difference(survey[0] / n - each, "row"),
            update=difference(visit - each, "update"),
            transcendental=difference(_visit(short, "logistic") - visit, "transcendental"),
            draw=best(lambda: planner.plan(distribution, 2.0, n, 0)) / n,
            shuffle=best(lambda: _core.draw_permutation(n, 0)) / n,
            dense_pair=_dense_pair(rng.normal(size=(1000, 256))),
            sparse_pair=math.sqrt(
                _sparse_pair(_even(n, 256, 16)) * _sparse_pair(_uneven(n, 256, 16.0))
            ),
            product=_product(_uneven(500, 2000, 64.0)),
            factor=_factor(400),
            interpreter=difference(_epoch(narrow[:20]), "interpreter"),
        )


def _byte(size: int) -> float:
    """Time the reading of more than caches hold."""
    far = np.ones(size // 8)
    return best(far.sum) / size


def _epoch(X: Matrix) -> float:
    """Time an epoch of hardly any rows, which is all interpreter."""
    y = np.where(X[:, 0] > 0, 1.0, -1.0)

    def run(epochs: int) -> None:
        solve(X, y, loss="logistic", lam=1e-3, method="adasdca+", tol=0.0, max_epochs=epochs)

    return (best(lambda: run(20)) - best(lambda: run(0))) / 20


def _dense_pair(X: Matrix) -> float:
    term = _backend(X, "squared")[1].term()
    term.place(np.zeros(X.shape[1]), 0.0)
    return best(lambda: term.gram(False, FOREVER)) / float(X.shape[0] * X.shape[1] ** 2)


def _sparse_pair(X: sp.csr_array) -> float:
    problem, backend = _backend(X, "squared")
    n, d = X.shape
    h, out = np.ones(n), np.empty((d, d))
    none, side = np.empty((0, n)), np.empty((0, d))
    with use(Rates(sparse_pair=1.0)):
        pairs = float(n) * Costs(backend.facts, problem.loss).gram_row
    return best(lambda: backend.workspace.gram(h, none, None, out, side, 1, FOREVER)) / pairs


def _product(X: sp.csr_array) -> float:
    problem, backend = _backend(X, "squared")
    n = X.shape[0]
    rows, out = np.arange(n), np.empty((n, n))
    with use(Rates(product=1.0)):
        products = float(n * n) * Costs(backend.facts, problem.loss).product
    return best(lambda: backend.workspace.products(rows, 0, None, out, 1, FOREVER)) / products


def _factor(m: int) -> float:
    """Time a factorisation; its matrix is lost each time, so a copy goes in."""
    matrix = np.full((m, m), 0.5)
    return best(lambda: cholesky(matrix.copy(), float(m))) / float(m) ** 3


def main(arguments: list[str] | None = None) -> None:
    """Measure, print a table, and write the file given by --output."""
    parser = argparse.ArgumentParser(
        prog="python -m adasdca.calibration",
        description="Print the rates of this machine beside the published ones.",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the rates to this JSON file")
    output = parser.parse_args(arguments).output
    measured, published = calibrate(), asdict(Rates())
    lines = [f"{'nanoseconds':<16}{'measured':>12}{'published':>12}{'ratio':>8}"]
    for name, rate in asdict(measured).items():
        usual = published[name]
        lines.append(f"{name:<16}{rate:>12.4g}{usual:>12.4g}{rate / usual:>8.2f}")
    if output is not None:
        try:
            measured.save(output)
        except OSError as error:
            parser.error(f"{output!r} cannot be written ({error}); choose another file.")
        lines.append(f"Written; {VARIABLE}={output} makes `solve` use them.")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
