"""Certified solves on a CUDA device beside this package's processor backend, scikit-learn, PyTorch.

    python -m benchmarks.gpu [problem ...] [--output benchmarks/results/gpu.json] [--threads 16]

Data are made on the device. For our solves these seconds are shown: of a solve with X and y on the
device; of its part from the first certificate to the last, without checks, norms and the layout of
sparse rows; of a solve with y from NumPy; of the copy of X from NumPy. Kernels are compiled by a
solve of some rows before. A first solve of the same problem takes memory; its seconds are shown.

Passes are shown as the bytes of X per second, 8 for a sparse entry, beside those that a copy moves.
Sparse ones look up a number of a vector for every entry: `look-ups alone` is a kernel that does
nothing else, in the same order.

Others get the same objective. Only our points are certified. PyTorch's L-BFGS (on the device,
strong Wolfe line search, history 10, float32 data and parameters) is given the least objective that
we know, and stops within tol of it; by itself it could not know when. scikit-learn (lbfgs for the
logistic loss, LinearSVC's primal for the squared hinge, its dual for the hinge) runs to its own
tolerance, and its objective is compared with the least one. Our solves have `--limit` seconds on
the device and `--patience` on the processor; ! marks those that needed more. scikit-learn gets
problems of up to `MOST` entries. Multinomial models are fitted by one core of the processor.
`streamed` is a solve from NumPy on a device with 8 GiB free, so that every pass copies X.
"""

import argparse
import json
import os
import platform
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import adasdca
from adasdca.backends.cuda import device
from adasdca.backends.cuda.device import cuda_backend, load_cupy
from adasdca.multinomial.solver import solve_multinomial
from adasdca.problem.problem import Problem

#: Rounds of 10 iterations of PyTorch's L-BFGS, and their seconds, at most.
ROUNDS, SECONDS = 40, 10.0
#: Entries up to which the processor takes part, ours and scikit-learn.
MOST = {"processor": 4.1e9, "logistic": 4e8, "squared_hinge": 4e7, "hinge": 4e6, "sparse": 4e6}
#: Rows of the solve that compiles kernels.
FIRST = 1000
#: Seconds of a first solve, compilation included, after which it is not repeated.
LONG = 12.0
#: Bytes of the device that a streamed problem may have.
SCARCE = 8 << 30


def dense(n, d):
    """Normal features on scales from 0.3 to 3 in float32, and noisy labels."""
    cp = load_cupy()
    random = cp.random.default_rng(0)
    X = cp.empty((n, d), np.float32)
    for first in range(0, n, 1 << 20):
        part = X[first : first + (1 << 20)]
        part[...] = random.standard_normal(part.shape, dtype=np.float32)
    X *= cp.asarray(np.geomspace(0.3, 3.0, d), np.float32)
    w = cp.asarray(np.random.default_rng(0).standard_normal(d) / np.sqrt(d), np.float32)
    return X, labels(X @ w, random)


def sparse(n, d, per_row):
    """Rows of about `per_row` entries in columns whose frequencies fall like a power."""
    cp = load_cupy()
    from cupyx.scipy import sparse as device_sparse

    random = cp.random.default_rng(0)
    columns = (d * random.random((n, per_row), dtype=np.float32) ** 3).astype(np.int32)
    columns = cp.minimum(columns, d - 1)
    columns.sort(axis=1)
    values = random.standard_normal((n, per_row), dtype=np.float32)
    start = cp.arange(0, n * per_row + 1, per_row, dtype=np.int32)
    X = device_sparse.csr_matrix((values.ravel(), columns.ravel(), start), shape=(n, d))
    X.has_canonical_format = False
    X.sum_duplicates()
    w = cp.asarray(np.random.default_rng(0).standard_normal(d) / 3.0, np.float32)
    return X, labels(X @ w, random)


