"""The estimators among scikit-learn's tools, in files, in other runtimes and in pictures."""

import io
import pickle

import joblib
import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import pandas as pd
import pytest
import skops.io
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.ensemble import BaggingRegressor, StackingClassifier, VotingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_validate,
)
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import adasdca
from adasdca import (
    AdaSDCAClassifier,
    AdaSDCAClassifierCV,
    AdaSDCARegressor,
    AdaSDCARegressorCV,
    ConvergenceDisplay,
)
from adasdca.onnx import register_converters, to_onnx
from bundled import cancer, diabetes, iris

MODELS = {
    "binary": (AdaSDCAClassifier(loss="smoothed_hinge", random_state=0), cancer),
    "ovr": (AdaSDCAClassifier(multi_class="ovr", warm_start=True, random_state=0), iris),
    "multinomial": (AdaSDCAClassifier(), iris),
    "object": (AdaSDCAClassifier(loss=adasdca.SmoothedHinge(gamma=0.5), random_state=0), cancer),
    "regression": (AdaSDCARegressor(loss="huber", random_state=0), diabetes),
    "search": (AdaSDCAClassifierCV(Cs=[0.1, 1.0], cv=3, random_state=0), iris),
    "regression search": (AdaSDCARegressorCV(Cs=[0.1, 1.0], cv=3, random_state=0), diabetes),
}


def fitted(name):
    model, load = MODELS[name]
    X, y = load()
    return clone(model).fit(X, y), X, y


# Among scikit-learn's tools


def test_grid_search_over_a_pipeline_on_mushrooms():
    X, y = adasdca.datasets.load_mushrooms()
    X, y = X[::4], np.where(y[::4] > 0, "edible", "poisonous")
    pipeline = make_pipeline(
        SelectFromModel(AdaSDCAClassifier(C=0.1, l1_ratio=0.9, random_state=0)),
        AdaSDCAClassifier(loss="squared_hinge", random_state=0),
    )
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    grid = GridSearchCV(pipeline, {"adasdcaclassifier__C": [0.01, 1.0]}, cv=folds, n_jobs=2)
    with joblib.parallel_config("threading"):  # that models can travel is tested below
        grid.fit(X, y)
    assert grid.best_score_ > 0.99
    kept = grid.best_estimator_[0].get_support()
    assert 0 < kept.sum() < X.shape[1]


def test_cross_validation_with_scores_and_weights():
    X, y = cancer()
    model = AdaSDCAClassifier(random_state=0)
    scores = cross_validate(model, X, y, scoring=["roc_auc", "neg_log_loss", "accuracy"])
    assert scores["test_roc_auc"].mean() > 0.99
    with config_context(enable_metadata_routing=True):
        routed = model.set_fit_request(sample_weight=True)
        weight = np.ones(len(y))
        scorer = get_scorer("roc_auc").set_score_request(sample_weight=False)
        again = cross_validate(routed, X, y, params={"sample_weight": weight}, scoring=scorer)
    np.testing.assert_allclose(again["test_score"], scores["test_roc_auc"], atol=1e-3)
    decision = cross_val_predict(model, X, y, method="decision_function")
    assert ((decision > 0) == y).mean() > 0.95


def test_columns_of_a_table():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.assign(size=pd.cut(X["mean radius"], 3, labels=["small", "middle", "large"]).astype(str))
    pipeline = make_pipeline(
        ColumnTransformer(
            [
                ("numbers", StandardScaler(), make_column_selector(dtype_include="number")),
                ("words", OneHotEncoder(), ["size"]),
            ]
        ),
        AdaSDCAClassifier(random_state=0),
    ).fit(X, y)
    assert pipeline.score(X, y) > 0.98


