"""The picture of a race, drawn from its results: time against suboptimality, a panel a case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

FLOOR = 1e-10
MARKERS = "osv^D<>Pp*hX"


def styles(cases: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return a style for every solver: a colour a package, black for ours, a marker a solver."""
    roles = {s["name"]: s["role"] for c in cases for s in c["solvers"]}
    packages: dict[str, list[str]] = {}
    for name, role in roles.items():
        packages.setdefault(name.split()[0] if role == "peer" else "", []).append(name)
    found = {}
    colour = 0
    for package, names in packages.items():
        for k, name in enumerate(names):
            found[name] = {
                "color": f"C{colour}" if package else "black",
                "marker": MARKERS[k % len(MARKERS)],
                "linestyle": "--" if roles[name] == "variant" else "-",
                "linewidth": 1.0 if package else 2.0,
                "markersize": 3.5,
                "zorder": 2 if package else 3,
            }
        colour += bool(package)
    return found


def draw(result: dict[str, Any], path: str | Path) -> None:
    """Draw every setting of every solver; a line goes from the loosest setting to the tightest."""
    cases = result["cases"]
    rows = list(dict.fromkeys((c["loss"], c["threads"]) for c in cases))
    columns = list(dict.fromkeys(c["data"] for c in cases))
    width, height = 3.0 * len(columns) + 3.0, 2.4 * len(rows) + 0.6
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(len(rows), len(columns), squeeze=False)
    for ax in axes.flat:
        ax.set_visible(False)
    style, lines = styles(cases), {}
    for case in cases:
        ax = axes[rows.index((case["loss"], case["threads"])), columns.index(case["data"])]
        ax.set_visible(True)
        for solver in case["solvers"]:
            x = [run["median"] for run in solver["runs"]]
            y = [max(run["suboptimality"], FLOOR) for run in solver["runs"]]
            (lines[solver["name"]],) = ax.loglog(x, y, **style[solver["name"]])
        ax.set_ylim(FLOOR / 2, 1.0)
        ax.grid(visible=True, alpha=0.3)
        threads = f", {case['threads']} threads" if case["threads"] > 1 else ""
        ax.set_title(f"{case['data']}, {case['loss'].replace('_', ' ')}{threads}", fontsize=8)
        ax.tick_params(which="both", labelsize=6)
        ax.set_xlabel("seconds", fontsize=7)
        ax.set_ylabel("relative suboptimality", fontsize=7)
    figure.legend(lines.values(), lines.keys(), loc="outside right upper", fontsize=7)
    figure.savefig(path, dpi=130)
