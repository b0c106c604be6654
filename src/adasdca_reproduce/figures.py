"""The pictures, drawn from stored runs alone: gaps against epochs and seconds, and epoch costs.

A curve is the median over the seeds of the epochs (or seconds) to each gap, and its band the range
over the seeds: the same numbers as in the verdicts, but interpolated between surveys.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adasdca import plotting
from adasdca.plotting import COLORS, METHODS, Style, series
from adasdca.storage import write_whole
from adasdca_reproduce.experiments import EXPERIMENTS, LOSSES, MS, with_m
from adasdca_reproduce.paper import FIGURES
from adasdca_reproduce.rates import rates
from adasdca_reproduce.results import Measure, Problem, Results, Run
from adasdca_reproduce.tables import epoch_costs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Gaps at which curves are drawn.
LEVELS = np.logspace(0, -15, 46)

# The labels of the runs, by those of `plotting.METHODS`.
_LOOKS = {
    **{label: look for label, look in METHODS.items() if not label.startswith("adasdca+")},
    **{f"option {k}": METHODS[f"adasdca+ ({k})"] for k in ("I", "II", "III")},
    "adasdca, optimal": Style("AdaSDCA, optimal probabilities", "#5e1010", "-", "X"),
    "adasdca+, optimal": Style("AdaSDCA+, optimal probabilities", "#00704f", (0, (7, 2)), "<"),
    "tree": Style("AdaSDCA+, option I, tree", COLORS["sky"], (0, (4, 1.5)), "o"),
}
STYLES: dict[str, dict[str, Any]] = {label: look.line for label, look in _LOOKS.items()}
NAMES = {label: look.name for label, look in _LOOKS.items()}
STYLES |= {
    with_m(option, m): style
    for option in ("I", "II")
    for m, style in zip(MS, series(len(MS)), strict=True)
}
_OTHER = {"color": COLORS["purple"], "linestyle": (0, (4, 1.5)), "marker": "h"}


@dataclass(frozen=True)
class Panel:
    """One pair of axes: a gap against a measure, for some methods."""

    title: str
    measure: Measure
    curves: Mapping[str, Sequence[Run]]


@dataclass(frozen=True)
class Picture:
    """A picture to be drawn, and what it shows."""

    name: str  #: File name without suffix.
    experiment: str  #: Where its runs come from.
    caption: str  #: What it shows, and which figures of the paper it stands for.
    paint: Callable[[Figure], None]  #: Draws it into an empty figure.
    size: tuple[float, float]  #: Inches.
    problem: Problem = ("", "")  #: Data set and loss; empty if it shows several.
    panels: tuple[Panel, ...] = ()  #: The curves of gaps in it.


def pictures(results: Results) -> list[Picture]:
    """Return all pictures that the stored runs allow, in the order of the page."""
    found = []
    if epoch_costs(results):
        words = "Time of an epoch of AdaSDCA and others on synthetic data; the paper's Table 1"
        costs = partial(_draw_costs, results=results)
        found.append(Picture("table1", "table1", words, costs, _size(2)))
    for name, experiment in EXPERIMENTS.items():
        if experiment.watched:
            found += [_theory(results, name, p) for p in results.problems(name)]
        elif name != "table1":
            found += [_picture(results, name, p) for p in results.problems(name)]
    return found


def draw(picture: Picture, path: Path) -> None:
    """Draw a picture into an SVG file, the same bytes for the same runs."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    settings: Any = {"svg.hashsalt": picture.name, "svg.fonttype": "none", "font.size": 8.5}
    settings["font.family"] = ["DejaVu Sans", "sans-serif"]
    with mpl.rc_context(settings):
        figure = Figure(figsize=picture.size, layout="constrained")
        picture.paint(figure)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, _shortened(text.getvalue()))


def _size(panels: int) -> tuple[float, float]:
    return 3.1 * panels + 1.7, 3.0


def _shortened(svg: str) -> str:
    """Round coordinates to a tenth of a point, for smaller files."""

    def rounded(found: re.Match[str]) -> str:
        return re.sub(r"\d+\.\d{2,}", lambda number: f"{float(number[0]):.1f}", found[0])

    return re.sub(r'\s(?:d|x|y)="[^"]*"', rounded, re.sub(r"\n\s*", "\n", svg))


def _picture(results: Results, experiment: str, problem: Problem) -> Picture:
    data, loss = problem
    curves = {m: results.runs(experiment, problem, m) for m in results.methods(experiment, problem)}
    words = f"{data}, {loss.replace('_', ' ')} loss"
    numbers = ""
    panels: tuple[Panel, ...]
    if experiment == "m":
        numbers = _numbers(("m", loss, data))
        panels = tuple(
            Panel(
                f"option {option}",
                "epochs",
                {m: runs for m, runs in curves.items() if m.startswith(f"option {option},")},
            )
            for option in ("I", "II")
        )
    elif experiment == "full":
        numbers = _numbers(("full", loss, data))
        panels = (Panel("", "epochs", curves),)
    else:
        if experiment == "methods":
            numbers = _numbers(("iterations", loss, data), ("time", loss, data))
        # A Newton step of `auto` is no epoch of updates: it is drawn against time alone.
        by_epochs = {m: runs for m, runs in curves.items() if m != "auto"}
        panels = (Panel("", "epochs", by_epochs), Panel("", "seconds", curves))
        if experiment == "methods":
            panels += (Panel("", "own seconds", curves),)
    return Picture(
        f"{experiment}-{data}-{loss}",
        experiment,
        words + numbers,
        partial(_draw_panels, panels=panels),
        _size(len(panels)),
        problem,
        panels,
    )


