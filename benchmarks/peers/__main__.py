"""Run the race: `python -m benchmarks.peers --data w8a ijcnn1 --loss logistic --threads 1`."""

from __future__ import annotations

import argparse
import time
from typing import Any

import adasdca
from benchmarks import output
from benchmarks.measure import machine
from benchmarks.peers import ours
from benchmarks.peers.objective import Objective
from benchmarks.peers.race import ACCURACIES, Rules, race
from benchmarks.peers.report import show
from benchmarks.peers.solver import LOSSES, PEERS, enlist
from benchmarks.peers.summary import summarise


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description="Time to an accuracy, beside other packages."
    )
    parser.add_argument(
        "--data",
        nargs="+",
        default=adasdca.datasets.available(),
        choices=adasdca.datasets.NAMES,
        metavar="NAME",
    )
    parser.add_argument("--loss", nargs="+", default=list(LOSSES), choices=LOSSES, metavar="LOSS")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=PEERS, metavar="PEER")
    parser.add_argument(
        "--method",
        nargs="+",
        default=["auto"],
        help="our methods; the first is compared, the others are shown beside it",
    )
    parser.add_argument("--threads", nargs="+", type=int, default=[1])
    parser.add_argument("--lam-n", type=float, default=1.0, help="lam times n (1: lam = 1/n)")
    parser.add_argument("--repeats", type=int, default=Rules.repeats)
    parser.add_argument(
        "--cap", type=float, default=Rules.cap, help="no tighter settings after a run of this long"
    )
    parser.add_argument(
        "--budget", type=float, default=Rules.budget, help="seconds for the repeats of a setting"
    )
    parser.add_argument(
        "--reference", type=float, default=Rules.reference, help="seconds for the lower bound"
    )
    parser.add_argument("--out", help="results file")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    rules = Rules(args.repeats, args.cap, args.budget, args.reference)
    peers, missing = enlist(args.peers)
    for name, reason in missing.items():
        print(f"without {name}: {reason}")
    result: dict[str, Any] = {
        "machine": machine(),
        "repeats": args.repeats,
        "accuracies": list(ACCURACIES),
        "missing": missing,
        "cases": [],
    }
    for name in args.data:
        X, y = adasdca.datasets.load(name)
        for loss in args.loss:
            objective = Objective(X, y, loss, args.lam_n / len(y))
            for threads in args.threads:
                start = time.perf_counter()
                case = race(objective, ours.solvers(args.method), peers, threads, rules)
                result["cases"].append({"data": name, **case})
                result |= summarise(result["cases"], ACCURACIES)
                # After every case: a long sweep may be interrupted.
                path = output.save(result, args.out, "peers.json")
                spent = time.perf_counter() - start
                print(f"{name} {loss} {threads} thread(s): {spent:.0f} s", flush=True)
    print(f"\n{show(result)}\n\nwritten to {path}")


if __name__ == "__main__":
    main()
