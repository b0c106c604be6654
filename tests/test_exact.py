"""Sums in twice the digits: what they add up to, and what can be certified by them."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
from adasdca.backends.cpu import LocalBackend
from adasdca.problem.losses import LOSSES
from adasdca.problem.problem import Problem
from test_certificates_exactly import Exact

REGULARISERS = {"l2": {}, "elastic net": {"l1_ratio": 0.5}, "bounds": {"bounds": (0.0, None)}}
INTERCEPT = pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])


def timestamps(n, d, seed=0):
    """Seconds of a month beside features of size 1, and targets."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    target = X @ rng.standard_normal(d) + rng.standard_normal(n)
    X[:, 0] = np.round(1.6e9 + 2.6e6 * rng.random(n))
    return X, target


def exactly(values):
    return [Fraction(float(x)) for x in values]


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["dense", "csr", "packed"])
def test_sums_that_cancel_against_fractions(form, dtype, weighted):
    X, _ = timestamps(700, 3)
    X = X.astype(dtype)
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.1, 2.0, len(X)) if weighted else None
    c = np.ones(len(X)) if weight is None else weight
    # Duals whose sum by the first column is rounding, and a w whose scores are.
    beta = rng.standard_normal(len(X))
    beta -= X[:, 0] * ((c * beta) @ X[:, 0] / (c @ X[:, 0].astype(float) ** 2))
    w = np.array([1e-3, 1.0, -1.0])
    b = -1e-3 * float(X[0, 0])
    problem = Problem.checked(
        X if form == "dense" else sp.csr_array(X),
        rng.standard_normal(len(X)),
        loss="squared",
        lam=1e-6,
        sample_weight=weight,
    )
    backend = LocalBackend(problem, pack=form == "packed")
    backend.workspace.pack()
    assert (backend.packed_bytes > 0) == (form == "packed")
    u, scores = np.empty(3), np.empty(len(X))
    balance = backend.workspace.combine_exactly(beta, u, 2)
    backend.workspace.exact_scores(w, b, scores, 2)

    duals = [s * t for s, t in zip(exactly(c), exactly(beta), strict=True)]
    mu = Fraction(problem.strength * problem.total)
    for j in range(3):
        terms = [t * x / mu for t, x in zip(duals, exactly(X[:, j]), strict=True)]
        left = abs(Fraction(float(u[j])) - sum(terms))
        assert left <= abs(sum(terms)) / 2**51 + len(X) * sum(map(abs, terms)) / 2**106
    assert balance == pytest.approx(float(sum(duals)), rel=1e-15)
    coef = exactly(w)
    for i in range(0, len(X), 7):
        truth = sum(x * a for x, a in zip(exactly(X[i]), coef, strict=True)) + Fraction(b)
        assert scores[i] == pytest.approx(float(truth), rel=3e-16)
    plain = np.empty(3)
    backend.workspace.combine(beta, plain, 1)
    assert abs(plain[0] - u[0]) > 1e-12 * abs(u[0])  # or there was nothing to lose


def test_the_number_of_threads_does_not_matter():
    X, y = timestamps(3000, 4)
    backend = LocalBackend(Problem.checked(X, y, loss="squared", lam=1e-9))
    sums = []
    for threads in (1, 2, 5):
        u, scores = np.empty(4), np.empty(len(X))
        backend.workspace.combine_exactly(y, u, threads)
        backend.workspace.exact_scores(u, 1.0, scores, threads)
        sums.append(np.concatenate([u, scores]))
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_array_equal(sums[0], sums[2])


@INTERCEPT
@pytest.mark.parametrize("C", [1.0, 1e3, 1e6])
def test_the_bound_holds_in_rational_arithmetic(C, intercept):
    X, y = timestamps(25, 3)
    lam = 1 / (C * len(y))
    oracle = Exact(X, y, np.ones(len(y)), lam, intercept)
    least = oracle.value(oracle.optimum())

    def value(w):
        """P at coefficients, and at the intercept that was found."""
        point = exactly(w) + ([Fraction(found.intercept)] if intercept else [])
        return oracle.value(point)

    options = {"loss": "squared", "lam": lam, "fit_intercept": intercept}
    found = adasdca.solve(X, y, tol=1e-6, **options)
    assert found.converged
    backend = LocalBackend(Problem.checked(X, y, **options))
    rng = np.random.default_rng(0)
    for size in (0.0, 1e-16, 1e-12, 1e-8, 1e-4):
        for _ in range(5):
            w = found.coef * (1 + size * rng.standard_normal(3))
            beta = found.dual_coef * (1 + size * rng.standard_normal(len(y)))
            # Any duals: an imbalance has its price.
            certified = backend.workspace.certify(w, found.intercept, beta, 1)
            assert Fraction(certified.gap) >= value(w) - least
            assert certified.rounding <= certified.gap
    truth = value(found.coef)
    assert Fraction(found.gap) >= truth - least
    assert Fraction(found.dual) <= least
    assert abs(Fraction(found.primal) - truth) <= Fraction(1e-6) * truth


