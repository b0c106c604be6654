"""One set of colours, dashes, markers and names for every picture."""

import itertools
import sys

import numpy as np
import pytest
from benchmarks.peers import picture
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import adasdca
from adasdca import ConvergenceDisplay, plotting
from adasdca.cli import compare
from adasdca.solution import History, Record
from adasdca_reproduce import figures
from bundled import cancer


def luminance(color):
    """Return how light a colour is in grey, from 0 to 1."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def test_methods_are_told_apart_without_colours():
    for a, b in itertools.combinations(plotting.METHODS.values(), 2):
        assert a.name != b.name
        assert a.color != b.color
        assert (a.linestyle, a.marker) != (b.linestyle, b.marker)
        if a.linestyle == b.linestyle:
            assert abs(luminance(a.color) - luminance(b.color)) > 0.05, (a.name, b.name)


def test_every_picture_of_methods_has_their_look():
    assert compare.METHODS.keys() <= plotting.METHODS.keys()
    for option in ("I", "II"):
        look = plotting.METHODS[f"adasdca+ ({option})"]
        assert figures.STYLES[f"option {option}"] == look.line
        assert figures.NAMES[f"option {option}"] == look.name
    assert picture.PACKAGES["adasdca"].color == plotting.METHODS["auto"].color
    labels = [*plotting.METHODS, "mine", "yours"]
    figure = plotting.convergence([plotting.Curve(k, [0, 1], [0.1, 0.2], [1, 0.1]) for k in labels])
    lines = figure.axes[0].lines
    for line, look in zip(lines, plotting.METHODS.values(), strict=False):
        assert (line.get_color(), line.get_label()) == (look.color, look.name)
    looks = {(line.get_color(), str(line._unscaled_dash_pattern)) for line in lines}
    assert len(looks) == len(labels)


def test_no_two_lines_of_a_legend_look_alike():
    looks = [(s["color"], s["linestyle"]) for s in plotting.series(40)]
    assert len(set(looks)) == 40
    names = [f"feature {k}" for k in range(12)]
    axes = Figure().subplots()
    lines = plotting.draw_coefficients(
        axes, np.arange(1, 4.0), np.random.default_rng(0).normal(size=(3, 12)), names, count=12
    )
    drawn = {(line.get_color(), str(line._unscaled_dash_pattern)) for line in lines}
    assert len(drawn) == 12


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for module in ("figure", "pyplot"):
        monkeypatch.setitem(sys.modules, f"matplotlib.{module}", None)
    X, y = cancer()
    path = adasdca.path(X, 2 * y - 1, loss="logistic", Cs=[0.1, 1.0])
    model = adasdca.AdaSDCAClassifier().fit(X, y)
    for draw in (
        path.plot,
        path.solutions[0].plot,
        lambda: ConvergenceDisplay.from_estimator(model),
        lambda: model.report(X, y),
    ):
        with pytest.raises(ImportError, match=r"pip install 'adasdca\[plot\]'"):
            draw()


@pytest.mark.parametrize("own", [{}, {"c": "red", "ls": ":"}])
def test_displays_on_the_same_axes_differ(own):
    history = History.of([Record(0, 0, 0.0, 1.0, 0.0, 1.0, 9), Record(1, 9, 0.1, 1.0, 0.9, 0.1, 9)])
    axes = Figure().subplots()
    lines = []
    for name in ("one", "two"):
        lines += ConvergenceDisplay([history], [name]).plot(axes, **own).lines_
    assert lines[0].get_marker() != lines[1].get_marker()
    assert (lines[0].get_color() == lines[1].get_color()) == bool(own)


def test_seconds_have_a_scale_whose_labels_have_room():
    for last, scale in ((0.3, "linear"), (3.0, "log")):
        curve = plotting.Curve("sdca", [0, 1, 2], [0.1, 0.2, last], [1, 0.1, 0.01])
        figure = plotting.convergence([curve])
        assert figure.axes[1].get_xscale() == scale
        assert figure.axes[1].get_yscale() == "log"
    assert plotting.convergence([]).axes[1].get_xscale() == "linear"


def test_no_epoch_has_a_fraction():
    curve = plotting.Curve("sdca", [0, 1], [1e-4, 3e-4], [1, 1e-16])
    epochs, seconds = plotting.convergence([curve]).axes
    assert set(epochs.get_xticks() % 1) == {0}
    assert len(seconds.get_xticks()) <= 6
