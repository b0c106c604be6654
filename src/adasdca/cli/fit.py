"""`adasdca fit`: a model from data, with its certificate."""

from __future__ import annotations

import dataclasses
import platform
import shlex
import sys
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import adasdca
from adasdca import models
from adasdca.cli import inputs
from adasdca.cli.interrupt import stoppable
from adasdca.cli.output import (
    Kept,
    certificate_lines,
    described,
    emit,
    emit_json,
    keep,
    note,
    plain,
)
from adasdca.cli.progress import Progress
from adasdca.cli.quality import in_words, quality
from adasdca.cli.refusals import blame, check_output, refusal
from adasdca.methods import get_method
from adasdca.solution import Status

#: What the file of a model is, by the name of its format.
FORMATS = {"adasdca": models.as_bytes, "liblinear": models.liblinear_bytes}


def fit(
    data: inputs.Data = "mushrooms",
    model: Annotated[
        Path | None, typer.Option("--model", "-m", metavar="OUT", help="Where to write the model.")
    ] = None,
    model_format: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="adasdca, or liblinear for LIBLINEAR's predict.",
            autocompletion=lambda incomplete: [w for w in FORMATS if w.startswith(incomplete)],
        ),
    ] = "adasdca",
    loss: inputs.LossName = "logistic",
    lam: inputs.Lam = None,
    C: inputs.Cost = None,
    l1_ratio: inputs.L1Ratio = 0.0,
    positive: inputs.Positive = False,
    intercept: inputs.Intercept = False,
    bias: Annotated[
        float | None,
        typer.Option(
            "--bias", "-B", help="Append a constant feature of this value, penalised (LIBLINEAR)."
        ),
    ] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(metavar="CLASS=W", help="Weight of a class; may be repeated."),
    ] = None,
    gamma: inputs.Gamma = None,
    epsilon: inputs.Epsilon = None,
    delta: inputs.Delta = None,
    quantile: inputs.QuantileLevel = None,
    method: inputs.MethodName = "auto",
    tol: inputs.Tol = 1e-4,
    max_epochs: inputs.MaxEpochs = 1000,
    max_time: inputs.MaxTime = None,
    seed: inputs.Seed = 0,
    threads: Annotated[int, typer.Option(help="Classes fitted at the same time.", min=1)] = 1,
    target: inputs.Target = None,
    file_format: inputs.Format = None,
    features: inputs.Features = None,
    zero_based: inputs.ZeroBased = False,
    plugin: inputs.PluginFiles = None,
    as_json: inputs.Json = False,
) -> None:
    """Fit a linear model, to a certified accuracy.

    Minimises the mean loss plus lam ((1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1). The loss says
    whether the target is a label or a number. With more than two classes, one model for each
    against the rest. Ctrl-C ends the fit with the best model so far.
    """
    from adasdca.cli.training import Recipe, class_weights, train

    _check_output(model, model_format)
    chosen = inputs.chosen_loss(loss, gamma=gamma, epsilon=epsilon, delta=delta, quantile=quantile)
    recipe = Recipe(
        loss=chosen,
        lam=lam,
        C=C,
        l1_ratio=l1_ratio,
        positive=positive,
        bias=bias,
        intercept=intercept,
        method=method,
        tol=tol,
        max_epochs=max_epochs,
        max_time=max_time,
        seed=seed,
        threads=threads,
    )
    recipe.check()
    with blame("--method"):
        get_method(method)
    how = inputs.Reading(file_format, target, features, zero_based)
    source = inputs.read_data(data, how)
    table = source.table
    y = inputs.labels(table, chosen)
    if weight and chosen.kind == "regression":
        raise refusal("there are no classes in regression.", "--weight")
    weights = class_weights(weight or [], y)
    if model_format == "liblinear":
        with blame("--model-format"):
            classes = None if chosen.kind == "regression" else np.unique(y)
            models.check_liblinear(chosen, classes)
    facts = source.describe()
    with stoppable():
        note(f"{data}: {facts['n']} rows, {facts['d']} features, {_kind(y, chosen)}")
        with Progress(tol) as progress:
            done = train(table.X, y, recipe, weights, progress.follow("fit"))
        fitted = dataclasses.replace(
            done.model, provenance=_provenance(facts, recipe, done), feature_names=table.names
        )
        kept = None if model is None else keep(FORMATS[model_format](fitted), model)
        result = quality(fitted, fitted.predict(table.X), y)
        if as_json:
            emit_json(_document(facts, recipe, done, fitted, result, kept))
        for line in _summary(recipe, done, fitted, kept):
            note(line)
        note(f"on these rows: {in_words(result)}")
        if kept is not None and kept.trouble:
            note(f"Error: {kept.trouble}")
            if kept.path is None and not as_json:
                emit(kept.text)
            raise typer.Exit(3)
        if done.status is not Status.CONVERGED:
            note(_advice(done.status, recipe))
            raise typer.Exit(130 if done.status is Status.INTERRUPTED else 1)


