"""The contract between a solve and its rows, which may live anywhere.

The loop, `auto` and the second-order phases know rows as a `Backend` and its `RowTerm`s only. What
passes between them are vectors of d numbers and single numbers. Vectors of n numbers stay where
the rows are: a dual point is an opaque object that a backend hands out and takes back. A backend
whose rows are in several places adds what its places say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from adasdca.ascent.plans import Epoch
from adasdca.ascent.survey import Survey
from adasdca.backends.facts import Facts
from adasdca.duality.certificate import Certificate
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]
#: A vector of n numbers, where the rows are.
RowVector = Any
#: Seconds that never pass.
FOREVER = 1e18
#: A mean curvature below this is none.
STRAIGHT = 1e-60


class Derivatives(NamedTuple):
    """First derivatives of the rows' part of an objective.

    Attributes
    ----------
    u : (d,) array
        Σ_i c_iβ_i x_i/(λN), with β_i = −φ'.
    balance : float
        Σ_i c_iβ_i.
    mass : float
        Σ_i c_iφ''.
    """

    u: Array
    balance: float
    mass: float


class RowSlope(NamedTuple):
    """Derivative of the rows' part along a line, its own derivative, and the size of its terms."""

    value: float
    curvature: float
    size: float


class Gram(NamedTuple):
    """Second derivatives of the rows' part, h_i = c_iφ'' of all rows or of a sample of them.

    Attributes
    ----------
    matrix : (d, d) array
        The lower triangle of Σ_i h_i x_i x_iᵀ; with an intercept that of
        Σ_i h_i (x_i − m)(x_i − m)ᵀ, m the mean of the rows weighted by h. One that is somewhere
        else has a `diagonal` and a `copy`, and its `cholesky` does what that of `blas` does.
    column : (d,) array
        Σ_i h_i x_i, 0 without an intercept.
    mass : float
        Σ_i h_i, 0 without an intercept.
    combined : (d,) array or None
        Σ_i c_iβ_i x_i, if it was asked for.
    product : callable or None
        If given, `matrix` is that of a sample or has few digits, and is only near the one that is
        meant; this multiplies a vector of d numbers by the latter.
    """

    matrix: Any
    column: Array
    mass: float
    combined: Array | None = None
    product: Callable[[Array], Array] | None = None

    @property
    def single(self) -> bool:
        """Whether the matrix has the few digits of single precision."""
        return isinstance(self.matrix, np.ndarray) and self.matrix.dtype == np.float32


class RowTerm(Protocol):
    """Σ_i c_i φ_i(x_i·v + b), at a point that it remembers, and along a line from there.

    Row vectors stay where the rows are: what comes back has the size of v, or is a number. A term
    may do more: see `abilities.py`.
    """

    @property
    def balance(self) -> float:
        """Σ_i c_iβ_i."""

    @property
    def curved(self) -> int:
        """Number of rows with curvature."""

    @property
    def known(self) -> int:
        """Number of rows whose inner products are known."""

    @property
    def residual(self) -> float:
        """Mean distance of the scores from their targets."""

    def go(self, v: Array, b: float) -> None:
        """Go to a point, for its second derivatives alone."""

    def place(self, v: Array, b: float) -> Derivatives:
        """Go to a point."""

    def aim(self, dv: Array, db: float) -> None:
        """Choose a line."""

    def slope(self, length: float) -> RowSlope:
        """Return the slope along the line."""

    def move(self, length: float) -> Derivatives:
        """Go along the line."""

    def gram(
        self,
        intercept: bool,
        deadline: float,
        sample: int | None = None,
        combined: bool = False,
        rough: bool = False,
    ) -> Gram | None:
        """Sum the matrix of the features; None if time ran out.

        Parameters
        ----------
        intercept : bool
            Whether there is one.
        deadline : float
            When to stop, on the clock of `time.perf_counter`.
        sample : int, optional
            So many rows may stand for all.
        combined : bool
            Whether Σ_i c_iβ_i x_i is wanted from the same pass, for a loss whose curvature is 1/γ.
        rough : bool
            Whether single precision will do if it costs less; that of all rows has a `product`.
        """

    def curve(self, p: Array, q: float) -> tuple[Array, float]:
        """Return Σ_i h_i (x_i·p + q) x_i and Σ_i h_i (x_i·p + q)."""

    def diagonal(self, intercept: bool) -> tuple[Array, float]:
        """Return Σ_i h_i x_ij² for every feature, with an intercept Σ_i h_i x_ij, too, and Σ_i h_i.

        The former are lines of one array, which may be one of a device that NumPy's functions go on
        to. Conjugate gradients then keep their vectors there, and `curve` is given them.
        """

    @property
    def travel(self) -> float:
        """Mean distance of the scores from where they began."""

    def duals(self) -> RowVector:
        """Return the dual point −φ' of all rows."""


