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
