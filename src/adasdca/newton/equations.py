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
from adasdca.backends.base import Gram
from adasdca.backends.blas import cholesky
from adasdca.backends.term import RowTerm
from adasdca.newton.gradients import (
    MOST_ITERATIONS,
    Enough,
    Gradients,
    Smoothed,
    conjugate_gradients,
)
from adasdca.problem.device_rows import to_host

Array = NDArray[np.float64]

#: The largest and the least share of the right-hand side that conjugate gradients leave.
LOOSEST, TIGHTEST = 0.1, 1e-9
#: Where kinks are rounded, a step across them is cut short however exact it is. So iterations end
#: when the last one has gained no more than this share of the mean of all (S. G. Nash and A. Sofer,
#: "Assessing a search direction within a truncated-Newton method", Operations Research Letters 9,
#: 1990). That takes a quarter to a half more steps, and fewer iterations: 2135 -> 1065 on columns
#: of power-law frequencies, 2363 -> 1126 on one-hot ones, 573 -> 350 on topics. Steps of smooth
#: losses are not cut short, and would cost more. Where steps are vain, their accuracy falls below
#: the second number, and decides alone from there on.
GAIN, FINE = 0.5, 0.005
#: A step is vain if it leaves more of the right-hand side than this share.
COARSE = 0.5
#: From a point that epochs have found, the first iterations gain little (counts 1993 x 4862: 100 of
#: 490). Their rate is not trusted before they have cost this share of the rival way.
PATIENCE = 1 / 3
#: Unit roundoff, and the share of what may be left of z that the rounding of z may take.
EPS, HIDDEN = float(np.finfo(np.float64).eps), 0.1
#: Types of the attributes that iterations change.
NUMBERS = (int, float, np.ndarray)
#: The share of the right-hand side to leave, and the most iterations, where the factor of a nearby
#: matrix preconditions. A matrix in single precision saves as much as one iteration costs for each
#: so many features.
REFINED, MOST_REFINED, SAVED = 1e-6, 40, 20
#: The least share of a diagonal entry that is left of it where the intercept is eliminated.
ROUNDED = 1e-10
#: The share of its own diagonal that is added to a matrix that is singular to rounding, at first.
DAMPING = 1e-14


class Equations(NamedTuple):
    """The numbers of the equations that are not the rows'."""

    diagonal: float | Array  #: μe.
    right: Any  #: r, of NumPy or where the rows are; iterations leave their step there.
    balance: float  #: t.
    intercept: bool  #: Whether the second line is there.
    sample: int | None = None  #: So many rows may stand for all.
    #: The share of the right-hand side that may be left, where a step is the last one then.
    enough: float = 0.0
    value: float = 0.0  #: The value of the function where the step begins, about.
    gradient: Any = None  #: The part of −r that is not the rows'.


Step = tuple[Array, float]
#: Solves with a matrix that was factorised.
Solve = Callable[[Array], Array]


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

    A matrix with a `product` is only near the Hessian. Its factor preconditions conjugate gradients
    with the Hessian. They end where no more than `share` of a quadratic function's value is left to
    gain. None if a matrix in single precision was not good enough.
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
    """Return what compares what is left to gain with a share of a quadratic function's value."""
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
    """Solve with diag(diagonal) + a lower triangle, which is overwritten; return the damping, too.

    The damping is the share of its own diagonal that was added until the matrix was positive
    definite. After the deadline the diagonal alone is solved with.
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
class Going:
    """Iterations that may go on later, and how their unknowns become a step."""

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
        """What iterations have changed: enough to go on from in another process."""
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

    The unknowns are those of the features, or of the rows where these are fewer and the term can.
    The diagonal of the smaller matrix is the better preconditioner, since the larger matrix is
    singular but for the penalty (iterations by features and by rows, squared loss, C = 100, to
    1e-3: counts 1500 x 6000 1504 and 63, 6000 x 3000 81 and 2236, texts 3000 x 8000 86 and 25).

    A rough step may leave out a direction in which the function is flat and the way is far. The
    next step may then lead back. So vain steps are followed by finer ones: after two vain steps at
    first, and after twice as many each time. Kinks that are crossed one by one make steps vain,
    too, and finer steps do not help there (hinge, 4e6 x 200,000: 2000 iterations a step where 40
    would do).
    """

    #: The share of the right-hand side to leave, in the norm of the preconditioner.
    accuracy: float = LOOSEST
    #: Of a quadratic function, the share of its value that may be left to gain: what is left of the
    #: right-hand side tells it, so that one step is enough, and no iteration is taken twice. Those
    #: that were not enough go on where the same equations come again.
    share: float = 0.0
    #: They end, too, where the last one has gained no more than this share of the mean of all.
    gain: float = 0.0
    start: Any = None  #: Duals to begin at, where the unknowns are those of the rows.
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

        None where rounding of the inner products hides what is asked for. In unknowns of features
        the diagonal mends different scales.
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

        The intercept is eliminated. Otherwise iterations would leave a share of its equation, too,
        and for the certificate the duals of one side are scaled down until Σ c_iβ_i = 0 (hinge,
        60,000 x 8000 of topics: 44,000 -> 600 iterations).
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
