"""How well predictions fit known targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from adasdca.cli.output import finite
from adasdca.models import Model


def quality(model: Model, predictions: Any, y: Any) -> dict[str, Any]:
    """Return accuracy and counts, or R2 and the mean squared error."""
    if model.classes is None:
        from sklearn.metrics import mean_squared_error, r2_score  # slow to import

        several = len(y) > 1  # R2 is not defined for one row
        r2 = float(r2_score(y, predictions)) if several else np.nan
        return {"r2": finite(r2), "mse": finite(mean_squared_error(y, predictions))}
    right = int(np.count_nonzero(predictions == y))
    return {"accuracy": right / len(y), "right": right, "rows": len(y)}


def in_words(result: dict[str, Any]) -> str:
    """Say it in a few words."""
    if "accuracy" in result:
        percent = 100 * result["accuracy"]
        return f"accuracy {percent:.4g} % ({result['right']} of {result['rows']})"
    r2 = "undefined" if result["r2"] is None else f"{result['r2']:.4g}"
    error = "infinite" if result["mse"] is None else f"{result['mse']:.4g}"
    return f"R2 {r2}, mean squared error {error}"


def squared_correlation(predictions: Any, y: Any) -> float:
    """Return the squared correlation, as LIBLINEAR prints it; 0 where one of them is constant."""
    if np.std(predictions) == 0 or np.std(y) == 0:
        return 0.0
    return float(np.corrcoef(predictions, y)[0, 1] ** 2)


def remarks(result: dict[str, Any], intercept: bool) -> list[str]:
    """Say what a number means that a reader may take for a success."""
    if result.get("r2") is None or result["r2"] >= 0:
        return []
    words = "R2 is below 0: the mean of the targets would predict these rows better."
    if not intercept:
        words += " The model has no intercept: leave --no-intercept out."
    return [words]
