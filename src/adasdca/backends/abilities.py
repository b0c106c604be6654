"""What a term of rows, or a backend, may do beyond the contract, a protocol each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.base import Derivatives
from adasdca.backends.contract import RowVector
from adasdca.backends.term import RowTerm
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]


@cache
def _is_able(kind: type, protocol: Any) -> bool:
    members = {name for name in vars(protocol) if not name.startswith("_")}
    return all(hasattr(kind, name) for name in members)


def able(term: Any, protocol: Any) -> Any:
    """Return the term, or rows, if it has what a protocol below asks for, None if not.

    It is asked once for each type: up to Python 3.11 `isinstance` takes 10 µs to tell.
    """
    return term if _is_able(term.__class__, protocol) else None


class Preconditioned(NamedTuple):
    """The numbers of a step's equations for conjugate gradients, vectors where the rows are."""

    #: The diagonal that is not the rows', or a number, and the diagonal of the whole matrix.
    own: Any
    scale: Any
    right: Any  #: The right-hand side.
    mean: Any  #: m = Σ_i h_i x_i/Σ_i h_i, where an intercept is eliminated: the rows are x_i − m.
    #: Iterations end where the last has gained no more than this share of the mean of all.
    gain: float


class RowSystem(NamedTuple):
    """The equations of a step in unknowns of the rows, as `solve_by_rows` has them."""

    root: Array  #: √h.
    scale: Array  #: The diagonal of I + S X D⁻¹ Xᵀ S, about.
    right: Array  #: S X D⁻¹ r.
    product: Callable[[Array], Array]  #: z ↦ (I + S X D⁻¹ Xᵀ S) z.
    step: Callable[[Array], Array]  #: z ↦ Δv.
    duals: Callable[[Array], Array]  #: z ↦ the dual point after the step.
    unknowns: Callable[[Array], Array]  #: Its inverse.


class LineSearcher(Protocol):
    """A term that searches its line itself; others are asked for slopes."""

    def search(self, rest: tuple[float, float, float], start: float) -> tuple[float, bool]:
        """Return the length of the step along the line, and whether it is above rounding.

        Parameters
        ----------
        rest : (value, curvature, size)
            The slope, at length 0, of what is not the rows' and has a straight one.
        start : float
            The slope of both at length 0.
        """


class Rounds(NamedTuple):
    """How rounds of the method of multipliers follow each other; see `newton/multipliers.py`."""

    gap: float  #: That of the centre.
    target: float  #: The relative gap to reach.
    share: float  #: The share of the gap that a round may leave to gain.
    floor: float  #: The least length.
    factors: tuple[tuple[int, float], ...]  #: Of the length, by the steps of a round at most.


class Descent(NamedTuple):
    """Newton steps that were taken in one call, and where they have ended."""

    ending: int  #: Why, as a number in the order of `Ending` in `newton/newton.py`.
    steps: int  #: Those of the last round.
    taken: int  #: Those of all.
    length: float  #: Over which kinks were rounded in the last round.
    v: Array
    b: float
    value: float
    derivatives: Derivatives


class Short(Protocol):
    """A backend, or rows of a multinomial model, whose memory is not that of this process."""

    def short_of_memory(self, error: MemoryError) -> MemoryError:
        """Return an error that says what to do where there is too little of it."""


@contextmanager
def memory_told(rows: Any) -> Iterator[None]:
    """Let rows that can say what to do say it where they run out of memory."""
    try:
        yield
    except MemoryError as error:
        short: Short | None = able(rows, Short)
        told = error if short is None else short.short_of_memory(error)
        if told is error:
            raise
        raise told from error


