"""Warm starts, seeds, threads, probabilities, callbacks and progress of the estimators."""

import logging
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier
from sklearn.utils._param_validation import validate_parameter_constraints
from threadpoolctl import threadpool_limits

import adasdca
from adasdca import AdaSDCAClassifier, AdaSDCARegressor
from adasdca.backends.blas import available_threads
from adasdca.estimators import _input, _solves
from adasdca.problem import data
from bundled import cancer, diabetes, iris


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_warm_start(loss):
    X, y = cancer()
    model = AdaSDCAClassifier(loss=loss, warm_start=True, tol=1e-6, random_state=0).fit(X, y)
    model.fit(X, y)
    assert len(model.history_) <= 2
    model.set_params(C=1.2).fit(X, y)
    assert model.history_.gap[0] < 0.3 * model.history_.primal[0]
    more = np.vstack([X, X[:30]]), np.append(y, y[:30])
    model.fit(*more)
    assert model.history_.gap[0] < 0.3 * model.history_.primal[0]
    model.fit(X[:100], y[:100])  # fewer rows: begins anew
    np.testing.assert_array_equal(model.coef_.shape, (1, X.shape[1]))
    labels = np.where(y, "a", "b")
    assert model.fit(X, labels).score(X, labels) > 0.9


def test_warm_start_of_a_multinomial_model():
    X, y = iris()
    model = AdaSDCAClassifier(warm_start=True, tol=1e-8).fit(X, y)
    model.fit(X, y)
    assert model.n_iter_ == 0


def test_threads_change_nothing():
    X, y = iris()
    options = {"multi_class": "ovr", "loss": "hinge", "random_state": 0}
    one = AdaSDCAClassifier(**options).fit(X, y)
    two = AdaSDCAClassifier(**options, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    X, y = diabetes()
    targets = np.column_stack([y, y**2, y**3])
    one = AdaSDCARegressor(loss="huber", random_state=0).fit(X, targets)
    two = AdaSDCARegressor(loss="huber", random_state=0, n_jobs=2).fit(X, targets)
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_legacy_seeds():
    X, y = cancer()
    options = {"loss": "hinge", "method": "adasdca+", "tol": 1e-2}
    for seed in (lambda: 3, lambda: np.random.RandomState(3)):
        a, b = (AdaSDCAClassifier(**options, random_state=seed()).fit(X, y) for _ in range(2))
        np.testing.assert_array_equal(a.coef_, b.coef_)
    np.random.seed(0)  # noqa: NPY002
    a = AdaSDCAClassifier(**options).fit(X, y)
    np.random.seed(0)  # noqa: NPY002
    b = AdaSDCAClassifier(**options).fit(X, y)
    np.testing.assert_array_equal(a.coef_, b.coef_)


def test_probabilities_of_one_versus_rest():
    X, y = iris()
    model = AdaSDCAClassifier(multi_class="ovr").fit(X, y)
    p = 1 / (1 + np.exp(-model.decision_function(X)))
    np.testing.assert_allclose(model.predict_proba(X), p / p.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_of_modified_huber_are_those_of_sgd(classes):
    X, y = iris()
    X, y = X[y < classes], y[y < classes]
    ours = AdaSDCAClassifier(loss="modified_huber").fit(X, y)
    sgd = SGDClassifier(loss="modified_huber", random_state=0).fit(X, y)
    sgd.coef_, sgd.intercept_ = ours.coef_, ours.intercept_
    grid = np.vstack([X, 10 * X, -10 * X])
    np.testing.assert_allclose(ours.predict_proba(grid), sgd.predict_proba(grid), atol=1e-14)
    assert np.isneginf(ours.predict_log_proba(grid)).any()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "smoothed_hinge"])
@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba"])
def test_no_probabilities_points_to_calibration(loss, method):
    X, y = cancer()
    model = AdaSDCAClassifier(loss=loss).fit(X, y)
    assert not hasattr(model, method)
    with pytest.raises(AttributeError) as caught:
        getattr(model, method)
    assert "CalibratedClassifierCV" in str(caught.value.__cause__)
    calibrated = CalibratedClassifierCV(model).fit(X, y)
    assert calibrated.predict_proba(X).shape == (len(y), 2)


def test_callback_sees_every_survey_and_can_stop():
    X, y = cancer()
    records = []
    model = AdaSDCAClassifier(loss="hinge", callback=records.append, random_state=0).fit(X, y)
    np.testing.assert_array_equal([r.gap for r in records], model.history_.gap)
    stopped = AdaSDCAClassifier(loss="hinge", callback=lambda r: r.epoch >= 2).fit(X, y)
    assert stopped.n_iter_ == 2
    assert not stopped.converged_


