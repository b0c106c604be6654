"""Solve a few problems in whatever environment this process has, and print what came of it.

environments.py [flush] [raise]: with numbers below the normal ones flushed to zero, as some
libraries set the processor; with every floating-point exception of NumPy an error.
"""

import ctypes
import json
import mmap
import sys

import numpy as np
import scipy.sparse as sp

from adasdca import _core, certify, solve

#: Loss, keywords of `solve`; the rows of every second problem are sparse.
PROBLEMS = (
    ("smoothed_hinge", {"lam": 1e-3}),
    ("logistic", {"lam": 1e-4, "fit_intercept": True}),
    ("squared_hinge", {"lam": 1e-2, "l1_ratio": 0.5}),
    ("hinge", {"lam": 1e-2}),
    ("squared", {"lam": 1e-6, "fit_intercept": True}),
    ("huber", {"lam": 1e-3, "bounds": (0, None)}),
    ("absolute", {"lam": 1e-2, "fit_intercept": True}),
    ("squared", {"lam": 1e-2, "l1_ratio": 1.0}),
)
TOL = 1e-7
FLUSH_TO_ZERO, DENORMALS_ARE_ZERO = 1 << 15, 1 << 6


def make(number):
    """Return rows with features of very different sizes, and targets, which labels are too."""
    rng = np.random.default_rng(number)
    X = rng.normal(size=(300, 20)) * np.logspace(-3, 1, 20)
    X[rng.random(X.shape) < 0.6] = 0.0
    y = np.where(X.sum(axis=1) + rng.normal(size=300) > 0, 1.0, -1.0)
    return sp.csr_array(X) if number % 2 else X, y


def flush_to_zero():
    """Set both bits of the processor's register MXCSR, by a few bytes of machine code."""
    # sub rsp, 8; stmxcsr [rsp]; or dword [rsp], bits; ldmxcsr [rsp]; add rsp, 8; ret
    bits = (FLUSH_TO_ZERO | DENORMALS_ARE_ZERO).to_bytes(4, "little")
    code = b"\x48\x83\xec\x08\x0f\xae\x1c\x24\x81\x0c\x24" + bits
    code += b"\x0f\xae\x14\x24\x48\x83\xc4\x08\xc3"
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
    if np.float64(1e-308) / np.float64(10.0) != 0.0:
        sys.exit("the processor does not flush")


def run():
    """Return what a test compares, by the number of the problem."""
    found = []
    for number, (loss, options) in enumerate(PROBLEMS):
        X, y = make(number)
        sol = solve(X, y, loss=loss, tol=TOL, random_state=number, n_threads=2, **options)
        again = certify(
            X, y, sol.coef, intercept=sol.intercept, loss=loss, dual_coef=sol.dual_coef, **options
        )
        found.append(
            {
                "status": sol.status.value,
                "coef": sol.coef.tolist(),
                "intercept": sol.intercept,
                "primal": sol.primal,
                "dual": sol.dual,
                "gap": sol.gap,
                "certified": again.gap,
            }
        )
    return found


if __name__ == "__main__":
    _core.set_thread_work(1.0)
    if "flush" in sys.argv:
        flush_to_zero()
    if "raise" in sys.argv:
        np.seterr(all="raise")
    json.dump(
        {"level": _core.LEVEL, "optimize": sys.flags.optimize, "solutions": run()}, sys.stdout
    )
