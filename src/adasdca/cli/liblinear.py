"""`adasdca train`: LIBLINEAR's `train`, with its options, its order of arguments and its files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from adasdca import models
from adasdca.cli import inputs, search
from adasdca.cli.output import certificate_lines, emit, note, print_error, save_somewhere, set_quiet
from adasdca.cli.progress import Progress, stops_on_ctrl_c
from adasdca.cli.usage import check_output, usage_error, usage_errors
from adasdca.models._liblinear import SOLVERS
from adasdca.solution import Status

#: Values of -s that there are not, and why.
OTHERS = {
    4: "the support vector machine of Crammer and Singer has one problem for all classes, which is "
    "not solved here; -s 1 and -s 3 are each class against the rest",
    21: "the one-class support vector machine is not solved here",
}
#: The option -C begins here, and goes on in powers of 2.
GRID = [2.0**k for k in range(-10, 11)]
FOLDS = 5


@dataclass
class Command:
    """LIBLINEAR's command line, taken apart."""

    solver: int = 1
    C: float = 1.0
    epsilon: float = 0.1
    tol: float = 1e-4
    bias: float = -1.0
    free: bool = False
    weights: list[str] = field(default_factory=list)
    folds: int | None = None
    find_c: bool = False
    quiet: bool = False
    names: list[str] = field(default_factory=list)


def train(
    context: typer.Context,
    arguments: Annotated[
        list[str], typer.Argument(metavar="DATA [MODEL]", help="After the options.")
    ],
) -> None:
    """LIBLINEAR's train: the same options and files, and a certificate.

    \b
    -s TYPE    0, 7 logistic; 1, 2 squared hinge; 3 hinge; 5, 6 with the L1 norm;
               11, 12, 13 support vector regression (default 1)
    -c COST    C (default 1)
    -p EPS     epsilon of support vector regression (default 0.1)
    -e TOL     relative duality gap to reach, whatever the solver (default 1e-4)
    -B BIAS    a constant feature of this value, penalised; below 0: none (default -1)
    -R         the bias is not penalised; with -B 1
    -wi W      weight of class i
    -v N       cross-validation with N folds; no model is written
    -C         find C by cross-validation
    -q         quiet

    Writes LIBLINEAR's format of models; DATA.model in this folder, if no MODEL is named. `adasdca
    fit` says the same in words, and more.
    """  # noqa: D301 - the control character is what keeps the lines apart
    from adasdca.cli.training import Recipe, class_weights
    from adasdca.cli.training import train as run

    command = parse(arguments)
    set_quiet(command.quiet)
    data, path = command.names[0], _model_path(command.names)
    _, kind, lasso = SOLVERS[command.solver]
    regression = kind.kind == "regression"
    loss = kind(epsilon=command.epsilon) if regression else kind()  # type: ignore[call-arg]
    recipe = Recipe(
        loss=loss,
        C=command.C,
        l1_ratio=float(lasso),
        bias=None if command.bias < 0 or command.free else command.bias,
        intercept=command.free,
        multi_class="ovr",
        tol=command.tol,
    )
    writes = command.folds is None and not command.find_c
    if writes:
        check_output(path, "MODEL")
    source = inputs.read_data(data, inputs.Reading())
    y = inputs.labels(source.table, loss, "-s")
    classes = None if regression else np.unique(y)
    with usage_errors("DATA"):
        models.check_liblinear(loss, classes)
    weights = class_weights(command.weights, y, lambda name: f"-w{name}")
    if weights is not None and classes is not None and len(classes) > 2:
        note(
            "With more than two classes a weight counts here in the problems of all classes; "
            "LIBLINEAR counts it only where the class stands against the rest."
        )
    validation = None
    if not writes:
        grid = GRID if command.find_c else [command.C]
        scoring = "neg_mean_squared_error" if regression else None
        validation = search.Search(min(command.folds or FOLDS, len(y)), grid, scoring=scoring)
    with stops_on_ctrl_c():
        with Progress(command.tol) as progress:
            done = run(source.table.X, y, recipe, weights, progress.follow("train"), validation)
        if command.find_c:
            best = done.estimator
            name = "MSE" if regression else "accuracy"
            emit(f"Best C = {best.C_:g}  CV {name} = {_score(best.best_score_, regression)}")
            return
        if validation is not None:
            name = "Mean squared error" if regression else "Accuracy"
            score = _score(float(done.estimator.scores_.mean()), regression)
            emit(f"Cross Validation {name} = {score}")
            return
        saved = save_somewhere(models.liblinear_bytes(done.model), path)
        for line in certificate_lines(done.model.certificates):
            note(line)
        if saved.trouble:
            print_error(f"Error: {saved.trouble}")
            raise typer.Exit(3)
        note(f"model: {saved.path}")
        if done.status is not Status.CONVERGED:
            note(f"The relative gap asked for, {command.tol:g}, was not reached; raise -e.")
            raise typer.Exit(130 if done.status is Status.INTERRUPTED else 1)


