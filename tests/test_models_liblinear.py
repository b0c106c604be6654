"""Models from LIBLINEAR and for LIBLINEAR: the same predictions on both sides."""

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
from adasdca import models
from adasdca.models import Model, ModelError
from bundled import diabetes, iris

CLASSIFIERS = {
    "L2R_LR": 0,
    "L2R_L2LOSS_SVC_DUAL": 1,
    "L2R_L2LOSS_SVC": 2,
    "L2R_L1LOSS_SVC_DUAL": 3,
    "L1R_L2LOSS_SVC": 5,
    "L1R_LR": 6,
    "L2R_LR_DUAL": 7,
}
REGRESSORS = {"L2R_L2LOSS_SVR": 11, "L2R_L2LOSS_SVR_DUAL": 12, "L2R_L1LOSS_SVR_DUAL": 13}


@pytest.fixture(scope="module")
def liblinear():
    return pytest.importorskip("liblinear.liblinearutil")


def rows(n=60, d=7, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, d))
    X[X < 0] = 0.0
    X[:3] = 0.0  # a score of exactly 0 without a bias: ties must break the same way
    return X


def trained(liblinear, X, y, options, path):
    model = liblinear.train(y.tolist(), sp.csr_matrix(X), f"{options} -q")
    liblinear.save_model(str(path), model)
    return model


def answers(liblinear, model, X):
    labels, _, values = liblinear.predict([], sp.csr_matrix(X), model, "-q")
    return np.array(labels), np.array(values)


@pytest.mark.parametrize("bias", [-1, 1, 2.5])
@pytest.mark.parametrize("solver", CLASSIFIERS)
@pytest.mark.parametrize("labels", [(-1, 1), (1, -1), (3, 1), (0, 1), (1, 2, 3), (3, 1, 2, 7)])
def test_classifiers_predict_the_same_both_ways(labels, solver, bias, liblinear, tmp_path):
    """LIBLINEAR orders the labels as they occur: the first of two has the positive scores."""
    X = rows()
    y = np.array(labels)[np.random.default_rng(1).integers(0, len(labels), len(X))]
    y[: len(labels)] = labels
    theirs = trained(liblinear, X, y, f"-s {CLASSIFIERS[solver]} -B {bias}", tmp_path / "theirs")
    expected, values = answers(liblinear, theirs, X)
    ours = models.load(tmp_path / "theirs")
    # Two classes can have the same score, that of a margin, but for its last digits.
    best = np.sort(np.atleast_2d(ours.decision(X).T), axis=0)
    clear = np.ones(len(X), bool) if len(best) == 1 else best[-1] - best[-2] > 1e-9
    np.testing.assert_array_equal(ours.predict(X)[clear], np.array(expected)[clear])
    np.testing.assert_allclose(np.abs(ours.decision(X)), np.abs(values), rtol=1e-12, atol=1e-15)
    assert ours.provenance["solver_type"] == solver
    assert ours.lam is None
    assert ours.l1_ratio == float(solver.startswith("L1R"))
    models.write_liblinear(ours, tmp_path / "ours")
    again, values_again = answers(liblinear, liblinear.load_model(str(tmp_path / "ours")), X)
    np.testing.assert_array_equal(again, expected)
    np.testing.assert_allclose(values_again, values, rtol=1e-14)


@pytest.mark.parametrize("bias", [-1, 1])
@pytest.mark.parametrize("solver", REGRESSORS)
def test_regressors_predict_the_same_both_ways(solver, bias, liblinear, tmp_path):
    X, y = diabetes()
    theirs = trained(liblinear, X, y, f"-s {REGRESSORS[solver]} -B {bias}", tmp_path / "theirs")
    expected, _ = answers(liblinear, theirs, X)
    ours = models.load(tmp_path / "theirs")
    np.testing.assert_allclose(ours.predict(X), expected, rtol=1e-12, atol=1e-14)
    assert ours.classes is None
    models.write_liblinear(ours, tmp_path / "ours")
    again, _ = answers(liblinear, liblinear.load_model(str(tmp_path / "ours")), X)
    np.testing.assert_array_equal(again, expected)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge"])
