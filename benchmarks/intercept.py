"""What an intercept costs: `python -m benchmarks.intercept [--data NAME ...]`.

The same solve by `auto` with and without an intercept, in turn: a ratio of 1.3 says that the
intercept costs 30 % more.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import adasdca
from adasdca.backends.blas import one_thread
from benchmarks import output
from benchmarks.measure import Task, interleaved, machine
from benchmarks.peers.solver import LOSSES
from benchmarks.peers.summary import geometric_mean


def solver(X: Any, y: Any, loss: str, C: float, tol: float, intercept: bool) -> Callable[[], None]:
    options = {"loss": loss, "lam": 1 / (C * len(y)), "tol": tol, "fit_intercept": intercept}
    return lambda: adasdca.solve(X, y, random_state=0, **options)


def measure(names: list[str], Cs: list[float], tol: float, repeats: int) -> dict[str, Any]:
    cases = []
    with one_thread():
        for name in names:
            X, y = adasdca.datasets.load(name)
            for loss in LOSSES:
                for C in Cs:
                    sides = {"without": False, "with": True}
                    tasks = {k: Task(solver(X, y, loss, C, tol, b)) for k, b in sides.items()}
                    seconds = interleaved(tasks, repeats)
                    cases.append({"data": name, "loss": loss, "C": C, "seconds": seconds})
            print(f"measured {name}", flush=True)
    return {"machine": machine(), "tol": tol, "cases": cases}


def show(result: dict[str, Any]) -> str:
    rows, ratios = [], []
    for case in result["cases"]:
        without, with_one = case["seconds"]["without"], case["seconds"]["with"]
        ratios.append(with_one / without)
        times = [output.seconds(without), output.seconds(with_one)]
        cells = [case["data"], case["loss"], f"{case['C']:g}", *times]
        rows.append([*cells, output.ratio(ratios[-1])])
    table = output.table(["data", "loss", "C", "without", "with", "ratio"], rows)
    return f"{table}\n\ngeometric mean {geometric_mean(ratios):.2f}, most {max(ratios):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["mushrooms", "w8a", "ijcnn1", "dorothea"])
    parser.add_argument("--C", nargs="+", type=float, default=[0.01, 1.0, 100.0])
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("-o", "--out", help="results file")
    args = parser.parse_args()
    result = measure(args.data, args.C, args.tol, args.repeats)
    print(f"written to {output.save(result, args.out, 'intercept.json')}\n\n{show(result)}")


if __name__ == "__main__":
    main()