def test_output_as_tables():
    X, y = load_iris(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(StandardScaler(), AdaSDCAClassifier()).set_output(transform="pandas")
    pipeline.fit(X, y)
    assert pipeline[-1].feature_names_in_.tolist() == X.columns.tolist()


def test_votes_stacks_and_bags():
    X, y = iris()
    parts = [
        ("ours", AdaSDCAClassifier()),
        ("ours too", AdaSDCAClassifier(loss="modified_huber", random_state=0)),
        ("theirs", LogisticRegression()),
    ]
    for ensemble in (VotingClassifier(parts, voting="soft"), StackingClassifier(parts)):
        assert ensemble.fit(X, y).score(X, y) > 0.93
    pairs = OneVsOneClassifier(AdaSDCAClassifier(loss="hinge", random_state=0)).fit(X, y)
    assert pairs.score(X, y) > 0.93
    X, y = diabetes()
    bag = BaggingRegressor(AdaSDCARegressor(random_state=0), 3, random_state=0).fit(X, y)
    assert bag.score(X, y) > 0.45
    importance = permutation_importance(AdaSDCARegressor().fit(X, y), X, y, random_state=0)
    assert importance.importances_mean.max() > 0.1


def test_digits():
    X, y = load_digits(return_X_y=True)
    model = make_pipeline(StandardScaler(), AdaSDCAClassifier(C=0.05, tol=1e-3))
    assert cross_val_predict(model, X, y, cv=3).shape == y.shape
    assert model.fit(X, y).score(X, y) > 0.97


# In files


def answers(model, X):
    methods = (
        "predict",
        "decision_function",
        "predict_proba",
        "certified_margin",
        "certified_error",
    )
    return [getattr(model, method)(X) for method in methods if hasattr(model, method)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", ["pickle", "joblib"])
def test_pickles(name, way):
    model, X, y = fitted(name)
    if way == "pickle":
        again = pickle.loads(pickle.dumps(model))
    else:
        file = io.BytesIO()
        joblib.dump(model, file)
        file.seek(0)
        again = joblib.load(file)
    for a, b in zip(answers(model, X), answers(again, X), strict=True):
        np.testing.assert_array_equal(a, b)
    assert repr(again.certificate_) == repr(model.certificate_)
    assert again.fit(X, y).converged_


@pytest.mark.parametrize("name", MODELS)
def test_skops(name):
    model, X, _ = fitted(name)
    data = skops.io.dumps(model)
    untrusted = skops.io.get_untrusted_types(data=data)
    # Nothing but our own classes needs to be trusted.
    assert all(kind.startswith("adasdca.") for kind in untrusted)
    again = skops.io.loads(data, trusted=untrusted)
    for a, b in zip(answers(model, X), answers(again, X), strict=True):
        np.testing.assert_array_equal(a, b)


# In other runtimes


def run_onnx(model, X):
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {session.get_inputs()[0].name: X})


@pytest.mark.parametrize("load", [cancer, iris])
def test_onnx_as_the_page_says(load):
    """Rows in double precision, and no options: what ONNX Runtime takes."""
    X, y = load()
    model = make_pipeline(StandardScaler(), AdaSDCAClassifier(random_state=0)).fit(X, y)
    labels, chances = run_onnx(to_onnx(model, X[:1]), X)
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(chances, model.predict_proba(X), rtol=1e-9, atol=1e-12)


# Every kind of labels with every link, and either type of number with each of both.
@pytest.mark.parametrize(
    ("labels", "dtype"),
    [("numbers", np.float32), ("strings", np.float64), ("two", np.float64), ("two", np.float32)],
)
@pytest.mark.parametrize(
    ("loss", "multi_class"),
    [("logistic", "auto"), ("logistic", "ovr"), ("modified_huber", "auto"), ("hinge", "auto")],
)
def test_onnx_classifiers(dtype, loss, multi_class, labels):
    X, y = iris()
    if labels == "two":
        X, y = X[50:], y[50:]
    if labels == "strings":
        y = np.array(["a", "b", "ç"])[y]
    X = X.astype(dtype)
    model = AdaSDCAClassifier(loss=loss, multi_class=multi_class, random_state=0).fit(X, y)
    options = {id(model): {"zipmap": False}}
    found, second = run_onnx(to_onnx(model, X[:1], options=options), X)
    np.testing.assert_array_equal(found, model.predict(X))
    if loss == "hinge":
        scores = model.decision_function(X)
        expected = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
    else:
        expected = model.predict_proba(X)
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    np.testing.assert_allclose(second, expected, rtol=tolerance, atol=tolerance)


def test_onnx_options_and_pipelines():
    X, y = cancer()
    X = X.astype(np.float32)
    pipeline = make_pipeline(StandardScaler(), AdaSDCAClassifierCV(Cs=[0.1, 1.0], cv=3)).fit(X, y)
    labels, maps = run_onnx(to_onnx(pipeline, X[:1]), X)
    np.testing.assert_array_equal(labels, pipeline.predict(X))
    p = np.array([[m[0], m[1]] for m in maps])
    np.testing.assert_allclose(p, pipeline.predict_proba(X), atol=1e-5)
    options = {id(pipeline[-1]): {"zipmap": False, "raw_scores": True}}
    _, scores = run_onnx(to_onnx(pipeline, X[:1], options=options), X)
    np.testing.assert_allclose(scores[:, 1], pipeline.decision_function(X), rtol=1e-4, atol=1e-4)


def test_onnx_far_scores_of_modified_huber_are_uniform():
    X, y = iris()
    model = AdaSDCAClassifier(loss="modified_huber", random_state=0).fit(X, y)
    far = 1e3 * X
    options = {id(model): {"zipmap": False}}
    _, p = run_onnx(to_onnx(model, far[:1], options=options), far)
    np.testing.assert_allclose(p, model.predict_proba(far), atol=1e-12)


@pytest.mark.parametrize("targets", [1, 3])
def test_onnx_regressors(targets):
    X, y = diabetes()
    y = np.column_stack([y] * targets) if targets > 1 else y
    register_converters()
    for model in (AdaSDCARegressor(random_state=0), AdaSDCARegressorCV(Cs=[1.0], cv=2)):
        (found,) = run_onnx(to_onnx(model.fit(X, y), X[:1]), X)
        np.testing.assert_allclose(found.reshape(y.shape), model.predict(X), rtol=1e-12)


# In pictures


@pytest.mark.parametrize("x", ["epochs", "seconds", "updates"])
def test_convergence_display(x):
    model, *_ = fitted("ovr")
    display = ConvergenceDisplay.from_estimator(model, x=x, linestyle="--")
    assert len(display.lines_) == 3
    assert display.ax_.get_xlabel() == x
    assert display.ax_.get_yscale() == "log"
    assert display.lines_[0].get_linestyle() == "--"
    assert display.lines_[2].get_label() == "AdaSDCAClassifier, 2"
    again = ConvergenceDisplay.from_estimator(fitted("binary")[0], name="mine", ax=display.ax_)
    assert again.ax_ is display.ax_
    assert again.figure_ is display.figure_
    assert again.lines_[0].get_label() == "mine"
    history = model.history_[0]
    shown = display.lines_[0].get_ydata()
    known = history.gap > 0
    np.testing.assert_allclose(shown[known], history.gap[known] / history.primal[known])
    with pytest.raises(ValueError, match="choose one of 'epochs'"):
        display.plot(x="hours")
    plt.close("all")
