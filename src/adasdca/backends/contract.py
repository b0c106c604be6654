"""The contract: what rows must do, wherever they live, for a solve to run on them.

`PlainBackend` makes of these operations all that a solve asks: certificates, derivatives, lines,
equations. `base.py` says what that is, and `abilities.py` what may be asked beyond it; who does
something better overrides it. `solve(..., backend=factory)` takes a factory that makes such rows
of a checked problem. `tests/numpy_backend.py` is a complete one.

Vectors of d numbers are NumPy's. Vectors of n numbers stay where the rows are, and are whatever
these make of them: nobody else looks into one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.facts import Facts

Array = NDArray[np.float64]
#: A vector of n numbers, where the rows are.
RowVector = Any


class Vectors(ABC):
    """Vectors with a number for each row.

    The functions that they are given take arrays, one of each vector, with the numbers of the same
    rows, of all or of some, and know these by NumPy's functions only.
    """

    @abstractmethod
    def scatter(self, numbers: Array) -> RowVector:
        """Return n numbers of this process as a vector."""

    @abstractmethod
    def gather(self, vector: RowVector) -> Array:
        """Return a vector as n numbers in this process."""

    @abstractmethod
    def each(self, function: Callable[..., Any], *vectors: RowVector) -> RowVector:
        """Return the vector that a function makes of some, row by row."""

    @abstractmethod
    def sums(self, function: Callable[..., tuple[Any, ...]], *vectors: RowVector) -> list[float]:
        """Return the sums, over all rows, of the vectors that a function makes of some.

        They cancel: add them in more digits than doubles have (`math.fsum`, `numpy.longdouble`).
        """

    @abstractmethod
    def largest(self, function: Callable[..., Any], *vectors: RowVector) -> float:
        """Return the largest number of the vector that a function makes of some."""


class Rows(Vectors):
    """Rows x_1, …, x_n with d features."""

    facts: Facts  #: What the cost model asks, n and d among it.

    @abstractmethod
    def scores(self, v: Array, shift: float = 0.0) -> RowVector:
        """Return x_i·v + shift."""

    @abstractmethod
    def combine(self, r: RowVector) -> Array:
        """Return Σ_i r_i x_i."""

    @abstractmethod
    def squares(self, h: RowVector) -> Array:
        """Return Σ_i h_i x_ij² for every feature."""

    @abstractmethod
    def row_squares(self, factors: Array) -> RowVector:
        """Return Σ_j f_j x_ij²."""

    @abstractmethod
    def gram(self, h: RowVector, centre: Array | None, deadline: float) -> Array | None:
        """Return Σ_i h_i z_i z_iᵀ for z = (x − centre, 1), a centre of None being 0.

        None if the deadline, on the clock of `time.perf_counter`, comes before the end.
        """

    @abstractmethod
    def take_columns(self, features: NDArray[np.intp]) -> Rows:
        """Return the rows with some of the features, given in rising order; vectors are shared."""
