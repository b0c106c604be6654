"""What an epoch is to do, as data: a backend draws the rows, where they live, and visits them.

Plans of steps that are no epochs carry themselves out (`Steps`).

Probabilities are an array of n weights, or the name of those that a backend knows by itself:
"uniform"; "importance", γ + q_i of eq. (pstar); "adaptive", those of the last survey.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Probabilities = Literal["uniform", "importance", "adaptive"] | NDArray[np.float64]


@dataclass(frozen=True)
class Permutations:
    """Every row once, in random order, for a number of epochs."""

    rounds: int
    key: int
    label: str = "epochs"


@dataclass(frozen=True)
class Draws:
    """Rows drawn with replacement, from the same probabilities all the time."""

    probabilities: Probabilities
    key: int
    label: str = "epochs"


@dataclass(frozen=True)
class ThinnedDraws:
    """Rows drawn one after the other, the probability of a row divided by m at each visit.

    Attributes
    ----------
    probabilities : array or str
        Those at the start.
    m : float or "auto"
        The divisor; "auto" takes the decay that the visits of the last epoch have shown.
    epoch : float
        Number of draws, in units of n.
    key : int
        Key of the random numbers.
    tree : bool
        Whether the rows are drawn one by one from a tree of sums, or all beforehand.
    """

    probabilities: Probabilities
    m: float | Literal["auto"]
    epoch: float
    key: int
    tree: bool = False
    label: str = "epochs"


@dataclass(frozen=True)
class Visits:
    """The rows given, in the order given."""

    rows: NDArray[np.int32]
    label: str = "epochs"


@dataclass(frozen=True)
class AveragedDraws:
    """QUARTZ's steps on rows drawn with replacement; `exact` ones maximise the dual in a row."""

    probabilities: Probabilities
    key: int
    exact: bool = False
    label: str = "averaged epochs"


@dataclass(frozen=True)
class AdaptiveSteps:
    """n steps of Algorithm 1, each row drawn from the probabilities at that moment."""

    rule: Literal["relaxed", "optimal", "step"]
    key: int
    label: str = "adaptive steps"


Epoch = Permutations | Draws | ThinnedDraws | Visits | AveragedDraws | AdaptiveSteps


class Steps(Protocol):
    """A plan that carries itself out on a backend."""

    @property
    def label(self) -> str:
        """What it is called."""

    @property
    def found(self) -> Any:
        """The best point that it has certified, for those who leave it in its middle, or None."""

    def run(self, backend: Any, seconds: float) -> None:
        """Take the steps for at most that many seconds."""


@dataclass(frozen=True)
class Leave:
    """No epoch at all: a method of somebody's own wants the solve to end where it is."""
