"""A schedule turns surveys into plans, epoch by epoch; it is what a method does during one solve.

A plan is what an epoch will do to a workspace: a sequence of rows drawn beforehand, or, for
Algorithm 1, which cannot know its rows beforehand, a number of steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.ascent.sampling import Rule, check_law, get_rule, importance_weights
from adasdca.ascent.survey import Survey

Picks = NDArray[np.int32]
#: From a survey and a generator to the rows that the next epoch visits, in order.
Picker = Callable[[Survey, np.random.Generator], Any]
Array = NDArray[np.float64]


class Plan(Protocol):
    """An epoch to come; `label` says in a word or two what it does.

    An attribute `clock` names the entry of `Solution.timings` it counts to, "ascent" unless given.
    """

    @property
    def label(self) -> str:
        """What the plan does."""

    def run(self, backend: Any, seconds: float) -> int:
        """Carry the plan out, for at most that many seconds; return the number of updates made."""


class Schedule(Protocol):
    """What a method plans from survey to survey."""

    @property
    def needs(self) -> frozenset[str]:
        """Arrays of the survey, beyond `beta` and `coef`, that the plans are made from."""

    def plan(self, survey: Survey, key: int) -> Plan | None:
        """Plan the next epoch; None if there is no row left to visit."""


@dataclass(frozen=True)
class Ascent:
    """Exact coordinate steps on the rows given."""

    picks: Picks
    label: str = "epochs"

    def run(self, backend: Any, seconds: float) -> int:
        """Take the steps, for at most that many seconds; return their number."""
        return backend.workspace.ascend(self.picks, seconds)


@dataclass(frozen=True)
class TreeAscent:
    """Exact coordinate steps on rows drawn one by one, against the clock, from a tree of sums."""

    law: Array
    m: float
    count: int
    key: int
    label: str = "epochs"

    def run(self, backend: Any, seconds: float) -> int:
        """Draw the rows and take the steps."""
        start = time.perf_counter()
        picks = _core.draw_tree(self.law, self.m, self.count, self.key, seconds)
        return backend.workspace.ascend(picks, seconds - (time.perf_counter() - start))


@dataclass(frozen=True)
class AveragedAscent:
    """QUARTZ's steps on the rows given."""

    picks: Picks
    probability: Array
    theta: float
    label: str = "averaged epochs"

    def run(self, backend: Any, seconds: float) -> int:
        """Take the steps, for at most that many seconds; return their number."""
        updates = backend.workspace.quartz(self.picks, self.probability, self.theta, seconds)
        backend.workspace.show_average()
        return updates


@dataclass(frozen=True)
class AdaptiveSteps:
    """Steps of Algorithm 1, each row drawn from the law at that moment."""

    count: int
    key: int
    optimal: bool
    label: str = "adaptive steps"

    def run(self, backend: Any, seconds: float) -> int:
        """Take the steps, for at most that many seconds; return their number."""
        return backend.workspace.ascend_adaptively(self.optimal, self.count, self.key, seconds)


@dataclass(frozen=True)
class UniformSchedule:
    """n rows, drawn with replacement."""

    needs = frozenset[str]()

    def plan(self, survey: Survey, key: int) -> Plan:
        """Plan the next epoch."""
        n = len(survey.beta)
        return Ascent(_core.draw_uniform(n, n, key))


@dataclass(frozen=True)
class PermutationSchedule:
    """Every row once, in random order."""

    needs = frozenset[str]()

    def plan(self, survey: Survey, key: int) -> Plan:
        """Plan the next epoch."""
        return Ascent(_core.draw_permutation(len(survey.beta), key))


class ImportanceSchedule:
    """n rows from the fixed law of importance sampling."""

    needs = frozenset[str]()

    def __init__(self) -> None:
        self._table: _core.AliasTable | None = None

    def plan(self, survey: Survey, key: int) -> Plan:
        """Plan the next epoch."""
        if self._table is None:
            self._table = _core.AliasTable(
                importance_weights(survey.curvature, survey.gamma, survey.weight)
            )
        return Ascent(self._table.draw(len(survey.beta), key))


class QuartzSchedule:
    """n rows from a fixed law p, for steps of size θ = min_i p_i γ/(γ + q_i)."""

    needs = frozenset[str]()

    def __init__(self, sampling: str) -> None:
        self._uniform = sampling == "uniform"
        self._table: _core.AliasTable | None = None

    def plan(self, survey: Survey, key: int) -> Plan:
        """Plan the next epoch."""
        if self._table is None:
            law = importance_weights(survey.curvature, survey.gamma, survey.weight)
            if self._uniform:
                law = (survey.weight > 0).astype(np.float64)
            self._law = law / law.sum()
            self._table = _core.AliasTable(self._law)
            pace = self._law * survey.gamma / (survey.gamma + survey.curvature)
            self._theta = float(pace[self._law > 0].min())
        return AveragedAscent(self._table.draw(len(survey.beta), key), self._law, self._theta)


