"""The same oracle for multinomial models: min P between two numbers, and what must hold of it."""

from __future__ import annotations

import warnings
from decimal import Decimal
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from adasdca import AdaSDCAClassifier
from adasdca.multinomial.solver import solve_multinomial
from benchmarks.exact.checks import Findings, certificate_holds, status_holds
from benchmarks.exact.numbers import MARGIN, ONE, ZERO, Vector, dot, eliminate, vector
from benchmarks.exact.problems import MAX_TIME

ROUNDS = 30
Table = list[Vector]


class MultinomialProblem:
    """N·P and N·D of multinomial logistic regression, a class a row of the tables.

    Arguments are those of `solve_multinomial`; `weight` has n numbers.
    """

    def __init__(self, X: Any, codes: Any, weight: Any, lam: float, fit_intercept: bool) -> None:
        self.rows = [vector(row) for row in X]
        self.codes, self.count = codes.tolist(), int(codes.max()) + 1
        self.weight = vector(weight)
        self.total = sum(self.weight, ZERO)
        self.mu = Decimal(lam) * self.total
        self.intercept = fit_intercept
        if fit_intercept:  # the constant is the last feature, without a penalty
            self.rows = [[*row, ONE] for row in self.rows]
        self.d = len(self.rows[0])
        self.penalised = self.d - fit_intercept

    def probabilities(self, W: Table) -> tuple[Decimal, Table]:
        """Return the sum of the losses, and the probabilities a row of X a row."""
        losses, table = ZERO, []
        for row, k, c in zip(self.rows, self.codes, self.weight, strict=True):
            scores = [dot(w, row) for w in W]
            powers = [(s - scores[k]).exp() for s in scores]
            total = sum(powers, ZERO)
            losses += c * total.ln()
            table.append([p / total for p in powers])
        return losses, table

    def primal(self, W: Table) -> Decimal:
        """Return P."""
        return (self.probabilities(W)[0] + self._penalty(W)) / self.total

    def _penalty(self, W: Table) -> Decimal:
        return self.mu / 2 * sum((x * x for w in W for x in w[: self.penalised]), ZERO)

    def _gradient(self, W: Table, p: Table) -> Table:
        """Return μW − Σ_i c_i (e_{k_i} − p_i) x_iᵀ."""
        return [
            [
                (self.mu * W[k][j] if j < self.penalised else ZERO)
                - sum(
                    (
                        c * ((ONE if own == k else ZERO) - q[k]) * row[j]
                        for c, own, q, row in zip(
                            self.weight, self.codes, p, self.rows, strict=True
                        )
                    ),
                    ZERO,
                )
                for j in range(self.d)
            ]
            for k in range(self.count)
        ]

    def optimum(self, W: Table) -> tuple[Decimal, Decimal, Table]:
        """Return least ≤ min P ≤ most, and the W of the latter, by Newton's method from W.

        With duals −φ' the gap is ‖∇‖²/2μ, where the gradient in the intercept is 0. It counts as
        0 if it is below what the digits can show; otherwise nothing is known from below.
        """
        for _ in range(ROUNDS):
            losses, p = self.probabilities(W)
            gradient = self._gradient(W, p)
            flat = [x for line in gradient for x in line]
            scale = self.mu + max(abs(x) for row in self.rows for x in row) * self.total
            if max(map(abs, flat)) < scale * Decimal("1e-70"):
                break
            # All intercepts by the same, and nothing changes: that of the last class stays.
            step = eliminate(self._hessian(p), [-x for x in flat])
            W = [[x + step[k * self.d + j] for j, x in enumerate(line)] for k, line in enumerate(W)]
        value = losses + self._penalty(W)
        squares = sum((x * x for line in gradient for x in line[: self.penalised]), ZERO)
        lost = squares / (2 * self.mu) + value * MARGIN
        if self.intercept and max(abs(line[-1]) for line in gradient) > scale * MARGIN:
            lost = value
        return (value - lost) / self.total, value * (ONE + MARGIN) / self.total, W

    def _hessian(self, p: Table) -> Table:
        size = self.count * self.d
        matrix = [[ZERO] * size for _ in range(size)]
        for c, q, row in zip(self.weight, p, self.rows, strict=True):
            for k in range(self.count):
                for m in range(k, self.count):
                    h = c * q[k] * ((ONE if k == m else ZERO) - q[m])
                    for i, x in enumerate(row):
                        for j, y in enumerate(row):
                            matrix[k * self.d + i][m * self.d + j] += h * x * y
        for a in range(size):
            for b in range(a // self.d * self.d):
                matrix[a][b] = matrix[b][a]
            if a % self.d < self.penalised:
                matrix[a][a] += self.mu
        return matrix


def judge(rng: np.random.Generator, kind: dict[str, str]) -> tuple[bool, str, list[str]]:
    """Solve a random multinomial problem; return whether it is decided, its status, violations."""
    n, d, count = int(rng.integers(5, 12)), int(rng.integers(1, 4)), int(rng.integers(3, 5))
    Z = rng.normal(size=(n, d))
    far, scale = float(rng.choice([0.0, 10.0, 1e4])), float(rng.choice([1.0, 1e-3, 1e3]))
    X = ((Z + far * rng.normal(size=d)) * scale).astype(rng.choice([np.float64, np.float32]))
    codes = np.argmax(Z @ rng.normal(size=(d, count)) + rng.normal(size=(n, count)), axis=1)
    codes[:count] = np.arange(count)
    weight = 10.0 ** rng.uniform(-3.0, 3.0, n) if rng.random() < 0.3 else None
    lam = 10.0 ** rng.uniform(-8.0, 2.0)
    intercept, tol = bool(rng.random() < 0.6), float(rng.choice([1e-2, 1e-4, 1e-6, 1e-9, 0.0]))
    kind |= {"loss": "multinomial", "intercept": "free" if intercept else "none"}
    kind |= {"tol": f"{tol:g}", "features": f"{far:g} deviations away, times {scale:g}"}
    options = {"lam": lam, "sample_weight": weight, "fit_intercept": intercept}
    found = solve_multinomial(X, codes, n_classes=count, tol=tol, max_time=MAX_TIME, **options)
    every = np.ones(n) if weight is None else weight
    exact = MultinomialProblem(np.asarray(X, dtype=np.float64), codes, every, lam, intercept)
    W = [vector(w) for w in np.column_stack([found.coef, found.intercept])[:, : exact.d]]
    least, most, best = exact.optimum(W)
    violations = list(_violations(exact, found, W, most, best, tol))
    if rng.random() < 0.3:
        violations += _margins(exact, X, codes, best, options, tol)
    return (most - least) < most * Decimal("1e-45"), found.status.value, violations


def _violations(
    exact: MultinomialProblem, found: Any, W: Table, most: Decimal, best: Table, tol: float
) -> Findings:
    primal = exact.primal(W)
    square = sum(
        ((x - y) ** 2 for w, v in zip(W, best, strict=True)
         for x, y in zip(w[: exact.penalised], v, strict=False)), ZERO,
    )  # fmt: skip
    yield from certificate_holds(found, primal, most, square.sqrt() * (ONE - MARGIN))
    yield from status_holds(found, tol, primal, most)


def _margins(
    exact: MultinomialProblem, X: Any, codes: Any, best: Table, options: dict[str, Any], tol: float
) -> Any:
    """Check that the optimum has the predicted classes lead by the certified margins."""
    total = float(exact.total)
    C = 1.0 / (options["lam"] * total)
    if 1.0 / (C * total) != options["lam"]:  # that model has another optimum, by a digit
        return
    model = AdaSDCAClassifier(
        C=C, fit_intercept=exact.intercept, tol=max(tol, 1e-6), max_time=MAX_TIME
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, codes, sample_weight=options["sample_weight"])
    predicted = model.predict(X).tolist()
    for i, m in enumerate(model.certified_margin(X).tolist()):
        scores = [dot(w, exact.rows[i]) for w in best]
        lead = scores.pop(predicted[i]) - max(scores)
        if Decimal(m) > lead:
            yield f"row {i} is certified by {m!r}, but leads by {lead:.4e} at the optimum"
