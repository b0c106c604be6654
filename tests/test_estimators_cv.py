"""Cross-validation over C: the right choice, for the right reasons, warm-started."""

import logging

import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import (
    accuracy_score,
    log_loss,
    make_scorer,
    mean_pinball_loss,
    r2_score,
)
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score

import adasdca
from adasdca import (
    AdaSDCAClassifier,
    AdaSDCAClassifierCV,
    AdaSDCARegressor,
    AdaSDCARegressorCV,
    PathDisplay,
)
from adasdca.estimators._cv import accuracy, determination
from bundled import cancer, diabetes, iris

GRID = [0.001, 0.01, 0.1, 1.0]


def test_scores_are_those_of_fits_one_by_one():
    X, y = cancer()
    cv = StratifiedKFold(4)
    search = AdaSDCAClassifierCV(Cs=GRID, cv=cv, tol=1e-10, scoring="neg_log_loss").fit(X, y)
    assert search.scores_.shape == (4, 1, 4)
    for k, c in enumerate(GRID):
        plain = AdaSDCAClassifier(C=c, tol=1e-10)
        scores = cross_val_score(plain, X, y, cv=cv, scoring="neg_log_loss")
        np.testing.assert_allclose(search.scores_[:, 0, k], scores, rtol=1e-4)
    best = int(search.scores_.mean(axis=(0, 1)).argmax())
    assert GRID[best] == search.C_
    assert search.best_score_ == pytest.approx(search.scores_.mean(axis=(0, 1))[best])
    refit = AdaSDCAClassifier(C=search.C_, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(search.coef_, refit.coef_, atol=1e-4)
    assert search.converged_
    assert search.dual_gap_ <= 1e-10 * search.certificate_.primal


@pytest.mark.parametrize("weighted", [False, True])
def test_default_scores_are_scikit_learns(weighted):
    rng = np.random.default_rng(0)
    weight = rng.uniform(size=30) if weighted else None
    labels, found = rng.choice(["a", "b", "c"], size=(2, 30))
    same = accuracy_score(labels, found, sample_weight=weight)
    assert accuracy(labels, found, weight) == pytest.approx(same)
    y = rng.normal(size=(30, 4))
    y[:, 2:] = 3.0
    told = y + 0.3 * rng.normal(size=y.shape)
    told[:, 3] = 3.0  # a constant that is found, and one that is not
    for k in (slice(None), 0, 2, 3):
        same = r2_score(y[:, k], told[:, k], sample_weight=weight)
        assert determination(y[:, k], told[:, k], weight) == pytest.approx(same)


@pytest.mark.parametrize("model", [AdaSDCARegressorCV, AdaSDCAClassifierCV])
def test_elastic_nets_of_the_default_grid_converge(model):
    """A warning is an error: a third of these fits once did not arrive."""
    X, y = cancer()
    chosen = model(l1_ratios=[0.1, 0.5, 0.9], cv=3).fit((X - X.mean(0)) / X.std(0), y)
    assert chosen.converged_


def test_the_choice_is_that_of_a_grid_search():
    X, y = diabetes()
    ratios = [0.0, 0.5]
    search = AdaSDCARegressorCV(Cs=GRID, l1_ratios=ratios, cv=KFold(3), tol=1e-8).fit(X, y)
    grid = GridSearchCV(
        AdaSDCARegressor(tol=1e-8), {"C": GRID, "l1_ratio": ratios}, cv=KFold(3)
    ).fit(X, y)
    assert {"C": search.C_, "l1_ratio": search.l1_ratio_} == grid.best_params_
    assert search.best_score_ == pytest.approx(grid.best_score_, rel=1e-4)
    assert search.coefs_paths_.shape == (3, 2, 4, 1, X.shape[1])


def test_warm_starts_save_epochs(monkeypatch):
    X, y = cancer()
    starts = []
    fit = AdaSDCAClassifier.fit

    def spy(self, *args, **kwargs):
        result = fit(self, *args, **kwargs)
        starts.append(self.history_.gap[0] / self.history_.primal[0])
        return result

    monkeypatch.setattr(AdaSDCAClassifier, "fit", spy)
    AdaSDCAClassifierCV(loss="hinge", Cs=np.geomspace(0.01, 0.1, 6), cv=2).fit(X, y)
    cold, warm = [starts[0], starts[6]], starts[1:6] + starts[7:12]
    assert max(warm) < 0.5 * min(cold)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_folds_in_threads_change_nothing(form):
    X, y = iris()
    options = {"loss": "hinge", "Cs": GRID[:3], "cv": 3, "random_state": 0}
    one = AdaSDCAClassifierCV(**options).fit(form(X), y)
    two = AdaSDCAClassifierCV(**options, n_jobs=2).fit(form(X), y)
    np.testing.assert_array_equal(one.scores_, two.scores_)
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_equal_scores_go_to_the_strongest_regularisation():
    X, y = iris()
    X, y = X[y < 2], y[y < 2]  # separable: every C is right
    search = AdaSDCAClassifierCV(Cs=[10.0, 0.1, 1.0]).fit(X, y)
    np.testing.assert_array_equal(search.Cs_, [0.1, 1.0, 10.0])
    np.testing.assert_array_equal(search.scores_, 1.0)
    assert search.C_ == 0.1


def test_weights_reach_fits_and_scores():
    X, y = cancer()
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 4, len(y))
    folds = list(StratifiedKFold(3).split(X, y))
    place = np.arange(len(y)).repeat(weight)
    repeated = [
        (np.flatnonzero(np.isin(place, train)), np.flatnonzero(np.isin(place, test)))
        for train, test in folds
    ]
    options = {"Cs": GRID, "tol": 1e-10, "scoring": "neg_log_loss"}
    a = AdaSDCAClassifierCV(cv=folds, **options).fit(X, y, weight)
    b = AdaSDCAClassifierCV(cv=repeated, **options).fit(X[place], y[place])
    np.testing.assert_allclose(a.scores_, b.scores_, rtol=1e-4)
    assert a.C_ == b.C_


