"""`adasdca compare`: the methods side by side on one problem."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer

import adasdca
from adasdca import plotting
from adasdca.ascent.sampling import registered
from adasdca.cli import inputs, options
from adasdca.cli.output import described, emit, emit_json, finite, plain, print_rows
from adasdca.cli.progress import Progress, stops_on_ctrl_c
from adasdca.cli.usage import check_finite, check_picture, check_positive
from adasdca.duality.theory import epoch_cost
from adasdca.methods import (
    REGISTERED,
    SDCA,
    AdaSDCA,
    AdaSDCAPlus,
    Auto,
    IProxSDCA,
    Method,
    Quartz,
    SDCAPerm,
    get_method,
)
from adasdca.models._model import FIGURES
from adasdca.problem.losses import Loss
from adasdca.solution import Solution
from adasdca.solver import solve

#: Most operations of an epoch of Algorithm 1: a few seconds.
AFFORDABLE = 3e9

METHODS: dict[str, Method] = {
    "sdca": SDCA(),
    "sdca-perm": SDCAPerm(),
    "iprox-sdca": IProxSDCA(),
    "quartz": Quartz(),
    "adasdca+ (II)": AdaSDCAPlus(option="II"),
    "adasdca+ (I)": AdaSDCAPlus(option="I"),
    "adasdca": AdaSDCA(rule="relaxed"),
    "auto": Auto(),
}


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
        float, typer.Option(help="Most seconds of a method.", min=0.0, callback=check_finite)
    ] = 5.0,
    seed: options.Seed = 0,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Picture: .png, .pdf or .svg.")
    ] = Path("compare.png"),
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
    """Run all methods on one problem and compare them.

    Minimises the mean loss plus lam/2 |w|^2, and draws the relative duality gap against epochs and
    against seconds. Full AdaSDCA takes part where an epoch of it is affordable, and so do the
    methods that a plug-in registers. There is no intercept, which not all methods can fit. Of more
    than two classes the most frequent one stands against the rest, or the one of --class. The exit
    code is 0 whatever gap they reach.
    """
    check_picture(output, "--output")
    check_positive("--lam", lam)
    chosen = inputs.chosen_loss(loss, gamma=gamma, epsilon=epsilon, delta=delta, quantile=quantile)
    how = inputs.Reading(file_format, target, features, zero_based, columns, drop, one_hot, missing)
    table = inputs.read_data(inputs.chosen_data(data), how).table
    labels = inputs.labels(table, chosen)
    classes = inputs.positives(table, labels, chosen, label)
    positive, source = classes[0], table.source
    if len(classes) > 1:
        positive = max(classes, key=lambda each: np.count_nonzero(labels == each))
    if len(classes) > 1 or label is not None:
        source = f"{table.source}, class {plain(positive)} against the rest"
    n, d = table.X.shape
    nnz = table.X.nnz if sp.issparse(table.X) else n * d
    lam = 1.0 / n if lam is None else lam
    limits: dict[str, Any] = {"tol": tol, "max_epochs": max_epochs, "max_time": max_time}
    methods = METHODS | {name: get_method(name) for name in (*registered(), *REGISTERED)}
    left_out = {k: why for k, m in methods.items() if (why := reason_against(m, chosen, n, nnz))}
    runs: dict[str, Solution] = {}
    with stops_on_ctrl_c() as around:
        with Progress(tol) as progress:
            for name in (name for name in methods if name not in left_out):
                try:
                    around.check()
                    runs[name] = solution = solve(
                        table.X,
                        inputs.signs(labels, positive),
                        loss=chosen,
                        lam=lam,
                        method=methods[name],
                        random_state=seed,
                        callback=progress.follow(name),
                        **limits,
                    )
                except KeyboardInterrupt:
                    if not runs:
                        raise
                    break
                reached = solution.relative_gap, solution.n_epochs, solution.converged
                progress.finish(name, *reached)
        title = f"{source}: {chosen.name}, lam = {lam:.3g}, n = {n}, d = {d}"
        if as_json:
            problem = {"data": source, "n": n, "d": d, "nnz": nnz, "lam": lam, "seed": seed}
            emit_json(
                {
                    "adasdca": adasdca.__version__,
                    "problem": problem | {"loss": described(chosen)},
                    "limits": limits,
                    "runs": [_run(name, methods[name], found) for name, found in runs.items()],
                    "left_out": left_out,
                }
            )
        else:
            _print(title, methods, left_out, runs)
        curves = [
            plotting.Curve(name, h.epoch, h.seconds, h.relative_gap)
            for name, h in ((name, found.history) for name, found in runs.items())
        ]
        plotting.save(plotting.convergence(curves, tol=tol, title=title), output)
        if not as_json:
            emit(f"picture: {output}")
        if around.wished:
            raise typer.Exit(130)


def reason_against(method: Method, loss: Loss, n: int, nnz: int) -> str:
    """Say why a method cannot take part, nothing if it can."""
    if isinstance(method, Quartz) and loss.smoothness == 0:
        return "needs a smooth loss"
    if isinstance(method, AdaSDCA):
        cost = epoch_cost(method.name, n=n, nnz=nnz)
        return f"{cost:.0e} operations an epoch" if cost > AFFORDABLE else ""
    return ""


def _print(
    title: str, methods: dict[str, Method], left_out: dict[str, str], runs: dict[str, Solution]
) -> None:
    """Print a line for each method."""
    rows = []
    for name in methods:
        found = runs.get(name)
        if found is None:
            words = f"left out: {left_out[name]}" if name in left_out else "not run"
            rows.append((name, "", "", "", "", words))
            continue
        rows.append(
            (
                name,
                str(found.n_epochs),
                f"{found.n_updates / len(found.dual_coef):.1f}",
                f"{found.history.seconds[-1]:.3f}",
                f"{found.relative_gap:.1e}",
                found.status.value,
            )
        )
    columns = ("method", "epochs", "updates/n", "seconds", "relative gap", "status")
    print_rows(title, columns, rows, left=("method", "status"))


def _run(name: str, method: Method, found: Solution) -> dict[str, Any]:
    """Return all that was measured of a run, ready for JSON; what is not finite is null."""
    history = found.history
    return {
        "label": name,
        "method": described(method),
        "epochs": found.n_epochs,
        "updates": found.n_updates,
        "seconds": float(history.seconds[-1]),
        **{figure: finite(getattr(found, figure)) for figure in FIGURES},
        "status": found.status.value,
        "history": {f.name: getattr(history, f.name).tolist() for f in dataclasses.fields(history)},
    }
