"""Multinomial models at the scale of text and images, beside scikit-learn's solvers.

python -m benchmarks.multinomial [--data text images usps] [--C 0.01 1 100] [--share 1.0]
                                 [--goals 1e-3 1e-6] [--limit 120] [--folder …] [--out FILE]

Processor time on one thread, sides in turn, to a suboptimality relative to the optimum, which is
certified. Ours is the time to a certified gap. A peer is stopped at the first evaluation of its
objective that is good enough; saga, which makes none, has a ladder of epochs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.ndimage import zoom
from scipy.special import logsumexp
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, _linear_loss

from adasdca.datasets._folders import read_npz
from adasdca.multinomial.solver import solve_multinomial
from benchmarks.measure import machine
from benchmarks.output import ratio, save, seconds, table
from benchmarks.peers.solver import quiet
from benchmarks.problems import some

#: The certified relative gap of what counts as the optimum.
EXACT = 1e-9
EVALUATED = ("lbfgs", "newton-cg")


class Rows(NamedTuple):
    """Rows and class codes."""

    X: Any
    codes: Any


def taught(X: Any, k: int, rng: np.random.Generator, sharpness: float) -> Any:
    """Return classes of rows of length 1 that a linear model with noise gives them."""
    scores = X @ rng.normal(size=(X.shape[1], k))
    scores *= sharpness / scores.std()
    return np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)


def text(share: float) -> Rows:
    """Return documents of Zipf's words, some of them their class's: 16,000 × 60,000, 20 classes."""
    rng = np.random.default_rng(0)
    n, d, k = int(16_000 * share), int(60_000 * share), 20
    codes = rng.integers(k, size=n)
    chance = 1.0 / np.arange(2, d + 2) ** 1.1
    common = np.cumsum(chance)
    own = [np.cumsum(rng.permuted(np.where(rng.random(d) < 0.02, chance, 0.0))) for _ in range(k)]
    rows, columns = [], []
    for i, code in enumerate(codes):
        length = int(np.clip(rng.lognormal(4.5, 0.8), 5, 2000))
        for cumulated, count in ((own[code], length // 8), (common, length - length // 8)):
            drawn = np.searchsorted(cumulated, rng.random(count) * cumulated[-1])
            rows.append(np.full(count, i))
            columns.append(np.minimum(drawn, d - 1))
    where = np.concatenate(rows), np.concatenate(columns)
    X = sp.csr_matrix((np.ones(len(where[0])), where), shape=(n, d))
    X.sum_duplicates()
    X.data = 1.0 + np.log(X.data)
    seen = np.bincount(X.indices, minlength=d)
    X = X.multiply(np.log((1 + n) / (1 + seen)) + 1.0).tocsr()
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return Rows((sp.diags(1.0 / lengths) @ X).tocsr(), codes)


def images(share: float) -> Rows:
    """Return scikit-learn's digits, blown up to 28 × 28, shifted, with noise: 60,000 × 784."""
    rng = np.random.default_rng(0)
    n = int(60_000 * share)
    small, codes = load_digits(return_X_y=True)
    large = np.array([zoom(image.reshape(8, 8) / 16.0, 3.5, order=1) for image in small])
    chosen = rng.integers(len(large), size=n)
    X = np.empty((n, 784))
    for i, k in enumerate(chosen):
        X[i] = np.roll(large[k], rng.integers(-2, 3, 2), axis=(0, 1)).ravel()
    X += 0.1 * rng.normal(size=X.shape)
    return Rows(np.clip(X, 0.0, 1.0), codes[chosen])


def factors(share: float) -> Rows:
    """Return dense rows of low rank with noise: 60,000 × 784, 10 classes."""
    rng = np.random.default_rng(0)
    n, d = int(60_000 * share), 784
    X = rng.normal(size=(n, 40)) * np.logspace(0, -1.5, 40) @ rng.normal(size=(40, d))
    X += 0.3 * rng.normal(size=X.shape)
    X /= np.linalg.norm(X, axis=1).mean()
    return Rows(X, taught(X, 10, rng, 3.0))


def stored(name: str) -> Callable[[float, Path], Rows]:
    """Return how to read a file; two classes become twenty by a linear model."""

    def read(share: float, folder: Path) -> Rows:
        X, y = read_npz(folder / f"{name}.npz", name)
        rng = np.random.default_rng(0)
        X, y = some(X, y, int(share * X.shape[0]))
        codes = np.unique(y, return_inverse=True)[1]
        return Rows(X, taught(X, 20, rng, 3.0) if codes.max() == 1 else codes)

    return read


MADE = {"text": text, "images": images, "factors": factors}
STORED = {"usps": stored("usps-mc"), "news": stored("news20mc-unit")}


def objective(data: Rows, coef: Any, intercept: Any, C: float) -> float:
    """Return C Σ loss + ½‖W‖² over C·n."""
    scores = data.X @ coef.T + intercept
    loss = logsumexp(scores, axis=1) - scores[np.arange(len(data.codes)), data.codes]
    return float(loss.mean() + 0.5 * np.vdot(coef, coef) / (C * len(loss)))


class EnoughError(Exception):
    """A peer has reached the last goal, or its time is over."""


