"""Certificates against an exact oracle: what does not hold, over random small problems.

python -m benchmarks.oracle [--problems 20000] [--first 0] [--seed 0] [--jobs 2] [--small]
    [--counts FILE] [--seconds 600]
python -m benchmarks.oracle --counts FILE --add OTHER ...
python -m benchmarks.oracle --case SEED INDEX [--small]

Every number of a certificate is a theorem about the data as given. Here the optimum is found to
sixty digits (`benchmarks/exact/`), and each claim is compared with it: primal, dual, gap and radius
of solves, of `certify` and of estimators, bounds on their scores, safe screening, and the status.
Each violation is printed with the numbers that make its problem again.

A file of counts keeps what was judged, by which commit. It is written as the run goes on, so that
the next one continues where this one ended, for whatever reason. Counts of other machines, which
judged other problems (`--first`, `--seed`), are added by `--add`; problems that are judged again
take the place of their first verdict. Most of the time are the solves: of a processor, eight
milliseconds a problem, three a small one.
"""

from __future__ import annotations

import argparse
import datetime as dt
import math
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import adasdca
from adasdca.solution import Status
from adasdca_reproduce.machine import commit
from benchmarks.exact import multinomial
from benchmarks.exact.checks import Oracle
from benchmarks.exact.counts import Run, Runs, Tally, Verdict
from benchmarks.exact.numbers import digits
from benchmarks.exact.problems import MAX_TIME, Case, make
from benchmarks.measure import in_processes

MULTINOMIAL = 50  # every so manieth problem has more than two classes
NEAR = 1e-8  # a solution with a larger gap is followed by another one, for the oracle to start from


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
                judge_case(make(seed, index, small), verdict)
    except Exception as error:
        verdict.violations.append(f"{type(error).__name__}: {error}")
    return verdict


def judge_case(case: Case, verdict: Verdict) -> None:
    """Solve a case and check all that is said of it."""
    verdict.kind |= case.kind
    found = adasdca.solve(case.X, case.y, **case.options, **case.how)

    def nearer() -> Any:
        how: dict[str, Any] = {"tol": NEAR, "random_state": 0, "max_time": MAX_TIME}
        return adasdca.solve(case.X, case.y, **case.options, **how)

    rough = found.relative_gap > NEAR and found.status is not Status.STALLED
    oracle = Oracle(case, found, nearer if rough else None)
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


def timed(seed: int, numbers: Iterable[int], small: bool) -> tuple[list[Verdict], float]:
    """Judge the cases of these numbers; return the processor time, too."""
    began = time.process_time()
    return run(seed, numbers, small), time.process_time() - began


def run_all(
    seed: int, numbers: range, jobs: int, small: bool = False, part: int = 200
) -> Iterator[tuple[list[Verdict], float]]:
    """Judge these cases in parts, in order; each comes with its processor time."""
    parts = [numbers[k : k + part] for k in range(0, len(numbers), part)]
    return in_processes(partial(timed, seed, small=small), parts, jobs)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--problems", type=int, default=20_000)
    parser.add_argument("--first", type=int, help="by default, what comes after those of FILE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="small problems, three in the time")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no more after these")
    parser.add_argument("--counts", type=Path, metavar="FILE", help="add to the counts of a file")
    parser.add_argument("--add", type=Path, nargs="+", metavar="OTHER", help="add files to FILE")
    parser.add_argument("--case", type=int, nargs=2, metavar=("SEED", "INDEX"))
    args = parser.parse_args()
    if args.case:
        verdict = judge(*args.case, args.small)
        print(verdict.kind, verdict.status, "" if verdict.decided else "undecided", sep="\n")
        print(*verdict.violations, *verdict.early, sep="\n")
        return int(bool(verdict.violations))
    runs = Runs(args.counts)
    if args.add:
        for each in (run for path in args.add for run in Runs(path).runs):
            runs.make_room(each)
            runs.runs.append(each)
        runs.write()
    else:
        _judge_all(args, runs)
    print(f"\n{runs.tally().show()}\n\n{runs.summary()}")
    return int(runs.tally().total("violations") > 0)


def _judge_all(args: argparse.Namespace, runs: Runs) -> None:
    """Judge what was asked for, keeping the counts after each part."""
    first = runs.past(args.seed, args.small) if args.first is None else args.first
    today = dt.date.today().isoformat()
    past = first + args.problems
    this = Run(args.seed, args.small, first, past, commit() or "unknown", today)
    runs.make_room(this)
    numbers, this.past = range(first, this.past), first
    runs.runs.append(this)
    tally, began, last = Tally(), time.monotonic(), time.monotonic()
    for part, used in run_all(args.seed, numbers, args.jobs, args.small):
        for verdict in part:
            tally.add(verdict)
            for each in verdict.violations + verdict.early:
                seed, index = verdict.number
                finding = f"--case {seed} {index}{' --small' * args.small}: {each}"
                this.findings.append(finding)
                print(finding, flush=True)
        this.past += len(part)
        this.seconds += used
        this.counts = tally.plain()
        runs.write()
        if time.monotonic() > last + 30:
            last = time.monotonic()
            pace = f"{1e3 * this.seconds / (this.past - first):.1f} ms of a processor each"
            print(f"of {args.problems}, {tally.summary()}, {pace}", file=sys.stderr, flush=True)
        if time.monotonic() > began + args.seconds:
            break


if __name__ == "__main__":
    sys.exit(main())
