"""How many epochs each method needs to a relative gap of 1e-6, with λ = 1/n and γ = 1.

`python -m benchmarks.epochs --epochs`. An epoch is n updates; a count is the median over the seeds.
Algorithm 1 (full AdaSDCA) is shown beside, not ranked: each of its steps may cost O(nnz).
"""

from __future__ import annotations

import statistics
from typing import Any

import adasdca
from adasdca.methods import SDCA, AdaSDCA, AdaSDCAPlus, IProxSDCA, SDCAPerm
from benchmarks import output
from benchmarks.measure import machine

TOLERANCE = 1e-6
LOSSES = ("squared", "smoothed_hinge")
METHODS = {
    "sdca": SDCA(),
    "sdca-perm": SDCAPerm(),
    "iprox-sdca": IProxSDCA(),
    "option I": AdaSDCAPlus(option="I"),
    "option II": AdaSDCAPlus(option="II"),
}
FAVOURITE = "option I"
FULL = "adasdca"
# Where n steps of Algorithm 1 take about a second, and where they take minutes.
QUICK_FULL, SLOW_FULL = ("dorothea",), ("mushrooms", "w8a", "ijcnn1")


def count(
    X: Any, y: Any, loss: str, method: Any, cap: int, seeds: int, first: int = 0
) -> float | None:
    """Return the median of updates/n over the seeds, from `first` on; None beyond the cap."""
    needed = []
    for seed in range(first, first + seeds):
        sol = adasdca.solve(
            X,
            y,
            loss=loss,
            lam=1 / len(y),
            method=method,
            tol=TOLERANCE,
            max_epochs=cap,
            random_state=seed,
        )
        needed.append(sol.n_updates / len(y) if sol.converged else float("inf"))
    middle = statistics.median(needed)
    return middle if middle < float("inf") else None


def winners(counts: dict[str, float | None]) -> list[str]:
    """Return the methods of the least count, Algorithm 1 aside; none if all hit the cap."""
    reached = {m: c for m, c in counts.items() if m != FULL and c is not None}
    least = min(reached.values(), default=None)
    return [m for m, c in reached.items() if c == least]


def measure(names: list[str], cap: int, seeds: int, full: bool) -> dict[str, Any]:
    cases = []
    for name in names:
        X, y = adasdca.datasets.load(name)
        for loss in LOSSES:
            methods: dict[str, Any] = dict(METHODS)
            if loss == "squared" and (name in QUICK_FULL or (full and name in SLOW_FULL)):
                methods[FULL] = AdaSDCA()
            counts: dict[str, float | None] = {}
            for label, method in methods.items():
                counts[label] = count(X, y, loss, method, cap, seeds)
                print(f"{name} {loss} {label}: {counts[label] or f'>{cap}'}", flush=True)
            cases.append({"data": name, "loss": loss, "counts": counts, "winners": winners(counts)})
    return {
        "machine": machine(),
        "cap": cap,
        "seeds": seeds,
        "tolerance": TOLERANCE,
        "cases": cases,
    }


def show(result: dict[str, Any]) -> str:
    """Return the table: the winner starred, and a mark on every case that option I does not win."""

    def cell(case: dict[str, Any], method: str) -> str:
        if method not in case["counts"]:
            return ""
        value = case["counts"][method]
        star = " *" if method in case["winners"] else "  "
        return (f">{result['cap']}" if value is None else f"{value:g}") + star

    rows = []
    for case in result["cases"]:
        second = FAVOURITE not in case["winners"]
        cells = [cell(case, m) for m in (*METHODS, FULL)]
        rows.append([case["data"], case["loss"], *cells, "option I not first" if second else ""])
    lost = sum(FAVOURITE not in case["winners"] for case in result["cases"])
    seeds = result["seeds"]
    over = "one seed" if seeds == 1 else f"median of {seeds} seeds"
    title = f"updates/n to a relative gap of {result['tolerance']:g}, {over}; * is the least"
    head = ["data", "loss", *METHODS, FULL, ""]
    end = f"option I is first in {len(rows) - lost} of {len(rows)} cases"
    return f"{title}\n{output.table(head, rows, left=(0, 1))}\n{end}"
