"""The commands and their options; what they do is elsewhere."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import adasdca
from adasdca import datasets, plotting
from adasdca.cli import compare as comparison
from adasdca.cli import report
from adasdca.losses import LOSSES

if TYPE_CHECKING:
    from collections.abc import Iterator

# Plain text: errors and help stay readable, and searchable, in logs and pipes.
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"adasdca {adasdca.__version__}")
        raise typer.Exit


@app.callback()
def _adasdca(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Regularised linear models by adaptive dual coordinate ascent, with a certificate."""


@contextmanager
def _blame(option: str) -> Iterator[None]:
    """Turn a refusal of the library into an error about an option."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


@app.command()
def compare(
    data: Annotated[
        str, typer.Option(metavar="NAME", help=f"Data set: {', '.join(datasets.NAMES)}.")
    ] = "mushrooms",
    loss: Annotated[
        str, typer.Option(metavar="NAME", help=f"Loss: {', '.join(LOSSES)}.")
    ] = "smoothed_hinge",
    lam: Annotated[
        float | None, typer.Option(help="Strength of the L2 term.", show_default="1/n")
    ] = None,
    tol: Annotated[float, typer.Option(help="Relative duality gap to reach.")] = 1e-6,
    max_epochs: Annotated[int, typer.Option(help="Most epochs of a method.")] = 200,
    max_time: Annotated[float, typer.Option(help="Most seconds of a method.")] = 5.0,
    seed: Annotated[int, typer.Option(help="Seed of the sampling.")] = 0,
    output: Annotated[Path, typer.Option(help="Picture: .png, .pdf or .svg.")] = Path(
        "compare.png"
    ),
    as_json: Annotated[
        bool, typer.Option("--json", help="Results as JSON on stdout, instead of a table.")
    ] = False,
) -> None:
    """Run all methods on one problem and compare their certificates, epoch by epoch.

    Minimises the mean loss plus lam/2 |w|^2, and draws the relative duality gap against epochs and
    against seconds. Full AdaSDCA takes part where an epoch of it is affordable.
    """
    with _blame("--output"):
        plotting.check_path(output)
    with _blame("--data"):
        X, y = datasets.load(data)
    with _blame("--loss"):
        setting = comparison.Setting.of(data, X, y, loss=loss, lam=lam, seed=seed)
    limits = comparison.Limits(tol, max_epochs, max_time)
    entrants = comparison.line_up(setting)
    with _blame("the options"), report.Progress(tol) as progress:
        runs = comparison.race(X, y, setting, limits, entrants, progress)
    if as_json:
        json.dump(report.as_dict(setting, limits, entrants, runs), sys.stdout, allow_nan=False)
        typer.echo()
    else:
        report.print_table(setting, entrants, runs)
    figure = plotting.convergence([run.curve() for run in runs], tol=tol, title=setting.title())
    with _blame("--output"):
        figure.savefig(output)
    if not as_json:
        typer.echo(f"Picture: {output}")
    if any(run.interrupted for run in runs):
        raise typer.Exit(130)
