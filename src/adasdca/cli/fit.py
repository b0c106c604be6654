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
from adasdca.cli import blocks, inputs, options, search
from adasdca.cli.output import (
    Saved,
    certificate_lines,
    described,
    emit,
    emit_json,
    note,
    plain,
    print_error,
    save_somewhere,
)
from adasdca.cli.progress import Progress, stops_on_ctrl_c
from adasdca.cli.quality import in_words, quality, remarks
from adasdca.cli.usage import check_output, check_picture, usage_error, usage_errors
from adasdca.errors import counted
from adasdca.methods import get_method
from adasdca.solution import Status

#: What the file of a model is, by the name of its format.
FORMATS = {"adasdca": models.as_bytes, "liblinear": models.liblinear_bytes}


def fit(
    data: options.MaybeData = None,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", metavar="OUT", help="Where to write the model.")
    ] = None,
    model_format: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="adasdca, or liblinear for LIBLINEAR's predict.",
            autocompletion=options.completes(FORMATS),
        ),
    ] = "adasdca",
    loss: options.LossName = "logistic",
    lam: options.Lam = None,
    C: options.Cost = None,
    l1_ratio: options.L1Ratio = 0.0,
    positive: options.Positive = False,
    intercept: options.Intercept = None,
    bias: Annotated[
        float | None,
        typer.Option(
            "--bias", "-B", help="Append a constant feature of this value, penalised (LIBLINEAR)."
        ),
    ] = None,
    multi_class: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="More than two classes: multinomial, or ovr (each against the rest, as LIBLINEAR "
            "does); auto: multinomial where the loss is logistic.",
        ),
    ] = "auto",
    weight: Annotated[
        list[str] | None,
        typer.Option(metavar="CLASS=W", help="Weight of a class; may be repeated."),
    ] = None,
    cv: Annotated[
        int | None, typer.Option(help="Cross-validate with this many folds, shuffled.", min=2)
    ] = None,
    search_wanted: Annotated[
        bool, typer.Option("--search", help="Choose C by cross-validation, then fit all rows.")
    ] = False,
    cs: Annotated[
        str | None,
        typer.Option("--Cs", metavar="A,B,...", help="For --search.", show_default="1e-4,...,1e4"),
    ] = None,
    l1_ratios: Annotated[
        str | None,
        typer.Option("--l1-ratios", metavar="A,B,...", help="For --search: choose l1_ratio, too."),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="For --search: draw the scores, .png, .pdf or .svg."),
    ] = None,
    gamma: options.Gamma = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    quantile: options.QuantileLevel = None,
    method: options.MethodName = "auto",
    tol: options.Tol = 1e-4,
    max_epochs: options.MaxEpochs = 1000,
    max_time: options.MaxTime = None,
    seed: options.Seed = 0,
    threads: Annotated[
        int, typer.Option(help="Classes, or folds, fitted at the same time.", min=1)
    ] = 1,
    memory_limit: Annotated[
        str,
        typer.Option(
            metavar="BYTES",
            help="Memory for data and fit, e.g. 2GB; what would take more is read in blocks.",
            show_default="what is free",
        ),
    ] = inputs.AUTO,
    target: options.Target = None,
    columns: options.Columns = None,
    drop: options.Drop = None,
    one_hot: options.OneHot = None,
    missing: options.Missing = "refuse",
    file_format: options.Format = None,
    features: options.Features = None,
    zero_based: options.ZeroBased = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page about the fit, .html.")
    ] = None,
    plugin: options.PluginFiles = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit a linear model, to a certified accuracy.

    Minimises the mean loss plus lam ((1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1), with an intercept
    that is not penalised: the same model that the estimators fit in Python. The loss says whether
    the target is a label or a number. Ctrl-C ends the fit with the best model so far.
    """
    from adasdca.cli.training import Recipe, class_weights, train

    _check_outputs(model, model_format, picture, report)
    search.check(search_wanted, Cs=cs, l1_ratios=l1_ratios, picture=picture)
    chosen = inputs.chosen_loss(loss, gamma=gamma, epsilon=epsilon, delta=delta, quantile=quantile)
    if model_format == "liblinear" and multi_class == "auto":
        multi_class = "ovr"  # the format knows no other
    recipe = Recipe(
        loss=chosen,
        lam=lam,
        C=C,
        l1_ratio=l1_ratio,
        positive=positive,
        bias=bias,
        intercept=bias is None if intercept is None else intercept,
        multi_class=multi_class,
        method=method,
        tol=tol,
        max_epochs=max_epochs,
        max_time=max_time,
        seed=seed,
        threads=threads,
    )
    recipe.check()
    grid = search.numbers(cs, "--Cs", 0.0, np.inf)
    ratios = search.numbers(l1_ratios, "--l1-ratios", 0.0, 1.0)
    get_method(method)
    how = inputs.Reading(file_format, target, features, zero_based, columns, drop, one_hot, missing)
    source = inputs.read_data(inputs.chosen_data(data), how, memory_limit)
    table = source.table
    if source.limit is not None:
        recipe = _in_blocks(recipe, cv=cv, search=search_wanted, report=report, bias=bias)
    y = inputs.labels(table, chosen)
    if weight and chosen.kind == "regression":
        raise usage_error("there are no classes in regression.", "--weight")
    weights = class_weights(weight or [], y)
    classes = None if chosen.kind == "regression" else np.unique(y)
    if model_format == "liblinear":
        with usage_errors("--model-format"):
            models.check_liblinear(chosen, classes)
    validation = search.chosen_search(search_wanted, cv, grid, ratios, len(y))
    facts = source.describe()
    with stops_on_ctrl_c():
        kind = "regression" if classes is None else counted(len(classes), "class")
        size = f"{counted(facts['n'], 'row')}, {counted(facts['d'], 'feature')}"
        note(f"{table.source}: {size}, {kind}")
        if source.limit is not None and classes is not None and len(classes) > 2:
            note("In blocks each class is fitted against the rest.")
        with Progress(tol) as progress:
            follow = progress.follow("fit")
            done = train(table.X, y, recipe, weights, follow, validation, source.limit)
        fitted = dataclasses.replace(
            done.model,
            provenance=_provenance(facts, recipe, done),
            feature_names=table.names,
            columns=None if table.columns is None else dataclasses.asdict(table.columns),
        )
        saved = None if model is None else save_somewhere(FORMATS[model_format](fitted), model)
        result = quality(fitted, fitted.predict(table.X), y)
        if search_wanted and not as_json:
            search.print_search(done.estimator)
        if as_json:
            document = _document(facts, recipe, done, fitted, result, saved)
            if validation is not None:
                document["cross_validation"] = search.as_dict(done.estimator)
            emit_json(document)
        for line in _summary(recipe, done, fitted, saved):
            note(line)
        if validation is not None:
            # Asked for, so that it is said even with --quiet.
            (note if search_wanted or as_json else emit)(search.scores_in_words(done.estimator))
        note(f"on these rows: {in_words(result)}")
        for line in remarks(result, recipe.intercept or bias is not None):
            note(line)
        if picture is not None:
            search.draw(done.estimator, picture)
            note(f"picture: {picture}")
        if report is not None:
            done.estimator.report(
                table.X,
                y,
                path=report,
                feature_names=table.names,
                title=table.source,
                command=fitted.provenance["command"],
            )
            note(f"report: {report}")
        if saved is not None and saved.trouble:
            print_error(f"Error: {saved.trouble}")
            if saved.path is None and not as_json:
                emit(saved.text)
            raise typer.Exit(3)
        if done.status is not Status.CONVERGED:
            note(_advice(done.status, recipe))
            raise typer.Exit(130 if done.status is Status.INTERRUPTED else 1)


def _in_blocks(recipe: Any, **others: Any) -> Any:
    """Return the recipe for rows that stay on the disk; refuse options that need them in memory."""
    blocks.refuse_others(
        **others,
        method=recipe.method != "auto",
        multi_class=recipe.multi_class == "multinomial",
    )
    return dataclasses.replace(recipe, multi_class="ovr", threads=1)


def _check_outputs(
    path: Path | None, model_format: str, picture: Path | None, report: Path | None
) -> None:
    """Refuse what cannot be written before anything is computed."""
    if model_format not in FORMATS:
        raise usage_error(
            f"{model_format!r} is unknown; choose one of {', '.join(FORMATS)}.", "--model-format"
        )
    if path is not None:
        check_output(path, "--model")
    if report is not None:
        if report.suffix.lower() not in (".html", ".htm"):
            raise usage_error(
                f"{report} must be a page in HTML; choose a name in .html.", "--report"
            )
        check_output(report, "--report")
    if picture is not None:
        check_picture(picture, "--picture")


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
    saved: Saved | None,
) -> dict[str, Any]:
    problem = dataclasses.asdict(recipe) | {
        "loss": described(recipe.loss),
        "lam": fitted.lam,
        "C": done.C,
        "l1_ratio": fitted.l1_ratio,
        "multinomial": fitted.multinomial,
    }
    classes = None if fitted.classes is None else [plain(k) for k in fitted.classes]
    return {
        "adasdca": adasdca.__version__,
        "data": facts | {"classes": classes},
        "problem": problem,
        "status": done.status.value,
        "epochs": done.epochs,
        "seconds": done.seconds,
        "certificates": fitted.certificates,
        "training": result,
        "nonzeros": int(np.count_nonzero(fitted.coef)),
        "model": None if saved is None or saved.path is None else str(saved.path),
        **({"model_base64": saved.text} if saved is not None and saved.path is None else {}),
    }


def _summary(recipe: Any, done: Any, fitted: Any, saved: Saved | None) -> list[str]:
    how = f"{done.status.value}, {counted(done.epochs, 'epoch')}, {done.seconds:.2f} s"
    where = "no model written; name a file with --model"
    if saved is not None:
        where = "no model written" if saved.path is None else f"model: {saved.path}"
    return [
        f"{recipe.loss.name}, C = {done.C:g} (lam = {fitted.lam:g}): {how}",
        *certificate_lines(fitted.certificates),
        where,
    ]


def _advice(status: Status, recipe: Any) -> str:
    words = {
        Status.EPOCH_LIMIT: f"raise --max-epochs (now {recipe.max_epochs}) or --tol",
        Status.TIME_LIMIT: f"raise --max-time (now {recipe.max_time}) or --tol",
        Status.STALLED: "the solve made no more progress: raise --tol, or scale the features",
        Status.INTERRUPTED: "it was interrupted",
    }[status]
    return f"The relative gap asked for, {recipe.tol:g}, was not reached; {words}."
