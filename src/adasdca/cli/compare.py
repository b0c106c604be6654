"""`adasdca compare`: the methods side by side on one problem."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adasdca import plotting
from adasdca.cli import inputs, race, report
from adasdca.cli.checks import check_problem
from adasdca.cli.interrupt import stoppable
from adasdca.cli.output import emit, emit_json
from adasdca.cli.progress import Progress
from adasdca.cli.refusals import above_0, blame, only_finite


def compare(
    data: inputs.Data = "mushrooms",
    loss: inputs.LossName = "smoothed_hinge",
    lam: Annotated[
        float | None, typer.Option(help="Strength of the L2 term.", show_default="1/n")
    ] = None,
    gamma: inputs.Gamma = None,
    epsilon: inputs.Epsilon = None,
    delta: inputs.Delta = None,
    quantile: inputs.QuantileLevel = None,
    tol: inputs.Tol = 1e-6,
    max_epochs: Annotated[int, typer.Option(help="Most epochs of a method.", min=0)] = 200,
    max_time: Annotated[
        float, typer.Option(help="Most seconds of a method.", min=0.0, callback=only_finite)
    ] = 5.0,
    seed: inputs.Seed = 0,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Picture: .png, .pdf or .svg.")
    ] = Path("compare.png"),
    target: inputs.Target = None,
    file_format: inputs.Format = None,
    features: inputs.Features = None,
    zero_based: inputs.ZeroBased = False,
    plugin: inputs.PluginFiles = None,
    as_json: inputs.Json = False,
) -> None:
    """Run all methods on one problem and compare them.

    Minimises the mean loss plus lam/2 |w|^2, and draws the relative duality gap against epochs and
    against seconds. Full AdaSDCA takes part where an epoch of it is affordable, and so do the
    methods that a plug-in registers. The exit code is 0 whatever gap they reach.
    """
    with blame("--output"):
        plotting.check_path(output)
    above_0("--lam", lam)
    chosen = inputs.chosen_loss(loss, gamma=gamma, epsilon=epsilon, delta=delta, quantile=quantile)
    table = inputs.read_data(data, inputs.Reading(file_format, target, features, zero_based)).table
    y = inputs.signs(table, chosen)
    setting = race.Setting.of(data, table.X, y, loss=chosen, lam=lam, seed=seed)
    limits = race.Limits(tol, max_epochs, max_time)
    entrants = race.line_up(setting)
    check_problem(table.X, y, loss=chosen, lam=setting.lam)
    with stoppable() as around:
        with Progress(tol) as progress:
            runs = race.race(table.X, y, setting, limits, entrants, progress)
        if as_json:
            emit_json(report.as_dict(setting, limits, entrants, runs))
        else:
            report.print_table(setting, entrants, runs)
        figure = plotting.convergence([run.curve() for run in runs], tol=tol, title=setting.title())
        plotting.save(figure, output)
        if not as_json:
            emit(f"Picture: {output}")
        if around.wished:
            raise typer.Exit(130)
