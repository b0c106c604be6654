"""Data larger than memory: `python -m benchmarks.blocks [--limit 256MB] [--times 4]`.

Writes dense rows of float32 to a file of so many times the limit, and solves with `memory_limit`,
with all rows in memory, by scikit-learn's SGDClassifier.partial_fit on the same file, and by Vowpal
Wabbit where it is installed, each in a process of its own. Prints seconds, gaps, and the resident
memory beside what was there before the solve. The file is dropped from the system's cache before
each run, unless --warm. Vowpal Wabbit reads a text of the same rows, whose writing is not timed.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib.format import open_memmap

import adasdca
from adasdca.ascent.plans import Visits
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.stored import block_bounds, check_limit
from adasdca.problem.data import DenseRows
from adasdca.problem.losses import LOSSES
from adasdca.problem.problem import Problem
from benchmarks.measure import forget_peak, in_fresh_process, peak_bytes, resident_bytes
from benchmarks.output import save, table

#: What scikit-learn calls the losses, and its ways to shorten steps.
SGD = {"logistic": "log_loss", "hinge": "hinge", "squared_hinge": "squared_hinge"}
SCHEDULES = ("optimal", "invscaling")
#: Ways of Vowpal Wabbit, with the numbers of passes that are tried: its own steps, which penalise
#: least of all without a penalty, and L-BFGS on our objective times n.
WABBIT = {"--l2 0": (1, 5, 20), "--bfgs --mem 15 --termination 0 --l2 1": (5, 10, 20, 40)}
#: The index of its constant feature, before it is cut to the bits of its table.
CONSTANT = 11650396
#: Rows written at a time, and rows of a partial fit.
PIECE = 20_000


def make(folder: Path, size: int, d: int, seed: int = 0) -> int:
    """Write rows with a linear signal, features of different scales, and labels; return n."""
    n = size // (4 * d)
    rng = np.random.default_rng(seed)
    w, scale = rng.normal(size=d) / np.sqrt(d), np.exp(0.5 * rng.normal(size=d))
    X = open_memmap(folder / "X.npy", mode="w+", dtype=np.float32, shape=(n, d))
    y = np.empty(n)
    for begin in range(0, n, PIECE):
        end = min(n, begin + PIECE)
        rows = rng.normal(size=(end - begin, d))
        y[begin:end] = np.where(rows @ w + 0.5 * rng.normal(size=end - begin) > 0.2, 1.0, -1.0)
        X[begin:end] = rows * scale
    X.flush()
    np.save(folder / "y.npy", y)
    return n


def drop_cache(path: Path) -> None:
    """Let the system forget what it has read of a file."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def prepare() -> None:
    """Solve something small: what the libraries set up for themselves is not the solve's."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    adasdca.solve(X, np.sign(X[:, 0]), loss="logistic", lam=0.1)


def ours(folder: Path, loss: str, tol: float, limit: str | None, threads: int) -> dict[str, Any]:
    prepare()
    y = np.load(folder / "y.npy")
    if not forget_peak():
        raise SystemExit("The peak of resident memory cannot be read on this system.")
    before, start = resident_bytes(), time.perf_counter()
    used = time.process_time()
    X = np.load(folder / "X.npy", mmap_mode="r" if limit else None)
    options = {"memory_limit": limit} if limit else {}
    sol = adasdca.solve(
        X, y, loss=loss, lam=1 / len(y), fit_intercept=True, tol=tol, n_threads=threads,
        random_state=0, **options,
    )  # fmt: skip
    return {
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - used,
        "memory": (peak_bytes() or 0) - (before or 0),
        "relative gap": sol.relative_gap,
        "primal": sol.primal,
        "dual": sol.dual,
        "status": sol.status.value,
    }


def sgd(folder: Path, loss: str, schedule: str, passes: int) -> dict[str, Any]:
    """Averaged SGD on the same file, a pass after the other; its objective is taken untimed."""
    from sklearn.linear_model import SGDClassifier

    X, y = np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy")
    n = len(y)
    model = SGDClassifier(
        loss=SGD[loss], alpha=1 / n, average=True, learning_rate=schedule, eta0=0.01, random_state=0
    )
    seconds, used, trail = 0.0, 0.0, []
    for k in range(passes):
        start, begun = time.perf_counter(), time.process_time()
        for begin in range(0, n, PIECE):
            part = np.asarray(X[begin : begin + PIECE])
            model.partial_fit(part, y[begin : begin + PIECE], classes=[-1.0, 1.0])
        seconds += time.perf_counter() - start
        used += time.process_time() - begun
        value = objective(X, y, loss, model.coef_[0], float(model.intercept_[0]))
        trail.append((k + 1, seconds, used, value))
    return {"trail": trail}


def objective(X: Any, y: Any, loss: str, w: Any, b: float) -> float:
    """Return the objective of a model, the rows read a piece at a time."""
    value, risk, n = LOSSES[loss]().value, 0.0, len(y)
    for begin in range(0, n, PIECE):
        scores = X[begin : begin + PIECE] @ w + b
        risk += float(value(scores, y[begin : begin + PIECE]).sum())
    return risk / n + 0.5 / n * float(w @ w)


def write_text(folder: Path) -> None:
    """Write the rows as Vowpal Wabbit reads them, with all digits of single precision."""
    X, y = np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy")
    line = "%d |" + "".join(f" {j}:%.9g" for j in range(X.shape[1])) + "\n"
    with (folder / "rows.vw").open("w") as file:
        for begin in range(0, len(y), PIECE):
            pairs = zip(y[begin : begin + PIECE], X[begin : begin + PIECE].tolist(), strict=True)
            file.writelines(line % (label, *row) for label, row in pairs)


def wabbit(folder: Path, loss: str, way: str, passes: int) -> dict[str, Any]:
    """Vowpal Wabbit from nothing, its cache included; the objective is taken untimed."""
    from vowpalwabbit import Workspace

    cache, model = folder / "rows.cache", folder / "rows.model"
    cache.unlink(missing_ok=True)
    words = f"-d {folder / 'rows.vw'} --cache_file {cache} -f {model} --loss_function {loss}"
    start, begun = time.perf_counter(), time.process_time()
    Workspace(
        f"{words} --holdout_off --quiet --predict_only_model --passes {passes} {way}"
    ).finish()
    seconds, used = time.perf_counter() - start, time.process_time() - begun
    X, y = np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy")
    found = Workspace(f"-i {model} -t --quiet --predict_only_model")
    w = np.array([found.get_weight(j) for j in range(X.shape[1])])
    b = float(found.get_weight(CONSTANT % 2**18))
    return {"trail": [(passes, seconds, used, objective(X, y, loss, w, b))]}


def alone(side: str, folder: Path, *arguments: Any) -> dict[str, Any]:
    """Run one of these sides in a process of its own."""
    found: dict[str, Any] = in_fresh_process(
        "blocks", "--one", json.dumps([side, str(folder), *arguments])
    )
    return found


def show_orders(epochs: int = 16, n: int = 2000, d: int = 2000) -> None:
    """Print gaps of epochs whose order respects blocks, beside one that does not."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, d + 1)
    columns = np.array([rng.choice(d, size=40, p=share / share.sum()) for _ in range(n)])
    start = np.arange(0, 40 * n + 1, 40)
    X = sp.csr_matrix((np.full(40 * n, 40**-0.5), columns.ravel(), start), shape=(n, d))
    X.sum_duplicates()
    y = np.where(X @ rng.normal(size=d) + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    problem = Problem.checked(X, y, loss="logistic", lam=1 / n)
    lines = []
    for blocks, mixed in ((1, False), (2, False), (10, False), (10, True), (50, True)):
        rows, gaps, height = LocalBackend(problem), [], n // blocks
        for _ in range(epochs):
            visited = rng.permutation(blocks) if mixed else np.arange(blocks)
            order = np.concatenate([k * height + rng.permutation(height) for k in visited])
            rows.ascend(Visits(order.astype(np.int32)))
            seen = rows.survey(frozenset())
            assert seen is not None
            gaps.append(seen.gap)
        order_of_blocks = "random" if mixed else "fixed"
        lines.append([str(blocks), order_of_blocks, *(f"{gap:.0e}" for gap in gaps[::5])])
    print(f"Wide sparse rows, logistic loss; the gap after epochs {[*range(1, epochs + 1, 5)]}")
    print(table(("blocks", "their order", *["gap"] * len(lines[0][2:])), lines))


def show_trail(title: str, trail: list[Any], best: float) -> None:
    """Print the objectives of a peer by its passes."""
    lines = [
        [str(k), f"{seconds:.1f}", f"{used:.1f}", f"{value:.12g}", f"{value / best - 1:.1e}"]
        for k, seconds, used, value in trail
    ]
    print(f"\n{title}")
    print(table(("passes", "seconds", "processor", "objective", "above the optimum"), lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", default="256MB")
    parser.add_argument("--times", type=float, default=4.0, help="size of the file, in limits")
    parser.add_argument("--loss", choices=list(SGD), default="logistic")
    parser.add_argument("--features", type=int, default=500)
    parser.add_argument("--tol", type=float, nargs="+", default=[1e-4, 1e-6])
    parser.add_argument("--passes", type=int, default=5, help="of partial_fit")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--warm", action="store_true", help="leave the file in the system's cache")
    parser.add_argument("--folder", help="where to write the file")
    parser.add_argument("--order", action="store_true", help="epochs that go from block to block")
    parser.add_argument("--out")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.order:
        show_orders()
        return
    if args.one:
        side, place, *rest = json.loads(args.one)
        sides: dict[str, Any] = {"ours": ours, "sgd": sgd, "wabbit": wabbit}
        print(json.dumps(sides[side](Path(place), *rest)))
        return
    limit = check_limit(args.limit)
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        n = make(folder, int(args.times * limit), args.features)
        size = (folder / "X.npy").stat().st_size
        shape = DenseRows(np.load(folder / "X.npy", mmap_mode="r"))
        blocks = len(block_bounds(shape, limit)) - 1
        print(f"{n} rows of {args.features} features, {size / limit:.1f} times the limit of")
        print(f"{limit / 1e6:.0f} MB; {blocks} blocks")
        found: dict[str, Any] = {"rows": n, "bytes": size, "limit": limit, "blocks": blocks}
        lines = []
        for tol in args.tol:
            for label, most in (("blocks", str(limit)), ("in memory", None)):
                if not args.warm:
                    drop_cache(folder / "X.npy")
                one = alone("ours", folder, args.loss, tol, most, args.threads)
                found[f"{label} {tol:g}"] = one
                lines.append(
                    [label, f"{tol:g}", f"{one['seconds']:.1f}", f"{one['processor']:.1f}",
                     f"{one['memory'] / 1e6:.0f}", f"{one['relative gap']:.1e}",
                     f"{one['primal']:.12g}"]
                )  # fmt: skip
        head = ("rows", "tol", "seconds", "processor", "memory [MB]", "relative gap", "objective")
        print(table(head, lines))
        best = max(one["dual"] for one in found.values() if isinstance(one, dict) and "dual" in one)
        for schedule in SCHEDULES:
            if not args.warm:
                drop_cache(folder / "X.npy")
            one = alone("sgd", folder, args.loss, schedule, args.passes)
            found[f"partial_fit {schedule}"] = one
            title = f"SGDClassifier.partial_fit, averaged, learning_rate={schedule!r}"
            show_trail(title, one["trail"], best)
        if args.loss in ("logistic", "hinge") and find_spec("vowpalwabbit"):
            write_text(folder)
            for way, numbers in WABBIT.items():
                trail = []
                for passes in numbers:
                    trail += alone("wabbit", folder, args.loss, way, passes)["trail"]
                found[f"vowpal wabbit {way}"] = {"trail": trail}
                show_trail(f"Vowpal Wabbit {way}, each number of passes from nothing", trail, best)
        peak = max(found[f"blocks {tol:g}"]["memory"] for tol in args.tol)
        print(f"\nThe blocks took {peak / limit:.2f} of the limit.")
        print(save(found, args.out, "blocks.json"))


if __name__ == "__main__":
    main()
