"""What people do around a fit: names, frames, pictures, groups, routing, processes, a page."""

import pickle
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import d2_pinball_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold

import adasdca
import adasdca.sklearn
from adasdca import (
    AdaSDCAClassifier,
    AdaSDCAClassifierCV,
    AdaSDCARegressor,
    AdaSDCARegressorCV,
)
from bundled import cancer, diabetes, iris


@pytest.mark.parametrize(
    ("alias", "name", "model", "data"),
    [
        ("log_loss", "logistic", AdaSDCAClassifier, cancer),
        ("squared_error", "squared", AdaSDCARegressor, diabetes),
        ("absolute_error", "absolute", AdaSDCARegressor, diabetes),
    ],
)
def test_names_of_scikit_learn_are_known(alias, name, model, data):
    X, y = data()
    one, two = (model(loss=loss, C=0.01, random_state=0).fit(X, y) for loss in (alias, name))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    if alias == "log_loss":
        np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    targets = np.where(y == y.max(), 1.0, -1.0)
    solved = adasdca.solve(X, targets, loss=alias, lam=0.1, random_state=0)
    assert solved.primal == adasdca.solve(X, targets, loss=name, lam=0.1, random_state=0).primal


def test_a_loss_without_a_domain_is_told_what_it_lacks():
    with pytest.raises(ValueError, match="it lacks `domain`"):

        @adasdca.register_loss
        class Own(adasdca.losses.PiecewiseQuadratic):
            name = "endless"
            kind = "classification"


TEXT = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "town": ["Bern", None, "Ulm", "Ulm"]})
TEXT["plan"] = pd.Categorical(["a", "b", "a", "b"])
DATES = pd.DataFrame({"age": [1.0, 2.0], "seen": pd.to_datetime(["2020-01-01", "2021-01-01"])})
JOBS = pl.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "job": list("abab")})
CLASSES = [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (TEXT, CLASSES, "text in the columns 'town', 'plan' of X; .*OneHotEncoder"),
        (TEXT[["age", "town"]], CLASSES, "text in the column 'town' of X"),
        (JOBS, CLASSES, "text in the column 'job' of X"),
        (["a b", "c d"], [0, 1], r"X holds text such as 'a b'.*TfidfVectorizer"),
        (pd.Series(["a b", "c d"]), [0, 1], r"X holds text such as 'a b'.*TfidfVectorizer"),
        (DATES, [0, 1], "dates in the column 'seen' of X; make numbers of them"),
        (np.eye(3), pd.Series(["a", "b", np.nan], dtype=object), "y contains NaN; leave out rows"),
    ],
)
@pytest.mark.parametrize("model", [AdaSDCAClassifier(), adasdca.sklearn.LogisticRegression()])
def test_what_is_no_number_is_named(model, X, y, words):
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)


@pytest.mark.parametrize("missing", [None, 0])
@pytest.mark.parametrize("model", [AdaSDCAClassifier(), AdaSDCAClassifierCV(Cs=[1.0], cv=2)])
def test_labels_of_several_kinds_are_named(model, missing):
    y = np.array(["a", missing, "b", "a"], dtype=object)
    with pytest.raises(ValueError, match=f"several kinds .{type(missing).__name__}, str."):
        model.fit(np.eye(4), y)


def test_text_is_named_in_later_rows_and_in_targets():
    frame = TEXT
    model = AdaSDCAClassifier().fit(np.eye(4)[:, :3], [0, 1, 0, 1])
    for use in (model.predict, lambda X: model.report(X, [0, 1, 0, 1])):
        with (
            pytest.warns(UserWarning, match="without feature names"),
            pytest.raises(ValueError, match="text in the columns 'town', 'plan'"),
        ):
            use(frame)
    with pytest.raises(ValueError, match=r"y holds text such as 'stay'.*take a classifier"):
        AdaSDCARegressor().fit(frame[["age"]], ["stay", "go", "go", "stay"])


def test_frames_that_are_not_read_yet_are_told():
    X, y = iris()
    rows = pl.DataFrame(X)
    model = AdaSDCAClassifier().fit(rows, y)
    for use in (model.fit, lambda X, y: model.predict(X)):
        with pytest.raises(ValueError, match=r"X is a LazyFrame, not read yet; pass X\.collect"):
            use(rows.lazy(), y)