def test_verbose_1_is_a_line_a_survey(caplog, capsys):
    X, y = cancer()
    with caplog.at_level(logging.INFO, logger="adasdca"):
        model = AdaSDCAClassifier(verbose=1, random_state=0).fit(X, y)
    lines = [r.getMessage() for r in caplog.records]
    assert len(lines) == len(model.history_)
    assert lines[-1].startswith(f"AdaSDCAClassifier: epoch {model.history_.epoch[-1]}, objective")


def test_verbose_1_is_shown_where_logging_is_not_set_up(capsys, monkeypatch):
    X, y = iris()
    logger = logging.getLogger("adasdca")
    monkeypatch.setattr(logger, "propagate", False)
    AdaSDCAClassifier(multi_class="ovr", verbose=1, random_state=0).fit(X, y)
    shown = capsys.readouterr().err
    assert "AdaSDCAClassifier class 2: epoch 0" in shown
    assert not logger.handlers
    assert logger.level == logging.NOTSET


def test_verbose_2_shows_bars(capsys):
    X, y = iris()
    AdaSDCAClassifier(multi_class="ovr", verbose=2, random_state=0).fit(X, y)
    assert "fit class 2" in capsys.readouterr().out


class Recorder:
    """A callback of scikit-learn's protocol."""

    def __init__(self, stop_after=None):
        self.events, self.scores, self.stop_after = [], [], stop_after

    def setup(self, estimator, context):
        self.events.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.events.append(("end", context.task_name))
        if fitted_estimator is not None:
            self.scores.append(fitted_estimator.score(X, y))
        ended = self.events.count(("end", "epoch"))
        return self.stop_after is not None and ended >= self.stop_after

    def teardown(self, estimator, context):
        self.events.append("teardown")


def test_callbacks_of_scikit_learn():
    pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")
    X, y = iris()
    recorder = Recorder()
    model = AdaSDCAClassifier(loss="hinge", random_state=0).set_callbacks(recorder).fit(X, y)
    events = recorder.events
    assert events[0] == "setup"
    assert events[-1] == "teardown"
    surveys = sum(len(h) for h in model.history_)
    assert events.count(("end", "epoch")) == surveys + 3  # the last task of each class is empty
    for name in {e[1] for e in events if isinstance(e, tuple)}:
        assert events.count(("begin", name)) == events.count(("end", name))
    assert recorder.scores == [model.score(X, y)]
    two = X[y < 2], y[y < 2]
    stopped = AdaSDCAClassifier(loss="hinge").set_callbacks(Recorder(stop_after=2)).fit(*two)
    assert stopped.n_iter_ <= 2


def test_progress_bar_of_scikit_learn(capsys):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")
    X, y = iris()
    AdaSDCAClassifier(multi_class="ovr").set_callbacks(callback.ProgressBar()).fit(X, y)
    assert "AdaSDCAClassifier - fit" in capsys.readouterr().out


def test_sparse_coefficients_predict_the_same():
    X, y = make_classification(n_samples=200, n_features=40, n_informative=4, random_state=0)
    model = AdaSDCAClassifier(C=0.01, l1_ratio=0.9, random_state=0).fit(X, y)
    before = model.decision_function(X)
    assert sp.issparse(model.sparsify().coef_)
    np.testing.assert_array_equal(model.decision_function(X), before)
    np.testing.assert_array_equal(model.certified_margin(X).shape, y.shape)


@pytest.mark.parametrize("model", [AdaSDCAClassifier, AdaSDCARegressor])
def test_defaults_are_allowed_and_what_is_changed_is_checked(model):
    """Fits check no default: all of them must be what they would be checked for."""
    given = model().get_params(deep=False)
    assert model._defaults() == given
    validate_parameter_constraints(model._parameter_constraints, given, model.__name__)
    for name in given:
        with pytest.raises(ValueError, match=f"'{name}' parameter of {model.__name__}"):
            model(**{name: object()}).fit(np.eye(4), [0, 1, 0, 1])


def test_what_was_allowed_once_excuses_nothing_else():
    """A value that is equal to an allowed one may be of another type, or for another parameter."""
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20.0)
    AdaSDCARegressor(max_iter=50, tol=1.0).fit(X, y)
    for wrong in ({"max_iter": 50.0}, {"verbose": 50.5}, {"loss": "hinge"}, {"fit_intercept": 50}):
        for _ in range(2):
            with pytest.raises(ValueError, match=next(iter(wrong))):
                AdaSDCARegressor(**wrong).fit(X, y)


