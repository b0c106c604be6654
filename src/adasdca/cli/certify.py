"""`adasdca certify`: how far a model, whoever fitted it, can be from the best one."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import typer

import adasdca
from adasdca import models
from adasdca.cli import inputs, options, rows
from adasdca.cli.output import (
    busy,
    certificate,
    certificate_lines,
    described,
    emit,
    emit_json,
    note,
    plain,
)
from adasdca.cli.usage import check_positive, usage_error, usage_errors
from adasdca.models import Model


def certify(
    model: options.ModelFile,
    data: options.Data,
    epochs: Annotated[
        int,
        typer.Option(help="Epochs of a solve for a better lower bound, at most.", min=0),
    ] = 20,
    tol: Annotated[
        float | None,
        typer.Option(help="Exit code 1 if the relative gap is above this.", min=0.0),
    ] = None,
    lam: Annotated[
        float | None, typer.Option(help="lam of the problem.", show_default="the model's")
    ] = None,
    C: Annotated[
        float | None, typer.Option("--C", "-c", help="C of the problem: lam = 1/(C N).")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="LIBLINEAR's -p, for its models of regression.", show_default="0.1"),
    ] = None,
    intercept: Annotated[
        bool,
        typer.Option("--intercept", help="The intercept is not penalised (LIBLINEAR's -R)."),
    ] = False,
    ignore_extra: rows.IgnoreExtra = False,
    target: options.Target = None,
    file_format: options.Format = None,
    zero_based: options.ZeroBased = False,
    plugin: options.PluginFiles = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Certify a model on data: how far it can be from the best one.

    Prints its objective, a lower bound on the best one, and the gap between them; the radius bounds
    the distance of the coefficients from the best ones. The model may be one of `adasdca fit` or of
    LIBLINEAR. A file of LIBLINEAR does not store its C: give it with --C.
    """
    if lam is not None and C is not None:
        raise usage_error("lam = 1/(C N), so give one of --lam and --C.", "--lam")
    for option, value in (("--lam", lam), ("--C", C)):
        check_positive(option, value)
    fitted = rows.read_model(model, data)
    how = inputs.Reading(file_format, target, None, zero_based)
    source = rows.read_rows(data, how, fitted, ignore_extra)
    y = inputs.labels(source.table, fitted.loss, "DATA")
    fitted = _completed(fitted, epsilon, intercept)
    if C is not None:
        lam = 1.0 / (C * fitted.total_weight(y))
    if lam is not None:
        fitted = dataclasses.replace(fitted, lam=lam)
    if fitted.lam is None:
        raise usage_error(
            "models of LIBLINEAR do not tell their C; give the one they were trained with.", "--C"
        )
    X = rows.fitting_rows(source.table, fitted, ignore_extra)
    with usage_errors("DATA"), busy("Certifying"):
        points = models.certify(fitted, X, y, epochs=epochs)
    names = [None] if len(points) == 1 else [plain(k) for k in fitted.classes]  # type: ignore[union-attr]
    found = [certificate(point, name) for point, name in zip(points, names, strict=True)]
    if as_json:
        emit_json(_document(source, fitted, found, epochs))
    else:
        emit("\n".join(certificate_lines(found, most=len(found))))
    before = fitted.provenance.get("data", {}).get("sha256")
    if before is not None and before != source.sha256:
        note(
            "The SHA-256 is not that of the data that the model was fitted on; the certificate is "
            "for these."
        )
    worst = max(point.relative_gap for point in points)
    if tol is not None and worst > tol:
        note(
            f"The relative gap, {worst:.1e}, is above --tol {tol:g}; if the model is good, more "
            f"--epochs (now {epochs}) prove it."
        )
        raise typer.Exit(1)


def _completed(model: Model, epsilon: float | None, intercept: bool) -> Model:
    """Return the model with what LIBLINEAR's file does not tell."""
    if epsilon is not None:
        loss = inputs.chosen_loss(model.loss.name, epsilon=epsilon)
        model = dataclasses.replace(model, loss=loss)
    if intercept:
        model = dataclasses.replace(model, bias=-1.0, fit_intercept=True)
    return model


def _document(
    source: inputs.Source, model: Model, certificates: list[dict[str, Any]], epochs: int
) -> dict[str, Any]:
    return {
        "adasdca": adasdca.__version__,
        "data": source.describe(),
        "problem": {
            "loss": described(model.loss),
            "lam": model.lam,
            "l1_ratio": model.l1_ratio,
            "positive": model.positive,
            "bias": model.bias,
            "intercept": model.fit_intercept,
            "multinomial": model.multinomial,
        },
        "epochs": epochs,
        "certificates": certificates,
    }
