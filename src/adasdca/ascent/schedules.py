"""A schedule turns surveys into plans, epoch by epoch: what a method does during one solve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from adasdca.ascent.plans import (
    AdaptiveSteps,
    AveragedDraws,
    Draws,
    Epoch,
    Leave,
    Permutations,
    Probabilities,
    ThinnedDraws,
    Visits,
)
from adasdca.ascent.sampling import Mixture, Rule, StepResidue, check_probabilities, get_rule
from adasdca.ascent.survey import Survey
from adasdca.problem.problem import Problem

#: From a survey and a generator to the rows that the next epoch visits, in order.
Picker = Callable[[Survey, np.random.Generator], Any]


class Schedule(Protocol):
    """What a method plans from survey to survey."""

    @property
    def needs(self) -> frozenset[str]:
        """Arrays of the survey, beyond `beta` and `coef`, that the plans are made from."""

    def plan(self, survey: Survey, key: int) -> Any:
        """Plan what comes next: an `Epoch`, a phase, `Leave`, or None if nothing is left to do."""


@dataclass(frozen=True)
class UniformSchedule:
    """n rows, drawn with replacement."""

    needs = frozenset[str]()

    def plan(self, survey: Survey, key: int) -> Epoch:
        """Plan the next epoch."""
        return Draws("uniform", key)


@dataclass(frozen=True)
class PermutationSchedule:
    """Every row once, in random order."""

    needs = frozenset[str]()

    def plan(self, survey: Survey, key: int) -> Epoch:
        """Plan the next epoch."""
        return Permutations(1, key)


@dataclass(frozen=True)
class ImportanceSchedule:
    """n rows from the fixed probabilities of importance sampling."""

    needs = frozenset[str]()

    def plan(self, survey: Survey, key: int) -> Epoch:
        """Plan the next epoch."""
        return Draws("importance", key)


@dataclass(frozen=True)
class QuartzSchedule:
    """n rows from fixed probabilities p, for steps of size θ = min_i p_i γ/(γ + q_i)."""

    sampling: Literal["uniform", "importance"]
    exact: bool = False
    needs = frozenset[str]()

    def plan(self, survey: Survey, key: int) -> Epoch:
        """Plan the next epoch."""
        return AveragedDraws(self.sampling, key, self.exact)


@dataclass(frozen=True)
class StepwiseSchedule:
    """Algorithm 1: n steps between two surveys."""

    rule: Literal["relaxed", "optimal", "step"]
    needs = frozenset[str]()

    def plan(self, survey: Survey, key: int) -> Epoch:
        """Plan the next epoch."""
        return AdaptiveSteps(self.rule, key)


class CoherentSchedule:
    """Algorithm 1 with user-defined probabilities: a survey, then a single step.

    Parameters
    ----------
    rule : callable
        From a survey to weights of the rows, positive where a row has a residue.
    """

    needs = frozenset({"adaptive", "score", "residue", "share"})

    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    def plan(self, survey: Survey, key: int) -> Epoch | None:
        """Plan the next step; None if all residues are 0."""
        if survey.active == 0:
            return None
        weights = check_probabilities(self._rule(survey.read_only()), survey.n, repr(self._rule))
        assert survey.adaptive is not None
        if (weights[survey.adaptive > 0] == 0).any():
            i = int(np.flatnonzero((survey.adaptive > 0) & (weights == 0))[0])
            raise ValueError(
                f"rule {self._rule!r} returned weight 0 for row {i}, which has a residue: the "
                "probabilities are not coherent; give every row with a residue a positive weight."
            )
        rows = np.random.default_rng(key).choice(survey.n, size=1, p=weights / weights.sum())
        return Visits(rows.astype(np.int32), "adaptive steps")


class AdaptiveSchedule:
    """Algorithm 2: probabilities at the start of each epoch, thinned m-fold at each visit.

    Parameters
    ----------
    problem : Problem
        The problem whose rows are drawn.
    option, m, epoch, sampler
        The parameters of `AdaSDCAPlus`.
    """

    def __init__(
        self,
        problem: Problem,
        option: str | Rule = "I",
        m: float | Literal["auto"] = 2.0,
        epoch: float = 1.0,
        sampler: str = "plan",
    ) -> None:
        self._intercept = problem.fit_intercept
        self._option = option
        rule = get_rule(option)
        self._rule: Rule = rule(problem) if rule in (StepResidue, Mixture) else rule
        self._m, self._epoch, self._tree = m, epoch, sampler == "tree"
        builtin: dict[object, set[str]] = {
            "I": {"adaptive"},
            "II": set(),
            "III": {"score"},
            "I+III": {"adaptive", "score"},
        }
        needs = builtin.get(option, {"adaptive", "score", "residue", "share"})
        self.needs = frozenset(needs | ({"adaptive"} if m == "auto" else set()))

    def plan(self, survey: Survey, key: int) -> Epoch | Leave | None:
        """Plan the next epoch; None if all probabilities are 0 and will stay so.

        A rule of somebody's own may have other reasons for that than an optimum.
        """
        probabilities: Probabilities
        if self._option == "I":
            probabilities, idle = "adaptive", survey.active == 0
        elif self._option == "II":
            probabilities, idle = "importance", False
        else:
            weights = self._rule(survey.read_only())
            probabilities = check_probabilities(weights, survey.n, repr(self._option))
            idle = not probabilities.any()
        if idle:
            if not self._intercept:
                return None if self._option == "I" else Leave()
            # The multiplier moves on when the epoch begins: all rows may have to follow.
            probabilities = "uniform"
        return ThinnedDraws(probabilities, self._m, self._epoch, key, self._tree)


class PickSchedule:
    """The rows that a user-defined function picks."""

    needs = frozenset({"adaptive", "score", "residue", "share"})

    def __init__(self, name: str, picker: Picker) -> None:
        self._name = name
        self._pick = picker

    def plan(self, survey: Survey, key: int) -> Epoch | Leave:
        """Plan the next epoch; an end if no row was picked."""
        rows = self._pick(survey.read_only(), np.random.default_rng(key))
        indices = check_indices(rows, survey.n, self._name)
        return Visits(indices) if len(indices) else Leave()


def check_indices(rows: object, n: int, name: str) -> NDArray[np.int32]:
    """Return the rows a method picked as int32; the core does not look whether they exist."""
    indices = np.asarray(rows)
    if indices.ndim != 1 or (indices.size and not np.issubdtype(indices.dtype, np.integer)):
        raise ValueError(
            f"method {name!r} returned an array of shape {indices.shape} and type {indices.dtype}; "
            "it must return the numbers of the rows to visit: one dimension, integers."
        )
    if indices.size and not 0 <= indices.min() <= indices.max() < n:
        raise ValueError(
            f"method {name!r} returned rows {indices.min()} to {indices.max()}; rows are 0 to "
            f"{n - 1}."
        )
    return np.ascontiguousarray(indices, dtype=np.int32)
