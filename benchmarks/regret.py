"""What `auto` loses by its choices: `python -m benchmarks.regret [--part report] [--cases 200]`.

Random problems, real and made up, are solved by `auto` and by each of its own strategies alone:
epochs only, second-order steps from the start by each kind of equations, and second-order steps
after some epochs. The regret is the time of `auto` over the least of all, 1 if `auto` chose best.
Thresholds may be fitted to the part `develop`; figures are published of the part `report`.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import scipy.sparse as sp

import adasdca
from adasdca.auto.costs import Costs
from adasdca.auto.method import Auto
from adasdca.auto.schedule import AutoSchedule
from adasdca.backends.blas import one_thread
from adasdca.backends.facts import Facts
from adasdca.datasets._folders import data_directory, read_npz
from adasdca.problem.losses import get_loss
from adasdca.problem.problem import Problem
from benchmarks import output
from benchmarks.measure import machine
from benchmarks.peers.summary import geometric_mean
from benchmarks.problems import Source, signs, some, sources

LOSSES = ("squared", "squared_hinge", "smoothed_hinge", "logistic", "hinge", "absolute", "huber")
MOST_ENTRIES = 2_000_000
LIMIT = 20.0  # seconds after which a solve by `auto` has failed


class OnlyWay(Costs):
    """Prices at which the equations are solved in one way, if that is possible at all."""

    way = "features"

    def equations(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        prices = super().equations(*args, **kwargs)
        return {self.way: prices[self.way]} if self.way in prices else prices


class Forced(AutoSchedule):
    """Epochs of one kind, then second-order steps by one kind of equations."""

    def __init__(self, strategy: Strategy, problem: Problem, facts: Facts, tol: float) -> None:
        super().__init__(problem, facts, tol, 1)
        self._strategy = strategy
        if strategy.way is not None:
            self._costs = OnlyWay(facts, problem.loss)
            self._costs.way = strategy.way
            self._second.costs = self._costs
        if strategy.adaptive is not None:
            self._wide = not strategy.adaptive

    def _few_matter(self, survey: Any) -> bool:
        return bool(self._strategy.adaptive) and survey.active > 0 and self._epochs > 0

    def _second_order_pays(self, *args: Any) -> bool:
        return self._epochs >= self._strategy.epochs


@dataclass(frozen=True)
class Strategy(Auto):
    """So many epochs, adaptive ones or permutations, and then second-order steps."""

    epochs: float = math.inf
    adaptive: bool | None = None
    way: str | None = None

    def schedule(self, problem: Problem, facts: Facts, tol: float, threads: int) -> Any:
        return Forced(self, problem, facts, tol)


STRATEGIES = {
    "permutations": Strategy(adaptive=False),
    "adaptive": Strategy(adaptive=True),
    "features": Strategy(0, way="features"),
    "rows": Strategy(0, way="rows"),
    "iterations": Strategy(0, way="iterations"),
    "2 epochs": Strategy(2, adaptive=True),
    "5 epochs": Strategy(5, adaptive=True),
    "10 epochs": Strategy(10, adaptive=True),
}


class Case(NamedTuple):
    data: str
    loss: str
    C: float
    intercept: bool
    tol: float

    @property
    def part(self) -> str:
        return "report" if crc32(repr(self).encode()) % 2 else "develop"


def made(seed: int) -> tuple[Any, Any]:
    """Return a random problem: its shape, density, conditioning, noise and norms are drawn."""
    rng = np.random.default_rng(seed)
    density = rng.choice([1.0, 1.0, 0.1, 0.01])
    n, d = round(10 ** rng.uniform(2, 4.7)), round(10 ** rng.uniform(0.5, 3.7))
    if n * d * density > MOST_ENTRIES:
        n = max(int(MOST_ENTRIES / (d * density)), 100)
    if density == 1.0:
        X: Any = rng.standard_normal((n, d))
        factors = rng.standard_normal((min(n, d, 10), d))
        X += rng.choice([0.0, 1.0]) * rng.standard_normal((n, len(factors))) @ factors
    else:
        X = sp.random(n, d, density, format="csr", random_state=rng, data_rvs=rng.standard_normal)
        X.data[:] = 1.0 if rng.random() < 0.5 else np.abs(X.data)
    spread = rng.choice([0.0, 1.0, 3.0])
    scale, norm = np.exp(spread * rng.standard_normal(d)), np.exp(rng.standard_normal(n))
    X = X * scale if density == 1.0 else sp.csr_matrix(X @ sp.diags(scale))
    if rng.random() < 0.3:
        X = X * norm[:, None] if density == 1.0 else sp.csr_matrix(sp.diags(norm) @ X)
    score = X @ (rng.standard_normal(d) / scale)
    score = score / (score.std() or 1.0)
    return X, score + rng.choice([0.1, 1.0]) * rng.standard_normal(n) + rng.choice([0.0, 3.0])


@lru_cache(maxsize=2)
def data(name: str) -> tuple[Any, Any]:
    if name.startswith("made-"):
        return made(int(name[5:]))
    if shape := re.fullmatch(r"(\d+)x(\d+)", name):
        rng = np.random.default_rng(0)
        X = rng.standard_normal(tuple(map(int, shape.groups())))
        return X, X @ rng.standard_normal(X.shape[1]) + rng.standard_normal(len(X))
    if name == "mushrooms":
        return adasdca.datasets.load_mushrooms()
    path = next(source.path for source in real() if source.name == name)
    assert path is not None
    X, y = read_npz(path, name)
    return some(X, y, max(int(MOST_ENTRIES / X.nnz * len(y)), 1), dense=0.3)


@lru_cache(maxsize=1)
def real() -> list[Source]:
    folder = data_directory()
    return [source for source in sources(folder) if source.path or source.name == "mushrooms"]


def cases(part: str, count: int) -> list[Case]:
    """Return the first `count` random cases of a part."""
    rng, found = np.random.default_rng(0), []
    names = [source.name for source in real()]
    while len(found) < count:
        real_one = rng.random() < 0.4
        name = str(rng.choice(names)) if real_one else f"made-{rng.integers(10**6)}"
        case = Case(
            name,
            str(rng.choice(LOSSES)),
            float(rng.choice([0.01, 0.1, 1.0, 10.0, 100.0])),
            bool(rng.random() < 0.5),
            float(rng.choice([1e-2, 1e-3, 1e-4, 1e-6])),
        )
        if case.part == part:
            found.append(case)
    return found


def measure(case: Case, repeats: int) -> dict[str, float]:
    """Return the processor time of `auto` and of those strategies that arrive, inf of others.

    A strategy that ends at the same digits after as many updates is what `auto` has done: the least
    of several measurements of one computation would be taken for a better choice.
    """
    X, target = data(case.data)
    y = signs(target) if get_loss(case.loss).kind == "classification" else target
    options = {"loss": case.loss, "lam": 1 / (case.C * len(y)), "fit_intercept": case.intercept}
    paths: dict[str, tuple[Any, ...]] = {}

    def seconds(name: str, limit: float | None) -> float:
        method = STRATEGIES.get(name, "auto")
        start = time.process_time()
        solution = adasdca.solve(
            X, y, tol=case.tol, method=method, random_state=0, max_time=limit, **options
        )
        spent = time.process_time() - start
        paths[name] = solution.coef.tobytes(), solution.intercept, tuple(solution.history.updates)
        return spent if solution.converged else math.inf

    began = time.perf_counter()
    first = seconds("auto", LIMIT)
    if first == math.inf:
        return {"auto": math.inf}
    first = min(first, seconds("auto", LIMIT))
    # Limits are of the wall clock, times of the processor, which others may use as well.
    limit = 3.0 * max(first, 0.5 * (time.perf_counter() - began)) + 0.01
    times: dict[str, list[float]] = {}
    repeats = max(min(repeats, int(3.0 / first)), 1)
    for turn in range(repeats):
        times.setdefault("auto", []).append(seconds("auto", LIMIT) if turn else first)
        for name in STRATEGIES:
            if turn == 0 or times[name][0] < 2.0 * first:
                times.setdefault(name, []).append(seconds(name, limit))
    same = [name for name in times if paths[name] == paths["auto"]]
    shared = [each for name in same for each in times[name]]
    return {name: statistics.median(shared if name in same else times[name]) for name in times}


def show(results: list[tuple[Case, dict[str, float]]]) -> str:
    regrets, failed = [], [case for case, times in results if times["auto"] == math.inf]
    for case, times in results:
        if case in failed:
            continue
        best = min(times, key=times.__getitem__)
        regrets.append((times["auto"] / times[best], case, best, times))
    regrets.sort(key=lambda each: -each[0])
    rows = [
        [
            f"{regret:.2f}",
            case.data,
            "x".join(map(str, data(case.data)[0].shape)),
            case.loss,
            f"{case.C:g}",
            "yes" if case.intercept else "no",
            f"{case.tol:g}",
            output.seconds(times["auto"]),
            best,
        ]
        for regret, case, best, times in regrets[:25]
    ]
    head = ["regret", "data", "shape", "loss", "C", "intercept", "tol", "auto", "best"]
    values = np.array([each[0] for each in regrets])
    lines = [
        output.table(head, rows, left=(1, 3, 8)),
        "",
        f"{len(values)} problems, geometric mean {geometric_mean(list(values)):.3f}",
        f"95 % below {np.quantile(values, 0.95):.2f}, most {values.max():.2f}",
        *(f"not in {LIMIT:g} s: {case}" for case in failed),
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", choices=["develop", "report"], default="report")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("-o", "--out", help="results file")
    args = parser.parse_args()
    results = []
    with one_thread():
        for case in cases(args.part, args.cases):
            times = measure(case, args.repeats)
            results.append((case, times))
            regret = 1.0 if len(times) == 1 else times["auto"] / min(times.values())
            print(
                f"{regret:.2f} {case} " + str({k: round(1e3 * v, 2) for k, v in times.items()}),
                flush=True,
            )
    kept = [{**case._asdict(), "seconds": times} for case, times in results]
    where = output.save({"machine": machine(), "cases": kept}, args.out, f"regret-{args.part}.json")
    print(f"written to {where}\n\n{show(results)}")


if __name__ == "__main__":
    main()