def _score(score: float, regression: bool) -> str:
    return f"{-score:.6g}" if regression else f"{100 * score:.6g}%"


def parse(arguments: list[str]) -> Command:
    """Take LIBLINEAR's options apart; each that is unknown, or different here, is explained."""
    command, words = Command(), list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word == "-":
            command.names.append(word)
            if words and words[0].startswith("-") and words[0] != "-":
                raise usage_error(
                    f"{words[0]} comes after {word}; options come before the names of files.",
                    words[0],
                )
            continue
        if word in ("-R", "-q", "-C"):
            name = {"-R": "free", "-q": "quiet", "-C": "find_c"}[word]
            setattr(command, name, True)
            continue
        weight = word.startswith("-w") and len(word) > 2
        if not weight and word not in ("-s", "-v", *_NUMBERS):
            raise usage_error(_ELSEWHERE.get(word, _UNKNOWN), word)
        if not words:
            raise usage_error("its value is missing.", word)
        value = words.pop(0)
        if weight:
            _number(word, value)
            command.weights.append(f"{word[2:]}={value}")
        elif word == "-s":
            command.solver = _solver(value)
        elif word == "-v":
            command.folds = int(_number(word, value))
            if command.folds < 2:
                raise usage_error(f"{value} folds are none; choose 2 or more.", word)
        else:
            setattr(command, _NUMBERS[word], _number(word, value))
    if not 1 <= len(command.names) <= 2:
        raise usage_error("name DATA, and after it MODEL if you like.", "DATA")
    for option, number in (("-c", command.C), ("-e", command.tol)):
        if not number > 0:
            raise usage_error(f"{number:g} is not allowed; choose a number above 0.", option)
    if command.free and command.bias != 1:
        raise usage_error("LIBLINEAR wants -B 1 with it.", "-R")
    if command.bias == 0:
        raise usage_error("a constant feature of 0 is none; choose a number above 0, or -1.", "-B")
    return command


_NUMBERS = {"-c": "C", "-p": "epsilon", "-e": "tol", "-B": "bias"}
_THREADS = (
    "threads are not asked for in this way; `adasdca fit --threads` fits several classes at the "
    "same time."
)
#: Options that are known, but not here.
_ELSEWHERE = dict.fromkeys(("-n", "-m", "-M"), _THREADS) | {
    "-b": "probabilities are asked for at prediction: predict -b 1."
}
_UNKNOWN = (
    "it is none of LIBLINEAR's -s -c -p -e -B -R -wi -v -C -q; long options are those of "
    "`adasdca fit`."
)


def _number(option: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise usage_error(f"{text!r} is not a finite number.", option)
    return value


def _solver(text: str) -> int:
    number = int(_number("-s", text))
    if number in OTHERS:
        raise usage_error(f"{number}: {OTHERS[number]}.", "-s")
    if number not in SOLVERS:
        raise usage_error(f"{text} is unknown; choose one of {', '.join(map(str, SOLVERS))}.", "-s")
    return number


def _model_path(names: list[str]) -> Path:
    if len(names) == 2:
        return Path(names[1])
    return Path("stdin.model" if names[0] == "-" else f"{Path(names[0]).name}.model")
