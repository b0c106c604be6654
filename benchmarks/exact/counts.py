"""Counts of verdicts, and files that add them up over runs, machines and days."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from adasdca.storage import write_whole
from benchmarks.output import table

COLUMNS = ("problems", "violations", "early", "undecided")


@dataclass
class Verdict:
    """What was found of a case."""

    number: tuple[int, int]  #: The case.
    kind: dict[str, str]
    decided: bool = True  #: Whether its optimum is known to all digits.
    status: str = ""  #: How the solve ended.
    violations: list[str] = field(default_factory=list)  #: What does not hold.
    #: Solves that stalled although their optimum can be certified far better: the bounds hold, but
    #: the method left off too early.
    early: list[str] = field(default_factory=list)


class Tally:
    """Counts verdicts by kind: all, violated, stalled early, undecided."""

    def __init__(self, counts: dict[str, dict[str, int]] | None = None) -> None:
        self.counts = {kind: Counter(count) for kind, count in (counts or {}).items()}

    def add(self, verdict: Verdict) -> None:
        """Count one."""
        flags = (True, bool(verdict.violations), bool(verdict.early), not verdict.decided)
        on = [column for column, flag in zip(COLUMNS, flags, strict=True) if flag]
        kinds = [f"{key}: {value}" for key, value in verdict.kind.items()]
        for kind in ["all", *kinds, f"status: {verdict.status}"]:
            self.counts.setdefault(kind, Counter()).update(on)

    def merge(self, other: Tally) -> None:
        """Count all of another one's."""
        for kind, count in other.counts.items():
            self.counts.setdefault(kind, Counter()).update(count)

    def plain(self) -> dict[str, dict[str, int]]:
        """Return the counts as they are written."""
        return {kind: dict(count) for kind, count in self.counts.items()}

    def total(self, column: str) -> int:
        """Return how many problems there were of a column."""
        return self.counts.get("all", Counter())[column]

    def summary(self) -> str:
        """Return the totals in a line."""
        number = self.total
        return (
            f"{number('problems')} problems: {number('violations')} violations, "
            f"{number('early')} stalled early, {number('undecided')} undecided"
        )

    def show(self) -> str:
        """Return a table by kind."""
        rows = [
            [kind, *(str(count[column]) for column in COLUMNS)]
            for kind, count in sorted(self.counts.items())
        ]
        return table(["kind", *COLUMNS], rows)


@dataclass
class Run:
    """The problems first … past − 1 of a seed, judged by the code of one commit."""

    seed: int  #: Which problems.
    small: bool
    first: int
    past: int
    commit: str  #: The code, and when it began.
    date: str
    seconds: float = 0.0  #: Processor time.
    counts: dict[str, dict[str, int]] = field(default_factory=dict)  #: Those of a `Tally`.
    #: Violations and early stalls, each with the numbers that make its problem again.
    findings: list[str] = field(default_factory=list)

    def meets(self, other: Run) -> bool:
        """Return whether some problems are of both."""
        same = (self.seed, self.small) == (other.seed, other.small)
        return same and self.first < other.past and other.first < self.past


class Runs:
    """Runs of different problems, in a file."""

    def __init__(self, path: Path | None = None) -> None:
        self.path, self.runs = path, []
        if path is not None and path.exists():
            self.runs = [Run(**each) for each in json.loads(path.read_text("utf-8"))]

    def make_room(self, run: Run) -> None:
        """Drop the runs whose problems are all judged again by this one; refuse a part of them."""
        for each in filter(run.meets, self.runs):
            if each.first < run.first or each.past > run.past:
                raise ValueError(
                    f"Problems {run.first} to {run.past - 1} of seed {run.seed} are some of a run "
                    f"of {each.first} to {each.past - 1}. Judge all of these again, or others."
                )
        self.runs = [each for each in self.runs if not run.meets(each)]

    def write(self) -> None:
        """Write the file."""
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            every = [asdict(each) for each in self.runs]
            write_whole(self.path, json.dumps(every, indent=1, sort_keys=True) + "\n")

    def past(self, seed: int, small: bool) -> int:
        """Return the first problem after all that were judged of a seed."""
        same = (each.past for each in self.runs if (each.seed, each.small) == (seed, small))
        return max(same, default=0)

    def tally(self) -> Tally:
        """Return the sum."""
        total = Tally()
        for each in self.runs:
            total.merge(Tally(each.counts))
        return total

    def summary(self) -> str:
        """Return the totals in a line, with the commits that they are of."""
        commits = dict.fromkeys(each.commit[:10] for each in self.runs)
        hours = sum(each.seconds for each in self.runs) / 3600
        return (
            f"{self.tally().summary()}, {hours:.1f} hours of a processor, of {', '.join(commits)}"
        )
