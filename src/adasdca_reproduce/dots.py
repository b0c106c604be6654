"""Pictures of claims: verdicts on all problems at once, and what visits do to residues."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adasdca.plotting import COLORS
from adasdca_reproduce.claims import GAPS
from adasdca_reproduce.experiments import DATA, LOSSES
from adasdca_reproduce.figures import tidy
from adasdca_reproduce.inside import epochs_of
from adasdca_reproduce.rates import watched
from adasdca_reproduce.results import Results
from adasdca_reproduce.verdicts import Case

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Ratios beyond these are drawn at the edge.
MOST = 8.0
#: How a case is drawn: what holds is below 1, what does not above it, but for questions of ≤.
_MARKS: dict[str, dict[str, Any]] = {
    "holds": {"marker": "o", "color": COLORS["green"]},
    "does not hold": {"marker": "X", "color": COLORS["red"]},
    "close or tied": {"marker": "o", "markerfacecolor": "white", "color": COLORS["grey"]},
}
#: Data sets have no colours of their own elsewhere; dashes and markers tell them apart.
_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (7, 2)), (0, (6, 2, 1, 2)))
_DATA_STYLES = dict(zip(DATA, zip(_DASHES, "os^Dv", strict=True), strict=True))


def draws(cases: Sequence[Case]) -> bool:
    """Whether there are ratios to be drawn."""
    return any(case.ratio is not None for case in cases)


def size(panels: int) -> tuple[float, float]:
    """Return the width and height in inches of a picture with this number of panels."""
    across = min(panels, 4)
    return 2.0 * across + 2.2, 2.3 * -(-panels // across) + 0.5


def draw_ratios(figure: Figure, readings: Mapping[str, Sequence[Case]]) -> None:
    """Draw the ratios that decide each reading of a claim: a row a problem, a dot a gap."""
    across = min(len(readings), 4)
    grid = figure.subplots(-(-len(readings) // across), across, sharey=True, squeeze=False)
    problems = list(dict.fromkeys(c.problem for cases in readings.values() for c in cases))
    handles: dict[str, Any] = {}
    for axes in grid.flat[len(readings) :]:
        axes.set_visible(False)
    for axes, (label, cases) in zip(grid.flat, readings.items(), strict=False):
        for case in cases:
            if case.ratio is None or case.gap is None:
                continue
            word = case.verdict.value if case.decided else "close or tied"
            x = float(np.clip(case.ratio, 1 / MOST, MOST))
            y = problems.index(case.problem) + 0.17 * (GAPS.index(case.gap) - 1.5)
            (dot,) = axes.plot([x], [y], linestyle="", markersize=4.2, **_MARKS[word])
            handles.setdefault(word, dot)
        axes.axvline(1.0, color="black", linewidth=0.7)
        axes.set_xscale("log", base=2)
        axes.set_xlim(0.88 / MOST, MOST / 0.88)
        axes.set_xticks([1 / 8, 1 / 2, 1, 2, 8], ["⅛", "½", "1", "2", "8"])
        axes.set_title(label, fontsize="medium")
        tidy(axes)
    names = [f"{d}, {loss.replace('_', ' ')}" for d, loss in problems]
    grid[0, 0].set_yticks(range(len(problems)), names)
    grid[0, 0].set_ylim(len(problems) - 0.5, -0.5)
    known = [word for word in _MARKS if word in handles]
    figure.legend([handles[w] for w in known], known, loc="outside lower right", ncols=3,
                  frameon=False)  # fmt: skip


def draw_visits(figure: Figure, results: Results) -> None:
    """Draw what is left of residues at the end of an epoch, by the number of visits."""
    panels = figure.subplots(1, len(LOSSES), sharey=True)
    handles: dict[str, Any] = {}
    for axes, loss in zip(panels, LOSSES, strict=True):
        for data, (dash, marker) in _DATA_STYLES.items():
            epochs = [e for r in watched(results, (data, loss), "option I") for e in epochs_of(r)]
            points = []
            for count in range(4):
                known = [e["kept"][count] for e in epochs if e["kept"][count] is not None]
                if known:
                    points.append((count, max(statistics.median(known), 1e-3)))
            if points:
                (line,) = axes.plot(
                    *zip(*points, strict=True), color="0.25", linestyle=dash, marker=marker,
                    linewidth=1.2, markersize=4.0,
                )  # fmt: skip
                handles.setdefault(data, line)
        halved = [2.0**-k for k in range(4)]
        (line,) = axes.plot(range(4), halved, color=COLORS["blue"], linewidth=3.0, alpha=0.3)
        handles.setdefault("divided by m = 2", line)
        axes.set_yscale("log")
        axes.set_xticks(range(4))
        axes.set_xlabel("visits in the epoch")
        axes.set_title(loss.replace("_", " "), fontsize="medium")
        tidy(axes)
    panels[0].set_ylabel("residue after : before, median")
    figure.legend(handles.values(), handles, loc="outside right center", frameon=False)
