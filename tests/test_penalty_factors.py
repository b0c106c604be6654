"""Penalty factors, one for each feature: features without a penalty, and every face of factors.

The kernels, surveys and optima with factors are among the regularisers of `cases`.
"""

import functools
import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.exact.counts import Verdict
from benchmarks.exact.numbers import digits
from benchmarks.exact.problems import make as made
from benchmarks.oracle import judge_case
from sklearn.base import clone

import reference as ref
from adasdca import (
    AdaSDCAClassifier,
    AdaSDCAClassifierCV,
    AdaSDCARegressor,
    AdaSDCARegressorCV,
    Status,
    certify,
    path,
    solve,
)
from adasdca.methods import METHODS
from adasdca.problem.problem import Problem
from adasdca.screening import idle_features, idle_rows
from bundled import cancer, diabetes
from cases import FACTORS, LOSSES, REGULARIZERS, D, is_classification, make_data, strength

# The two in the middle are not penalised, and bounded instead.
FREE = np.array([0.3, 1.0, 4.0, 0.0, 0.0, 1.0, 11.0])
KINDS = {
    "l2": {"penalty_factors": FACTORS},
    "elastic net": {"penalty_factors": FACTORS, "l1_ratio": 0.3},
    "lasso": {"penalty_factors": FACTORS, "l1_ratio": 1.0},
    "bounds": {"penalty_factors": FACTORS, **REGULARIZERS["bounds"]},
    "elastic net bounds": {"penalty_factors": FACTORS, **REGULARIZERS["elastic-net-bounds"]},
    "free": {"penalty_factors": FREE, "bounds": (-2.0, 3.0)},
    "free elastic net": {"penalty_factors": FREE, "bounds": (-2.0, 3.0), "l1_ratio": 0.3},
    "free lasso": {"penalty_factors": FREE, "bounds": (-2.0, 3.0), "l1_ratio": 1.0},
}
INTERCEPT = pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
LAM, TOL, ORACLE = 0.1, 1e-9, 1e-8


def objective(X, y, loss, w, b, **options):
    return ref.Problem(X, y, loss, **options).primal(w, b)


@functools.cache
def case(loss, kind, intercept):
    X, y = make_data(loss, n=60, seed=1)
    options = {"lam": LAM, "fit_intercept": intercept, **KINDS[kind]}
    return X, y, options, ref.optimum(X, y, loss, **options)[:2]


def assert_optimal(X, y, loss, options, solution, best, coef):
    assert solution.status is Status.CONVERGED
    assert solution.gap <= TOL * solution.primal
    value = objective(X, y, loss, solution.coef, solution.intercept, **options)
    assert solution.primal == pytest.approx(value, rel=1e-12)
    assert solution.dual <= best * (1 + ORACLE)
    assert best <= solution.primal * (1 + ORACLE)
    assert solution.primal == pytest.approx(best, rel=ORACLE)
    modulus = strength(options)
    if modulus == 0:
        assert solution.radius == np.inf
    else:
        assert solution.radius == pytest.approx(np.sqrt(2 * solution.gap / modulus), rel=1e-12)
        blur = np.sqrt(2 * ORACLE * best / modulus)  # how far the other point may be off
        assert np.linalg.norm(solution.coef - coef) <= solution.radius + blur
    low, high = options.get("bounds", (-np.inf, np.inf))
    assert (low <= solution.coef).all()
    assert (solution.coef <= high).all()


@INTERCEPT
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_of_an_interior_point_method(loss, kind, intercept):
    X, y, options, (best, coef) = case(loss, kind, intercept)
    for rows in (X, sp.csr_array(X)):
        solution = solve(rows, y, loss=loss, tol=TOL, random_state=0, **options)
        assert_optimal(X, y, loss, options, solution, best, coef)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "auto"])
def test_ascent_refuses_features_that_are_not_penalised(method):
    X, y, options, _ = case("squared", "free", False)
    with pytest.raises(ValueError, match=r"penalty factor of 0.*choose method='auto'"):
        solve(X, y, loss="squared", method=method, **options)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("method", ["auto", "sdca-perm"])
