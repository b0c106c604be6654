"""What a backend asks of rows that are somewhere else: products with X, and passes over rows.

Vectors of n numbers stay where the rows are, and so do the vectors of d numbers that products
return; `to_host` brings the latter here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.base import Facts

Array = NDArray[np.float64]


class Products(Protocol):
    """Products with rows."""

    shape: tuple[int, int]  #: (n, d), the shape of X.
    sizes: Any  #: float or (n,), the number of entries of a row.
    #: The most additions that an entry of `combine`, and of `combine_of`, goes through.
    chain: int
    chain_of: int
    facts: Facts  #: What the cost model asks.

    def scores(self, v: Any, shift: float = 0.0) -> Any:
        """Return x_i·v + shift of all rows."""

    def combine(self, r: Any) -> Any:
        """Return Σ_i r_i x_i."""

    def scores_of(self, v: Any) -> Any:
        """Return the scores of several v, a row each, in rows."""

    def combine_of(self, r: Any, squared: bool = False) -> Any:
        """Return Σ_i r_i x_i, or that with squares of the entries of x_i, of several r in rows."""

    def line(
        self, v: Any, shift: float, scores: Any, passes: Any, centre: Any, length: float
    ) -> tuple[Any, Any]:
        """Return x_i·v + shift, and Σ_i c_iβ_i x_i at scores + that, or None if it is not cheap."""

    def curve(self, h: Any, v: Any, shift: float) -> tuple[Any, Any]:
        """Return Σ_i r_i x_i, and r_i = h_i (x_i·v + shift)."""

    def iterate(self, system: System, few: Few, wait: int, deadline: float, most: int) -> Any:
        """Solve a system by conjugate gradients where the rows are; None if time ran out.

        After so many iterations `few` is asked for rows that do as well. NotImplemented where
        products alone are made there.
        """

    def begin(self, r: Any, factors: Array) -> tuple[Any, Any]:
        """Return Σ_i r_i x_i, and Σ_j f_j x_ij² of all rows: what a solve asks first."""

    def squares(self, h: Any) -> Any:
        """Return Σ_i h_i x_ij² for every feature."""

    def row_squares(self, factors: Array) -> Any:
        """Return Σ_j f_j x_ij² of all rows."""

    def gram(self, h: Any, centre: Any, rows: RowChoice, deadline: float) -> Any:
        """Return Σ_i h_i z_i z_iᵀ for z = (x − centre, 1); None if time ran out."""

    def take_columns(self, features: NDArray[np.intp]) -> Products:
        """Return the rows with some of the features, given in rising order."""

    def take_rows(self, index: Any) -> Products | None:
        """Return some of the rows, given by numbers where they are; None if there is no room."""

    def to_device(self, x: Array) -> Any:
        """Return a vector of n numbers of this process where the rows are."""

    def from_device(self, x: Any) -> Array:
        """Return a vector of n numbers in this process."""


class BatchProducts(Products, Protocol):
    """Products with rows that take steps in mini-batches; their facts say that they ascend."""

    def batches(self, point: MiniBatches, passes: Any, height: int) -> Callable[[Any], float]:
        """Return a function that visits rows in batches, and returns the intercept."""


class System(NamedTuple):
    """(Σ_i h_i (x_i − m)(x_i − m)ᵀ + diag(own)) v = right. Vectors are where the rows are."""

    h: Any  #: (n,), curvatures.
    #: (d,), A diagonal, and that of the whole matrix.
    own: Any
    scale: Any
    right: Any  #: The right-hand side.
    mean: Any  #: m = Σ_i h_i x_i/Σ_i h_i, or None for 0.
    gain: float  #: The share of the mean gain of all iterations that the last one has to exceed.
    #: The share of the right-hand side to leave, in the norm of the preconditioner.
    accuracy: float


class Iterated(NamedTuple):
    """What iterations have come to: v, their number, and whether they were enough."""

    v: Any
    taken: int
    done: bool


#: Returns what is said where memory is short.
Told = Callable[[MemoryError], MemoryError]
#: Returns rows with curvature and their curvatures, where these are few.
Few = Callable[[], "tuple[Products, Any] | None"]


class MiniBatches(NamedTuple):
    """Where mini-batches of dual coordinate ascent begin."""

    beta: Any  #: The duals, which the batches change.
    u: Any  #: Σ_i c_iβ_i x_i/(λN).
    b: float  #: The intercept, and Σ_i c_iβ_i, which is to be 0 after every batch.
    balance: float
    free: bool  #: Whether there is an intercept.
    curvature: Any  #: Curvatures of the steps of rows, large enough for those of a whole batch.
    largest: float  #: No number of u gets larger.
    mu: float  #: λN.


class RowChoice(NamedTuple):
    """Which rows a Gram matrix is of: all, some by their numbers, or a sample."""

    index: Any = None  #: Row numbers.
    size: int = 0  #: Size of the sample, one row of each of so many strata; 0 for none.
    key: int = 0  #: Which sample.


class Derived(NamedTuple):
    """The rows at a point: scores, −φ', cφ'', and sums."""

    #: (n,), of the rows.
    scores: Any
    beta: Any
    h: Any
    #: Σ c_iβ_i and Σ c_iφ''.
    balance: float
    mass: float
    residual: float  #: Σ |t − z|.
    curved: int  #: Number of rows with curvature.
    reach: float  #: The largest |score|.


