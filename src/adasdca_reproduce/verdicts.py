"""Verdicts on claims, computed from stored results by a handful of rules."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from adasdca_reproduce.results import Measure, Need, Problem


class Verdict(enum.Enum):
    """What the stored results say of a claim in one case."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "not reached within the budget"
    MISSING = "not run"


@dataclass(frozen=True)
class Case:
    """A claim on one problem at one gap (None where a claim has no gap)."""

    problem: Problem
    gap: float | None
    verdict: Verdict
    #: Whether the ranges over the seeds overlap, so that another set of seeds, or another hour of
    #: the machine, may turn the verdict.
    close: bool = False
    tied: bool = False  #: Whether the medians are the same.
    note: str = ""  #: The numbers behind the verdict.
    #: The same in the least space: what the claim is about, against the best of the others.
    brief: str = ""
    #: The first of these two numbers over the second, 0 or infinite if only one is known.
    ratio: float | None = None

    @property
    def decided(self) -> bool:
        """Whether the verdict is neither a tie nor one that seeds could turn."""
        return self.verdict in (Verdict.HOLDS, Verdict.FAILS) and not (self.close or self.tied)


def first(mine: Need, others: Mapping[str, Need], *, strict: bool) -> Verdict:
    """Judge whether `mine` is the least; ties count unless `strict`.

    Medians may be known only between bounds. The verdict is what holds for all values between
    them, `OPEN` if there is no such.
    """
    low, high = (min(getattr(n, end) for n in others.values()) for end in ("low", "high"))
    if mine.reached and (mine.high < low or (not strict and mine.high == low)):
        return Verdict.HOLDS
    if math.isfinite(high) and (high < mine.low or (strict and high == mine.low)):
        return Verdict.FAILS
    return Verdict.OPEN


def overlapping(mine: Need, others: Mapping[str, Need]) -> bool:
    """Whether the range of `mine` over the seeds meets that of the best of the others."""
    best = min(others.values(), key=_rank)
    return best.least <= mine.greatest and mine.least <= best.greatest


def _rank(n: Need) -> tuple[float, float]:
    return n.high, n.low


def alike(mine: Need, other: Need) -> Verdict:
    """Judge whether two methods need the same up to what seeds do.

    The ranges over the seeds meet, or, as those of a few seeds may just miss each other, the
    medians differ by at most 2 or 10 %.
    """
    if not (mine.reached and other.reached):
        return Verdict.OPEN
    near = abs(mine.high - other.high) <= max(2.0, 0.1 * max(mine.high, other.high))
    return Verdict.HOLDS if near or overlapping(mine, {"other": other}) else Verdict.FAILS


def case_of_first(
    problem: Problem,
    gap: float,
    measure: Measure,
    mine: Need,
    others: Mapping[str, Need],
    *,
    claimant: str,
    strict: bool,
) -> Case:
    """Judge whether a method is ahead of others on a problem at a gap."""
    verdict = first(mine, others, strict=strict)
    best = min(others.values(), key=_rank)
    tied = mine.reached and mine.high == best.high
    judged = verdict in (Verdict.HOLDS, Verdict.FAILS)
    close = judged and not tied and overlapping(mine, others)
    entries = {claimant: mine} | dict(others)
    note = ", ".join(f"{name} {shown(n, measure)}" for name, n in entries.items())
    brief = f"{shown(mine, measure)} : {shown(best, measure)}"
    return Case(problem, gap, verdict, close, tied, note, brief, ratio(mine, best))


def ratio(mine: Need, other: Need) -> float | None:
    """Return what one method needs over what another does; None if neither is known."""
    if not (mine.reached or other.reached):
        return None
    if not (mine.reached and other.reached):
        return 0.0 if mine.reached else math.inf
    return mine.high / other.high if other.high > 0 else None


def best_of(needs: Iterable[Need]) -> Need:
    """Return the least of several needs."""
    return min(needs, key=_rank)


def shown(n: Need, measure: Measure) -> str:
    """Return a median for people: a number, or what is known of it."""

    def number(x: float) -> str:
        return f"{x:.0f}" if measure == "epochs" and x >= 100 else f"{x:.3g}"

    if n.reached:
        return number(n.low)
    return "never" if math.isinf(n.low) else f"> {number(n.low)}"


@dataclass(frozen=True)
class Summary:
    """Numbers of cases: decided ones by their verdict, and close, tied and open ones apart."""

    holds: int
    fails: int
    close: int
    tied: int
    open: int

    @property
    def total(self) -> int:
        """All cases that were run."""
        return self.holds + self.fails + self.close + self.tied + self.open

    def __str__(self) -> str:
        words = [f"holds {self.holds}", f"does not {self.fails}"]
        rest = (("close", self.close), ("tied", self.tied), ("open", self.open))
        return ", ".join(words + [f"{word} {count}" for word, count in rest if count])


def summary(cases: list[Case]) -> Summary:
    """Count verdicts, without the cases that were not run."""
    return Summary(
        holds=sum(c.decided and c.verdict is Verdict.HOLDS for c in cases),
        fails=sum(c.decided and c.verdict is Verdict.FAILS for c in cases),
        close=sum(c.close for c in cases),
        tied=sum(c.tied and c.verdict is not Verdict.OPEN for c in cases),
        open=sum(c.verdict is Verdict.OPEN for c in cases),
    )
