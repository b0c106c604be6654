"""Random problems of every loss, all of which a default solve and a default fit must solve.

python -m benchmarks.attack [--problems 1500] [--estimators 400] [--seed 0] [--jobs 2]
python -m benchmarks.attack --case SEED INDEX [--fit]

n from 30 to 1500, d from 2 to 60; features standard, scaled by 1e±3, correlated to 1e3, or with
means of 1 to 1000 deviations; C from 1e-3 to 1e3; L1 terms, positivity, weights and intercepts
mixed; 30 % of the targets shifted. tol is 1e-6, limits are the default ones. A failure is whatever
does not converge, warns or raises; each is printed with the numbers that make it again.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import adasdca
from adasdca.problem.losses import LOSSES
from benchmarks.measure import attempt, in_processes
from benchmarks.output import seconds, table

Array = NDArray[np.float64]

TOL = 1e-6
KINDS = ("standard", "unscaled", "correlated", "far")


@dataclass(frozen=True)
class Attack:
    """A problem, by arguments of `solve` and by what it is called."""

    X: Any
    y: Array
    C: float
    kind: str
    options: dict[str, Any]


def make(seed: int, index: int) -> Attack:
    """Make a problem; the same numbers give the same one."""
    rng = np.random.default_rng((seed, index))
    loss = list(LOSSES)[index % len(LOSSES)]
    n, d = round(np.exp(rng.uniform(np.log(30), np.log(1500)))), int(rng.integers(2, 61))
    kind = KINDS[int(rng.integers(len(KINDS)))]
    X = rng.standard_normal((n, d))
    signal = X @ rng.standard_normal(d) / np.sqrt(d)
    if kind == "unscaled":
        X = X * 10.0 ** rng.uniform(-3, 3, d)
    elif kind == "correlated":
        spread = np.logspace(0, -1.5, d)  # singular values, and a condition of their squares of 1e3
        basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
        X = X * spread @ basis
    elif kind == "far":
        X = X + 10.0 ** rng.uniform(0, 3, d) * rng.choice([-1.0, 1.0], d)
    y = signal + 10.0 ** rng.uniform(-2, 0.5) * rng.standard_normal(n)
    if LOSSES[loss].kind == "classification":
        y = np.where(y > np.quantile(y, rng.uniform(0.1, 0.9)), 1.0, -1.0)
    elif rng.random() < 0.3:
        y = y + 10.0 ** rng.uniform(0, 4)
    options: dict[str, Any] = {"loss": loss, "fit_intercept": bool(rng.random() < 0.6)}
    options["l1_ratio"] = float(rng.choice([0.1, 0.5, 0.9])) if rng.random() < 0.2 else 0.0
    options["positive"] = bool(rng.random() < 0.15)
    options["sample_weight"] = rng.uniform(0.1, 10.0, n) if rng.random() < 0.3 else None
    if rng.random() < 0.2:
        X = sp.csr_array(np.where(rng.random(X.shape) < 0.3, X, 0.0))
    return Attack(X, y, float(10.0 ** rng.uniform(-3, 3)), kind, options)


@dataclass(frozen=True)
class Result:
    """How an attack went: None for a success."""

    number: tuple[int, int]
    loss: str
    kind: str
    fit: bool
    failure: str | None
    seconds: float


def run(task: tuple[int, int, bool]) -> Result:
    """Solve one of them, or fit an estimator to it."""
    seed, index, fit = task
    at = make(seed, index)
    failure, wrong, spent = attempt(lambda: (_fit if fit else _solve)(at, index))
    number = seed, index
    return Result(number, at.options["loss"], at.kind, fit, failure or wrong or None, spent)


def _solve(at: Attack, seed: int) -> str | None:
    options = dict(at.options)
    bounds = (0.0, None) if options.pop("positive") else None
    weight = options["sample_weight"]
    lam = 1.0 / (at.C * (len(at.y) if weight is None else weight.sum()))
    found = adasdca.solve(at.X, at.y, lam=lam, bounds=bounds, tol=TOL, random_state=seed, **options)
    if found.converged and found.gap <= TOL * found.primal:
        return None
    return f"{found.status.value} at {found.relative_gap:.1e}"


def _fit(at: Attack, seed: int) -> str | None:
    options = dict(at.options)
    weight = options.pop("sample_weight")
    regression = LOSSES[options["loss"]].kind == "regression"
    model = adasdca.AdaSDCARegressor if regression else adasdca.AdaSDCAClassifier
    fitted = model(C=at.C, tol=TOL, random_state=seed, **options)
    fitted.fit(at.X, at.y, sample_weight=weight)
    if fitted.converged_ and fitted.dual_gap_ <= TOL * fitted.certificate_.primal:
        return None
    return f"{fitted.status_.value} at {fitted.certificate_.relative_gap:.1e}"


def show(results: list[Result]) -> str:
    """Return failures by loss and by kind."""
    parts = []
    for title, key in (("loss", lambda r: r.loss), ("kind", lambda r: r.kind)):
        rows = []
        for name in dict.fromkeys(map(key, results)):
            row = [name]
            for fit in (False, True):
                mine = [r for r in results if key(r) == name and r.fit is fit]
                row.append(f"{sum(r.failure is not None for r in mine)} of {len(mine)}")
            rows.append(row)
        parts.append(table([title, "solve", "estimators"], rows))
    failed = Counter(r.fit for r in results if r.failure)
    parts.append(
        f"{len(results)} problems: {failed[False]} solves and {failed[True]} fits failed; "
        f"the slowest took {seconds(max((r.seconds for r in results), default=0.0))}"
    )
    return "\n\n".join(parts)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--problems", type=int, default=1500, help="solves")
    parser.add_argument("--estimators", type=int, default=400, help="fits")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--case", type=int, nargs=2, metavar=("SEED", "INDEX"))
    parser.add_argument("--fit", action="store_true", help="fit the case, do not solve it")
    args = parser.parse_args()
    if args.case:
        result = run((*args.case, args.fit))
        print(result)
        return int(result.failure is not None)
    tasks = [(args.seed, k, False) for k in range(args.problems)]
    tasks += [(args.seed, k, True) for k in range(args.estimators)]
    results: list[Result] = []
    for result in in_processes(run, tasks, args.jobs, chunk=10):
        results.append(result)
        if result.failure:
            fit = " --fit" if result.fit else ""
            number = "{} {}".format(*result.number)
            print(f"--case {number}{fit}: {result.loss}: {result.failure}", flush=True)
    print(f"\n{show(results)}")
    return int(any(r.failure for r in results))


if __name__ == "__main__":
    sys.exit(main())
