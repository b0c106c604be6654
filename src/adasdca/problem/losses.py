"""Losses φ(score; y): names, parameters, and their formulas as the compiled core has them.

All but the logistic loss belong to one family. In the coordinates of a row (classification:
z = y·score, b = yβ, t = 1; regression: z = score, b = β, t = y) their conjugate is

    φ*(−b) = −t b + ε|b| + γ b²/2    on    lower ≤ b ≤ upper,

so such a loss is four numbers, and a new one is a class of a few lines (see `PiecewiseQuadratic`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adasdca import _core
from adasdca.errors import InputError, InPython
from adasdca.problem.data import is_number

Kind = Literal["classification", "regression"]
Array = NDArray[np.float64]


class Loss:
    """A convex loss of a score, given a label or target; the base of all losses.

    Attributes
    ----------
    name : str
        The name by which `solve` knows the loss.
    kind : {"classification", "regression"}
        Whether y is a label, −1 or +1, or a real target.
    smoothness : float
        γ: the loss is 1/γ-smooth; 0 for losses with a kink.
    domain : (float, float)
        Bounds of b: where the conjugate is finite.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind]
    #: Whether models of several classes at once have it, the multinomial ones.
    joins_classes: ClassVar[bool] = False

    @property
    def domain(self) -> tuple[float, float]:
        """Bounds of b."""
        raise NotImplementedError

    @property
    def dead_zone(self) -> float:
        """Half the width of the zone without loss around the target."""
        return 0.0

    @property
    def is_quadratic(self) -> bool:
        """Whether φ is one parabola: a Newton step then ends at the optimum."""
        return False

    @property
    def curvature_varies(self) -> bool:
        """Whether φ'' takes more values than 0 and 1/γ."""
        return False

    @property
    def smoothness(self) -> float:
        """γ of the conjugate."""
        raise NotImplementedError

    @cached_property
    def kernel(self) -> _core.Loss:
        """The loss in the compiled core."""
        raise NotImplementedError

    def value(self, score: ArrayLike, y: ArrayLike) -> Array:
        """Return φ(score; y)."""
        return self._map(self.kernel.value, score, y)

    def conjugate(self, beta: ArrayLike, y: ArrayLike) -> Array:
        """Return φ*(−β; y), infinite outside the domain."""
        return self._map(self.kernel.conjugate, beta, y)

    def slope(self, score: ArrayLike, y: ArrayLike) -> Array:
        """Return φ'(score; y), at a kink one of the subgradients."""
        return self._map(self.kernel.slope, score, y)

    def curvature(self, score: ArrayLike, y: ArrayLike) -> Array:
        """Return φ''(score; y), 0 at kinks."""
        return self._map(self.kernel.curvature, score, y)

    def excess(self, beta: ArrayLike, score: ArrayLike, y: ArrayLike) -> Array:
        """Return φ(score) + φ*(−β) + score·β ≥ 0, without cancellation."""
        return self._map(self.kernel.excess, beta, score, y)

    def residual(self, score: ArrayLike, y: ArrayLike) -> Array:
        """Return t − z in the coordinates of a row; arrays of a device stay there."""
        margin = self.kind == "classification"
        found: Array = np.subtract(1.0, np.multiply(y, score)) if margin else np.subtract(y, score)
        return found

    def step(self, beta: ArrayLike, score: ArrayLike, y: ArrayLike, q: ArrayLike) -> Array:
        """Return the β that maximises −φ*(−β) − score·(β − β₀) − q(β − β₀)²/2 from β₀ = `beta`."""
        return self._map(self.kernel.step, beta, score, y, q)

    def is_free(self, beta: Array, y: Array) -> NDArray[np.bool_]:
        """Return which duals are strictly inside a quadratic piece of the conjugate."""
        own = beta * y if self.kind == "classification" else beta
        lower, upper = self.domain
        free: NDArray[np.bool_] = (own > lower) & (own < upper)
        return free & (own != 0) if self.dead_zone > 0 else free

    @staticmethod
    def _map(function: Any, *arrays: ArrayLike) -> Array:
        inputs = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in arrays))
        out = np.empty(inputs[0].shape)
        function(*(np.ascontiguousarray(a).ravel() for a in inputs), out.reshape(-1))
        return out

    def __getstate__(self) -> dict[str, Any]:
        # The kernel is made again where it is needed.
        return {k: v for k, v in self.__dict__.items() if k != "kernel"}