def test_scores_of_all_kinds():
    X, y = diabetes()
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    pinball = make_scorer(mean_pinball_loss, alpha=0.8, greater_is_better=False)
    options = {"loss": "quantile", "quantile": 0.8, "Cs": GRID, "cv": 3}
    search = AdaSDCARegressorCV(**options, scoring=pinball).fit(X, y, weight)
    assert (search.scores_ < 0).all()

    def plain(model, X, y):
        return -float(np.abs(model.predict(X) - y).mean())

    assert AdaSDCARegressorCV(**options, scoring=plain).fit(X, y, weight).C_ in GRID
    with pytest.raises(ValueError, match="scoring"):
        AdaSDCARegressorCV(scoring="nonsense").fit(X, y)


def test_many_classes_and_targets():
    X, y = iris()
    search = AdaSDCAClassifierCV(Cs=GRID, scoring="neg_log_loss").fit(X, y)
    assert search.coefs_paths_.shape == (5, 1, 4, 3, 4)
    assert log_loss(y, search.predict_proba(X)) < 0.3
    assert (search.certified_margin(X) <= 0).mean() < 0.2
    X, y = diabetes()
    targets = AdaSDCARegressorCV(Cs=GRID, cv=3).fit(X, np.column_stack([y, -y]))
    assert targets.coefs_paths_.shape == (3, 1, 4, 2, X.shape[1])
    assert targets.predict(X).shape == (len(y), 2)


def test_a_fold_without_a_class():
    X, y = iris()
    rows = np.arange(len(y))
    folds = [(rows[y != 2], rows[y == 2]), (rows[::2], rows[1::2])]
    search = AdaSDCAClassifierCV(Cs=[0.1, 1.0], cv=folds).fit(X, y)
    assert not hasattr(search, "coefs_paths_")
    assert search.coef_.shape == (3, 4)
    np.testing.assert_array_equal(search.scores_[0], 0.0)


def test_one_warning_for_all_fits():
    X, y = cancer()
    search = AdaSDCAClassifierCV(
        loss="hinge", method="sdca-perm", Cs=[1.0, 100.0], cv=3, max_iter=2, tol=1e-8
    )
    with pytest.warns(ConvergenceWarning) as caught:
        search.fit(X, y)
    texts = [str(w.message) for w in caught]
    assert sum("6 of 6 fits along C did not reach tol=1.0e-08" in text for text in texts) == 1
    assert any("whose relative duality gaps are up to" in text for text in texts)
    assert len(texts) == 2  # and that of the final fit
    assert not search.converged_


