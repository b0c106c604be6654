"""What a solve returns: the point, its certificate, how it ended and how it went."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca.duality.certificate import Certificate, Certified, relative_gap
from adasdca.errors import counted
from adasdca.frames import as_html, to_frame
from adasdca.problem.data import as_doubles
from adasdca.storage import FileError, read_arrays, replacing

Array = NDArray[np.float64]


class Status(enum.Enum):
    """How a solve ended; `message` says it in a sentence."""

    CONVERGED = "converged"
    EPOCH_LIMIT = "epoch limit"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"
    STALLED = "stalled"

    @property
    def message(self) -> str:
        """The status in a sentence, with what can be done about it."""
        return _MESSAGES[self]


_MESSAGES = {
    Status.CONVERGED: "The relative duality gap is at most tol.",
    Status.EPOCH_LIMIT: "max_epochs were done before the gap reached tol; "
    "raise max_epochs, raise tol, or continue with warm_start.",
    Status.TIME_LIMIT: "max_time was over before the gap reached tol; "
    "raise max_time, raise tol, or continue with warm_start.",
    Status.INTERRUPTED: (
        "A callback, Ctrl-C, or a method that chose no rows ended the solve; continue with "
        "warm_start."
    ),
    Status.STALLED: "The solve made no more progress, by rounding or by its method; raise tol.",
}


def stalled_at(certificate: Certificate, digits: float) -> str:
    """Return what a stalled solve has to say, in numbers, with the price of its last digits."""
    rounding = relative_gap(certificate.rounding, certificate.primal)
    if digits >= certificate.gap > certificate.rounding:
        return (
            "The model is within the last digits of the best one in double precision: its relative "
            f"gap is {certificate.relative_gap:.2g}, and moving all coefficients by their last "
            f"digits costs {relative_gap(digits, certificate.primal):.2g} of the objective. Raise "
            "tol, or scale the data."
        )
    if certificate.rounding < 1e-3 * certificate.gap:
        return (
            f"The solve made no more progress at a relative gap of "
            f"{certificate.relative_gap:.2g}, though rounding ({rounding:.2g}) would allow a "
            "smaller one. Choose another method, raise tol, or scale the data."
        )
    return (
        f"The data allow no certificate below {certificate.relative_gap:.2g} (relative) in double "
        f"precision, as far as this solve found; bounds of rounding are {rounding:.2g} of it. "
        "Raise tol, or scale the data."
    )


class Record(NamedTuple):
    """One survey, as a callback sees it."""

    epoch: int
    updates: int
    seconds: float
    primal: float
    dual: float
    gap: float
    active: int


class Phase(NamedTuple):
    """A stretch of a solve spent on one thing."""

    name: str
    rounds: int
    updates: int
    seconds: float
    gap_before: float
    gap_after: float


@dataclass(frozen=True)
class History:
    """The surveys of a solve, an array a column."""

    epoch: NDArray[np.int64]
    updates: NDArray[np.int64]
    seconds: Array
    primal: Array
    dual: Array
    gap: Array
    active: NDArray[np.int64]

    @classmethod
    def of(cls, records: list[Record]) -> History:
        """Gather records into columns."""
        return cls(*map(np.array, zip(*records, strict=True)))

    @property
    def relative_gap(self) -> Array:
        """The gaps over the primal values."""
        pairs = zip(self.gap.tolist(), self.primal.tolist(), strict=True)
        return np.array([relative_gap(gap, primal) for gap, primal in pairs])

    def __len__(self) -> int:
        return len(self.epoch)

    def to_frame(self, library: str = "pandas") -> Any:
        """Return the surveys as a data frame, a row each.

        Parameters
        ----------
        library : {"pandas", "polars"}, default "pandas"
            Whose data frame.
        """
        names = ("epoch", "updates", "seconds", "primal", "dual", "gap", "relative_gap", "active")
        return to_frame({name: getattr(self, name) for name in names}, library)

    def __repr__(self) -> str:
        return f"History({len(self)} surveys, gap {self.gap[0]:.3g} to {self.gap[-1]:.3g})"


@dataclass(frozen=True)
class State:
    """All that a solve needs to go on: `save` writes it, `load` reads it, warm_start takes it.

    Attributes
    ----------
    beta : (n,) array
        Dual variables per unit of weight.
    multiplier : float
        The intercept of the method of multipliers.
    epoch : int
        Epochs done.
    seed : int
        Seed of the solve.
    """

    beta: Array
    multiplier: float
    epoch: int
    seed: int

    @classmethod
    def of(
        cls, beta: Array | Callable[[], Array], multiplier: float, epoch: int, seed: int
    ) -> State:
        """Return a state whose duals may be fetched at the first access."""
        if callable(beta):
            return _Elsewhere(beta, multiplier, epoch, seed)
        return cls(beta, multiplier, epoch, seed)

    def save(self, path: str | Path) -> None:
        """Write the state as an npz file, which replaces one of that name when it is complete."""
        with replacing(path) as file:
            np.savez(
                file,
                beta=self.beta,
                multiplier=self.multiplier,
                epoch=self.epoch,
                seed=np.uint64(self.seed),
            )

    @classmethod
    def load(cls, path: str | Path) -> State:
        """Read a state written by `save`; `FileError` says why a file is none."""
        arrays = read_arrays(path)
        missing = {"beta", "multiplier", "epoch", "seed"} - arrays.keys()
        if missing:
            raise FileError(
                f"{path} is not a saved state: it lacks {', '.join(sorted(missing))}; "
                "pass a file written by State.save."
            )
        beta, multiplier, epoch, seed = (
            arrays[name] for name in ("beta", "multiplier", "epoch", "seed")
        )
        numbers = beta.dtype.kind == multiplier.dtype.kind == "f"
        counts = epoch.dtype.kind in "iu" and seed.dtype.kind in "iu"
        shapes = [array.shape for array in (multiplier, epoch, seed)]
        if beta.ndim != 1 or shapes != [()] * 3 or not (numbers and counts):
            raise FileError(
                f"{path} is not a saved state: beta must be a vector of real numbers, multiplier "
                "a number, epoch and seed integers; pass a file written by State.save."
            )
        if not (np.isfinite(beta).all() and np.isfinite(multiplier) and epoch >= 0 and seed >= 0):
            raise FileError(
                f"{path} holds NaN, infinity or a negative count, so that it is damaged; pass a "
                "file written by State.save."
            )
        dual = beta.astype(np.float64, copy=False)
        return cls(dual, float(multiplier), int(epoch), int(seed))


class _Elsewhere(State):
    """A state whose duals stay on a device until the first access."""

    def __init__(
        self, beta: Array | Callable[[], Array], multiplier: float, epoch: int, seed: int
    ) -> None:
        name = "_fetch" if callable(beta) else "beta"
        vars(self).update({name: beta}, multiplier=multiplier, epoch=epoch, seed=seed)

    def __getattr__(self, name: str) -> Any:
        if name != "beta":
            raise AttributeError(name)
        vars(self)["beta"] = found = vars(self).pop("_fetch")()
        return found

    def __reduce__(self) -> Any:
        return State, (self.beta, self.multiplier, self.epoch, self.seed)


class Solved(Certified):
    """What a solve has come to says how it ended."""

    status: Status
    #: Of a stalled solve, what it costs to move all coefficients by their last digits.
    digits: float = 0.0

    @property
    def converged(self) -> bool:
        """Whether the gap reached tol."""
        return self.status is Status.CONVERGED

    @property
    def message(self) -> str:
        """The status in a sentence, with the numbers of this solve."""
        if self.status is Status.STALLED:
            return stalled_at(self.certificate, self.digits)
        return self.status.message

    def __str__(self) -> str:
        return f"{self!r}\n{self.message}"


@dataclass(frozen=True)
class Solution(Solved):
    """A point with its certificate.

    Attributes
    ----------
    coef : (d,) array
        Coefficients w.
    intercept : float
        Intercept b; 0 unless fit_intercept.
    dual_coef : (n,) array
        The paper's α: dual variables times sample weights.
    certificate : Certificate
        P(w, b), a lower bound on min P, and what bounds the distance from the optimum; its numbers
        are attributes here as well: `primal`, `dual`, `gap`, `radius` and `relative_gap`.
    status : Status
        How the solve ended.
    n_epochs, n_updates : int
        Epochs done and coordinate steps taken.
    history : History
        All surveys.
    phases : tuple of Phase
        What was done, in stretches: name, rounds between surveys, updates, seconds, gap before and
        after.
    timings : dict
        Seconds spent on setup, survey, plan, ascent and second order; the rest is Python's.
    state : State
        What a later solve needs to go on from here.
    digits : float
        Of a stalled solve, what moving all coefficients by their last digits adds to the objective:
        if that is the gap or more, double precision has no better ones. 0 if that was not asked.
    """

    coef: Array
    intercept: float
    dual_coef: Array
    certificate: Certificate
    status: Status
    n_epochs: int
    n_updates: int
    history: History = field(repr=False)
    phases: tuple[Phase, ...] = field(repr=False)
    timings: dict[str, float] = field(repr=False)
    state: State = field(repr=False)
    digits: float = 0.0

    def __repr__(self) -> str:
        n, d = len(self.dual_coef), len(self.coef)
        return (
            f"Solution({self.status.value}: primal {self.primal:.8g}, gap {self.gap:.3g} "
            f"(relative {self.relative_gap:.2g}), radius {self.radius:.3g}, "
            f"{counted(self.n_epochs, 'epoch')}, {counted(self.n_updates, 'update')}, "
            f"n={n}, d={d})"
        )

    def _repr_html_(self) -> str:
        figures = {
            "objective": f"{self.primal:.8g}",
            "no model has less than": f"{self.dual:.8g}",
            "duality gap": f"{self.gap:.3g} (relative {self.relative_gap:.2g})",
            "radius of the coefficients": f"{self.radius:.3g}",
            "epochs": str(self.n_epochs),
            "rows x features": f"{len(self.dual_coef)} x {len(self.coef)}",
        }
        return as_html(f"Solution: {self.status.value}", figures, self.message)

    def plot(self, *, tol: float | None = None, figure: Any = None) -> Any:
        """Draw how the relative duality gap fell, against epochs and against seconds.

        Parameters
        ----------
        tol : float, optional
            A goal, drawn as a line.
        figure : matplotlib.figure.Figure, optional
            Where to draw; by default a new figure that belongs to no window.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from adasdca.plotting import Curve, convergence

        history = self.history
        curve = Curve("gap", history.epoch, history.seconds, history.relative_gap)
        return convergence([curve], tol=tol, figure=figure)


