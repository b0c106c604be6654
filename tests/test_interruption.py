"""Ctrl-C at every line: a certified result or KeyboardInterrupt, and nothing in between.

Signals are real ones, raised while a line is waiting to be run.
"""

import _thread
import copy
import json
import os
import pkgutil
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from sklearn.base import clone

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
    plotting,
    solve,
)
from adasdca import sklearn as dropin
from adasdca.cli.app import app
from adasdca.engine.interruption import Interruption, interruption
from adasdca.estimators._labels import encoded
from adasdca.multinomial.solver import solve_multinomial
from commands import Done, write
from injection import ROOMS, at_line, first_of, last_of, lines_of, places

RNG = np.random.default_rng(0)
X = RNG.standard_normal((24, 3))
SIGNS = np.where(X[:, 0] + 0.5 * RNG.standard_normal(24) > 0, 1.0, -1.0)
CLASSES = np.arange(24) % 3
TARGETS = X @ RNG.standard_normal((3, 2)) + 0.1 * RNG.standard_normal((24, 2))
LAM = 0.05
#: Files of commands that solve.
SOLVING = tuple(f"cli{os.sep}{name}" for name in ("fit", "path", "compare", "race", "training"))


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
    "classifier CV": Case(AdaSDCAClassifierCV(Cs=[1.0], cv=2, tol=0.1), SIGNS, after="_fit_path"),
    "regressor CV": Case(AdaSDCARegressorCV(Cs=[1.0], cv=2, tol=0.1), TARGETS, after="_fit_path"),
    "multinomial CV": Case(
        AdaSDCAClassifierCV(Cs=[1.0], cv=2, tol=0.1), CLASSES, "descend", after="_fit_path"
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
    clone(model).fit(X, case.y)  # what is cached once is there
    first = clone(model)
    lines = lines_of(lambda: first.fit(X, case.y))
    search = 0 if case.after is None else last_of(lines, case.after)
    certified = first_of(lines, case.begins, after=search)
    # The solves of a search are those of the other cases.
    rooms = ROOMS if case.after is None else ("estimators",)
    for k, line, turn in places(lines, rooms, sample=40, both=case.after is None):
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
    clone(model).fit(X, SIGNS)  # what is cached once is there
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


DROPINS = {
    "one versus rest": (dropin.LinearSVC(), X, CLASSES, "_turn"),
    "multinomial": (dropin.LogisticRegression(tol=1e-2), X, CLASSES, "descend"),
    "single precision": (dropin.Ridge(), X.astype(np.float32), TARGETS, "_turn"),
    "L1": (dropin.Lasso(alpha=0.1, tol=1e-2), X, TARGETS, "_turn"),
}


@pytest.mark.parametrize("name", DROPINS)
def test_a_class_of_scikit_learn_s(name):
    """Fitted once something is certified; classes and targets without a solve are 0 then."""
    model, rows, y, begins = DROPINS[name]
    clone(model).fit(rows, y)  # what is cached once is there
    first = clone(model)
    lines = lines_of(lambda: first.fit(rows, y))
    certified = first_of(lines, begins)
    for k, line, turn in places(lines, ("sklearn", "engine"), sample=40):
        fresh = clone(model)
        assert ended(lambda: at_line(lambda: fresh.fit(rows, y), line, turn, press)) is None  # noqa: B023
        fitted = hasattr(fresh, "certificate_")
        assert fitted or k < certified, line
        if not fitted:
            assert facts(fresh) == facts(model), line
            continue
        assert fresh.predict(rows).shape == y.shape
        found = np.ravel([c.primal for c in np.ravel(fresh.certificate_)])
        assert found == pytest.approx([c.primal for c in np.ravel(certify(fresh, rows, y))])


JOBS = {
    "one versus rest": (AdaSDCAClassifier(loss="hinge", tol=0.1, n_jobs=2), CLASSES),
    "several targets": (AdaSDCARegressor(tol=0.1, n_jobs=2), TARGETS),
    "CV": (AdaSDCAClassifierCV(Cs=[1.0], cv=2, tol=0.1, n_jobs=2), SIGNS),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", JOBS)
def test_an_estimator_in_threads(name, monkeypatch):
    """While workers solve, the main thread is interrupted; they may have ended before that."""
    model, y = JOBS[name]
    model = clone(model).set_params(random_state=0)
    first = clone(model)
    lines = lines_of(lambda: first.fit(X, y))
    begun, done = [], []

    def counted(*args, **options):
        begun.append(True)
        try:
            return solve(*args, **options)
        finally:
            done.append(True)

    monkeypatch.setattr("adasdca.estimators._solves.solve", counted)
    for _, line, turn in places(lines, ("estimators", "engine"), sample=40, both=name != "CV"):
        fresh = clone(model)
        ended(lambda: at_line(lambda: fresh.fit(X, y), line, turn, press))  # noqa: B023
        assert len(begun) == len(done)  # no worker goes on
        if hasattr(fresh, "certificate_"):
            check_fitted(fresh, y)
        else:
            assert facts(fresh) == {}, line


# What is made of several solves


def test_a_path():
    def call():
        return path(X, SIGNS, loss="squared_hinge", Cs=[0.1, 1.0], tol=1e-2, random_state=0)

    whole, lines = call(), lines_of(call)
    certified, returned = first_of(lines, "_turn"), last_of(lines, "_give_back")
    lengths = set()
    for k, line, turn in places(lines, sample=40):
        found = ended(lambda: at_line(call, line, turn, press))  # noqa: B023
        if certified <= k <= returned:
            assert found is not None, line
        if found is not None:
            lengths.add(len(found))
            np.testing.assert_array_equal(found.Cs, whole.Cs[: len(found)])
            assert all(s.converged for s in found.solutions[:-1])
            for s, lam in zip(found.solutions, found.lams, strict=True):
                check_solution(s, SIGNS, loss="squared_hinge", lam=lam, tol=1e-2)
    assert lengths == {1, 2}


def test_a_path_on_a_part_of_the_problem():
    """Interrupted while idle rows are left out, it certifies all of them."""
    rng = np.random.default_rng(0)
    many = rng.standard_normal((400, 5))
    y = np.where(many[:, 0] > 0, 1.0, -1.0)
    parts = []

    def look(record):
        parts.append(record.active)
        return len(parts) == 300  # most rows have been left out by then

    options = {"loss": "hinge", "method": "sdca", "tol": 1e-9, "random_state": 0}
    found = path(many, y, Cs=[10.0, 100.0], callback=look, **options)
    assert len(found) == 1
    assert found.n_rows[0] < 400
    (solution,) = found.solutions
    assert solution.status is Status.INTERRUPTED
    assert len(solution.dual_coef) == 400
    oracle = ref.Problem(many, y, "hinge", lam=found.lams[0])
    assert solution.primal == pytest.approx(oracle.primal(solution.coef))


def test_certify():
    def call():
        return certify(X, SIGNS, np.ones(3), loss="hinge", lam=LAM, epochs=2)

    whole, lines = call(), lines_of(call)
    for _, line, turn in places(lines):
        assert ended(lambda: at_line(call, line, turn, press)) in (None, whole)  # noqa: B023


class Count:
    """A callback that presses Ctrl-C, or returns True, at one record, and counts the others."""

    def __init__(self, at, act):
        self.at, self.act, self.seen = at, act, 0

    def __call__(self, record):
        self.seen += 1
        if self.seen == self.at and self.act is press:
            press()
        return self.seen == self.at and self.act is None


@pytest.mark.parametrize("act", [press, None])
@pytest.mark.parametrize("at", [1, 3])
@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (AdaSDCAClassifier(loss="hinge", method="sdca"), CLASSES),
        (AdaSDCARegressor(method="sdca"), TARGETS),
        (AdaSDCAClassifier(max_iter=20), CLASSES),
        (AdaSDCARegressorCV(method="sdca", Cs=[1.0], cv=2, max_iter=4), TARGETS),
    ],
)
@pytest.mark.filterwarnings("ignore:.*did not reach tol")
def test_an_end_is_that_of_the_whole_fit(estimator, y, at, act):
    """No record follows the one at which a fit was stopped, of whatever class or target."""
    count = Count(at, act)
    model = clone(estimator).set_params(tol=0.0, random_state=0, callback=count)
    if act is press:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    else:
        model.fit(X, y)
    assert count.seen == at
    assert not model.converged_
    check_fitted(model, y)
    ends = model.status_ if isinstance(model.status_, list) else [model.status_]
    assert set(ends) == {Status.INTERRUPTED}