@pytest.mark.parametrize("loss", LOSSES)
def test_columns_scaled_by_powers_of_two(loss, method, form):
    """With L2 alone, f_j = 4ᵏ is the column times 2⁻ᵏ, which rounds nothing."""
    X, y = make_data(loss, n=60, seed=3)
    power = np.array([0, 1, -2, 3, -1, 0, 2])
    options = {"loss": loss, "lam": 0.02, "tol": 1e-11, "random_state": 0, "method": method}
    options |= {"max_epochs": 3000}
    found = solve(form(X), y, penalty_factors=4.0**power, **options)
    other = solve(form(X * 2.0**-power), y, **options)
    assert found.primal == pytest.approx(other.primal, rel=1e-10)
    near = np.sqrt(2 * (found.gap + other.gap) / 0.02)
    assert np.linalg.norm(2.0**power * found.coef - other.coef) <= near
    if method != "auto":
        # Step for step the same numbers, but for the order of sums.
        assert found.n_epochs == other.n_epochs
        np.testing.assert_allclose(2.0**power * found.coef, other.coef, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_ones_change_no_bit(loss):
    X, y = make_data(loss)
    for options in ({}, {"l1_ratio": 0.3}):
        options = {"loss": loss, "lam": 0.01, "random_state": 0, "method": "adasdca+", **options}
        found, other = (solve(X, y, penalty_factors=f, **options) for f in (np.ones(D), None))
        np.testing.assert_array_equal(found.coef, other.coef)
        assert found.gap == other.gap


@INTERCEPT
@pytest.mark.parametrize("kind", ["l2", "elastic net", "lasso", "free", "free lasso"])
@pytest.mark.parametrize("loss", LOSSES)
def test_factors_of_very_different_size(loss, kind, intercept):
    """A lasso's u must be smaller than the least factor, and is a sum of far larger terms."""
    X, y = make_data(loss, n=60, seed=5)
    factors = 10.0 ** np.array([-5, 2, -3, 0, 1, -4, -1])
    factors[KINDS[kind]["penalty_factors"] == 0] = 0.0
    options = {**KINDS[kind], "penalty_factors": factors, "fit_intercept": intercept}
    solution = solve(X + 3.0, y, loss=loss, lam=1e-3, tol=1e-6, random_state=0, **options)
    assert solution.converged


# -- the second-order phase


@pytest.mark.parametrize("kind", ["l2", "elastic net", "lasso", "elastic net bounds"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "epsilon_insensitive"])
def test_more_features_than_rows(loss, kind):
    """Working sets of features, and equations by rows, whose products are weighted."""
    rng = np.random.default_rng(0)
    n, d = 50, 700
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.3)
    y = X[:, :5].sum(axis=1) + rng.normal(size=n)
    y = np.sign(y) if is_classification(loss) else y
    options = {**KINDS[kind], "penalty_factors": rng.choice([0.1, 1.0, 9.0], d), "lam": 0.05}
    options["bounds"] = (-0.05, 0.08) if "bounds" in options else None
    for rows, intercept in itertools.product((X, sp.csr_array(X)), (False, True)):
        run = functools.partial(
            solve, rows, y, loss=loss, fit_intercept=intercept, tol=1e-9, random_state=0, **options
        )
        found = run()
        assert found.converged
        value = objective(X, y, loss, found.coef, found.intercept, **options)
        assert found.primal == pytest.approx(value, rel=1e-12)
        if kind != "lasso":
            other = run(method="adasdca+", tol=1e-7, max_epochs=20_000)
            assert other.converged
            assert abs(found.primal - other.primal) <= found.gap + other.gap
            assert np.linalg.norm(found.coef - other.coef) <= found.radius + other.radius


# -- certificates in exact numbers


