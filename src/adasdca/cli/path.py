"""`adasdca path`: solutions along the regularisation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import adasdca
from adasdca import paths, plotting
from adasdca.cli import inputs, options, search
from adasdca.cli.output import (
    certificate,
    described,
    emit_json,
    finite,
    note,
    plain,
    print_rows,
)
from adasdca.cli.progress import Progress, stops_on_ctrl_c
from adasdca.cli.usage import check_finite, check_picture
from adasdca.methods import get_method
from adasdca.solution import Solution, Status


def path(
    data: options.Data,
    C: Annotated[
        list[str] | None,
        typer.Option(
            "--C",
            "-c",
            "--Cs",
            metavar="A,B,...",
            help="Values of C = 1/(lam N), each solved for; may be repeated.",
        ),
    ] = None,
    points: Annotated[
        int, typer.Option(help="Values of C from 1e-4 to 1e4, if none are given.", min=1)
    ] = 10,
    loss: options.LossName = "logistic",
    l1_ratio: options.L1Ratio = 0.0,
    positive_only: options.Positive = False,
    intercept: options.Intercept = None,
    label: options.Class = None,
    gamma: options.Gamma = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    quantile: options.QuantileLevel = None,
    method: options.MethodName = "auto",
    tol: options.Tol = 1e-4,
    max_epochs: options.MaxEpochs = 1000,
    max_time: Annotated[
        float | None,
        typer.Option(
            help="Most seconds for each C.", min=0.0, show_default="no limit", callback=check_finite
        ),
    ] = None,
    seed: options.Seed = 0,
    threads: Annotated[int, typer.Option(help="Threads for the surveys.", min=1)] = 1,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PICTURE", help="Draw it: .png, .pdf or .svg."),
    ] = None,
    coefficients: Annotated[
        bool, typer.Option("--coefficients", help="Put the coefficients into the JSON, too.")
    ] = False,
    target: options.Target = None,
    columns: options.Columns = None,
    drop: options.Drop = None,
    one_hot: options.OneHot = None,
    missing: options.Missing = "refuse",
    file_format: options.Format = None,
    features: options.Features = None,
    zero_based: options.ZeroBased = False,
    plugin: options.PluginFiles = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Solve along C, each solution from the last one.

    Each has a certificate. With more than two classes, a path for each against the rest. Rows and
    features that provably do not matter are left out on the way; `kept` are those that were left.
    """
    if output is not None:
        check_picture(output, "--output")
    grid = [value for text in C or [] for value in search.numbers(text, "--C", 0.0, np.inf) or []]
    chosen = inputs.chosen_loss(loss, gamma=gamma, epsilon=epsilon, delta=delta, quantile=quantile)
    get_method(method)
    how = inputs.Reading(file_format, target, features, zero_based, columns, drop, one_hot, missing)
    source = inputs.read_data(data, how)
    table, free = source.table, intercept is not False
    y = inputs.labels(table, chosen)
    classes = inputs.positives(table, y, chosen, label)
    results: list[tuple[Any, paths.Path]] = []
    with stops_on_ctrl_c() as around:
        with Progress(tol) as progress:
            for positive in classes:
                if around.wished and results:
                    break
                found = paths.path(
                    table.X,
                    inputs.signs(y, positive),
                    loss=chosen,
                    Cs=grid or points,
                    l1_ratio=l1_ratio,
                    bounds=(0, None) if positive_only else None,
                    fit_intercept=free,
                    method=method,
                    tol=tol,
                    max_epochs=max_epochs,
                    max_time=max_time,
                    random_state=seed,
                    callback=progress.follow(_name(positive, classes) or "path"),
                    n_threads=threads,
                )
                results.append((positive, found))
        facts = source.describe()
        if as_json:
            problem = {
                "loss": described(chosen),
                "l1_ratio": l1_ratio,
                "positive": positive_only,
                "intercept": free,
            }
            limits = {"tol": tol, "max_epochs": max_epochs, "max_time": max_time}
            listed = [p for k, found in results for p in _points(found, coefficients, k, classes)]
            emit_json(
                {
                    "adasdca": adasdca.__version__,
                    "data": facts,
                    "problem": problem,
                    "limits": limits,
                    "points": listed,
                }
            )
        else:
            for positive, found in results:
                name = _name(positive, classes)
                title = f"{table.source}{name and ', ' + name}: {chosen.name}"
                _print(f"{title}, n = {facts['n']}, d = {facts['d']}", found)
        if output is not None:
            panels = [(_name(k, classes), found.Cs, found.coefs) for k, found in results]
            plotting.save(plotting.coefficient_paths(panels, table.names), output)
            note(f"picture: {output}")
        if around.wished:
            raise typer.Exit(130)
        ends = [solution for _, found in results for solution in found.solutions]
        if not all(solution.converged for solution in ends):
            note(_advice(ends, tol))
            raise typer.Exit(1)


def _name(positive: Any, classes: list[Any]) -> str:
    """Name a class, where there are several problems."""
    return "" if len(classes) == 1 else f"class {plain(positive)}"


def _advice(solutions: list[Solution], tol: float) -> str:
    short = [s for s in solutions if not s.converged]
    words = "raise --max-epochs, --max-time or --tol"
    if {s.status for s in short} == {Status.STALLED}:
        words = "they made no more progress: raise --tol, or scale the features"
    return (
        f"{len(short)} of {len(solutions)} solutions did not reach the relative gap {tol:g}; "
        f"{words}."
    )


def _points(
    result: paths.Path, coefficients: bool, positive: Any, classes: list[Any]
) -> list[dict[str, Any]]:
    points = []
    for k, solution in enumerate(result.solutions):
        point = {
            "C": float(result.Cs[k]),
            "lam": float(result.lams[k]),
            "status": solution.status.value,
            "epochs": int(result.n_epochs[k]),
            "rows": int(result.n_rows[k]),
            "features": int(result.n_features[k]),
            "nonzeros": int(np.count_nonzero(solution.coef)),
            "intercept": finite(solution.intercept),
            **certificate(solution, plain(positive)),
        }
        if len(classes) == 1:
            del point["class"]
        if coefficients:
            point["coef"] = solution.coef.tolist()
        points.append(point)
    return points


def _print(title: str, result: paths.Path) -> None:
    columns = ("C", "objective", "relative gap", "nonzero", "kept", "epochs", "status")
    rows = [
        (
            f"{result.Cs[k]:.3g}",
            f"{s.primal:.5g}",
            f"{s.relative_gap:.1e}",
            str(np.count_nonzero(s.coef)),
            f"{result.n_rows[k]}x{result.n_features[k]}",
            str(result.n_epochs[k]),
            s.status.value,
        )
        for k, s in enumerate(result.solutions)
    ]
    print_rows(title, columns, rows, left=("status",))
