"""Models in use: their predictions and certificates are those of the fits they came from."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
from adasdca import models
from adasdca.models import Model, ModelError
from bundled import cancer, diabetes, iris


@pytest.mark.parametrize("data", [cancer, iris])
def test_predictions_are_the_estimators(data):
    X, y = data()
    estimator = adasdca.AdaSDCAClassifier(multi_class="ovr", random_state=0).fit(X, y)
    model = Model(estimator.coef_, estimator.intercept_, estimator.classes_, adasdca.Logistic(), 1)
    for rows in (X, sp.csr_matrix(X), X.astype(np.float32)):
        scores = estimator.decision_function(rows)
        np.testing.assert_array_equal(model.decision(rows), scores.reshape(len(y), -1))
        np.testing.assert_array_equal(model.predict(rows), estimator.predict(rows))


def test_regression_predicts_scores():
    X, y = diabetes()
    estimator = adasdca.AdaSDCARegressor(random_state=0).fit(X, y)
    model = Model(estimator.coef_[None], np.array([estimator.intercept_]), None,
                  adasdca.Squared(), 1.0)  # fmt: skip
    np.testing.assert_array_equal(model.predict(X), estimator.predict(X))


@pytest.mark.parametrize(
    "options",
    [
        {"fit_intercept": False},
        {"fit_intercept": True},
        {"fit_intercept": True, "intercept_scaling": 2.0},
        {"fit_intercept": True, "intercept_scaling": 0.5, "positive": True},
        {"fit_intercept": False, "l1_ratio": 0.5, "class_weight": {0: 1.0, 1: 3.0}},
    ],
)
def test_a_model_certifies_as_its_fit_did(options):
    """The same problem again: the bound found here is at least as weak as one at the optimum."""
    X, y = cancer()
    fit = adasdca.AdaSDCAClassifier(tol=1e-9, random_state=0, **options).fit(X, y)
    weight = np.array([1.0, 3.0]) if "class_weight" in options else None
    total = len(y) if weight is None else weight[y].sum()
    penalised = options.get("intercept_scaling")
    model = Model(
        fit.coef_,
        fit.intercept_,
        fit.classes_,
        adasdca.Logistic(),
        1 / total,
        l1_ratio=options.get("l1_ratio", 0.0),
        bias=penalised or -1.0,
        fit_intercept=options["fit_intercept"] and penalised is None,
        positive=options.get("positive", False),
        class_weight=weight,
    )
    for rows in (X, sp.csr_matrix(X)):
        (certificate,) = models.certify(model, rows, y, epochs=200)
        assert certificate.primal == pytest.approx(fit.certificate_.primal, rel=1e-12)
        assert certificate.dual <= fit.certificate_.primal * (1 + 1e-12)
        assert certificate.relative_gap <= 1e-5


def test_every_class_has_its_certificate():
    X, y = iris()
    fit = adasdca.AdaSDCAClassifier(multi_class="ovr", tol=1e-8, random_state=0).fit(X, y)
    model = Model(fit.coef_, fit.intercept_, fit.classes_, adasdca.Logistic(), 1 / len(y),
                  fit_intercept=True)  # fmt: skip
    found = models.certify(model, X, y, epochs=100)
    for here, there in zip(found, fit.certificate_, strict=True):
        assert here.primal == pytest.approx(there.primal, rel=1e-12)
        assert here.relative_gap < 1e-4


def test_certifying_needs_lam_and_the_models_labels():
    X, y = cancer()
    model = Model(np.zeros((1, 30)), np.zeros(1), np.array([0, 1]), adasdca.Logistic(), None)
    with pytest.raises(ModelError, match="give lam or C"):
        models.certify(model, X, y)
    model = dataclasses.replace(model, lam=1.0)
    with pytest.raises(ModelError, match="label 2 is none of the model's classes"):
        models.certify(model, X, y + 1)
    with pytest.raises(ModelError, match="another kind"):
        models.certify(model, X, np.where(y, "a", "b"))