def judged(index):
    """Return what an oracle of sixty digits finds of a random problem with factors.

    Every third has bounds, within which some features, in many cases all, are not penalised.
    """
    case, rng = made(17, index, small=index % 2 == 1), np.random.default_rng(index)
    options, how = dict(case.options), dict(case.how)
    factors = 10.0 ** rng.uniform(-3, 3, case.X.shape[1])
    if index % 3 == 0:
        options |= {"bounds": (-0.75, 1.5), "l1_ratio": float(rng.choice([0.0, 0.5, 1.0]))}
        factors[rng.random(len(factors)) < 0.5] = 0.0
        how.pop("method", None)  # ascent needs every feature penalised
    options["penalty_factors"] = factors
    verdict = Verdict(case.number, {})
    with digits():
        judge_case(replace(case, options=options, how=how), verdict)
    return verdict


@pytest.mark.parametrize("part", range(10))
def test_certificates_hold_exactly(part):
    verdicts = [judged(index) for index in range(part, 600, 10)]
    assert [v for v in verdicts if v.violations] == []
    assert sum(v.decided for v in verdicts) >= 0.95 * len(verdicts)


# -- path, screening


@pytest.mark.parametrize("screen", [False, True])
@pytest.mark.parametrize("kind", ["l2", "elastic net", "free", "free elastic net"])
def test_a_path_is_solves_one_by_one(kind, screen):
    X, y, options, _ = case("squared_hinge", kind, False)
    options = {name: value for name, value in options.items() if name != "lam"}
    options |= {"loss": "squared_hinge", "tol": 1e-8, "random_state": 0}
    found = path(X, y, Cs=[0.01, 0.1, 1.0], screen=screen, **options)
    assert found.converged.all()
    for k, lam in enumerate(found.lams.tolist()):
        one = solve(X, y, lam=lam, **options)
        assert abs(one.primal - found.solutions[k].primal) <= one.gap + found.gaps[k] + 1e-15


@pytest.mark.parametrize("loss", ["squared", "squared_hinge"])
def test_screening_is_safe(loss):
    X, y = (cancer() if loss == "squared_hinge" else diabetes())[:2]
    y = 2.0 * y - 1 if loss == "squared_hinge" else y / y.std()
    factors = np.random.default_rng(0).choice([0.1, 1.0, 20.0], X.shape[1])
    options = {"loss": loss, "l1_ratio": 0.7, "lam": 0.02, "penalty_factors": factors}
    problem = Problem.checked(X, y, **options)
    exact = solve(X, y, tol=1e-13, random_state=0, **options)
    found = 0
    for tol in (1e-2, 1e-4, 1e-8):
        rough = solve(X, y, tol=tol, random_state=0, method="sdca-perm", **options)
        features, rows = (f(problem, X, rough) for f in (idle_features, idle_rows))
        assert not exact.coef[features].any()
        assert np.abs(exact.dual_coef[rows]).max(initial=0.0) <= 1e-8
        found = max(found, int(features.sum()))
    assert found > 0
    screened = path(X, y, loss=loss, l1_ratio=0.7, penalty_factors=factors, Cs=[1 / 0.02 / len(y)],
                    method="sdca-perm", tol=1e-9, max_epochs=20_000, random_state=0)  # fmt: skip
    assert screened.converged.all()
    assert abs(screened.solutions[0].primal - exact.primal) <= screened.gaps[0] + exact.gap