def _check_output(path: Path | None, model_format: str) -> None:
    """Refuse what cannot be written before anything is computed."""
    if model_format not in FORMATS:
        raise refusal(
            f"{model_format!r} is unknown; choose one of {', '.join(FORMATS)}.", "--model-format"
        )
    if path is not None:
        check_output(path, "--model")


def _kind(y: Any, loss: Any) -> str:
    return "regression" if loss.kind == "regression" else f"{len(np.unique(y))} classes"


def _provenance(facts: dict[str, Any], recipe: Any, done: Any) -> dict[str, Any]:
    return {
        "versions": {
            "adasdca": adasdca.__version__,
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("numpy", "scipy", "scikit-learn")},
        },
        "data": facts,
        "command": shlex.join(["adasdca", *sys.argv[1:]]),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "method": recipe.method,
        "tol": recipe.tol,
        "seed": recipe.seed,
        "status": done.status.value,
        "epochs": done.epochs,
        "seconds": done.seconds,
    }


def _document(
    facts: dict[str, Any],
    recipe: Any,
    done: Any,
    fitted: Any,
    result: dict[str, Any],
    kept: Kept | None,
) -> dict[str, Any]:
    options = dataclasses.asdict(recipe) | {
        "loss": described(recipe.loss),
        "lam": fitted.lam,
        "C": done.C,
    }
    classes = None if fitted.classes is None else [plain(k) for k in fitted.classes]
    return {
        "adasdca": adasdca.__version__,
        "data": facts | {"classes": classes},
        "problem": options,
        "status": done.status.value,
        "epochs": done.epochs,
        "seconds": done.seconds,
        "certificates": fitted.certificates,
        "training": result,
        "nonzeros": int(np.count_nonzero(fitted.coef)),
        "model": None if kept is None or kept.path is None else str(kept.path),
        **({"model_base64": kept.text} if kept is not None and kept.path is None else {}),
    }


def _summary(recipe: Any, done: Any, fitted: Any, kept: Kept | None) -> list[str]:
    epochs = f"{done.epochs} epoch{'s' * (done.epochs != 1)}"
    how = f"{done.status.value}, {epochs}, {done.seconds:.2f} s"
    where = "no model written; name a file with --model"
    if kept is not None:
        where = "no model written" if kept.path is None else f"model: {kept.path}"
    return [
        f"{recipe.loss.name}, C = {done.C:g} (lam = {fitted.lam:g}): {how}",
        *certificate_lines(fitted.certificates),
        where,
    ]


def _advice(status: Status, recipe: Any) -> str:
    words = {
        Status.EPOCH_LIMIT: f"raise --max-epochs (now {recipe.max_epochs}) or --tol",
        Status.TIME_LIMIT: f"raise --max-time (now {recipe.max_time}) or --tol",
        Status.STALLED: "this is as far as double precision goes on these data: raise --tol",
        Status.INTERRUPTED: "it was interrupted",
    }[status]
    return f"The relative gap asked for, {recipe.tol:g}, was not reached; {words}."
