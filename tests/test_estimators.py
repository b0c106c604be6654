"""What the estimators take: data, labels, weights, losses, parameters."""

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.utils._param_validation import InvalidParameterError

import adasdca
from adasdca import AdaSDCAClassifier, AdaSDCARegressor
from adasdca.estimators._labels import encoded
from bundled import cancer, diabetes, iris


def test_any_form_of_the_same_data_gives_the_same_model():
    X, y = cancer()
    X = np.where(np.abs(X) > 1, X, 0.0)
    reference = AdaSDCAClassifier(tol=1e-10, random_state=0).fit(X, y)
    long = sp.csr_matrix(X)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    forms = [
        np.asfortranarray(X),
        X.tolist(),
        pd.DataFrame(X),
        sp.csr_array(X),
        sp.csc_array(X),
        sp.coo_array(X),
        sp.lil_matrix(X),
        long,
    ]
    for form in forms:
        model = AdaSDCAClassifier(tol=1e-10, random_state=0).fit(form, y)
        distance = np.linalg.norm(model.coef_ - reference.coef_)
        assert distance <= model.radius_ + reference.radius_ + 1e-9
        np.testing.assert_array_equal(model.predict(form), reference.predict(X))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_of_features(frame):
    X, y = cancer()
    names = [f"f{k}" for k in range(X.shape[1])]
    table = frame(dict(zip(names, X.T, strict=True)))
    model = AdaSDCAClassifier().fit(table, y)
    if frame is pl.DataFrame and not hasattr(
        LogisticRegression().fit(table, y), "feature_names_in_"
    ):
        pytest.skip("this version of scikit-learn does not read the names of this one's polars")
    assert model.feature_names_in_.tolist() == names
    model.predict(table)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[names[::-1]])


@pytest.mark.parametrize(
    "labels", [["good", "bad"], [True, False], [7, -3], [np.str_("é"), np.str_("a")], [0.0, 1.0]]
)
def test_labels_of_any_kind(labels):
    X, y = cancer()
    labels = np.array(labels)
    model = AdaSDCAClassifier(random_state=0).fit(X, labels[y])
    assert model.classes_.tolist() == sorted(labels.tolist())
    assert model.predict(X).dtype == labels.dtype
    assert model.score(X, labels[y]) > 0.97
    # The second of the sorted classes is the positive one.
    positive = model.decision_function(X) > 0
    np.testing.assert_array_equal(model.predict(X) == model.classes_[1], positive)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_float32_stays_float32(form, loss):
    # Peak memory tells: a double copy of X would be twice its size, vectors of n add a half.
    rng = np.random.default_rng(0)
    n = 40_000
    X = rng.normal(size=(n, 50)).astype(np.float32)
    y = X[:, 0] + 0.1 * rng.normal(size=n) > 0
    X = form(X)
    arrays = (X,) if isinstance(X, np.ndarray) else (X.data, X.indices, X.indptr)
    size = sum(array.nbytes for array in arrays)
    model = AdaSDCAClassifier(loss=loss, tol=1e-2, random_state=0)
    for call in (lambda: model.fit(X, y), lambda: model.decision_function(X)):
        tracemalloc.start()
        call()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1.7 * size


def test_float32_and_float64_agree():
    X, y = cancer()
    single = X.astype(np.float32)
    a = AdaSDCAClassifier(tol=1e-12, random_state=0).fit(single, y)
    b = AdaSDCAClassifier(tol=1e-12, random_state=0).fit(single.astype(np.float64), y)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)
    np.testing.assert_array_equal(a.predict(single), b.predict(single))


def test_a_class_without_weight_is_an_error():
    X, y = iris()
    with pytest.raises(ValueError, match=r"zero on all samples of class (np\.int64\()?2"):
        AdaSDCAClassifier().fit(X, y, (y < 2).astype(float))
    with pytest.raises(ValueError, match="above 0 for every class"):
        AdaSDCAClassifier(class_weight={0: 0.0}).fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        AdaSDCAClassifier().fit(X, np.ones(len(y)))


def test_auto_is_multinomial_where_possible():
    X, y = iris()
    assert np.isscalar(AdaSDCAClassifier().fit(X, y).radius_)
    for options in ({"loss": "hinge"}, {"l1_ratio": 0.1}, {"positive": True}):
        assert AdaSDCAClassifier(**options).fit(X, y).radius_.shape == (3,)
        with pytest.raises(ValueError, match="choose multi_class='ovr'"):
            AdaSDCAClassifier(multi_class="multinomial", **options).fit(X, y)


