"""The certificate: a bound on the distance from the optimum, with the rounding it may hide."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class CertificateError(ArithmeticError):
    """The numbers of a certificate are not finite: nothing can be said of the point."""


def relative_gap(gap: float, primal: float) -> float:
    """Return gap/primal, the number that is compared with tol.

    At primal = 0 it is 0 if the gap is 0, and infinite otherwise.
    """
    if primal > 0:
        return gap / primal
    return 0.0 if gap == 0 else math.inf


def radius(gap: float, strength: float) -> float:
    """Return √(2·gap/λ), within which every minimiser of a λ-strongly convex primal lies."""
    return math.sqrt(2.0 * gap / strength) if strength > 0 else math.inf


def sides(beta: Array, weight: Array) -> tuple[float, float]:
    """Return the weight of the duals of either sign, Σ c_i max(β_i, 0) and Σ c_i max(−β_i, 0)."""
    return float(weight @ np.maximum(beta, 0.0)), float(weight @ np.maximum(-beta, 0.0))


def shares_of(up: float, down: float) -> tuple[float, float]:
    """Return by which shares either side, of these weights, is scaled down to the lighter one."""
    return (down / up, 1.0) if up > down else (1.0, up / down if down > 0 else 1.0)


def scaled(beta: Array, shares: tuple[float, float]) -> Array:
    """Return shares of β above and below 0; arrays of a device stay there."""
    return beta if shares == (1.0, 1.0) else beta * np.where(beta > 0, *shares)


def balanced(beta: Array, weight: Array) -> Array:
    """Return β with its heavier sign scaled down until Σ c_iβ_i = 0, which an intercept demands."""
    return scaled(beta, shares_of(*sides(beta, weight)))


def evened(beta: Array, weight: Array, balance: float) -> Array:
    """Return β with one element less by what Σ c_iβ_i = `balance` is beside 0, if that is rounding.

    The smallest element that is far larger than the balance: it has the finest digits.
    """
    size = np.abs(beta)
    able = np.flatnonzero(weight * size > 2.0 * abs(balance))
    if balance == 0 or not len(able):
        return beta
    k = able[size[able].argmin()]
    beta = beta.copy()
    beta[k] -= balance / weight[k]
    return beta


def digits_done(first: float, gap: float, goal: float) -> float:
    """Return the share of the digits between a first gap and the goal that are there."""
    if gap <= goal:
        return 1.0
    if not goal < first < math.inf or math.isinf(gap):
        return 0.0
    return max(0.0, math.log(first / gap) / math.log(first / goal))


def in_percent(share: float) -> str:
    """Say a share in percent, as people write it: 0.012 %, 100 %."""
    value = 100.0 * share
    return f"{value:.0f} %" if value >= 10 else f"{value:.2g} %"


def in_figures(x: float, figures: int = 3) -> str:
    """Say a number to a few figures, as people write it: 3960 and not 3.96e+03."""
    text = f"{x:.{figures}g}"
    return f"{float(text):.0f}" if "e+" in text and abs(x) < 1e7 else text


@dataclass(frozen=True)
class Certificate:
    """A proof of how far a point can be from the optimum.

    Attributes
    ----------
    primal : float
        P at the point, as computed; it is no farther from the truth than gap is from
        primal − dual.
    dual : float
        A lower bound on min P: primal − gap, less what rounding can have added to `primal`.
    gap : float
        A bound on P − min P, which holds in real numbers for the data as given.
    radius : float
        No optimal w is farther from the point's than this; infinite without an L2 term.
    rounding : float
        The part of the gap that bounds the rounding of its own computation. No smaller gap can be
        certified at this point in double precision.
    """

    primal: float
    dual: float
    gap: float
    radius: float
    rounding: float = 0.0

    @classmethod
    def of(
        cls, primal: float, gap: float, rounding: float, blur: float, strength: float
    ) -> Certificate:
        """Make a certificate of a gap.

        Parameters
        ----------
        primal, gap, rounding
            As above.
        blur : float
            How far `primal` can be from the truth.
        strength : float
            λ, the modulus of strong convexity.
        """
        if not (math.isfinite(primal) and math.isfinite(gap)):
            raise CertificateError(
                f"the objective is {primal!r} and its gap {gap!r}; the values are too large for "
                "double precision: scale the features or the targets to about 1."
            )
        primal, gap, rounding = float(primal), float(gap), float(rounding)
        exact = gap == 0 and blur == 0
        dual = primal if exact else math.nextafter(primal - gap - blur, -math.inf)
        return cls(primal, dual, gap, radius(gap, strength), rounding)

    @property
    def relative_gap(self) -> float:
        """The gap over the primal value, which is compared with tol."""
        return relative_gap(self.gap, self.primal)

    def __str__(self) -> str:
        known = f"The objective is {self.primal:.8g}; no model has less than {self.dual:.8g}."
        if not math.isfinite(self.gap):
            return f"{known} How far this one is from the best is not known."
        share = self.relative_gap
        percent = f" ({in_percent(share)})" if math.isfinite(share) else ""
        coefficients = "of the best; without an L2 term nothing bounds its coefficients."
        if math.isfinite(self.radius):
            coefficients = (
                f"of the best, and its coefficients within {in_figures(self.radius)} of the best "
                "ones."
            )
        return f"{known} This one is within {in_figures(self.gap)}{percent} {coefficients}"


class Certified:
    """What has a certificate shows its numbers."""

    certificate: Certificate

    @property
    def primal(self) -> float:
        """The objective at this point."""
        return self.certificate.primal

    @property
    def dual(self) -> float:
        """A lower bound on the least objective."""
        return self.certificate.dual

    @property
    def gap(self) -> float:
        """A bound on how far the objective is above the least one."""
        return self.certificate.gap

    @property
    def radius(self) -> float:
        """No optimal coefficients are farther from these than this."""
        return self.certificate.radius

    @property
    def relative_gap(self) -> float:
        """The gap over the primal value, which is compared with tol."""
        return self.certificate.relative_gap