def text(n, d, per_row):
    """Rows of unit norm in which frequent features count for less, as words by their rarity."""
    cp = load_cupy()
    X, _ = sparse(n, d, per_row)
    rarity = cp.log(n / cp.maximum(cp.bincount(X.indices, minlength=d), 1)).astype(np.float32)
    X.data = (cp.abs(X.data) + 0.5) * rarity[X.indices]
    row = cp.repeat(cp.arange(n), cp.diff(X.indptr).get().tolist())
    squares = cp.bincount(row, weights=X.data.astype(np.float64) ** 2, minlength=n)
    X.data /= cp.sqrt(squares).astype(np.float32)[row]
    w = cp.asarray(np.random.default_rng(0).standard_normal(d) * 3.0, np.float32)
    return X, labels(X @ w, cp.random.default_rng(1))


def classes(X, count):
    """Return noisy classes of the rows, as many as that."""
    cp = load_cupy()
    n, d = X.shape
    wide = 9 if hasattr(X, "indptr") else d
    W = np.random.default_rng(1).standard_normal((d, count)) / np.sqrt(wide)
    noise = cp.random.default_rng(1).random((n, count), dtype=np.float32)
    noise = -cp.log(-cp.log(cp.clip(noise, 1e-7, 1 - 1e-6)))
    return cp.argmax(X @ cp.asarray(W, np.float32) + noise, axis=1).get()


def labels(scores, random):
    cp = load_cupy()
    share = random.random(len(scores))
    return cp.where(scores + cp.log(share / (1.0 - share)) > 0, 1.0, -1.0).get()


#: Name: data, and the loss or the number of classes of a multinomial model.
PROBLEMS = {
    "5.8e6 x 54, logistic": (lambda: dense(5_800_000, 54), "logistic"),
    "5.8e6 x 54, squared hinge": (lambda: dense(5_800_000, 54), "squared_hinge"),
    "5.8e6 x 54, hinge": (lambda: dense(5_800_000, 54), "hinge"),
    "4e6 x 200,000 sparse, logistic": (lambda: sparse(4_000_000, 200_000, 22), "logistic"),
    "4e6 x 200,000 sparse, squared hinge": (
        lambda: sparse(4_000_000, 200_000, 22),
        "squared_hinge",
    ),
    "4e6 x 200,000 sparse, hinge": (lambda: sparse(4_000_000, 200_000, 22), "hinge"),
    "1e6 x 500,000 text, hinge": (lambda: text(1_000_000, 500_000, 60), "hinge"),
    "4e6 x 1000, logistic": (lambda: dense(4_000_000, 1000), "logistic"),
    "4e6 x 1000, squared hinge": (lambda: dense(4_000_000, 1000), "squared_hinge"),
    "4e6 x 1000, hinge": (lambda: dense(4_000_000, 1000), "hinge"),
    "5.8e6 x 54, 7 classes": (lambda: dense(5_800_000, 54), 7),
    "1e6 x 500, 10 classes": (lambda: dense(1_000_000, 500), 10),
    "1e6 x 200,000 sparse, 10 classes": (lambda: sparse(1_000_000, 200_000, 22), 10),
    "ladder 1e5: 1e3 x 100": (lambda: dense(1_000, 100), "logistic"),
    "ladder 1e6: 1e4 x 100": (lambda: dense(10_000, 100), "logistic"),
    "ladder 1e7: 1e5 x 100": (lambda: dense(100_000, 100), "logistic"),
    "ladder 1e8: 1e6 x 100": (lambda: dense(1_000_000, 100), "logistic"),
    "ladder 1e9: 1e7 x 100": (lambda: dense(10_000_000, 100), "logistic"),
    "ladder 5e9: 5e7 x 100": (lambda: dense(50_000_000, 100), "logistic"),
}


def multinomial(X, codes, count, tol, limit, backend):
    """Return the seconds of a multinomial model, and the model."""
    began = time.perf_counter()
    found = solve_multinomial(
        X, codes, n_classes=count, lam=1 / len(codes), tol=tol, fit_intercept=True,
        max_time=limit, backend=backend,
    )  # fmt: skip
    return time.perf_counter() - began, found


