"""Duals whose sum has more digits than they have themselves.

u = Σ_i c_iβ_i x_i/(λN) is a sum of terms that cancel. Where features are far larger than what is
left of them, as timestamps in nanoseconds are (1.6e18), the last digit of one dual makes more of u
than w is, and far more of the gap than is asked for. But last digits of several rows, moved
together, can make very little of it: the moves are a lattice, and a basis of short vectors of it
leads to duals for which u is as near to w as one likes. (L. Babai, "On Lovász' lattice reduction
and the nearest lattice point problem", Combinatorica 6, 1986; here pairs of vectors are reduced.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: A dual at 0 may move so many times as far as it would have to if it moved alone.
FAR = 8.0
#: Moves by less than this share of the goal are of no use.
FINE = 0.125
#: A row is of use if it can move by so many of its last digits.
DIGITS = 8.0
#: No dual moves by more of its last digits than this: the sums of moves are doubles, too.
MOST_DIGITS = 2.0**30
#: The least price of a move, in units of its length.
NOISE = 2.0**-52
#: Sweeps over the basis.
SWEEPS = 100


class Movable(NamedTuple):
    """Rows whose duals can move a little either way.

    Attributes
    ----------
    rows : array of int
        Which ones, those of the finest moves first.
    start : array
        Their duals, off the ends of their domain by `room`.
    unit : array
        Their moves are multiples of this.
    room : array
        And no longer than this.
    free : int
        So many of them, the first ones, need not be pushed off an end.
    """

    rows: Index
    start: Array
    unit: Array
    room: Array
    free: int

    def first(self, count: int) -> Movable:
        """Return so many of them."""
        rows, start, unit, room, free = self
        return Movable(rows[:count], start[:count], unit[:count], room[:count], min(free, count))


def movable(
    beta: Array, low: Array, high: Array, length: Array, reach: Array, off: float, goal: float
) -> Movable:
    """Return the rows whose duals can move.

    Parameters
    ----------
    beta, low, high : (n,) arrays
        The duals, and the ends of their domains.
    length : (n,) array
        How far u moves with them.
    reach : (n,) array
        How far each may move for what that costs the loss.
    off, goal : float
        How far u is off, and how far it may be.
    """
    with np.errstate(all="ignore"):
        alone = FAR * off / length
        reach = np.minimum(reach, MOST_DIGITS * np.spacing(np.abs(beta).max()))
        # A dual that is near 0 has finer digits than any other.
        start = np.maximum(beta, low + np.where(low == 0, alone, reach))
        start = np.minimum(start, high - np.where(high == 0, alone, reach))
        finest = 2.0 ** np.floor(np.log2(FINE * goal / length))
        unit = np.maximum(np.spacing(np.abs(start)), finest)
        room = np.minimum(np.minimum(start - low, high - start), np.maximum(reach, alone))
        able = np.flatnonzero((length > 0) & (room >= DIGITS * unit) & np.isfinite(start))
    # Off an end that is not 0 a dual has no finer digits, and costs the loss something.
    pushed = (start != beta) & (np.abs(start) > alone)
    order = able[np.lexsort(((unit * length)[able], pushed[able]))]
    free = int(np.count_nonzero(~pushed[able]))
    return Movable(order, start[order], unit[order], room[order], free)


def nearest(moves: Array, price: Array, off: Array) -> Array:
    """Return whole numbers k of moves with a short off + Σ_i k_i moves_i.

    Parameters
    ----------
    moves : (m, d) array
        The moves.
    price : (m,) array
        What one of each costs beside that, in the units of `off`.
    off : (d,) array
        Where to begin.
    """
    count = len(moves)
    # Sums of moves are rounded: more of them than this would be noise.
    price = np.maximum(price, NOISE * np.abs(moves).max(axis=1))
    basis, made = _reduced(np.hstack([np.diag(price), moves]))
    order = np.argsort(np.einsum("ij,ij->i", basis, basis))
    basis, made = basis[order], made[order]
    # As real numbers, at the least price; the lattice is for what their rounding leaves.
    dear = moves / price[:, None]
    k: Array = np.rint(-np.linalg.lstsq(dear.T, off, rcond=None)[0] / price)
    rest = np.concatenate([k * price, off + k @ moves])
    # From plane to plane, the farthest apart first.
    upright = np.linalg.qr(basis.T)
    for i in range(count - 1, -1, -1):
        times = np.rint(float(upright.Q[:, i] @ rest) / upright.R[i, i])
        rest = rest - times * basis[i]
        k -= times * made[i]
    return k


def _reduced(vectors: Array) -> tuple[Array, Array]:
    """Return a basis of the same lattice in which no vector is much shortened by another one.

    And of how many of the given vectors each of it is made.
    """
    basis, made = vectors.copy(), np.eye(len(vectors))
    squares = np.einsum("ij,ij->i", basis, basis)
    for _ in range(SWEEPS):
        done = True
        for i in np.argsort(-squares):
            along = basis @ basis[i]
            times = np.rint(along / squares)
            times[i] = 0.0
            gain = times * (2.0 * along - times * squares)
            best = int(np.argmax(gain))
            if gain[best] > 0.01 * squares[i]:
                basis[i] -= times[best] * basis[best]
                made[i] -= times[best] * made[best]
                squares[i] = float(basis[i] @ basis[i])
                done = False
        if done:
            break
    return basis, made