@pytest.mark.parametrize("act", [press, None])
@pytest.mark.parametrize("at", [1, 3])
def test_an_end_is_that_of_the_whole_path(at, act):
    count = Count(at, act)
    options = {"loss": "hinge", "method": "sdca", "tol": 0.0, "random_state": 0}
    found = path(X, SIGNS, Cs=[0.1, 1.0, 10.0], callback=count, max_epochs=50, **options)
    assert count.seen == at
    assert len(found) == 1
    assert found.solutions[-1].status is Status.INTERRUPTED


@pytest.mark.parametrize("act", [press, None])
def test_workers_stop_with_the_whole(act, monkeypatch):
    """Of six endless solves in two threads those that run are stopped, the others never begin."""
    begun, together = [], threading.Barrier(2)

    def counted(*args, **options):
        begun.append(threading.get_ident())
        together.wait()  # until the other one has begun, too
        return solve(*args, **options)

    monkeypatch.setattr("adasdca.estimators._solves.solve", counted)
    lock, pressed = threading.Lock(), []

    def callback(record):
        with lock:
            first = not pressed
            pressed.append(record)
        if first and act is press:
            _thread.interrupt_main()  # the signal of Ctrl-C, which the main thread handles
        return first and act is None

    model = AdaSDCAClassifier(
        loss="hinge", method="sdca", C=1e6, tol=0.0, max_iter=10**9, n_jobs=2, callback=callback
    )
    y = np.arange(24) % 6
    if act is press:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    else:
        model.fit(X, y)
    assert len(begun) == 2
    assert model.status_ == [Status.INTERRUPTED] * 6
    check_fitted(model, y)


