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
    """Solve a system of fractions; None if it is singular."""
    n = len(right)
    rows = [[*line, b] for line, b in zip(matrix, right, strict=True)]
    for k in range(n):
        pivot = next((i for i in range(k, n) if rows[i][k] != 0), None)
        if pivot is None:
            return None
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
    """Σ c_i φ(x_i·w + b)/N + lam/2 ‖w‖² in fractions, φ(a) = k (a − t)² on some of the rows."""

    def __init__(self, X, y, weight, lam, intercept, half):
        ones = np.ones((len(X), int(intercept)))
        self.rows = fractions(np.hstack([np.asarray(X, float), ones]))
        self.y, self.c = fractions(y), fractions(weight)
        self.total, self.lam, self.d = sum(self.c), Fraction(lam), X.shape[1]
        self.k = Fraction(1, 2) if half else Fraction(1)

    def scores(self, point):
        return [sum(x * p for x, p in zip(row, point, strict=True)) for row in self.rows]

    def value(self, point, margin):
        """Squared, or with a margin the squared hinge, of which labels are the targets."""
        total = Fraction(0)
        for a, y, c in zip(self.scores(point), self.y, self.c, strict=True):
            off = max(1 - y * a, Fraction(0)) if margin else a - y
            total += c * self.k * off * off
        return total / self.total + self.lam / 2 * sum(x * x for x in point[: self.d])

    def optimum(self, active):
        """The minimiser with these rows' terms only."""
        m = len(self.rows[0])
        weight = [2 * self.k * c / self.total * on for c, on in zip(self.c, active, strict=True)]
        matrix = [
            [
                sum(h * row[i] * row[j] for h, row in zip(weight, self.rows, strict=True))
                + (self.lam if i == j < self.d else 0)
                for j in range(m)
            ]
            for i in range(m)
        ]
        right = [
            sum(h * row[i] * y for h, row, y in zip(weight, self.rows, self.y, strict=True))
            for i in range(m)
        ]
        return eliminate(matrix, right)


def make(kind, seed, classify):
    size, mean, lam, dtype, weighted, intercept = kind
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    Z = rng.normal(size=(n, d))
    X = (Z + mean * rng.normal(size=d)).astype(dtype)
    y = size * (Z @ rng.normal(size=d)) + rng.normal(size=n) + (size if intercept else 0.0)
    if classify:
        y = np.where(y > np.median(y), 1.0, -1.0)
    weight = rng.integers(1, 4, n).astype(float) * rng.choice([1.0, 0.1]) if weighted else None
    options = {"lam": lam, "fit_intercept": intercept, "sample_weight": weight}
    return X, y, options, np.ones(n) if weight is None else weight


def check(sol, exact, best, least, margin):
    point = fractions(sol.coef) + ([Fraction(sol.intercept)] if len(best) > exact.d else [])
    above = exact.value(point, margin) - least
    assert above >= 0
    assert Fraction(sol.gap) >= above
    assert Fraction(sol.dual) <= least
    apart = sum((p - q) ** 2 for p, q in zip(point[: exact.d], best, strict=False))
    assert Fraction(sol.radius) ** 2 >= apart


@pytest.mark.parametrize("tol", [1e-1, 1e-6, 0.0])
def test_ridge_regression(tol):
    for number, kind in enumerate(KINDS):
        X, y, options, weight = make(kind, number, classify=False)
        exact = Exact(X, y, weight, options["lam"], options["fit_intercept"], half=True)
        best = exact.optimum([1] * len(y))
        least = exact.value(best, margin=False)
        for method in ("auto", "adasdca+"):
            sol = solve(
                X, y, loss="squared", tol=tol, method=method, max_epochs=20, random_state=0,
                **options,
            )  # fmt: skip
            check(sol, exact, best, least, margin=False)
            if sol.status is Status.CONVERGED:
                assert sol.gap <= tol * sol.primal
            else:
                assert tol < 1e-6 or method != "auto", (sol, kind)


@pytest.mark.parametrize("tol", [1e-1, 1e-6, 0.0])
def test_the_squared_hinge(tol):
    verified = 0
    for number, kind in enumerate(KINDS[::2]):
        X, y, options, weight = make(kind, number, classify=True)
        exact = Exact(X, y, weight, options["lam"], options["fit_intercept"], half=False)
        near = solve(X, y, loss="squared_hinge", tol=0.0, random_state=0, **options)
        scores = np.asarray(X, float) @ near.coef + near.intercept
        active = [int(a) for a in y * scores < 1]
        best = exact.optimum(active)
        # The optimum of the rows within their margins is that of all, if it leaves them there.
        if best is None or any(
            (a * t < 1) != on for a, t, on in zip(exact.scores(best), exact.y, active, strict=True)
        ):
            continue
        verified += 1
        least = exact.value(best, margin=True)
        for method in ("auto", "adasdca+"):
            sol = solve(
                X, y, loss="squared_hinge", tol=tol, method=method, max_epochs=20, random_state=0,
                **options,
            )  # fmt: skip
            check(sol, exact, best, least, margin=True)
            assert sol.converged or tol < 1e-6 or method != "auto", (sol, kind)
    assert verified > 60
