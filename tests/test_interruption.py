"""Ctrl-C at every line: a certified result or KeyboardInterrupt, and nothing in between.

Signals are real ones, raised while a line is waiting to be run.
"""

import copy
import json
import signal
import threading
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import adasdca
import reference as ref
from adasdca import (
    AdaSDCAClassifier,
    AdaSDCAClassifierCV,
    AdaSDCARegressor,
    AdaSDCARegressorCV,
    Status,
    _core,
    certify,
    models,
    path,
    solve,
)
from adasdca.engine.interruption import Interruption, interruption
from commands import call as command
from commands import write
from injection import ROOMS, at_line, first_of, last_of, lines_of, places

RNG = np.random.default_rng(0)
X = RNG.standard_normal((24, 3))
SIGNS = np.where(X[:, 0] + 0.5 * RNG.standard_normal(24) > 0, 1.0, -1.0)
CLASSES = np.arange(24) % 3
TARGETS = X @ RNG.standard_normal((3, 2)) + 0.1 * RNG.standard_normal((24, 2))
LAM = 0.05


@pytest.fixture(autouse=True)
def _as_before():
    """Ctrl-C is what it was after every test, and no wish is left behind."""
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert solve(X, SIGNS, loss="logistic", lam=LAM).status is Status.CONVERGED


def press():
    signal.raise_signal(signal.SIGINT)


def throw():
    raise KeyboardInterrupt


def ended(call):
    """Return what a call returns, or None after KeyboardInterrupt."""
    try:
        return call()
    except KeyboardInterrupt:
        return None


# One solve


SOLVES = {
    "Newton steps": {"loss": "logistic", "fit_intercept": True, "tol": 1e-3},
    "multipliers": {"loss": "hinge", "fit_intercept": True, "tol": 0.1},
    "L1": {"loss": "squared_hinge", "l1_ratio": 0.5, "tol": 1e-2},
    "epochs": {"loss": "hinge", "method": "adasdca+", "max_epochs": 3, "tol": 0.0},
}


def check_solution(solution, y, *, loss, lam=LAM, l1_ratio=0.0, fit_intercept=False, tol, **_):
    oracle = ref.Problem(X, y, loss, lam=lam, l1_ratio=l1_ratio, fit_intercept=fit_intercept)
    assert solution.primal == pytest.approx(oracle.primal(solution.coef, solution.intercept))
    assert 0 <= solution.gap <= solution.primal - solution.dual
    assert len(solution.history) == len(solution.history.gap) >= 1
    assert solution.gap <= solution.history.gap.min() or solution.converged
    assert solution.converged == (solution.gap <= tol * solution.primal)


@pytest.mark.parametrize("act", [press, throw])
@pytest.mark.parametrize("name", SOLVES)
def test_a_solve(name, act):
    options = SOLVES[name]

    def call():
        return solve(X, SIGNS, lam=LAM, random_state=0, **options)

    call()  # what is imported or cached once is there
    lines = lines_of(call)
    certified, returned = first_of(lines, "_turn"), last_of(lines, "_give_back")
    begun = first_of(lines, "_take_over")
    for k, line, turn in places(lines):
        if act is throw and line.file.endswith("interruption.py"):
            continue  # its own lines are where exceptions are kept from
        found = ended(lambda: at_line(call, line, turn, act))  # noqa: B023
        if found is not None:
            assert k >= begun
            check_solution(found, SIGNS, **options)
            assert found.status in (Status.INTERRUPTED, Status.CONVERGED, Status.EPOCH_LIMIT)
        if act is press and certified <= k <= returned:
            assert found is not None, line
            assert found.gap in found.history.gap


# Estimators


@dataclass(frozen=True)
class Case:
    """An estimator, its targets, and the function that has a first certificate when it is run."""

    estimator: Any
    y: Any
    begins: str = "_turn"
    after: str | None = None


