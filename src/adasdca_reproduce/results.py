"""Stored runs as curves, and how long each method needed to a gap."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from adasdca.duality.certificate import relative_gap
from adasdca_reproduce.experiments import DATA, EXPERIMENTS, LOSSES, METHODS
from adasdca_reproduce.store import Record, standing

Array = NDArray[np.float64]
#: Seconds are counted in two ways: with a certificate after each epoch of every method, and with
#: the pass that makes it charged to those methods alone that draw their probabilities from it.
Measure = Literal["epochs", "seconds", "own seconds"]
#: Methods that make no use of what the surveys show.
BLIND = frozenset({"sdca", "sdca-perm", "iprox-sdca", "quartz", "option II", "adasdca"})

#: Below any relative gap that doubles can tell from 0: an exact 0 is drawn here.
FLOOR = 1e-17


@dataclass(frozen=True)
class Run:
    """One run: its relative gap from survey to survey."""

    #: Updates over n, time since the call, the same without surveys that the method has no use for,
    #: and the least (P − D)/P so far.
    epochs: Array
    seconds: Array
    own: Array
    gap: Array
    #: Whether it went to its end, the limits of double precision; False if the budget cut it off.
    ended: bool

    @classmethod
    def of(cls, record: Record) -> Run:
        """Take what figures and verdicts need from a stored run."""
        history = {name: np.array(column) for name, column in record["history"].items()}
        pairs = zip(history["gap"].tolist(), history["primal"].tolist(), strict=True)
        relative = np.array([relative_gap(gap, primal) for gap, primal in pairs])
        seconds = history["seconds"].astype(np.float64)
        spent = record.get("timings", {}).get("survey", 0.0) if _is_blind(record["method"]) else 0.0
        # Surveys cost the same each; there is one at the beginning and one after every epoch.
        share = np.arange(1, len(seconds) + 1) / max(len(seconds), 1)
        return cls(
            history["updates"] / record["n"],
            seconds,
            np.maximum.accumulate(np.maximum(seconds - spent * share, 0.0)),
            np.minimum.accumulate(relative),
            record["status"] in ("converged", "stalled"),
        )

    def at(self, measure: Measure) -> Array:
        """Return the epochs or the seconds of the surveys."""
        return {"epochs": self.epochs, "seconds": self.seconds, "own seconds": self.own}[measure]

    def reach(self, gap: float, measure: Measure) -> tuple[float, float]:
        """Return bounds of the epochs or seconds to a gap: equal if it was reached.

        A run that its budget cut off needs at least what it had; one that ended above the gap
        never reaches it. Surveys are made after whole epochs; one more, where a budget cut an epoch
        off, counts as made at its end, so that no method is looked at more closely than others.
        """
        k = int(np.searchsorted(-self.gap, -gap))
        x = self.at(measure)
        if k < len(self.gap):
            reached = float(math.ceil(x[k])) if measure == "epochs" else float(x[k])
            return reached, reached
        return (math.inf if self.ended else float(x[-1])), math.inf

    def crossing(self, gaps: Array, measure: Measure) -> Array:
        """Return where the curve, straight in log(gap) between surveys, crosses gaps; inf if not.

        `gaps` fall.
        """
        x, y = self.at(measure), np.log(np.maximum(self.gap, FLOOR))
        first = np.concatenate([[True], np.diff(y) < 0])  # interpolation wants a strict order
        found = np.interp(-np.log(gaps), -y[first], x[first], left=x[0], right=np.inf)
        return np.where(gaps >= self.gap[-1], found, np.inf)


def _is_blind(method: str) -> bool:
    return method in BLIND or method.startswith("option II,")


@dataclass(frozen=True)
class Need:
    """Epochs or seconds that a method needs to a gap, over its seeds."""

    #: Bounds of the median, equal unless too many runs were cut off by their budget.
    low: float
    high: float
    #: Range over the seeds; `greatest` is infinite if a run did not reach the gap.
    least: float
    greatest: float

    @property
    def reached(self) -> bool:
        """Whether the median is known."""
        return math.isfinite(self.high)


def need(runs: Iterable[Run], gap: float, measure: Measure) -> Need:
    """Return what a method needs to a gap."""
    bounds = [run.reach(gap, measure) for run in runs]
    lows, highs = zip(*bounds, strict=True)
    return Need(statistics.median(lows), statistics.median(highs), min(lows), max(highs))


Problem = tuple[str, str]


def _order(record: Record) -> tuple[object, ...]:
    """Sort as the paper does, and what it does not know by name at the end."""
    known = (tuple(EXPERIMENTS), LOSSES, DATA, tuple(METHODS))
    names = [record[key] for key in ("experiment", "loss", "data", "method")]
    places = [
        order.index(name) if name in order else len(order)
        for order, name in zip(known, names, strict=True)
    ]
    return (*(part for pair in zip(places, names, strict=True) for part in pair), record["seed"])


class Results:
    """The standing runs of a store, by experiment, problem (data, loss) and method."""

    def __init__(self, records: Iterable[Record]) -> None:
        found = [r for r in standing(list(records)) if r["status"] != "failed"]
        self.records = sorted(found, key=_order)  # whichever process was the faster
        self._runs: dict[tuple[str, str, str, str], list[Run]] = {}
        for record in self.records:
            if "history" in record:
                key = record["experiment"], record["data"], record["loss"], record["method"]
                self._runs.setdefault(key, []).append(Run.of(record))

    def runs(self, experiment: str, problem: Problem, method: str) -> list[Run]:
        """Return the runs of a method on a problem, one a seed; none if it was not run."""
        return self._runs.get((experiment, *problem, method), [])

    def problems(self, experiment: str) -> list[Problem]:
        """Return the problems of an experiment that were run, loss by loss."""
        return list(dict.fromkeys((d, loss) for e, d, loss, _ in self._runs if e == experiment))

    def methods(self, experiment: str, problem: Problem) -> list[str]:
        """Return the methods that were run on a problem."""
        return [m for e, d, loss, m in self._runs if e == experiment and (d, loss) == problem]

    def needs(
        self, experiment: str, problem: Problem, gap: float, measure: Measure
    ) -> dict[str, Need]:
        """Return what each method needed on a problem."""
        return {
            method: need(self.runs(experiment, problem, method), gap, measure)
            for method in self.methods(experiment, problem)
        }

    def of(self, experiment: str) -> list[Record]:
        """Return the stored runs of an experiment."""
        return [r for r in self.records if r["experiment"] == experiment]
