"""The equations of a Newton step of a multinomial model: formed, or by conjugate gradients.

Rows less their mean z_i and b + W·mean instead of b: then a mean far from 0 costs no digits, and
the steps of W and b are nearly independent of each other. A step solves, with the curvatures
A_i = c_i (diag p_i − p_i p_iᵀ) of the rows,

    Σ_i A_i (ΔW z_i + Δb) z_iᵀ + μ ΔW = R,    Σ_i A_i (ΔW z_i + Δb) = 0,

the second line with an intercept only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.multinomial.blocks import Block
from adasdca.multinomial.margins import Multinomial, RowLosses
from adasdca.newton.equations import damped_solve, damped_solver
from adasdca.newton.gradients import MOST_ITERATIONS, Map, conjugate_gradients
from adasdca.problem.device_rows import to_host

Array = NDArray[np.float64]
Step = tuple[Array, Array]

#: Up to this many unknowns the matrix is formed from the beginning,
DIRECT = 300
#: and beyond this number never.
TOO_MANY = 3000
#: Time of a multiplication in a factorisation, relative to one in a pass of single precision.
#: (1797 x 64, 10 classes, C = 100: 101 ms where 0.25 takes 349.)
QUICKER = 1.0
#: Most cost of a preconditioner, in iterations.
WORTH = 30.0
#: Most numbers of the blocks of a class each, and what an iteration takes beside its passes, in
#: multiplications for each unknown.
MOST_NUMBERS, LINES = 10**8, 10.0
#: Iterations that blocks are expected to leave.
BLOCKWISE = 30
#: Rows of which it is made, for each feature.
SAMPLE = 16
#: The least relative residual that single precision reaches.
SINGLE = 1e-3


class StepEquations:
    """Solves the equations of all steps of a problem.

    By conjugate gradients, until one step takes so many iterations that forming the matrix would
    have been cheaper.
    """

    def __init__(self, problem: Multinomial) -> None:
        self.problem = problem
        (n, d), k = problem.rows.shape, problem.n_classes
        unknowns = k * (d + 1)
        iteration = 2.0 * k * max(problem.rows.stored, 1)
        self.formed = unknowns <= DIRECT
        self._patience = math.inf
        if unknowns <= TOO_MANY:
            work = 0.5 * n * unknowns**2 + unknowns**3 / 6.0
            self._patience = QUICKER * work / iteration
        self._average = average_cost(n, d) <= WORTH * iteration
        self.by_classes, self._price, self._plain = False, math.inf, math.inf
        self._each = 1.0 + 2.0 * k * d**2 / (iteration + LINES * k * d)
        if d <= n and k * (d + 1) ** 2 <= MOST_NUMBERS:
            work = k * (0.5 * problem.rows.stored / n * problem.rows.stored + d**3 / 6.0)
            self._price = QUICKER * work / (iteration + LINES * k * d)
        self._most = MOST_ITERATIONS

    def solve(
        self, losses: RowLosses, mu: float, right: Array, accuracy: float, deadline: float
    ) -> Step | None:
        """Solve the equations for R = right to some accuracy; None if time ran out."""
        if self.formed:
            found = solve_formed(self.problem, losses, mu, right, deadline)
        else:
            found = self._iterate(losses, mu, right, accuracy, deadline)
        if found is None:
            return None
        dw, db = found
        if not self.problem.fit_intercept:
            return dw, np.zeros(len(dw))
        db = db - dw @ self.problem.centre
        return dw, db - db.mean()

    def _iterate(
        self, losses: RowLosses, mu: float, right: Array, accuracy: float, deadline: float
    ) -> Step | None:
        """Use conjugate gradients; a product with the matrix is one pass over the rows."""
        single = accuracy >= SINGLE and self.problem.rows.single and not self.by_classes
        real = np.float32 if single else np.float64
        size = float(np.abs(right).max())
        found = None
        if size > 0:
            found = self._iterate_in(real, losses, mu, right / size, accuracy, deadline)
            # A step of single precision may be none at all, or lead up.
            if found is not None and single and not 0 < np.vdot(right, found[0]) < math.inf:
                found = self._iterate_in(np.float64, losses, mu, right / size, accuracy, deadline)
        return None if found is None else (size * found[0], size * found[1])

    def _compare(self, count: int) -> None:
        """Choose by what the iterations of a step have cost, and what those by blocks do."""
        if not self.by_classes:
            self._plain = count
            self.by_classes = count > self._price + BLOCKWISE * self._each
        elif self._price + count * self._each > self._plain:
            self.by_classes = False
            self._price *= 4.0

    def _iterate_in(
        self,
        real: Any,
        losses: RowLosses,
        mu: float,
        right: Array,
        accuracy: float,
        deadline: float,
    ) -> Step | None:
        problem, rows, count = self.problem, self.problem.rows, 0
        layout, free, xp = rows.layout, problem.fit_intercept, rows.xp
        curve = losses.curvature(real)

        def product(v: Block, b: Block) -> tuple[Block, Block]:
            nonlocal count
            count += 1
            image, sums = curve(v, b)
            image += real(mu) * v
            return image, sums if free else xp.zeros_like(sums)

        precondition = None
        if self.by_classes:
            precondition = by_blocks(problem, losses, mu, right, deadline)
        elif self._average:
            precondition = by_average(problem, losses, mu, real, deadline)
        if precondition is None:
            precondition = by_diagonal(problem, losses, mu, real)
        right_sides = layout.block(right, real), xp.zeros(layout.lanes)
        found = conjugate_gradients(
            product, precondition, right_sides, accuracy, deadline, self._most
        )
        self.formed = count > self._patience
        self._compare(count)
        if found is None:
            return None
        # Begun anew, iterations lose their directions: where they have not been enough, there are
        # to be more.
        self._most *= 1 if found[3] else 2
        dw, db = found[:2]
        return layout.classes(dw), np.asarray(to_host(db))[: problem.n_classes]


def solve_formed(
    problem: Multinomial, losses: RowLosses, mu: float, right: Array, deadline: float
) -> Step | None:
    """Form the matrix and factorise it."""
    k, d = right.shape
    wide = d + problem.fit_intercept
    matrix = losses.formed(deadline)
    if matrix is None:
        return None
    diagonal = np.full((k, wide), mu)
    if problem.fit_intercept:
        diagonal[:, d] = 0.0
        # Σb is free in the scores. This pins it, in the units of each class.
        last = np.arange(d, k * wide, wide)
        own = matrix[last, last]
        matrix[np.ix_(last, last)] += np.outer(own, own / max(float(own.sum()), 1e-300))
    flat = np.zeros((k, wide))
    flat[:, :d] = right
    step, _ = damped_solve(matrix, diagonal.ravel(), flat.ravel())
    step = step.reshape(k, wide)
    return step[:, :d], step[:, d] if problem.fit_intercept else np.zeros(k)


def average_cost(n: int, d: int) -> float:
    """Return the multiplications of `by_average`, in units of those of a pass."""
    return 0.5 * QUICKER * min(n, SAMPLE * d) * d**2 + 4.5 * d**3


def by_average(
    problem: Multinomial, losses: RowLosses, mu: float, real: Any, deadline: float
) -> Map | None:
    """Precondition by Ā ⊗ G + μ, Ā the mean curvature of the classes and G = Σ_i c_i z_i z_iᵀ.

    At W = 0 all rows have the same curvature, and it is the matrix itself. G stays the same for
    all steps, so that its eigenvectors are found once.
    """
    basis = problem.basis(SAMPLE * problem.rows.shape[1], deadline)
    mean = -losses.coupling()
    np.fill_diagonal(mean, -mean.sum(axis=1))
    if basis is None or not np.isfinite(mean).all():
        return None
    layout, xp = problem.rows.layout, problem.rows.xp
    squares, directions = basis
    directions = directions.astype(real, copy=False)
    k, lanes = len(mean), layout.lanes
    values, vectors = np.linalg.eigh(mean)
    values = np.maximum(values, 0.0)
    inverse = np.where(values > 1e-14 * values[-1], 1.0 / np.maximum(values, 1e-300), 0.0)
    scale, rotation = xp.ones((len(squares), lanes), real), xp.zeros((lanes, lanes), real)
    scale[:, :k] = xp.outer(squares, xp.asarray(values / problem.total)) + mu
    rotation[:k, :k] = xp.asarray(vectors)
    inner = xp.asarray((vectors * inverse) @ vectors.T)

    def precondition(r: Block, t: Block) -> tuple[Block, Block]:
        rotated = directions.T @ (r @ rotation)
        rotated /= scale
        shift = xp.zeros_like(t)
        shift[:k] = inner @ t[:k]
        return directions @ (rotated @ rotation.T), shift

    return precondition


def by_blocks(
    problem: Multinomial, losses: RowLosses, mu: float, right: Array, deadline: float
) -> Map | None:
    """Precondition by the matrix's blocks of a class each, which have the curvature of every row.

    Where classes are told apart, rows differ in it by orders of magnitude. What all classes have in
    common is met by μ alone.
    """
    blocks = losses.blocks(deadline)
    if blocks is None:
        return None
    layout, xp = problem.rows.layout, problem.rows.xp
    k, d, free = problem.n_classes, problem.rows.shape[1], problem.fit_intercept
    penalty, side = np.full(d + free, mu), np.zeros((k, d + free))
    penalty[d:] = 0.0
    side[:, :d] = right
    solvers = [
        damped_solver(block, penalty, each, deadline)[0]
        for block, each in zip(blocks, side, strict=True)
    ]

    def precondition(r: Block, t: Block) -> tuple[Block, Block]:
        side[:, :d] = layout.classes(r)
        common = side[:, :d].mean(axis=0)
        side[:, :d] -= common
        if free:
            side[:, d] = to_host(t)[:k]
            side[:, d] -= side[:, d].mean()
        found = np.array([solve(each) for solve, each in zip(solvers, side, strict=True)])
        found -= found.mean(axis=0)
        shift = xp.zeros_like(t)
        if free:
            shift[:k] = xp.asarray(found[:, d])
        return layout.block(found[:, :d] + common / mu, r.dtype), shift

    return precondition


def by_diagonal(problem: Multinomial, losses: RowLosses, mu: float, real: Any) -> Map:
    """Precondition by the diagonal."""
    rows, k = problem.rows, problem.n_classes
    xp = rows.xp
    scale, mass = losses.diagonal(real)
    xp.maximum(scale, 0.0, out=scale)
    scale += real(mu)
    mass = xp.asarray(np.where(mass > 0, mass, 1.0))

    def precondition(r: Block, t: Block) -> tuple[Block, Block]:
        z = xp.zeros_like(t)
        z[:k] = t[:k] / mass
        z[:k] -= z[:k].mean()
        return r / scale, z

    return precondition
