"""The options that commands have in common, and what completes them."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer

from adasdca import datasets, plugins
from adasdca.cli.output import set_quiet
from adasdca.cli.usage import check_finite, usage_errors
from adasdca.files import FORMATS
from adasdca.files.columns import MISSING
from adasdca.methods import METHODS
from adasdca.problem.losses import LOSSES


def completes(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return what completes one of these names; they may become more."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


def complete_data(incomplete: str) -> list[str]:
    """Return the data sets and the files that begin like this."""
    names = [name for name in datasets.names() if name.startswith(incomplete)]
    files = [f"{p}/" if os.path.isdir(p) else p for p in glob.glob(glob.escape(incomplete) + "*")]
    return names + sorted(files)


_DATA_HELP = f"A file, - for stdin, or a data set: {', '.join(datasets.NAMES)}."

Data = Annotated[str, typer.Argument(metavar="DATA", help=_DATA_HELP, autocompletion=complete_data)]
MaybeData = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help=_DATA_HELP,
        autocompletion=complete_data,
        show_default="what is piped in, else mushrooms",
    ),
]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model of `adasdca fit`, or of LIBLINEAR.")
]
LossName = Annotated[
    str,
    typer.Option(
        metavar="NAME", help=f"Loss: {', '.join(LOSSES)}.", autocompletion=completes(LOSSES)
    ),
]
Gamma = Annotated[
    float | None,
    typer.Option(help="gamma of smoothed_hinge and squared.", show_default="1"),
]
Epsilon = Annotated[
    float | None,
    typer.Option(help="epsilon of the epsilon-insensitive losses.", show_default="0.1"),
]
Delta = Annotated[float | None, typer.Option(help="delta of huber.", show_default="1.35")]
QuantileLevel = Annotated[
    float | None, typer.Option("--quantile", help="The quantile of quantile.", show_default="0.5")
]
Lam = Annotated[float | None, typer.Option(help="Strength of the regularisation, lam = 1/(C N).")]
Cost = Annotated[
    float | None,
    typer.Option("--C", "-c", help="Its inverse, as in LIBLINEAR.", show_default="1"),
]
L1Ratio = Annotated[
    float,
    typer.Option(
        "--l1-ratio",
        help="Share of the L1 term; 1 is the lasso.",
        min=0.0,
        max=1.0,
        callback=check_finite,
    ),
]
Positive = Annotated[bool, typer.Option("--positive", help="Keep the coefficients non-negative.")]
Intercept = Annotated[
    bool | None,
    typer.Option(
        "--intercept/--no-intercept",
        help="Fit an intercept that is not penalised.",
        show_default="yes, unless --bias is given",
    ),
]
Class = Annotated[
    str | None,
    typer.Option("--class", metavar="LABEL", help="Of several classes: this one against the rest."),
]
MethodName = Annotated[
    str,
    typer.Option(
        metavar="NAME", help=f"Method: {', '.join(METHODS)}.", autocompletion=completes(METHODS)
    ),
]
Tol = Annotated[
    float, typer.Option(help="Relative duality gap to reach.", min=0.0, callback=check_finite)
]
MaxEpochs = Annotated[int, typer.Option(help="Most epochs.", min=1)]
MaxTime = Annotated[
    float | None,
    typer.Option(help="Most seconds.", min=0.0, show_default="no limit", callback=check_finite),
]
Seed = Annotated[int, typer.Option(help="Seed of the sampling.", min=0)]
Target = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The target's column in CSV and Parquet, or array in npz."),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help=f"Format of DATA: {', '.join(FORMATS)}.",
        show_default="by the name of the file",
        autocompletion=completes(FORMATS),
    ),
]
Features = Annotated[
    int | None,
    typer.Option("--features", help="Number of features.", min=1, show_default="as in DATA"),
]
ZeroBased = Annotated[
    bool, typer.Option("--zero-based", help="The indices of an svmlight file count from 0.")
]
Columns = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="Columns of CSV and Parquet to use as features."),
]
Drop = Annotated[
    str | None, typer.Option(metavar="A,B,...", help="Columns of CSV and Parquet to leave out.")
]
OneHot = Annotated[
    str | None,
    typer.Option(
        "--one-hot",
        metavar="A,B,...",
        help="Columns whose values are categories, a feature each; auto: all that hold text.",
    ),
]
Missing = Annotated[
    str,
    typer.Option(metavar="HOW", help=f"Missing values of CSV and Parquet: {', '.join(MISSING)}."),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]


def _load_plugins(paths: list[Path] | None) -> list[Path]:
    with usage_errors("--plugin"):
        plugins.load_all(paths or [])
    return paths or []


PluginFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.py",
        help="Load a file that registers rules, methods, losses or data; may be repeated.",
        callback=_load_plugins,
        is_eager=True,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Print results and errors only.",
        callback=set_quiet,
        is_eager=True,
    ),
]
