"""Pictures of what was measured; nothing is computed here. Needs the extra `adasdca[plot]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from adasdca.storage import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: What a picture may be saved as.
SUFFIXES = (".png", ".pdf", ".svg")

#: The colours of the project. Those of Okabe and Ito are told apart by the colour-blind; the others
#: are darker or greyer than these.
COLORS = {
    "blue": "#0b3c8c",
    "orange": "#e69f00",
    "green": "#009e73",
    "red": "#a11d1d",
    "sky": "#56b4e9",
    "black": "#000000",
    "purple": "#b0579f",
    "grey": "#8f8f8f",
}
_SOLID, _DASHED, _DOTTED = "-", (0, (4, 1.5)), (0, (1, 1.2))
_LONG, _MIXED = (0, (7, 2)), (0, (6, 2, 1, 2))
_DASHES = (_SOLID, _MIXED, _DASHED, _LONG, _DOTTED)
_MARKERS = "sDvo^*hPX<>"


@dataclass(frozen=True)
class Style:
    """How a method is named and drawn, the same in every picture.

    Attributes
    ----------
    name : str
        Its name in legends.
    color : str
        A colour as ``#rrggbb``.
    linestyle : str or tuple
        Dashes as matplotlib knows them; they tell lines apart in grey.
    marker : str
        A marker of matplotlib.
    """

    name: str
    color: str
    linestyle: Any
    marker: str

    @property
    def line(self) -> dict[str, Any]:
        """The arguments of ``axes.plot``, but for the label."""
        return {"color": self.color, "linestyle": self.linestyle, "marker": self.marker}


#: The methods by their labels in tables. No two share colour and dashes, nor dashes and marker.
METHODS = {
    "sdca": Style("SDCA", "#a6a6a6", _SOLID, "o"),
    "sdca-perm": Style("SDCA, permutations", "#6f6f6f", _LONG, "P"),
    "iprox-sdca": Style("IProx-SDCA", COLORS["sky"], _DOTTED, "^"),
    "quartz": Style("QUARTZ", COLORS["purple"], _DASHED, "h"),
    "adasdca+ (II)": Style("AdaSDCA+, option II", COLORS["orange"], _MIXED, "D"),
    "adasdca+ (I)": Style("AdaSDCA+, option I", COLORS["blue"], _SOLID, "s"),
    "adasdca+ (III)": Style("AdaSDCA+, option III", COLORS["green"], _LONG, "X"),
    "adasdca": Style("AdaSDCA", COLORS["red"], _DASHED, "v"),
    "auto": Style("auto", COLORS["black"], _DOTTED, "*"),
}


def drawing(module: str = "figure") -> Any:
    """Return a module of matplotlib, which is loaded with the first picture."""
    try:
        return import_module(f"matplotlib.{module}")
    except ImportError as error:
        raise ImportError(
            "Pictures need matplotlib; install it with `pip install 'adasdca[plot]'`."
        ) from error


def series(count: int, start: int = 0) -> list[dict[str, Any]]:
    """Return `count` styles for lines of no particular meaning, no two of them equal."""
    colors = list(COLORS.values())
    return [
        {
            "color": colors[k % len(colors)],
            "linestyle": _DASHES[(k + k // len(colors)) % len(_DASHES)],
            "marker": _MARKERS[k % len(_MARKERS)],
        }
        for k in range(start, start + count)
    ]


@dataclass(frozen=True)
class Curve:
    """A relative duality gap as it fell, survey by survey.

    Attributes
    ----------
    label : str
        Name in the legend.
    epoch, seconds, relative_gap : (k,) array
        One entry a survey; gaps that are not positive are left out of the picture.
    """

    label: str
    epoch: NDArray[np.int64]
    seconds: NDArray[np.float64]
    relative_gap: NDArray[np.float64]


def _figure(size: tuple[float, float], dpi: int = 150) -> Figure:
    """Return a new figure that belongs to no window; its size is in inches."""
    figure: Figure = drawing().Figure(figsize=size, dpi=dpi, layout="constrained")
    return figure


def convergence(
    curves: Sequence[Curve],
    *,
    tol: float | None = None,
    title: str = "",
    figure: Figure | None = None,
) -> Figure:
    """Draw relative gaps against epochs and against seconds, on a logarithmic scale.

    Parameters
    ----------
    curves : sequence of Curve
        The curves, in the order of the legend. A label of `METHODS` has its look.
    tol : float, optional
        A goal, drawn as a thin line.
    title : str, optional
        A line above the picture.
    figure : matplotlib.figure.Figure, optional
        Where to draw, e.g. ``plt.figure(layout="constrained")``; by default a new figure that
        belongs to no window.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; save it with ``figure.savefig(path)``.
    """
    figure = figure or _figure((10.0, 4.4))
    by_epoch, by_time = figure.subplots(1, 2, sharey=True)
    taken = [(look.color, look.linestyle) for look in METHODS.values()]
    free = [s for s in series(len(curves) + 40) if (s["color"], s["linestyle"]) not in taken]
    seen = {METHODS[curve.label].color for curve in curves if curve.label in METHODS}
    others = iter(sorted(free, key=lambda style: style["color"] in seen))  # new colours first
    for curve in curves:
        look = METHODS.get(curve.label)
        line = {**(look.line if look else next(others)), "linewidth": 1.6, "markersize": 4.5}
        line["label"] = look.name if look else curve.label
        line["markevery"] = 0.12  # the same spacing on the page whatever the number of surveys
        by_epoch.semilogy(curve.epoch, curve.relative_gap, **line)
        by_time.semilogy(curve.seconds, curve.relative_gap, **line)
    times = np.concatenate([[s for s in curve.seconds if s > 0] for curve in curves] or [[]])
    if len(times) and times.max() >= 10 * times.min():
        by_time.set_xscale("log")
    else:  # less than a decade has no room for the labels of a logarithmic scale
        by_time.set_xlim(left=0)
        by_time.locator_params(axis="x", nbins=5)
    by_epoch.locator_params(axis="x", integer=True)
    by_epoch.set_xlabel("epochs")
    by_epoch.set_ylabel("relative duality gap")
    by_time.set_xlabel("seconds")
    for axes in (by_epoch, by_time):
        tidy(axes)
        if tol:
            axes.axhline(tol, color="black", linewidth=0.6)
    by_epoch.set_xlim(left=0)
    handles, labels = by_epoch.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return figure


def residuals(
    predictions: NDArray[np.float64],
    errors: NDArray[np.float64],
) -> Figure:
    """Draw residuals, target minus prediction, against predictions, and how often they occur."""
    figure = _figure((10.0, 4.0), dpi=100)
    cloud, shape = figure.subplots(1, 2, sharey=True, width_ratios=(2.2, 1.0))
    shown = slice(None, None, max(1, len(errors) // 5000))  # a page of a million points is heavy
    cloud.plot(
        predictions[shown], errors[shown], ".", color=COLORS["blue"], markersize=3, alpha=0.5,
        rasterized=len(errors) > 2000,
    )  # fmt: skip
    cloud.set(xlabel="prediction", ylabel="target minus prediction")
    shape.hist(errors, bins=40, orientation="horizontal", color=COLORS["sky"])
    shape.set_xlabel("rows")
    for axes in (cloud, shape):
        tidy(axes)
        axes.axhline(0.0, color="black", linewidth=0.6)
    return figure


def calibration(said: NDArray[np.float64], seen: NDArray[np.float64]) -> Figure:
    """Draw how often predictions of groups of rows are right against their mean probability."""
    figure = _figure((5.0, 4.4), dpi=100)
    axes = figure.subplots()
    low = min(float(said.min()), float(seen.min()), 0.95)
    axes.plot([low, 1.0], [low, 1.0], color="0.5", linestyle=":", label="as often as it says")
    axes.plot(said, seen, color=COLORS["blue"], marker="s", markersize=4.5, label="the model")
    axes.set(xlabel="probability of the predicted class", ylabel="share of them that is right")
    tidy(axes)
    axes.legend(frameon=False)
    return figure


def coefficient_paths(
    panels: Sequence[tuple[str, NDArray[np.float64], NDArray[np.float64]]],
    names: Sequence[str] | None = None,
) -> Figure:
    """Draw coefficients along C in a new figure that belongs to no window.

    A panel is its title, the (k,) values of C, and the (k, d) coefficients; `names` are of
    features.
    """
    across = min(len(panels), 3)
    down = -(-len(panels) // across)
    size = (7.0 if across == 1 else 4.2 * across, 4.4 if down == 1 else 3.4 * down)
    figure = _figure(size)
    grid = figure.subplots(down, across, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, (title, Cs, coefs) in zip(grid.flat, panels, strict=False):
        lines = draw_coefficients(axes, Cs, coefs, names)
        finish_path(axes)
        tidy(axes)
        axes.set_title(title, fontsize="medium")
        if names is not None:  # beside the ends of the lines, in their order
            named = [line for line in lines if line.get_label() in map(str, names)]
            named.sort(key=lambda line: -line.get_ydata()[-1])
            axes.legend(handles=named, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


def score_path(
    Cs: NDArray[np.float64],
    means: NDArray[np.float64],
    deviations: NDArray[np.float64],
    names: Sequence[str],
    *,
    best: float,
    ylabel: str,
) -> Figure:
    """Draw the scores of cross-validation along C in a new figure that belongs to no window.

    `means` and `deviations` over the folds have a row for each curve; a single one needs no name.
    The C chosen, `best`, is drawn as a line.
    """
    figure = _figure((7.0, 4.4))
    axes = figure.subplots()
    for mean, deviation, name, style in zip(
        means, deviations, names, series(len(means)), strict=True
    ):
        label = name if len(means) > 1 else "mean of the folds"
        axes.plot(Cs, mean, **{**style, "linewidth": 1.6, "markersize": 4.5, "label": label})
        axes.fill_between(Cs, mean - deviation, mean + deviation, color=style["color"], alpha=0.15)
    axes.axvline(best, color="0.3", linestyle=":", linewidth=1.0, label=f"C = {best:.3g}")
    axes.set_ylabel(ylabel)
    tidy(axes)
    finish_path(axes)
    return figure


def draw_coefficients(
    axes: Axes,
    Cs: NDArray[np.float64],
    coefs: NDArray[np.float64],
    names: Sequence[str] | None = None,
    count: int = 8,
    **kwargs: Any,
) -> list[Any]:
    """Draw coefficients along C, the largest ones named; return the lines."""
    lines: list[Any] = axes.plot(Cs, coefs, **{"color": "0.8", "linewidth": 0.8, **kwargs})
    axes.set_ylabel("coefficient")
    largest = np.argsort(-np.abs(coefs).max(axis=0), kind="stable")[:count]
    for j, style in zip(largest, series(len(largest)), strict=True):
        look = {k: v for k, v in style.items() if k != "marker" and k not in kwargs}
        lines[j].set(**{"linewidth": 1.4, "zorder": 3, **look, **kwargs})
        if names is not None:
            lines[j].set_label(str(names[j]))
    return lines


def finish_path(axes: Axes) -> None:
    """Label the axis of C, and add the legend if there is something in it."""
    axes.set(xlabel="C", xscale="log")
    if axes.get_legend_handles_labels()[1]:
        axes.legend()


def save(figure: Figure, path: Path) -> None:
    """Write a picture; a file of that name is replaced in one step when the new one is whole."""
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower())


def check_path(path: Path) -> None:
    """Refuse a path that a picture cannot be written to, before anything is computed."""
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path} is not a picture; choose a name in {', '.join(SUFFIXES)}.")
    if not path.resolve().parent.is_dir():
        raise ValueError(f"{path} cannot be written: its folder does not exist; make it first.")


def tidy(axes: Axes) -> None:
    """Leave two sides and a light grid."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(True, which="major", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