def test_verbose_tells_of_folds(caplog):
    X, y = cancer()
    with caplog.at_level(logging.INFO, logger="adasdca"):
        AdaSDCAClassifierCV(Cs=[0.1, 1.0], cv=2, verbose=1).fit(X, y)
    lines = [r.getMessage() for r in caplog.records]
    assert sum("fold" in line and "score" in line for line in lines) == 4


def test_callbacks_of_scikit_learn():
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")

    class Recorder:
        max_propagation_depth = None

        def __init__(self):
            self.events = []

        def setup(self, estimator, context):
            self.events.append("setup")

        def on_fit_task_begin(self, estimator, context):
            self.events.append(("begin", type(estimator).__name__, context.task_name))

        def on_fit_task_end(self, estimator, context):
            self.events.append(("end", type(estimator).__name__, context.task_name))

        def teardown(self, estimator, context):
            self.events.append("teardown")

    assert isinstance(Recorder(), callback.AutoPropagatedCallback)
    X, y = cancer()
    recorder = Recorder()
    AdaSDCAClassifierCV(Cs=[0.1, 1.0], cv=3).set_callbacks(recorder).fit(X, y)
    events = recorder.events
    assert events[0] == "setup"
    assert events[-1] == "teardown"
    assert events.count("setup") == 1
    assert events.count(("end", "AdaSDCAClassifierCV", "fold")) == 3
    assert events.count(("end", "AdaSDCAClassifier", "fit")) == 3 * 2 + 1
    begun = [e[1:] for e in events if e[0] == "begin"]
    ended = [e[1:] for e in events if e[0] == "end"]
    assert sorted(begun) == sorted(ended)


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        ({"Cs": 0}, "Cs"),
        ({"Cs": []}, "Cs"),
        ({"Cs": [1.0, -1.0]}, "Cs"),
        ({"Cs": [1.0, "a"]}, "Cs"),
        ({"Cs": [1.0, 10**400]}, "Cs"),
        ({"l1_ratios": [1.5]}, "l1_ratios"),
        ({"l1_ratios": []}, "l1_ratios"),
        ({"cv": "five"}, "cv"),
    ],
)
def test_bad_grids(bad, name):
    with pytest.raises(ValueError, match=name):
        AdaSDCAClassifierCV(**bad).fit(*cancer())


def test_pictures_of_a_search():
    X, y = cancer()
    search = AdaSDCAClassifierCV(Cs=GRID, cv=3).fit(X, y)
    scores = PathDisplay.from_estimator(search)
    assert len(scores.lines_) == 4
    assert scores.ax_.get_ylabel() == "accuracy"
    coefs = PathDisplay.from_estimator(search, kind="coefs", ax=scores.ax_)
    assert coefs.ax_ is scores.ax_
    assert len(coefs.lines_) == X.shape[1]
    with pytest.raises(ValueError, match="kind"):
        PathDisplay.from_estimator(search, kind="nonsense")
    plt.close("all")


def test_walks_on_a_fold_share_its_rows(monkeypatch):
    """They are checked once, and their Gram matrix is summed once for all ratios of the L1 term."""
    X, y = diabetes()
    X = np.repeat(X, 7, axis=1)  # wide enough for the Gram matrix that is counted
    sums, checks = [], []
    gram, check = adasdca.backends.cpu_term.dense_gram, adasdca.problem.data._check_dense
    monkeypatch.setattr(
        "adasdca.backends.cpu_term.dense_gram", lambda *a: sums.append(1) or gram(*a)
    )
    monkeypatch.setattr("adasdca.problem.data._check_dense", lambda X: checks.append(1) or check(X))
    options = {"loss": "squared", "l1_ratios": [0.3, 0.6, 0.9], "Cs": [0.01, 0.1, 1.0]}
    AdaSDCARegressorCV(**options, cv=4, random_state=0).fit(X, y)
    assert len(checks) == 4 + 1  # the last one of all rows
    assert len(sums) <= 4 + 1
