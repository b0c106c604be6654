"""Coefficients of rows in this process, moved by their last digits until rows are interpolated.

Where a penalty is weak and there are more features than rows, a loss with a kink is 0 at its
optimum, and the objective next to 0. Scores then lie at their kinks, but for the rounding of the
coefficients: far more than the objective. It has to be taken back by coefficients whose digits are
fine, those near 0.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backends.cpu_term import CpuTerm
from adasdca.backends.interior import MOST_UNKNOWNS, factorise
from adasdca.problem.regularizers import Regularizer

Array = NDArray[np.float64]

#: The unit roundoff, and the least number of all its digits.
EPSILON, TINY = 2.0**-52, 2.0**-1022
#: Moves, each of which has to halve what is off.
MOVES = 4


def interpolated(
    term: CpuTerm, w: Array, b: float, beta: Array, deadline: float = math.inf
) -> Array | None:
    """Return coefficients near w for which the rows with free duals are nearer to their kinks.

    Of all moves δ that lead there, that with the least Σ_j (δ_j ε_j|x_j|)², where ε_j is the unit
    in the last place of w_j: coarse coefficients, whose rounding would undo it, hardly move. (With
    ε_j|x_j| alone the effect on scores would be shared by all of them.) Features at rest stay
    there. None if there is no such move.
    """
    rows = np.flatnonzero(term.problem.loss.is_free(beta, term.problem.y) & (_weights(term) > 0))
    lengths = np.empty(len(w))
    chosen = np.zeros(len(beta))
    chosen[rows] = 1.0
    term.workspace.squares(chosen, lengths, term.threads)
    movable = _inside(term.problem.regularizer, w) & (lengths > 0)
    if not 0 < len(rows) <= min(MOST_UNKNOWNS, int(np.count_nonzero(movable))):
        return None
    off = _off(term, w, b, beta)
    least = EPSILON * float(np.abs(off[rows]).mean())  # finer digits are not needed
    price = np.full(len(w), np.inf)
    units = np.spacing(np.abs(w[movable])) * np.sqrt(lengths[movable])
    price[movable] = np.maximum(units, least)
    with np.errstate(over="ignore"):
        price = (price / max(price.min(), TINY)) ** 2
    found = term._products(rows, price, deadline)
    solve = None if found is None else factorise(found[1], np.zeros(len(rows)), deadline)
    if found is None or solve is None:
        return None
    order, at, best = found[0], w, None
    for _ in range(MOVES):
        duals = np.zeros(len(beta))
        duals[order] = solve(off[order])
        moved = np.where(movable, at + term._weighted_sum(duals) / price, at)
        there = _off(term, moved, b, beta)
        if not np.abs(there[rows]).sum() < 0.5 * np.abs(off[rows]).sum():
            break
        best = at = moved
        off = there
    return best


def _weights(term: CpuTerm) -> Array | float:
    return 1.0 if term.problem.weight is None else term.problem.weight


def _inside(regularizer: Regularizer, w: Array) -> NDArray[np.bool_]:
    """Return which coefficients are at no bound, and not at 0 where a kink holds them there."""
    lower, upper = regularizer.bounds or (-np.inf, np.inf)
    inside = (w > lower) & (w < upper)
    return np.asarray(inside & ((w != 0) | (np.asarray(regularizer.threshold) == 0)))


def _off(term: CpuTerm, w: Array, b: float, beta: Array) -> Array:
    """Return how far scores are from the kinks that free duals are at, in twice the digits."""
    loss, y = term.problem.loss, term.problem.y
    off = _core.vector(len(beta))
    term.workspace.exact_scores(w, b, off, term.threads, True)
    sign = y if loss.kind == "classification" else 1.0
    return np.asarray(-off - sign * loss.dead_zone * np.sign(sign * beta))
