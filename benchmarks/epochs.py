"""Cost of an epoch of AdaSDCA+, part by part: `python -m benchmarks.epochs [--data NAME ...]`.

For each data set, in nanoseconds per row or per update:

    survey    the pass that gives the certificate and the distribution
    read      a plain sum over as many bytes as the survey reads
    sum       sum_i beta_i x_i alone, which every certificate needs
    passes    the products of a survey as two passes: all x_i.w, then this sum
    plan      an epoch's picks as an ordered set of rings
    tree      the same picks from a tree of sums, one by one (the paper's Random Counters)
    ascent    the updates at the plan's picks or in order, on packed rows or on the CSR arrays

and, timed as wholes, an epoch (survey, picks, ascent) with `plan` and one with `tree`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import adasdca
from adasdca import _core
from adasdca.ascent.schedules import AdaptiveSchedule
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.workspace import make_workspace
from adasdca.problem.problem import Problem
from benchmarks import memory, output
from benchmarks.measure import Task, interleaved, machine

M = 2.0
FOREVER = 1e18


def parts(X: Any, y: Any, loss: str, repeats: int) -> dict[str, float]:
    """Return the median seconds of every part, from the point that one epoch reached."""
    n = len(y)
    problem = Problem.checked(X, y, loss=loss, lam=1 / n)
    packed, plain = LocalBackend(problem, pack=True), LocalBackend(problem, pack=False)
    adaptive = frozenset({"adaptive"})
    # β = 0 is a special point: every row has the same residue. Measure after an epoch.
    packed.workspace.ascend(_core.draw_permutation(n, 0), FOREVER)
    seen = packed.survey(adaptive)
    assert seen is not None
    assert seen.adaptive is not None
    beta, distribution = seen.beta, seen.adaptive
    planner = _core.Planner()  # one for all plans, as a solve does
    picks = planner.plan(distribution, M, n, 1)
    in_order = np.arange(n, dtype=np.int32)
    record = np.ones(max(1, packed.packed_bytes // 8), dtype=np.int64)
    scores, sums = np.empty(n), np.empty(X.shape[1])

    def add() -> None:
        packed.workspace.combine(beta, sums, 1)

    def passes() -> None:
        packed.workspace.scores(seen.coef, scores, 1)
        add()

    def restart(backend: LocalBackend) -> Callable[[], None]:
        return lambda: backend.restart(beta, 0.0)

    def ascent(backend: LocalBackend, rows: Any) -> Task:
        return Task(lambda: backend.workspace.ascend(rows, FOREVER), restart(backend))

    def epoch(sampler: Any) -> Task:
        schedule = AdaptiveSchedule(problem, m=M, sampler=sampler)

        def run() -> None:
            survey = packed.survey(schedule.needs)
            assert survey is not None
            plan = schedule.plan(survey, 1)
            assert plan is not None
            packed.ascend(plan)

        return Task(run, restart(packed))

    return interleaved(
        {
            "survey": Task(lambda: packed.survey(adaptive), restart(packed)),
            "survey_unpacked": Task(lambda: plain.survey(adaptive), restart(plain)),
            "read": Task(record.sum),
            "sum": Task(add),
            "passes": Task(passes),
            "plan": Task(lambda: planner.plan(distribution, M, n, 1)),
            "tree": Task(lambda: _core.draw_tree(distribution, M, n, 1)),
            "ascent": ascent(packed, picks),
            "ascent_in_order": ascent(packed, in_order),
            "ascent_unpacked": ascent(plain, picks),
            "ascent_unpacked_in_order": ascent(plain, in_order),
            "pack": Task(lambda: make_workspace(problem, True).pack()),
            "epoch_plan": epoch("plan"),
            "epoch_tree": epoch("tree"),
        },
        repeats,
    )


def storage(X: Any, y: Any, name: str, loss: str) -> dict[str, int | None]:
    """Return the bytes of the data, the packed copy, a survey's vectors, and a whole solve."""
    backend = LocalBackend(Problem.checked(X, y, loss=loss, lam=1 / len(y)), pack=True)
    backend.workspace.pack()
    survey = backend.survey(frozenset({"adaptive"}))
    assert survey is not None
    arrays = (survey.beta, survey.adaptive, survey.curvature, survey.coef)
    vectors = sum(a.nbytes for a in arrays if a is not None)
    return {
        "data": X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes,
        "packed": backend.packed_bytes,
        "vectors": vectors,
        **memory.of_solve(name, loss),
    }


def ratios(t: dict[str, float]) -> dict[str, float]:
    return {
        "plan/ascent": t["plan"] / t["ascent"],
        "tree/plan epoch": t["epoch_tree"] / t["epoch_plan"],
        "random/in order": t["ascent"] / t["ascent_in_order"],
        "unpacked/packed": t["ascent_unpacked"] / t["ascent"],
        "survey/read": t["survey"] / t["read"],
        "sum/read": t["sum"] / t["read"],
        "survey/passes": t["survey"] / t["passes"],
    }


def measure(names: list[str], loss: str, repeats: int) -> dict[str, Any]:
    cases = []
    for name in names:
        X, y = adasdca.datasets.load(name)
        seconds = parts(X, y, loss, repeats)
        n, d = X.shape
        case = {"data": name, "n": n, "d": d, "nnz": X.nnz, "seconds": seconds}
        cases.append(case | {"ratios": ratios(seconds), "bytes": storage(X, y, name, loss)})
        print(f"measured {name}", flush=True)
    return {"machine": machine(), "loss": loss, "repeats": repeats, "cases": cases}


def show(result: dict[str, Any]) -> str:
    cases = result["cases"]
    seconds, quotients = list(cases[0]["seconds"]), list(cases[0]["ratios"])
    times = [
        [part, *(f"{1e9 * c['seconds'][part] / c['n']:.1f}" for c in cases)] for part in seconds
    ]
    quotes = [[name, *(output.ratio(c["ratios"][name]) for c in cases)] for name in quotients]
    stores = [[kind, *(output.size(c["bytes"][kind]) for c in cases)] for kind in cases[0]["bytes"]]
    names = [c["data"] for c in cases]
    rows = [[key, *(str(c[key]) for c in cases)] for key in ("n", "d", "nnz")]
    return "\n\n".join(
        [
            output.table(["data", *names], rows),
            output.table([f"ns per row ({result['loss']})", *names], times),
            output.table(["ratio", *names], quotes),
            output.table(["memory", *names], stores),
        ]
    )


def main() -> None:
    available = adasdca.datasets.available()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=available, choices=adasdca.datasets.NAMES)
    parser.add_argument("--loss", default="squared", help="loss of the parts")
    parser.add_argument("--repeats", type=int, default=11, help="timings of each part")
    parser.add_argument("--out", help="results file")
    args = parser.parse_args()
    result = measure(args.data, args.loss, args.repeats)
    print(f"\n{show(result)}\n\nwritten to {output.save(result, args.out, 'epochs.json')}")


if __name__ == "__main__":
    main()