def test_labels_of_floats():
    """Whole numbers are labels whatever their type; others are told to be targets."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    labels = np.where(X[:, 0] > 0, 2.0, -3.0)
    np.testing.assert_array_equal(AdaSDCAClassifier().fit(X, labels).classes_, [-3.0, 2.0])
    with pytest.raises(ValueError, match="continuous"):
        AdaSDCAClassifier().fit(X, labels + 0.5 * X[:, 1])


@pytest.mark.parametrize(("classes", "jobs", "expected"), [(2, None, 6), (3, 2, 3), (3, None, 6)])
def test_estimators_use_the_threads_there_are(monkeypatch, classes, jobs, expected):
    """Those that solve several problems at a time share them."""
    seen = []

    def solve(*args, n_threads, **options):
        seen.append(n_threads)
        return adasdca.solve(*args, n_threads=1, **options)

    monkeypatch.setattr(_solves, "available_threads", lambda: 6)
    monkeypatch.setattr(_solves, "solve", solve)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % classes
    model = AdaSDCAClassifier(loss="squared_hinge", n_jobs=jobs, random_state=0)
    model.fit(X, y)
    assert set(seen) == {expected}


def test_threads_are_limited_from_outside():
    most = available_threads()
    with threadpool_limits(1):
        assert available_threads() == 1
    assert available_threads() == most >= 1


@pytest.mark.parametrize("sparse", [False, True], ids=["", "sparse"])
def test_rows_are_checked_once(sparse, monkeypatch):
    """However many models a fit has; scikit-learn's checks do not see plain rows either."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    labels, targets = np.arange(60) % 3, rng.normal(size=60)
    rows = sp.csr_matrix(X) if sparse else X
    inspect, seen = data._core.Rows.inspect, []
    monkeypatch.setattr(data._core.Rows, "inspect", lambda rows: seen.append(1) or inspect(rows))
    monkeypatch.setattr(_input, "validate_data", None)
    AdaSDCAClassifier(loss="hinge", random_state=0).fit(rows, labels).predict(rows)
    assert len(seen) == 1
    AdaSDCARegressor(random_state=0).fit(rows, targets)
    assert len(seen) == 2


def test_arrays_as_they_are_wanted():
    """What goes by scikit-learn's checks is fitted as what does not, and refused like it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    first = AdaSDCARegressor(random_state=0).fit(X, y)
    assert first.n_features_in_ == 3
    for rows, targets in ((X.tolist(), y), (np.asfortranarray(X), y.tolist()), (X, y[:, None])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a column for targets is told
            other = AdaSDCARegressor(random_state=0).fit(rows, targets)
        np.testing.assert_allclose(np.ravel(other.coef_), first.coef_, rtol=1e-9)
    named = AdaSDCARegressor(random_state=0).fit(pd.DataFrame(X, columns=list("abc")), y)
    assert list(named.feature_names_in_) == ["a", "b", "c"]
    assert not hasattr(named.fit(X, y), "feature_names_in_")
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="NaN"):
            AdaSDCARegressor().fit(np.where(X[0, 0] == X, bad, X), y)
        with pytest.raises(ValueError, match="Input y contains"):
            AdaSDCARegressor().fit(X, np.where(y == y[0], bad, y))
    for rows, targets in ((X[:0], y[:0]), (X, y[:-1]), (X[0], y[:3]), (X, y.astype(complex))):
        with pytest.raises(ValueError):  # noqa: PT011
            AdaSDCARegressor().fit(rows, targets)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", [bool, np.int8, np.uint16, np.int64, np.float16, ">f8"])
def test_numbers_of_any_kind_are_read_without_other_checks(kind, sparse, monkeypatch):
    """Slices of tables and counts are what they say, and scikit-learn's checks are not needed."""
    rng = np.random.default_rng(0)
    table = rng.integers(0, 2, size=(60, 9)).astype(kind)
    y = rng.normal(size=60)
    X = sp.csr_matrix(table[:, ::2].astype(np.float64)) if sparse else table[:, ::2]
    given = X.astype(kind) if sparse and np.dtype(kind).kind in "biu" else X  # SciPy has no others
    expected = AdaSDCARegressor(C=1.0, random_state=0).fit(table[:, ::2].astype(np.float64), y)
    monkeypatch.delattr("adasdca.estimators._input.validate_data")
    found = AdaSDCARegressor(C=1.0, random_state=0).fit(given, y)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_allclose(found.predict(given), expected.predict(table[:, ::2].astype(float)))
    assert found.n_features_in_ == 5