def pressing(function, monkeypatch):
    """Press Ctrl-C after every solve by a function; return a list with an entry a solve begun."""
    begun, solve = [], pkgutil.resolve_name(f"adasdca.{function}")

    def pressed(*args, **options):
        begun.append(args)
        found = solve(*args, **options)
        press()
        return found

    monkeypatch.setattr(f"adasdca.{function}", pressed)
    return begun


def test_no_class_is_begun_after_ctrl_c(monkeypatch):
    begun = pressing("estimators._solves.solve", monkeypatch)
    model = AdaSDCAClassifier(loss="hinge", tol=1e-2)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, CLASSES)
    assert len(begun) == 1
    assert model.status_ == [Status.CONVERGED, Status.INTERRUPTED, Status.INTERRUPTED]
    check_fitted(model, CLASSES)


def test_no_strength_is_begun_after_ctrl_c(monkeypatch):
    begun = pressing("paths.solve_problem", monkeypatch)
    found = path(X, SIGNS, loss="squared_hinge", Cs=[0.1, 1.0, 10.0], tol=1e-2, random_state=0)
    assert len(begun) == len(found) == 1
    assert found.solutions[0].converged


def test_a_search_stops_with_the_whole(monkeypatch):
    """Ctrl-C in a fold: no other fit is begun, and there is no model."""
    fits, fit = [], AdaSDCAClassifier.fit

    def counted(self, *args, **options):
        fits.append(self.C)
        if len(fits) == 3:
            press()
        return fit(self, *args, **options)

    monkeypatch.setattr(AdaSDCAClassifier, "fit", counted)
    model = AdaSDCAClassifierCV(Cs=[0.1, 1.0], cv=3, tol=0.1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, SIGNS)
    assert len(fits) == 3
    assert facts(model) == {}


# The command line


COMMANDS = {
    "fit": ["--model", "m", "--intercept"],
    "path": ["--C", "0.1", "--C", "1"],
    "compare": ["--max-epochs", "2"],
}