ESTIMATORS = {
    "two classes": Case(AdaSDCAClassifier(loss="squared_hinge", tol=1e-2), SIGNS),
    "one versus rest": Case(
        AdaSDCAClassifier(loss="hinge", tol=0.0, max_iter=1, method="sdca"), CLASSES
    ),
    "multinomial": Case(AdaSDCAClassifier(tol=1e-2), CLASSES, "descend"),
    "several targets": Case(AdaSDCARegressor(tol=1e-2), TARGETS),
    "one target": Case(AdaSDCARegressor(loss="huber", warm_start=True), TARGETS[:, 0]),
    "classifier CV": Case(AdaSDCAClassifierCV(Cs=[1.0], cv=2, tol=0.1), SIGNS, after="_walk"),
    "regressor CV": Case(AdaSDCARegressorCV(Cs=[1.0], cv=2, tol=0.1), TARGETS, after="_walk"),
    "multinomial CV": Case(
        AdaSDCAClassifierCV(Cs=[1.0], cv=2, tol=0.1), CLASSES, "descend", after="_walk"
    ),
}


def facts(model):
    """Return all that a fit has left, as plain as it can be compared."""
    return {
        name: repr(value) for name, value in vars(model).items() if name not in model.get_params()
    }


def check_fitted(model, y):
    """The certificates are those of the model: nothing is half fitted."""
    assert model.predict(X).shape == np.shape(y)
    assert model.n_features_in_ == X.shape[1]
    found = model.certificate_ if isinstance(model.certificate_, list) else [model.certificate_]
    ends = model.status_ if isinstance(model.status_, list) else [model.status_]
    assert len(found) == len(ends) == len(np.atleast_1d(model.dual_gap_))
    assert model.converged_ == all(end is Status.CONVERGED for end in ends)
    coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    if len(found) == len(coef):  # each certified on its own
        C = getattr(model, "C_", getattr(model, "C", None))
        columns = np.atleast_2d(np.transpose(y))
        if model.__sklearn_tags__().estimator_type == "classifier":
            columns = [np.where(y == k, 1.0, -1.0) for k in model.classes_[-len(coef) :]]
        for w, b, target, certificate in zip(coef, intercept, columns, found, strict=True):
            oracle = ref.Problem(X, target, model.loss, lam=1 / (C * len(y)), fit_intercept=True)
            assert certificate.primal == pytest.approx(oracle.primal(w, b))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("name", "act"),
    [(name, press) for name in ESTIMATORS]
    + [(name, throw) for name in ESTIMATORS if "CV" not in name],
)
def test_an_estimator(name, act):
    """Fitted, or as it was; a fit that was there before is whole or replaced as a whole."""
    case = ESTIMATORS[name]
    model = clone(case.estimator).set_params(random_state=0)
    first = clone(model)
    lines = lines_of(lambda: first.fit(X, case.y))
    search = 0 if case.after is None else last_of(lines, case.after)
    certified = first_of(lines, case.begins, after=search)
    # The solves of a search are those of the other cases.
    rooms = ROOMS if case.after is None else ("estimators",)
    for k, line, turn in places(lines, rooms, sample=40):
        if act is throw and line.file.endswith("interruption.py"):
            continue
        fresh = clone(model)
        found = ended(lambda: at_line(lambda: fresh.fit(X, case.y), line, turn, act))  # noqa: B023
        fitted = hasattr(fresh, "certificate_")
        if fitted:
            check_fitted(fresh, case.y)
        else:
            assert facts(fresh) == {}, line
        if act is press:
            assert found is None, line
            assert fitted or k < certified, line


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_before_is_whole_or_replaced_as_a_whole():
    """Other classes and another number of features do not mix with those of the fit before."""
    model = AdaSDCAClassifier(loss="squared_hinge", tol=1e-2, random_state=0)
    first = clone(model)
    lines = lines_of(lambda: first.fit(X, SIGNS))
    before = clone(model).fit(X[:, :2], CLASSES)
    for _, line, turn in places(lines, ("estimators",), sample=40):
        again = copy.deepcopy(before)
        assert ended(lambda: at_line(lambda: again.fit(X, SIGNS), line, turn, press)) is None  # noqa: B023
        if again.n_features_in_ == 2:
            assert facts(again) == facts(before)
        else:
            check_fitted(again, SIGNS)
