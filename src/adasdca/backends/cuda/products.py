"""What a backend asks of rows on a device beyond the contract.

Vectors of n numbers stay where the rows are, and so do the vectors of d numbers that products
return; `to_host` brings the latter here.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.contract import Rows, Vectors
from adasdca.problem.device_rows import to_host

Array = NDArray[np.float64]


class RowChoice(NamedTuple):
    """Which rows a Gram matrix is of: all, some by their numbers, or a sample."""

    index: Any = None  #: Row numbers.
    size: int = 0  #: Size of the sample, one row of each of so many strata; 0 for none.
    key: int = 0  #: Which sample.


EVERY = RowChoice()


class Arrays(Vectors):
    """Vectors of n numbers that are arrays, of NumPy or like its own."""

    xp: Any = np  #: NumPy, or the one like it.

    def scatter(self, numbers: Array) -> Any:
        return numbers

    def gather(self, vector: Any) -> Array:
        return np.asarray(to_host(vector))

    def each(self, function: Callable[..., Any], *vectors: Any) -> Any:
        return function(*vectors)

    def sums(self, function: Callable[..., tuple[Any, ...]], *vectors: Any) -> list[float]:
        return [math.fsum(each) for each in function(*vectors)]

    def largest(self, function: Callable[..., Any], *vectors: Any) -> float:
        return float(function(*vectors).max())


ARRAYS = Arrays()


class Products(Arrays, Rows):
    """Products with rows."""

    shape: tuple[int, int]  #: (n, d), the shape of X.
    sizes: Any  #: float or (n,), the number of entries of a row.
    #: The most additions that an entry of `combine`, and of `combine_of`, goes through.
    chain: int
    chain_of: int

    @abstractmethod
    def gram(self, h: Any, centre: Any, deadline: float, rows: RowChoice = EVERY) -> Any:
        """Return Σ_i h_i z_i z_iᵀ for z = (x − centre, 1); None if time ran out."""

    @abstractmethod
    def scores_of(self, v: Any) -> Any:
        """Return the scores of several v, a row each, in rows."""

    @abstractmethod
    def combine_of(self, r: Any, squared: bool = False) -> Any:
        """Return Σ_i r_i x_i, or that with squares of the entries of x_i, of several r in rows."""

    @abstractmethod
    def take_columns(self, features: NDArray[np.intp]) -> Products:
        """Return the rows with some of the features, given in rising order."""

    @abstractmethod
    def take_rows(self, index: Any) -> Products | None:
        """Return some of the rows, given by numbers where they are; None if there is no room."""

    def line(
        self, v: Any, shift: float, scores: Any, passes: Any, centre: Any, length: float
    ) -> tuple[Any, Any]:
        """Return x_i·v + shift, and Σ_i c_iβ_i x_i at scores + that, or None if it is not cheap."""
        return self.scores(v, shift), None

    def curve(self, h: Any, v: Any, shift: float) -> tuple[Any, Any]:
        """Return Σ_i r_i x_i, and r_i = h_i (x_i·v + shift)."""
        image = h * self.scores(v, shift)
        return self.combine(image), image

    def begin(self, r: Any, factors: Array) -> tuple[Any, Any]:
        """Return Σ_i r_i x_i, and Σ_j f_j x_ij² of all rows: what a solve asks first."""
        return self.combine(r), self.row_squares(factors)

    def iterate(self, system: System, few: Few, wait: int, deadline: float, most: int) -> Any:
        """Solve a system by conjugate gradients where the rows are; None if time ran out.

        After so many iterations `few` is asked for rows that do as well. NotImplemented where
        products alone are made there.
        """
        return NotImplemented


class BatchProducts(Products):
    """Products with rows that take steps in mini-batches; their facts say that they ascend."""

    @abstractmethod
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
