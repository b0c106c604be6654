"""The methods side by side on one problem: who takes part, and the runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import scipy.sparse as sp

from adasdca.ascent.sampling import registered
from adasdca.duality.theory import epoch_cost
from adasdca.engine.interruption import interruption
from adasdca.methods import (
    REGISTERED,
    SDCA,
    AdaSDCA,
    AdaSDCAPlus,
    Auto,
    IProxSDCA,
    Method,
    Quartz,
    SDCAPerm,
    get_method,
)
from adasdca.plotting import Curve
from adasdca.problem.losses import Loss
from adasdca.solution import Record, Solution
from adasdca.solver import solve

#: Most operations of an epoch of Algorithm 1: a few seconds.
AFFORDABLE = 3e9

METHODS: dict[str, Method] = {
    "sdca": SDCA(),
    "sdca-perm": SDCAPerm(),
    "iprox-sdca": IProxSDCA(),
    "quartz": Quartz(),
    "adasdca+ (II)": AdaSDCAPlus(option="II"),
    "adasdca+ (I)": AdaSDCAPlus(option="I"),
    "adasdca": AdaSDCA(rule="relaxed"),
    "auto": Auto(),
}


@dataclass(frozen=True)
class Setting:
    """The problem that all methods are given."""

    data: str
    n: int
    d: int
    nnz: int
    loss: Loss
    lam: float
    seed: int

    @classmethod
    def of(cls, data: str, X: Any, y: Any, *, loss: Loss, lam: float | None, seed: int) -> Setting:
        """Describe the data, with lam = 1/n unless given."""
        n, d = X.shape
        nnz = X.nnz if sp.issparse(X) else n * d
        return cls(data, n, d, nnz, loss, 1.0 / len(y) if lam is None else lam, seed)

    def title(self) -> str:
        """Name the problem in a line."""
        return f"{self.data}: {self.loss.name}, lam = {self.lam:.3g}, n = {self.n}, d = {self.d}"


@dataclass(frozen=True)
class Limits:
    """When a method has to stop."""

    tol: float
    max_epochs: int
    max_time: float


@dataclass(frozen=True)
class Entrant:
    """A method under its label; `excuse` says why it does not take part."""

    label: str
    method: Method
    excuse: str = ""


@dataclass(frozen=True)
class Run:
    """A method and what it reached."""

    label: str
    method: Method
    solution: Solution

    @property
    def seconds(self) -> float:
        """Time from the call to the last certificate."""
        return float(self.solution.history.seconds[-1])

    @property
    def passes(self) -> float:
        """Coordinate steps in units of n."""
        return self.solution.n_updates / len(self.solution.dual_coef)

    def curve(self) -> Curve:
        """Return the relative gap from survey to survey."""
        history = self.solution.history
        return Curve(self.label, history.epoch, history.seconds, history.relative_gap)


class Watch(Protocol):
    """Who is told how a run goes."""

    def follow(self, label: str) -> Callable[[Record], None]:
        """Return a callback for the solve of that label."""

    def finish(self, label: str, relative_gap: float, epochs: int, converged: bool) -> None:
        """See how it ended."""


def line_up(setting: Setting) -> list[Entrant]:
    """Return all methods, those that cannot take part with the reason."""
    methods = METHODS | {name: get_method(name) for name in (*registered(), *REGISTERED)}
    return [Entrant(label, method, _excuse(method, setting)) for label, method in methods.items()]


def _excuse(method: Method, setting: Setting) -> str:
    if isinstance(method, Quartz) and setting.loss.smoothness == 0:
        return "needs a smooth loss"
    if isinstance(method, AdaSDCA):
        cost = epoch_cost(method.name, n=setting.n, nnz=setting.nnz)
        return f"{cost:.0e} operations an epoch" if cost > AFFORDABLE else ""
    return ""


def race(
    X: Any, y: Any, setting: Setting, limits: Limits, entrants: list[Entrant], watch: Watch
) -> list[Run]:
    """Solve with one method after another, until Ctrl-C."""
    runs: list[Run] = []
    with interruption() as around:
        for entrant in entrants:
            if entrant.excuse:
                continue
            try:
                around.check()
                solution = solve(
                    X,
                    y,
                    loss=setting.loss,
                    lam=setting.lam,
                    method=entrant.method,
                    tol=limits.tol,
                    max_epochs=limits.max_epochs,
                    max_time=limits.max_time,
                    random_state=setting.seed,
                    callback=watch.follow(entrant.label),
                )
            except KeyboardInterrupt:
                if not runs:
                    raise
                break
            reached = solution.relative_gap, solution.n_epochs, solution.converged
            watch.finish(entrant.label, *reached)
            runs.append(Run(entrant.label, entrant.method, solution))
    return runs
