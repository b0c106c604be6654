"""`adasdca.sklearn`: scikit-learn's classes with their parameters, results and a certificate."""

import warnings

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
    (linear.RidgeClassifier, {"alpha": 0.5}, {}, TWO),
    (linear.RidgeClassifier, {"fit_intercept": False}, {}, TWO),
    (linear.RidgeClassifier, {"fit_intercept": False}, {}, MANY),
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


UNPENALISED = [
    (linear.Ridge, {"alpha": 0.0}, {}, REAL),
    (linear.Lasso, {"alpha": 0.0}, EXACT, REAL),
    (linear.QuantileRegressor, {"alpha": 0.0, "quantile": 0.7}, {}, REAL),
    (linear.LogisticRegression, {"C": np.inf}, EXACT, (TWO[0][:, :5], TWO[1])),
]


@pytest.mark.parametrize("scales", [1.0, 1e-6, 1e6])
@pytest.mark.parametrize(("theirs", "options", "limits", "data"), UNPENALISED)
@pytest.mark.filterwarnings("ignore:.*alpha=0:UserWarning")
@pytest.mark.filterwarnings(
    "ignore:Objective did not converge:sklearn.exceptions.ConvergenceWarning"
)
@pytest.mark.filterwarnings("ignore:Coordinate descent without L1:UserWarning")
def test_no_penalty_is_the_limit_of_weak_ones(theirs, options, limits, data, scales):
    X, y = data
    peer = theirs(**options, **limits).fit(X, y)
    mine = getattr(ours, theirs.__name__)(**options).fit(X * scales, y)
    np.testing.assert_allclose(mine.coef_ * scales, peer.coef_, rtol=1e-5, atol=1e-5)
    assert 0 < mine.lam_ < 1e-12 * scales**2 * X.size / len(y)
    assert mine.certificate_.relative_gap < 1e-8


@pytest.mark.parametrize(
    ("model", "options", "data"),
    [("Ridge", {"alpha": 3.0}, REAL), ("Ridge", {"alpha": 0.0}, REAL),
     ("LogisticRegression", {"C": np.inf}, (TWO[0][:, :5], TWO[1]))],
)  # fmt: skip
def test_a_feature_in_tiny_units_hides_no_other(model, options, data):
    # Instants in nanoseconds beside ordinary numbers: to those a penalty that is nothing beside the
    # instants is all there is.
    X, y = data[0].copy(), data[1]
    X[:, 0] = np.random.default_rng(0).integers(1e14, 1e18, size=len(y))
    mine = getattr(ours, model)(**options).fit(X, y)
    scaled = X / np.append(1e14, np.ones(X.shape[1] - 1))
    alone = getattr(ours, model)(**options).fit(scaled, y)
    np.testing.assert_allclose(mine.coef_.ravel()[1:], alone.coef_.ravel()[1:], rtol=1e-2)


def test_of_many_solutions_without_a_penalty_the_shortest_is_chosen():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 50)), rng.normal(size=20)
    mine = ours.Ridge(alpha=0.0, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(mine.coef_, np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-8)


@pytest.mark.parametrize(
    ("name", "data"),
    [("LogisticRegression", TWO), ("LogisticRegression", MANY), ("Ridge", REAL), ("Lasso", REAL),
     ("ElasticNet", REAL), ("RidgeClassifier", MANY), ("LinearSVC", MANY), ("LinearSVR", REAL),
     ("QuantileRegressor", REAL)],
)  # fmt: skip
def test_coefficients_are_of_the_kind_that_scikit_learn_gives(name, data):
    X, y = data[0].astype(np.float32), data[1]
    theirs = getattr(svm if "SV" in name else linear, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peer = theirs().fit(X, y)
    mine = getattr(ours, name)().fit(X, y)
    assert mine.coef_.dtype == peer.coef_.dtype
    assert np.asarray(mine.intercept_).dtype == np.asarray(peer.intercept_).dtype
    # The certificate is that of the coefficients as they are.
    again = adasdca.certify(mine, X, y)
    for one, other in zip(np.ravel(again), np.ravel(mine.certificate_), strict=True):
        assert one.primal == pytest.approx(other.primal, rel=1e-12)


def test_what_the_l1_term_takes_out_is_exactly_zero():
    X, y = REAL
    many = np.hstack([X, np.random.default_rng(0).normal(size=(len(y), 30))])
    for alpha in (0.01, 0.05, 0.2):
        mine = ours.QuantileRegressor(alpha=alpha).fit(many, y)
        peer = linear.QuantileRegressor(alpha=alpha).fit(many, y)
        np.testing.assert_array_equal(mine.coef_ == 0, peer.coef_ == 0)
        assert mine.certificate_.relative_gap < 1e-9


def test_what_is_not_reached_is_warned_of_and_what_cannot_be_is_refused():
    X, y = TWO
    with pytest.warns(ConvergenceWarning, match="LinearSVC reached max_iter"):
        ours.LinearSVC(max_iter=1, tol=1e-6).fit(X, y)
    with pytest.raises(ValueError, match="choose multi_class='ovr'"):
        ours.LinearSVC(multi_class="crammer_singer").fit(*MANY)
    with pytest.raises(ValueError, match="only one class: 1"):
        ours.LogisticRegression().fit(X[:3], np.ones(3, dtype=int))


def test_a_fit_goes_on_where_the_last_one_ended():
    X, y = TWO
    model = ours.LogisticRegression(C=100.0, warm_start=True, max_iter=1000).fit(X, y)
    assert model.fit(X, y).n_iter_[0] <= 1


@pytest.mark.parametrize(
    ("model", "data"), [(ours.LinearSVC, MANY), (ours.LogisticRegression, TWO)]
)
def test_a_class_without_weight_has_the_name_of_the_user(model, data):
    X, y = data
    names = np.where(y == 0, "none", "some")
    with pytest.raises(ValueError, match="zero on all samples of class 'none'"):
        model().fit(X, names, sample_weight=(y != 0).astype(float))
    assert ours.RidgeClassifier().fit(X, names, sample_weight=(y != 0).astype(float)).converged_


def test_a_multinomial_model_with_an_l1_term_is_refused():
    """Its certificate would be that of another objective."""
    options = {"l1_ratio": 0.5, "C": 0.1}
    with pytest.raises(ValueError, match=r"with an L1 term is not solved here.*l1_ratio=0"):
        ours.LogisticRegression(**options).fit(*MANY)
    assert ours.LogisticRegression(**options).fit(*TWO).converged_
    assert ours.LogisticRegression(solver="liblinear", **options).fit(*MANY).converged_
    peer = linear.LogisticRegression(solver="saga", tol=0.1, **options)
    with pytest.raises(ValueError, match="with an L1 term is not solved here"):
        adasdca.certify(peer.fit(*MANY), *MANY)


@pytest.mark.parametrize("name", ["Ridge", "RidgeClassifier"])
def test_a_direct_solution_is_not_sought_to_its_last_digits(name):
    # Sums over instants are exact enough to go on for digits that no coefficient has.
    rng = np.random.default_rng(0)
    X = (1.2e9 + 86400.0 * np.arange(1000))[:, None]
    y = np.round(X[:, 0] / X.std() + rng.normal(size=1000), 1)
    if name == "RidgeClassifier":
        y = np.where(y > y.mean(), 1, -1)
    model = getattr(ours, name)(alpha=1e-4).fit(X, y)
    assert model.certificate_.relative_gap < 1e-18
    assert len(model.history_) < 6
