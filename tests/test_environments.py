"""Certificates hold whatever the process around them is set to."""

import functools
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import environments
from adasdca import certify, solve
from test_core import RUNNABLE

#: Of sums of a few hundred numbers of one sign.
VALUES = 1e-13
#: Options of the interpreter, arguments of the script, variables.
ENVIRONMENTS = {
    "plain": ([], [], {}),
    "optimized": (["-OO"], [], {}),
    "errors raised": ([], ["raise"], {}),
    "one BLAS thread": ([], [], {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}),
    **{f"level {level}": ([], [], {"ADASDCA_ISA": level}) for level in RUNNABLE},
}
if sys.platform == "linux" and platform.machine() == "x86_64":
    ENVIRONMENTS["flushed to zero"] = ([], ["flush"], {})


def run_in(name):
    options, arguments, variables = ENVIRONMENTS[name]
    script = str(Path(environments.__file__))
    run = subprocess.run(
        [sys.executable, "-W", "error", *options, script, *arguments],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@functools.cache
def tight(number):
    """Return a lower and an upper bound of the optimum, from this process."""
    loss, options = environments.PROBLEMS[number]
    X, y = environments.make(number)
    sol = solve(X, y, loss=loss, tol=1e-10, random_state=0, **options)
    return sol.dual, sol.primal


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_certificates_hold(name):
    found = run_in(name)
    assert found["optimize"] == (2 if name == "optimized" else 0)
    if name.startswith("level"):
        assert f"level {found['level']}" == name
    for number, (loss, options) in enumerate(environments.PROBLEMS):
        sol = found["solutions"][number]
        lower, upper = tight(number)
        assert sol["status"] == "converged"
        assert sol["gap"] <= environments.TOL * sol["primal"]
        # Values of P carry roundings of their own, which gaps do not.
        assert sol["primal"] >= lower * (1 - VALUES)
        assert sol["primal"] - sol["gap"] <= upper * (1 + VALUES)
        assert sol["primal"] - sol["certified"] <= upper * (1 + VALUES)
        # The same point, certified in this process.
        X, y = environments.make(number)
        coef = np.array(sol["coef"])
        here = certify(X, y, coef, intercept=sol["intercept"], loss=loss, **options)
        np.testing.assert_allclose(sol["primal"], here.primal, rtol=VALUES)
        assert here.dual <= sol["primal"]


def test_underflow_is_no_error():
    """Far on the right side of its margin a row's dual variable is next to nothing."""
    X, y = np.array([[709.0], [-707.0]]), np.array([1.0, -1.0])
    with np.errstate(all="raise"):
        found = certify(X, y, [1.0], loss="logistic", lam=1e-3)
    assert found.primal == pytest.approx(5e-4)


def test_a_thread_that_outlives_the_process_is_not_taken_for_a_leak():
    """What a daemon thread sees is never freed; its loss is a compiled object."""
    program = (
        "import threading, adasdca\n"
        "loss, begun = adasdca.SmoothedHinge(gamma=0.3), threading.Event()\n"
        "def wait(kernel):\n"
        "    begun.set()\n"
        "    threading.Event().wait()\n"
        "threading.Thread(target=wait, args=(loss.kernel,), daemon=True).start()\n"
        "begun.wait()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""


@pytest.mark.parametrize("module", ["adasdca", "adasdca.cli.app"])
def test_what_is_not_asked_for_is_not_imported(module):
    """It takes as long as all the rest: completion at the shell waits for it."""
    line = f"""import sys, {module}
print(*{{"sklearn", "scipy.optimize", "matplotlib", "polars"}} & set(sys.modules))"""
    run = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    assert run.stdout == "\n"


@pytest.mark.parametrize("module", ["estimators", "onnx", "plotting", "plugins", "sklearn"])
def test_modules_are_there_without_an_import_of_their_own(module):
    line = f"import adasdca; print(adasdca.{module}.__name__)"
    run = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [f"adasdca.{module}"]
