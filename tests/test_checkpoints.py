"""Checkpoints: a solve that was killed goes on, on local rows in the bits of one that was not."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
from adasdca.auto.costs import Costs
from adasdca.engine import checkpoints
from adasdca.files import FileError
from adasdca.newton.gradients import Gradients
from host_rows import host_backend
from numpy_backend import TwoParts
from parted import three_parts


def problem(n=400, d=30, sparse=True, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, 0.3, "csr", random_state=rng)
    y = np.where(X @ rng.normal(size=d) + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    return (X if sparse else X.toarray()), y


class Killed(BaseException):
    """Ends a solve as a signal would, with no time for anything."""


def cut(path, at, *args, **options):
    """Solve until so many surveys are done, and leave the checkpoint of the last but one."""
    seen = []

    def look(record):
        seen.append(record)
        if len(seen) == at:
            raise Killed

    with pytest.raises(Killed):
        adasdca.solve(*args, callback=look, checkpoint=path, checkpoint_every=0.0, **options)
    assert path.exists()
    return seen


#: Method, loss, intercept; quartz fits no intercept and needs a smooth loss.
CASES = [
    (method, loss, intercept)
    for method in adasdca.methods.METHODS
    for loss in ("logistic", "hinge")
    for intercept in (False, True)
    if method != "quartz" or (loss == "logistic" and not intercept)
]


@pytest.mark.parametrize(("method", "loss", "intercept"), CASES)
def test_the_bits_of_an_undisturbed_run(tmp_path, monkeypatch, method, loss, intercept):
    # Small problems go second-order at once; here epochs come first.
    monkeypatch.setattr("adasdca.auto.policy.Policy.small", 0)
    X, y = problem()
    options = {"loss": loss, "lam": 1e-3, "tol": 1e-7, "max_epochs": 12, "random_state": 3}
    options |= {"method": method, "fit_intercept": intercept}
    calm = adasdca.solve(X, y, **options)
    path = tmp_path / "checkpoint"
    at = max(2, len(calm.history) // 2)
    cut(path, at, X, y, **options)
    resumed = adasdca.solve(X, y, checkpoint=path, **options)
    assert resumed.status is calm.status
    for name in ("coef", "dual_coef"):
        assert np.array_equal(getattr(resumed, name), getattr(calm, name))
    assert resumed.intercept == calm.intercept
    assert resumed.certificate == calm.certificate
    assert np.array_equal(resumed.history.gap, calm.history.gap)
    assert resumed.n_updates == calm.n_updates
    # It is removed once the solve is done, and kept where another one can go on.
    assert path.exists() == (calm.status is adasdca.Status.EPOCH_LIMIT)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_iterations_that_were_cut_go_on_in_the_same_bits(tmp_path, monkeypatch, wide, intercept):
    """Of a squared loss, in unknowns of the rows and in those of the features."""
    whole = Gradients.run

    def few(self, accuracy, deadline, most, *rest):
        return whole(self, accuracy, deadline, 5, *rest)

    monkeypatch.setattr(Gradients, "run", few)
    monkeypatch.setattr(Costs, "equations", lambda *_: {"iterations": 1.0})
    monkeypatch.setattr("adasdca.auto.policy.Policy.small", 0)
    X, y = problem(60, 200) if wide else problem(200, 60)
    y = y + X @ np.ones(X.shape[1])
    options = {"loss": "squared", "lam": 1e-6 if wide else 1e-3, "tol": 1e-9}
    options |= {"random_state": 3, "fit_intercept": intercept}
    calm = adasdca.solve(X, y, **options)
    phases = [phase for phase in calm.phases if phase.name == "Newton"]
    assert sum(phase.rounds for phase in phases) > 2
    for at in range(2, len(calm.history) + 1):
        path = tmp_path / f"checkpoint {at}"
        cut(path, at, X, y, **options)
        resumed = adasdca.solve(X, y, checkpoint=path, **options)
        assert np.array_equal(resumed.coef, calm.coef)
        assert resumed.certificate == calm.certificate


def test_a_process_that_is_killed(tmp_path):
    script = """
import os, signal, sys, numpy as np, adasdca
from test_checkpoints import problem
X, y = problem(sparse=False)
kill = sys.argv[2] == "kill"
seen = []
def look(record):
    seen.append(record)
    if kill and len(seen) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
