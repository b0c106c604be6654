"""Certificates against an exact oracle: what does not hold, over random small problems.

python -m benchmarks.oracle [--problems 20000] [--seed 0] [--jobs 2] [--small] [--seconds 600]
python -m benchmarks.oracle --case SEED INDEX [--small]

Every number of a certificate is a theorem about the data as given. Here the optimum is found to
sixty digits (`benchmarks/exact/`), and each claim is compared with it: primal, dual, gap and radius
of solves, of `certify` and of estimators, bounds on their scores, safe screening, and the status.
Each violation is printed with the numbers that make its problem again. Most of the time are the
solves: a million problems take sixteen cores about twenty minutes (`--jobs 16`).
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import adasdca
from adasdca.solution import Status
from benchmarks.exact import multinomial
from benchmarks.exact.checks import Oracle
from benchmarks.exact.numbers import digits
from benchmarks.exact.problems import MAX_TIME, Case, make
from benchmarks.measure import in_processes
from benchmarks.output import seconds, table

MULTINOMIAL = 50  # every so manieth problem has more than two classes
NEAR = 1e-8  # a solution with a larger gap is followed by another one, for the oracle to start from


@dataclass
class Verdict:
    """What was found of a case."""

    number: tuple[int, int]
    kind: dict[str, str]
    decided: bool = True  #: Whether its optimum is known to all digits.
    status: str = ""  #: How the solve ended.
    violations: list[str] = field(default_factory=list)  #: What does not hold.
    #: Solves that stalled although their optimum can be certified far better: the bounds hold, but
    #: the method left off too early.
    early: list[str] = field(default_factory=list)


def judge(seed: int, index: int, small: bool = False) -> Verdict:
    """Make a case, solve it and check all that is said of it; every warning is a violation."""
    verdict = Verdict((seed, index), {})
    try:
        with digits(), warnings.catch_warnings():
            warnings.simplefilter("error")
            if index % MULTINOMIAL == MULTINOMIAL - 1 and not small:
                rng = np.random.default_rng((seed, index))
                found = multinomial.judge(rng, verdict.kind)
                verdict.decided, verdict.status, verdict.violations = found
            else:
                _judge(make(seed, index, small), verdict)
    except Exception as error:
        verdict.violations.append(f"{type(error).__name__}: {error}")
    return verdict


def _judge(case: Case, verdict: Verdict) -> None:
    verdict.kind |= case.kind
    found = adasdca.solve(case.X, case.y, **case.options, **case.how)
    near = found
    if found.relative_gap > NEAR and found.status is not Status.STALLED:
        how: dict[str, Any] = {"tol": NEAR, "random_state": 0, "max_time": MAX_TIME}
        near = adasdca.solve(case.X, case.y, **case.options, **how)
    oracle = Oracle(case, near)
    verdict.decided, verdict.status = oracle.decided, found.status.value
    verdict.violations += oracle.solution(found, case.how["tol"])
    verdict.early += oracle.early(found, case.how["tol"])
    rng = np.random.default_rng(case.number)
    more = case.number[1] % 4
    if more == 0:
        verdict.violations += oracle.certify(rng)
    elif more == 1:
        verdict.violations += oracle.estimator()
    elif more == 2:
        verdict.violations += oracle.screening(found)


def run(seed: int, numbers: Iterable[int], small: bool = False) -> list[Verdict]:
    """Judge the cases of these numbers."""
    return [judge(seed, k, small) for k in numbers]


def run_all(
    seed: int, problems: int, jobs: int, small: bool = False, part: int = 200
) -> Iterator[list[Verdict]]:
    """Judge that many cases, in parts."""
    parts = [range(k, min(k + part, problems)) for k in range(0, problems, part)]
    return in_processes(partial(run, seed, small=small), parts, jobs)


class Tally:
    """Counts verdicts by kind: all, violated, stalled early, undecided."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}

    def add(self, verdict: Verdict) -> None:
        """Count one."""
        flags = {
            "problems": True,
            "violations": bool(verdict.violations),
            "early": bool(verdict.early),
            "undecided": not verdict.decided,
        }
        kinds = [f"{key}: {value}" for key, value in verdict.kind.items()]
        for kind in ["all", *kinds, f"status: {verdict.status}"]:
            self.counts.setdefault(kind, Counter()).update(k for k, on in flags.items() if on)

    def total(self, flag: str) -> int:
        """Return how many problems there were of a column."""
        return self.counts.get("all", Counter())[flag]

    def summary(self) -> str:
        """Return the totals in a line."""
        number = self.total
        return (
            f"{number('problems')} problems: {number('violations')} violations, "
            f"{number('early')} stalled early, {number('undecided')} undecided"
        )

    def show(self) -> str:
        """Return a table by kind."""
        head = ["problems", "violations", "early", "undecided"]
        rows = [
            [kind, *(str(count[column]) for column in head)]
            for kind, count in sorted(self.counts.items())
        ]
        return table(["kind", *head], rows)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--problems", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="small problems, three in the time")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no more after these")
    parser.add_argument("--case", type=int, nargs=2, metavar=("SEED", "INDEX"))
    args = parser.parse_args()
    if args.case:
        verdict = judge(*args.case, args.small)
        print(verdict.kind, verdict.status, "" if verdict.decided else "undecided", sep="\n")
        print(*verdict.violations, *verdict.early, sep="\n")
        return int(bool(verdict.violations))
    tally, began, last = Tally(), time.monotonic(), time.monotonic()
    for part in run_all(args.seed, args.problems, args.jobs, args.small):
        for verdict in part:
            tally.add(verdict)
            for each in verdict.violations + verdict.early:
                seed, index = verdict.number
                small = " --small" if args.small else ""
                print(f"--case {seed} {index}{small}: {each}", flush=True)
        if time.monotonic() > last + 30:
            last = time.monotonic()
            print(f"of {args.problems}, {tally.summary()}", file=sys.stderr, flush=True)
        if time.monotonic() > began + args.seconds:
            break
    print(f"\n{tally.show()}\n\n{tally.summary()}, in {seconds(time.monotonic() - began)}")
    return int(tally.total("violations") > 0)


if __name__ == "__main__":
    sys.exit(main())
