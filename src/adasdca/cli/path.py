"""`adasdca path`: solutions along the regularisation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import adasdca
from adasdca import paths, plotting
from adasdca.cli import inputs
from adasdca.cli.checks import check_problem
from adasdca.cli.interrupt import stoppable
from adasdca.cli.output import certificate, described, emit_json, finite, note, print_rows
from adasdca.cli.progress import Progress
from adasdca.cli.refusals import above_0, blame, only_finite
from adasdca.methods import get_method
from adasdca.solution import Status


def path(
    data: inputs.Data,
    C: Annotated[
        list[float] | None,
        typer.Option("--C", "-c", help="A value of C = 1/(lam N); may be repeated."),
    ] = None,
    points: Annotated[
        int, typer.Option(help="Values of C from 1e-4 to 1e4, if none are given.", min=1)
    ] = 10,
    loss: inputs.LossName = "logistic",
    l1_ratio: inputs.L1Ratio = 0.0,
    positive: inputs.Positive = False,
    intercept: inputs.Intercept = False,
    gamma: inputs.Gamma = None,
    epsilon: inputs.Epsilon = None,
    delta: inputs.Delta = None,
    quantile: inputs.QuantileLevel = None,
    method: inputs.MethodName = "auto",
    tol: inputs.Tol = 1e-4,
    max_epochs: inputs.MaxEpochs = 1000,
    max_time: Annotated[
        float | None,
        typer.Option(
            help="Most seconds for each C.", min=0.0, show_default="no limit", callback=only_finite
        ),
    ] = None,
    seed: inputs.Seed = 0,
    threads: Annotated[int, typer.Option(help="Threads for the surveys.", min=1)] = 1,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PICTURE", help="Draw it: .png, .pdf or .svg."),
    ] = None,
    coefficients: Annotated[
        bool, typer.Option("--coefficients", help="Put the coefficients into the JSON, too.")
    ] = False,
    target: inputs.Target = None,
    file_format: inputs.Format = None,
    features: inputs.Features = None,
    zero_based: inputs.ZeroBased = False,
    plugin: inputs.PluginFiles = None,
    as_json: inputs.Json = False,
) -> None:
    """Solve along C, each solution from the last one.

    Each has a certificate. Two classes, or a target for regression. Rows and features that provably
    do not matter are left out on the way; `kept` are the rows and features that were left.
    """
    if output is not None:
        with blame("--output"):
            plotting.check_path(output)
    for value in C or []:
        above_0("--C", value)
    chosen = inputs.chosen_loss(loss, gamma=gamma, epsilon=epsilon, delta=delta, quantile=quantile)
    with blame("--method"):
        get_method(method)
    how = inputs.Reading(file_format, target, features, zero_based)
    source = inputs.read_data(data, how)
    y = inputs.signs(source.table, chosen)
    check_problem(
        source.table.X,
        y,
        loss=chosen,
        lam=1.0,
        l1_ratio=l1_ratio,
        intercept=intercept,
        method=method,
    )
    with stoppable() as around:
        with Progress(tol) as progress:
            result = paths.path(
                source.table.X,
                y,
                loss=chosen,
                Cs=C or points,
                l1_ratio=l1_ratio,
                bounds=(0, None) if positive else None,
                fit_intercept=intercept,
                method=method,
                tol=tol,
                max_epochs=max_epochs,
                max_time=max_time,
                random_state=seed,
                callback=progress.follow("path"),
                n_threads=threads,
            )
        facts = source.describe()
        if as_json:
            options = {
                "loss": described(chosen),
                "l1_ratio": l1_ratio,
                "positive": positive,
                "intercept": intercept,
            }
            limits = {"tol": tol, "max_epochs": max_epochs, "max_time": max_time}
            emit_json(
                {
                    "adasdca": adasdca.__version__,
                    "data": facts,
                    "problem": options,
                    "limits": limits,
                    "points": _points(result, coefficients),
                }
            )
        else:
            _print(f"{data}: {chosen.name}, n = {facts['n']}, d = {facts['d']}", result)
        if output is not None:
            with blame("--output"):
                _draw(result, source.table.names, output)
            note(f"picture: {output}")
        if around.wished:
            raise typer.Exit(130)
        if not result.converged.all():
            note(_advice(result, tol))
            raise typer.Exit(1)


def _advice(result: paths.Path, tol: float) -> str:
    ends = {s.status for s in result.solutions if not s.converged}
    words = "raise --max-epochs, --max-time or --tol"
    if ends == {Status.STALLED}:
        words = "this is as far as double precision goes on these data: raise --tol"
    return (
        f"{np.count_nonzero(~result.converged)} of {len(result)} solutions did not reach the "
        f"relative gap {tol:g}; {words}."
    )


def _points(result: paths.Path, coefficients: bool) -> list[dict[str, Any]]:
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
            **certificate(solution),
        }
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


def _draw(result: paths.Path, names: list[str] | None, output: Path) -> None:
    plotting.save(plotting.coefficient_path(result.Cs, result.coefs, names), output)
