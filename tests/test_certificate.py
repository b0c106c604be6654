"""`certify`: valid bounds for anybody's model, close ones for a good model of a smooth loss."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

import reference as ref
from adasdca import Certificate, CertificateError, certify, solve
from adasdca.duality.certificate import relative_gap
from cases import LOSSES, REGULARIZERS, SMOOTH, make_data, strength

N, LAM = 60, 0.1
INTERCEPT = pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])


def make_case(loss, regularizer="l2", intercept=False, weighted=False):
    """Data, options, and the optimal value, coefficients and intercept."""
    X, y = make_data(loss, n=N, seed=1)
    options = {"lam": LAM, "fit_intercept": intercept, **REGULARIZERS[regularizer]}
    if weighted:
        options["sample_weight"] = np.random.default_rng(2).uniform(0.1, 3.0, N)
    return X, y, options, ref.optimum(X, y, loss, **options)


def assert_valid(certificate, best, coef, optimal_coef, modulus):
    """The bounds enclose the optimum, the ball its coefficients; 1e-9 is the oracle's own error."""
    assert certificate.dual <= best * (1 + 1e-9)
    assert best <= certificate.primal * (1 + 1e-9)
    assert certificate.gap >= 0
    # The bound is rounded down by what the primal value may be wrong.
    assert certificate.dual <= certificate.primal - certificate.gap
    assert certificate.dual == pytest.approx(
        certificate.primal - certificate.gap, abs=1e-12 * certificate.primal
    )
    assert certificate.radius == pytest.approx(np.sqrt(2 * certificate.gap / modulus), rel=1e-12)
    blur = np.sqrt(2e-9 * best / modulus)
    assert np.linalg.norm(coef - optimal_coef) <= certificate.radius + blur


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_linear_svc(loss):
    X, y, options, (best, optimal, _) = make_case(loss)
    model = LinearSVC(
        C=1 / (LAM * N), loss=loss, fit_intercept=False, tol=1e-10, max_iter=10**6, random_state=0
    ).fit(X, y)
    found = certify(X, y, model.coef_, loss=loss, **options)
    assert_valid(found, best, model.coef_[0], optimal, LAM)
    if loss == "squared_hinge":
        assert found.relative_gap <= 1e-8
        return
    # At the kink, where support vectors sit, the slope says little: epochs find the dual.
    assert found.relative_gap > 1e-3
    longer = [certify(X, y, model.coef_, loss=loss, epochs=k, **options) for k in (1, 10, 500)]
    gaps = [found.gap, *(certificate.gap for certificate in longer)]
    assert (np.diff(gaps) <= 0).all()
    assert longer[-1].relative_gap <= 1e-7
    for certificate in longer:
        assert certificate.primal == found.primal
        assert_valid(certificate, best, model.coef_[0], optimal, LAM)


@INTERCEPT
@pytest.mark.parametrize("regularizer", REGULARIZERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_any_point_gets_valid_bounds(loss, regularizer, intercept):
    X, y, options, (best, optimal, b) = make_case(loss, regularizer, intercept, weighted=True)
    low, high = options.get("bounds", (-np.inf, np.inf))
    rng = np.random.default_rng(3)
    for scale in (0.0, 0.01, 1.0, 100.0):
        coef = np.clip(optimal + scale * rng.normal(size=optimal.size), low, high)
        at = b + scale * rng.normal() if intercept else 0.0
        found = certify(X, y, coef, intercept=at, loss=loss, **options)
        assert_valid(found, best, coef, optimal, strength(options))
        more = certify(X, y, coef, intercept=at, loss=loss, epochs=3, **options)
        assert_valid(more, best, coef, optimal, strength(options))
        assert more.dual >= found.dual
    if loss in SMOOTH:
        closest = certify(X, y, optimal, intercept=b, loss=loss, **options)
        assert closest.relative_gap <= 1e-6


@INTERCEPT
@pytest.mark.parametrize("loss", LOSSES)
def test_the_trainer_s_own_duals_are_used(loss, intercept):
    X, y, options, (best, optimal, _) = make_case(loss, "elastic-net", intercept, weighted=True)
    solution = solve(X, y, loss=loss, tol=1e-10, max_epochs=5000, random_state=0, **options)
    far = np.full_like(optimal, 0.7)
    without = certify(X, y, far, loss=loss, **options)
    found = certify(X, y, far, loss=loss, dual_coef=solution.dual_coef, **options)
    assert found.dual == pytest.approx(solution.dual, rel=1e-11)
    assert found.dual > without.dual
    assert_valid(found, best, far, optimal, 0.7 * LAM)
    # Duals that break every constraint cost nothing but their own bound.
    for wrong in (1e3, -1e3):
        odd = certify(X, y, far, loss=loss, dual_coef=wrong * solution.dual_coef, **options)
        assert odd.dual >= without.dual
        assert odd.dual <= best * (1 + 1e-9)


def test_it_reads_as_a_sentence():
    X, y, options, _ = make_case("logistic")
    text = str(certify(X, y, np.zeros(X.shape[1]), loss="logistic", **options))
    assert "The objective is 0.69314718" in text
    assert "%" in text


@pytest.mark.parametrize("numbers", [(np.nan, 0.1), (1.0, np.nan), (np.inf, 0.1), (1.0, np.inf)])
def test_numbers_that_are_not_finite_prove_nothing(numbers):
    with pytest.raises(CertificateError, match="scale the features or the targets"):
        Certificate.of(*numbers, 0.0, 0.0, 1.0)


@pytest.mark.parametrize("blur", [0.0, 1e-18, 1e-9])
def test_the_lower_bound_makes_room_for_rounding(blur):
    found = Certificate.of(1.0, 0.25, 1e-16, blur, 2.0)
    assert found.dual < 0.75 - blur / 2
    assert found.dual == pytest.approx(0.75, abs=2 * blur, rel=1e-15)
    assert found.radius == 0.5
    assert found.rounding == 1e-16


def test_the_relative_gap_of_a_primal_value_of_0():
    assert relative_gap(1.0, 4.0) == 0.25
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(1e-300, 0.0) == np.inf


@pytest.mark.parametrize("loss", ["absolute", "hinge", "epsilon_insensitive"])
def test_a_few_epochs_certify_a_model_of_raw_columns(loss):
    rng = np.random.default_rng(0)
    people, years = rng.lognormal(16, 1, 500), rng.integers(1950, 2010, 500)
    X, y = np.column_stack([people, years, rng.integers(0, 2, (500, 3))]), rng.lognormal(8, 1, 500)
    if loss == "hinge":
        y = np.where(y > np.median(y), 1.0, -1.0)
    problem = {"loss": loss, "lam": 1 / len(y), "fit_intercept": True}
    best = solve(X, y, tol=1e-6, random_state=0, **problem)
    found = certify(X, y, best.coef, intercept=best.intercept, epochs=20, **problem)
    assert found.relative_gap <= 1e-5