@dataclass(frozen=True)
class PiecewiseQuadratic(Loss):
    """Base of the losses that are four numbers: override `smoothness`, `dead_zone` and `domain`."""

    @property
    def smoothness(self) -> float:
        """γ of the conjugate."""
        return 0.0

    @property
    def dead_zone(self) -> float:
        """ε of the conjugate: half the width of the zone without loss."""
        return 0.0

    @property
    def is_quadratic(self) -> bool:
        """Whether φ is one parabola."""
        return self.domain == (-math.inf, math.inf) and self.dead_zone == 0 < self.smoothness

    @cached_property
    def kernel(self) -> _core.Loss:
        """The loss in the compiled core."""
        margin = self.kind == "classification"
        return _core.Loss.piecewise_quadratic(margin, self.smoothness, self.dead_zone, *self.domain)

    def _check(self, name: str, valid: bool, remedy: str) -> None:
        if not valid:
            raise InputError(
                f"{type(self).__name__}: {name} = {getattr(self, name)!r} is not allowed; {remedy}."
            )


@dataclass(frozen=True)
class Squared(PiecewiseQuadratic):
    """(score − y)² / (2γ)."""

    gamma: float = 1.0
    name = "squared"
    kind = "regression"
    domain = (-math.inf, math.inf)

    def __post_init__(self) -> None:
        self._check("gamma", _positive(self.gamma), "choose a finite number above 0")

    @property
    def smoothness(self) -> float:
        """γ of the conjugate."""
        return float(self.gamma)


@dataclass(frozen=True)
class SmoothedHinge(PiecewiseQuadratic):
    """The hinge with its corner rounded over a length γ; γ = 0 is the hinge itself."""

    gamma: float = 1.0
    name = "smoothed_hinge"
    kind = "classification"
    domain = (0.0, 1.0)

    def __post_init__(self) -> None:
        self._check("gamma", _at_least_0(self.gamma), "choose a finite number, 0 or more")

    @property
    def smoothness(self) -> float:
        """γ of the conjugate."""
        return float(self.gamma)


@dataclass(frozen=True)
class Hinge(PiecewiseQuadratic):
    """max(0, 1 − y·score): the support vector machine's loss."""

    name = "hinge"
    kind = "classification"
    domain = (0.0, 1.0)


@dataclass(frozen=True)
class SquaredHinge(PiecewiseQuadratic):
    """max(0, 1 − y·score)²: LinearSVC's default."""

    name = "squared_hinge"
    kind = "classification"
    domain = (0.0, math.inf)
    smoothness = 0.5


