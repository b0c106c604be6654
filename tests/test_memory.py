"""What a solve adds to memory at its peak: the packed rows, a few vectors, and no copy of X.

Measured in a process of its own: the greatest resident size after the solve less the one before it.
"""

import json
import subprocess
import sys

import numpy as np
import pytest

import adasdca

pytest.importorskip("resource", reason="no measure of resident memory here")

MEGABYTE = 1 << 20
#: n, d and entries a row: X in single precision is 64 MB (dense) or 128 MB (CSR).
N, D, ROW = 40_000, 400, 400

PROGRAM = """
import json, os, resource, sys
# As many buffers of BLAS as there are processors are no business of a solve.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[library + "_NUM_THREADS"] = "1"
import numpy as np, scipy.sparse as sp
from adasdca import solve
from adasdca.backends.cpu import LocalBackend

setting = json.loads(sys.argv[1])
n, d, row, kind, runs = (setting[name] for name in ("n", "d", "row", "kind", "runs"))
rng = np.random.default_rng(0)

def peak():
    # Where there is one, the figure of this program alone: ru_maxrss begins, through fork and exec,
    # with the size of the parent, behind which a whole copy of X could hide.
    if sys.platform == "linux":
        with open("/proc/self/status") as status:
            return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else 1024 * size

# Filled piece by piece, so that nothing but X itself is ever held.
if kind == "csr":
    values, columns = np.empty(n * row, np.float32), np.empty(n * row, np.int32)
    for i in range(n):
        values[i * row : (i + 1) * row] = rng.random(row, dtype=np.float32) - 0.5
        columns[i * row : (i + 1) * row] = np.arange(row, dtype=np.int32) * (d // row)
    X = sp.csr_matrix((values, columns, np.arange(0, n * row + 1, row, np.int32)), shape=(n, d))
else:
    X = np.empty((n, d), np.float32, order="F" if kind == "fortran" else "C")
    for i in range(n):
        X[i] = rng.random(d, dtype=np.float32) - 0.5
y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
how = {"loss": "smoothed_hinge", "lam": 1e-3, "tol": 0.0, "random_state": 0}
# What a first solve needs once and for all: code, buffers of the allocator.
for options in runs:
    solve(X[:500], y[:500], max_epochs=2, **how, **options)

packed = 0
def remember(self, *arguments, ascend=LocalBackend.ascend):
    global packed
    updates = ascend(self, *arguments)
    packed = self.packed_bytes
    return updates
LocalBackend.ascend = remember

before = peak()
found = []
for options in runs:
    packed = 0
    solution = solve(X, y, max_epochs=3, **how, **options)
    assert solution.n_epochs == 3
    found.append({"growth": peak() - before, "packed": packed})
print(json.dumps(found))
"""


def measure(kind, *runs):
    """The growth of the peak by the end of each run, all of them in one process."""
    setting = {"n": N, "d": D, "row": ROW, "kind": kind, "runs": runs}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, json.dumps(setting)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


#: Twenty vectors of n and forty of d, in double precision, and what allocators round up.
VECTORS = 8 * (20 * N + 40 * D)
SLACK = 12 * MEGABYTE
DENSE, SPARSE = 4 * N * D, 8 * N * ROW


METHODS = [
    ("iprox-sdca", False),
    ("quartz", False),
    ("adasdca+", False),
    ("adasdca+", True),
    ("auto", True),
]


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_no_copy_of_x(kind):
    """One after the other: a copy would stand out above what those before it have taken."""
    runs = [{"method": m, "fit_intercept": b, "pack": False} for m, b in METHODS]
    if kind == "dense":
        runs.append({"pack": False, "n_threads": 4})
    for setting, found in zip(runs, measure(kind, *runs), strict=True):
        assert found["packed"] == 0
        most = VECTORS + SLACK + (4 * MEGABYTE if "n_threads" in setting else 0)
        assert found["growth"] < most < (DENSE if kind == "dense" else SPARSE) / 2, setting


@pytest.mark.parametrize("pack", [True, "auto"])
def test_packed_rows_are_the_only_copy(pack):
    (found,) = measure("csr", {"pack": pack})
    assert SPARSE <= found["packed"] <= SPARSE + 80 * N
    assert found["packed"] / 2 < found["growth"] < found["packed"] + VECTORS + SLACK


def test_a_copy_would_be_seen():
    """Fortran order has to be copied: one copy, and the measure finds it."""
    (found,) = measure("fortran", {})
    assert 0.9 * DENSE < found["growth"] < DENSE + VECTORS + SLACK


ON_DISK = """
import sys, numpy as np, adasdca
from adasdca.backends.stored import check_limit
X, limit = np.load(sys.argv[1], mmap_mode="r"), check_limit(sys.argv[2])
y = np.load(sys.argv[3])

def peak():
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

options = {"loss": "logistic", "lam": 1 / len(y), "fit_intercept": True, "memory_limit": limit}
few = np.load(sys.argv[4], mmap_mode="r")
adasdca.solve(few, y[: len(few)], **options)  # code and buffers that are there once and for all
for tol in (1e-4, 1e-6):
    before = peak()
    found = adasdca.solve(X, y, tol=tol, **options)
    print(peak() - before, found.primal, found.gap)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory by its peak alone")
def test_rows_on_a_disk_keep_the_limit(tmp_path):
    """Four times the limit, to 1e-4 and 1e-6: the memory of a quarter, the same certificate."""
    n, d, limit = 20_000, 400, 16 * 10**6
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    assert X.nbytes == 4 * limit
    y = np.where(X[:, :9].sum(axis=1) + rng.normal(size=n) > 0, 1.0, -1.0)
    places = [str(tmp_path / f"{name}.npy") for name in ("X", "y", "few")]
    for place, array in zip(places, (X, y, X[:500]), strict=True):
        np.save(place, array)
    command = [sys.executable, "-c", ON_DISK, places[0], str(limit), *places[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    inside = adasdca.solve(X, y, loss="logistic", lam=1 / n, fit_intercept=True, tol=1e-6)
    for tol, line in zip((1e-4, 1e-6), done.stdout.splitlines(), strict=True):
        growth, primal, gap = map(float, line.split())
        assert growth <= limit
        assert gap <= tol * primal
        assert abs(primal - inside.primal) <= gap + inside.gap
