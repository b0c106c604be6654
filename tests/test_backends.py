"""Every backend is the same problem: rows in NumPy, in parts, on a device, and the local ones."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes

import adasdca
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.cuda.products import ARRAYS
from adasdca.backends.named import get_backend
from adasdca.backends.passes import Passes
from adasdca.problem.losses import LOSSES
from adasdca.problem.problem import Problem
from host_rows import host_backend
from numpy_backend import TwoParts
from parted import three_parts
from test_certificates_exactly import KINDS, Exact, check, make

REGULARISERS = {
    "l2": {},
    "elastic net": {"l1_ratio": 0.5},
    "lasso": {"l1_ratio": 1.0},
    "bounds": {"bounds": (0.0, None)},
    "factors": {"l1_ratio": 0.3, "penalty_factors": np.linspace(0.5, 2.0, 8)},
}
BACKENDS = {"numpy": TwoParts, "parts": three_parts, "device": host_backend}


def data(loss, dtype=np.float64, sparse=False):
    load = load_breast_cancer if LOSSES[loss].kind == "classification" else load_diabetes
    X, y = load(return_X_y=True)
    X, y = X[:200, :8].astype(dtype), np.asarray(y[:200], dtype=float)
    if sparse:
        middle = np.median(X, axis=0)
        X = sp.csr_matrix(np.where(middle < X, X, dtype(0)))
    return X, (2 * y - 1 if load is load_breast_cancer else y)


def weights(n):
    return np.random.default_rng(0).integers(0, 4, n).astype(float)


def both(loss, backend, dtype=np.float64, sparse=False, **options):
    """Solutions of the local rows and of a backend."""
    X, y = data(loss, dtype, sparse)
    options = {"loss": loss, "lam": 1e-3, "sample_weight": weights(len(y)), "tol": 1e-8, **options}
    return adasdca.solve(X, y, **options), adasdca.solve(X, y, backend=backend, **options)


def agree(local, other):
    assert local.converged
    assert other.converged
    assert other.n_updates == 0
    # Each value is at most its gap above the minimum.
    assert abs(local.primal - other.primal) <= local.gap + other.gap + 1e-14 * local.primal
    assert np.linalg.norm(local.coef - other.coef) <= local.radius + other.radius


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_it_reaches_the_certificate_of_the_local_rows(loss, backend, intercept, regulariser):
    problem = {"fit_intercept": intercept, **REGULARISERS[regulariser]}
    local, other = both(loss, BACKENDS[backend], **problem)
    agree(local, other)
    # The duals are those of the certificate: certified anew, they show the same but for rounding.
    X, y = data(loss)
    again = adasdca.certify(
        X, y, other.coef, intercept=other.intercept, dual_coef=other.dual_coef, loss=loss,
        lam=1e-3, sample_weight=weights(len(y)), **problem,
    )  # fmt: skip
    assert again.gap <= 1.01 * other.gap + again.rounding + 1e-13 * other.primal


def check_certificates(loss, intercept, regulariser, backend):
    """At any point the gaps are the same but for what either bounds of its rounding.

    Without an L2 term duals are scaled until they are feasible, on either side by what its own sums
    of them show.
    """
    X, y = data(loss)
    problem = Problem.checked(
        X, y, loss=loss, lam=1e-3, fit_intercept=intercept, sample_weight=weights(len(y)),
        **REGULARISERS[regulariser],
    )  # fmt: skip
    rng = np.random.default_rng(1)
    w = np.abs(rng.normal(size=8)) * 1e-3
    duals = -problem.loss.slope(X @ w + 0.1, y) * rng.random(len(y))
    one = LocalBackend(problem).certify(w, 0.1, duals)
    there = get_backend(backend)(problem)
    two = there.certify(w, 0.1, there.scatter(duals))
    np.testing.assert_array_equal(there.gather(there.scatter(duals)), duals)
    assert one.primal == pytest.approx(two.primal, rel=1e-13)
    assert np.isfinite(one.gap) == np.isfinite(two.gap)
    if np.isfinite(one.gap):
        assert abs(one.gap - two.gap) <= 1e-11 * one.gap + 2 * (one.rounding + two.rounding)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_certificates_are_those_of_the_core(loss, intercept, regulariser, backend):
    check_certificates(loss, intercept, regulariser, BACKENDS[backend])


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_certificate_holds_in_exact_numbers(backend):
    for number, kind in enumerate(KINDS):
        tol = 0.0 if number % 3 else 1e-6
        X, y, options, weight = make(kind, number)
        exact = Exact(X, y, weight, options["lam"], options["fit_intercept"])
        best = exact.optimum()
        least = exact.value(best)
        sol = adasdca.solve(
            X, y, loss="squared", tol=tol, max_epochs=20, random_state=0, backend=BACKENDS[backend],
            **options,
        )  # fmt: skip
        check(sol, exact, best, least)


def check_sums(backend, shape, sparse=False, dtype=np.float64):
    """Scores and the dual point u, against sums of long doubles, where terms nearly cancel."""
    rng = np.random.default_rng(0)
    X = (1.0 + 1e-3 * rng.normal(size=shape)).astype(dtype)
    X[rng.random(shape) < 0.5 * sparse] = 0.0
    y = np.where(rng.random(shape[0]) < 0.5, 1.0, -1.0)
    given = sp.csr_matrix(X) if sparse else X
    problem = Problem.checked(given, y, loss="squared_hinge", lam=1 / shape[0])
    there, exact = get_backend(backend)(problem), X.astype(np.longdouble)
    w, duals, rows = rng.normal(size=shape[1]), y * rng.random(shape[0]), there.rows
    off = np.abs(rows.gather(rows.scores(w)) - exact @ w.astype(np.longdouble))
    assert (off <= rows.gather(there.share) * np.linalg.norm(w)).all()
    apart = there.combine(rows.scatter(duals)) - duals.astype(np.longdouble) @ exact
    mass = float(np.abs(duals) @ np.linalg.norm(X.astype(float), axis=1))
    assert 0.0 < float(np.sqrt((apart**2).sum())) <= there.off(mass)


@pytest.mark.parametrize("backend", ["numpy", "device"])
def test_sums_are_as_near_as_they_say(backend):
    check_sums(BACKENDS[backend], (2000, 5))


@pytest.mark.parametrize("loss", LOSSES)
def test_the_evidence_knows_what_rounding_can_do(loss):
    X, y = data(loss)
    c, rng = np.random.default_rng(1).random(len(y)), np.random.default_rng(2)
    problem = Problem.checked(X, y, loss=loss, lam=1.0, sample_weight=c)
    phi, passes = problem.loss, Passes(problem, ARRAYS)
    scores = y * rng.choice([0.9, 1.0, 1.1], len(y))  # kinks are among these
    duals = -phi.slope(scores, y) * rng.random(len(y))
    share, one = 0.2 * rng.random(len(y)), np.ones(len(y))
    seen = passes.row_sums(scores, 0.0, duals, share, one, 1.0, 0.0)
    for moved in (scores - share, scores + share):
        assert c @ phi.excess(duals, moved, y) <= seen.excess + seen.slip
        assert abs(c @ phi.value(moved, y) - seen.value) <= seen.blur
    exact = sum(Fraction(a) * Fraction(b) for a, b in zip(c.tolist(), duals.tolist(), strict=True))
    assert abs(seen.imbalance) >= abs(exact)


@pytest.mark.parametrize("backend", BACKENDS)
def test_duals_that_are_worse_than_none_are_none(backend):
    X, y = data("squared")
    problem = Problem.checked(X, y, loss="squared", lam=1e-3, l1_ratio=1.0)
    there = get_backend(BACKENDS[backend])(problem)
    found = there.certify(np.zeros(8), 0.0, there.scatter(-3.0 * y))
    assert found.gap == pytest.approx(found.primal, rel=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
def test_methods_that_ascend_are_refused(backend):
    with pytest.raises(ValueError, match=r"ascends coordinate by coordinate.*does not allow"):
        both("logistic", BACKENDS[backend], method="sdca", sample_weight=None)


@pytest.mark.parametrize(
    "ask",
    [
        lambda *data, **made: adasdca.solve(*data, loss="logistic", lam=0.1, **made),
        lambda *data, **made: adasdca.path(*data, loss="logistic", Cs=[1.0], **made),
        lambda *data, **made: adasdca.certify(*data, np.zeros(8), loss="logistic", lam=0.1, **made),
    ],
)
def test_a_factory_that_makes_no_backend_is_named(ask):
    def forgetful(problem):
        TwoParts(problem)

    with pytest.raises(TypeError, match=r"backend = .*forgetful.* returned None, .* no Backend"):
        ask(*data("logistic"), backend=forgetful)


def test_a_path_on_a_backend_of_ones_own():
    X, y = data("logistic")
    options = {"loss": "logistic", "Cs": [0.1, 1.0], "tol": 1e-8}
    for one, two in zip(
        adasdca.path(X, y, **options).solutions,
        adasdca.path(X, y, backend=three_parts, **options).solutions,
        strict=True,
    ):
        agree(one, two)


@pytest.mark.parametrize("backend", [TwoParts, LocalBackend])
@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
def test_dot(backend, loss):
    """⟨X p + q, r⟩ = ⟨(p, q), (Xᵀr, Σr)⟩, seen through the curvature of a term."""
    X, y = data(loss)
    problem = Problem.checked(X, y, loss=loss, lam=1e-3, fit_intercept=True)
    rows = get_backend(backend)(problem)
    term = rows.term()
    term.place(np.zeros(X.shape[1]), 0.0)
    rng = np.random.default_rng(1)
    (p, r), (q, s) = rng.normal(size=(2, X.shape[1])), rng.normal(size=2)
    image, rest = term.curve(p, q)
    mirrored, other = term.curve(r, s)
    assert image @ r + rest * s == pytest.approx(mirrored @ p + other * q, rel=1e-12)