def timed(X, y, loss, tol, limit, **where):
    """Return the seconds of a solve of ours, and the solution."""
    began = time.perf_counter()
    found = adasdca.solve(
        X, y, loss=loss, lam=1 / len(y), tol=tol, fit_intercept=True, max_time=limit, **where
    )
    return time.perf_counter() - began, found


def told_of(seconds, found):
    """Return what is told of every solve of ours."""
    status = found.status.value
    return {"seconds": seconds, "relative gap": found.relative_gap, "status": status}


def measure_classes(X, count, tol, limit, patience):
    """Measure a multinomial model, on the device and on one core of the processor."""
    codes = classes(X, count)
    runs = [multinomial(X, codes, count, tol, limit, "cuda") for _ in range(3)]
    seconds, found = min(runs[1:], key=lambda run: run[0])
    more = {"first solve": runs[0][0], "primal": found.primal, "Newton steps": found.n_epochs}
    row = {"ours": told_of(seconds, found) | more}
    if patience is not None:
        seconds, found = multinomial(on_host(X), codes, count, tol, patience, None)
        row["processor"] = told_of(seconds, found)
    return row


def on_host(X):
    """Copy rows of the device to this process."""
    if not hasattr(X, "indptr"):
        return X.get()
    return sp.csr_matrix((X.data.get(), X.indices.get(), X.indptr.get()), X.shape)


def ours(X, y, loss, tol, limit):
    cp = load_cupy()
    # Kernels are compiled by a solve of some rows.
    adasdca.solve(X[:FIRST], y[:FIRST], loss=loss, lam=1.0, fit_intercept=True, backend="cuda")

    def solves(targets, count):
        runs = []
        for _ in range(count):
            cp.cuda.Device().synchronize()
            runs.append(timed(X, targets, loss, tol, limit, backend="cuda"))
            if not runs[-1][1].converged or runs[0][0] > LONG:
                break
        return runs

    runs = solves(cp.asarray(y), 4)
    seconds, found = min(runs[1:] or runs, key=lambda run: run[0])
    timings = found.timings
    more = {
        "survey and steps": sum(timings.values()) - timings["setup"],
        "first solve": runs[0][0],
        "primal": found.primal,
    }
    if found.converged:
        more["y from NumPy, seconds"] = min(each for each, _ in solves(y, 3))
    return told_of(seconds, found) | more


