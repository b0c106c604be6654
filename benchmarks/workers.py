"""Rows on Dask workers: `python -m benchmarks.workers [--entries 1e8] [--workers 1 2 4]`.

Solves the same problems on rows of this process and on a LocalCluster, with one thread each, and
prints seconds, processor seconds of all processes, rounds, bytes, and resident memory. Dask's
processes take processor time while they rest, too, the more the longer others keep the machine: it
is measured before each solve, and left out in a column of its own. From these runs it fits a model
of rounds, bytes and passes, and projects it to more rows and workers: that part is a projection,
not a measurement.
"""

from __future__ import annotations

import argparse
import os
import time
from itertools import pairwise
from typing import Any

import dask
import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster

import adasdca
import adasdca.dask
from adasdca.dask import _solve
from adasdca.dask._blocks import Blocks
from adasdca.dask._team import DaskTeam
from benchmarks.measure import forget_peak, peak_bytes, resident_bytes
from benchmarks.output import save, table

#: Seconds for which processes are watched while they rest.
REST = 4.0
#: Blocks of rows, whatever the number of workers.
BLOCKS = 16


def block(k: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a block of rows of float32 with a linear signal, and labels."""
    rng = np.random.default_rng([k, d])
    w = np.random.default_rng(d).normal(size=d) / np.sqrt(d)
    X = rng.normal(size=(n, d))
    y = np.where(X @ w + 0.5 * rng.normal(size=n) > 0.2, 1.0, -1.0)
    return X.astype(np.float32), y


def collections(n: int, d: int) -> tuple[Any, Any]:
    height = n // BLOCKS
    parts = [dask.delayed(block, nout=2)(k, height, d) for k in range(BLOCKS)]
    X = [da.from_delayed(p[0], (height, d), np.float32) for p in parts]
    y = [da.from_delayed(p[1], (height,), np.float64) for p in parts]
    return da.concatenate(X), da.concatenate(y)


def options(n: int, loss: str, tol: float) -> dict[str, Any]:
    return {"loss": loss, "lam": 1.0 / n, "fit_intercept": True, "tol": tol}


def local(n: int, d: int, loss: str, tol: float) -> dict[str, Any]:
    parts = [block(k, n // BLOCKS, d) for k in range(BLOCKS)]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    del parts
    start, used = time.perf_counter(), time.process_time()
    sol = adasdca.solve(X, y, random_state=0, **options(len(y), loss, tol))
    return {
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - used,
        "gap": sol.relative_gap,
        "primal": sol.primal,
    }


def used_by_workers(client: Client) -> list[float]:
    return list(client.run(time.process_time).values())


def scattered(n: int, d: int, loss: str, tol: float, workers: int) -> dict[str, Any]:
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster, direct_to_workers=True) as client,
    ):
        X, y = collections(n, d)
        start = time.perf_counter()
        team = DaskTeam(client, Blocks.of(X, y), workers)
        rows = _solve.Rows.of(team)
        packing = time.perf_counter() - start
        task = _solve.make_task(
            rows, **{k: v for k, v in options(rows.n, loss, tol).items() if k != "tol"}
        )
        known = forget_peak()
        before = resident_bytes()
        used = [(time.perf_counter(), [time.process_time(), *used_by_workers(client)])]
        time.sleep(REST)
        used.append((time.perf_counter(), [time.process_time(), *used_by_workers(client)]))
        start = time.perf_counter()
        sol = _solve.run(
            team, task, start, False, method="auto", tol=tol, max_epochs=1000,
            max_time=None, random_state=0, warm_start=None, callback=None,
        )  # fmt: skip
        seconds = time.perf_counter() - start
        used.append((time.perf_counter(), [time.process_time(), *used_by_workers(client)]))
        (resting, rest), (solving, each) = (
            (b[0] - a[0], np.subtract(b[1], a[1])) for a, b in pairwise(used)
        )
        net = each - rest * (solving / resting)
        peak = peak_bytes() if known else None
        return {
            "seconds": seconds,
            "packing": packing,
            "processor": float(each.sum()),
            "net": float(net.sum()),
            "driver": float(net[0]),
            "slowest": float(net[1:].max()),
            "rounds": team.rounds,
            "passes": team.passes,
            "bytes": team.bytes,
            "driver memory": (peak or 0) - (before or 0),
            "worker memory": max(team.resident()),
            "gap": sol.relative_gap,
            "primal": sol.primal,
        }


def fit(runs: list[dict[str, Any]]) -> dict[str, float]:
    """Fit seconds = rounds·latency + bytes/speed + passes·entries/workers·entry, none negative."""
    from scipy.optimize import nnls

    matrix = np.array(
        [[r["rounds"], r["bytes"], r["passes"] * r["entries"] / r["workers"]] for r in runs]
    )
    right = np.array([r["driver"] + r["slowest"] for r in runs])
    scale = matrix.max(axis=0)
    found, _ = nnls(matrix / scale / right[:, None], np.ones(len(runs)))
    latency, byte, entry = found / scale
    predicted = matrix @ (found / scale)
    return {
        "latency": float(latency),
        "byte": float(byte),
        "entry": float(entry),
        "worst": float(np.abs(predicted / right - 1).max()),
    }


def project(model: dict[str, float], run: dict[str, Any], rows: float, workers: int) -> list[str]:
    """Return a line of the projection: the same rounds and passes, more rows and workers."""
    d = run["features"]
    bytes_ = run["bytes"] / run["workers"] * workers
    parts = (
        run["rounds"] * model["latency"],
        bytes_ * model["byte"],
        run["passes"] * rows * d / workers * model["entry"],
    )
    return [str(d), f"{rows:.0e}", str(workers), *(f"{p:.1f}" for p in parts), f"{sum(parts):.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=float, default=1e8)
    parser.add_argument("--features", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--loss", default="logistic")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--out")
    args = parser.parse_args()
    runs, lines = [], []
    for d in args.features:
        n = int(args.entries / d) // BLOCKS * BLOCKS
        here = local(n, d, args.loss, args.tol)
        lines.append(
            [str(d), "local", f"{here['seconds']:.2f}", f"{here['processor']:.2f}",
             f"{here['processor']:.2f}", "", "", "", "", f"{here['gap']:.0e}"]
        )  # fmt: skip
        for workers in args.workers:
            one = scattered(n, d, args.loss, args.tol, workers)
            one |= {"workers": workers, "features": d, "entries": n * d, "local": here}
            runs.append(one)
            lines.append(
                [str(d), str(workers), f"{one['seconds']:.2f}", f"{one['processor']:.2f}",
                 f"{one['net']:.2f}", str(one["rounds"]), f"{one['bytes'] / 1e6:.1f}",
                 f"{one['driver memory'] / 1e6:.0f}", f"{one['worker memory'] / 1e6:.0f}",
                 f"{one['gap']:.0e}"]
            )  # fmt: skip
    head = ("d", "workers", "seconds", "processor", "without rest", "rounds", "MB", "driver [MB]",
            "worker [MB]", "gap")  # fmt: skip
    print(
        f"{args.entries:.0e} entries, {args.loss}, tol {args.tol:g}, {os.cpu_count()} processors;"
    )
    print(f"load {psutil.getloadavg()[0]:.1f}. Memory: of the driver beside what was there before")
    print("the solve, of a worker in all.")
    print(table(head, lines))
    for d in args.features:
        own = {r["workers"]: r for r in runs if r["features"] == d}
        if 1 in own:
            one = own[1]
            print(
                f"d = {d}: one worker takes {one['seconds'] / one['local']['seconds']:.2f} of the"
            )
            print(
                f"seconds of local rows, {one['processor'] / one['local']['processor']:.2f} of the"
            )
            print(f"processor seconds, {one['net'] / one['local']['processor']:.2f} without rest.")
        if 1 in own and 2 in own:
            wall = own[1]["seconds"] / own[2]["seconds"] / 2
            work = [r["driver"] + r["slowest"] for r in (own[1], own[2])]
            print(f"d = {d}: efficiency of two workers {wall:.2f} by the clock,")
            print(f"{work[0] / work[1] / 2:.2f} by processor seconds of driver and slowest worker.")
    model = fit(runs)
    print(
        f"\nModel: {1e3 * model['latency']:.2f} ms a round, "
        f"{1e-6 / model['byte'] if model['byte'] else np.inf:.0f} MB/s, "
        f"{1e9 * model['entry']:.2f} ns an entry and pass; worst run off by {model['worst']:.0%}."
    )
    largest = {d: max((r for r in runs if r["features"] == d), key=lambda r: r["workers"])
               for d in args.features}  # fmt: skip
    projected = [
        project(model, run, rows, workers)
        for run in largest.values()
        for rows, workers in ((1e8, 10), (1e9, 100))
    ]
    print("A projection, not a measurement; seconds:")
    print(table(("d", "rows", "workers", "latency", "bytes", "passes", "all"), projected))
    print(save({"runs": runs, "model": model}, args.out, "workers.json"))


if __name__ == "__main__":
    main()
