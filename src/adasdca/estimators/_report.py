"""A page about a fit: what was fitted on what, its certificate, and what it says of the data.

The page is one file without scripts, and everything in it is in it: it can be forwarded.
"""

from __future__ import annotations

import html
import io
import math
from importlib import metadata
from typing import Any

import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.metrics import d2_pinball_score

from adasdca import plotting
from adasdca.duality.certificate import Certificate, in_figures
from adasdca.problem.losses import Quantile
from adasdca.solution import History

#: Coefficients in the table of a class or target.
LARGEST = 15
#: Classes or targets whose coefficients are shown.
TABLES = 6
#: Groups of rows in a calibration curve, at most, and the fewest rows of one.
BINS, FEWEST = 10, 10

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2330; --soft: #5b6475; --line: #dfe3ea; --bar: #0b3c8c;
  --minus: #a11d1d; --paper: #ffffff; --box: #f5f7fa; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #9aa4b5; --line: #343b48;
  --bar: #7aa2e3; --minus: #e08080; --paper: #14171d; --box: #1d222b; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
p.soft, td.soft, caption { color: var(--soft); } p.words { font-size: 1.1rem; }
.box { background: var(--box); border-radius: .5rem; padding: .6rem 1rem; overflow-x: auto; }
table { border-collapse: collapse; margin: .6rem 0; } caption { text-align: left; }
th, td { text-align: right; padding: .2rem .7rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
.numbers td:not(:first-child) { white-space: nowrap; }
td.bar { width: 12rem; padding: 0; } td.bar span { display: block; height: .8rem; }
@media (max-width: 600px) { td.bar { width: 5rem; } th, td { padding: .2rem .4rem; } }
.plus { background: var(--bar); } .minus { background: var(--minus); }
.wide { overflow-x: auto; } figure { margin: 0; background: #fff; border-radius: .5rem; }
svg { max-width: 100%; height: auto; } code { white-space: pre-wrap; word-break: break-word; }
"""


def report(
    model: Any,
    X: Any,
    y: Any,
    *,
    shape: tuple[int, int],
    feature_names: Any = None,
    title: str = "",
    command: str | None = None,
) -> str:
    """Return the page about a fitted estimator on the rows that it was fitted on."""
    n, d = shape
    names = feature_names
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    counted = "" if names is not None else " Features are counted from 0."
    names = [f"feature {j}" for j in range(d)] if names is None else [str(name) for name in names]
    sections = [
        _head(model, title, n, d, y),
        _certificate(model),
        _convergence(model),
        _coefficients(model, names, counted),
        _quality(model, X, y),
        _certified(model, X),
        _repeat(model, command),
    ]
    name = html.escape(title or type(model).__name__)
    return (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{name}: a certified fit</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(sections)
        + "\n</body></html>\n"
    )


def _table(rows: list[list[str]], head: list[str] | None = None) -> str:
    """Return a table; cells are HTML."""
    top = "" if head is None else f"<tr>{''.join(f'<th>{h}</th>' for h in head)}</tr>"
    body = "".join(
        "<tr>" + "".join(c if c.startswith("<td") else f"<td>{c}</td>" for c in row) + "</tr>"
        for row in rows
    )
    kind = "" if head is None else " class='numbers'"
    return f"<div class='wide'><table{kind}>{top}{body}</table></div>"


def _labels(model: Any) -> list[str]:
    """Name the rows of the coefficients."""
    count = len(np.atleast_2d(model.coef_))
    classes = getattr(model, "classes_", None)
    if count == 1:
        return [""]
    if classes is None:
        return [f"target {k}" for k in range(count)]
    return [f"class {label}" for label in classes.tolist()]


def _each(model: Any, name: str) -> list[Any]:
    value = getattr(model, name)
    return list(value) if isinstance(value, (list, np.ndarray)) else [value]


def _number(x: float) -> str:
    return "unbounded" if math.isinf(x) else in_figures(x)


def _head(model: Any, title: str, n: int, d: int, y: Any) -> str:
    loss = model._loss()
    C = getattr(model, "C_", getattr(model, "C", None))
    ratio = getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 0.0))
    what = "Regression"
    facts = [["rows", f"{n:,}"], ["features", f"{d:,}"]]
    if hasattr(model, "classes_"):
        labels, counts = np.unique(np.asarray(y), return_counts=True)
        what = "Classification"
        names = [f"{k:g}" if isinstance(k, float) else str(k) for k in labels.tolist()]
        shown = ", ".join(f"{k} ({c:,})" for k, c in zip(names, counts, strict=True))
        facts.append(["classes (rows)", html.escape(shown)])
    else:
        facts.append(["target", f"mean {np.mean(y):.4g}, standard deviation {np.std(y):.4g}"])
    penalty = "L2" if ratio == 0 else "L1" if ratio == 1 else f"elastic net, l1_ratio {ratio:g}"
    facts += [
        ["loss", html.escape(loss.name.replace("_", " ") + _parameters(loss))],
        ["penalty", f"{penalty}, C = {C:g}"],
        ["intercept", "yes" if model.fit_intercept else "no"],
    ]
    if hasattr(model, "best_score_"):
        folds = f"{len(model.scores_)} folds, mean score {model.best_score_:.4g}"
        chosen = model.scores_[0].size > 1
        facts.append(["C chosen by cross-validation" if chosen else "cross-validation", folds])
    heading = html.escape(title or type(model).__name__)
    return f"<h1>{heading}</h1><p class='soft'>{what} with a linear model</p>{_table(facts)}"


def _parameters(loss: Any) -> str:
    """Return the parameters of a loss in brackets, nothing if it has none."""
    _, _, inside = repr(loss).partition("(")
    return "" if inside == ")" else f" ({inside}"


def _certificate(model: Any) -> str:
    found: list[Certificate] = _each(model, "certificate_")
    worst = max(found, key=lambda c: c.relative_gap)
    words = html.escape(str(worst))
    labels = _labels(model) if len(found) > 1 else ["the model"]
    if len(found) > 1:
        words = f"The weakest of {len(found)} certificates: {words}"
    rows = [
        [
            html.escape(label),
            f"{c.primal:.8g}",
            f"{c.dual:.8g}",
            f"{c.gap:.1e}",
            f"{c.relative_gap:.1e}",
            _number(c.radius),
        ]
        for label, c in zip(labels, found, strict=True)
    ]
    head = ["", "objective", "no model has less than", "gap", "relative gap", "radius"]
    reached = "was reached" if model.converged_ else "was not reached"
    return (
        f"<h2>Certificate</h2><p class='words box'>{words}</p>{_table(rows, head)}"
        f"<p class='soft'>The accuracy asked for, a relative gap of {model.tol:g}, {reached}. The "
        "radius bounds the distance of the coefficients from the exact ones. The certificate is "
        "proved for these rows; it says nothing of others.</p>"
    )


def _svg(figure: Any) -> str:
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "font.family": "sans-serif"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return f"<figure>{text[text.index('<svg') :]}</figure>"


def _convergence(model: Any) -> str:
    found: list[History] = _each(model, "history_")
    labels = _labels(model) if len(found) > 1 else ["relative gap"]
    curves = [
        plotting.Curve(label, h.epoch, h.seconds, h.relative_gap)
        for label, h in list(zip(labels, found, strict=True))[:TABLES]
    ]
    return f"<h2>Convergence</h2>{_svg(plotting.convergence(curves, tol=model.tol or None))}"


def _coefficients(model: Any, names: list[str], counted: str) -> str:
    coef = model._dense_coef()
    radii = np.broadcast_to(np.ravel(model.radius_), len(coef))
    labels = _labels(model)
    parts = ["<h2>Largest coefficients</h2>"]
    for k in range(min(len(coef), TABLES)):
        w, radius = coef[k], float(radii[k])
        order = np.argsort(-np.abs(w), kind="stable")[:LARGEST]
        order = order[w[order] != 0]
        most = float(np.abs(w[order]).max()) if len(order) else 1.0
        rows = []
        for j in order:
            width = 100 * abs(w[j]) / most
            side = "plus" if w[j] > 0 else "minus"
            sure = "certain" if abs(w[j]) > radius else "not certain"
            rows.append(
                [
                    html.escape(names[j]),
                    f"{w[j]:+.4g}",
                    f"<td class='bar'><span class='{side}' style='width:{width:.1f}%'></span></td>",
                    sure,
                ]
            )
        certain = int(np.count_nonzero(np.abs(w) > radius))
        if labels[k]:
            parts.append(f"<h3>{html.escape(labels[k])}</h3>")
        parts.append(_table(rows, ["feature", "coefficient", "", "sign"]))
        parts.append(
            f"<p class='soft'>{np.count_nonzero(w):,} of {len(w):,} coefficients are not 0; the "
            f"sign of {certain:,} is certain: they are farther from 0 than the radius, "
            f"{_number(radius)}, so the exact solution has the same sign.{counted}</p>"
        )
    if len(coef) > TABLES:
        parts.append(f"<p class='soft'>and {len(coef) - TABLES} more.</p>")
    return "".join(parts)


def _quality(model: Any, X: Any, y: Any) -> str:
    score = model.score(X, y)
    predictions = model.predict(X)
    if not hasattr(model, "classes_"):
        residual = np.asarray(y, dtype=np.float64) - predictions
        figure = plotting.residuals(np.ravel(predictions), np.ravel(residual))
        words = (
            f"R² {score:.4g} on these rows; mean absolute error {np.abs(residual).mean():.4g}, "
            f"root mean squared error {np.sqrt(np.mean(residual**2)):.4g}."
        )
        loss = model._loss()
        if isinstance(loss, Quantile):
            d2 = d2_pinball_score(y, predictions, alpha=loss.quantile)
            words = (
                f"{100 * np.mean(residual <= 0):.4g} % of the targets are at most what is "
                f"predicted, for the quantile {loss.quantile:g}; D² of the quantile loss {d2:.4g} "
                "on these rows."
            )
        return f"<h2>Residuals</h2><p>{words}</p>{_svg(figure)}"
    right = int(np.count_nonzero(predictions == np.asarray(y)))
    words = f"Accuracy {100 * score:.4g} % on these rows ({right:,} of {len(predictions):,})."
    if not hasattr(model, "predict_proba"):
        return (
            f"<h2>Predictions</h2><p>{words} The loss {html.escape(model._loss().name)} gives no "
            "probabilities, so there is no calibration.</p>"
        )
    chances = model.predict_proba(X)
    groups = max(1, min(BINS, len(chances) // FEWEST))
    hits = predictions == np.asarray(y)
    seen, said = calibration_curve(hits, chances.max(axis=1), n_bins=groups, strategy="quantile")
    figure = plotting.calibration(said, seen)
    return (
        f"<h2>Calibration</h2><p>{words} Rows are grouped by the probability of the predicted "
        f"class: on the diagonal it is as often right as it says.</p>{_svg(figure)}"
    )


def _certified(model: Any, X: Any) -> str:
    if hasattr(model, "classes_"):
        margin = model.certified_margin(X)
        safe = int(np.count_nonzero(margin > 0))
        words = (
            f"{safe:,} of {len(margin):,} predictions ({100 * safe / len(margin):.4g} %) are "
            "certified: the exact optimum predicts the same class."
        )
        if safe < len(margin):
            words += " A smaller tol certifies more of them."
    else:
        error = np.ravel(model.certified_error(X))
        words = (
            f"Each prediction is within {_number(float(error.max()))} of that of the exact optimum "
            f"(half of them within {_number(float(np.median(error)))})."
        )
    return f"<h2>Certified predictions</h2><p class='box'>{words}</p>"


def _repeat(model: Any, command: str | None) -> str:
    line = command or f"{model!r}.fit(X, y)"
    packages = ("adasdca", "scikit-learn", "numpy")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in packages)
    return (
        f"<h2>To repeat it</h2><p class='box'><code>{html.escape(line)}</code></p>"
        f"<p class='soft'>{html.escape(versions)}</p>"
    )
