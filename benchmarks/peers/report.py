"""Tables and the picture of a race: `python -m benchmarks.peers.report FILE ...`.

Several files are read as one; where they have the same case, the last one counts. `--all` prints
every solver's times, `--picture PNG` draws.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from benchmarks import output
from benchmarks.peers.summary import summarise, time_to

MEANS = {
    "threads": "threads",
    "loss": "loss",
    "mean": "geometric mean",
    "compared": "compared",
    "faster": "we faster",
    "only_ours": "only we reached it",
    "only_peer": "only a peer did",
    "no_peer": "no peer has the loss",
}


def merge(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return one result with the cases of all, the later ones in place of the earlier ones."""
    cases = {(c["data"], c["loss"], c["threads"], c["lam"]): c for r in results for c in r["cases"]}
    merged = {**results[-1], "cases": list(cases.values())}
    return merged | summarise(merged["cases"], merged["accuracies"])


def about(result: dict[str, Any]) -> str:
    """Return the machine, the versions and who was missing, in a few lines."""
    m, cases = result["machine"], result["cases"]
    versions = {s["name"].split()[0]: s["version"] for c in cases for s in c["solvers"]}
    ours = next(s["name"] for c in cases for s in c["solvers"] if s["role"] == "ours")
    waits = [c["waiting"] for c in cases if c["waiting"] is not None]
    lines = [
        f"{m['processor']}, {m['cores']} cores, level {m['level']}, Python {m['python']}",
        ", ".join(f"{name} {version}" for name, version in versions.items()),
        f"ours: {ours}; median of up to {result['repeats']} runs; {m['date']}",
    ]
    if max(waits, default=1.0) > 1.1:
        lines.append(f"the machine was busy: wall time up to {max(waits):.2f} × processor time")
    lines += [f"without {name}: {reason}" for name, reason in result["missing"].items()]
    return "\n".join(lines)


def _peer(row: dict[str, Any]) -> str:
    if row["peer"] is not None:
        return str(row["peer"])
    return "none reached it" if row["any_peer"] else "no peer"


def _means(result: dict[str, Any]) -> list[list[str]]:
    return [
        [output.ratio(mean[k]) if k == "mean" else str(mean[k]) for k in MEANS]
        for mean in result["means"]
    ]


def show(result: dict[str, Any]) -> str:
    """Return the tables for the screen."""
    head = ["data", "loss", "threads", "accuracy", "ours", "fastest peer", "its time", "ratio"]
    lines = [
        [
            row["data"],
            row["loss"],
            str(row["threads"]),
            f"{row['accuracy']:.0e}",
            output.seconds(row["ours"]),
            _peer(row),
            output.seconds(row["peer_seconds"]),
            output.ratio(row["ratio"]),
        ]
        for row in result["rows"]
    ]
    title = "time to a relative suboptimality; ratio = fastest peer / ours, above 1 we are faster"
    means = output.table(list(MEANS.values()), _means(result), left=(1,))
    return f"{about(result)}\n\n{title}\n{output.table(head, lines, left=(0, 1, 5))}\n\n{means}"


def everyone(result: dict[str, Any]) -> str:
    """Return every solver's time to every accuracy."""
    accuracies = result["accuracies"]
    head = ["data", "loss", "threads", "solver", *(f"{a:.0e}" for a in accuracies), "ladder ended:"]
    lines = []
    for case in result["cases"]:
        key = [case["data"], case["loss"], str(case["threads"])]
        for solver in case["solvers"]:
            times = [output.seconds(time_to(solver, a)) for a in accuracies]
            lines.append([*key, solver["name"], *times, solver["stopped"]])
        for name, reason in case["left_out"].items():
            lines.append([*key, name, *["–"] * len(accuracies), f"left out: {reason}"])
    return output.table(head, lines, left=(0, 1, 3, len(head) - 1))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers.report", description="Tables and the picture of a race."
    )
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--all", action="store_true", help="every solver's times")
    parser.add_argument("--picture", metavar="PNG", help="draw the picture into this file")
    parser.add_argument("--means", metavar="PNG", help="draw the means over the data sets")
    args = parser.parse_args()
    result = merge([output.load(f) for f in args.files])
    print(show(result))
    if args.all:
        print(f"\n{everyone(result)}")
    if args.picture or args.means:
        # Here, so that the tables need no matplotlib.
        from benchmarks.peers import picture

        if args.picture:
            picture.draw(result, args.picture)
        if args.means:
            picture.draw_means(result, args.means)


if __name__ == "__main__":
    main()
