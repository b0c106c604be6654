"""What commands are given: options in common, completion, data, and errors about all of them."""

from __future__ import annotations

import glob
import hashlib
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer
from numpy.typing import NDArray

from adasdca import datasets, plugins
from adasdca.cli.output import busy, plain
from adasdca.cli.refusals import blame, only_finite, refusal
from adasdca.files import FORMATS, Table, read
from adasdca.methods import METHODS
from adasdca.problem.losses import LOSSES, Loss, get_loss


def complete_loss(incomplete: str) -> list[str]:
    """Return the losses that begin like this."""
    return [name for name in LOSSES if name.startswith(incomplete)]


def complete_method(incomplete: str) -> list[str]:
    """Return the methods that begin like this."""
    return [name for name in METHODS if name.startswith(incomplete)]


def complete_data(incomplete: str) -> list[str]:
    """Return the data sets and the files that begin like this."""
    names = [name for name in datasets.names() if name.startswith(incomplete)]
    files = [f"{p}/" if os.path.isdir(p) else p for p in glob.glob(glob.escape(incomplete) + "*")]
    return names + sorted(files)


_DATA_HELP = f"A file, - for stdin, or a data set: {', '.join(datasets.NAMES)}."

Data = Annotated[str, typer.Argument(metavar="DATA", help=_DATA_HELP, autocompletion=complete_data)]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model of `adasdca fit`, or of LIBLINEAR.")
]
LossName = Annotated[
    str,
    typer.Option(metavar="NAME", help=f"Loss: {', '.join(LOSSES)}.", autocompletion=complete_loss),
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
    float, typer.Option("--l1-ratio", help="Share of the L1 term, below 1.", min=0.0)
]
Positive = Annotated[bool, typer.Option("--positive", help="Keep the coefficients non-negative.")]
Intercept = Annotated[
    bool, typer.Option("--intercept", help="Fit an intercept that is not penalised.")
]
MethodName = Annotated[
    str,
    typer.Option(
        metavar="NAME", help=f"Method: {', '.join(METHODS)}.", autocompletion=complete_method
    ),
]
Tol = Annotated[
    float, typer.Option(help="Relative duality gap to reach.", min=0.0, callback=only_finite)
]
MaxEpochs = Annotated[int, typer.Option(help="Most epochs.", min=1)]
MaxTime = Annotated[
    float | None,
    typer.Option(help="Most seconds.", min=0.0, show_default="no limit", callback=only_finite),
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
        autocompletion=lambda incomplete: [f for f in FORMATS if f.startswith(incomplete)],
    ),
]
Features = Annotated[
    int | None,
    typer.Option("--features", help="Number of features.", min=1, show_default="as in DATA"),
]
ZeroBased = Annotated[
    bool, typer.Option("--zero-based", help="The indices of an svmlight file count from 0.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]


def _load_plugins(paths: list[Path] | None) -> list[Path]:
    with blame("--plugin"):
        plugins.load_all(paths or [])
    return paths or []


PluginFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.py",
        help="Load a file that registers methods, losses or data sets; may be repeated.",
        callback=_load_plugins,
        is_eager=True,
    ),
]


def chosen_loss(name: str, **parameters: float | None) -> Loss:
    """Return the loss of that name with the parameters that were given."""
    given = {k: v for k, v in parameters.items() if v is not None}
    with blame("--loss"):
        loss = get_loss(name)
    for option in given:
        if option not in _parameters(type(loss)):
            others = [other for other, cls in LOSSES.items() if option in _parameters(cls)]
            raise refusal(
                f"the loss {name} has no {option}; leave it out, or choose a loss that has one: "
                f"{', '.join(others)}.",
                f"--{option}",
            )
    with blame(" ".join(f"--{option}" for option in given)):
        return get_loss(name, **given)


def _parameters(cls: type[Loss]) -> list[str]:
    return [field.name for field in fields(cls)]  # type: ignore[arg-type]


