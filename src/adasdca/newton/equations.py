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
    RowIterations,
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
#: From a point that epochs have found the first ones gain little (counts 1993 x 4862: 100 of 490).
#: Their rate is not trusted before they have cost this share of the other way.
PATIENCE = 1 / 3
#: The share of what may be left of z that its rounding may take.
EPS, HIDDEN = float(np.finfo(np.float64).eps), 0.1
#: Kinds of what iterations change.
NUMBERS = (int, float, np.ndarray)
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
    gradient : (d,) array, optional
        The part of −r that is not the rows'.
    """

    diagonal: float | Array
    right: Any
    balance: float
    intercept: bool
    sample: int | None = None
    enough: float = 0.0
    value: float = 0.0
    gradient: Any = None


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
        return _share_of(0.5 * float((r / own) @ r), share * max(value - gained, 0.0))

    return enough


def _share_of(lost: float, allowed: float) -> float:
    return lost / allowed if allowed > 0 else math.inf * lost if lost > 0 else 0.0


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


class Gradients:
    """Conjugate gradients for A(x, y) = right with a positive definite A and unknowns of any shape.

    What they come to after any number of iterations leads down.

    Parameters
    ----------
    product : callable
        A.
    precondition : callable
        The inverse of A, about.
    right : pair
        The right-hand sides.
    """

    def __init__(self, product: Map, precondition: Map, right: tuple[Array, Any]) -> None:
        self._product, self._precondition = product, precondition
        self.r, self._r_y = right[0].copy(), 1.0 * right[1]
        self.x, self.y = np.zeros_like(self.r), np.zeros_like(self._r_y)
        z_x, self._p_y = precondition(self.r, self._r_y)
        self._p = z_x.copy()
        self._energy = self._whole = self._squared(z_x, self._p_y)
        self._gained, self._last, self._first = 0.0, 0.0, math.inf
        #: Iterations so far, and the share of another way's cost before their rate is trusted.
        self.taken, self.patience = 0, 0.0

    def _squared(self, x: Array, y: Any) -> float:
        return float(np.vdot(self.r, x) + np.vdot(self._r_y, y))

    def run(
        self,
        accuracy: float,
        deadline: float,
        most: int = MOST_ITERATIONS,
        enough: Enough | None = None,
        gain: float = 0.0,
        rival: float = math.inf,
    ) -> bool | None:
        """Go on; return whether the iterations were enough, None if time ran out.

        Parameters
        ----------
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
            They end where the rate at which what `enough` says has fallen tells that they will be
            more.
        """
        goal, end = accuracy**2 * self._whole, self.taken + most
        while self.taken < end:
            if self._energy <= goal:
                return True
            if enough is not None:
                left = enough(self.r, self._r_y, self._gained)
                if left <= 1.0:
                    return True
                self._first = left if self.taken == 0 else self._first
                fall = math.log(self._first) - math.log(left)
                total = self.taken * math.log(self._first) / fall if fall > 0 else math.inf
                if self.taken >= max(LOOKS, self.patience * rival) and total > rival:
                    return False
            if self.taken > 2 and self.taken * self._last <= gain * self._gained:
                return True
            if time.perf_counter() >= deadline:
                return None
            q_x, q_y = self._product(self._p, self._p_y)
            curvature = float(np.vdot(self._p, q_x) + np.vdot(self._p_y, q_y))
            if not curvature > 0:
                if self.taken == 0:
                    self.x, self.y = self._precondition(self.r, self._r_y)
                return True
            length = self._energy / curvature
            self._last = 0.5 * length * self._energy
            self._gained += self._last
            # In place: fresh memory for large blocks costs as much as the sums.
            self.x += length * self._p
            self.r -= length * q_x
            self.y, self._r_y = self.y + length * self._p_y, self._r_y - length * q_y
            z_x, z_y = self._precondition(self.r, self._r_y)
            before, self._energy = self._energy, self._squared(z_x, z_y)
            self._p *= self._energy / before
            self._p += z_x
            self._p_y = z_y + (self._energy / before) * self._p_y
            self.taken += 1
        return False


class Smoothed:
    """The mean of the points of iterations that leaves least of the right-hand side.

    What is left at the points themselves rises and falls (W. Schönauer, "Scientific Computing on
    Vector Computers", 1987; texts and counts, squared loss: a tenth to a third fewer iterations).

    Parameters
    ----------
    gradients : Gradients
        The iterations.
    root : (n,) array
        √h.
    mass : float
        Its squared length where the intercept, a multiple of it, takes its part of what is left.
    """

    def __init__(self, gradients: Gradients, root: Array, mass: float) -> None:
        self._gradients, self._root, self._mass = gradients, root, mass
        self.x, self.r = gradients.x.copy(), gradients.r.copy()

    def _product(self, a: Array, b: Array) -> float:
        found = float(a @ b)
        if self._mass > 0:
            found -= float(self._root @ a) * float(self._root @ b) / self._mass
        return found

    def take(self) -> float:
        """Take the next point in; return the square of what is left."""
        change = self._gradients.r - self.r
        length = self._product(change, change)
        if length > 0:
            share = -self._product(self.r, change) / length
            self.r += share * change
            self.x += share * (self._gradients.x - self.x)
        return max(self._product(self.r, self.r), 0.0)


def conjugate_gradients(
    product: Map,
    precondition: Map,
    right: tuple[Array, Any],
    accuracy: float,
    deadline: float,
    most: int = MOST_ITERATIONS,
    enough: Enough | None = None,
    gain: float = 0.0,
) -> tuple[Array, Any, int, bool] | None:
    """Run `Gradients` once; return both unknowns, the iterations, and whether they were enough."""
    gradients = Gradients(product, precondition, right)
    done = gradients.run(accuracy, deadline, most, enough, gain)
    return None if done is None else (gradients.x, gradients.y, gradients.taken, done)


@dataclass
class Going:
    """Iterations that may go on, and what becomes of their unknowns."""

    equations: Equations
    gradients: Gradients
    accuracy: float
    enough: Enough | None
    gain: float
    step: Callable[[Any], tuple[Any, float]]
    duals: Callable[[Any], Any] | None = None
    smooth: Smoothed | None = None

    @property
    def numbers(self) -> tuple[dict[str, Any], ...]:
        """What iterations have changed: all that another one of these equations has to take."""
        return tuple(
            {name: value for name, value in vars(part).items() if isinstance(value, NUMBERS)}
            for part in (self.gradients, self.smooth)
            if part is not None
        )

    @numbers.setter
    def numbers(self, numbers: tuple[dict[str, Any], ...]) -> None:
        for part, values in zip((self.gradients, self.smooth), numbers, strict=False):
            vars(part).update(values)


@dataclass
class ConjugateGradients:
    """Conjugate gradients, preconditioned by the diagonal.

    They are in unknowns of the features, or in those of the rows where these are fewer and the term
    has them: the diagonal of the smaller matrix is the better preconditioner, since the larger one
    is singular but for the penalty (squared loss, counts 1500 x 6000, C = 100, to 1e-3: 1504
    iterations and 63; 6000 x 3000: 81 and 2236; texts 3000 x 8000: 86 and 25).

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
        Those that were not enough go on where the same equations come again.
    gain : float
        They end, too, where the last one has gained no more than this share of the mean of all.
    start : (n,) array, optional
        Duals to begin at, where the unknowns are those of the rows.
    """

    accuracy: float = LOOSEST
    share: float = 0.0
    gain: float = 0.0
    start: Any = None
    #: Iterations of the last solve, and whether they were enough.
    taken: int = 0
    done: bool = True
    #: The dual point after its step, if iterations in unknowns of the rows know it.
    duals: Any = None
    _last: tuple[float, float] = (math.inf, math.inf)
    _term: Any = None
    _patience: int = 2
    _vain: int = 0  # steps that did not make it smaller
    _going: Going | None = None

    def before(self, equations: Equations) -> int:
        """Return the iterations that a solve of these equations would go on from."""
        going = self._going
        again = going is not None and going.equations is equations and not self.done
        return going.gradients.taken if again and going is not None and self.share > 0 else 0

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
        """
        going = self._going if factor is None and self.before(equations) else None
        if going is None:
            found = self._begin(term, equations, deadline, most, factor)
            if not isinstance(found, Going):
                return found
            going = found
        self._going, before = going, going.gradients.taken
        done = going.gradients.run(going.accuracy, deadline, most, going.enough, going.gain, rival)
        if done is None:
            return None
        self.taken, self.done = going.gradients.taken - before, done
        x = going.gradients.x
        self.duals = None if going.duals is None else going.duals(x)
        dv, db = going.step(x)
        return (to_host(dv) if isinstance(equations.right, np.ndarray) else dv), db

    @property
    def numbers(self) -> tuple[dict[str, Any], ...]:
        """The numbers by which the iterations of the last solve go on."""
        return () if self._going is None else self._going.numbers

    def resume(
        self, term: RowTerm, equations: Equations, numbers: tuple[dict[str, Any], ...]
    ) -> None:
        """Go on from the numbers of others, which were cut short at the same equations."""
        going = self._begin(term, equations, math.inf, MOST_ITERATIONS, None)
        assert isinstance(going, Going)
        going.numbers = numbers
        self._going, self.done = going, False

    def _begin(
        self,
        term: RowTerm,
        equations: Equations,
        deadline: float,
        most: int,
        factor: Solve | None,
    ) -> Going | Step | None:
        """Begin in unknowns of the rows where these are fewer, or in those of the features."""
        fewer = self.start is not None and term.curved < len(equations.right)
        rows: RowIterations | None = able(term, RowIterations) if fewer else None
        going = self._by_rows(rows, equations) if factor is None and rows is not None else None
        return going or self._by_features(term, equations, deadline, most, factor)

    def _by_rows(self, term: RowIterations, equations: Equations) -> Going | None:
        """Begin in unknowns of the rows; with an intercept on the plane √hᵀ z = t.

        None where rounding of the inner products hides what is asked for; unknowns of features have
        scales that the diagonal mends.
        """
        diagonal, right, balance, intercept = equations[:4]
        system = term.row_system(diagonal, right)
        root, scale = system.root, system.scale
        if EPS * float(scale.sum()) > HIDDEN * math.sqrt(self.share):
            return None
        mass = float(root @ root) if intercept else 0.0
        z = system.unknowns(self.start)
        heavy = root / scale
        if mass > 0:
            z += heavy * ((balance - float(root @ z)) / float(root @ heavy))
        image = system.product(z) if z.any() else z
        first = system.right - image
        # That of the dual point where they begin.
        value = equations.value - 0.5 * float((right / diagonal) @ right)
        value += 0.5 * float(z @ (first + system.right))

        def precondition(r: Array, _: Any) -> tuple[Array, float]:
            off = float(heavy @ r) / float(heavy @ root) if mass > 0 else 0.0
            return (r - off * root if mass > 0 else r) / scale, 0.0

        gradients = Gradients(lambda p, _: (system.product(p), 0.0), precondition, (first, 0.0))
        gradients.patience = PATIENCE
        smooth = Smoothed(gradients, root, mass)

        def enough(r: Array, _: Any, gained: float) -> float:
            gap = 0.5 * smooth.take()
            return _share_of(gap, self.share * max(value + gained + gap, 0.0))

        def step(_: Array) -> tuple[Array, float]:
            db = -float(root @ smooth.r) / mass if mass > 0 else 0.0
            return system.step(z + smooth.x), db

        def duals(_: Array) -> Array:
            return system.duals(z + smooth.x)

        return Going(equations, gradients, TIGHTEST, enough, 0.0, step, duals, smooth)

    def _by_features(
        self,
        term: RowTerm,
        equations: Equations,
        deadline: float,
        most: int,
        factor: Solve | None,
    ) -> Going | Step | None:
        """Begin in unknowns of the features, or let the term iterate, which is then the step.

        The intercept is eliminated. Iterations with it leave a share of its equation, too, and what
        is left of Σ c_iβ_i costs all duals of one side their share in the certificate (hinge,
        60,000 x 8000 of topics: 600 iterations for 44,000).
        """
        if factor is None:
            (squares, *sums), mass = term.diagonal(equations.intercept)
        else:
            squares, sums, mass = np.ones(len(equations.right)), [], math.inf
            if equations.intercept:
                column, mass = term.curve(np.zeros_like(squares), 1.0)
                sums = [column]
        # Vectors of features are where the rows are: NumPy's functions go on to that array's.
        own = np.asarray(equations.diagonal, like=squares)
        right = np.asarray(equations.right, like=squares)
        scale, mean, share, value = squares + own, None, 0.0, equations.value
        if sums and mass > 0:
            mean = sums[0] / mass
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

        def step(dv: Any) -> tuple[Any, float]:
            return dv, share - float(mean @ dv) if mean is not None else 0.0

        found: Any = NotImplemented
        iterator: EquationIterator | None = able(term, EquationIterator)
        if iterator is not None and factor is None:
            there = Preconditioned(own, scale, right, mean, gain)
            found = iterator.iterate(there, accuracy, deadline, most)
        if found is not NotImplemented:
            if found is None:
                return None
            dv, self.taken, self.done = found
            dv, db = step(dv)
            return (to_host(dv) if isinstance(equations.right, np.ndarray) else dv), db

        def product(p: Array, _: float) -> tuple[Array, float]:
            shift = 0.0 if mean is None else -float(mean @ p)
            return term.curve(p, shift)[0] + own * p, 0.0

        enough = _enough(own, self.share, value)
        gradients = Gradients(
            product, lambda r, _: (r / scale if factor is None else factor(r), 0.0), (right, 0.0)
        )
        accuracy = accuracy if enough is None else TIGHTEST
        return Going(equations, gradients, accuracy, enough, gain, step)

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
