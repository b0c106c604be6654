"""How well predictions fit known targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from adasdca.cli.output import finite
from adasdca.duality.certificate import in_figures
from adasdca.models import Model
from adasdca.problem.losses import Quantile


def quality(model: Model, predictions: Any, y: Any) -> dict[str, Any]:
    """Return accuracy and counts, or R2 and the mean squared error; of a quantile its D2, too."""
    if model.classes is None:
        # Slow to import.
        from sklearn.metrics import d2_pinball_score, mean_squared_error, r2_score

        several = len(y) > 1  # neither R2 nor D2 is defined for one row
        r2 = float(r2_score(y, predictions)) if several else np.nan
        found = {"r2": finite(r2), "mse": finite(mean_squared_error(y, predictions))}
        if isinstance(model.loss, Quantile):
            level = model.loss.quantile
            d2 = float(d2_pinball_score(y, predictions, alpha=level)) if several else np.nan
            found |= {"d2": finite(d2), "below": float(np.mean(y <= predictions))}
        return found
    right = int(np.count_nonzero(predictions == y))
    return {"accuracy": right / len(y), "right": right, "rows": len(y)}


def in_words(result: dict[str, Any]) -> str:
    """Say it in a few words."""
    if "accuracy" in result:
        percent = 100 * result["accuracy"]
        return f"accuracy {percent:.4g} % ({result['right']} of {result['rows']})"
    if "d2" in result:
        d2 = "undefined" if result["d2"] is None else f"{result['d2']:.4g}"
        share = f"{100 * result['below']:.4g} %"
        return f"D2 of the quantile loss {d2}, {share} of the targets are at most what is predicted"
    r2 = "undefined" if result["r2"] is None else f"{result['r2']:.4g}"
    error = "infinite" if result["mse"] is None else in_figures(result["mse"], 4)
    return f"R2 {r2}, mean squared error {error}"


def squared_correlation(predictions: Any, y: Any) -> float:
    """Return the squared correlation, as LIBLINEAR prints it; 0 where one of them is constant."""
    if np.std(predictions) == 0 or np.std(y) == 0:
        return 0.0
    return float(np.corrcoef(predictions, y)[0, 1] ** 2)


def remarks(result: dict[str, Any], intercept: bool) -> list[str]:
    """Say what a number means that a reader may take for a success."""
    if result.get("r2") is None or result["r2"] >= 0 or "d2" in result:
        return []
    words = "R2 is below 0: the mean of the targets would predict these rows better."
    if not intercept:
        words += " The model has no intercept: leave --no-intercept out."
    return [words]