class Descender(Protocol):
    """A term that takes all Newton steps in one call, where features are few."""

    @property
    def size(self) -> int:
        """The number of its rows."""

    def descend(
        self,
        at: tuple[Array, float, float],
        stiff: Array,
        free: tuple[bool, bool],
        goal: tuple[float, float, int],
        deadline: float,
        rounds: Rounds | None = None,
    ) -> Descent:
        """Take Newton steps by features with a ridge penalty.

        Parameters
        ----------
        at : (v, b, value)
            The point where they begin, and f there.
        stiff : (d,) array
            The curvature of the penalty.
        free : (intercept, rounded)
            Whether b is free, and whether kinks are rounded.
        goal : (least, share, most)
            What may be left to gain, the same as a share of the value, and the most steps.
        deadline : float
            When to stop, on the clock of `time.perf_counter`.
        rounds : Rounds, optional
            How to go on to the next round, as long as each halves the gap that it certifies.
        """


class RowEquations(Protocol):
    """A term that knows inner products of rows, which those in parts or elsewhere do not."""

    #: The duals where the last step so solved ends, if curvatures stay: the unknowns tell them.
    ended: Array

    def solve_by_rows(
        self,
        diagonal: float | Array,
        right: Array,
        balance: float,
        intercept: bool,
        deadline: float,
        gradient: Array | None = None,
    ) -> tuple[Array, float] | None:
        """Solve a step's equations in unknowns of the rows; None if rounding forbids it."""


class RowIterations(Protocol):
    """A term whose equations can be iterated on in unknowns of the rows."""

    def row_system(self, diagonal: float | Array, right: Array) -> RowSystem:
        """Return them, with the diagonal D and the right-hand side r."""


class ColumnStep(NamedTuple):
    """The step to the minimum of a model."""

    w: Array
    db: float  #: What the intercept changes by.
    gained: float  #: By how much the model falls.
    done: bool  #: Whether that is as good as asked for.
    work: float  #: Entries of columns that were visited.


class ColumnRows(RowTerm):
    """A term of some features, whose columns are less their middle where they are far from 0."""

    problem: Problem  #: The problem on these features.
    middle: Array  #: The intercept is larger by what this has of the coefficients.
    entries: int  #: Number of entries.

    def minimise_model(
        self,
        w: Array,
        penalty: tuple[Array, Array, Array, Array],
        limits: tuple[float, float, float],
    ) -> ColumnStep | None:
        """Minimise the quadratic model of the rows at w, where the term is, and a penalty.

        None if rounding leads it astray.

        Parameters
        ----------
        penalty : (curvature, kink, lower, upper)
            Numbers of each feature.
        limits : (enough, most, seconds)
            What may be left of N times the gap, about, the most entries to visit, and the time.
        """


class ColumnKeeper(Protocol):
    """A backend that has the columns of its features, for a smooth loss."""

    def slope_point(self, w: Array, b: float) -> tuple[float, Array]:
        """Return the best intercept for w, begun at b, and −φ' there."""

    def columns(self, features: NDArray[np.intp]) -> ColumnRows:
        """Return the rows of some of the features."""


class EquationIterator(Protocol):
    """A term that iterates on a step's equations itself; others are asked for products."""

    def iterate(
        self, equations: Preconditioned, accuracy: float, deadline: float, most: int
    ) -> Any:
        """Solve a step's equations by conjugate gradients where the rows are.

        Return the unknowns, the number of iterations and whether they were enough; None if time ran
        out, and NotImplemented where products are faster for these rows.
        """


class VectorKeeper(Protocol):
    """A term that is faster if steps keep their vectors of features where it says."""

    def bring(self, x: Any) -> Any:
        """Return a vector of features there, or as it is; NumPy's functions go on to its own.

        What the term returns of features is then there, too.
        """


class ExactTerm(Protocol):
    """A term whose scores and sums are taken in twice the digits."""

    def place_exactly(self, v: Array, b: float, rest: tuple[Array, float]) -> Derivatives:
        """Go to a point, given with what its v and b have lost by rounding."""

    def settle(self) -> Derivatives:
        """Go to the line's end; the duals go where the equations of the step say."""


class Interpolator(Protocol):
    """A backend that moves coefficients by their last digits."""

    def interpolate(self, w: Array, b: float, duals: RowVector, deadline: float) -> Array | None:
        """Return coefficients for which scores are nearer to the kinks of free duals, or None."""


#: Is told a primal point, and the dual one if it has been made.
Watcher = Callable[[Array, float, RowVector | None], None]