# -- what is refused


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        (np.append(FACTORS[1:], -1.0), r"penalty_factors\[6\] = -1.0 is not allowed; choose"),
        (np.append(np.nan, FACTORS[1:]), r"penalty_factors\[0\] = nan is not allowed"),
        (np.append(np.inf, FACTORS[1:]), r"penalty_factors\[0\] = inf.*leave its column out"),
        (FACTORS[1:], r"penalty_factors has shape \(6,\), but X has 7 columns: pass 7 numbers"),
        (FACTORS[:, None], r"penalty_factors has shape \(7, 1\)"),
        (2.0, r"penalty_factors has shape \(1,\), but X has 7 columns|must be an array-like"),
        (["a"] * D, "penalty_factors"),
        (np.zeros(D), r"penalty_factors\[0\] = 0 leaves feature 0 without.*finite bounds"),
        (FREE, r"penalty_factors\[3\] = 0.*\(-inf, inf\).*1e-6.*fit_intercept=True"),
        (1e-300 * FACTORS, r"penalty_factors\[0\] = .*beyond double precision; choose"),
    ],
)
def test_bad_factors(factors, words):
    X, y = make_data("squared")
    common = {"loss": "squared", "penalty_factors": factors}
    for call in (
        lambda: solve(X, y, lam=0.1, **common),
        lambda: certify(X, y, np.zeros(D), lam=0.1, **common),
        lambda: path(X, y, Cs=[1.0], **common),
        lambda: AdaSDCARegressor(penalty_factors=factors).fit(X, y),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_rows_too_long_for_their_factors():
    X, y = make_data("squared")
    with pytest.raises(ValueError, match=r"overflows.*larger penalty_factors"):
        solve(1e60 * X, y, loss="squared", lam=0.1, penalty_factors=1e-200 * FACTORS)


def test_one_bound_is_not_enough():
    X, y = make_data("squared")
    with pytest.raises(ValueError, match=r"penalty_factors\[3\] = 0.*\(0, inf\).*both sides"):
        solve(X, y, loss="squared", lam=0.1, penalty_factors=FREE, bounds=(0, None))
    with pytest.raises(ValueError, match=r"penalty_factors\[3\] = 0"):
        AdaSDCARegressor(penalty_factors=FREE, positive=True).fit(X, y)


def test_no_penalty_at_all_within_bounds():
    X, y, options, _ = case("squared", "free", False)
    options = {**options, "penalty_factors": np.zeros(D)}
    found = solve(X, y, loss="squared", tol=TOL, **options)
    best = ref.optimum(X, y, "squared", **options)[:2]
    assert_optimal(X, y, "squared", options, found, *best)


# -- estimators


@pytest.mark.parametrize(
    ("cls", "search"),
    [
        (AdaSDCAClassifier, None),
        (AdaSDCARegressor, None),
        (AdaSDCAClassifier, AdaSDCAClassifierCV),
        (AdaSDCARegressor, AdaSDCARegressorCV),
    ],
)
def test_estimators(cls, search):
    loss = "logistic" if cls is AdaSDCAClassifier else "squared"
    X, y = make_data(loss, n=60)
    model = (search or cls)(penalty_factors=FACTORS, tol=1e-10, random_state=0)
    twin = clone(model)
    np.testing.assert_array_equal(twin.get_params()["penalty_factors"], FACTORS)
    assert "penalty_factors" in repr(model)
    model.fit(X, y)
    assert model.penalty_factors is FACTORS
    C = model.C_ if search else 1.0
    one = solve(
        X, y, loss=loss, lam=1 / (C * 60), fit_intercept=True, penalty_factors=FACTORS, tol=1e-10
    )
    plain = (search or cls)(tol=1e-10, random_state=0).fit(X, y)
    np.testing.assert_allclose(np.ravel(model.coef_), one.coef, atol=1e-4)
    assert np.abs(np.ravel(plain.coef_) - one.coef).max() > 1e-3
    twin.set_params(penalty_factors=list(FACTORS)).fit(X, y)
    np.testing.assert_array_equal(twin.coef_, model.coef_)


def test_more_than_two_classes():
    X = np.random.default_rng(0).normal(size=(60, D))
    y = np.arange(60) % 3
    model = AdaSDCAClassifier(penalty_factors=FACTORS, tol=1e-8, random_state=0).fit(X, y)
    for k, coef in enumerate(model.coef_):
        one = solve(X, np.where(y == k, 1.0, -1.0), loss="logistic", lam=1 / 60, tol=1e-8,
                    fit_intercept=True, penalty_factors=FACTORS)  # fmt: skip
        np.testing.assert_allclose(coef, one.coef, atol=1e-3)
    with pytest.raises(ValueError, match=r"penalty_factors=None.*choose multi_class='ovr'"):
        model.set_params(multi_class="multinomial").fit(X, y)