@dataclass(frozen=True)
class Source:
    """Data as they were read, and where from."""

    table: Table
    sha256: str

    def describe(self) -> dict[str, Any]:
        """Return what JSON documents and models say of the data."""
        n, d = self.table.X.shape
        nnz = self.table.X.nnz if sp.issparse(self.table.X) else n * d
        return {"source": self.table.source, "sha256": self.sha256, "n": n, "d": d, "nnz": nnz}


@dataclass(frozen=True)
class Reading:
    """How a file is to be read."""

    file_format: str | None
    target: str | None
    features: int | None
    zero_based: bool


def read_data(data: str, how: Reading) -> Source:
    """Read a file, or load the data set of that name if there is no such file."""
    if how.file_format is not None and how.file_format not in FORMATS:
        raise refusal(
            f"{how.file_format!r} is unknown; choose one of {', '.join(FORMATS)}.", "--format"
        )
    data = "/dev/stdin" if data == "-" else data
    is_file = os.path.exists(data)
    if not is_file and data not in datasets.names():
        raise refusal(
            f"{data} is neither a file nor a data set; check the name, or choose one of "
            f"{', '.join(datasets.names())}.",
            "DATA",
        )
    with blame("DATA"), busy(f"Reading {data}"):
        if is_file:
            table = read(
                data,
                format=how.file_format,
                target=how.target,
                n_features=how.features,
                zero_based=how.zero_based,
            )
            # A pipe is empty by now.
            whole = os.path.isfile(data)
            return Source(table, _digest_of_file(data) if whole else _digest_of_table(table))
        if how != Reading(None, None, None, False):
            raise refusal(
                f"{data} is a data set; --format, --target, --features and --zero-based are for "
                "files.",
                "DATA",
            )
        table = Table(*datasets.load(data), None, data)
        return Source(table, _digest_of_table(table))


def _digest_of_file(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _digest_of_table(table: Table) -> str:
    X, y = table.X, table.y
    arrays = [X.indptr, X.indices, X.data] if sp.issparse(X) else [X]
    if y is not None:
        arrays.append(y.astype(str) if y.dtype.kind == "O" else y)
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def labels(table: Table, loss: Loss, hint: str = "--loss") -> NDArray[Any]:
    """Return the targets, of a kind that fits the loss; `hint` is what else could be chosen."""
    y = table.y
    if y is None:
        raise refusal(
            f"{table.source} has no target; name its column with --target, or choose data with "
            "labels.",
            "DATA",
        )
    text = y.dtype.kind in "OUS"
    other = "a loss" if hint == "--loss" else "a model"
    if loss.kind == "regression":
        if text:
            raise refusal(
                f"the target of {table.source} holds text such as {str(y[0])!r}, but {loss.name!r} "
                f"is a loss for regression; choose another --target, or {other} for "
                "classification.",
                hint,
            )
        return y
    y = y.astype(str) if text else y
    odd = [] if text else y[y != np.floor(y)]
    if len(odd):
        raise refusal(
            f"the target of {table.source} holds {odd[0]:g}, which is no label, but {loss.name!r} "
            f"is a loss for classification; choose another --target, or {other} for regression"
            f"{' such as squared' if hint == '--loss' else ''}.",
            hint,
        )
    found = np.unique(y)
    if len(found) < 2:
        raise refusal(
            f"all labels of {table.source} are {plain(found[0])}; two classes are needed.", "DATA"
        )
    return y


def signs(table: Table, loss: Loss) -> NDArray[np.float64]:
    """Return the targets for `solve`: of two classes the larger is +1."""
    y = labels(table, loss)
    if loss.kind == "regression":
        return np.asarray(y, dtype=np.float64)
    classes = np.unique(y)
    if len(classes) != 2:
        raise refusal(
            f"{table.source} has {len(classes)} classes; this command needs two, `adasdca fit` "
            "takes any number.",
            "DATA",
        )
    return np.where(y == classes[1], 1.0, -1.0)
