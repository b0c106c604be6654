"""How solves end: every end is certified, prompt and told, and no end depends on the threads."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import reference as ref
from adasdca import AdaSDCAPlus, Status, _core, certify, solve
from adasdca.auto.schedule import AutoSchedule
from adasdca.backends.cpu import LocalBackend
from adasdca.duality.certificate import Certificate, CertificateError
from adasdca.engine.loop import Loop
from adasdca.methods import METHODS
from adasdca.newton.multipliers import Multipliers
from cases import LOSSES, SMOOTH, make_data

LAM = 0.1


def problem(loss, **options):
    X, y = make_data(loss, n=60)
    return X, y, {"loss": loss, "lam": LAM, "random_state": 0, **options}


def check_certificate(solution, X, y, loss, *, lam, fit_intercept=False, **_):
    """P, D, the gap and the radius once more, from nothing but the point, by the oracle."""
    oracle = ref.Problem(X, y, loss, lam=lam, fit_intercept=fit_intercept)
    if fit_intercept:
        assert abs(solution.dual_coef.sum()) <= 1e-10 * np.abs(solution.dual_coef).sum()
        oracle.A[:, -1] = 0.0  # the constant feature serves the ascent, not the certificate
    assert solution.primal == pytest.approx(oracle.primal(solution.coef, solution.intercept))
    value = oracle.dual(solution.dual_coef)
    scale = abs(value) + abs(solution.primal)
    # The bound is below D by what rounding could have done to it, and no more.
    assert value - 1e-9 * scale <= solution.dual <= value + 1e-13 * scale
    assert solution.primal - solution.dual >= solution.gap >= 0
    assert solution.radius == pytest.approx(np.sqrt(2 * solution.gap / lam))


def check_history(solution):
    history = solution.history
    columns = [history.epoch, history.updates, history.seconds, history.primal, history.dual,
               history.gap, history.active]  # fmt: skip
    assert all(len(column) == len(history) for column in columns)
    assert (history.epoch == np.arange(len(history))).all()
    assert (np.diff(history.updates) >= 0).all()
    assert (np.diff(history.seconds) >= 0).all()
    apart = history.primal - history.dual
    assert (apart >= history.gap).all()
    np.testing.assert_allclose(history.gap, apart, rtol=1e-9, atol=1e-9 * history.primal.max())
    assert ((history.active >= 0) & (history.active <= len(solution.dual_coef))).all()
    assert (solution.n_epochs, solution.n_updates) == (history.epoch[-1], history.updates[-1])
    assert solution.gap == history.gap.min()


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("end", ["tol", "epochs", "time", "callback", "interrupt"])
def test_ends(end, method, fit_intercept, monkeypatch):
    if method == "quartz" and fit_intercept:
        pytest.skip("quartz fits no intercept")
    seen = []
    clock, late = time.perf_counter, [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + late[0])

    def callback(record):
        seen.append(record)
        if end == "interrupt" and len(seen) == 3:
            raise KeyboardInterrupt
        if end == "time" and len(seen) == 3:
            late[0] = 2e6
        return end == "callback" and len(seen) == 3

    X, y, options = problem("logistic", tol=1e-3 if end == "tol" else 0.0, callback=callback)
    if method == "auto":
        # Large enough for epochs to come first.
        X, y = np.tile(X, (40, 8)), np.tile(y, 40)
    options |= {"fit_intercept": fit_intercept, "method": method}
    options |= {"max_epochs": 2} if end == "epochs" else {}
    # Weeks, which pass at the third record and not before.
    options |= {"max_time": 1e6} if end == "time" else {}
    solution = solve(X, y, **options)
    expected = {
        "tol": Status.CONVERGED,
        "epochs": Status.EPOCH_LIMIT,
        "time": Status.TIME_LIMIT,
        "callback": Status.INTERRUPTED,
        "interrupt": Status.INTERRUPTED,
    }[end]
    assert solution.status is expected
    assert solution.converged == (end == "tol")
    assert (solution.gap <= 1e-3 * solution.primal) or end != "tol"
    check_certificate(solution, X, y, **options)
    check_history(solution)
    assert len(seen) == 3 or end in ("tol", "epochs")
    assert [record.gap for record in seen] == list(solution.history.gap[: len(seen)])


@pytest.mark.parametrize("status", Status)
def test_messages(status):
    assert status.message.endswith(".")
    if status is not Status.CONVERGED:
        assert "raise" in status.message or "warm_start" in status.message


def test_what_a_solution_shows():
    X, y, options = problem("hinge", max_epochs=2, tol=0.0, method="sdca-perm")
    solution = solve(X, y, **options)
    assert repr(solution).startswith("Solution(epoch limit: primal ")
    for shown in (f"{solution.gap:.3g}", "2 epochs", "120 updates", "n=60", "d=7"):
        assert shown in repr(solution)
    assert str(solution) == f"{solution!r}\n{solution.status.message}"
    assert repr(solution.history).startswith("History(3 surveys, gap ")
    assert solution.relative_gap == solution.gap / solution.primal


@pytest.mark.parametrize("loss", LOSSES)
def test_no_epochs(loss):
    X, y, options = problem(loss, max_epochs=0)
    solution = solve(X, y, **options)
    assert solution.status is Status.EPOCH_LIMIT
    assert not solution.coef.any()
    assert not solution.dual_coef.any()
    assert (solution.n_epochs, solution.n_updates, len(solution.history)) == (0, 0, 1)
    check_certificate(solution, X, y, **options)
    assert solve(X, y, **{**options, "max_time": 0.0, "max_epochs": 9}).primal == solution.primal


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loss", LOSSES)
def test_no_tolerance(loss, method, fit_intercept):
    """With tol=0 a solve ends by itself at the level of rounding."""
    if method == "quartz" and (fit_intercept or loss not in SMOOTH):
        pytest.skip("quartz fits no intercept and needs a smooth loss")
    X, y, options = problem(loss, tol=0.0, max_epochs=20_000, fit_intercept=fit_intercept)
    solution = solve(X, y, method=method, **options)
    assert solution.status in (Status.CONVERGED, Status.STALLED)
    assert solution.relative_gap < 1e-11
    check_certificate(solution, X, y, **options)
    check_history(solution)
    if method not in ("quartz", "auto") and not fit_intercept:
        # Exact steps never lower the dual.
        fall = -np.diff(solution.history.dual).min()
        assert fall <= 1e-13 * np.abs(solution.history.primal).max()


@pytest.mark.parametrize("method", ["sdca", "sdca-perm", "iprox-sdca", "adasdca+"])
@pytest.mark.parametrize("epoch", [0.5, 1.0, 2.0])
def test_updates_are_counted(method, epoch):
    X, y, options = problem("squared", tol=0.0, max_epochs=4)
    if method == "adasdca+":
        method = AdaSDCAPlus(epoch=epoch)
    solution = solve(X, y, method=method, **options)
    assert solution.n_updates == 4 * 60 * (epoch if isinstance(method, AdaSDCAPlus) else 1)


def test_what_is_returned_is_the_point_that_converged(monkeypatch):
    """One before may have a smaller gap, of a smaller objective, which is a larger part of it."""
    X, y, options = problem("logistic", tol=0.00995, method="sdca", max_epochs=5)
    numbers = iter([(100.0, 99.0, 1.0, 0.1), (100.9, 99.8995, 1.0005, 0.1)])
    survey = LocalBackend.survey

    def told(*args):
        return replace(survey(*args), certificate=Certificate(*next(numbers)))

    monkeypatch.setattr(LocalBackend, "survey", told)
    found = solve(X, y, **options)
    assert found.status is Status.CONVERGED
    assert found.gap <= options["tol"] * found.primal


def test_a_point_beyond_double_precision_loses_none_before_it(monkeypatch):
    X, y, options = problem("logistic", tol=0.0, method="sdca", max_epochs=5)
    survey, calls = LocalBackend.survey, []

    def told(*args):
        calls.append(args)
        if len(calls) == 3:
            raise CertificateError
        return survey(*args)

    monkeypatch.setattr(LocalBackend, "survey", told)
    found = solve(X, y, **options)
    assert found.status is Status.STALLED
    assert len(found.history) == 2
    assert found.gap == found.history.gap[-1]


def test_a_failing_callback_is_not_swallowed():
    def callback(record):
        raise RuntimeError("mine")

    X, y, options = problem("hinge")
    with pytest.raises(RuntimeError, match="mine"):
        solve(X, y, callback=callback, **options)


INTERRUPTED = """
import sys
import numpy as np, scipy.sparse as sp
from adasdca import _core, solve

