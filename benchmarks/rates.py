"""`auto` by published rates and by measured ones: `python -m benchmarks.rates [--data NAME ...]`.

The cost model decides when epochs end and how the second-order phase goes. Its rates are published
ones; `adasdca.calibration` measures those of the machine at hand. Here both decide the same solves
in turn: a ratio above 1 says that measured rates would be faster.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import adasdca
from adasdca.auto.rates import Rates, use
from adasdca.backends.blas import one_thread
from adasdca.calibration import calibrate
from benchmarks import output
from benchmarks.measure import Task, interleaved, machine
from benchmarks.peers.solver import LOSSES
from benchmarks.peers.summary import geometric_mean


def solver(X: Any, y: Any, loss: str, tol: float, rates: Rates) -> Callable[[], None]:
    def run() -> None:
        with use(rates):
            adasdca.solve(X, y, loss=loss, lam=1 / len(y), method="auto", tol=tol, random_state=0)

    return run


def measure(names: list[str], tols: list[float], repeats: int) -> dict[str, Any]:
    with one_thread():
        rates = {"published": Rates(), "measured": calibrate()}
        cases = []
        for name in names:
            X, y = adasdca.datasets.load(name)
            for loss in LOSSES:
                for tol in tols:
                    tasks = {k: Task(solver(X, y, loss, tol, r)) for k, r in rates.items()}
                    seconds = interleaved(tasks, repeats)
                    cases.append({"data": name, "loss": loss, "tol": tol, "seconds": seconds})
            print(f"measured {name}", flush=True)
    return {
        "machine": machine(),
        "rates": {name: asdict(r) for name, r in rates.items()},
        "cases": cases,
    }


def show(result: dict[str, Any]) -> str:
    rows, ratios = [], []
    for case in result["cases"]:
        published, measured = case["seconds"]["published"], case["seconds"]["measured"]
        ratios.append(published / measured)
        times = [output.seconds(published), output.seconds(measured)]
        cells = [case["data"], case["loss"], f"{case['tol']:.0e}", *times]
        rows.append([*cells, output.ratio(ratios[-1])])
    head = ["data", "loss", "tol", "published", "measured", "ratio"]
    mean = output.ratio(geometric_mean(ratios))
    return f"{output.table(head, rows, (0, 1))}\n\ngeometric mean of the ratios: {mean}"


def main() -> None:
    available = adasdca.datasets.available()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", nargs="+", default=available, choices=adasdca.datasets.NAMES)
    parser.add_argument("--tol", nargs="+", type=float, default=[1e-2, 1e-4, 1e-6])
    parser.add_argument("--repeats", type=int, default=5, help="timings of each solve")
    parser.add_argument("--out", help="results file")
    args = parser.parse_args()
    result = measure(args.data, args.tol, args.repeats)
    print(f"\n{show(result)}\n\nwritten to {output.save(result, args.out, 'rates.json')}")


if __name__ == "__main__":
    main()
