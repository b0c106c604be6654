"""Cost per non-zero as the data grow: `python -m benchmarks.scaling [--sizes 1e5 1e6 1e7 1e8]`,
and how passes gain by threads: `--threads 1 2 16`, on the last size.

Synthetic sparse data, float32, with the same kind of rows at every size: 20 non-zeros among
20,000 features, so that the vector of coefficients stays in the cache and only the rows outgrow
it. An epoch of O(nnz) has a flat cost per non-zero once the rows are out of the cache; the ratio
of the largest to the least such cost is printed last.

With threads, the copy of the rows into records is timed, and passes of a second-order phase (a
point with its derivatives, an iteration of conjugate gradients, a line search, the choice of a
working set of a loss with kinks and its certificate) on 20,000 and on 200,000 features; told are
seconds on the first number of threads, and how many times faster the others are. Results do not
depend on threads, which is checked.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from adasdca.ascent.plans import Visits
from adasdca.ascent.schedules import AdaptiveSchedule
from adasdca.backends.base import FOREVER
from adasdca.backends.cpu import LocalBackend
from adasdca.problem.problem import Problem
from adasdca_reproduce.experiments import synthetic
from adasdca_reproduce.problems import generate
from benchmarks import output
from benchmarks.measure import (
    Task,
    forget_peak,
    interleaved,
    last_level_cache,
    machine,
    peak_bytes,
    resident_bytes,
)

PER_ROW = 20
FEATURES = 20_000


def sized(nnz: int, features: int = FEATURES) -> tuple[Any, Any]:
    """Return rows and labels with about nnz non-zeros, as in the paper's table of costs."""
    return generate(synthetic(max(2, nnz // PER_ROW), PER_ROW, features))


def case(nnz: int, loss: str, repeats: int) -> dict[str, Any]:
    """Time the parts of an epoch at one size, and take the memory of a solve."""
    X, y = sized(nnz)
    n = len(y)
    resettable = forget_peak()
    loaded = resident_bytes()
    problem = Problem.checked(X, y, loss=loss, lam=1 / n)
    backend = LocalBackend(problem, pack=True)
    schedule = AdaptiveSchedule(problem)
    key = 0

    def look() -> Any:
        survey = backend.survey(schedule.needs)
        assert survey is not None
        return survey

    survey = look()
    plan = schedule.plan(survey, 0)
    assert plan is not None

    drawn = Visits(backend.epochs.draw(plan, FOREVER))

    def epoch() -> None:
        nonlocal key
        key += 1
        coming = schedule.plan(look(), key)
        assert coming is not None
        backend.ascend(coming)

    epoch()
    peak = peak_bytes()
    seconds = interleaved(
        {
            "survey": Task(look),
            "plan": Task(lambda: backend.epochs.draw(plan, FOREVER)),
            "ascent": Task(lambda: backend.ascend(drawn)),
            "epoch": Task(epoch),
        },
        repeats,
    )
    data = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes
    extra = peak - loaded if resettable and peak is not None and loaded is not None else None
    return {
        "nnz": int(X.nnz),
        "n": n,
        "seconds": seconds,
        "bytes": {"data": data, "packed": backend.packed_bytes, "extra": extra},
    }


def flatness(cases: list[dict[str, Any]], cache: int) -> float | None:
    """Return the largest over the least cost per non-zero among sizes at least twice the cache."""
    costs = [c["seconds"]["epoch"] / c["nnz"] for c in cases if c["bytes"]["packed"] >= 2 * cache]
    return max(costs) / min(costs) if len(costs) > 1 else None


def measure(sizes: list[int], loss: str, repeats: int) -> dict[str, Any]:
    cases = []
    for nnz in sizes:
        cases.append(case(nnz, loss, repeats))
        print(f"measured {nnz:.3g} non-zeros", flush=True)
    return {
        "machine": machine(),
        "loss": loss,
        "repeats": repeats,
        "cases": cases,
        "flatness": flatness(cases, last_level_cache()),
    }


def passes(backend: LocalBackend, kinked: LocalBackend) -> dict[str, Any]:
    """Return what is timed of a smooth problem and of one with kinks, each returning arrays."""
    n, d = backend.workspace.n, backend.workspace.d
    rng = np.random.default_rng(1)
    w, dv = 0.1 * rng.standard_normal(d), 0.1 * rng.standard_normal(d)
    scores = kinked.problem.rows.matrix @ w
    centre = -kinked.problem.loss.slope(scores, kinked.problem.y)
    centre[rng.integers(n, size=n // 100)] = 0.0
    line = backend.term()
    line.place(w, 0.0)
    line.aim(dv, 0.0)

    def derivatives() -> Any:
        return backend.term().place(w, 0.0).u

    def certificate() -> Any:
        found = kinked.certify(w, 0.0, centre)
        return found.primal, found.dual

    return {
        "derivatives": derivatives,
        "iteration": lambda: line.curve(dv, 0.0)[0],
        "line search": lambda: line.search((-1.0, 1.0, 1.0), line.slope(0.0).value - 1.0)[0],
        "working set": lambda: kinked.term(0.1, centre, (w, 0.0), 1e-3).place(w, 0.0).u,
        "certificate": certificate,
    }


def packing(X: Any, y: Any, threads: int) -> Task:
    """Return the copy of rows into records, each time of a backend of its own."""
    problem, made = Problem.checked(X, y, loss="logistic", lam=1 / len(y)), []

    def prepare() -> None:
        made[:] = [LocalBackend(problem, threads, pack=True)]

    return Task(lambda: made[0].workspace.pack(threads), prepare)


def threaded(nnz: int, features: int, threads: list[int], repeats: int) -> dict[str, Any]:
    """Time passes on several numbers of threads, in turn."""
    X, y = sized(nnz, features)

    def made(loss: str, count: int) -> LocalBackend:
        problem = Problem.checked(X, y, loss=loss, lam=1 / len(y))
        return LocalBackend(problem, count, pack=False)

    kinds = {each: passes(made("logistic", each), made("hinge", each)) for each in threads}
    for name, first in kinds[threads[0]].items():
        expected = first()
        for each in threads[1:]:
            assert np.array_equal(expected, kinds[each][name]()), f"{name}, {each} threads"
    tasks = {f"{name}/{each}": Task(task) for each in threads for name, task in kinds[each].items()}
    tasks |= {f"packing/{each}": packing(X, y, each) for each in threads}
    # As in a solve: its threads wait in loops, on the processors that others are to have.
    with threadpool_limits(1, "blas"):
        seconds = interleaved(tasks, repeats)
    return {"nnz": int(X.nnz), "features": features, "threads": threads, "seconds": seconds}


def show_threads(cases: list[dict[str, Any]]) -> str:
    rows = []
    for c in cases:
        first, *more = c["threads"]
        for name in dict.fromkeys(key.partition("/")[0] for key in c["seconds"]):
            base = c["seconds"][f"{name}/{first}"]
            gains = [f"{base / c['seconds'][f'{name}/{each}']:.2f}" for each in more]
            rows.append([f"{c['nnz']:.3g}", str(c["features"]), name, output.seconds(base), *gains])
    first, *more = cases[0]["threads"]
    head = ["non-zeros", "features", "pass", f"{first} threads", *(f"{each} ×" for each in more)]
    return output.table(head, rows)


def show(result: dict[str, Any]) -> str:
    kinds = ("survey", "plan", "ascent", "epoch")
    rows = [
        [
            f"{c['nnz']:.3g}",
            *(f"{1e9 * c['seconds'][k] / c['nnz']:.2f}" for k in kinds),
            output.seconds(c["seconds"]["epoch"]),
            *(output.size(c["bytes"][k]) for k in ("data", "packed", "extra")),
            f"{c['bytes']['extra'] / c['nnz']:.1f}" if c["bytes"]["extra"] else "–",
        ]
        for c in result["cases"]
    ]
    head = ["non-zeros", *(f"{k} ns/nnz" for k in kinds)]
    head += ["epoch", "data", "packed", "extra at peak", "extra B/nnz"]
    flat = result["flatness"]
    cache = output.size(result["machine"]["last_level_cache"])
    end = (
        f"fewer than two sizes beyond twice the cache of {cache}: no flatness ratio"
        if flat is None
        else f"out of the cache of {cache}: largest/least cost of an epoch per non-zero {flat:.2f}"
    )
    return f"{output.table(head, rows)}\n{end}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sizes", nargs="+", type=float, default=[1e5, 1e6, 1e7, 1e8], help="numbers of non-zeros"
    )
    parser.add_argument("--loss", default="squared")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", nargs="+", type=int, help="numbers of threads to compare")
    parser.add_argument("--out", help="results file")
    args = parser.parse_args()
    if args.threads:
        nnz = round(args.sizes[-1])
        cases = [threaded(nnz, d, args.threads, args.repeats) for d in (FEATURES, 10 * FEATURES)]
        result = {"machine": machine(), "cases": cases}
        told = show_threads(cases)
    else:
        result = measure([round(s) for s in args.sizes], args.loss, args.repeats)
        told = show(result)
    print(f"\n{told}\n\nwritten to {output.save(result, args.out, 'scaling.json')}")


if __name__ == "__main__":
    main()
