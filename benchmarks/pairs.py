"""Two ways to make the same solves, in turn: `python -m benchmarks.pairs {rates,intercept}`.

    rates        the cost model by its published rates, and by those that `adasdca.calibration`
                 measures on the machine at hand
    intercept    without an intercept, and with one

A ratio is the time of the second over that of the first: at 1.3 an intercept costs 30 % more.
"""

from __future__ import annotations

import argparse
import itertools
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

#: The sides of a pair: rates, and options of `solve`.
Sides = dict[str, tuple[Rates, dict[str, Any]]]
PAIRS: dict[str, Callable[[], Sides]] = {
    "rates": lambda: {"published": (Rates(), {}), "measured": (calibrate(), {})},
    "intercept": lambda: {
        name: (Rates(), {"fit_intercept": free})
        for name, free in (("without", False), ("with", True))
    },
}


def measure(
    pair: str, names: list[str], Cs: list[float], tols: list[float], repeats: int
) -> dict[str, Any]:
    """Return the seconds of both sides of every case."""
    cases = []
    with one_thread():
        sides = PAIRS[pair]()
        for name in names:
            X, y = adasdca.datasets.load(name)

            def solver(rates: Rates, **options: Any) -> Callable[[], None]:
                def run() -> None:
                    with use(rates):
                        adasdca.solve(X, y, random_state=0, **options)  # noqa: B023

                return run

            for loss, C, tol in itertools.product(LOSSES, Cs, tols):
                shared = {"loss": loss, "lam": 1 / (C * len(y)), "tol": tol}
                tasks = {k: Task(solver(r, **shared, **own)) for k, (r, own) in sides.items()}
                case = {"data": name, "loss": loss, "C": C, "tol": tol}
                cases.append(case | {"seconds": interleaved(tasks, repeats)})
            print(f"measured {name}", flush=True)
    rates = {name: asdict(side[0]) for name, side in sides.items()}
    return {"machine": machine(), "pair": pair, "rates": rates, "cases": cases}


def show(result: dict[str, Any]) -> str:
    """Return the table, and the mean of the ratios."""
    rows, ratios = [], []
    for case in result["cases"]:
        first, second = case["seconds"].values()
        ratios.append(second / first)
        cells = [case["data"], case["loss"], f"{case['C']:g}", f"{case['tol']:.0e}"]
        rows.append([*cells, *map(output.seconds, (first, second)), output.ratio(ratios[-1])])
    head = ["data", "loss", "C", "tol", *result["cases"][0]["seconds"], "ratio"]
    mean, most = output.ratio(geometric_mean(ratios)), output.ratio(max(ratios))
    return f"{output.table(head, rows, (0, 1))}\n\ngeometric mean {mean}, most {most}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pair", choices=PAIRS)
    available = adasdca.datasets.available()
    parser.add_argument("--data", nargs="+", default=available, choices=adasdca.datasets.NAMES)
    parser.add_argument("--C", nargs="+", type=float, default=[1.0])
    parser.add_argument("--tol", nargs="+", type=float, default=[1e-2, 1e-4, 1e-6])
    parser.add_argument("--repeats", type=int, default=5, help="timings of each solve")
    parser.add_argument("-o", "--out", help="results file")
    args = parser.parse_args()
    result = measure(args.pair, args.data, args.C, args.tol, args.repeats)
    print(f"{show(result)}\n\nwritten to {output.save(result, args.out, f'{args.pair}.json')}")


if __name__ == "__main__":
    main()
