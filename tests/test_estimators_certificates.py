"""What a fit promises, and what it says when it falls short."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import ConvergenceWarning

import adasdca
from adasdca import AdaSDCAClassifier, AdaSDCARegressor, Certificate, History
from adasdca.auto.policy import Policy
from adasdca.estimators._convergence import epochs_to_go
from adasdca.problem.losses import LOSSES
from bundled import cancer, diabetes, iris

CLASSIFICATION = [name for name, loss in LOSSES.items() if loss.kind == "classification"]
REGRESSION = [name for name, loss in LOSSES.items() if loss.kind == "regression"]


@pytest.mark.parametrize("loss", CLASSIFICATION + REGRESSION)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_attributes_and_certificate(loss, fit_intercept):
    kind = LOSSES[loss].kind
    (X, y), model = (
        (cancer(), AdaSDCAClassifier)
        if kind == "classification"
        else (diabetes(), AdaSDCARegressor)
    )
    options = {"loss": loss, "C": 0.1, "fit_intercept": fit_intercept, "random_state": 0}
    fitted = model(**options, tol=1e-3).fit(X, y)
    exact = model(**options, tol=1e-9, max_iter=20_000).fit(X, y)
    for m in (fitted, exact):
        assert isinstance(m.certificate_, Certificate)
        assert isinstance(m.history_, History)
        assert m.converged_ is True
        assert m.dual_gap_ <= m.tol * m.certificate_.primal
        assert m.n_iter_ >= 1
        assert m.dual_coef_.shape == ((1, len(y)) if kind == "classification" else (len(y),))
    # What was promised holds of the (nearly) exact optimum.
    # One rounding apart, both being sums over all rows.
    assert fitted.certificate_.dual <= exact.certificate_.primal * (1 + 1e-14)
    distance = np.linalg.norm(fitted.coef_ - exact.coef_)
    assert distance <= fitted.radius_ + exact.radius_ + 1e-9  # a gap of 0 is 0 to rounding
    targets = 2.0 * y - 1 if kind == "classification" else y
    check = adasdca.certify(
        X,
        targets,
        np.ravel(fitted.coef_),
        intercept=float(np.ravel(fitted.intercept_)[0]),
        loss=loss,
        lam=1 / (0.1 * len(y)),
        fit_intercept=fit_intercept,
    )
    assert check.primal == pytest.approx(fitted.certificate_.primal, rel=1e-9)
    u = np.ravel(fitted.dual_coef_) @ X / (1 / 0.1)
    if fit_intercept:
        assert abs(fitted.dual_coef_.sum()) <= 1e-9 * np.abs(fitted.dual_coef_).sum()
    # D is strongly concave in u, so the radius holds of the duals' own coefficients, too.
    distance = np.linalg.norm(u - np.ravel(exact.coef_))
    assert distance <= fitted.radius_ + exact.radius_ + 1e-9


@pytest.mark.parametrize("loss", CLASSIFICATION)
@pytest.mark.parametrize("intercept", ["free", "penalised", "none"])
def test_certified_margins_hold(loss, intercept):
    X, y = cancer()
    options = {
        "loss": loss,
        "C": 0.1,
        "random_state": 0,
        "fit_intercept": intercept != "none",
        "intercept_scaling": 2.0 if intercept == "penalised" else None,
    }
    exact = AdaSDCAClassifier(**options, tol=1e-10, max_iter=20_000).fit(X, y)
    shares = []
    for tol in (1e-2, 1e-4, 1e-6):
        model = AdaSDCAClassifier(**options, tol=tol).fit(X, y)
        margin = model.certified_margin(X)
        assert margin.shape == y.shape
        certain = margin > 0
        np.testing.assert_array_equal(model.predict(X)[certain], exact.predict(X)[certain])
        assert (margin <= np.abs(model.decision_function(X))).all()
        shares.append(certain.mean())
    assert shares[-1] > 0.9


@pytest.mark.parametrize("multi_class", ["ovr", "multinomial"])
def test_certified_margins_of_many_classes(multi_class):
    X, y = iris()
    options = {"multi_class": multi_class, "random_state": 0}
    exact = AdaSDCAClassifier(**options, tol=1e-13).fit(X, y)
    for tol in (1e-1, 1e-3, 1e-6):
        model = AdaSDCAClassifier(**options, tol=tol).fit(X, y)
        certain = model.certified_margin(X) > 0
        np.testing.assert_array_equal(model.predict(X)[certain], exact.predict(X)[certain])
    assert certain.mean() > 0.9


@pytest.mark.parametrize("loss", REGRESSION)
def test_certified_errors_hold(loss):
    X, y = diabetes()
    options = {"loss": loss, "C": 0.1, "random_state": 0}
    exact = AdaSDCARegressor(**options, tol=1e-10, max_iter=20_000).fit(X, y)
    for tol in (1e-2, 1e-5):
        model = AdaSDCARegressor(**options, tol=tol).fit(X, y)
        error = np.abs(model.predict(X) - exact.predict(X))
        assert (error <= model.certified_error(X) + exact.certified_error(X)).all()
    assert np.median(model.certified_error(X)) < 0.5


def test_many_solves_have_many_certificates():
    X, y = iris()
    model = AdaSDCAClassifier(multi_class="ovr", random_state=0).fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert model.dual_coef_.shape == (3, len(y))
    assert model.dual_gap_.shape == model.radius_.shape == (3,)
    assert len(model.history_) == len(model.certificate_) == 3
    assert model.n_iter_ == max(len(h) - 1 for h in model.history_)
    X, y = diabetes()
    targets = AdaSDCARegressor(random_state=0).fit(X, np.column_stack([y, -y]))
    assert targets.coef_.shape == (2, X.shape[1])
    assert targets.intercept_.shape == targets.dual_gap_.shape == (2,)
    np.testing.assert_allclose(targets.coef_[0], -targets.coef_[1], atol=targets.radius_.sum())
    one = AdaSDCARegressor(random_state=0).fit(X, y[:, None])
    assert one.coef_.shape == (1, X.shape[1])
    assert one.predict(X).shape == (len(y), 1)


def test_warning_says_what_was_reached_and_what_to_do():
    X, y = cancer()
    model = AdaSDCAClassifier(
        method="sdca-perm", fit_intercept=False, tol=1e-8, max_iter=15, random_state=0
    )
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    text = str(caught[0].message)
    assert not model.converged_
    assert model.n_iter_ == 15
    reached = model.dual_gap_ / model.certificate_.primal
    assert f"relative duality gap {reached:.2g}, asked 1e-08" in text
    assert f"within {model.radius_:.2g} of these" in text
    assert "raise max_iter (now 15)" in text
    more = int(re.search(r"about (\d+) more epochs", text)[1])
    assert more == epochs_to_go(model.history_, 1e-8)


def test_warning_without_a_bound_of_the_coefficients():
    X, y = cancer()
    model = AdaSDCAClassifier(l1_ratio=1.0, max_time=0.0)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    text = str(caught[0].message)
    assert "nothing bounds how far the coefficients are" in text
    assert "inf" not in text


def test_predicted_epochs_are_about_right():
    X, y = cancer()
    options = {"method": "sdca-perm", "C": 1.0, "random_state": 0, "fit_intercept": False}
    with pytest.warns(ConvergenceWarning):
        short = AdaSDCAClassifier(**options, tol=1e-9, max_iter=20).fit(X, y)
    predicted = 20 + epochs_to_go(short.history_, 1e-9)
    full = AdaSDCAClassifier(**options, tol=1e-9).fit(X, y)
    assert full.n_iter_ / 3 <= predicted <= 3 * full.n_iter_


def test_no_rate_no_forecast():
    flat = np.ones(5)
    columns = dict.fromkeys(("updates", "seconds", "active"), np.arange(5))
    history = History(epoch=np.arange(5), primal=flat, dual=flat, gap=flat, **columns)
    assert epochs_to_go(history, 1e-3) is None


def test_max_time():
    X, y = cancer()
    with pytest.warns(ConvergenceWarning, match="raise max_time"):
        model = AdaSDCAClassifier(loss="hinge", max_time=0.0).fit(X, y)
    assert not model.converged_


def test_tol_0_goes_to_the_limits_without_a_warning():
    X, y = cancer()
    for loss in ("squared_hinge", "logistic"):
        model = AdaSDCAClassifier(loss=loss, tol=0.0, random_state=0).fit(X, y)
        assert model.converged_
        assert model.dual_gap_ <= 1e-12 * model.certificate_.primal


def test_small_problems_do_not_depend_on_the_seed():
    X, y = iris()
    X, y = X[50:], y[50:]
    assert X.size <= Policy().small
    for loss in CLASSIFICATION:
        a, b = (AdaSDCAClassifier(loss=loss, random_state=seed).fit(X, y) for seed in (0, 1))
        np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-6, atol=1e-6)


# Problems on which coordinate ascent alone crawls


@pytest.mark.parametrize("loss", CLASSIFICATION)
def test_raw_features_are_no_trouble(loss):
    X, y = load_breast_cancer(return_X_y=True)  # scales from 1e-3 to 1e3
    model = AdaSDCAClassifier(loss=loss, random_state=0).fit(X, y)
    assert model.converged_
    # The certificate is that of the data as they came.
    check = adasdca.certify(
        X,
        2.0 * y - 1,
        model.coef_[0],
        intercept=model.intercept_[0],
        loss=loss,
        lam=1 / len(y),
        fit_intercept=True,
        dual_coef=model.dual_coef_[0],
    )
    assert check.primal == pytest.approx(model.certificate_.primal, rel=1e-6)
    assert check.relative_gap < 2e-4


@pytest.mark.parametrize("loss", REGRESSION)
def test_raw_features_of_a_regression_are_no_trouble(loss):
    X, y = load_diabetes(return_X_y=True, scaled=False)
    assert AdaSDCARegressor(loss=loss, random_state=0).fit(X, y).converged_


@pytest.mark.parametrize("loss", CLASSIFICATION)
@pytest.mark.parametrize("C", [1e-4, 1e4])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_extreme_regularisation(loss, C, form):
    X, y = cancer()
    model = AdaSDCAClassifier(loss=loss, C=C, random_state=0).fit(form(X), y)
    assert model.converged_


def test_the_method_asked_for_is_the_method_used():
    X, y = load_breast_cancer(return_X_y=True)
    options = {"loss": "hinge", "max_iter": 120, "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="reached max_iter before it converged"):
        model = AdaSDCAClassifier(method="sdca", **options).fit(X, y)
    assert model.n_iter_ == 120