@pytest.mark.parametrize("scaling", [None, 1.0, 3.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_liblinear_predicts_with_our_models(loss, scaling, classes, liblinear, tmp_path):
    """Also with an intercept that is not penalised, written as the weight of bias 1."""
    X, y = iris()
    keep = y < classes
    X, y = X[keep], y[keep]
    fit = adasdca.AdaSDCAClassifier(
        loss=loss, intercept_scaling=scaling, multi_class="ovr", random_state=0
    ).fit(X, y)
    model = Model(
        fit.coef_,
        fit.intercept_,
        fit.classes_,
        adasdca.losses.get_loss(loss),
        1 / len(y),
        bias=scaling or -1.0,
        fit_intercept=scaling is None,
    )
    models.write_liblinear(model, tmp_path / "m")
    theirs = liblinear.load_model(str(tmp_path / "m"))
    labels, _ = answers(liblinear, theirs, X)
    np.testing.assert_array_equal(labels, fit.predict(X))
    assert theirs.bias == (scaling or 1.0)
    back = models.read_liblinear(tmp_path / "m")
    np.testing.assert_array_equal(back.predict(X), fit.predict(X))
    np.testing.assert_array_equal(back.coef, model.coef)


def test_liblinears_answer_is_certified(liblinear, tmp_path):
    """The objective of the file's model is LIBLINEAR's, and it is as good as its tolerance."""
    X = rows(200)
    y = np.where(X @ np.arange(-3.0, 4.0) > 0, 1, -1)
    for solver, options in (("L2R_LR_DUAL", "-B -1"), ("L2R_L2LOSS_SVC_DUAL", "-B 2")):
        line = f"-s {CLASSIFIERS[solver]} -c 0.5 -e 1e-8 {options}"
        trained(liblinear, X, y, line, tmp_path / "m")
        model = models.load(tmp_path / "m")
        object.__setattr__(model, "lam", 1 / (0.5 * len(y)))
        (certificate,) = models.certify(model, X, y, epochs=100)
        assert certificate.relative_gap < 1e-6


@pytest.mark.parametrize("loss", ["smoothed_hinge", "modified_huber"])
def test_a_loss_that_liblinear_does_not_have_is_refused(loss, tmp_path):
    model = Model(
        np.ones((1, 2)), np.zeros(1), np.array([0, 1]), adasdca.losses.get_loss(loss), 1.0
    )
    with pytest.raises(ModelError, match=f"no name for the loss '{loss}', only for 'logistic'"):
        models.write_liblinear(model, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("classes", [["a", "b"], [0.5, 1.5]])
def test_labels_that_are_no_integers_are_refused(classes, tmp_path):
    model = Model(np.ones((1, 2)), np.zeros(1), np.array(classes), adasdca.Hinge(), 1.0)
    with pytest.raises(ModelError, match="labels are integers"):
        models.write_liblinear(model, tmp_path / "m")


HEADER = "solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias -1\n"
GOOD = HEADER + "w\n0.5 \n-1.25 \n"  # with the blanks that LIBLINEAR leaves


def test_a_file_by_hand(tmp_path):
    (tmp_path / "m").write_text(GOOD)
    model = models.load(tmp_path / "m")
    assert model.classes.tolist() == [-1, 1]
    assert model.coef.tolist() == [[0.5, -1.25]]
    models.write_liblinear(model, tmp_path / "again")
    assert (tmp_path / "again").read_text() == GOOD.replace("L2R_LR", "L2R_LR_DUAL")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("L2R_LR", "MCSVM_CS", "solver_type MCSVM_CS cannot be used"),
        ("L2R_LR", "ONECLASS_SVM", "solver_type ONECLASS_SVM cannot be used"),
        ("nr_class 2", "nr_class x", "nr_class 'x' is not a number"),
        ("nr_class 2", "nr_class 3", "does not name nr_class = 3"),
        ("label 1 -1", "label 1 1", "does not name"),
        ("label 1 -1\n", "", "does not name"),
        ("nr_feature 2", "nr_feature 0", "nr_feature '0' is not an integer above 0"),
        ("bias -1\n", "", "lacks bias"),
        ("bias -1", "bias nan", "bias 'nan' is not a number"),
        ("bias -1", "bias 1", "cut short: it has 2 of 3 lines"),
        ("-1.25 \n", "", "cut short: it has 1 of 2 lines"),
        ("-1.25 \n", "-1.25 3\n", "line 8: 2 lines of 1 numbers"),
        ("-1.25 \n", "-1.25 \n7\n", "line 9: 2 lines of 1 numbers"),
        ("-1.25", "abc", "line 8: 'abc ' are no numbers"),
        ("-1.25", "inf", "NaN or infinity"),
        ("w\n0.5 \n-1.25 \n", "", "it has no coefficients"),
        ("bias", "bla", "line 5: 'bla -1' is not understood"),
    ],
)
def test_a_bad_file_is_told(old, new, message, tmp_path):
    (tmp_path / "m").write_text(GOOD.replace(old, new))
    with pytest.raises(ModelError, match=message):
        models.load(tmp_path / "m")
