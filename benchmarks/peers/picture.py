"""The pictures of a race, drawn from its results: time against suboptimality.

`draw` has a panel a case and every setting of every solver, `draw_means` the means over the data
sets, a panel a loss. A package has its colour in both; ours is that of `auto` everywhere.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from adasdca.plotting import COLORS, METHODS, Style
from benchmarks.peers.summary import geometric_mean, time_to

FLOOR = 1e-10
MARKERS = "osv^D<>Pp*hX"
OURS = "adasdca"
#: How packages are drawn, by the first word of their solvers.
PACKAGES = {
    OURS: Style("adasdca", METHODS["auto"].color, "-", METHODS["auto"].marker),
    "liblinear": Style("LIBLINEAR", COLORS["orange"], (0, (6, 2, 1, 2)), "D"),
    "sklearn": Style("scikit-learn", COLORS["sky"], (0, (4, 1.5)), "^"),
    "cyanure": Style("cyanure", COLORS["green"], (0, (7, 2)), "v"),
    "snapml": Style("snapml", COLORS["red"], (0, (1, 1.2)), "o"),
}


def style_of(package: str) -> Style:
    """Return how a package is drawn."""
    return PACKAGES.get(package, Style(package, COLORS["grey"], "-", "P"))


def package_of(solver: dict[str, Any]) -> str:
    """Return the package of a solver; variants of ours are ours."""
    return solver["name"].split()[0] if solver["role"] == "peer" else OURS


def styles(cases: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return a style for every solver: a colour a package, a marker a solver of it."""
    found: dict[str, dict[str, Any]] = {}
    seen: dict[str, int] = {}
    for solver in (s for c in cases for s in c["solvers"]):
        name, package = solver["name"], package_of(solver)
        if name not in found:
            k = seen[package] = seen.get(package, -1) + 1
            ours = package == OURS
            found[name] = {
                "color": style_of(package).color,
                "marker": MARKERS[k % len(MARKERS)],
                "linestyle": "--" if solver["role"] == "variant" else "-",
                "linewidth": 2.0 if ours else 1.0,
                "markersize": 3.5,
                "zorder": 3 if ours else 2,
            }
    return found


def draw(result: dict[str, Any], path: str | Path) -> None:
    """Draw every setting of every solver, in the cases with a peer; a row has its own legend.

    A line goes from the loosest setting to the tightest.
    """
    cases = [c for c in result["cases"] if any(s["role"] == "peer" for s in c["solvers"])]
    rows = list(dict.fromkeys((c["loss"], c["threads"]) for c in cases))
    columns = list(dict.fromkeys(c["data"] for c in cases))
    width, height = 3.0 * len(columns) + 3.0, 2.4 * len(rows) + 0.6
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(len(rows), len(columns), squeeze=False)
    for ax in axes.flat:
        ax.set_visible(False)
    style = styles(cases)
    lines: list[dict[str, Any]] = [{} for _ in rows]
    for case in cases:
        row = rows.index((case["loss"], case["threads"]))
        ax = axes[row, columns.index(case["data"])]
        ax.set_visible(True)
        for solver in case["solvers"]:
            x = [run["median"] for run in solver["runs"]]
            y = [max(run["suboptimality"], FLOOR) for run in solver["runs"]]
            (lines[row][solver["name"]],) = ax.loglog(x, y, **style[solver["name"]])
        ax.set_ylim(FLOOR / 2, 1.0)
        ax.grid(visible=True, alpha=0.3)
        threads = f", {case['threads']} threads" if case["threads"] > 1 else ""
        ax.set_title(f"{case['data']}, {case['loss'].replace('_', ' ')}{threads}", fontsize=8)
        ax.tick_params(which="both", labelsize=6)
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_xlabel("seconds", fontsize=7)
        ax.set_ylabel("relative suboptimality", fontsize=7)
    for row, drawn in enumerate(lines):
        axes[row, -1].legend(
            drawn.values(),
            drawn.keys(),
            loc="upper left",
            bbox_to_anchor=(1.02, 1.0),
            frameon=False,
            fontsize=7,
        )
    figure.savefig(path, dpi=130)


def mean_times(
    cases: list[dict[str, Any]], accuracies: list[float]
) -> dict[str, list[float | None]]:
    """Return each package's mean time to each accuracy, over the cases.

    The time of a package to an accuracy is that of its fastest solver there, the mean a geometric
    one. There is none where no solver of the package reaches the accuracy in one of the cases.
    """

    def compared(case: dict[str, Any]) -> list[dict[str, Any]]:
        return [s for s in case["solvers"] if s["role"] != "variant"]

    def mean(package: str, accuracy: float) -> float | None:
        fastest = []
        for case in cases:
            solvers = [s for s in compared(case) if package_of(s) == package]
            times = [t for s in solvers if (t := time_to(s, accuracy)) is not None]
            if not times:
                return None
            fastest.append(min(times))
        return geometric_mean(fastest)

    packages = dict.fromkeys(package_of(s) for c in cases for s in compared(c))
    return {package: [mean(package, a) for a in accuracies] for package in packages}


def draw_means(result: dict[str, Any], path: str | Path) -> None:
    """Draw the mean times against the accuracy, a panel for each loss that peers have as well."""
    panels: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for case in result["cases"]:
        if any(s["role"] == "peer" for s in case["solvers"]):
            panels.setdefault((case["loss"], case["threads"]), []).append(case)
    figure = Figure(figsize=(2.6 * len(panels) + 1.4, 3.0), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    lines = {}
    for ax, ((loss, threads), cases) in zip(axes, panels.items(), strict=True):
        for package, means in mean_times(cases, result["accuracies"]).items():
            look = style_of(package)
            ours = package == OURS
            (lines[look.name],) = ax.loglog(
                result["accuracies"],
                [math.nan if mean is None else mean for mean in means],
                **look.line,
                markersize=9 if ours else 5,
                linewidth=2.4 if ours else 1.3,
                zorder=3 if ours else 2,
            )
        ax.invert_xaxis()
        more = f", {threads} threads" if threads > 1 else ""
        ax.set_title(f"{loss.replace('_', ' ')} loss{more}", fontsize=10)
        ax.set_xlabel("relative suboptimality")
        ax.yaxis.set_minor_formatter(NullFormatter())
        ax.grid(visible=True, color="#e4e4e4", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("seconds, mean of the data sets")
    figure.legend(lines.values(), lines.keys(), loc="outside right center", frameon=False)
    # The same bytes for the same race.
    metadata = {"Date": None} if Path(path).suffix == ".svg" else None
    with rc_context({"svg.hashsalt": "means"}):
        figure.savefig(path, dpi=130, metadata=metadata)
