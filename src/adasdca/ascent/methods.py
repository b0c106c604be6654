"""The methods of the paper, as their parameters; each makes the schedule that runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from adasdca.ascent.sampling import Rule, get_rule
from adasdca.ascent.schedules import (
    AdaptiveSchedule,
    CoherentSchedule,
    ImportanceSchedule,
    PermutationSchedule,
    Picker,
    PickSchedule,
    QuartzSchedule,
    Schedule,
    StepwiseSchedule,
    UniformSchedule,
)
from adasdca.errors import Argument, InputError
from adasdca.problem.data import is_number
from adasdca.problem.problem import Problem

#: The longest epoch, in visits per row: what is drawn for one is in memory.
LONGEST = 1000

#: Functions, or classes of callable objects, behind `Custom`.
PICKERS: dict[str, Any] = {}


def _check_choice(owner: str, name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(
            f"{owner}: {name} = {value!r} is unknown; "
            f"choose one of {', '.join(map(repr, choices))}."
        )


def _check_smooth(method: object, problem: Problem) -> None:
    if problem.loss.smoothness == 0:
        raise InputError(
            f"method = {method!r} needs a smooth loss (γ > 0); choose a smooth loss such as "
            "'smoothed_hinge', or another method such as 'adasdca+'."
        ).about("method")


@dataclass(frozen=True)
class SDCA:
    """Stochastic dual coordinate ascent, rows drawn uniformly with replacement."""

    name: ClassVar[str] = "sdca"
    ascends: ClassVar[bool] = True

    def schedule(self, problem: Problem, facts: Any, tol: float, threads: int) -> Schedule:
        """Return what the method does during one solve."""
        return UniformSchedule()


@dataclass(frozen=True)
class SDCAPerm:
    """Dual coordinate ascent through a fresh random permutation of the rows each epoch."""

    name: ClassVar[str] = "sdca-perm"
    ascends: ClassVar[bool] = True

    def schedule(self, problem: Problem, facts: Any, tol: float, threads: int) -> Schedule:
        """Return what the method does during one solve."""
        return PermutationSchedule()


@dataclass(frozen=True)
class IProxSDCA:
    """SDCA with the optimal fixed distribution p_i ∝ v_i + nλγ (importance sampling)."""

    name: ClassVar[str] = "iprox-sdca"
    ascends: ClassVar[bool] = True

    def schedule(self, problem: Problem, facts: Any, tol: float, threads: int) -> Schedule:
        """Return what the method does during one solve."""
        return ImportanceSchedule()


@dataclass(frozen=True)
class Quartz:
    """QUARTZ (Qu, Richtárik and Zhang, 2015), for smooth losses.

    Parameters
    ----------
    sampling : {"uniform", "importance"}
        The fixed distribution from which the rows are drawn.
    step : {"averaged", "exact"}
        ``"averaged"``: β_i moves by the share θ/p_i towards −φ'(x_i·w). ``"exact"``: it maximises
        the dual in row i at the averaged w. Both have the rate θ = min_i p_i γ/(γ + q_i).
    """

    sampling: Literal["uniform", "importance"] = "uniform"
    step: Literal["averaged", "exact"] = "averaged"
    name: ClassVar[str] = "quartz"
    ascends: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_choice("Quartz", "sampling", self.sampling, ("uniform", "importance"))
        _check_choice("Quartz", "step", self.step, ("averaged", "exact"))

    def schedule(self, problem: Problem, facts: Any, tol: float, threads: int) -> Schedule:
        """Return what the method does during one solve; an error says what does not fit."""
        if problem.fit_intercept:
            # Its averages lag behind the multipliers, which then overshoot and diverge.
            raise InputError(
                f"method = {self!r} cannot fit an intercept; pass ",
                Argument("fit_intercept", False),
                ", or choose another method such as 'adasdca+'.",
            ).about("method")
        _check_smooth(self, problem)
        return QuartzSchedule(self.sampling, self.step == "exact")


@dataclass(frozen=True)
class AdaSDCA:
    """Algorithm 1 of the paper: the distribution is recomputed before every step.

    Parameters
    ----------
    rule : {"relaxed", "optimal", "step"} or callable
        ``"relaxed"``: p_i ∝ |κ_i|√(v_i + nλγ), eq. (optipsdf), which the theory supports for
        quadratic losses. ``"optimal"``: the exact solution of eq. (optp), supported for every
        smooth loss. ``"step"``: the relaxed rule with what the exact steps gain in place of the
        residues, supported for every smooth loss, and the same for quadratic ones. A function from
        a survey to weights: any probabilities that are coherent, positive where a row has a
        residue. Each step then needs a survey of its own, and is counted as an epoch.
    """

    rule: Literal["relaxed", "optimal", "step"] | Rule = "relaxed"
    name: ClassVar[str] = "adasdca"
    ascends: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not callable(self.rule):
            _check_choice("AdaSDCA", "rule", self.rule, ("relaxed", "optimal", "step"))

    def schedule(self, problem: Problem, facts: Any, tol: float, threads: int) -> Schedule:
        """Return what the method does during one solve; an error says what does not fit."""
        if callable(self.rule):
            return CoherentSchedule(self.rule)
        if self.rule == "optimal":
            _check_smooth(self, problem)
        return StepwiseSchedule(self.rule)


@dataclass(frozen=True)
class AdaSDCAPlus:
    """Algorithm 2 of the paper: adaptive probabilities once an epoch, p_i ← p_i/m after each pick.

    Parameters
    ----------
    option : "I", "II", "III", "I+III", the name of a registered rule, or a callable
        The probabilities at the start of an epoch: by the residues (I), importance (II), by the
        gains of the exact steps (III), the mean of I and III, or your own function from a survey
        to weights.
    m : float or "auto", default 2.0
        How much less likely a row becomes after a visit, above 1. ``"auto"`` follows the decay of
        the residues seen from survey to survey.
    epoch : float, default 1.0
        Picks in an epoch, in units of n.
    sampler : {"plan", "tree"}
        How the picks are drawn: all at once (`plan`, O(n)) or one by one from a tree of sums
        (`tree`, the paper's Random Counters, O(n log n)). Both have the same distribution.
    """

    option: str | Rule = "I"
    m: float | Literal["auto"] = 2.0
    epoch: float = 1.0
    sampler: Literal["plan", "tree"] = "plan"
    name: ClassVar[str] = "adasdca+"
    ascends: ClassVar[bool] = True

    def __post_init__(self) -> None:
        get_rule(self.option)
        m: Any = self.m  # it may be an array, which `!=` would compare entry by entry
        if not (isinstance(m, str) and m == "auto") and not (is_number(m) and m > 1):
            raise InputError(
                f"AdaSDCAPlus: m = {self.m!r} is not allowed; "
                "choose a finite number above 1 or 'auto'."
            )
        if not (is_number(self.epoch) and 0 < self.epoch <= LONGEST):
            raise InputError(
                f"AdaSDCAPlus: epoch = {self.epoch!r} is not allowed; "
                f"choose a number above 0, {LONGEST} at most."
            )
        _check_choice("AdaSDCAPlus", "sampler", self.sampler, ("plan", "tree"))

    def schedule(self, problem: Problem, facts: Any, tol: float, threads: int) -> Schedule:
        """Return what the method does during one solve."""
        return AdaptiveSchedule(problem, self.option, self.m, self.epoch, self.sampler)


@dataclass(frozen=True)
class Custom:
    """A method of your own, by the name under which `register_method` knows it."""

    name: str
    ascends: ClassVar[bool] = True

    def __post_init__(self) -> None:
        name: object = self.name  # it may be unhashable
        if not isinstance(name, str) or name not in PICKERS:
            raise InputError(
                f"Custom: name = {self.name!r} is not registered; call "
                "adasdca.register_method(name, function) first."
            )

    def picker(self) -> Picker:
        """Return the function for one solve; of a class, a new object."""
        known = PICKERS[self.name]
        made: Picker = known() if isinstance(known, type) else known
        return made

    def schedule(self, problem: Problem, facts: Any, tol: float, threads: int) -> Schedule:
        """Return what the method does during one solve."""
        return PickSchedule(self.name, self.picker())
