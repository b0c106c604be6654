"""Claims about what goes on inside runs: bounds, rates, rows drawn, residues of visited rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from adasdca_reproduce.claims import Claim
from adasdca_reproduce.rates import Rates, rates, watched
from adasdca_reproduce.results import Results
from adasdca_reproduce.store import Record
from adasdca_reproduce.verdicts import Case, Verdict

#: Epochs that begin below this relative gap say more of rounding than of the method.
PRECISE = 1e-10
#: The gap at which a bound is read off, and the share of draws that is "very small".
TARGET, SMALL = 1e-6, 0.05


@dataclass(frozen=True)
class OfRates(Claim):
    """A sentence on gaps and rates beside the theory, judged on every problem."""

    method: str
    losses: tuple[str, ...]  #: The losses that its theorem covers.
    judge: Callable[[Rates], tuple[bool, str]]  #: Whether it holds, and the numbers behind that.

    def cases(self, results: Results) -> list[Case]:
        """Judge it in every case that was run."""
        found = []
        for problem in results.problems(self.experiment):
            if problem[1] in self.losses:
                seen = rates(results, problem, self.method)
                if seen is not None:
                    found.append(_case(problem, *self.judge(seen)))
        return found


@dataclass(frozen=True)
class OfVisits(Claim):
    """A sentence on the epochs of a method, judged on every problem by medians."""

    method: str
    #: From the figures of all epochs (see `watching`) to whether it holds, and the numbers.
    judge: Callable[[list[dict[str, Any]]], tuple[bool, str]]

    def cases(self, results: Results) -> list[Case]:
        """Judge it in every case that was run."""
        found = []
        for problem in results.problems(self.experiment):
            epochs = [e for r in watched(results, problem, self.method) for e in epochs_of(r)]
            if epochs:
                found.append(_case(problem, *self.judge(epochs)))
        return found


def _case(problem: tuple[str, str], holds: bool, note: str) -> Case:
    return Case(problem, None, Verdict.HOLDS if holds else Verdict.FAILS, note=note)


def epochs_of(record: Record) -> list[dict[str, Any]]:
    """Return the epochs of a stored run that begin above the limits of precision."""
    history, visits = record["history"], record["visits"]
    pairs = zip(history["gap"], history["primal"], strict=True)
    above = [gap > PRECISE * primal for gap, primal in pairs]
    rows = zip(*visits.values(), strict=True)
    return [
        dict(zip(visits, row, strict=True)) for row, use in zip(rows, above, strict=False) if use
    ]


def below_bound(seen: Rates) -> tuple[bool, str]:
    """Judge whether the gap is never above its bound."""
    told = seen.gap > PRECISE
    times = float((seen.bound / seen.gap)[told].min())
    return bool((seen.gap <= seen.bound * (1 + 1e-9))[told].all()), f"bound : gap ≥ {times:.3g}"


def bound_tells(seen: Rates) -> tuple[bool, str]:
    """Judge whether the bound, when the gap has arrived, is below the gap of the beginning."""
    k = arrival(seen)
    note = f"after {seen.epochs[k]:.0f} epochs: relative gap {seen.gap[k]:.1e}, "
    return bool(seen.bound[k] < seen.gap[0]), note + f"bound {seen.bound[k]:.1e}"


def arrival(seen: Rates) -> int:
    """Return the survey at which the gap reaches its target, or the last one."""
    there = np.flatnonzero(seen.gap <= TARGET)
    return int(there[0]) if len(there) else len(seen.gap) - 1


def faster_rate(seen: Rates) -> tuple[bool, str]:
    """Judge whether θ̃_t is never below θ_*."""
    ratio = seen.ratio[seen.gap > PRECISE]
    note = f"θ̃/θ_* from {ratio.min():.3g} to {ratio.max():.3g}, median {np.median(ratio):.3g}"
    return bool((ratio >= 1 - 1e-9).all()), note


def residues_fall(epochs: list[dict[str, Any]]) -> tuple[bool, str]:
    """Judge whether most of the rows that an epoch visits end it with a smaller residue."""
    share = _median(e["fell"] for e in epochs)
    kept = [_median(e["kept"][k] for e in epochs) for k in range(len(epochs[0]["kept"]))]
    words = [f"{k}: {x:.2g}" for k, x in enumerate(kept) if x == x]
    note = f"{share:.0%} of the visited rows; what is left by number of visits, {', '.join(words)}"
    return share > 0.5, note


def probabilities_follow(epochs: list[dict[str, Any]]) -> tuple[bool, str]:
    """Judge whether thinning brings the probabilities nearer to those of the new residues."""
    moved, left = (_median(e[name] for e in epochs) for name in ("moved", "left"))
    return left < moved, f"total variation {left:.2f} with the division by m, {moved:.2f} without"


def rarely_repeat(epochs: list[dict[str, Any]]) -> tuple[bool, str]:
    """Judge whether a row is rarely drawn twice in an epoch."""
    share = _median(e["repeats"] for e in epochs)
    return share <= SMALL, f"{share:.1%} of the draws"


def _median(values: Any) -> float:
    known = [v for v in values if v is not None]
    return float(np.median(known)) if known else float("nan")