def test_a_page_without_a_place_is_refused_before_it_is_made(tmp_path):
    X, y = iris()
    model = AdaSDCAClassifier().fit(X, y)
    with pytest.raises(FileNotFoundError, match=r"the folder of .* does not exist; make it first"):
        model.report(X, y, path=tmp_path / "nowhere" / "fit.html")


def test_a_search_for_a_quantile_is_judged_by_its_loss():
    X, y = diabetes()
    options = {"loss": "quantile", "quantile": 0.9, "Cs": [1e-4, 1.0], "cv": 3, "random_state": 0}
    found = AdaSDCARegressorCV(**options).fit(X, y)
    asked = make_scorer(d2_pinball_score, alpha=0.9)
    same = AdaSDCARegressorCV(**options, scoring=asked).fit(X, y)
    np.testing.assert_array_equal(found.scores_, same.scores_)
    assert found.C_ == same.C_
    drawn = adasdca.PathDisplay.from_estimator(found)
    assert drawn.score_name == "D² of the quantile loss"
    page = AdaSDCARegressor(loss="quantile", quantile=0.9).fit(X, y).report(X, y)
    assert "for the quantile 0.9; D² of the quantile loss" in page
    assert "R²" not in page


def test_the_order_of_the_arguments_of_certify_is_told():
    X, y = cancer()
    model = AdaSDCAClassifier().fit(X, y)
    with pytest.raises(ValueError, match=r"AdaSDCAClassifier comes first: certify\(model, X, y\)"):
        adasdca.certify(X, y, model)
    with pytest.raises(TypeError, match=r"^certify\(model, X, y\) lacks X and y"):
        adasdca.certify(model)
    with pytest.raises(TypeError, match=r"^certify\(model, X, y\) lacks y:"):
        adasdca.certify(model, X)
    assert adasdca.certify(model, X=X, y=y).gap == adasdca.certify(model, X, y).gap


def test_numbers_of_certificates_are_floats_of_python():
    X, y = iris()
    for model in (AdaSDCAClassifier().fit(X, y), AdaSDCARegressor().fit(X, y == 1.0)):
        assert "np.float64" not in repr(model.certificate_)
        assert "np.float64" not in repr(adasdca.certify(model, X, y))


def test_bounds_hold_and_are_those_of_solve():
    X, y = diabetes()
    bounds = (-0.2, np.linspace(0.0, 0.4, X.shape[1]))
    model = AdaSDCARegressor(bounds=bounds, tol=1e-9, random_state=0).fit(X, y)
    assert ((model.coef_ >= bounds[0]) & (model.coef_ <= bounds[1])).all()
    same = adasdca.solve(
        X, y, loss="squared", lam=1 / len(y), bounds=bounds, fit_intercept=True, tol=1e-9
    )
    np.testing.assert_allclose(model.coef_, same.coef, atol=1e-4)
    X, y = iris()
    three = AdaSDCAClassifier(bounds=(0, None)).fit(X, y)
    assert three.coef_.min() >= 0
    assert len(three.certificate_) == 3  # no multinomial model between bounds
    with pytest.raises(ValueError, match=r"positive=True is bounds=.* give one of them"):
        AdaSDCAClassifier(bounds=(0, 1), positive=True).fit(X, y)
    with pytest.raises(ValueError, match="bounds=None"):
        AdaSDCAClassifier(bounds=(0, 1), multi_class="multinomial").fit(X, y)


@pytest.fixture(scope="module")
def solved():
    X, y = cancer()
    y = np.where(y == 1, 1.0, -1.0)
    return (
        adasdca.solve(X, y, loss="logistic", lam=1e-2, random_state=0),
        adasdca.path(X, y, loss="logistic", Cs=[0.01, 0.1], random_state=0),
    )