_core.set_thread_work(1.0)  # these solves are too small for a thread
method, storage, path = sys.argv[1:]
rng = np.random.default_rng(0)
n, d = 30_000, 40
X = rng.standard_normal((n, d), dtype=np.float32)
y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
started = []

def tell(record):
    if not started:
        started.append(print("started", flush=True))

solution = solve(
    sp.csr_matrix(X) if storage == "csr" else X, y, loss="logistic", lam=1e-9, tol=0.0,
    method=method, max_epochs=10**9, callback=tell, n_threads=2, random_state=0,
)
np.savez(path, X=X, y=y, coef=solution.coef, dual_coef=solution.dual_coef,
         values=[solution.primal, solution.dual, solution.gap, solution.n_updates])
print(solution.status.name, flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for a child process on Windows")
@pytest.mark.parametrize(
    ("method", "storage"), [("sdca", "dense"), ("quartz", "csr"), ("adasdca", "csr")]
)
def test_ctrl_c(method, storage, tmp_path):
    """A process is interrupted while it computes: methods that are far from any end by then.

    That no one waits for the end of an epoch shows in Algorithm 1: its first one takes n² steps.
    """
    path = tmp_path / "solution.npz"
    command = [sys.executable, "-c", INTERRUPTED, method, storage, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "started\n"
        time.sleep(0.1)  # to be inside an epoch most of the time; any moment will do
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "INTERRUPTED\n"
        assert child.wait() == 0
    with np.load(path) as saved:
        primal, dual, gap, updates = saved["values"]
        oracle = ref.Problem(saved["X"], saved["y"], "logistic", lam=1e-9)
        assert primal == pytest.approx(oracle.primal(saved["coef"]), rel=1e-9)
        assert dual == pytest.approx(oracle.dual(saved["dual_coef"]), rel=1e-9, abs=1e-9 * primal)
        assert 0 <= gap <= primal - dual
        assert updates < len(saved["y"]) or method != "adasdca"


@pytest.mark.parametrize("method", ["sdca-perm", "adasdca", "adasdca+", "auto"])
def test_time_limit_inside_an_epoch(method, monkeypatch):
    # The second-order steps of `auto` would be there before.
    monkeypatch.setattr(AutoSchedule, "_second_order_pays", lambda *_: False)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 30))
    y = np.where(X[:, 0] + rng.normal(size=len(X)) > 0, 1.0, -1.0)
    options = {"loss": "hinge", "lam": 1e-9, "method": method, "max_time": 0.1, "random_state": 0}
    solution = solve(X, y, tol=0.0, max_epochs=10**9, **options)
    assert solution.status is Status.TIME_LIMIT
    # An epoch of Algorithm 1 takes n² steps, seconds on any machine, and was not waited for.
    assert solution.n_updates < len(y) or method != "adasdca"
    check_certificate(solution, X, y, **options)


