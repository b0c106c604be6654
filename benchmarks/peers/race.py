"""The runs: every solver climbs its ladder of settings, all of them in turn, in one process.

The first round walks each ladder from loose to tight until the tightest accuracy is reached, a
run takes too long, or nothing improves. Later rounds repeat the settings that could be the
fastest way to some accuracy.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.peers.objective import Objective
from benchmarks.peers.solver import Solver, quiet

ACCURACIES = (1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
#: Not run again: settings so many times slower than the solver's own fastest for an accuracy, and
#: settings of a peer so many times slower than anyone's.
OWN, ANYONE = 2.0, 4.0
#: A ladder is left after so many settings without progress, and by a peer whose run takes so many
#: times what someone needed for the tightest accuracy; both only where runs are slow (seconds).
PATIENCE, BEHIND, SLOW = 3, 100.0, 1.0


@dataclass
class Run:
    """One setting of one solver, run several times."""

    setting: float
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    primal: list[float] = field(default_factory=list)

    def suboptimality(self, best: float) -> float:
        """Return (P − best)/best at the worst of the runs."""
        return max(0.0, max(self.primal) - best) / best

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass
class Entry:
    """A solver in the race, as "ours", a "variant" of ours, or a "peer"."""

    solver: Solver
    role: str
    objective: Objective
    threads: int
    data: Any = None
    runs: list[Run] = field(default_factory=list)
    stopped: str = "end of its settings"

    def time(self, run: Run) -> None:
        problem = self.objective
        gc.collect()
        gc.disable()
        try:
            start, cpu = time.perf_counter(), time.process_time()
            coef = self.solver.fit(self.data, problem.loss, problem.lam, run.setting, self.threads)
            seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        finally:
            gc.enable()
        run.seconds.append(seconds)
        run.cpu_seconds.append(cpu)
        run.primal.append(problem.primal(coef))

    def climb(self, rung: int) -> bool:
        """Run the next setting; False at the end of the ladder, or if the peer failed."""
        ladder = self.solver.settings(self.objective.loss)
        if rung >= len(ladder):
            return False
        run = Run(ladder[rung])
        try:
            self.time(run)
        except Exception as error:
            if self.role != "peer":
                raise
            # A peer's failure is a result, not the end of the race.
            self.stopped = f"{type(error).__name__}: {error}"
            return False
        self.runs.append(run)
        return True

    def time_to(self, accuracy: float, best: float) -> float:
        good = [r.median for r in self.runs if r.suboptimality(best) <= accuracy]
        return min(good, default=math.inf)

    def as_data(self, best: float) -> dict[str, Any]:
        runs = [
            {
                "setting": r.setting,
                "seconds": r.seconds,
                "median": r.median,
                "suboptimality": r.suboptimality(best),
            }
            for r in self.runs
        ]
        return {
            "name": self.solver.name,
            "version": self.solver.version,
            "role": self.role,
            "threads": self.threads,
            "stopped": self.stopped,
            "runs": runs,
        }


@dataclass(frozen=True)
class Rules:
    """How long a race may last."""

    repeats: int = 5
    cap: float = 60.0  # seconds of a run after which tighter settings are skipped
    budget: float = 20.0  # seconds for the repeats of one setting
    reference: float = 60.0  # seconds for the lower bound
    accuracies: Sequence[float] = ACCURACIES


def stop_reason(entry: Entry, best: float, pace: float, rules: Rules) -> str | None:
    """Return why the ladder ends here, or None; `pace`: the best time to the tightest accuracy."""
    reached = [r.suboptimality(best) for r in entry.runs]
    last = entry.runs[-1].median
    if reached[-1] <= min(rules.accuracies):
        return "reached the tightest accuracy"
    if last > rules.cap:
        return f"a run took more than {rules.cap:g} s"
    if entry.role == "peer" and last > max(SLOW, BEHIND * pace):
        return f"a run took more than {BEHIND:g} times the time of another to the end"
    late = reached[-PATIENCE - 1 :]
    slow = all(r.median > SLOW for r in entry.runs[-PATIENCE:])
    if len(late) > PATIENCE and slow and min(late[1:]) > 0.9 * late[0]:
        return "no progress"
    return None


def walk(entries: Sequence[Entry], best: float, rules: Rules) -> float:
    """First round: every ladder, a rung at a time; return the best primal value seen."""
    climbing, rung, tightest = list(entries), 0, min(rules.accuracies)
    while climbing:
        for entry in list(climbing):
            if not entry.climb(rung):
                climbing.remove(entry)
                continue
            best = min(best, entry.runs[-1].primal[-1])
            pace = min(e.time_to(tightest, best) for e in entries)
            reason = stop_reason(entry, best, pace, rules)
            if reason is not None:
                entry.stopped = reason
                climbing.remove(entry)
        rung += 1
    return best


def worth_repeating(
    entries: Sequence[Entry], best: float, accuracies: Sequence[float]
) -> list[tuple[Entry, Run]]:
    """Return the settings whose median time may end up in a table, by their place on the ladder."""
    kept = []
    for entry in entries:
        for rung, run in enumerate(entry.runs):
            reached = [a for a in accuracies if run.suboptimality(best) <= a]
            own = any(run.median <= OWN * entry.time_to(a, best) for a in reached)
            near = entry.role != "peer" or any(
                run.median <= ANYONE * min(e.time_to(a, best) for e in entries) for a in reached
            )
            if own and near:
                kept.append((rung, entry, run))
    return [(entry, run) for _, entry, run in sorted(kept, key=lambda k: k[0])]


def repeat(entries: Sequence[Entry], best: float, rules: Rules) -> None:
    """Later rounds: each begins elsewhere, so that no solver always follows the same other one."""
    kept = worth_repeating(entries, best, rules.accuracies)
    for round_ in range(1, rules.repeats):
        shift = round_ * len(kept) // rules.repeats
        for entry, run in kept[shift:] + kept[:shift]:
            if run.median * (len(run.seconds) + 1) <= rules.budget:
                entry.time(run)


def race(
    objective: Objective,
    ours: Sequence[Solver],
    peers: Sequence[Solver],
    threads: int,
    rules: Rules,
    tell: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Return the runs of all solvers that know the loss, as plain data; `ours[0]` is compared."""
    n, d = objective.X.shape
    roles = ["ours", *["variant"] * (len(ours) - 1), *["peer"] * len(peers)]
    entries: list[Entry] = []
    left_out: dict[str, str] = {}
    with quiet(threads):
        reference = objective.reference(rules.reference)
        for solver, role in zip((*ours, *peers), roles, strict=True):
            if objective.loss not in solver.losses:
                continue
            reason = solver.unsuited(n, d, objective.X.nnz)
            if reason is not None:
                left_out[solver.name] = reason
                continue
            entry = Entry(solver, role, objective, threads if solver.parallel else 1)
            warm_up(entry)
            entry.data = solver.prepare(objective.X, objective.y)
            entries.append(entry)
        best = walk(entries, reference["primal"], rules)
        repeat(entries, best, rules)
    best = min([best, *(p for e in entries for r in e.runs for p in r.primal)])
    slack = (best - reference["dual"]) / best
    if slack > min(rules.accuracies) / 10:
        tell(f"note: the best value is certified only to {slack:.1e}")
    return {
        "loss": objective.loss,
        "lam": objective.lam,
        "threads": threads,
        "n": n,
        "d": d,
        "nnz": int(objective.X.nnz),
        "best": best,
        "bound": reference["dual"],
        "waiting": waiting(entries),
        "left_out": left_out,
        "solvers": [e.as_data(best) for e in entries],
    }


def warm_up(entry: Entry) -> None:
    """Run once on a few rows: what a package sets up at its first call is not part of a fit."""
    X, y = entry.objective.X, entry.objective.y
    rows = [*(y > 0).nonzero()[0][:50], *(y < 0).nonzero()[0][:50]]
    Entry(
        entry.solver,
        entry.role,
        Objective(X[rows], y[rows], entry.objective.loss, 1 / len(rows)),
        entry.threads,
        entry.solver.prepare(X[rows], y[rows]),
    ).climb(0)


def waiting(entries: Sequence[Entry]) -> float | None:
    """Return wall time over processor time of the runs on one thread: above 1 they had to wait."""
    runs = [r for e in entries if e.threads == 1 for r in e.runs]
    cpu = math.fsum(s for r in runs for s in r.cpu_seconds)
    return math.fsum(s for r in runs for s in r.seconds) / cpu if cpu > 0 else None