@dataclass(frozen=True)
class ModifiedHuber(PiecewiseQuadratic):
    """The squared hinge, linear below −1: SGDClassifier's robust loss with probabilities."""

    name = "modified_huber"
    kind = "classification"
    domain = (0.0, 4.0)
    smoothness = 0.5


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(−y·score))."""

    name = "logistic"
    kind = "classification"
    joins_classes = True
    domain = (0.0, 1.0)
    smoothness = 4.0
    curvature_varies = True

    @cached_property
    def kernel(self) -> _core.Loss:
        """The loss in the compiled core."""
        return _core.Loss.logistic()


@dataclass(frozen=True)
class Huber(PiecewiseQuadratic):
    """(score − y)²/2 up to |score − y| = δ, linear beyond."""

    delta: float = 1.35
    name = "huber"
    kind = "regression"
    smoothness = 1.0

    def __post_init__(self) -> None:
        self._check("delta", _positive(self.delta), "choose a finite number above 0")

    @property
    def domain(self) -> tuple[float, float]:
        """Bounds of b."""
        return (-float(self.delta), float(self.delta))


@dataclass(frozen=True)
class Absolute(PiecewiseQuadratic):
    """|score − y|."""

    name = "absolute"
    kind = "regression"
    domain = (-1.0, 1.0)


@dataclass(frozen=True)
class EpsilonInsensitive(PiecewiseQuadratic):
    """max(0, |score − y| − ε): support vector regression."""

    epsilon: float = 0.1
    name = "epsilon_insensitive"
    kind = "regression"
    domain = (-1.0, 1.0)

    def __post_init__(self) -> None:
        self._check("epsilon", _at_least_0(self.epsilon), "choose a finite number, 0 or more")

    @property
    def dead_zone(self) -> float:
        """ε of the conjugate."""
        return float(self.epsilon)


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(PiecewiseQuadratic):
    """max(0, |score − y| − ε)²."""

    epsilon: float = 0.1
    name = "squared_epsilon_insensitive"
    kind = "regression"
    domain = (-math.inf, math.inf)
    smoothness = 0.5

    def __post_init__(self) -> None:
        self._check("epsilon", _at_least_0(self.epsilon), "choose a finite number, 0 or more")

    @property
    def dead_zone(self) -> float:
        """ε of the conjugate."""
        return float(self.epsilon)


@dataclass(frozen=True)
class Quantile(PiecewiseQuadratic):
    """The pinball loss of y − score: τ(y − score) above, (1 − τ)(score − y) below."""

    quantile: float = 0.5
    name = "quantile"
    kind = "regression"

    def __post_init__(self) -> None:
        quantile: Any = self.quantile
        valid = is_number(quantile) and 0 < quantile < 1
        self._check("quantile", bool(valid), "choose a number between 0 and 1, both excluded")

    @property
    def domain(self) -> tuple[float, float]:
        """Bounds of b."""
        return (float(self.quantile) - 1.0, float(self.quantile))


def _at_least_0(x: Any) -> bool:
    return is_number(x) and bool(x >= 0)


def _positive(x: Any) -> bool:
    return _at_least_0(x) and x > 0


LOSSES: dict[str, type[Loss]] = {
    cls.name: cls
    for cls in (
        Squared,
        SmoothedHinge,
        Hinge,
        SquaredHinge,
        ModifiedHuber,
        Logistic,
        Huber,
        Absolute,
        EpsilonInsensitive,
        SquaredEpsilonInsensitive,
        Quantile,
    )
}


#: Other names of losses: scikit-learn's.
ALIASES = {"log_loss": "logistic", "squared_error": "squared", "absolute_error": "absolute"}


#: Losses with their defaults; one for all, as losses do not change.
_PLAIN: dict[type[Loss], Loss] = {}


def get_loss(loss: str | Loss, **parameters: Any) -> Loss:
    """Return the loss of that name with those parameters; a `Loss` is returned as it is.

    Examples
    --------
    >>> from adasdca.problem.losses import get_loss
    >>> get_loss("smoothed_hinge", gamma=0.5)
    SmoothedHinge(gamma=0.5)
    """
    if isinstance(loss, Loss):
        return loss
    name: object = loss  # it may be unhashable
    if isinstance(name, str):
        name = ALIASES.get(name, name)
    if not isinstance(name, str) or name not in LOSSES:
        raise InputError(
            f"loss = {loss!r} is unknown; choose one of {', '.join(map(repr, LOSSES))}",
            InPython(", or pass a Loss object such as SmoothedHinge(gamma=0.5)"),
            ".",
        )
    cls = LOSSES[name]
    if not parameters:
        return _PLAIN.get(cls) or _PLAIN.setdefault(cls, cls())
    known = [f.name for f in fields(cls)]  # type: ignore[arg-type]
    unknown = set(parameters) - set(known)
    if unknown:
        raise InputError(
            f"loss = {loss!r} has no parameter {', '.join(sorted(unknown))}; "
            f"it has {', '.join(known) or 'none'}."
        )
    return cls(**parameters)