class Picture:
    """One that is drawn at once."""

    def savefig(self, file, **kwargs):
        file.write(b"drawn")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command(name, tmp_path, capsys, monkeypatch):
    """Code 130, and what was certified is written; before that, nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plotting, "convergence", lambda *_, **__: Picture())
    write(tmp_path / "rows.svm", X, SIGNS)

    program = typer.main.get_command(app)  # made once: that takes longer than the rest
    options = ["--loss", "squared_hinge", "--tol", "0.1", "--json", *COMMANDS[name]]

    def call():
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            program.main([name, "rows.svm", *options], prog_name="adasdca")
        return Done(left.value.code or 0, *capsys.readouterr())

    assert call().returncode == 0
    lines = lines_of(call)
    certified, returned = first_of(lines, "_turn"), last_of(lines, "_give_back")
    written = {"fit": "m", "path": None, "compare": "compare.png"}[name]
    for k, line, turn in places(lines, SOLVING, sample=40, both=False):
        if written is not None:
            (tmp_path / written).unlink(missing_ok=True)
        done = at_line(call, line, turn, press)
        assert "Traceback" not in done.stderr
        assert done.returncode in (0, 130), line
        if certified <= k <= returned:
            assert json.loads(done.stdout), line
            assert written is None or (tmp_path / written).exists(), line
        if name == "fit" and (tmp_path / "m").exists():
            models.load(tmp_path / "m")


OTHERS = {
    "a search": (
        ["fit", "rows.svm", "--model", "m", "--cv", "2", "--search", "--Cs", "0.1,1"],
        models.load,
    ),
    "LIBLINEAR's train": (["train", "-q", "-c", "0.5", "rows.svm", "m"], models.read_liblinear),
    "LIBLINEAR's -v": (["train", "-v", "2", "rows.svm"], None),
    "certify": (["certify", "given", "rows.svm"], None),
    "predict": (["predict", "given", "rows.svm", "--output", "m"], Path.read_text),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_command(name, tmp_path, capsys, monkeypatch):
    """It ends as it would have, or with code 130; what it has written by then is whole."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "rows.svm", X, SIGNS)
    program = typer.main.get_command(app)
    arguments, read = OTHERS[name]

    def call(words=arguments):
        with pytest.raises(SystemExit) as left:
            program.main(words, prog_name="adasdca")
        return left.value.code or 0, capsys.readouterr().err

    assert call(["fit", "rows.svm", "--model", "given"])[0] == 0
    assert call()[0] == 0
    lines = lines_of(call)
    for _, line, turn in places(lines, ("cli", f"estimators{os.sep}_cv"), sample=60, both=False):
        (tmp_path / "m").unlink(missing_ok=True)
        code, said = at_line(call, line, turn, press)
        assert code in (0, 130), line
        assert "Traceback" not in said
        if (tmp_path / "m").exists():
            read(tmp_path / "m")
        else:
            assert code == 130 or read is None, line


# The engine's part


def test_kernels_heed_a_wish_and_a_time():
    problem = solve(X, SIGNS, loss="logistic", lam=LAM)
    scores = np.zeros(24)
    loss = adasdca.losses.Logistic()
    around = Interruption()
    with around.heeded():
        loss.value(scores, SIGNS)
        around.wish()
        with pytest.raises(KeyboardInterrupt):
            loss.value(scores, SIGNS)
        with around.opened():
            loss.value(scores, SIGNS)
        with pytest.raises(KeyboardInterrupt):
            _core.check()
    with Interruption().heeded(0.0), pytest.raises(_core.Expired):
        loss.value(scores, SIGNS)
    _core.check()
    assert problem.converged


def test_a_solve_ends_where_its_time_is_over_inside_a_plan(monkeypatch):
    """A plan that does not look at the clock is left at its next kernel.

    By a clock of the test's own, on which weeks pass in the plan; what heeds the time there asks
    for what is left of it afterwards.
    """
    clock, late, kernels = time.perf_counter, [0.0], []
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + late[0])

    def long(self, backend, *_):
        late[0] = 2e6
        with Interruption().heeded():
            pass
        while len(kernels) < 9:
            kernels.append(backend.combine(np.ones(24)))

    monkeypatch.setattr("adasdca.auto.second_order.SecondOrder.run", long)
    solution = solve(X, SIGNS, loss="logistic", lam=LAM, max_time=1e6, tol=0.0)
    assert solution.status is Status.TIME_LIMIT
    assert late[0]
    assert not kernels


