"""Lattice reduction: duals for which u is closer to w than their own precision suggests.

u = Σ_i c_iβ_i x_i/(λN) is a sum of terms that cancel. Where features are far larger than this sum,
as timestamps in nanoseconds are (1.6e18), changing the last digit of one dual changes u by more
than w, and the gap by more than the tolerance. Changes of the last digits of several duals can
cancel: the possible changes of u form a lattice, and a reduced basis of it leads to duals for which
u is as close to w as required. (L. Babai, "On Lovász' lattice reduction and the nearest lattice
point problem", Combinatorica 6, 1986; here pairs of vectors are reduced.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca import _core

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: A dual at 0 may move this many times as far as it would have to if it moved alone.
FAR = 8.0
#: Moves finer than this fraction of the goal are not needed.
FINE = 0.125
#: A row takes part if its dual can move by this many units in the last place.
DIGITS = 8.0
#: No dual moves by more units in the last place: sums of moves are doubles as well.
MOST_DIGITS = 2.0**30
#: The least price of a move, relative to its length.
NOISE = 2.0**-52


class Movable(NamedTuple):
    """Rows whose duals can move a little either way."""

    rows: Index  #: Their indices, those of the finest moves first.
    start: Array  #: Their duals, at a distance `room` from the ends of their domain.
    unit: Array  #: Moves are multiples of this.
    room: Array  #: The longest moves.
    free: int  #: The number of those, the first ones, that were not moved away from an end.

    def first(self, count: int) -> Movable:
        """Return the first ones."""
        rows, start, unit, room, free = self
        return Movable(rows[:count], start[:count], unit[:count], room[:count], min(free, count))


def movable(
    beta: Array,
    low: Array,
    high: Array,
    length: Array,
    reach: Array,
    off: float,
    goal: float,
    spread: float = 1.0,
) -> Movable:
    """Return the rows whose duals can move.

    Parameters
    ----------
    beta, low, high : (n,) arrays
        The duals, and the ends of their domains.
    length : (n,) array
        Change of u per unit of each dual.
    reach : (n,) array
        How far each dual may move at an acceptable cost in the loss.
    off, goal : float
        The distance of u from w, and the distance allowed.
    spread : float
        How many times longer rows are than what tells them apart: moves that add up to 0 are
        longer by that.
    """
    with np.errstate(all="ignore"):
        alone = FAR * spread * off / length
        reach = np.minimum(reach, MOST_DIGITS * np.spacing(np.abs(beta).max()))
        # Floating-point numbers are densest near 0.
        start = np.maximum(beta, low + np.where(low == 0, alone, reach))
        start = np.minimum(start, high - np.where(high == 0, alone, reach))
        finest = 2.0 ** np.floor(np.log2(FINE * goal / length))
        unit = np.maximum(np.spacing(np.abs(start)), finest)
        room = np.minimum(np.minimum(start - low, high - start), np.maximum(reach, alone))
        room = np.minimum(room, MOST_DIGITS * unit)
        able = np.flatnonzero((length > 0) & (room >= DIGITS * unit) & np.isfinite(start))
    # Away from an end that is not 0 a dual is no finer, and the loss pays for it.
    pushed = (start != beta) & (np.abs(start) > alone)
    order = able[np.lexsort(((unit * length)[able], pushed[able]))]
    free = int(np.count_nonzero(~pushed[able]))
    return Movable(order, start[order], unit[order], room[order], free)


def nearest(moves: Array, price: Array, off: Array) -> Array:
    """Return integers k for which off + Σ_i k_i moves_i is short: Babai's nearest plane method.

    Parameters
    ----------
    moves : (m, d) array
        The moves.
    price : (m,) array
        The cost of one of each, in the units of `off`.
    off : (d,) array
        The vector to be cancelled.
    """
    count = len(moves)
    # Sums of moves are rounded: a smaller price would allow for more moves than are exact.
    price = np.maximum(price, NOISE * np.abs(moves).max(axis=1))
    basis, made = _reduced(np.hstack([np.diag(price), moves]))
    order = np.argsort(np.einsum("ij,ij->i", basis, basis))
    basis, made = basis[order], made[order]
    # First the least-squares solution, rounded; the lattice cancels what rounding leaves.
    dear = moves / price[:, None]
    k: Array = np.rint(-np.linalg.lstsq(dear.T, off, rcond=None)[0] / price)
    rest = np.concatenate([k * price, off + k @ moves])
    # Nearest planes, those with the largest spacing first.
    upright = np.linalg.qr(basis.T)
    for i in range(count - 1, -1, -1):
        times = np.rint(float(upright.Q[:, i] @ rest) / upright.R[i, i])
        rest = rest - times * basis[i]
        k -= times * made[i]
    return k


def _reduced(vectors: Array) -> tuple[Array, Array]:
    """Return a basis of the same lattice in which no vector is shortened much by another one.

    And the integer combinations of the given vectors that make it.
    """
    basis, made = vectors.copy(), np.eye(len(vectors))
    _core.reduce_pairs(basis, made)
    return basis, made
