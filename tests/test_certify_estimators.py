"""`certify(estimator, X, y)`: the objective is found in the parameters of the estimator.

A wrong loss, strength, intercept or weight shows as a gap: the peers are fitted to high accuracy.
"""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import (
    ElasticNet,
    HuberRegressor,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC, LinearSVC, LinearSVR
from sklearn.utils import class_weight

import adasdca
from adasdca import AdaSDCAClassifier, AdaSDCARegressor, AdaSDCARegressorCV, models
from bundled import cancer, diabetes, iris

RNG = np.random.default_rng(0)
TWO = cancer()
MANY = iris()
REAL = scale(diabetes()[0]), scale(diabetes()[1])
SPARE = 0.5 + RNG.random(600)
EXACT = {"tol": 1e-8, "max_iter": 100_000}
UNEVEN = {0: 2.0, 1: 0.5}

PEERS = [
    (LogisticRegression(**EXACT), TWO, False, 1e-8),
    (LogisticRegression(class_weight="balanced", C=0.1, **EXACT), TWO, True, 1e-8),
    (LogisticRegression(solver="liblinear", intercept_scaling=2, **EXACT), TWO, True, 1e-8),
    (LogisticRegression(solver="liblinear", l1_ratio=1.0, **EXACT), TWO, False, 1e-4),
    (LogisticRegression(fit_intercept=False, **EXACT), TWO, False, 1e-8),
    (LogisticRegression(**EXACT), MANY, False, 1e-8),
    (LogisticRegression(class_weight=UNEVEN, **EXACT), MANY, True, 1e-8),
    (LinearSVC(random_state=0, **EXACT), TWO, True, 1e-8),
    (LinearSVC(class_weight=UNEVEN, random_state=0, **EXACT), MANY, True, 1e-6),
    (LinearSVC(loss="hinge", C=0.01, random_state=0, **EXACT), TWO, False, 1e-4),
    (LinearSVR(epsilon=0.3, C=0.01, random_state=0, **EXACT), REAL, True, 1e-2),
    (LinearSVR(loss="squared_epsilon_insensitive", dual=False, **EXACT), REAL, True, 1e-8),
    (Ridge(alpha=3.0), REAL, True, 1e-12),
    (RidgeCV(alphas=(0.5, 50.0)), REAL, False, 1e-12),
    (RidgeClassifier(class_weight="balanced"), MANY, True, 1e-12),
    (Lasso(alpha=0.05, tol=1e-10), REAL, True, 1e-8),
    (LassoCV(tol=1e-8, alphas=4), REAL, False, 1e-4),
    (ElasticNet(alpha=0.05, positive=True, tol=1e-10), REAL, True, 1e-8),
    (QuantileRegressor(quantile=0.7, alpha=0.02), REAL, True, 1e-3),
    (HuberRegressor(alpha=0.5, **EXACT), REAL, True, 1e-8),
    (SGDClassifier("log_loss", alpha=0.1, class_weight=UNEVEN, random_state=0), TWO, True, 3e-2),
    (SGDRegressor(alpha=0.1, loss="huber", epsilon=0.4, random_state=0), REAL, True, 3e-2),
    (make_pipeline(StandardScaler(), GridSearchCV(Ridge(), {"alpha": [1, 9]})), REAL, False, 1e-12),
    (TransformedTargetRegressor(Ridge(), transformer=StandardScaler()), REAL, False, 1e-12),
    (AdaSDCAClassifier(tol=1e-6, class_weight="balanced"), MANY, True, 1e-6),
    (AdaSDCAClassifier(loss="hinge", tol=1e-6, class_weight=UNEVEN), MANY, True, 1e-6),
    (AdaSDCAClassifier(tol=1e-6, intercept_scaling=2.0), MANY, True, 1e-6),
    (AdaSDCARegressor(loss="absolute_error", bounds=(-0.1, 0.3), tol=1e-6), REAL, True, 1e-6),
    (AdaSDCARegressorCV(Cs=[0.1, 1.0], tol=1e-6), REAL, False, 1e-6),
]


@pytest.mark.parametrize(("peer", "data", "weighted", "limit"), PEERS)
def test_the_objective_is_found(peer, data, weighted, limit):
    X, y = data
    if weighted:
        peer.fit(X, y, sample_weight=SPARE[: len(y)])
    else:
        peer.fit(X, y)
    found = adasdca.certify(
        peer, X, y, sample_weight=SPARE[: len(y)] if weighted else None, epochs=200
    )
    for each in found if isinstance(found, list) else [found]:
        assert 0 <= each.relative_gap <= 1.01 * limit


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_search_without_ratios_has_no_l1_term():
    """Versions of scikit-learn keep an array of None for it."""
    X, y = MANY
    peer = LogisticRegressionCV(Cs=[0.1, 1.0], **EXACT).fit(X, y)
    assert adasdca.certify(peer, X, y).relative_gap < 1e-8


@pytest.mark.parametrize("cls", [LogisticRegression, LinearSVC])
def test_balanced_classes_are_those_of_the_version(cls, monkeypatch):
    """Before 1.7 scikit-learn counted rows for them, whatever the rows weighed."""
    X, y = TWO
    weight = np.where(y == 0, 3.0, 0.5) * SPARE[: len(y)]
    by_rows = dict(enumerate(len(y) / (2.0 * np.bincount(y.astype(int)))))
    peer = cls(class_weight=by_rows, **EXACT).fit(X, y, sample_weight=weight)
    peer.set_params(class_weight="balanced")
    with monkeypatch.context() as older:
        older.setattr(class_weight, "compute_class_weight", lambda class_weight, classes, y: 0)
        assert adasdca.certify(peer, X, y, sample_weight=weight).relative_gap < 1e-8
    peer.fit(X, y, sample_weight=weight)
    assert adasdca.certify(peer, X, y, sample_weight=weight).relative_gap < 1e-8


def test_several_targets_have_a_certificate_each():
    X, y = REAL
    both = np.column_stack([y, y**2])
    first, second = adasdca.certify(Ridge(alpha=[1.0, 20.0]).fit(X, both), X, both)
    assert max(first.relative_gap, second.relative_gap) < 1e-12
    assert first.primal != second.primal


def test_other_weights_or_strengths_are_another_problem():
    """What the gap of the test above would be, were the objective mistaken."""
    X, y = TWO
    peer = LogisticRegression(**EXACT).fit(X, y)
    assert adasdca.certify(peer, X, y, sample_weight=SPARE[: len(y)]).relative_gap > 1e-4
    assert adasdca.certify(peer.set_params(C=2.0), X, y).relative_gap > 1e-3


def test_columns_are_those_of_the_fit_in_their_order():
    pandas = pytest.importorskip("pandas")
    X, y = REAL
    frame = pandas.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    for model in (Ridge(), make_pipeline(StandardScaler().set_output(transform="pandas"), Ridge())):
        model.fit(frame, y)
        assert adasdca.certify(model, frame, y).relative_gap < 1e-9
        with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
            adasdca.certify(model, frame[frame.columns[::-1]], y)
    assert adasdca.certify(Ridge().fit(frame, y), X, y).relative_gap < 1e-9


def test_coefficients_have_the_shapes_of_scikit_learn():
    X, y = TWO
    peer, signs = LinearSVC(**EXACT).fit(X, y), np.where(y == 1, 1.0, -1.0)
    problem = {"loss": "squared_hinge", "lam": 1 / len(y), "fit_intercept": True}
    options = problem | {"intercept_scaling": 1.0}
    one, two = (
        adasdca.certify(X, signs, coef, intercept=intercept, **options)
        for coef, intercept in (
            (peer.coef_, peer.intercept_),
            (peer.coef_[0], float(peer.intercept_[0])),
        )
    )
    assert one == two
    with pytest.raises(ValueError, match="no finite number; pass the model's intercept"):
        adasdca.certify(X, signs, peer.coef_, intercept=[0.0, 1.0], **options)


def test_a_model_from_a_file_certifies_too():
    X, y = MANY
    fit = AdaSDCAClassifier(tol=1e-6).fit(X, y)
    model = models.Model(
        fit.coef_, fit.intercept_, fit.classes_, adasdca.Logistic(), 1 / len(y),
        fit_intercept=True, multinomial=True,
    )  # fmt: skip
    assert adasdca.certify(model, X, y).relative_gap <= 1e-6


@pytest.mark.parametrize(
    ("peer", "message"),
    [
        (LinearRegression(), "it has no penalty"),
        (Perceptron(), "Perceptron cannot be certified"),
        (SVC(kernel="linear"), "a machine of kernels, even a linear one; fit LinearSVC"),
        (LogisticRegression(C=np.inf, max_iter=3), "C = inf is a problem without a penalty"),
        (Ridge(alpha=0.0), "alpha = 0 is a problem without a penalty"),
        (LinearSVC(multi_class="crammer_singer"), "choose multi_class='ovr'"),
        (OneVsRestClassifier(LinearSVC()), "certify what is in its estimators_"),
        (RandomForestClassifier(2), "RandomForestClassifier cannot be certified: it is no linear"),
        (StandardScaler(), None),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_not_known_is_said(peer, message):
    X, y = TWO
    peer.fit(X, y)
    if message is None:
        peer.predict = lambda X: X
        message = "StandardScaler is not known here; pass its coefficients"
    with pytest.raises(ValueError, match=message):
        adasdca.certify(peer, X, y)


def test_an_unfitted_model_and_strange_labels_are_refused():
    X, y = TWO
    with pytest.raises(ValueError, match="is not fitted"):
        adasdca.certify(Ridge(), X, y)
    with pytest.raises(ValueError, match="The label 7 is none of the model's classes"):
        adasdca.certify(LogisticRegression().fit(X, y), X, np.full(len(y), 7))
