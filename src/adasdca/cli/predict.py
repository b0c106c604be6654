"""`adasdca predict`: a prediction for each row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import adasdca
from adasdca.cli import inputs, rows
from adasdca.cli.output import emit, note, plain
from adasdca.cli.quality import in_words, quality
from adasdca.cli.refusals import blame, check_output
from adasdca.models import Model
from adasdca.storage import write_whole


def predict(
    model: inputs.ModelFile,
    data: inputs.Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead of stdout."),
    ] = None,
    scores: Annotated[
        bool,
        typer.Option("--scores", help="The scores after each prediction: see above."),
    ] = False,
    ignore_extra: rows.IgnoreExtra = False,
    target: inputs.Target = None,
    file_format: inputs.Format = None,
    zero_based: inputs.ZeroBased = False,
    plugin: inputs.PluginFiles = None,
    as_json: inputs.Json = False,
) -> None:
    """Predict a label, or a number, for each row of DATA.

    One a line, in order. If DATA has targets, how well they are met is told on stderr. With
    --scores a line has the prediction and, with two classes, the score of the second of the model's
    classes, with more classes all their scores in order.
    """
    fitted = rows.read_model(model)
    if output is not None:
        check_output(output, "--output")
    table = inputs.read_data(data, inputs.Reading(file_format, target, None, zero_based)).table
    X = rows.fitting_rows(table, fitted, ignore_extra)
    with blame("DATA"):
        decision = fitted.decision(X)
    predictions = fitted.predicted(decision)
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
        lines = [json.dumps(document, allow_nan=False)]
    else:
        lines = _lines(predictions, decision if scores else None)
    _write(lines, output)
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


def _lines(predictions: NDArray[Any], scores: Any) -> list[str]:
    lines = [str(plain(p)) for p in predictions]
    if scores is None:
        return lines
    return [
        f"{line} {' '.join(repr(float(s)) for s in np.atleast_1d(row))}"
        for line, row in zip(lines, scores, strict=True)
    ]


def _write(lines: list[str], output: Path | None) -> None:
    text = "\n".join(lines)
    if output is None:
        emit(text)
        return
    write_whole(output, text + "\n")
