"""The eleven losses in their textbook form, for the oracle in reference.py.

Each is a function of its parameters returning value phi(a, y), conjugate phi*(-beta) (inf outside
its domain), slope phi'(a, y) and the exact coordinate step. q = 0 is an all-zero row.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, xlogy


class Loss(NamedTuple):
    """Four functions, the smoothness of the conjugate, and the domain of beta (for y = 1)."""

    kind: str
    gamma: float
    low: float
    high: float
    value: Callable
    conjugate: Callable
    slope: Callable
    step: Callable


def soft(x, t):
    return np.sign(x) * np.maximum(np.abs(x) - t, 0.0)


def ratio(x, q):
    """x / q, and its limit +-inf (0 where x = 0) at q = 0: the clip to the domain does the rest."""
    x, q = np.broadcast_arrays(np.asarray(x, float), np.asarray(q, float))
    limit = np.where(x == 0, 0.0, np.copysign(np.inf, x))
    return np.where(q > 0, x / np.where(q > 0, q, 1.0), limit)


def inside(x, low, high, value):
    return np.where((x >= low) & (x <= high), value, np.inf)


def margin(gamma, low, high, value, conjugate, slope, step):
    """A classification loss from functions of z = y a and b = y beta."""
    return Loss(
        *("classification", gamma, low, high),
        value=lambda a, y: value(y * a),
        conjugate=lambda beta, y: inside(y * beta, low, high, conjugate(y * beta)),
        slope=lambda a, y: y * slope(y * a),
        step=lambda beta, a, y, q: y * np.clip(step(y * beta, y * a, q), low, high),
    )


def residual(gamma, low, high, value, conjugate, slope, step):
    """A regression loss from functions of r = a - y; ``conjugate`` is phi*(-beta) + y beta."""
    return Loss(
        *("regression", gamma, low, high),
        value=lambda a, y: value(a - y),
        conjugate=lambda beta, y: inside(beta, low, high, conjugate(beta) - y * beta),
        slope=lambda a, y: slope(a - y),
        step=lambda beta, a, y, q: np.clip(step(beta, a - y, q), low, high),
    )


def smoothed_hinge(gamma=1.0):
    def value(z):
        middle = (1 - z) ** 2 / (2 * gamma)
        return np.where(z >= 1, 0.0, np.where(z <= 1 - gamma, 1 - z - gamma / 2, middle))

    return margin(
        *(gamma, 0.0, 1.0, value),
        conjugate=lambda b: -b + gamma * b**2 / 2,
        slope=lambda z: -np.clip((1 - z) / gamma, 0.0, 1.0),
        step=lambda b, z, q: b + (1 - z - gamma * b) / (gamma + q),
    )


def hinge():
    return margin(
        *(0.0, 0.0, 1.0),
        value=lambda z: np.maximum(0.0, 1 - z),
        conjugate=lambda b: -b,
        slope=lambda z: np.where(z < 1, -1.0, 0.0),
        step=lambda b, z, q: b + ratio(1 - z, q),
    )


def squared_hinge(high=np.inf):
    return margin(
        *(0.5, 0.0, high),
        value=lambda z: np.maximum(0.0, 1 - z) ** 2,
        conjugate=lambda b: -b + b**2 / 4,
        slope=lambda z: -2 * np.maximum(0.0, 1 - z),
        step=lambda b, z, q: b + (1 - z - b / 2) / (0.5 + q),
    )


def modified_huber():
    quarter = smoothed_hinge(gamma=2.0)
    return squared_hinge(high=4.0)._replace(
        value=lambda a, y: 4 * quarter.value(a, y), slope=lambda a, y: 4 * quarter.slope(a, y)
    )


def logistic():
    def conjugate(b):
        b = np.clip(b, 0.0, 1.0)
        return xlogy(b, b) + xlogy(1 - b, 1 - b)

    @np.vectorize
    def step(b, z, q):
        # In x = log(b / (1-b)) the equation is increasing, its root within q of -z.
        x = brentq(lambda x: x + z + q * (expit(x) - b), -z - q - 1, -z + q + 1, xtol=1e-15)
        return expit(x)

    return margin(
        *(4.0, 0.0, 1.0),
        value=lambda z: np.logaddexp(0.0, -z),
        conjugate=conjugate,
        slope=lambda z: -expit(-z),
        step=step,
    )


def squared(gamma=1.0):
    return residual(
        *(gamma, -np.inf, np.inf),
        value=lambda r: r**2 / (2 * gamma),
        conjugate=lambda beta: gamma * beta**2 / 2,
        slope=lambda r: r / gamma,
        step=lambda beta, r, q: beta + (-r - gamma * beta) / (gamma + q),
    )


def huber(delta=1.35):
    return residual(
        *(1.0, -delta, delta),
        value=lambda r: np.where(np.abs(r) <= delta, r**2 / 2, delta * np.abs(r) - delta**2 / 2),
        conjugate=lambda beta: beta**2 / 2,
        slope=lambda r: np.clip(r, -delta, delta),
        step=lambda beta, r, q: beta + (-r - beta) / (1 + q),
    )


def absolute():
    return epsilon_insensitive(epsilon=0.0)


def epsilon_insensitive(epsilon=0.1):
    return residual(
        *(0.0, -1.0, 1.0),
        value=lambda r: np.maximum(0.0, np.abs(r) - epsilon),
        conjugate=lambda beta: epsilon * np.abs(beta),
        slope=lambda r: np.sign(soft(r, epsilon)),
        step=lambda beta, r, q: ratio(soft(q * beta - r, epsilon), q),
    )


def squared_epsilon_insensitive(epsilon=0.1):
    return residual(
        *(0.5, -np.inf, np.inf),
        value=lambda r: np.maximum(0.0, np.abs(r) - epsilon) ** 2,
        conjugate=lambda beta: epsilon * np.abs(beta) + beta**2 / 4,
        slope=lambda r: 2 * soft(r, epsilon),
        step=lambda beta, r, q: soft(q * beta - r, epsilon) / (q + 0.5),
    )


def quantile(quantile=0.5):
    return residual(
        *(0.0, quantile - 1, quantile),
        value=lambda r: np.maximum(-quantile * r, (1 - quantile) * r),
        conjugate=lambda beta: 0.0 * beta,
        slope=lambda r: np.where(r < 0, -quantile, np.where(r > 0, 1 - quantile, 0.0)),
        step=lambda beta, r, q: beta + ratio(-r, q),
    )


REGRESSION = (squared, huber, absolute, epsilon_insensitive, squared_epsilon_insensitive, quantile)
CLASSIFICATION = (smoothed_hinge, hinge, squared_hinge, modified_huber, logistic)
LOSSES = {make.__name__: make for make in (*REGRESSION, *CLASSIFICATION)}