def test_python_goes_on_during_a_solve():
    """The kernels let go of the interpreter: another thread ticks, and stops a single call."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100_000, 5)), rng.normal(size=100_000)
    begun, ticks = threading.Event(), []

    def tick():
        begun.wait()
        while len(ticks) < 5:
            time.sleep(0.002)
            ticks.append(len(ticks))
        signal.raise_signal(signal.SIGINT)

    ticker = threading.Thread(target=tick)
    ticker.start()
    # An epoch of Algorithm 1, one call, would take n² operations, and there is no other end.
    solution = solve(
        X, y, loss="squared", lam=1e-6, tol=0.0, method="adasdca", max_epochs=10**9,
        callback=lambda record: begun.set(),
    )  # fmt: skip
    ticker.join()
    assert solution.status is Status.INTERRUPTED
    assert solution.n_updates < len(y)


def same_bits(one, other):
    np.testing.assert_array_equal(one.coef, other.coef)
    np.testing.assert_array_equal(one.dual_coef, other.dual_coef)
    for name in ("epoch", "updates", "primal", "dual", "gap", "active"):
        np.testing.assert_array_equal(getattr(one.history, name), getattr(other.history, name))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_the_same_seed_gives_the_same_bits(loss, method):
    """Whatever the number of threads, and whoever solves at the same time; another seed differs."""
    X, y = make_data(loss, n=5000, seed=3)
    options = {"loss": loss, "lam": 1e-3, "tol": 1e-12, "method": method}
    options["max_epochs"] = 1 if method == "adasdca" else 4
    alone = solve(X, y, random_state=7, **options)
    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(solve, X, y, random_state=7, n_threads=k, **options) for k in (1, 2, 3)]
        for run in runs:
            same_bits(run.result(), alone)
    if alone.n_updates:  # `auto` may begin and end by Newton steps, in which there is no chance
        assert (solve(X, y, random_state=8, **options).coef != alone.coef).any()
    else:
        assert method == "auto"


@pytest.mark.parametrize("left_by", [_core.Expired, KeyboardInterrupt])
def test_what_rounds_have_certified_is_not_lost(left_by, monkeypatch):
    """They are left in the middle of a long kernel, and a survey would take too long."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 60))
    y = np.where(X[:, 0] + rng.normal(size=400) > 0, 1.0, -1.0)
    seen, inner = [], Multipliers._certified

    def certified(self, *args):
        if len(seen) == 3:
            raise left_by
        found = inner(self, *args)
        seen.append(found[1])
        return found

    monkeypatch.setattr(Multipliers, "_certified", certified)
    monkeypatch.setattr("adasdca.engine.loop.QUICK", 0.0)
    options = {"loss": "hinge", "lam": 1e-3, "fit_intercept": True, "tol": 1e-10}
    found = solve(X, y, **options, random_state=0)
    assert found.status is (Status.TIME_LIMIT if left_by is _core.Expired else Status.INTERRUPTED)
    assert found.gap == min(each.gap for each in seen)
    again = certify(
        X, y, found.coef, intercept=found.intercept, dual_coef=found.dual_coef,
        loss="hinge", lam=1e-3, fit_intercept=True,
    )  # fmt: skip
    assert again.gap <= 1.01 * found.gap + again.rounding


