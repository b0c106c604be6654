"""The theorem of the certificate, in exact numbers: gap, lower bound and radius hold, always.

Small problems of doubles, whose optimum is found in fractions: there is no tolerance anywhere.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from adasdca import Status, solve

KINDS = list(
    itertools.product(
        [1.0, 1e3, 1e6],  # targets, in units of the residual
        [0.0, 10.0, 1e4],  # means of the features, in units of their deviation
        [1e-8, 1e-3, 1e2],  # lam
        [np.float64, np.float32],
        [False, True],  # weights
        [False, True],  # intercept
    )
)


def fractions(array):
    return [fractions(x) for x in array] if np.ndim(array) else Fraction(float(array))


def eliminate(matrix, right):
    """Solve a system of fractions."""
    n = len(right)
    rows = [[*line, b] for line, b in zip(matrix, right, strict=True)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            if factor:
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    found = [Fraction(0)] * n
    for k in reversed(range(n)):
        left = rows[k][n] - sum(rows[k][j] * found[j] for j in range(k + 1, n))
        found[k] = left / rows[k][k]
    return found


class Exact:
    """Ridge regression in fractions: Σ c_i (x_i·w + b − y_i)²/(2N) + lam/2 ‖w‖²."""

    def __init__(self, X, y, weight, lam, intercept):
        ones = np.ones((len(X), int(intercept)))
        self.rows = fractions(np.hstack([np.asarray(X, float), ones]))
        self.y, self.c = fractions(y), fractions(weight)
        self.total, self.lam, self.d = sum(self.c), Fraction(lam), X.shape[1]

    def value(self, point):
        scores = [sum(x * p for x, p in zip(row, point, strict=True)) for row in self.rows]
        terms = zip(scores, self.y, self.c, strict=True)
        loss = sum(c * (a - y) ** 2 for a, y, c in terms) / (2 * self.total)
        return loss + self.lam / 2 * sum(x * x for x in point[: self.d])

    def optimum(self):
        m = len(self.rows[0])
        weight = [c / self.total for c in self.c]
        matrix = [
            [
                sum(h * row[i] * row[j] for h, row in zip(weight, self.rows, strict=True))
                + (self.lam if i == j < self.d else 0)
                for j in range(m)
            ]
            for i in range(m)
        ]
        terms = list(zip(weight, self.rows, self.y, strict=True))
        return eliminate(matrix, [sum(h * row[i] * y for h, row, y in terms) for i in range(m)])


def make(kind, seed):
    size, mean, lam, dtype, weighted, intercept = kind
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    Z = rng.normal(size=(n, d))
    X = (Z + mean * rng.normal(size=d)).astype(dtype)
    y = size * (Z @ rng.normal(size=d)) + rng.normal(size=n) + (size if intercept else 0.0)
    weight = rng.integers(1, 4, n).astype(float) * rng.choice([1.0, 0.1]) if weighted else None
    options = {"lam": lam, "fit_intercept": intercept, "sample_weight": weight}
    return X, y, options, np.ones(n) if weight is None else weight


def check(sol, exact, best, least):
    point = fractions(sol.coef) + ([Fraction(sol.intercept)] if len(best) > exact.d else [])
    above = exact.value(point) - least
    assert above >= 0
    assert Fraction(sol.gap) >= above
    assert Fraction(sol.dual) <= least
    apart = sum((p - q) ** 2 for p, q in zip(point[: exact.d], best, strict=False))
    assert Fraction(sol.radius) ** 2 >= apart


@pytest.mark.parametrize("tol", [1e-1, 1e-6, 0.0])
def test_ridge_regression(tol):
    for number, kind in enumerate(KINDS):
        X, y, options, weight = make(kind, number)
        exact = Exact(X, y, weight, options["lam"], options["fit_intercept"])
        best = exact.optimum()
        least = exact.value(best)
        for method in ("auto", "adasdca+"):
            sol = solve(
                X, y, loss="squared", tol=tol, method=method, max_epochs=20, random_state=0,
                **options,
            )  # fmt: skip
            check(sol, exact, best, least)
            if sol.status is Status.CONVERGED:
                assert sol.gap <= tol * sol.primal
            else:
                assert tol < 1e-6 or method != "auto", (sol, kind)