class Guess(NamedTuple):
    """A model to begin at.

    Attributes
    ----------
    coef : (d,) array
        w.
    intercept : float
        b.
    duals : (n,) array, optional
        A dual point, which need not belong to the model. By default it is −φ' at its scores.
    """

    coef: Array
    intercept: float
    duals: Array | None = None

    @property
    def beta(self) -> Array:
        """The duals, or those of no rows."""
        return np.empty(0) if self.duals is None else self.duals


def as_beta(warm_start: Any, weight: Array | None, n: int) -> tuple[Array, float, int]:
    """Return β, multiplier and epoch of a Solution, a State or a dual vector α, for n rows.

    Rows beyond those of the warm start are new and begin at 0.
    """
    if isinstance(warm_start, Solution):
        warm_start = warm_start.state
    multiplier, epoch = 0.0, 0
    given = warm_start
    if isinstance(warm_start, State):
        given, multiplier, epoch = warm_start.beta, warm_start.multiplier, warm_start.epoch
    try:
        beta = as_doubles(given, "warm_start")
    except ValueError as error:
        raise ValueError(
            f"warm_start of type {type(warm_start).__name__} is not understood ({error}); pass a "
            "Solution, a State or a dual vector of one number per row."
        ) from error
    if beta.ndim != 1 or len(beta) > n:
        raise ValueError(
            f"warm_start has shape {beta.shape}, but X has {counted(n, 'row')}; it must have "
            f"at most {counted(n, 'number')}, those of the first rows of X."
        )
    if not (np.isfinite(beta).all() and math.isfinite(multiplier)):
        raise ValueError("warm_start contains NaN or infinity; pass finite dual variables.")
    if not isinstance(warm_start, State) and weight is not None:
        first = weight[: len(beta)]
        beta = np.divide(beta, first, out=np.zeros_like(beta), where=first > 0)
    return np.concatenate([beta, np.zeros(n - len(beta))]), multiplier, epoch