class RowSums(NamedTuple):
    """Sums over the rows by which a point is certified."""

    #: Σ c φ, and Σ c (φ + φ* + aβ).
    value: float
    excess: float
    #: What rounding of the scores can add to the excess, and to the value.
    slip: float
    blur: float
    mass: float  #: Σ c |β| |x|.
    imbalance: float  #: Σ c β.
    far: float  #: The largest |t − z|.


class Passes(Protocol):
    """Passes over vectors of n numbers, with the loss, targets and weights of the rows."""

    xp: Any  #: NumPy, or the one like it whose arrays these vectors are.
    y: Any  #: (n,), the targets.

    def derive(self, scores: Any, change: Any, step: float, centre: Any, length: float) -> Derived:
        """Go along a line, if there is one, and derive the loss, kinks rounded over a length."""

    def slope(
        self, scores: Any, change: Any, step: float, centre: Any, length: float
    ) -> tuple[float, float, float]:
        """Return Σ cβ dz along a line, the sum of the sizes of its terms, and Σ cφ'' dz²."""

    def balance(self, scores: Any, b: float) -> tuple[float, float, float]:
        """Return Σ cβ, Σ c|β| and Σ cφ'' at scores + b."""

    def slopes(self, scores: Any, b: float) -> Any:
        """Return −φ' at scores + b."""

    def shares(self, scores: Any, b: float, duals: Any, curvature: Any) -> tuple[Any, Any]:
        """Return c (φ + φ* + aβ) and c q|Δβ| of every row at scores + b, Δβ its exact step."""

    def sides(self, duals: Any) -> tuple[float, float]:
        """Return Σ c max(β, 0) and Σ c max(−β, 0)."""

    def row_sums(
        self, scores: Any, b: float, duals: Any, share: Any, norms: Any, norm_w: float, outer: float
    ) -> RowSums:
        """Sum over the rows; scores are off by norm_w·share + 4ε(outer + |z| + |t|) at most."""

    def weighted(self, x: Any) -> Any:
        """Return c_i x_i."""

    def part(self, rows: slice) -> Passes:
        """Return the passes over some of the rows."""


class Summation(Protocol):
    """Sums over the rows in twice the digits."""

    xp: Any  #: NumPy, or the one like it whose arrays are added.

    def sum(self, values: Any, weight: Any) -> float:
        """Return Σ_i c_i v_i, c = 1 without weights."""