#: Methods whose rates are drawn, and the losses that their theorems cover.
THEOREMS = {
    "iprox-sdca": LOSSES,
    "option I": (),
    "adasdca": ("squared",),
    "adasdca, optimal": ("smoothed_hinge",),
}


def _theory(results: Results, experiment: str, problem: Problem) -> Picture:
    data, loss = problem
    words = (
        f"{data}, {loss.replace('_', ' ')} loss; gaps with their bounds (thin, without markers), "
        "and rates over that of importance sampling"
    )
    paint = partial(_draw_rates, results=results, problem=problem)
    return Picture(f"{experiment}-{data}-{loss}", experiment, words, paint, _size(2), problem)


def _numbers(*names: tuple[str, str, str]) -> str:
    found = [str(FIGURES[name]) for name in names if name in FIGURES]
    if not found:
        return "; the paper has no such figure"
    return f"; the paper's Figure{'s' if len(found) > 1 else ''} {' and '.join(found)}"


def _draw_panels(figure: Figure, panels: Sequence[Panel]) -> None:
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    handles: dict[str, Any] = {}
    for panel, pair in zip(panels, axes, strict=True):
        for label, runs in panel.curves.items():
            name = label.partition(", ")[2] if ", m = " in label else NAMES.get(label, label)
            handles.setdefault(name, _draw_curve(pair, label, runs, panel.measure))
        pair.set_yscale("log")
        if panel.measure != "epochs" and panel.curves:
            pair.set_xscale("log")
            # Own seconds begin next to 0, which no logarithm shows.
            times = [[r.at(panel.measure)[:2] for r in runs] for runs in panel.curves.values()]
            starts = [np.median([max(t[0], 0.25 * t[-1]) for t in some]) for some in times]
            pair.set_xlim(left=max(0.9 * min(starts), 1e-5))
        pair.set_xlabel("epochs (iterations / n)" if panel.measure == "epochs" else panel.measure)
        pair.set_title(panel.title, fontsize="medium")
        tidy(pair)
    axes[0].set_ylabel("relative duality gap")
    axes[0].set_ylim(1e-15, 2.0)
    figure.legend(handles.values(), handles, loc="outside right center", frameon=False)


def _draw_curve(axes: Axes, label: str, runs: Sequence[Run], measure: Measure) -> Any:
    style = STYLES.get(label, _OTHER)
    x = np.array([run.crossing(LEVELS, measure) for run in runs])
    middle = np.median(x, axis=0)
    drawn, all_there = np.isfinite(middle), np.isfinite(x).all(axis=0)
    # Own seconds are an estimate, too rough for the range of single runs.
    if len(runs) > 1 and all_there.any() and measure != "own seconds":
        least, greatest = x.min(axis=0)[all_there], x.max(axis=0)[all_there]
        axes.fill_betweenx(
            LEVELS[all_there], least, greatest, color=style["color"], alpha=0.22, linewidth=0
        )
    (line,) = axes.plot(
        middle[drawn], LEVELS[drawn], **style, linewidth=1.3, markersize=3.6, markevery=0.13
    )
    return line


def _draw_rates(figure: Figure, results: Results, problem: Problem) -> None:
    left, right = figure.subplots(1, 2)
    handles: dict[str, Any] = {}
    for method, covered in THEOREMS.items():
        seen = rates(results, problem, method)
        if seen is None:
            continue
        style = STYLES[method] | {"linewidth": 1.3, "markersize": 3.6, "markevery": 0.13}
        (line,) = left.plot(seen.epochs, seen.gap, **style)
        handles[NAMES[method]] = line
        if problem[1] in covered:
            left.plot(seen.epochs, seen.bound, color=style["color"], linewidth=0.8)
        right.plot(seen.epochs, seen.ratio, **style)
    left.set(yscale="log", xlabel="epochs", ylabel="relative duality gap, mean")
    right.set(xlabel="epochs", ylabel="θ̃ : θ*")
    right.set_ylim(bottom=0.0)
    for axes in (left, right):
        tidy(axes)
    figure.legend(handles.values(), handles, loc="outside right center", frameon=False)


def _draw_costs(figure: Figure, results: Results) -> None:
    left, right = figure.subplots(1, 2, sharey=True)
    handles: dict[str, Any] = {}
    for fit in epoch_costs(results):
        style = STYLES[fit.method] | {"linewidth": 1.3, "markersize": 3.6}
        for axes, fixed, varied in ((left, "n", "nnz"), (right, "nnz", "n")):
            values = [getattr(c, fixed) for c in fit.costs]
            common = max(set(values), key=lambda v: (values.count(v), v))
            line = [
                (getattr(c, varied), c.seconds) for c in fit.costs if getattr(c, fixed) == common
            ]
            (drawn,) = axes.plot(*zip(*sorted(line), strict=True), **style)
            handles.setdefault(NAMES[fit.method], drawn)
    for axes, label in ((left, "nnz, at fixed n"), (right, "n, at fixed nnz")):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(label)
        tidy(axes)
    left.set_ylabel("seconds of an epoch")
    figure.legend(handles.values(), handles, loc="outside right center", frameon=False)


def tidy(axes: Axes) -> None:
    """Leave two sides, a light grid and no minor ticks."""
    plotting.tidy(axes)
    axes.minorticks_off()
