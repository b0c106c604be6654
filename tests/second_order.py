"""What tests of the second-order solver share: problems, ways to solve equations, objectives."""

import numpy as np
import scipy.sparse as sp

import cases
from adasdca.backends.cpu import LocalBackend
from adasdca.newton.equations import ConjugateGradients, solve_by_features
from adasdca.newton.linear import LinearObjective
from adasdca.newton.moreau import Ridge
from adasdca.problem.problem import Problem

FOREVER = 1e18
STORAGES = {
    "dense": lambda X: X,
    "dense-single": lambda X: X.astype(np.float32),
    "sparse": sp.csr_matrix,
    "sparse-single": lambda X: sp.csr_matrix(X.astype(np.float32)),
}
KINKED = [name for name in cases.LOSSES if name not in cases.SMOOTH]


def by_rows(term, equations, deadline):
    found = term.solve_by_rows(*equations[:4], deadline)
    # None is for systems that rounding has made indefinite; the caller then goes another way.
    return found or solve_by_features(term, equations, deadline)


WAYS = ("features", "rows", "iterations")


def solver(way):
    """A way to solve equations; iterations remember the last ones."""
    ways = {"features": solve_by_features, "rows": by_rows}
    return ways.get(way) or ConjugateGradients().solve


def make_problem(loss, storage="dense", intercept=False, weighted=False, *, d=7, n=40, **options):
    """Data in single precision's reach, a third of the weights 0."""
    X, y = cases.make_data(loss, "single", n=n, d=d)
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float) if weighted else None
    options = {"loss": loss, "lam": 0.1, "fit_intercept": intercept, **options}
    return X, y, Problem.checked(STORAGES[storage](X), y, sample_weight=weight, **options)


def make_objective(problem, solve, v=None, b=0.0, backend=None):
    """The plain objective of a smooth loss at a point, 0 unless told."""
    backend = backend or LocalBackend(problem)
    v = np.zeros(problem.rows.shape[1]) if v is None else v
    mu = problem.strength * problem.total
    return LinearObjective(backend.term(), Ridge(), mu, problem.fit_intercept, False, solve, v, b)
