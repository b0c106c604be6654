"""`adasdca.sklearn`: scikit-learn's classes with their parameters, results and a certificate."""

import numpy as np
import pytest
import sklearn.linear_model as linear
import sklearn.svm as svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

import adasdca
from adasdca import sklearn as ours
from bundled import cancer, diabetes, iris

TWO, MANY = cancer(), iris()
REAL = scale(diabetes()[0]), scale(diabetes()[1])
WEIGHT = 0.5 + np.random.default_rng(0).random(600)
EXACT = {"tol": 1e-9, "max_iter": 100_000}

CASES = [
    (linear.LogisticRegression, {"C": 0.5}, EXACT, TWO),
    (linear.LogisticRegression, {"class_weight": "balanced"}, EXACT, MANY),
    (linear.LogisticRegression, {"solver": "liblinear", "intercept_scaling": 2.0}, EXACT, TWO),
    (linear.LogisticRegression, {"solver": "saga", "l1_ratio": 0.5, "C": 0.1}, EXACT, TWO),
    (svm.LinearSVC, {"C": 0.1}, EXACT, TWO),
    (svm.LinearSVC, {"class_weight": {0: 2.0, 1: 0.5}}, EXACT, MANY),
    (svm.LinearSVC, {"fit_intercept": False, "C": 0.1}, EXACT, TWO),
    (svm.LinearSVR, {"loss": "squared_epsilon_insensitive", "dual": True}, EXACT, REAL),
    (linear.Ridge, {"alpha": 3.0}, {}, REAL),
    (linear.Ridge, {"positive": True, "fit_intercept": False}, {"tol": 1e-10}, REAL),
    (linear.RidgeClassifier, {"class_weight": "balanced"}, {}, MANY),
    (linear.Lasso, {"alpha": 0.05}, EXACT, REAL),
    (linear.ElasticNet, {"alpha": 0.05, "l1_ratio": 0.3, "positive": True}, EXACT, REAL),
    (linear.QuantileRegressor, {"quantile": 0.8, "alpha": 0.05}, {}, REAL),
]


@pytest.mark.parametrize(("theirs", "options", "limits", "data"), CASES)
def test_results_are_those_of_scikit_learn(theirs, options, limits, data):
    X, y = data
    weight = WEIGHT[: len(y)]
    mine = getattr(ours, theirs.__name__)(**options)
    assert isinstance(mine, theirs)
    assert clone(mine).get_params() == mine.get_params()
    mine.fit(X, y, sample_weight=weight)
    peer = theirs(**options, **limits).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(mine.coef_, peer.coef_, rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(mine.intercept_, peer.intercept_, rtol=2e-3, atol=2e-3)
    assert np.shape(mine.coef_) == np.shape(peer.coef_)
    assert np.shape(mine.intercept_) == np.shape(peer.intercept_)
    assert mine.predict(X).dtype == peer.predict(X).dtype
    assert mine.score(X, y) == pytest.approx(peer.score(X, y), abs=1e-2)
    assert mine.converged_
    found = mine.certificate_ if isinstance(mine.certificate_, list) else [mine.certificate_]
    assert max(each.relative_gap for each in found) <= 1e-8
    again = adasdca.certify(mine, X, y, sample_weight=weight, epochs=100)
    again = again if isinstance(again, list) else [again]
    np.testing.assert_allclose([c.primal for c in again], [c.primal for c in found], rtol=1e-9)


def test_several_targets_have_several_strengths():
    X, y = REAL
    both = np.column_stack([y, y**2])
    mine = ours.Ridge(alpha=[1.0, 20.0]).fit(X, both)
    peer = linear.Ridge(alpha=[1.0, 20.0]).fit(X, both)
    np.testing.assert_allclose(mine.coef_, peer.coef_, atol=1e-6)
    assert len(mine.certificate_) == 2


def test_what_is_not_reached_is_warned_of_and_what_cannot_be_is_refused():
    X, y = TWO
    with pytest.warns(ConvergenceWarning, match="LinearSVC did max_iter epochs"):
        ours.LinearSVC(max_iter=1, tol=1e-6).fit(X, y)
    with pytest.raises(ValueError, match="alpha = 0 is a problem without a penalty"):
        ours.Ridge(alpha=0.0).fit(X, y)
    with pytest.raises(ValueError, match="choose multi_class='ovr'"):
        ours.LinearSVC(multi_class="crammer_singer").fit(*MANY)
    with pytest.raises(ValueError, match="only one class: 1"):
        ours.LogisticRegression().fit(X[:3], np.ones(3, dtype=int))


def test_a_fit_goes_on_where_the_last_one_ended():
    X, y = TWO
    model = ours.LogisticRegression(C=100.0, warm_start=True, max_iter=1000).fit(X, y)
    assert model.fit(X, y).n_iter_[0] <= 1
