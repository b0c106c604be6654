"""The equations of a Newton step: by features, by rows, or by conjugate gradients.

A step (Δv, Δb) solves, with rows x_i of curvature h_i ≥ 0 and a penalty of curvature μe,

    (diag(μe) + Σ_i h_i x_i x_iᵀ) Δv + k Δb = r,        k = Σ_i h_i x_i,
    kᵀ Δv + (Σ_i h_i) Δb = t,

the second line with an intercept only.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.base import RowTerm
from adasdca.backends.blas import cholesky

Array = NDArray[np.float64]

#: Conjugate gradients leave this share of the right-hand side at most, and at least.
LOOSEST, TIGHTEST = 0.1, 1e-4
#: Their most iterations; a step that is cut short still leads down.
MOST_ITERATIONS = 2000
#: A matrix that is singular to rounding gets this share of its diagonal more, then 100 times it.
DAMPING = 1e-14


class Equations(NamedTuple):
    """The numbers of the equations that are not the rows'.

    Attributes
    ----------
    diagonal : float or (d,) array
        μe.
    right : (d,) array
        r.
    balance : float
        t.
    intercept : bool
        Whether the second line is there.
    """

    diagonal: float | Array
    right: Array
    balance: float
    intercept: bool


Step = tuple[Array, float]
#: A linear map of two unknowns.
Map = Callable[[Array, Any], tuple[Array, Any]]


def solve_by_features(term: RowTerm, equations: Equations, deadline: float) -> Step | None:
    """Factorise the matrix of the features; None if time ran out."""
    formed = term.gram(equations.intercept, deadline)
    if formed is None:
        return None
    matrix, column, mass = formed
    right = equations.right
    if mass > 0:
        right = right - column * (equations.balance / mass)
    dv, _ = damped_solve(matrix, equations.diagonal, right)
    if mass > 0:
        return dv, float(equations.balance - column @ dv) / mass
    return dv, 0.0


def damped_solve(matrix: Array, diagonal: float | Array, right: Array) -> tuple[Array, float]:
    """Solve with diag(diagonal) + the lower triangle given, which is lost on the way.

    A matrix that is not positive definite gets a share of its own diagonal more, which is
    returned, too.
    """
    own = matrix.diagonal() + diagonal
    damping, extra = 0.0, diagonal
    while True:
        # The last copy is not needed, but which one that is nobody knows.
        solve = cholesky(matrix.copy() if damping < 1.0 else matrix, extra)
        if solve is not None:
            solution = solve(right)
            if np.isfinite(solution).all():
                return solution, damping
        if damping >= 1.0:
            own = np.where(own > 0, own, 1.0)
            return (right.T / own).T, math.inf
        damping = max(100.0 * damping, DAMPING)
        extra = diagonal + damping * own


@dataclass
class ConjugateGradients:
    """Conjugate gradients, preconditioned by the diagonal.

    Attributes
    ----------
    accuracy : float
        The share of the right-hand side to leave, in the norm of the preconditioner.
    """

    accuracy: float = LOOSEST

    def solve(self, term: RowTerm, equations: Equations, deadline: float) -> Step | None:
        """Iterate; a product with the matrix is two passes over the rows."""
        squares, mass = term.diagonal()
        scale = np.asarray(squares + equations.diagonal)
        scale = np.where(scale > 0, scale, 1.0)
        free = equations.intercept and mass > 0
        mass = mass if free else 1.0

        def product(p: Array, q: float) -> tuple[Array, float]:
            image, rest = term.curve(p, q)
            return image + equations.diagonal * p, rest if free else 0.0

        return conjugate_gradients(
            product,
            lambda r, t: (r / scale, t / mass),
            (equations.right, equations.balance if free else 0.0),
            self.accuracy,
            deadline,
        )


def conjugate_gradients(
    product: Map,
    precondition: Map,
    right: tuple[Array, Any],
    accuracy: float,
    deadline: float,
) -> tuple[Array, Any] | None:
    """Solve A(x, y) = right for a positive definite A and two unknowns of any shape.

    Parameters
    ----------
    product : callable
        A.
    precondition : callable
        The inverse of A, about.
    right : pair
        The right-hand sides.
    accuracy : float
        The share of the right-hand side to leave, in the norm of the preconditioner.
    deadline : float
        When to give up, on the clock of `time.perf_counter`.
    """
    r_x, r_y = right[0].copy(), np.asarray(right[1], dtype=np.float64)
    x, y = np.zeros_like(r_x), np.zeros_like(r_y)
    z_x, z_y = precondition(r_x, r_y)
    p_x, p_y = z_x, z_y
    energy = float(np.vdot(r_x, z_x) + np.vdot(r_y, z_y))
    goal = accuracy**2 * energy
    for iteration in range(MOST_ITERATIONS):
        if energy <= goal:
            break
        if time.perf_counter() >= deadline:
            return None
        q_x, q_y = product(p_x, p_y)
        bend = float(np.vdot(p_x, q_x) + np.vdot(p_y, q_y))
        if not bend > 0:
            if iteration == 0:
                return z_x, z_y
            break
        length = energy / bend
        x, y = x + length * p_x, y + length * p_y
        r_x, r_y = r_x - length * q_x, r_y - length * np.asarray(q_y)
        z_x, z_y = precondition(r_x, r_y)
        before, energy = energy, float(np.vdot(r_x, z_x) + np.vdot(r_y, z_y))
        p_x, p_y = z_x + (energy / before) * p_x, z_y + (energy / before) * p_y
    return x, y