def test_the_last_survey_is_given_up_if_it_is_slower_than_the_one_before(monkeypatch):
    """It shows what the plan did that was left, if surveys are quick."""
    limits, heeded = [], Interruption.heeded

    def noted(self, seconds=1e18):
        limits.append(seconds)
        return heeded(self, seconds)

    def late(*_):
        raise _core.Expired

    monkeypatch.setattr(Interruption, "heeded", noted)
    monkeypatch.setattr("adasdca.engine.loop.QUICK", 1e6)
    monkeypatch.setattr("adasdca.auto.second_order.SecondOrder.run", late)
    solution = solve(X, SIGNS, loss="logistic", lam=LAM, tol=0.0)
    assert len(solution.history) == 2
    assert limits[-1] == 1e6


def test_a_first_survey_that_takes_too_long(monkeypatch):
    """The model 0 has a certificate that needs no pass over the rows, if bounds allow for it."""
    monkeypatch.setattr("adasdca.solver.FIRST", 0.0)
    weight = 1.0 + np.arange(24.0)
    for loss in adasdca.losses.LOSSES:
        y = SIGNS if adasdca.losses.LOSSES[loss].kind == "classification" else TARGETS[:, 0]
        options = {"loss": loss, "lam": LAM, "sample_weight": weight, "fit_intercept": True}
        solution = solve(X, y, max_time=0.0, **options)
        assert solution.status is Status.TIME_LIMIT
        assert not solution.coef.any()
        assert not solution.dual_coef.any()
        least = certify(X, y, solution.coef, dual_coef=solution.dual_coef, **options)
        assert solution.primal == pytest.approx(least.primal)
        assert least.gap <= (1 + 1e-9) * solution.gap
        assert solution.dual <= solve(X, y, tol=1e-9, **options).primal
        again = solve(X, y, warm_start=solution, **options)
        assert again.converged
    above = solve(X, SIGNS, loss="hinge", lam=LAM, bounds=(1.0, None), max_time=0.0)
    assert (above.coef == 1.0).all()


def test_a_first_certificate_of_a_multinomial_model_that_takes_too_long(monkeypatch):
    monkeypatch.setattr("adasdca.multinomial.solver.FIRST", 0.0)
    options = {"n_classes": 3, "lam": LAM, "fit_intercept": True}
    solution = solve_multinomial(X, CLASSES, max_time=0.0, **options)
    assert solution.status is Status.TIME_LIMIT
    assert not solution.coef.any()
    assert not solution.dual_coef.any()
    whole = solve_multinomial(X, CLASSES, tol=1e-9, **options)
    assert solution.dual <= whole.primal <= solution.primal
    assert np.linalg.norm(whole.coef) <= solution.radius


def test_a_backend_that_takes_too_long_to_make(monkeypatch):
    """By one that is never done but looks at the clock, as all kernels do."""

    def endless(*_):
        while True:
            _core.check()

    monkeypatch.setattr("adasdca.solver.LocalBackend", endless)
    solution = solve(X, SIGNS, loss="logistic", lam=LAM, max_time=0.0)
    assert solution.status is Status.TIME_LIMIT
    assert not solution.coef.any()


@pytest.mark.parametrize("y", [SIGNS, CLASSES], ids=["two", "three"])
@pytest.mark.parametrize("seconds", [0.0, 1e6])
def test_margins_are_certified_after_ctrl_c_if_there_is_time(y, seconds, monkeypatch):
    monkeypatch.setattr("adasdca.estimators._solves.HURRY", seconds)
    rows, labels = np.repeat(X, 15_000, axis=0), np.repeat(y, 15_000)
    assert rows.size > 10**6

    def press(record):
        if record.gap < 1e-2 * record.primal:
            raise KeyboardInterrupt

    model = AdaSDCAClassifier(tol=0.0, callback=press, C=1e-5)
    with pytest.raises(KeyboardInterrupt):
        model.fit(rows, labels)
    sure = model.certified_margin(X) > 0
    assert sure.any() if seconds else not sure.any()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_time_is_that_of_the_whole_fit(monkeypatch):
    """By a clock of the test's own, on which weeks pass at a record of the second class."""
    clock, late, seen = time.perf_counter, [0.0], []
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + late[0])

    def callback(record):
        seen.append(record.epoch)
        late[0] = 2e6 * (seen.count(0) == 2)

    model = AdaSDCAClassifier(
        loss="hinge", method="sdca", tol=0.0, max_iter=2, max_time=1e6, callback=callback
    )
    model.fit(X, CLASSES)
    assert seen == [0, 1, 2, 0]
    assert model.status_ == [Status.EPOCH_LIMIT, Status.TIME_LIMIT, Status.TIME_LIMIT]
    check_fitted(model, CLASSES)


