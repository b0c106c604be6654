"""Solves on a CUDA device beside PyTorch's L-BFGS there and the processor's rows.

    python -m benchmarks.gpu [--small] [--tol 1e-6] [--output gpu.json] [--cpu-threads 16]

Seconds of our solves: in all, from arrays of NumPy; of these the checks, the copy with what is set
up on the device, and the rest. Kernels are compiled beforehand, by small solves. Only our points
are certified. PyTorch's L-BFGS (strong Wolfe line search, history 10, float32 data and parameters)
is told the objective that we found: it stops when it is within tol of that, which it could not know
by itself, when nothing falls any more, or after 400 iterations. Its seconds leave the copy out. The
processor is stopped after 45 seconds.
"""

import argparse
import json
import platform
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import adasdca
from adasdca.backends.cuda.backend import ArrayBackend
from adasdca.backends.cuda.device import cuda_backend, load_cupy
from adasdca.problem.problem import Problem

#: Most rounds of 10 iterations of PyTorch's L-BFGS, and their most seconds.
ROUNDS, SECONDS = 40, 60.0


def dense(n, d, seed=0):
    """Rows of standard normal features on scales from 0.3 to 3, and noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X *= np.geomspace(0.3, 3.0, d, dtype=np.float32)
    w = (rng.standard_normal(d) / np.sqrt(d)).astype(np.float32)
    return X, np.where(X @ w + rng.logistic(size=n).astype(np.float32) > 0, 1.0, -1.0)


def sparse(n, d, per_row, seed=0):
    """Rows of `per_row` draws of columns whose frequencies fall like a power, and noisy labels."""
    rng = np.random.default_rng(seed)
    columns = (d * rng.random((n, per_row), dtype=np.float32) ** 3).astype(np.int32)
    columns = np.minimum(columns, d - 1)
    columns.sort(axis=1)
    fresh = np.ones(columns.shape, dtype=bool)
    fresh[:, 1:] = columns[:, 1:] != columns[:, :-1]
    start = np.concatenate([[0], np.cumsum(fresh.sum(axis=1))])
    indices = columns[fresh]
    values = rng.standard_normal(len(indices), dtype=np.float32)
    X = sp.csr_matrix((values, indices, start), shape=(n, d))
    w = rng.standard_normal(d).astype(np.float32)
    return X, np.where(X @ w / 3 + rng.logistic(size=n) > 0, 1.0, -1.0)


def problems(small):
    """Yield name, loss, and rows with labels."""
    share = 100 if small else 1
    X, y = dense(5_800_000 // share, 54)
    yield "5.8e6 x 54 dense", "logistic", X, y
    yield "5.8e6 x 54 dense", "squared_hinge", X, y
    X, y = sparse(4_000_000 // share, 200_000 // share, 22)
    yield "4e6 x 200,000 sparse", "logistic", X, y
    X, y = dense(4_000_000 // share, 1000)
    yield "4e6 x 1000 dense", "logistic", X, y


class Timed:
    """A factory of backends that takes the time between the checks and the first survey."""

    def __call__(self, problem: Problem) -> ArrayBackend:
        cp = load_cupy()
        self.began = time.perf_counter()
        backend = cuda_backend(problem)
        cp.cuda.Device().synchronize()
        self.ready = time.perf_counter()
        return backend


def ours(X, y, loss, lam, tol):
    timed, began = Timed(), time.perf_counter()
    found = adasdca.solve(X, y, loss=loss, lam=lam, tol=tol, fit_intercept=True, backend=timed)
    end = time.perf_counter()
    return {
        "seconds": end - began,
        "checks": timed.began - began,
        "copy": timed.ready - timed.began,
        "solve": end - timed.ready,
        "relative gap": found.relative_gap,
        "primal": found.primal,
        "status": found.status.value,
        "second order": found.timings["second order"],
        "survey": found.timings["survey"],
    }


def lbfgs(X, y, loss, lam, tol, primal):
    """Run PyTorch's L-BFGS until its objective is within tol of the least one known."""
    import torch

    warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)
    device = torch.device("cuda")
    if sp.issparse(X):
        rows = torch.sparse_csr_tensor(
            torch.from_numpy(X.indptr.astype(np.int32)),
            torch.from_numpy(X.indices.astype(np.int32)),
            torch.from_numpy(X.data),
            size=X.shape,
            device=device,
        )
        csc = X.tocsc()
        columns = torch.sparse_csr_tensor(
            torch.from_numpy(csc.indptr.astype(np.int32)),
            torch.from_numpy(csc.indices.astype(np.int32)),
            torch.from_numpy(csc.data),
            size=(X.shape[1], X.shape[0]),
            device=device,
        )
    else:
        rows = torch.from_numpy(X).to(device)
        columns = rows.T
    target = torch.from_numpy(y.astype(np.float32)).to(device)
    w = torch.zeros(X.shape[1], device=device, requires_grad=True)
    b = torch.zeros(1, device=device, requires_grad=True)
    made = torch.optim.LBFGS([w, b], max_iter=10, history_size=10, line_search_fn="strong_wolfe")

    def closure():
        """Return the objective, its gradient by two products with X."""
        with torch.no_grad():
            z = target * (rows @ w + b)
            if loss == "logistic":
                value = torch.nn.functional.softplus(-z).mean(dtype=torch.float64)
                slope = -target * torch.sigmoid(-z) / len(z)
            else:
                short = torch.clamp(1.0 - z, min=0.0)
                value = (short * short).mean(dtype=torch.float64)
                slope = -2.0 * target * short / len(z)
            w.grad = columns @ slope + lam * w
            b.grad = slope.sum().reshape(1)
            return value + 0.5 * lam * (w.double() @ w.double())

    closure()
    torch.cuda.synchronize()
    began, last, rounds = time.perf_counter(), np.inf, 0
    while rounds < ROUNDS:
        rounds += 1
        made.step(closure)
        now = float(closure())
        if now <= primal * (1 + tol) or now >= last or time.perf_counter() - began > SECONDS:
            break
        last = now
    torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "rounds": rounds, "above the least, relative": now / primal - 1}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a hundredth of the rows")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--cpu-threads", type=int, default=0, help="0 leaves the processor out")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    cp = load_cupy()
    device = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{device}, CuPy {cp.__version__}, {platform.processor()}, {time.strftime('%Y-%m-%d')}")
    results = {"device": device, "date": time.strftime("%Y-%m-%d"), "tol": arguments.tol}
    for rows in (dense(3000, 20), sparse(3000, 500, 8)):
        ours(*rows, "logistic", 1e-3, 1e-6)
    for name, loss, X, y in problems(arguments.small):
        lam = 1.0 / len(y)
        row = {"ours": ours(X, y, loss, lam, arguments.tol)}
        print(f"{name}, {loss}: {json.dumps(row['ours'])}", flush=True)
        cp.get_default_memory_pool().free_all_blocks()
        if not arguments.no_torch:
            row["torch"] = lbfgs(X, y, loss, lam, arguments.tol, row["ours"]["primal"])
            print(f"  PyTorch L-BFGS: {json.dumps(row['torch'])}", flush=True)
        if arguments.cpu_threads:
            began = time.perf_counter()
            found = adasdca.solve(
                X, y, loss=loss, lam=lam, tol=arguments.tol, fit_intercept=True,
                n_threads=arguments.cpu_threads, max_time=45,
            )  # fmt: skip
            seconds = time.perf_counter() - began
            row["cpu"] = {"seconds": seconds, "relative gap": found.relative_gap}
            print(f"  processor: {json.dumps(row['cpu'])}", flush=True)
        results[f"{name}, {loss}"] = row
        if arguments.output:
            arguments.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
