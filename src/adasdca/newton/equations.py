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
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.abilities import (
    EquationIterator,
    Preconditioned,
    able,
)
from adasdca.backends.base import Gram, RowTerm, to_host
from adasdca.backends.blas import cholesky

Array = NDArray[np.float64]

#: Conjugate gradients leave this share of the right-hand side at most, and at least.
LOOSEST, TIGHTEST = 0.1, 1e-9
#: Iterations end where the last has gained no more than this share of the mean of all, where kinks
#: are rounded: steps that cross them are cut short however exact they are (S. G. Nash and A. Sofer,
#: "Assessing a search direction within a truncated-Newton method", Operations Research Letters 9,
#: 1990). Iterations 2135 -> 1065 on columns of power-law frequencies, 2363 -> 1126 on one-hot ones,
#: 573 -> 350 on topics, for a quarter to a half more steps; those of smooth losses are whole, and
#: cost more. Where steps are vain, the accuracy counts again from the second on.
GAIN, FINE = 0.5, 0.005
#: Two steps that leave more of the right-hand side than this share ask for finer ones.
COARSE = 0.5
#: Iterations whose rate tells how many are to come (the best of six beginnings on 38 dense data).
LOOKS = 3
#: Their most iterations; a step that is cut short still leads down.
MOST_ITERATIONS = 2000
#: The share that they leave where a matrix near the one that is meant preconditions them, and their
#: most then. That of single precision saves as much as one of them for so many features.
REFINED, MOST_REFINED, SAVED = 1e-6, 40, 20
#: The least share of the diagonal that is left of it where the intercept is eliminated.
ROUNDED = 1e-10
#: A matrix that is singular to rounding gets this share of its diagonal more, then 100 times it.
DAMPING = 1e-14


class Equations(NamedTuple):
    """The numbers of the equations that are not the rows'.

    Attributes
    ----------
    diagonal : float or (d,) array
        μe.
    right : (d,) array
        r, of NumPy or where the rows are; iterations leave their step there.
    balance : float
        t.
    intercept : bool
        Whether the second line is there.
    sample : int, optional
        So many rows may stand for all.
    enough : float
        The share of the right-hand side that may be left, where a step is the last one then.
    value : float
        The value of the function where the step begins, about.
    """

    diagonal: float | Array
    right: Any
    balance: float
    intercept: bool
    sample: int | None = None
    enough: float = 0.0
    value: float = 0.0


Step = tuple[Array, float]
#: Solves with a matrix that was factorised.
Solve = Callable[[Array], Array]
#: A linear map of two unknowns.
Map = Callable[[Array, Any], tuple[Array, Any]]
#: Told what is left of the right-hand sides, and how far ½(x, y)·A(x, y) − right·(x, y) has fallen,
#: says how many times too much is left: 1 or less will do.
Enough = Callable[[Array, Any, float], float]


def solve_by_features(
    term: RowTerm,
    equations: Equations,
    deadline: float,
    rough: bool = False,
) -> Step | None:
    """Factorise the matrix of the features; None if time ran out."""
    found = None
    for few in (True, False) if rough else (False,):
        formed = term.gram(equations.intercept, deadline, equations.sample, rough=few)
        found = formed and solve_formed(formed, equations, deadline)
        if found is not None or time.perf_counter() >= deadline:
            break
    return found


def solve_formed(
    formed: Gram, equations: Equations, deadline: float = math.inf, share: float = 0.0
) -> Step | None:
    """Factorise a matrix of the features, damped where it is singular to rounding.

    One that is near the one that is meant is a preconditioner for conjugate gradients with that.
    They end, too, where no more than this share of a quadratic function's value is left to gain.
    None if one of few digits was not enough.
    """
    matrix, column, mass = formed.matrix, formed.column, formed.mass
    right, diagonal, value = to_host(equations.right), equations.diagonal, equations.value
    if mass > 0:
        right = right - column * (equations.balance / mass)
        value -= 0.5 * equations.balance**2 / mass
    if formed.single or formed.product is not None:
        dv = _refined(formed, diagonal, right, _enough(diagonal, share, value), deadline)
        if dv is None and formed.single:
            return None
    else:
        dv = None
    if dv is None:
        dv, _ = damped_solve(matrix, diagonal, right, deadline)
    if mass > 0:
        return dv, float(equations.balance - column @ dv) / mass
    return dv, 0.0


def _enough(own: float | Array, share: float, value: float) -> Enough | None:
    """Compare what is left to gain with a share of a quadratic function's value."""
    if share == 0.0 or not np.all(own > 0):
        return None

    def enough(r: Array, _: Any, gained: float) -> float:
        lost, allowed = 0.5 * float((r / own) @ r), share * max(value - gained, 0.0)
        return lost / allowed if allowed > 0 else math.inf * lost if lost > 0 else 0.0

    return enough