@pytest.mark.parametrize("regulariser", REGULARISERS)
@INTERCEPT
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("loss", LOSSES)
def test_timestamps_are_solved(loss, C, intercept, regulariser):
    X, y = timestamps(200, 4)
    if LOSSES[loss].kind == "classification":
        y = np.sign(y)
    solution = adasdca.solve(
        X,
        y,
        loss=loss,
        lam=1 / (C * len(y)),
        fit_intercept=intercept,
        tol=1e-6,
        random_state=0,
        **REGULARISERS[regulariser],
    )
    assert solution.converged, solution


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize(("n", "d", "seed"), [(50, 3, 1), (120, 5, 2), (300, 6, 3)])
@INTERCEPT
@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "quantile"])
def test_other_timestamps_are_solved(loss, intercept, n, d, seed, form):
    X, y = timestamps(n, d, seed)
    if LOSSES[loss].kind == "classification":
        y = np.sign(y)
    options = {"loss": loss, "lam": 1e-6 / n, "fit_intercept": intercept, "tol": 1e-6}
    assert adasdca.solve(form(X), y, random_state=0, **options).converged


def test_ordinary_data_need_plain_sums_only(monkeypatch):
    X, y = timestamps(300, 5)
    X[:, 0] = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()
    asked = []
    term = LocalBackend.term

    def listening(self, *args, **options):
        asked.append(options.get("exact", False) or (len(args) > 4 and args[4]))
        return term(self, *args, **options)

    monkeypatch.setattr(LocalBackend, "term", listening)
    for loss in LOSSES:
        target = np.sign(y) if LOSSES[loss].kind == "classification" else y
        found = adasdca.solve(X, target, loss=loss, lam=1e-5, fit_intercept=True, tol=1e-9)
        assert found.converged
    assert asked
    assert not any(asked)


@pytest.mark.parametrize("scale", [1.0, 1e6])
@pytest.mark.parametrize("loss", ["absolute", "quantile"])
def test_rounding_is_no_part_of_the_gap_where_rows_are_at_their_kinks(loss, scale):
    # The objective is tiny, scores and targets are not: their difference keeps its own digits.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = scale * (X @ [1.0, -2.0, 0.5])
    found = adasdca.solve(X, y, loss=loss, lam=1e-8 / scale, tol=1e-6, random_state=0)
    assert found.converged
    assert found.certificate.rounding < 1e-12 * found.primal


@pytest.mark.parametrize("seed", [0, 2])
def test_rows_sure_of_their_class_in_raw_units(seed):
    """Objectives of 1e-23: scores are rounded by more, which a loss so flat does not feel."""
    rng = np.random.default_rng(seed)
    n, d = 24, 200
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-8, 12, d)
    y = np.where(np.arange(n) % 3 > 0, 1.0, -1.0)
    problem = {"loss": "logistic", "lam": 1e-3 / n}
    found = adasdca.solve(X, y, **problem, tol=1e-6, random_state=0)
    assert found.converged
    with localcontext() as context:
        context.prec = 60
        exact = [[Decimal(float(x)) for x in row] for row in X * y[:, None]]
        w, beta = ([Decimal(float(x)) for x in v] for v in (found.coef, y * found.dual_coef))
        lam = Decimal(problem["lam"])
        margins = [sum(x * c for x, c in zip(row, w, strict=True)) for row in exact]
        u = [
            sum(b * row[j] for b, row in zip(beta, exact, strict=True)) / (n * lam)
            for j in range(d)
        ]
        gap = lam / 2 * sum((a - b) ** 2 for a, b in zip(w, u, strict=True))
        for z, b in zip(margins, beta, strict=True):
            conjugate = b * b.ln() + (1 - b) * (1 - b).ln()
            gap += ((1 + (-z).exp()).ln() + conjugate + b * z) / n
        assert 0 <= gap <= found.gap