found = adasdca.solve(X, y, loss="smoothed_hinge", lam=1e-4, tol=1e-9, method="adasdca+",
                      max_epochs=40, checkpoint=sys.argv[1], checkpoint_every=0, callback=look,
                      random_state=1)
np.savez(sys.argv[3], coef=found.coef, gap=found.gap, surveys=len(seen))
"""
    here = Path(__file__).parent
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [str(here), *(os.path.abspath(path) for path in given if path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}

    def run(name, kill, out):
        command = [sys.executable, "-c", script, str(tmp_path / name), kill, str(tmp_path / out)]
        return subprocess.run(command, env=environment, cwd=tmp_path, check=False).returncode

    assert run("calm", "go", "calm.npz") == 0
    assert run("cut", "kill", "none.npz") == -signal.SIGKILL
    assert run("cut", "go", "resumed.npz") == 0
    calm, resumed = np.load(tmp_path / "calm.npz"), np.load(tmp_path / "resumed.npz")
    assert np.array_equal(calm["coef"], resumed["coef"])
    assert calm["gap"] == resumed["gap"]
    assert resumed["surveys"] < calm["surveys"]


def elsewhere(where, folder):
    """Rows, targets and the options by which they are not local rows."""
    X, y = problem(sparse=where != "on a disk")
    if where == "on a disk":
        np.save(folder / "X.npy", X)
        return np.load(folder / "X.npy", mmap_mode="r"), y, {"memory_limit": "5 MiB"}
    backends = {"in parts": three_parts, "on a device": host_backend, "contract alone": TwoParts}
    return X, y, {"backend": backends[where]}


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("where", ["in parts", "on a disk", "on a device", "contract alone"])
def test_rows_elsewhere_go_on_from_a_point(tmp_path, monkeypatch, where, loss):
    X, y, options = elsewhere(where, tmp_path)
    options |= {"loss": loss, "lam": 1e-3, "tol": 1e-8, "fit_intercept": True}
    calm = adasdca.solve(X, y, **options)
    path, points = tmp_path / "checkpoint", []
    write = checkpoints.Checkpoint._write

    def kill(self, state):
        write(self, state)
        points.append(state["point"])
        if len(points) == 2:  # the first is w = 0
            raise Killed

    monkeypatch.setattr(checkpoints.Checkpoint, "_write", kill)
    with pytest.raises(Killed):
        adasdca.solve(X, y, checkpoint=path, checkpoint_every=0.0, **options)
    monkeypatch.undo()
    assert np.any(points[-1]["w"])
    resumed = adasdca.solve(X, y, checkpoint=path, **options)
    assert resumed.converged
    assert resumed.history.gap[0] < calm.history.gap[0]
    assert abs(resumed.primal - calm.primal) <= resumed.gap + calm.gap + 1e-14 * calm.primal
    assert not path.exists()


def test_another_problem_is_not_resumed(tmp_path):
    X, y = problem()
    path = tmp_path / "checkpoint"
    options = {"loss": "logistic", "lam": 1e-3, "tol": 1e-9, "method": "adasdca+"}
    cut(path, 3, X, y, **options)
    with pytest.raises(FileError, match="of another problem"):
        adasdca.solve(X, -y, checkpoint=path, **options)
    with pytest.raises(FileError, match="other options"):
        adasdca.solve(X, y, checkpoint=path, **options | {"tol": 1e-8})
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(FileError):
        adasdca.solve(X, y, checkpoint=path, **options)
    with path.open("wb") as file:
        np.savez(file, text=np.array("{}"))
    with pytest.raises(FileError, match="no checkpoint, or damaged"):
        adasdca.solve(X, y, checkpoint=path, **options)
    path.unlink()
    with pytest.raises(ValueError, match="checkpoint_every = -1"):
        adasdca.solve(X, y, checkpoint=path, checkpoint_every=-1, **options)


def test_a_place_where_no_file_can_be_is_told_before_the_solve(tmp_path):
    X, y = problem()
    seen = []
    for path, message in [
        (tmp_path / "none" / "checkpoint", "the folder of .* does not exist; make it first"),
        (tmp_path, "is a folder; name a file in it"),
    ]:
        with pytest.raises(OSError, match=message):
            adasdca.solve(X, y, loss="logistic", lam=1e-3, checkpoint=path, callback=seen.append)
    assert seen == []