def _refined(
    formed: Gram,
    diagonal: float | Array,
    right: Array,
    enough: Enough | None,
    deadline: float,
) -> Array | None:
    product, solve = formed.product, cholesky(formed.matrix.copy(), diagonal)
    if solve is None:
        return None
    if product is None:
        return solve(right)
    found = conjugate_gradients(
        lambda p, _: (product(p) + diagonal * p, 0.0),
        lambda r, _: (solve(r), 0.0),
        (right, 0.0),
        REFINED if enough is None else TIGHTEST,
        deadline,
        max(len(right) // SAVED, 2) if formed.single else MOST_REFINED,
        enough,
    )
    return None if found is None or (formed.single and not found[3]) else found[0]


def damped_solve(
    matrix: Array, diagonal: float | Array, right: Array, deadline: float = math.inf
) -> tuple[Array, float]:
    """Solve with diag(diagonal) + the lower triangle given, which is lost on the way.

    A matrix that is not positive definite gets a share of its own diagonal more, which is
    returned, too. After the deadline its own diagonal has to do.
    """
    solve, damping = damped_solver(matrix, diagonal, right, deadline)
    return solve(right), damping


def damped_solver(
    matrix: Array, diagonal: float | Array, right: Array, deadline: float = math.inf
) -> tuple[Solve, float]:
    """Return how `damped_solve` solves, for a first right-hand side."""
    damping, extra = 0.0, diagonal
    while True:
        solve = cholesky(matrix.copy(), extra, deadline)
        if solve is not None and math.isfinite(float(solve(right).sum())):
            return solve, damping
        own = matrix.diagonal() + diagonal
        if damping >= 1.0 or time.perf_counter() >= deadline:
            return partial(_by_diagonal, np.where(own > 0, own, 1.0)), math.inf
        damping = max(100.0 * damping, DAMPING)
        extra = diagonal + damping * own


def _by_diagonal(own: Array, right: Array) -> Array:
    return np.asarray((right.T / own).T)


@dataclass
class ConjugateGradients:
    """Conjugate gradients, preconditioned by the diagonal.

    A rough step may leave out the very direction in which there is far to go, if the function is
    flat there, and the next one lead back. Steps that do not make the right-hand side of the same
    objective smaller are followed by finer ones: after two of them, and then after twice as many
    each time, since kinks that are crossed one by one do the same, and finer steps do not help
    there (hinge, 4e6 x 200,000: 2000 iterations a step where 40 do).

    Attributes
    ----------
    accuracy : float
        The share of the right-hand side to leave, in the norm of the preconditioner.
    share : float
        Of a quadratic function, the share of its value that may be left to gain: what is left of
        the right-hand side tells it, so that one step is enough, and no iteration is taken twice.
    gain : float
        They end, too, where the last one has gained no more than this share of the mean of all.
    """

    accuracy: float = LOOSEST
    share: float = 0.0
    gain: float = 0.0
    #: Iterations of the last solve, and whether they were enough.
    taken: int = 0
    done: bool = True
    _last: tuple[float, float] = (math.inf, math.inf)
    _term: Any = None
    _patience: int = 2
    _vain: int = 0  # steps that did not make it smaller

    def solve(
        self,
        term: RowTerm,
        equations: Equations,
        deadline: float,
        most: int = MOST_ITERATIONS,
        rival: float = math.inf,
        factor: Solve | None = None,
    ) -> Step | None:
        """Iterate; a product with the matrix is two passes over the rows.

        Another way costs as much as `rival` iterations. A factor of a matrix near the one that is
        meant preconditions them better than the diagonal.

        The intercept is eliminated. Iterations with it leave a share of its equation, too, and what
        is left of Σ c_iβ_i costs all duals of one side their share in the certificate (hinge,
        60,000 x 8000 of topics: 600 iterations for 44,000).
        """
        if factor is None:
            squares, mass = term.diagonal()
        else:
            squares, mass = np.ones(len(equations.right)), math.inf
        # Vectors of features are where the rows are: NumPy's functions go on to that array's.
        own = np.asarray(equations.diagonal, like=squares)
        right = np.asarray(equations.right, like=squares)
        scale, mean, share, value = squares + own, None, 0.0, equations.value
        sums = None
        if equations.intercept and mass > 0:
            sums, mass = term.curve(np.zeros_like(squares), 1.0)
        if sums is not None and mass > 0:
            mean = sums / mass
            share = equations.balance / mass
            value -= 0.5 * share * equations.balance
            right = right - equations.balance * mean
            # Less than this of a difference is rounding.
            scale = np.maximum(scale - mass * mean**2, ROUNDED * scale)
        scale = np.where(scale > 0, scale, 1.0)
        if factor is None:
            self._judge(term, math.sqrt(float((right / scale) @ right)))

        accuracy = min(max(self.accuracy, equations.enough), LOOSEST)
        gain = self.gain if self.accuracy > FINE else 0.0
        if gain > 0:
            accuracy = TIGHTEST
        found: Any = NotImplemented
        iterator: EquationIterator | None = able(term, EquationIterator)
        if iterator is not None and factor is None:
            there = Preconditioned(own, scale, right, mean, gain)
            found = iterator.iterate(there, accuracy, deadline, most)
        if found is NotImplemented:

            def product(p: Array, _: float) -> tuple[Array, float]:
                shift = 0.0 if mean is None else -float(mean @ p)
                return term.curve(p, shift)[0] + own * p, 0.0

            enough = _enough(own, self.share, value)
            solved = conjugate_gradients(
                product,
                lambda r, _: (r / scale if factor is None else factor(r), 0.0),
                (right, 0.0),
                accuracy if enough is None else TIGHTEST,
                deadline,
                most,
                enough,
                gain,
                rival,
            )
            found = solved and (solved[0], *solved[2:])
        if found is None:
            return None
        dv, self.taken, self.done = found
        db = share - float(mean @ dv) if mean is not None else 0.0
        return (to_host(dv) if isinstance(equations.right, np.ndarray) else dv), db

    def _judge(self, term: RowTerm, size: float) -> None:
        """Choose the accuracy by what the last steps have done to the right-hand side."""
        if term is not self._term:
            self._term, self._vain, self._last = term, 0, (math.inf, math.inf)
        if size <= COARSE * self._last[0]:
            self._vain, self.accuracy = 0, min(2.0 * self.accuracy, LOOSEST)
        else:
            self._vain += 1
        if self._vain >= self._patience:
            self._vain, self._patience = 0, 2 * self._patience
            self.accuracy = max(0.1 * self.accuracy, TIGHTEST)
        self._last = self._last[1], size


def conjugate_gradients(
    product: Map,
    precondition: Map,
    right: tuple[Array, Any],
    accuracy: float,
    deadline: float,
    most: int = MOST_ITERATIONS,
    enough: Enough | None = None,
    gain: float = 0.0,
    rival: float = math.inf,
) -> tuple[Array, Any, int, bool] | None:
    """Solve A(x, y) = right for a positive definite A and two unknowns of any shape.

    Return the two, the number of iterations, and whether they were enough; None if time ran
    out. What they come to after any number of iterations leads down.

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
    most : int
        Most iterations.
    enough : callable, optional
        Says whether what is left will do.
    gain : float
        The share of the mean gain of all iterations that the last one has to exceed.
    rival : float
        They end where the rate at which what `enough` says has fallen tells that they will be more.
    """
    r_x, r_y = right[0].copy(), 1.0 * right[1]
    x, y = np.zeros_like(r_x), np.zeros_like(r_y)
    z_x, z_y = precondition(r_x, r_y)
    p_x, p_y = z_x.copy(), z_y
    energy = float(np.vdot(r_x, z_x) + np.vdot(r_y, z_y))
    goal, gained, last, first = accuracy**2 * energy, 0.0, 0.0, math.inf
    for iteration in range(most):
        if energy <= goal:
            return x, y, iteration, True
        if enough is not None:
            left = enough(r_x, r_y, gained)
            if left <= 1.0:
                return x, y, iteration, True
            first = left if iteration == 0 else first
            fall = math.log(first) - math.log(left)
            total = iteration * math.log(first) / fall if fall > 0 else math.inf
            if iteration >= LOOKS and total > rival:
                return x, y, iteration, False
        if iteration > 2 and iteration * last <= gain * gained:
            return x, y, iteration, True
        if time.perf_counter() >= deadline:
            return None
        q_x, q_y = product(p_x, p_y)
        curvature = float(np.vdot(p_x, q_x) + np.vdot(p_y, q_y))
        if not curvature > 0:
            return (*((z_x, z_y) if iteration == 0 else (x, y)), iteration, True)
        length = energy / curvature
        last = 0.5 * length * energy
        gained += last
        # In place: fresh memory for large blocks costs as much as the sums.
        x += length * p_x
        r_x -= length * q_x
        y, r_y = y + length * p_y, r_y - length * q_y
        z_x, z_y = precondition(r_x, r_y)
        before, energy = energy, float(np.vdot(r_x, z_x) + np.vdot(r_y, z_y))
        p_x *= energy / before
        p_x += z_x
        p_y = z_y + (energy / before) * p_y
    return x, y, most, False
