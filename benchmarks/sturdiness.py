"""A grid of ordinary and nasty problems, all of which a default solve must solve.

python -m benchmarks.sturdiness [--share 0.02] [--part develop] [--only SUBSTRING ...] [--fine]
                                [--jobs 2] [--journal FILE] [-o FILE]

Every loss, seven strengths from C = 1e-6 to 1e6 (lam = 1/(C·n)), with and without intercept, dense
and sparse, three regularisers and three seeds, on the data of scikit-learn, on all NAME.npz in the
data folder and its folder `more`, and on made-up data that are hard to compute with. Data are taken
as they are ("raw") and with standardised columns ("std"). `--share` picks cases by a hash of their
names, so that a larger share contains a smaller one. A second hash keeps a third of the grid apart:
thresholds are chosen on `--part develop`, and failures are told of `--part report`. The whole grid
takes hours: `--share 1 --only /seed0 --journal FILE` writes a line for each problem of one seed
when it is solved, and begun again, goes on where it was.

A solve that has stalled has arrived if its gap is a few times what rounding hides of it: that of
its sums or, where residuals of 0 are at a kink, what the last digits of coefficients make of them.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import math
import re
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import adasdca
from adasdca.problem.losses import LOSSES
from benchmarks.measure import attempt, in_processes, machine
from benchmarks.output import save, seconds, table
from benchmarks.problems import Source, load, matrix, sources

STRENGTHS = ("1e-6", "1e-4", "1e-2", "1", "1e2", "1e4", "1e6")
PENALTIES: dict[str, dict[str, Any]] = {
    "l2": {},
    "elastic_net": {"l1_ratio": 0.5},
    "bounds": {"bounds": (0, None)},
}
TOL, FINE_TOLS = 1e-6, (1e-10, 1e-12, 0.0)
ARRIVAL = 1e-9  # a stalled solve that was asked for more than this has arrived here
HIDDEN = 3.0  # a stalled solve has arrived with a gap of so many times its rounding
REPORTED = 1 / 3  # of the grid
SLACK, UNITS = 1e-9, 50.0  # between the primal value of the solution and that of NumPy
EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Case:
    source: Source
    version: str
    form: str
    loss: str
    C: str
    intercept: bool
    penalty: str
    seed: int

    @property
    def name(self) -> str:
        intercept = "intercept" if self.intercept else "no_intercept"
        data = f"{self.source.name}/{self.version}/{self.form}"
        return f"{data}/{self.loss}/C={self.C}/{intercept}/{self.penalty}/seed{self.seed}"

    @property
    def kind(self) -> tuple[Any, ...]:
        """What takes about the same time."""
        loss = LOSSES[self.loss]
        return (*self.coarse_kind, self.penalty, loss.kind, loss().smoothness > 0)

    @property
    def coarse_kind(self) -> tuple[Any, ...]:
        return self.source.name, self.version, self.form

    def problem(self) -> tuple[Any, Any, dict[str, Any]]:
        """Return X, y and the keywords of `solve` that state the problem."""
        data = load(self.source)
        y = data.labels if LOSSES[self.loss].kind == "classification" else data.target
        lam = 1 / (float(self.C) * len(y))
        keywords = {"loss": self.loss, "lam": lam, "fit_intercept": self.intercept}
        keywords |= {"sample_weight": data.weight, **PENALTIES[self.penalty]}
        return matrix(self.source, self.version, self.form), y, keywords


def cases(folder: Path | None = None) -> Iterator[Case]:
    """Yield the whole grid, those of the same data one after another."""
    for source in sources(folder):
        classes, dense = source.described()
        losses = [k for k, loss in LOSSES.items() if classes or loss.kind == "regression"]
        forms = ("dense", "csr") if dense else ("csr",)
        axes = (("raw", "std"), forms, losses, STRENGTHS, (False, True), PENALTIES, range(3))
        for values in itertools.product(*axes):
            yield Case(source, *values)


def hashed(name: str, salt: bytes = b"") -> float:
    """Return a number between 0 and 1 that depends on a name and nothing else."""
    digest = hashlib.blake2b(name.encode(), digest_size=4, salt=salt).digest()
    return int.from_bytes(digest, "big") / 2**32


def part_of(case: Case) -> str:
    return "report" if hashed(case.name, b"part") < REPORTED else "develop"


def chosen(
    grid: Iterable[Case], share: float, only: Iterable[str] = (), part: str = "all"
) -> list[Case]:
    return [
        case
        for case in grid
        if all(piece in case.name for piece in only)
        and hashed(case.name) < share
        and part in ("all", part_of(case))
    ]


@dataclass(frozen=True)
class Result:
    case: Case
    tol: float
    status: str
    gap: float  # relative
    seconds: float
    failure: str | None
    work: str = ""  # what it took, by phases

    @property
    def label(self) -> str:
        return self.failure or self.status

    def row(self) -> list[str]:
        name = self.case.name if self.tol == TOL else f"{self.case.name} tol={self.tol:g}"
        return [name, self.label[:60], f"{self.gap:.1e}", seconds(self.seconds)]

    def entry(self) -> dict[str, Any]:
        return asdict(self) | {"case": self.case.name}


def objective(
    X: Any, y: Any, keywords: dict[str, Any], solution: adasdca.Solution
) -> tuple[float, float]:
    """Return P at the returned point, by NumPy, and how far last digits of scores may move it."""
    w, b, ratio = solution.coef, solution.intercept, keywords.get("l1_ratio", 0.0)
    loss, score = LOSSES[keywords["loss"]](), X @ w + b
    penalty = keywords["lam"] * ((1 - ratio) / 2 * (w @ w) + ratio * np.abs(w).sum())
    terms = np.abs(loss.slope(score, y)) * (abs(X) @ np.abs(w) + abs(b) + np.abs(y))
    weights = keywords["sample_weight"]
    value = np.average(loss.value(score, y), weights=weights) + penalty
    return float(value), float(EPSILON * np.average(terms, weights=weights))


def run(case: Case, tol: float = TOL, max_time: float = 20.0) -> Result:
    X, y, keywords = case.problem()
    options = {"method": "auto", "tol": tol, "max_time": max_time, "random_state": case.seed}
    solution, wrong, spent = attempt(lambda: adasdca.solve(X, y, **keywords, **options))
    if solution is None:
        return Result(case, tol, "exception", math.nan, spent, wrong)
    status = solution.status
    if status is adasdca.Status.INTERRUPTED:  # not lost there, but it is us who shall stop
        raise KeyboardInterrupt
    primal, digits = objective(X, y, keywords, solution)
    excess = solution.relative_gap - tol
    arrived = status is adasdca.Status.CONVERGED and excess <= 0
    if status is adasdca.Status.STALLED:
        arrived |= tol < ARRIVAL and excess <= ARRIVAL - tol
        kinked = LOSSES[case.loss]().smoothness == 0
        hidden = max(solution.certificate.rounding, digits if kinked else 0.0)
        arrived |= solution.gap <= HIDDEN * hidden
    numbers = (solution.coef, solution.dual_coef, solution.intercept, solution.dual, primal)
    failure = None
    if not all(np.isfinite(part).all() for part in numbers):
        failure = "not finite"
    elif not arrived:
        failure = status.value if status is not status.CONVERGED else "converged, but for the gap"
    elif abs(primal - solution.primal) > SLACK * primal + UNITS * digits:
        failure = f"wrong primal: {solution.primal:.17g} is {primal:.17g}"
    elif wrong:
        failure = wrong
    rounds: Counter[str] = Counter()
    for phase in solution.phases:
        rounds[phase.name] += phase.rounds
    work = ", ".join(f"{count} {name}" for name, count in rounds.items())
    return Result(case, tol, status.value, solution.relative_gap, spent, failure, work)


def _run(task: tuple[Case, float, float]) -> Result:
    return run(*task)


def recorded(
    journal: Path | None, tasks: list[tuple[Case, float, float]]
) -> dict[tuple[Case, float], Result]:
    """Return what a journal has of these tasks."""
    if journal is None or not journal.exists():
        return {}
    cases = {case.name: case for case, *_ in tasks}
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    found = [Result(**e | {"case": cases[e["case"]]}) for e in entries if e["case"] in cases]
    return {(result.case, result.tol): result for result in found}


def run_all(
    tasks: list[tuple[Case, float, float]], jobs: int, journal: Path | None = None
) -> list[Result]:
    done = recorded(journal, tasks)
    results = [done[task[:2]] for task in tasks if task[:2] in done]
    rest = [task for task in tasks if task[:2] not in done]
    failures, last = sum(r.failure is not None for r in results), time.monotonic()
    with ExitStack() as stack:
        file = stack.enter_context(journal.open("a")) if journal else None
        for result in in_processes(_run, rest, jobs, chunk=20):
            results.append(result)
            if file:
                print(json.dumps(result.entry()), file=file, flush=True)
            failures += result.failure is not None
            if result.failure:
                print(*result.row(), file=sys.stderr, flush=True)
            if time.monotonic() > last + 20:
                last = time.monotonic()
                print(f"{len(results)} of {len(tasks)}, {failures} failures", file=sys.stderr)
    return results


def slow(results: list[Result]) -> list[tuple[float, Result]]:
    """Return what took ten times as long as its kind, with the ratio.

    A kind of which there are few is judged by all of the same matrix.
    """
    times = defaultdict(list)
    for r in results:
        for kind in (r.case.kind, r.case.coarse_kind):
            times[kind].append(r.seconds)
    medians = {kind: statistics.median(values) for kind, values in times.items()}
    found = []
    for r in results:
        kind = r.case.kind if len(times[r.case.kind]) >= 8 else r.case.coarse_kind
        if not r.failure and r.seconds > max(10 * medians[kind], 0.05):
            found.append((r.seconds / medians[kind], r))
    return sorted(found, key=lambda item: -item[1].seconds)


def show(results: list[Result], examples: int = 3) -> str:
    parts, failed = [], [r for r in results if r.failure]
    for title, key in {
        "loss": lambda r: r.case.loss,
        "data": lambda r: r.case.source.name,
        "regulariser": lambda r: r.case.penalty,
        "intercept": lambda r: "intercept" if r.case.intercept else "no intercept",
        "outcome": lambda r: (r.failure or "").split(":")[0],
    }.items():
        all_of, failed_of = Counter(map(key, results)), Counter(map(key, failed))
        rows = []
        for name, count in failed_of.most_common():
            some = [r.row() for r in failed if key(r) == name]
            some = some[:: -(-len(some) // examples)]  # spread over the grid
            rows += [[name, f"{count} of {all_of[name]}", *some[0]]]
            rows += [["", "", *row] for row in some[1:]]
        head = [title, "failures", "examples", "status", "gap", "time"]
        parts += [table(head, rows, (0, 2, 3))] if rows else []
    laggards = slow(results)
    rows = [[*r.row(), f"{ratio:.0f}", r.work] for ratio, r in laggards[:20]]
    if rows:
        head = [f"slow ({len(laggards)})", "status", "gap", "time", "times the median", "phases"]
        parts.append(table(head, rows, (0, 1, 5)))
        reasons = Counter(", ".join(re.findall("[a-zA-Z]+", r.work)) for _, r in laggards)
        lines = [[reason, str(count)] for reason, count in reasons.most_common()]
        parts.append(table(["slow by phases", "cases"], lines))
    hidden = sum(not r.failure and r.gap > max(r.tol, ARRIVAL) for r in results)
    if hidden:
        parts.append(f"{hidden} ended above tol, where rounding hides the rest")
    for tol in sorted({r.tol for r in results if r.tol < ARRIVAL}, reverse=True):
        gaps = [r.gap for r in results if r.tol == tol and not math.isnan(r.gap)]
        decades = Counter(math.ceil(math.log10(max(gap, 1e-17))) for gap in gaps)
        lines = [[f"1e{k}", str(decades[k])] for k in sorted(decades)]
        parts.append(table([f"tol {tol:g}: gap up to", "cases"], lines))
    times = np.array([r.seconds for r in results] or [0.0])
    quantiles = {"median": 0.5, "90 %": 0.9, "99 %": 0.99, "most": 1.0}
    text = [f"{name} {seconds(np.quantile(times, q))}" for name, q in quantiles.items()]
    parts.append(f"time: {', '.join(text)}, in all {seconds(times.sum())}")
    return "\n\n".join([*parts, f"{len(results)} problems, {len(failed)} failures"])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--share", type=float, help="of the grid (default 0.05; with --only 1)")
    parser.add_argument("--part", choices=("all", "develop", "report"), default="all")
    parser.add_argument("--only", nargs="+", default=[], help="parts that a name must have")
    parser.add_argument("--fine", action="store_true", help="smooth losses to the last digits")
    parser.add_argument("--data", type=Path, default=adasdca.datasets.data_directory())
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--max-time", type=float, default=20.0, help="seconds of a solve")
    parser.add_argument("--journal", type=Path, help="a line for each problem, to go on from")
    parser.add_argument("-o", "--out", help="results file")
    args = parser.parse_args()
    share = args.share or (1.0 if args.only else 0.05)
    grid = chosen(cases(args.data), share, args.only, args.part)
    if args.fine:
        grid = [case for case in grid if LOSSES[case.loss]().smoothness > 0]
    tols = FINE_TOLS if args.fine else (TOL,)
    tasks = [(case, tol, args.max_time) for case in grid for tol in tols]
    results = run_all(tasks, args.jobs, args.journal)
    rows = [r.entry() for r in results]
    facts = {"machine": machine(), "share": share, "part": args.part}
    path = save(facts | {"cases": rows}, args.out, "sturdiness.json")
    print(f"written to {path}\n\n{show(results)}")
    return int(any(r.failure for r in results))


if __name__ == "__main__":
    sys.exit(main())
