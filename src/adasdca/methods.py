"""The methods of the paper, as their parameters; `schedules` runs them.

| name         | class         | which rows, how often                                             |
|--------------|---------------|-------------------------------------------------------------------|
| `sdca`       | `SDCA`        | uniform, with replacement                                         |
| `sdca-perm`  | `SDCAPerm`    | a fresh random permutation each epoch                             |
| `iprox-sdca` | `IProxSDCA`   | the fixed law p_i ∝ v_i + nλγ, eq. (pstar)                        |
| `quartz`     | `Quartz`      | a fixed law, with the averaged primal step of QUARTZ              |
| `adasdca`    | `AdaSDCA`     | Algorithm 1: residues and law anew before every step              |
| `adasdca+`   | `AdaSDCAPlus` | Algorithm 2: residues once an epoch, p_i ← p_i/m after each pick  |
| `auto`       | `Auto`        | permutations, adaptive epochs or a finish, as the surveys advise  |
| your own     | `Custom`      | what a function given to `register_method` says                   |
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from adasdca.sampling import Rule, get_rule
from adasdca.survey import Survey

#: From a survey and a generator to the rows that the next epoch visits, in order.
Picker = Callable[[Survey, np.random.Generator], Any]


def _check_choice(owner: str, name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(
            f"{owner}: {name} = {value!r} is unknown; "
            f"choose one of {', '.join(map(repr, choices))}."
        )


def _is_number(x: Any) -> bool:
    return not isinstance(x, bool) and isinstance(x, numbers.Real) and math.isfinite(x)


@dataclass(frozen=True)
class SDCA:
    """Stochastic dual coordinate ascent, rows drawn uniformly with replacement."""

    name: ClassVar[str] = "sdca"


@dataclass(frozen=True)
class SDCAPerm:
    """Dual coordinate ascent through a fresh random permutation of the rows each epoch."""

    name: ClassVar[str] = "sdca-perm"


@dataclass(frozen=True)
class IProxSDCA:
    """SDCA with the optimal fixed law p_i ∝ v_i + nλγ (importance sampling)."""

    name: ClassVar[str] = "iprox-sdca"


@dataclass(frozen=True)
class Quartz:
    """QUARTZ (Qu, Richtárik and Zhang, 2015), for smooth losses.

    Parameters
    ----------
    sampling : {"uniform", "importance"}
        The fixed law from which the rows are drawn.
    """

    sampling: Literal["uniform", "importance"] = "uniform"
    name: ClassVar[str] = "quartz"

    def __post_init__(self) -> None:
        _check_choice("Quartz", "sampling", self.sampling, ("uniform", "importance"))


@dataclass(frozen=True)
class AdaSDCA:
    """Algorithm 1 of the paper: the law is recomputed before every step.

    Parameters
    ----------
    rule : {"relaxed", "optimal"}
        ``"relaxed"``: p_i ∝ |κ_i|√(v_i + nλγ), eq. (optipsdf), which the theory supports for
        quadratic losses. ``"optimal"``: the exact solution of eq. (optp), supported for every
        smooth loss.
    """

    rule: Literal["relaxed", "optimal"] = "relaxed"
    name: ClassVar[str] = "adasdca"

    def __post_init__(self) -> None:
        _check_choice("AdaSDCA", "rule", self.rule, ("relaxed", "optimal"))


@dataclass(frozen=True)
class AdaSDCAPlus:
    """Algorithm 2 of the paper: an adaptive law once an epoch, p_i ← p_i/m after each pick.

    Parameters
    ----------
    option : "I", "II", the name of a registered rule, or a callable
        The law at the start of an epoch: adaptive (I), importance (II), or your own function from a
        survey to weights.
    m : float or "auto", default 2.0
        How much less likely a row becomes after a visit, above 1. ``"auto"`` follows the decay of
        the residues seen from survey to survey.
    epoch : float, default 1.0
        Picks in an epoch, in units of n.
    sampler : {"plan", "tree"}
        How the picks are drawn: all at once (`plan`, O(n)) or one by one from a tree of sums
        (`tree`, the paper's Random Counters, O(n log n)). Both have the same law.
    """

    option: str | Rule = "I"
    m: float | Literal["auto"] = 2.0
    epoch: float = 1.0
    sampler: Literal["plan", "tree"] = "plan"
    name: ClassVar[str] = "adasdca+"

    def __post_init__(self) -> None:
        get_rule(self.option)
        m: Any = self.m  # it may be an array, which `!=` would compare entry by entry
        if not (isinstance(m, str) and m == "auto") and not (_is_number(m) and m > 1):
            raise ValueError(
                f"AdaSDCAPlus: m = {self.m!r} is not allowed; "
                "choose a finite number above 1 or 'auto'."
            )
        if not (_is_number(self.epoch) and self.epoch > 0):
            raise ValueError(
                f"AdaSDCAPlus: epoch = {self.epoch!r} is not allowed; "
                "choose a finite number above 0."
            )
        _check_choice("AdaSDCAPlus", "sampler", self.sampler, ("plan", "tree"))


@dataclass(frozen=True)
class Auto:
    """The fastest way to a certified solution: the program chooses.

    Permutations while all rows matter alike, adaptive epochs with m from the decay seen when they
    do not, and a finish as soon as it is the cheaper way to the gap asked for: Newton steps, or for
    losses with kinks linear systems on their free duals.
    `Solution.phases` tells what was done.
    """

    name: ClassVar[str] = "auto"


@dataclass(frozen=True)
class Custom:
    """A method of your own, by the name under which `register_method` knows it."""

    name: str

    def __post_init__(self) -> None:
        name: object = self.name  # it may be unhashable
        if not isinstance(name, str) or name not in PICKERS:
            raise ValueError(
                f"Custom: name = {self.name!r} is not registered; call "
                "adasdca.register_method(name, function) first."
            )

    def picker(self) -> Picker:
        """Return the function for one solve; of a class, a new object."""
        known = PICKERS[self.name]
        made: Picker = known() if isinstance(known, type) else known
        return made


BuiltIn = SDCA | SDCAPerm | IProxSDCA | Quartz | AdaSDCA | AdaSDCAPlus | Auto
Method = BuiltIn | Custom

METHODS: dict[str, type[BuiltIn]] = {
    cls.name: cls for cls in (SDCA, SDCAPerm, IProxSDCA, Quartz, AdaSDCA, AdaSDCAPlus, Auto)
}
#: Functions, or classes of callable objects, behind `Custom`.
PICKERS: dict[str, Any] = {}
#: What has been registered, in order.
REGISTERED: dict[str, Method] = {}


def get_method(method: str | Method) -> Method:
    """Return the method of that name, with default parameters; an object is returned as it is."""
    if isinstance(method, Method):
        return method
    name: object = method  # it may be unhashable
    if isinstance(name, str) and name in REGISTERED:
        return REGISTERED[name]
    if not isinstance(name, str) or name not in METHODS:
        known = ", ".join(map(repr, [*METHODS, *REGISTERED]))
        raise ValueError(
            f"method = {method!r} is unknown; choose one of {known}, "
            "or pass a method object such as AdaSDCAPlus(m=4)."
        )
    return METHODS[name]()