def test_positive_coefficients_and_a_negative_intercept():
    X, y = cancer()
    for scaling in (None, 1.0):
        model = AdaSDCAClassifier(positive=True, intercept_scaling=scaling, tol=1e-8)
        model.fit(np.abs(X), y)
        assert (model.coef_ >= 0).all()
        assert model.fit(np.abs(X), 1 - y).intercept_[0] < 0


def test_losses_as_objects():
    X, y = cancer()
    a = AdaSDCAClassifier(loss=adasdca.SmoothedHinge(gamma=0.3), tol=1e-8, random_state=0)
    b = AdaSDCAClassifier(loss="smoothed_hinge", gamma=0.3, tol=1e-8, random_state=0)
    np.testing.assert_array_equal(a.fit(X, y).coef_, b.fit(X, y).coef_)
    with pytest.raises(ValueError, match="is for regression; AdaSDCAClassifier takes"):
        AdaSDCAClassifier(loss=adasdca.Squared()).fit(X, y)
    assert AdaSDCAClassifier(loss=adasdca.Logistic()).fit(X, y).predict_proba(X).shape[1] == 2
    X, y = diabetes()
    c = AdaSDCARegressor(loss=adasdca.Quantile(quantile=0.2), random_state=0).fit(X, y)
    d = AdaSDCARegressor(loss="quantile", quantile=0.2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(c.coef_, d.coef_)


BAD = [{"C": 0.0}, {"tol": 10**400}, {"max_time": 10**400}, {"l1_ratio": 1.5}, {"tol": -1.0}]
BAD += [{"max_iter": 0}, {"intercept_scaling": 0.0}, {"callback": 3}, {"gamma": -1.0}]
BAD_FOR = [(AdaSDCAClassifier, bad) for bad in [*BAD, {"multi_class": "crammer_singer"}]]
BAD_FOR += [(AdaSDCARegressor, {name: bad}) for name, bad in zip(
    ("quantile", "delta", "epsilon"), (1.0, 0.0, -0.1), strict=True)]  # fmt: skip


@pytest.mark.parametrize(("model", "bad"), BAD_FOR)
def test_bad_parameters(model, bad):
    with pytest.raises(InvalidParameterError, match=f"The '{next(iter(bad))}' parameter"):
        model(**bad).fit(*diabetes())


@pytest.mark.parametrize("bad", [{"loss": "squared"}, {"loss": "hing"}, {"method": "newton"}])
def test_names_that_are_not_there(bad):
    ((name, value),) = bad.items()
    with pytest.raises(ValueError, match=f"{name} = '{value}' .* one of .*'auto|logistic'"):
        AdaSDCAClassifier(**bad).fit(*cancer())


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.longdouble])
def test_numbers_of_numpy_are_those_of_python(kind):
    """Warnings are errors: the largest double is infinity to smaller kinds."""
    one, two = (
        AdaSDCAClassifier(
            C=number(0.3), tol=number(1e-3), max_time=number(1000), l1_ratio=number(0.7)
        )
        .set_params(random_state=0)
        .fit(*cancer())
        for number in (kind, lambda value: float(kind(value)))
    )
    np.testing.assert_array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize("multi_class", ["auto", "multinomial"])
def test_a_method_that_solves_no_multinomial_model_is_refused(multi_class):
    X, y = iris()
    options = {"method": "sdca", "random_state": 0, "tol": 1e-2}
    with pytest.raises(ValueError, match=r"method='sdca' solves no .* or multi_class='ovr'"):
        AdaSDCAClassifier(**options, multi_class=multi_class).fit(X, y)
    assert len(AdaSDCAClassifier(**options, multi_class="ovr").fit(X, y).certificate_) == 3
    assert AdaSDCAClassifier(method=adasdca.Auto(), multi_class=multi_class).fit(X, y).converged_


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-128, 127, 5, 127], np.int8),
        np.array([255, 0, 3, 3], np.uint8),
        np.array([True, False, True]),
        np.array([2**62, -(2**62), 0, 0]),
        np.array([2**64 - 1, 2**64 - 3, 2**64 - 1], np.uint64),
        np.array([7, 70_007, 7, 8]),
        np.array([0, 2, 1, 0]),
        np.array([0, 3, 1, 0]),
        np.array([1.0, 3.0, 2.0, 1.0]),
        np.array(["b", "a", "c", "b"]),
    ],
    ids=lambda labels: f"{labels.dtype}-{labels[0]}",
)
def test_labels_are_encoded_as_numpy_would(labels):
    classes, codes = encoded(labels)
    expected, inverse = np.unique(labels, return_inverse=True)
    np.testing.assert_array_equal(classes, expected, strict=True)
    np.testing.assert_array_equal(codes, inverse)


def test_labels_that_are_places_are_not_copied():
    labels = np.arange(6, dtype=np.intp) % 3
    assert encoded(labels)[1] is labels
