"""From runs to times and ratios.

The time of a solver to an accuracy is the least median time among its settings that reach it. A
ratio is the time of the fastest peer over ours: above 1 we are faster.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any


def time_to(solver: dict[str, Any], accuracy: float) -> float | None:
    """Return the solver's time to the accuracy; None if no setting reaches it."""
    times = [r["median"] for r in solver["runs"] if r["suboptimality"] <= accuracy]
    return min(times, default=None)


def rows(cases: Sequence[dict[str, Any]], accuracies: Sequence[float]) -> list[dict[str, Any]]:
    """Return a row per case and accuracy: our time, the fastest peer's name and time, the ratio."""
    found = []
    for case in cases:
        ours = next(s for s in case["solvers"] if s["role"] == "ours")
        peers = [s for s in case["solvers"] if s["role"] == "peer"]
        for accuracy in accuracies:
            times = {s["name"]: t for s in peers if (t := time_to(s, accuracy)) is not None}
            fastest = min(times, key=lambda name: times[name], default=None)
            mine = time_to(ours, accuracy)
            theirs = times[fastest] if fastest else None
            found.append(
                {
                    **{key: case[key] for key in ("data", "loss", "threads")},
                    "accuracy": accuracy,
                    "ours": mine,
                    "peer": fastest,
                    "peer_seconds": theirs,
                    "any_peer": bool(peers),
                    "ratio": theirs / mine if mine and theirs else None,
                }
            )
    return found


def geometric_mean(values: Sequence[float]) -> float | None:
    return statistics.geometric_mean(values) if values else None


def means(table: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the geometric mean of the ratios by threads and loss, and in all.

    A mean counts the rows where both sides reached the accuracy; the others are counted beside it.
    """
    found = []
    for threads in sorted({r["threads"] for r in table}):
        here = [r for r in table if r["threads"] == threads]
        losses = list(dict.fromkeys(r["loss"] for r in here))
        for loss in [*losses, "all"]:
            part = [r for r in here if loss in ("all", r["loss"])]
            ratios = [r["ratio"] for r in part if r["ratio"] is not None]
            found.append(
                {
                    "threads": threads,
                    "loss": loss,
                    "mean": geometric_mean(ratios),
                    "compared": len(ratios),
                    "faster": sum(q > 1 for q in ratios),
                    "only_ours": sum(
                        r["any_peer"] and r["ours"] is not None and r["peer"] is None for r in part
                    ),
                    "only_peer": sum(r["ours"] is None and r["peer"] is not None for r in part),
                    "no_peer": sum(not r["any_peer"] for r in part),
                }
            )
    return found


def summarise(cases: Sequence[dict[str, Any]], accuracies: Sequence[float]) -> dict[str, Any]:
    table = rows(cases, accuracies)
    return {"rows": table, "means": means(table)}