def slowly_encoded(monkeypatch, seconds):
    """Have labels encoded for so long, by a clock of the test's own."""
    clock, late = time.perf_counter, [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + late[0])

    def slow(y):
        late[0] = seconds
        return encoded(y)

    monkeypatch.setattr("adasdca.estimators._classifier.encoded", slow)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_time_of_a_fit_begins_with_it(monkeypatch):
    """From where the last one ended, what is left of the time is not asked how much it is."""
    model = AdaSDCAClassifier(loss="hinge", tol=0.0, max_iter=2, warm_start=True).fit(X, CLASSES)
    slowly_encoded(monkeypatch, 2e6)
    model.set_params(max_time=1e6).fit(X, CLASSES)
    assert set(model.status_) == {Status.TIME_LIMIT}
    check_fitted(model, CLASSES)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("share", "solved"), [(0.2, 3), (0.4, 0), (1.5, 0)])
def test_no_solve_is_begun_that_could_not_be_certified_in_time(monkeypatch, share, solved):
    """What comes before its first survey takes twice as long as what came before the solves."""
    begun = []

    def counted(*args, **options):
        begun.append(options["max_time"])
        return solve(*args, **options)

    monkeypatch.setattr("adasdca.estimators._solves.solve", counted)
    slowly_encoded(monkeypatch, share * 1e6)
    model = AdaSDCAClassifier(loss="hinge", max_time=1e6).fit(X, CLASSES)
    assert len(begun) == solved
    assert model.converged_ == (solved > 0)
    if not solved:
        assert [c.primal for c in model.certificate_] == [1.0] * 3
    check_fitted(model, CLASSES)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_classes_that_no_time_is_left_for_keep_the_bounds():
    bounds = (0.5, [1.0, 2.0] + [3.0] * (X.shape[1] - 2))
    model = AdaSDCAClassifier(loss="hinge", bounds=bounds, fit_intercept=False, max_time=0.0)
    model.fit(X, CLASSES)
    lam = 1 / len(X)
    for k, label in enumerate(model.classes_):
        y = np.where(label == CLASSES, 1.0, -1.0)
        assert (model.coef_[k] >= 0.5).all()
        proof = certify(X, y, model.coef_[k], loss="hinge", lam=lam, bounds=bounds)
        assert model.certificate_[k].primal == pytest.approx(proof.primal, rel=1e-12)
        assert model.history_[k].gap[-1] == model.dual_gap_[k]


def test_solves_of_a_callback_are_calls_of_their_own():
    inner = []

    def callback(record):
        inner.append(solve(X, SIGNS, loss="logistic", lam=LAM, callback=lambda _: True))

    solution = solve(X, SIGNS, loss="squared", lam=LAM, callback=callback)
    assert solution.converged
    assert {s.status for s in inner} == {Status.INTERRUPTED}


def test_a_handler_of_the_program_is_asked():
    """One that raises nothing stops nothing, and it is back in its place afterwards."""
    pressed = []
    before = signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        solution = solve(X, SIGNS, loss="squared", lam=LAM, callback=lambda _: press())
        assert solution.converged
        assert pressed
        assert signal.getsignal(signal.SIGINT) is not before
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_has_no_ctrl_c():
    found = []
    thread = threading.Thread(
        target=lambda: found.append(solve(X, SIGNS, loss="logistic", lam=LAM))
    )
    with interruption() as around:
        around.wish()
        thread.start()
        thread.join()
    assert found[0].converged