def curve_of(data: Rows, solver: str, C: float, last: float, limit: float) -> list[tuple]:
    """Return (time, objective) at all evaluations of one fit."""
    curve: list[tuple[float, float]] = []
    patched = {
        name: getattr(_linear_loss.LinearModelLoss, name) for name in ("loss_gradient", "loss")
    }

    def watched(name: str) -> Callable[..., Any]:
        def evaluate(self: Any, *args: Any, **options: Any) -> Any:
            found = patched[name](self, *args, **options)
            curve.append((time.process_time() - start, found if name == "loss" else found[0]))
            if curve[-1][1] <= last or curve[-1][0] > limit:
                raise EnoughError
            return found

        return evaluate

    model = LogisticRegression(solver=solver, C=C, tol=1e-12, max_iter=100_000)
    try:
        for name in patched:
            setattr(_linear_loss.LinearModelLoss, name, watched(name))
        start = time.process_time()
        model.fit(data.X, data.codes)
    except EnoughError:
        pass
    finally:
        for name, function in patched.items():
            setattr(_linear_loss.LinearModelLoss, name, function)
    return curve


def ladder_of(data: Rows, solver: str, C: float, last: float, limit: float) -> list[tuple]:
    """Return (time, objective) of fits of 1, 2, 4, … epochs."""
    curve: list[tuple[float, float]] = []
    epochs = 1
    while not curve or (curve[-1][1] > last and 2.0 * curve[-1][0] < limit):
        model = LogisticRegression(solver=solver, C=C, tol=1e-12, max_iter=epochs, random_state=0)
        start = time.process_time()
        model.fit(data.X, data.codes)
        spent = time.process_time() - start
        curve.append((spent, objective(data, model.coef_, model.intercept_, C)))
        epochs *= 2
    return curve


def race(
    data: Rows, C: float, goals: list[float], limit: float, peers: list[str]
) -> dict[str, Any]:
    """Return the processor seconds of all sides to each goal; None where the limit came first."""
    k, n = int(data.codes.max()) + 1, len(data.codes)

    def ours(tol: float) -> tuple[float, Any]:
        start = time.process_time()
        found = solve_multinomial(
            data.X,
            data.codes,
            n_classes=k,
            lam=1.0 / (C * n),
            fit_intercept=True,
            tol=tol,
            max_time=10 * limit,
        )
        return time.process_time() - start, found

    times: dict[str, list[float | None]] = {"ours": []}
    steps = []
    for goal in goals:
        spent, found = ours(goal)
        times["ours"].append(spent if found.converged else None)
        steps.append((found.n_epochs, found.n_updates))
    best = ours(EXACT)[1]
    for solver in peers:
        last = best.primal * (1.0 + min(goals))
        way = curve_of if solver in EVALUATED else ladder_of
        curve = way(data, solver, C, last, limit)
        times[solver] = [
            next((at for at, value in curve if value <= best.primal * (1.0 + goal)), None)
            for goal in goals
        ]
    return {
        "C": C,
        "gap": best.gap / best.primal,
        "primal": best.primal,
        "steps": steps,
        "times": times,
    }


def shown(rows: list[dict[str, Any]], goals: list[float], limit: float) -> str:
    """Return the table of all races."""
    cells = []
    for row in rows:
        for g, goal in enumerate(goals):
            own = row["times"]["ours"][g]
            others = {name: times[g] for name, times in row["times"].items() if name != "ours"}
            known = [time for time in others.values() if time is not None]
            line = [row["data"], f"{row['C']:g}", f"{goal:.0e}", seconds(own)]
            line += [seconds(time) if time else f"> {limit:g} s" for time in others.values()]
            if own is None:
                line.append("not reached")
            else:
                line.append(ratio(own / min(known)) if known else f"< {own / limit:.2f}")
            cells.append(line)
    peers = [name for name in rows[0]["times"] if name != "ours"]
    return table(["data", "C", "goal", "ours", *peers, "ours / best"], cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["text", "images", "factors"])
    parser.add_argument("--C", nargs="+", type=float, default=[0.01, 1.0, 100.0])
    parser.add_argument("--goals", nargs="+", type=float, default=[1e-3, 1e-6])
    parser.add_argument("--peers", nargs="*", default=["lbfgs", "newton-cg", "saga"])
    parser.add_argument("--share", type=float, default=1.0, help="of the size of the data")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of a peer")
    parser.add_argument("--folder", type=Path, help="where usps and news are")
    parser.add_argument("--out")
    options = parser.parse_args()
    rows = []
    with quiet(1):
        for name in options.data:
            stored = name in STORED
            data = (
                STORED[name](options.share, options.folder) if stored else MADE[name](options.share)
            )
            for C in options.C:
                found = race(data, C, options.goals, options.limit, options.peers)
                rows.append({"data": name, "shape": data.X.shape, **found})
                print(shown(rows[-1:], options.goals, options.limit), flush=True)
    print()
    print(shown(rows, options.goals, options.limit))
    result = {"machine": machine(), "goals": options.goals, "limit": options.limit, "rows": rows}
    print(f"\n{save(result, options.out, 'multinomial.json')}")


if __name__ == "__main__":
    main()
