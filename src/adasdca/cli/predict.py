"""`adasdca predict`: a prediction for each row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import adasdca
from adasdca.cli import inputs, options, rows
from adasdca.cli.output import emit, is_quiet, note, plain
from adasdca.cli.quality import in_words, quality, squared_correlation
from adasdca.cli.usage import check_output, usage_error, usage_errors
from adasdca.models import Model
from adasdca.storage import write_whole


def predict(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A model of `adasdca fit`, or of LIBLINEAR.")
    ],
    data: options.Data,
    liblinear_output: Annotated[
        Path | None,
        typer.Argument(
            metavar="OUTPUT", help="With a third name they are LIBLINEAR's: DATA MODEL OUTPUT."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead of stdout."),
    ] = None,
    scores: Annotated[
        bool,
        typer.Option("--scores", help="The scores after each prediction: see above."),
    ] = False,
    proba: Annotated[
        bool,
        typer.Option("--proba", help="The probabilities of the classes after each prediction."),
    ] = False,
    b: Annotated[
        int | None, typer.Option("-b", metavar="0|1", help="LIBLINEAR's --proba.", min=0, max=1)
    ] = None,
    liblinear: Annotated[
        bool,
        typer.Option("--liblinear", help="LIBLINEAR's format: its order of the classes, named."),
    ] = False,
    ignore_extra: rows.IgnoreExtra = False,
    target: options.Target = None,
    file_format: options.Format = None,
    zero_based: options.ZeroBased = False,
    plugin: options.PluginFiles = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Predict a label, or a number, for each row of DATA.

    One per line, in order. If DATA has targets, the accuracy is printed on stderr. With
    --scores a line has the prediction and, with two classes, the score of the second of the model's
    classes, with more classes all their scores in order; with --proba the probabilities of all
    classes in that order. The columns of a table are read as those of the fit were.

    LIBLINEAR's order of arguments works as well: predict [-b 1] [-q] DATA MODEL OUTPUT.
    """
    order = "the model comes first"
    if theirs := liblinear_output is not None:
        if output is not None:
            raise usage_error("OUTPUT is named already; give one of them.", "--output")
        model, data, output = data, model, liblinear_output
        order = "three names are in LIBLINEAR's order, DATA MODEL OUTPUT; ours is MODEL DATA -o OUT"
        liblinear = ignore_extra = True  # as LIBLINEAR does
    proba = proba or bool(b)
    if proba and scores:
        raise usage_error(
            "--proba and --scores take the same place in a line; give one.", "--proba"
        )
    fitted = rows.read_model(Path(model), data, order)
    if output is not None:
        check_output(output, "--output")
    how = inputs.Reading(file_format, target, None, zero_based)
    table = rows.read_rows(data, how, fitted, ignore_extra).table
    X = rows.fitting_rows(table, fitted, ignore_extra)
    with usage_errors("DATA"):
        decision = fitted.decision(X)
    predictions = fitted.predicted(decision)
    probabilities = rows.probabilities(fitted, X) if proba else None
    result = None if table.y is None else _compared(fitted, predictions, table.y)
    if as_json:
        document: dict[str, Any] = {
            "adasdca": adasdca.__version__,
            "classes": None if fitted.classes is None else [plain(k) for k in fitted.classes],
            "predictions": [plain(p) for p in predictions],
            "quality": result,
        }
        if scores:
            document["scores"] = decision.tolist()
        if probabilities is not None:
            document["probabilities"] = probabilities.tolist()
        lines = [json.dumps(document, allow_nan=False)]
    elif liblinear:
        lines = _liblinear_lines(fitted, predictions, probabilities)
    else:
        lines = _lines(predictions, probabilities if proba else decision if scores else None)
    _write(lines, output)
    if theirs and result is not None and not is_quiet():
        emit(_liblinear_words(fitted, result, predictions, table.y))
        return
    if output is not None:
        note(f"{len(predictions)} predictions: {output}")
    if result is not None:
        note(in_words(result))


def _compared(model: Model, predictions: NDArray[Any], y: NDArray[Any]) -> dict[str, Any] | None:
    """Return how well targets are met, if they are of the kind that the model predicts."""
    text = y.dtype.kind in "OUS"
    if text != (predictions.dtype.kind in "US"):
        note("The targets are of another kind than the predictions: they are not compared.")
        return None
    return quality(model, predictions, y.astype(str) if text else y)


def _lines(predictions: NDArray[Any], numbers: Any) -> list[str]:
    lines = [str(plain(p)) for p in predictions]
    if numbers is None:
        return lines
    return [
        f"{line} {' '.join(repr(float(s)) for s in np.atleast_1d(row))}"
        for line, row in zip(lines, numbers, strict=True)
    ]


def _liblinear_lines(model: Model, predictions: NDArray[Any], probabilities: Any) -> list[str]:
    """Return LIBLINEAR's output; of two classes it names the one with the positive scores first."""
    if probabilities is None:
        if model.classes is None:
            return [f"{p:.17g}" for p in predictions.tolist()]
        return _lines(predictions, None)
    assert model.classes is not None
    order = slice(None, None, -1) if len(model.classes) == 2 else slice(None)
    head = " ".join(str(plain(label)) for label in model.classes[order])
    return [f"labels {head}", *_lines(predictions, probabilities[:, order])]


def _liblinear_words(
    model: Model, result: dict[str, Any], predictions: NDArray[Any], y: Any
) -> str:
    if model.classes is None:
        correlation = squared_correlation(predictions, y)
        return (
            f"Mean squared error = {result['mse']:g} (regression)\n"
            f"Squared correlation coefficient = {correlation:g} (regression)"
        )
    share = 100 * result["accuracy"]
    return f"Accuracy = {share:g}% ({result['right']}/{result['rows']})"


def _write(lines: list[str], output: Path | None) -> None:
    text = "\n".join(lines)
    if output is None:
        emit(text)
        return
    write_whole(output, text + "\n")
