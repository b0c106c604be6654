"""The duality gap as a number: certified, relative, and as a radius around the coefficients."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


def rounding(magnitude: float, terms: int) -> float:
    """Return the size of rounding in an objective summed from so many terms of such a magnitude.

    Errors of a sum grow like the root of the number of its terms.
    """
    return float(np.finfo(np.float64).eps) * (64 + 4 * math.sqrt(terms)) * magnitude


class CertificateError(ArithmeticError):
    """The dual exceeds the primal by more than rounding: the numbers cannot be trusted."""


def certified_gap(primal: float, dual: float, magnitude: float, terms: int = 1) -> float:
    """Return primal − dual; a negative value within rounding is 0, one beyond it an error.

    Parameters
    ----------
    primal, dual : float
        Values of the two objectives.
    magnitude : float
        Size of the terms of which they are sums, which sets the size of rounding.
    terms : int
        Number of those terms.
    """
    gap = primal - dual
    if gap >= 0:
        return gap
    if gap >= -rounding(magnitude, terms):
        return 0.0
    raise CertificateError(
        f"primal {primal!r} is below dual {dual!r} by more than rounding; the values are too large "
        "or too different in size for double precision: scale the features or the targets to "
        "about 1."
    )


def relative_gap(gap: float, primal: float) -> float:
    """Return gap/primal, the number that is compared with tol.

    At primal = 0 it is 0 if the gap is 0, and infinite otherwise.
    """
    if primal > 0:
        return gap / primal
    return 0.0 if gap == 0 else math.inf


def radius(gap: float, strength: float) -> float:
    """Return √(2·gap/λ), within which every minimiser of a λ-strongly convex primal lies."""
    return math.sqrt(2.0 * gap / strength)


@dataclass(frozen=True)
class Certificate:
    """A proof of how far a point can be from the optimum.

    Attributes
    ----------
    primal : float
        P at the point.
    dual : float
        A lower bound on min P.
    gap : float
        primal − dual ≥ P − min P.
    radius : float
        No optimal w is farther from the point's than this.
    """

    primal: float
    dual: float
    gap: float
    radius: float

    @property
    def relative_gap(self) -> float:
        """The gap over the primal value."""
        return relative_gap(self.gap, self.primal)

    def __str__(self) -> str:
        return (
            f"The objective is {self.primal:.8g}; no model has less than {self.dual:.8g}. "
            f"This one is within {self.gap:.2e} ({100 * self.relative_gap:.2g} %) of the best, "
            f"and its coefficients within {self.radius:.2e} of the best ones."
        )
