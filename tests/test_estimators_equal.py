"""One objective, one optimum, whoever finds it: scikit-learn, LIBLINEAR, CVXPY, and we.

Coefficients are compared relative to their length. Real data of several kinds, unscaled where
that is bearable for the other side.
"""

from functools import partial

import cvxpy as cp
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.linear_model import ElasticNet, LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from adasdca import AdaSDCAClassifier, AdaSDCARegressor
from adasdca.problem.losses import LOSSES
from bundled import cancer

TOL = 1e-6


def diabetes():
    X, y = load_diabetes(return_X_y=True, scaled=False)
    return StandardScaler().fit_transform(X), y


def assert_same(ours, coef, intercept=None, tol=TOL):
    coef = np.asarray(coef)
    size = np.linalg.norm(coef)
    assert np.linalg.norm(np.ravel(ours.coef_) - coef.ravel()) <= tol * size
    if intercept is not None:
        difference = np.abs(np.ravel(ours.intercept_) - np.ravel(intercept)).max()
        assert difference <= tol * max(size, np.abs(intercept).max())


@pytest.mark.parametrize("class_weight", ["balanced", {0: 3.0, 1: 0.5}])
def test_logistic_regression_with_weights(class_weight):
    X, y = cancer()
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    options = {"class_weight": class_weight, "C": 0.5}
    ours = AdaSDCAClassifier(**options, tol=0.0, random_state=0).fit(X, y, weight)
    theirs = LogisticRegression(**options, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    if class_weight == "balanced":
        # Ours counts a row of weight 2 as two rows; scikit-learn before 1.9 counted rows.
        mass = np.bincount(y, weights=weight)
        theirs.set_params(class_weight=dict(enumerate(weight.sum() / (2 * mass))))
    theirs.fit(X, y, weight)
    assert_same(ours, theirs.coef_, theirs.intercept_)


def rows(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def targets():
    X, y = diabetes()
    return X, np.column_stack([y, y**2 / 100, X[:, 3] * y])


def scaled():
    X, y = diabetes()
    return X, (y - y.mean()) / y.std()


IRIS, WINE = partial(rows, load_iris), partial(rows, load_wine)
TIGHT = {"tol": 1e-12, "max_iter": 10**6}
SQUARED = {"loss": "squared_epsilon_insensitive", "epsilon": 20.0, "intercept_scaling": 50.0}
CHOLESKY = {"solver": "newton-cholesky", **TIGHT}
PEERS = [
    *(
        (AdaSDCAClassifier(C=C), LogisticRegression(C=C, **CHOLESKY), load)
        for C in (0.1, 10.0)
        for load in (IRIS, WINE)
    ),
    *(
        (
            AdaSDCAClassifier(C=C, fit_intercept=free),
            LogisticRegression(C=C, fit_intercept=free, **CHOLESKY),
            cancer,
        )
        for C in (0.01, 1.0, 100.0)
        for free in (True, False)
    ),
    *(
        (
            AdaSDCAClassifier(loss="squared_hinge", C=C, intercept_scaling=scaling),
            LinearSVC(C=C, intercept_scaling=scaling, dual=False, **TIGHT),
            load,
        )
        for C, scaling, load in ((0.01, 1.0, cancer), (1.0, 10.0, cancer), (1.0, 1.0, WINE))
    ),
    (
        AdaSDCAClassifier(loss="hinge", C=0.1, intercept_scaling=1.0, max_iter=10**5),
        LinearSVC(loss="hinge", C=0.1, tol=1e-7, max_iter=10**7, random_state=0),
        cancer,
    ),
    *((AdaSDCARegressor(C=1 / a), Ridge(a, solver="cholesky"), diabetes) for a in (0.1, 100.0)),
    (AdaSDCARegressor(C=0.5, n_jobs=2), Ridge(2.0, solver="cholesky"), targets),
    (AdaSDCARegressor(**SQUARED), LinearSVR(**SQUARED, dual=False, **TIGHT), diabetes),
    (
        AdaSDCARegressor(
            loss="epsilon_insensitive", epsilon=0.3, C=0.1, intercept_scaling=1.0, max_iter=10**5
        ),
        LinearSVR(epsilon=0.3, C=0.1, tol=1e-12, max_iter=10**7, random_state=0),
        scaled,
    ),
    *(
        (
            AdaSDCARegressor(C=1 / (2.0 * 442), l1_ratio=ratio, positive=positive),
            ElasticNet(2.0, l1_ratio=ratio, positive=positive, tol=1e-14, max_iter=10**6),
            diabetes,
        )
        for ratio in (0.1, 0.9)
        for positive in (False, True)
    ),
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("ours", "theirs", "load"), PEERS)
def test_the_same_as_scikit_learn(ours, theirs, load, weighted):
    X, y = load()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else None
    if weighted and isinstance(theirs, ElasticNet):
        weight *= len(y) / weight.sum()  # its penalty is relative to n, not to their sum
    ours = clone(ours).set_params(tol=1e-13, random_state=0).fit(X, y, weight)
    theirs = clone(theirs).fit(X, y, weight)
    assert ours.coef_.shape == np.atleast_2d(theirs.coef_).shape or y.ndim == 1
    assert_same(ours, theirs.coef_, theirs.intercept_)
    if hasattr(theirs, "predict_proba"):
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    if ours.l1_ratio > 0:
        assert ((ours.coef_ == 0) == (theirs.coef_ == 0)).all()


@pytest.mark.filterwarnings("ignore:.*:FutureWarning")
def test_elastic_net_logistic_regression():
    X, y = cancer()
    ours = AdaSDCAClassifier(C=0.05, l1_ratio=0.6, tol=1e-14, random_state=0).fit(X, y)
    theirs = LogisticRegression(
        C=0.05, l1_ratio=0.6, solver="saga", tol=1e-12, max_iter=10**6, random_state=0
    )
    theirs.fit(X, y)
    assert_same(ours, theirs.coef_, theirs.intercept_)
    assert (ours.coef_ == 0).sum() > 5


#: Losses of residuals and of margins, as CVXPY has them, and their parameters.
TERMS = {
    "huber": (lambda r: cp.sum(cp.huber(r, 20.0)) / 2, {"delta": 20.0}),
    "quantile": (lambda r: cp.sum(cp.maximum(0.8 * r, -0.2 * r)), {"quantile": 0.8}),
    "absolute": (cp.norm1, {}),
    "epsilon_insensitive": (lambda r: cp.sum(cp.pos(cp.abs(r) - 10.0)), {"epsilon": 10.0}),
    "hinge": (lambda z: cp.sum(cp.pos(1 - z)), {}),
    "smoothed_hinge": (lambda z: cp.sum(cp.huber(cp.pos(1 - z), 1)) / 2, {}),
    "modified_huber": (lambda z: cp.sum(cp.huber(cp.pos(1 - z), 2)), {}),
    "squared_hinge": (lambda z: cp.sum_squares(cp.pos(1 - z)), {}),
}


@pytest.mark.parametrize("loss", TERMS)
def test_the_same_as_an_interior_point_method(loss):
    term, parameters = TERMS[loss]
    classify = LOSSES[loss].kind == "classification"
    X, y = cancer() if classify else diabetes()
    n = 200 if classify else 149  # 0.5·149 and 0.8·149 are no integers: the intercept is unique
    X, y, C = X[:n], y[:n], 0.1
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    scores = X @ w + b
    losses = term(cp.multiply(2 * y - 1, scores) if classify else y - scores)
    cp.Problem(cp.Minimize(C * losses + 0.5 * cp.sum_squares(w))).solve(
        solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    model = AdaSDCAClassifier if classify else AdaSDCARegressor
    ours = model(loss=loss, C=C, tol=1e-13, max_iter=10**5, random_state=0, **parameters)
    ours.fit(X, y)
    assert ours.converged_
    assert_same(ours, w.value, b.value)