def centred_product(term: RowTerm, column: Array, mass: float) -> Callable[[Array], Array]:
    """Return the product with Σ_i h_i (x_i − m)(x_i − m)ᵀ, m = column/mass or 0."""
    mean = column / mass if mass > 0 else column

    def product(p: Array) -> Array:
        found, total = term.curve(p, -float(mean @ p))
        return np.asarray(found - total * mean)

    return product


class Backend(Protocol):
    """Rows with their targets, weights and loss, a regulariser, and a point (w, b, β) to move.

    A backend is made from a `Problem`, at β = 0.
    """

    @property
    def facts(self) -> Facts:
        """What the cost model asks."""

    @property
    def problem(self) -> Problem:
        """The problem; only its rows, targets and weights may be somewhere else."""

    @property
    def multiplier(self) -> float:
        """b_k of the method of multipliers; 0 without an intercept."""

    def restart(self, beta: Array, multiplier: float) -> None:
        """Go to a dual point given by n numbers, and to the w that belongs to it."""

    def place(self, duals: RowVector | None, w: Array, b: float) -> None:
        """Go to a dual point and to a primal one that need not belong together.

        Without a dual point, to −φ' at the primal one.
        """

    def restrict(self, features: NDArray[np.intp]) -> Backend:
        """Return the problem on some of the features, at β = 0; dual points are shared."""

    def survey(self, needs: frozenset[str], seconds: float, enough: float = 0.0) -> Survey | None:
        """Look at all rows and change nothing; None if that took longer than the seconds given.

        A relative gap that is `enough` need not be known better.
        """

    def ascend(self, plan: Epoch, seconds: float) -> int:
        """Carry a plan out for at most that many seconds; return the number of updates.

        Only asked for where `facts.ascends`.
        """

    def gather(self, duals: RowVector) -> Array:
        """Return a dual point as n numbers."""

    def kept(self, duals: RowVector) -> Array | Callable[[], Array]:
        """Return the same, or a function that does when somebody asks for them."""

    def combine(self, duals: RowVector) -> Array:
        """Return u = Σ_i c_iβ_i x_i/(λN)."""

    def certify(self, w: Array, b: float, duals: RowVector) -> Certificate:
        """Certify a primal and a dual point; with an intercept Σ c_iβ_i is made 0 first."""

    def term(
        self,
        length: float = 0.0,
        centre: RowVector = None,
        point: tuple[Array, float] | None = None,
        reach: float | None = None,
        exact: bool = False,
    ) -> RowTerm:
        """Return the rows' part of an objective.

        Parameters
        ----------
        length, centre : float, dual point
            Kinks are rounded over this length about these duals; with 0, not at all.
        point : (w, b), optional
            Where the steps will begin. If given, a backend may leave out rows that are far from
            their kinks there and whose duals are right about it: they keep their duals.
        reach : float, optional
            How near to a kink is near.
        exact : bool
            Plain sums have hidden what is left: a wish for an `ExactTerm`, which a backend may
            ignore.
        """

    def freedom(self, w: Array, b: float, duals: RowVector) -> tuple[float, float]:
        """Return the weight of the rows whose duals are free, and the mean residual.

        Only asked for where the loss has kinks.
        """

    def column_squares(self) -> Array:
        """Return Σ_i c_i x_ij² for every feature."""