@dataclass(frozen=True)
class StepwiseSchedule:
    """Algorithm 1: n steps between two surveys."""

    rule: str
    needs = frozenset[str]()

    def plan(self, survey: Survey, key: int) -> Plan:
        """Plan the next epoch."""
        return AdaptiveSteps(len(survey.beta), key, self.rule == "optimal")


class AdaptiveSchedule:
    """Algorithm 2: a law at the start of each epoch, thinned m-fold at each visit.

    Parameters
    ----------
    option, m, epoch, sampler
        The parameters of `AdaSDCAPlus`.
    intercept : bool
        Whether an intercept is fitted.
    """

    def __init__(
        self,
        option: str | Rule = "I",
        m: float | Literal["auto"] = 2.0,
        epoch: float = 1.0,
        sampler: str = "plan",
        intercept: bool = False,
    ) -> None:
        self._intercept = intercept
        self._rule = get_rule(option)
        self._name = repr(option)
        self._epoch = epoch
        self._tree = sampler == "tree"
        self._draw = _core.draw_tree if self._tree else _core.Planner().plan
        self._decay = Decay() if m == "auto" else None
        self._m = 2.0 if m == "auto" else float(m)
        builtin: dict[object, set[str]] = {"I": {"adaptive"}, "II": set()}
        needs = builtin.get(option, {"adaptive", "score", "residue", "share"})
        self.needs = frozenset(needs | ({"adaptive"} if self._decay else set()))

    def plan(self, survey: Survey, key: int) -> Plan | None:
        """Plan the next epoch; None if the law is 0 everywhere and will stay so."""
        n = len(survey.beta)
        law = check_law(self._rule(survey), n, self._name)
        if not law.any():
            if not self._intercept:
                return None
            # The multiplier has moved on since the survey: all rows may have to follow.
            law = (survey.weight > 0).astype(np.float64)
        if self._decay:
            self._m = self._decay.observe(survey, self._m)
        count = max(1, round(self._epoch * n))
        if self._tree and not self._decay:
            return TreeAscent(law, self._m, count, key)
        picks = self._draw(law, self._m, count, key)
        if self._decay:
            self._decay.remember(survey, picks)
        return Ascent(picks)


class PickSchedule:
    """The rows that a function of one's own picks."""

    needs = frozenset({"adaptive", "score", "residue", "share"})

    def __init__(self, name: str, picker: Picker) -> None:
        self._name = name
        self._pick = picker

    def plan(self, survey: Survey, key: int) -> Plan | None:
        """Plan the next epoch; None if no row was picked."""
        rows = self._pick(survey, np.random.default_rng(key))
        picks = check_picks(rows, len(survey.beta), self._name)
        return Ascent(picks) if len(picks) else None


def check_picks(rows: object, n: int, name: str) -> Picks:
    """Return the rows a method picked as int32; the core does not look whether they exist."""
    picks = np.asarray(rows)
    if picks.ndim != 1 or (picks.size and not np.issubdtype(picks.dtype, np.integer)):
        raise ValueError(
            f"method {name!r} returned an array of shape {picks.shape} and type {picks.dtype}; it "
            "must return the numbers of the rows to visit: one dimension, integers."
        )
    if picks.size and not 0 <= picks.min() <= picks.max() < n:
        raise ValueError(
            f"method {name!r} returned rows {picks.min()} to {picks.max()}; rows are 0 to {n - 1}."
        )
    return np.ascontiguousarray(picks, dtype=np.int32)


class Decay:
    """An estimate of m from what visits did: a row's weight falls about m-fold at each.

    The mean of log(before/after) per visit, over a sample of the rows visited in the last epoch, is
    an estimate of log m; m stays between 1.5, below which the law hardly adapts, and 10, beyond
    which an epoch is a permutation.
    """

    least, most, sample = 1.5, 10.0, 4096

    def __init__(self) -> None:
        self._before: Array | None = None

    def remember(self, survey: Survey, picks: Picks) -> None:
        """Keep the weights before an epoch and the visits it will make."""
        assert survey.adaptive is not None
        stride = -(-len(survey.adaptive) // self.sample)
        self._stride = stride
        self._before = survey.adaptive[::stride].copy()
        self._picks = picks

    def observe(self, survey: Survey, m: float) -> float:
        """Return the m that the last epoch shows, or the one given if it shows none."""
        if self._before is None:
            return m
        assert survey.adaptive is not None
        after = survey.adaptive[:: self._stride]
        # Counted only now: after the last epoch nobody asks.
        visits = np.bincount(self._picks, minlength=len(survey.adaptive))[:: self._stride]
        seen = (visits > 0) & (self._before > 0)
        if not seen.any():
            return m
        # A weight that fell to 0 fell at least by the range of what is left.
        floor = 1e-3 * self._before[seen]
        fall = np.log(self._before[seen] / np.maximum(after[seen], floor))
        rate = float(fall.sum() / visits[seen].sum())
        return float(np.clip(np.exp(rate), self.least, self.most))
