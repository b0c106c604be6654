"""The equations of a Newton step of a multinomial model: formed, or by conjugate gradients.

Rows less their mean z_i and b + W·mean instead of b: then a mean far from 0 costs no digits, and
the steps of W and b are nearly independent of each other. A step solves, with the curvatures
A_i = c_i (diag p_i − p_i p_iᵀ) of the rows,

    Σ_i A_i (ΔW z_i + Δb) z_iᵀ + μ ΔW = R,    Σ_i A_i (ΔW z_i + Δb) = 0,

the second line with an intercept only.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from adasdca.backends.blas import cholesky
from adasdca.multinomial.margins import Multinomial, RowLosses
from adasdca.newton.equations import Map, conjugate_gradients, damped_solve

Array = NDArray[np.float64]
Step = tuple[Array, Array]

#: Up to this many unknowns the matrix is formed; beyond, conjugate gradients.
DIRECT = 300
#: Share of the gradient that conjugate gradients may leave, at most.
FORCING = 0.25
#: A preconditioner that costs more than so many of their iterations is not worth it.
WORTH = 10.0


def solve_step(
    problem: Multinomial, losses: RowLosses, right: Array, accuracy: float, deadline: float
) -> Step | None:
    """Solve the equations for R = right; None if time ran out."""
    k, d = right.shape
    formed = k * (d + 1) <= DIRECT
    if formed:
        found = solve_formed(problem, losses, right, deadline)
    else:
        found = iterate(problem, losses, right, accuracy, deadline)
    if found is None:
        return None
    dw, db = found
    if not problem.fit_intercept:
        return dw, np.zeros(k)
    db = db - dw @ problem.centre
    return dw, db - db.mean()


def solve_formed(
    problem: Multinomial, losses: RowLosses, right: Array, deadline: float
) -> Step | None:
    """Form the matrix and factorise it."""
    k, d = right.shape
    wide = d + problem.fit_intercept
    p = losses.at.p
    # p(1 − p) with the digits of 1 − p.
    rest = 1.0 - p
    rest[problem.own] = losses.at.short
    rest *= p
    rest, root = problem.weighted(rest), np.ones(p.shape[1])
    if problem.weight is not None:
        root = np.sqrt(problem.weight)
    cross = np.zeros((k * wide, k * wide), order="F")
    blocks = np.zeros((k, wide, wide))
    for part, rows in problem.rows.dense_blocks(k * wide):
        if time.perf_counter() >= deadline:
            return None
        z = np.ones((len(rows), wide))
        np.subtract(rows, problem.centre, out=z[:, :d])
        spread = (p[:, part] * root[part]).T[:, :, None] * z[:, None, :]
        cross = dsyrk(-1.0, spread.reshape(len(rows), -1).T, beta=1.0, c=cross, overwrite_c=1)
        for a in range(k):
            blocks[a] += z.T @ (rest[a, part, None] * z)
    matrix = np.asarray(cross).T  # the upper triangle in Fortran order is the lower one in C order
    for a in range(k):
        own = slice(a * wide, (a + 1) * wide)
        matrix[own, own] = blocks[a]
    diagonal = np.full((k, wide), problem.mu)
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


def iterate(
    problem: Multinomial, losses: RowLosses, right: Array, accuracy: float, deadline: float
) -> Step | None:
    """Use conjugate gradients; a product with the matrix is two passes over the rows."""
    k, d = right.shape
    free, centre = problem.fit_intercept, problem.centre

    def product(dw: Array, db: Array) -> Step:
        bend = losses.curved(problem.margins(dw, db - dw @ centre))
        sums = bend.sum(axis=1)
        image = problem.combined(bend) + problem.mu * dw
        if not free:
            return image, np.zeros(k)
        return image - np.outer(sums, centre), sums

    precondition = by_average(problem, losses, deadline) if worth_it(problem) else None
    if precondition is None:
        precondition = by_diagonal(problem, losses)
    return conjugate_gradients(product, precondition, (right, np.zeros(k)), accuracy, deadline)


def worth_it(problem: Multinomial) -> bool:
    """Whether the matrix of an average class is cheap beside iterations; in multiplications."""
    (n, d), k = problem.rows.shape, problem.n_classes
    iteration = 2.0 * k * problem.rows.stored
    return 0.5 * n * d**2 + k * d**3 / 6.0 <= WORTH * iteration


def by_average(problem: Multinomial, losses: RowLosses, deadline: float) -> Map | None:
    """Precondition by Ā ⊗ G + μ for the mean curvature Ā of the classes and the Gram matrix G.

    At W = 0 all rows have the same curvature, and it is the matrix itself.
    """
    p, d = losses.at.p, problem.rows.shape[1]
    height = problem.weighted(1.0 - (p * p).sum(axis=0))
    mean = -(problem.weighted(p) @ p.T)
    np.fill_diagonal(mean, 0.0)
    np.fill_diagonal(mean, -mean.sum(axis=1))
    mass = float(height.sum())
    if not (mass > 0 and np.isfinite(mean).all()):
        return None
    values, vectors = np.linalg.eigh(mean)
    gram = np.zeros((d, d), order="F")
    root = np.sqrt(np.maximum(height, 0.0))
    for part, rows in problem.rows.dense_blocks(d):
        if time.perf_counter() >= deadline:
            return None
        z = (rows - problem.centre) * root[part, None]
        gram = dsyrk(1.0, z.T, beta=1.0, c=gram, overwrite_c=1)
    gram = np.asarray(gram).T
    solves = []
    for value in values:
        solve = cholesky(gram * (max(value, 0.0) / mass), problem.mu)
        if solve is None:
            return None
        solves.append(solve)
    inverse = np.where(values > 1e-14 * values[-1], 1.0 / np.maximum(values, 1e-300), 0.0)

    def precondition(r: Array, t: Array) -> Step:
        turned = vectors.T @ r
        for j, solve in enumerate(solves):
            turned[j] = solve(turned[j])
        return vectors @ turned, vectors @ (inverse * (vectors.T @ t))

    return precondition


def by_diagonal(problem: Multinomial, losses: RowLosses) -> Map:
    """Precondition by the diagonal."""
    spread = problem.weighted(losses.at.p * (1.0 - losses.at.p))
    mass = spread.sum(axis=1)
    squares = problem.rows.squares(spread.T)
    if problem.fit_intercept:
        moved = problem.combined(spread)
        squares += problem.centre * (mass[:, None] * problem.centre - 2.0 * moved)
    scale = np.maximum(squares, 0.0) + problem.mu
    mass = np.where(mass > 0, mass, 1.0)

    def precondition(r: Array, t: Array) -> Step:
        z = t / mass
        return r / scale, z - z.mean()

    return precondition