@pytest.mark.parametrize(("library", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_histories_and_paths_are_frames(library, kind, solved):
    solution, path = solved
    frame = solution.history.to_frame(library)
    assert isinstance(frame, kind)
    assert len(frame) == len(solution.history)
    assert frame["gap"].to_list()[-1] == solution.gap
    frame = path.to_frame(library)
    assert isinstance(frame, kind)
    assert frame["C"].to_list() == [0.01, 0.1]
    assert frame["primal"].to_list() == [s.primal for s in path.solutions]


def test_a_frame_of_another_library_is_refused(solved, monkeypatch):
    with pytest.raises(ValueError, match="library = 'arrow' is unknown; choose one of 'pandas'"):
        solved[0].history.to_frame("arrow")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        solved[1].to_frame()


def test_pictures_and_short_words(solved):
    solution, path = solved
    (epochs, seconds) = solution.plot(tol=1e-4).axes
    np.testing.assert_array_equal(epochs.lines[0].get_ydata(), solution.history.relative_gap)
    assert seconds.get_xlabel() == "seconds"
    figure = path.plot([f"x{j}" for j in range(30)])
    named = figure.axes[0].get_legend_handles_labels()
    looks = {(line.get_color(), str(line.get_linestyle())) for line in named[0]}
    assert len(looks) == len(named[1]) == 8
    assert len(repr(path)) < 100
    assert repr(path).startswith("Path(2 solutions, C 0.01 to 0.1, 2 converged")
    for thing in (solution, path):
        assert re.fullmatch(r"<table>.*</table>(<p>.*</p>)?", thing._repr_html_(), re.DOTALL)


def test_numbers_are_for_people():
    whole = adasdca.Certificate(1.0, 0.0, 1.0, 1.0)
    assert "(100 %)" in str(whole)
    wide = adasdca.Certificate(4000.0, 40.0, 3960.0, 12345.6)
    assert "within 3960 (99 %) of the best, and its coefficients within 12300 of" in str(wide)
    with pytest.warns(ConvergenceWarning, match="objective is above its minimum is not known yet;"):
        AdaSDCAClassifier(loss="hinge", max_time=0.0).fit(*cancer())
    with pytest.raises(ValueError, match=r"one class only: 1\.0\."):
        AdaSDCAClassifier().fit(np.eye(3), np.ones(3))


@pytest.mark.parametrize(
    ("model", "data"), [(AdaSDCAClassifierCV, cancer), (AdaSDCARegressorCV, diabetes)]
)
def test_groups_stay_together(model, data):
    X, y = data()
    X, y = X[:120], y[:120]
    groups = np.arange(120) % 4
    seen = []

    class Watched(GroupKFold):
        def split(self, X, y=None, groups=None):
            for train, test in super().split(X, y, groups):
                seen.append(not set(groups[train]) & set(groups[test]))
                yield train, test

    options = {"Cs": [0.1, 1.0], "random_state": 0}
    fit = model(cv=Watched(4), **options).fit(X, y, groups=groups)
    assert seen == [True] * 4
    folds = list(GroupKFold(4).split(X, y, groups))
    np.testing.assert_array_equal(fit.scores_, model(cv=folds, **options).fit(X, y).scores_)
    with pytest.raises(TypeError, match="unexpected argument 'teams'"):
        model(cv=4, **options).fit(X, y, teams=groups)


def test_metadata_are_routed():
    X, y = cancer()
    weight, groups = 0.5 + np.random.default_rng(0).random(len(y)), np.arange(len(y)) % 3
    direct = AdaSDCAClassifierCV(cv=GroupKFold(3), Cs=[0.1, 1.0], random_state=0)
    direct.fit(X, y, sample_weight=weight, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = AdaSDCAClassifierCV(cv=GroupKFold(3), Cs=[0.1, 1.0], random_state=0)
        routed.set_fit_request(sample_weight=True)
        routed.fit(X, y, sample_weight=weight, groups=groups)
        np.testing.assert_array_equal(routed.scores_, direct.scores_)
        inner = AdaSDCAClassifier(random_state=0).set_fit_request(sample_weight=True)
        search = GridSearchCV(inner.set_score_request(sample_weight=True), {"C": [0.1, 1.0]}, cv=2)
        search.fit(X, y, sample_weight=weight)
        best = AdaSDCAClassifier(C=search.best_params_["C"], random_state=0)
        np.testing.assert_array_equal(
            search.best_estimator_.coef_, best.fit(X, y, sample_weight=weight).coef_
        )


def test_registered_names_reach_other_processes(tmp_path):
    """An estimator that is unpickled where nothing was registered still knows its names."""

    @adasdca.register_loss
    class Steep(adasdca.losses.PiecewiseQuadratic):
        name = "steep"
        kind = "classification"
        domain = (0.0, 3.0)

    @adasdca.register_method("in-order")
    def in_order(survey, rng):
        return np.arange(len(survey.beta))

    X, y = cancer()
    model = AdaSDCAClassifier(tol=1e-2, C=0.01, random_state=0, fit_intercept=False)
    try:
        (tmp_path / "model").write_bytes(pickle.dumps((model, X, y)))
        model.set_params(loss="steep", method="in-order")
        expected = model.fit(X, y).coef_
    finally:
        adasdca.losses.LOSSES.pop("steep")
        adasdca.methods.REGISTERED.pop("in-order")
        adasdca.methods.PICKERS.pop("in-order")
    code = (
        "import pickle, pathlib, numpy\n"
        "model, X, y = pickle.loads(pathlib.Path('model').read_bytes())\n"
        "model.set_params(loss='steep', method='in-order').fit(X, y)\n"
        "numpy.save('coef.npy', model.coef_)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "coef.npy"), expected)


def test_a_report_is_one_page(tmp_path):
    pytest.importorskip("matplotlib")
    X, y = cancer()
    model = AdaSDCAClassifier(tol=1e-8, random_state=0).fit(X, y)
    names = [f"<x{j}>" for j in range(X.shape[1])]
    page = model.report(X, y, path=tmp_path / "fit.html", feature_names=names, title="cancer")
    assert (tmp_path / "fit.html").read_text("utf-8") == page
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"|<!DOCTYPE[^>]*>|"http://www.w3.org[^"]*"|'
                                r'<metadata>.*?</metadata>', "", page, flags=re.DOTALL)  # fmt: skip
    assert f"{model.certificate_.primal:.8g}" in page
    assert page.count("<svg") == 2
    largest = int(np.abs(model.coef_[0]).argmax())
    first = page.index("&lt;x")
    assert page[first:].startswith(f"&lt;x{largest}&gt;")
    assert f"the sign of {np.count_nonzero(np.abs(model.coef_) > model.radius_)} is certain" in page
    safe = np.count_nonzero(model.certified_margin(X) > 0)
    assert f"{safe} of {len(y)} predictions" in page
    assert "random_state=0" in page
    X, y = diabetes()
    page = AdaSDCARegressorCV(Cs=[0.1, 1.0], random_state=0).fit(X, y).report(X, y)
    assert "<h2>Residuals</h2>" in page
    assert "2 of 10" not in page
    assert "C chosen by cross-validation" in page
    page = AdaSDCARegressorCV(Cs=[1.0], cv=3, random_state=0).fit(X, y).report(X, y)
    assert "<td>cross-validation</td>" in page
    X, y = iris()
    page = AdaSDCAClassifier(loss="hinge", random_state=0).fit(X, y).report(X, y)
    assert page.count("<h3>class") == 3


def test_a_report_of_a_data_frame_has_the_names_of_its_columns():
    pytest.importorskip("matplotlib")
    pandas = pytest.importorskip("pandas")
    X, y = diabetes()
    frame = pandas.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])
    page = AdaSDCARegressor().fit(frame, y).report(frame, y)  # warnings are errors
    assert "column 3" in page
    assert "counted from 0" not in page
    page = AdaSDCARegressor(loss="huber").fit(X, y).report(X.tolist(), y)
    assert "442" in page
    assert "counted from 0" in page
    assert "huber (delta=1.35)" in page
    X, y = cancer()
    page = AdaSDCAClassifier().fit(X, 2.0 * y - 1).report(X, 2.0 * y - 1)
    assert "<td>logistic</td>" in page
    assert "-1 (212), 1 (357)" in page


def test_a_lasso_of_quantiles_is_certified_by_its_own_solve():
    """At a kink and without an L2 term only a solve finds a dual point."""
    X, y = diabetes()
    model = QuantileRegressor(quantile=0.7, alpha=0.02).fit(X, y)
    assert adasdca.certify(model, X, y, epochs=0).relative_gap > 1e-2
    assert adasdca.certify(model, X, y, epochs=200).relative_gap < 1e-4


@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
@pytest.mark.parametrize("model", [AdaSDCAClassifier, AdaSDCAClassifierCV])
def test_quantities_taken_for_classes_are_doubted(model):
    X, y = diabetes()
    places = np.unique(y, return_inverse=True)[1]  # 214 integers
    options = {"Cs": 1, "cv": 2} if model is AdaSDCAClassifierCV else {}
    doubt = "different numbers are taken for classes, .* AdaSDCARegressor is for them"
    with pytest.warns(UserWarning, match=doubt) as told:
        model(tol=0.5, **options).fit(X[:, :2], places)
    assert sum("different numbers" in str(each.message) for each in told) == 1
    model(tol=1e-2, **options).fit(X[:, :2], np.digitize(y, [-1, 1]))  # classes: not a word