def bandwidth(X, y, loss):
    """Return the bytes of X a second that passes read, as shares of what a copy moves."""
    cp = load_cupy()
    from cupyx.profiler import benchmark

    def seconds(function):
        return float(np.median(benchmark(function, n_repeat=20, n_warmup=3).gpu_times))

    pair = cp.empty((2, 1 << 28), np.float32)
    copied = pair.nbytes / seconds(lambda: cp.copyto(pair[0], pair[1]))
    backend = cuda_backend(Problem.checked(X, y, loss=loss, lam=1 / len(y), device=True))
    rows, passes = backend.rows, backend.passes
    v = cp.asarray(np.random.default_rng(0).standard_normal(rows.shape[1]) * 0.01)
    scores = rows.scores(v)
    size = X.nbytes if hasattr(X, "nbytes") else X.nnz * 8
    found = {
        "scores": seconds(lambda: rows.scores(v)),
        "combine": seconds(lambda: rows.combine(scores)),
        "line": seconds(lambda: rows.line(v, 0.0, scores, passes, None, 0.0)),
    }
    if hasattr(X, "indptr"):
        look_up, grid = cp.RawKernel(LOOK_UP, "look_up"), (-(-X.nnz // 2048),)
        for name, matrix, x in (("scores", X, v), ("combine", X.tocsc(), scores)):
            given = matrix.indices, matrix.data, x, cp.empty(1), np.int32(X.nnz)
            alone = seconds(lambda given=given: look_up(grid, (256,), given))
            found[f"{name}, look-ups alone"] = alone
    shares = {name: size / each / copied for name, each in found.items()}
    return {"copy, TB/s": copied / 1e12, **shares}


#: Multiplies the entries of a sparse matrix by the numbers of x that belong to them, no more.
LOOK_UP = """
extern "C" __global__ void look_up(const int* __restrict__ index,
                                   const float* __restrict__ values,
                                   const double* __restrict__ x, double* out, int count) {
    double sum = 0;
#pragma unroll
    for (int u = 0; u < 8; ++u) {
        const int k = (blockIdx.x * 8 + u) * 256 + threadIdx.x;
        if (k < count) sum += (double)__ldcs(values + k) * x[__ldcs(index + k)];
    }
    if (sum == 1.2345) out[0] = sum;  // never so, but the compiler cannot know
}"""


def lbfgs(X, y, loss, tol, primal):
    """Run PyTorch's L-BFGS until its objective is within tol of the least one known."""
    import torch

    warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)
    lam = 1.0 / len(y)
    if hasattr(X, "indptr"):

        def csr(matrix, shape):
            parts = (torch.from_dlpack(a) for a in (matrix.indptr, matrix.indices, matrix.data))
            return torch.sparse_csr_tensor(*parts, size=shape)

        rows, columns = csr(X, X.shape), csr(X.tocsc(), X.shape[::-1])
    else:
        rows = torch.from_dlpack(X)
        columns = rows.T
    target = torch.from_numpy(y.astype(np.float32)).to("cuda")
    w = torch.zeros(X.shape[1], device="cuda", requires_grad=True)
    b = torch.zeros(1, device="cuda", requires_grad=True)

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

    for warm in (True, False):
        with torch.no_grad():
            w.zero_()
            b.zero_()
        made = torch.optim.LBFGS(
            [w, b], max_iter=10, history_size=10, line_search_fn="strong_wolfe"
        )
        torch.cuda.synchronize()
        began, last, rounds = time.perf_counter(), np.inf, 0
        while rounds < (1 if warm else ROUNDS):
            rounds += 1
            made.step(closure)
            now = float(closure())
            if now <= primal * (1 + tol) or now >= last or time.perf_counter() - began > SECONDS:
                break
            last = now
        torch.cuda.synchronize()
        seconds = time.perf_counter() - began
    return {"seconds": seconds, "rounds": rounds, "above the least, relative": now / primal - 1}


def streamed(X, y, loss, tol, limit):
    """Solve from NumPy with little of the device's memory."""
    free, device.free_bytes = device.free_bytes, lambda cupy: SCARCE
    try:
        return told_of(*timed(X, y, loss, tol, limit, backend="cuda"))
    finally:
        device.free_bytes = free


def sklearn(X, y, loss, primal):
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    model = LogisticRegression(C=1.0, tol=1e-6, max_iter=500)
    if loss != "logistic":
        # (It penalises its intercept; scaled up, hardly so.)
        dual = loss == "hinge"
        model = LinearSVC(C=1.0, loss=loss, dual=dual, tol=1e-4, intercept_scaling=100.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - began
    w, b = model.coef_[0], float(model.intercept_[0])
    value = adasdca.losses.get_loss(loss).value(X @ w + b, y).mean() + 0.5 / len(y) * (w @ w)
    return {"seconds": seconds, "above the least, relative": float(value) / primal - 1}


def measure(name, arguments):
    make, loss = PROBLEMS[name]
    cp = load_cupy()
    X, y = make()
    entries = X.nnz if hasattr(X, "indptr") else X.size
    tol, row = arguments.tol, {"entries": int(entries)}
    if isinstance(loss, int):
        patience = None if arguments.alone else arguments.patience
        return row | measure_classes(X, loss, tol, arguments.limit, patience)
    row["ours"] = ours(X, y, loss, tol, arguments.limit)
    if not name.startswith("ladder"):
        row["share of the bandwidth of a copy"] = bandwidth(X, y, loss)
    primal = row["ours"]["primal"]
    if loss != "hinge" and not arguments.alone:
        row["PyTorch L-BFGS"] = lbfgs(X, y, loss, tol, primal)
    if not arguments.alone and entries <= MOST["processor"]:
        host = on_host(X)
        del X
        cp.get_default_memory_pool().free_all_blocks()
        from adasdca.backends.cuda.kernels.arrays import device_matrix
        from adasdca.problem.data import CsrRows, DenseRows

        if sp.issparse(host):
            kept = CsrRows(host.data, host.indices, host.indptr.astype(np.int64), host.shape)
        else:
            kept = DenseRows(host)
        began = time.perf_counter()
        there = device_matrix(kept)
        cp.cuda.Device().synchronize()
        row["copy to the device, seconds"] = time.perf_counter() - began
        del there
        if name.startswith("4e6 x 1000, logistic"):
            row["streamed"] = streamed(host, y, loss, tol, 2 * arguments.limit)
        run = timed(host, y, loss, tol, arguments.patience, n_threads=arguments.threads)
        row["processor"] = told_of(*run)
        if entries <= MOST["sparse" if sp.issparse(host) else loss]:
            row["scikit-learn"] = sklearn(host, y, loss, primal)
    return row


def told(name, row):
    """Return the lines of a problem."""
    mine = row["ours"]
    steps = mine.get("survey and steps")
    parts = [f"{mine['seconds']:8.3f}", " " * 7 + "-" if steps is None else f"{steps:8.3f}"]
    parts.append(f"{mine['relative gap']:9.1e}" + ("" if mine["status"] == "converged" else "!"))
    for other in ("PyTorch L-BFGS", "processor", "scikit-learn"):
        found = row.get(other)
        rest = "         -" if found is None else f"{found['seconds']:10.3f}"
        late = found and found.get("status", "converged") != "converged"
        parts.append(rest + ("!" if late else " "))
    lines = [f"{name:38s}" + " ".join(parts)]
    shares = row.get("share of the bandwidth of a copy")
    if shares:
        passes = ("scores", "combine", "line")
        told = ", ".join(f"{each} {shares[each]:.0%}" for each in passes)
        lines.append(f"{'':4s}of a copy's {shares['copy, TB/s']:.1f} TB/s: {told}")
        alone = [f"{each} {shares[key]:.0%}" for each in passes
                 if (key := f"{each}, look-ups alone") in shares]  # fmt: skip
        if alone:
            lines[-1] += f" (look-ups alone: {', '.join(alone)})"
    if "y from NumPy, seconds" in mine:
        lines.append(f"{'':4s}y from NumPy: {mine['y from NumPy, seconds']:.3f} s")
    if "copy to the device, seconds" in row:
        lines.append(f"{'':4s}copy to the device: {row['copy to the device, seconds']:.3f} s")
    if "streamed" in row:
        found = row["streamed"]
        lines.append(f"{'':4s}streamed: {found['seconds']:.1f} s, {found['relative gap']:.1e}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("problems", nargs="*", help="beginnings of names; all by default")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of a solve of ours")
    parser.add_argument("--patience", type=float, default=20.0, help="the same on the processor")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--alone", action="store_true", help="leave all others out")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    cp = load_cupy()
    card = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    results = {
        "device": card,
        "CuPy": cp.__version__,
        "CUDA": cp.cuda.runtime.runtimeGetVersion(),
        "threads of the processor": arguments.threads,
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
        "tol": arguments.tol,
        "limits, seconds": [arguments.limit, arguments.patience],
        "problems": {},
    }
    told_once = f"limits {arguments.limit:g} and {arguments.patience:g} s"
    print(f"{card}, CuPy {cp.__version__}, {results['date']}, tol = {arguments.tol:g}, {told_once}")
    head = ("ours", "steps", "gap", "PyTorch", "processor", "sklearn")
    widths = (8, 8, 9, 10, 11, 11)
    titles = " ".join(f"{title:>{width}s}" for title, width in zip(head, widths, strict=True))
    print(f"{'seconds':38s}{titles}")
    for name in PROBLEMS:
        if arguments.problems and not name.startswith(tuple(arguments.problems)):
            continue
        row = measure(name, arguments)
        cp.get_default_memory_pool().free_all_blocks()
        results["problems"][name] = row
        print(told(name, row), flush=True)
        if arguments.output:
            arguments.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
