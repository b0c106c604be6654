"""This version beside another: `python -m benchmarks.versions --other /path/to/python`.

A process of each interpreter has the data, and solves are run in turn, so that a noisy moment hits
both. A cell is the least processor time of its runs, on one thread. lam = 1/n, no intercept.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import adasdca
from benchmarks import output
from benchmarks.measure import ONE_THREAD, machine
from benchmarks.peers.summary import geometric_mean

LOSSES = ("squared", "squared_hinge", "logistic", "hinge", "smoothed_hinge")
TOLS = (1e-2, 1e-3, 1e-4, 1e-6, 1e-8)


def serve() -> None:
    """Solve what is asked for, a line of JSON each; run by either interpreter, by its text."""
    import json
    import sys
    import time

    import numpy as np
    import scipy.sparse as sp

    import adasdca

    def load(path: str) -> tuple[Any, Any]:
        found = np.load(path)
        if "dense" in found:
            return found["dense"], found["y"]
        shape = tuple(found["shape"])
        return sp.csr_matrix((found["data"], found["indices"], found["indptr"]), shape), found["y"]

    loaded: dict[str, tuple[Any, Any]] = {}
    for line in sys.stdin:
        path, loss, tol, seed = json.loads(line)
        if path not in loaded:
            loaded = {path: load(path)}
        X, y = loaded[path]
        start = time.process_time()
        options = {"loss": loss, "lam": 1 / len(y), "tol": tol, "random_state": seed}
        solution = adasdca.solve(X, y, method="auto", **options)
        spent = time.process_time() - start
        print(json.dumps([spent, bool(solution.converged), len(solution.history)]), flush=True)


class Version:
    """A process of an interpreter that solves."""

    def __init__(self, python: str) -> None:
        text = f"from typing import Any\n{inspect.getsource(serve)}\nserve()"
        environment = os.environ | dict.fromkeys(ONE_THREAD, "1")
        self._process = subprocess.Popen(
            [python, "-I", "-c", text],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def solve(self, *cell: Any) -> tuple[float, bool, int]:
        """Return the processor seconds, whether the solve converged, and its surveys."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(cell), file=self._process.stdin, flush=True)
        seconds, converged, surveys = json.loads(self._process.stdout.readline())
        return seconds, converged, surveys


def keep(name: str, folder: str) -> str:
    """Write a data set where both versions read it."""
    X, y = adasdca.datasets.load(name)
    path = str(Path(folder) / f"{name}.npz")
    if sp.issparse(X):
        X = sp.csr_matrix(X)
        np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)
    else:
        np.savez(path, dense=X, y=y)
    return path


def measure(ours: Version, other: Version, cell: tuple[Any, ...], args: Any) -> dict[str, Any]:
    """Return the least seconds of both, run in turn for a while."""
    times: tuple[list[float], list[float]] = ([], [])
    done = [version.solve(*cell, 0) for version in (ours, other)]  # fills caches, is not counted
    most = args.seconds / max(done[0][0] + done[1][0], 1e-6)
    for turn in range(max(args.repeats, min(int(most), 10 * args.repeats))):
        for version, seconds in zip((ours, other), times, strict=True):
            seconds.append(version.solve(*cell, turn % args.repeats)[0])
    # Seeds differ in luck: each has its least, and the cell is their mean.
    least = [[min(each[k :: args.repeats]) for k in range(args.repeats)] for each in times]
    seconds, others = map(float, np.mean(least, axis=1))
    found = {"ours": seconds, "other": others, "ratio": seconds / others}
    return found | {"converged": [d[1] for d in done], "surveys": [d[2] for d in done]}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--other", required=True, help="a Python that has the other version")
    parser.add_argument("--data", nargs="+", default=list(adasdca.datasets.available()))
    parser.add_argument("--loss", nargs="+", default=LOSSES)
    parser.add_argument("--tol", nargs="+", type=float, default=TOLS)
    parser.add_argument("--repeats", type=int, default=3, help="seeds")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a cell, at least")
    parser.add_argument("-o", "--out", help="results file")
    args = parser.parse_args()
    ours, other = Version(sys.executable), Version(args.other)
    cells: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in args.data:
            path = keep(name, folder)
            for loss in args.loss:
                for tol in args.tol:
                    found = measure(ours, other, (path, loss, tol), args)
                    cells.append({"data": name, "loss": loss, "tol": tol, **found})
                    line = f"{name:10} {loss:15} {tol:<6g} {found['ratio']:6.3f}"
                    shown = [output.seconds(found[side]) for side in ("ours", "other")]
                    print(line, *shown, *found["surveys"], *found["converged"], flush=True)

    def means(key: Callable[[dict[str, Any]], Any]) -> str:
        groups: dict[Any, list[float]] = {}
        for cell in cells:
            groups.setdefault(key(cell), []).append(cell["ratio"])
        return "  ".join(f"{name} {geometric_mean(each):.3f}" for name, each in groups.items())

    for what in ("data", "loss", "tol"):
        print(means(lambda cell, what=what: cell[what]))  # type: ignore[misc]
    print(means(lambda cell: f"{len(cells)} cells:"))
    assert all(math.isfinite(cell["ratio"]) for cell in cells)
    output.save({"machine": machine(), "cells": cells}, args.out, "versions.json")


if __name__ == "__main__":
    main()
