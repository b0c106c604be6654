"""`adasdca compare`: the methods side by side on one problem."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import adasdca
from adasdca import plotting
from adasdca.cli import inputs, options, race
from adasdca.cli.interrupt import stoppable
from adasdca.cli.output import described, emit, emit_json, finite, plain, print_rows
from adasdca.cli.progress import Progress
from adasdca.cli.refusals import above_0, blame, only_finite


def compare(
    data: options.MaybeData = None,
    loss: options.LossName = "smoothed_hinge",
    label: options.Class = None,
    lam: Annotated[
        float | None, typer.Option(help="Strength of the L2 term.", show_default="1/n")
    ] = None,
    gamma: options.Gamma = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    quantile: options.QuantileLevel = None,
    tol: options.Tol = 1e-6,
    max_epochs: Annotated[int, typer.Option(help="Most epochs of a method.", min=0)] = 200,
    max_time: Annotated[
        float, typer.Option(help="Most seconds of a method.", min=0.0, callback=only_finite)
    ] = 5.0,
    seed: options.Seed = 0,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Picture: .png, .pdf or .svg.")
    ] = Path("compare.png"),
    target: options.Target = None,
    file_format: options.Format = None,
    features: options.Features = None,
    zero_based: options.ZeroBased = False,
    plugin: options.PluginFiles = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Run all methods on one problem and compare them.

    Minimises the mean loss plus lam/2 |w|^2, and draws the relative duality gap against epochs and
    against seconds. Full AdaSDCA takes part where an epoch of it is affordable, and so do the
    methods that a plug-in registers. There is no intercept, which not all methods can fit. Of more
    than two classes the most frequent one stands against the rest, or the one of --class. The exit
    code is 0 whatever gap they reach.
    """
    with blame("--output"):
        plotting.check_path(output)
    above_0("--lam", lam)
    chosen = inputs.chosen_loss(loss, gamma=gamma, epsilon=epsilon, delta=delta, quantile=quantile)
    how = inputs.Reading(file_format, target, features, zero_based)
    table = inputs.read_data(inputs.chosen_data(data), how).table
    labels = inputs.labels(table, chosen)
    classes = inputs.positives(table, labels, chosen, label)
    positive, title = classes[0], table.source
    if len(classes) > 1:
        positive = max(classes, key=lambda each: np.count_nonzero(labels == each))
    if len(classes) > 1 or label is not None:
        title = f"{table.source}, class {plain(positive)} against the rest"
    y = inputs.signs(labels, positive)
    setting = race.Setting.of(title, table.X, y, loss=chosen, lam=lam, seed=seed)
    limits = race.Limits(tol, max_epochs, max_time)
    entrants = race.line_up(setting)
    with stoppable() as around:
        with Progress(tol) as progress:
            runs = race.race(table.X, y, setting, limits, entrants, progress)
        if as_json:
            emit_json(_document(setting, limits, entrants, runs))
        else:
            _print(setting, entrants, runs)
        figure = plotting.convergence([run.curve() for run in runs], tol=tol, title=setting.title())
        plotting.save(figure, output)
        if not as_json:
            emit(f"Picture: {output}")
        if around.wished:
            raise typer.Exit(130)


def _print(setting: race.Setting, entrants: list[race.Entrant], runs: list[race.Run]) -> None:
    """Print a line for each method."""
    columns = ("method", "epochs", "updates/n", "seconds", "relative gap", "status")
    rows = []
    done = {run.label: run for run in runs}
    for entrant in entrants:
        run = done.get(entrant.label)
        if run is None:
            words = f"left out: {entrant.excuse}" if entrant.excuse else "not run"
            rows.append((entrant.label, "", "", "", "", words))
        else:
            solution = run.solution
            rows.append(
                (
                    run.label,
                    str(solution.n_epochs),
                    f"{run.passes:.1f}",
                    f"{run.seconds:.3f}",
                    f"{solution.relative_gap:.1e}",
                    solution.status.value,
                )
            )
    print_rows(setting.title(), columns, rows, left=("method", "status"))


def _document(
    setting: race.Setting,
    limits: race.Limits,
    entrants: list[race.Entrant],
    runs: list[race.Run],
) -> dict[str, Any]:
    """Return all that was measured, ready for JSON; a figure that is not finite is null."""
    return {
        "adasdca": adasdca.__version__,
        "problem": dataclasses.asdict(setting) | {"loss": described(setting.loss)},
        "limits": dataclasses.asdict(limits),
        "runs": [_run(run) for run in runs],
        "left_out": {e.label: e.excuse for e in entrants if e.excuse},
    }


def _run(run: race.Run) -> dict[str, Any]:
    solution, history = run.solution, run.solution.history
    return {
        "label": run.label,
        "method": described(run.method),
        "epochs": solution.n_epochs,
        "updates": solution.n_updates,
        "seconds": run.seconds,
        **{
            name: finite(getattr(solution, name))
            for name in ("primal", "dual", "gap", "relative_gap", "radius")
        },
        "status": solution.status.value,
        "history": {
            field.name: getattr(history, field.name).tolist()
            for field in dataclasses.fields(history)
        },
    }
