"""Threads that cannot be started: the work is done by those that can, with the same result."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")

#: Each thread asks for a stack of this size, by the limit under which the program begins.
STACK = 1 << 30

PROGRAM = f"""
import resource, sys
import numpy as np
import adasdca
from adasdca import _core

_core.set_thread_work(1.0)
rng = np.random.default_rng(0)
X, w = rng.standard_normal((20_000, 40)), rng.standard_normal(40)
y = np.sign(X @ w)

def solved(threads):
    return adasdca.solve(X, y, loss="logistic", lam=1e-4, tol=1e-8, n_threads=threads)

one = solved(1)
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
room = int(float(sys.argv[1]) * {STACK}) + {STACK // 4}
resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.RLIM_INFINITY))
many = solved(6)
assert many.converged
assert np.array_equal(one.coef, many.coef) and one.gap == many.gap
import threading
try:
    some = [threading.Thread(target=lambda: gate.wait()) for _ in range(5)]
    gate = threading.Event()
    for thread in some:
        thread.start()
    print("started")
except RuntimeError:
    print("refused")
finally:
    gate.set()
"""


def test_sums_of_many_features_are_the_same_on_any_number_of_threads():
    """Parts are added up by all threads, in one order."""
    program = """
import numpy as np, scipy.sparse as sp
from adasdca import _core
from adasdca.backends.cpu import LocalBackend
from adasdca.problem.problem import Problem

_core.set_thread_work(1.0)
rng = np.random.default_rng(0)
X = sp.random(40_000, 3000, 0.02, "csr", random_state=0)
problem = Problem.checked(X, np.sign(rng.normal(size=40_000)), loss="logistic", lam=1e-4)
duals = rng.normal(size=40_000)
counts = (1, 2, 3, 7) * 5
found = [LocalBackend(problem, threads).combine(duals) for threads in counts]
assert all(np.array_equal(found[0], each) for each in found)
np.testing.assert_allclose(found[0], X.T @ duals / problem.mu, rtol=1e-10, atol=1e-10)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("stacks", "outcome"), [(0, "refused"), (2, "refused"), (8, "started")])
def test_fewer_threads_do_the_same(stacks, outcome):
    import resource

    def limit():
        resource.setrlimit(resource.RLIMIT_STACK, (STACK, resource.RLIM_INFINITY))

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(stacks)],
        preexec_fn=limit,
        env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **environment()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # Whether threads could be started is seen by those of Python.
    assert done.stdout.strip() == outcome


def environment():
    import os

    return {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