def test_a_survey_has_its_time_after_a_plan(monkeypatch):
    """What a plan does in the last seconds would be lost where no survey sees it."""
    X, y, options = problem("logistic")
    told, look, ascend = [], Loop._look, LocalBackend.ascend

    def slow(loop, seconds):
        seen = look(loop, seconds)
        loop._duration = 700.0
        return seen

    def ascended(backend, plan, seconds):
        told.append(seconds)
        return ascend(backend, plan, seconds)

    monkeypatch.setattr(Loop, "_look", slow)
    monkeypatch.setattr(LocalBackend, "ascend", ascended)
    solve(X, y, method="sdca", max_time=1000.0, max_epochs=3, tol=0.0, **options)
    assert len(told) == 3
    assert max(told) <= 300.0


def test_a_stalled_model_tells_what_its_last_digits_cost():
    """Rows are interpolated but for the rounding of coefficients: most of what is left to gain."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 35))
    y = X @ rng.standard_normal(35)
    problem = {"loss": "absolute", "lam": 1e-14}
    found = solve(X, y, **problem, tol=1e-6, random_state=0)
    assert found.status is Status.STALLED
    assert found.certificate.rounding < 1e-3 * found.gap < found.gap <= found.digits
    assert "within the last digits" in found.message
    moved = np.nextafter(found.coef, np.where(rng.random(35) < 0.5, np.inf, -np.inf))
    other = certify(X, y, moved, dual_coef=found.dual_coef, **problem)
    assert found.digits / 3 < other.gap - found.gap < 3 * found.digits


def test_a_solve_that_arrives_asks_for_no_digits():
    X = np.eye(3)
    found = solve(X, [1.0, -1.0, 1.0], loss="hinge", lam=0.1, tol=1e-6)
    assert found.converged
    assert found.digits == 0
