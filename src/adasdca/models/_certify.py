"""A model, whoever fitted it, against data."""

from __future__ import annotations

from typing import Any

from adasdca.certification import certify as certify_point
from adasdca.duality.certificate import Certificate
from adasdca.models._model import Model, ModelError


def certify(model: Model, X: Any, y: Any, *, epochs: int = 0) -> list[Certificate]:
    """Certify a model on data: one certificate for each row of its coefficients.

    Parameters
    ----------
    model : Model
        The model; its `lam` must be known (``dataclasses.replace(model, lam=...)``).
    X : (n, d) array or sparse matrix
        Rows.
    y : (n,) array
        Labels among the model's classes, or real targets.
    epochs : int, default 0
        Epochs of dual ascent for a better bound; see `adasdca.certify`.

    Returns
    -------
    list of Certificate
    """
    if model.lam is None:
        raise ModelError(
            "The strength of the regularisation is not known, as the file of the model does not "
            "tell; give lam or C."
        )
    penalised = model.bias > 0
    return [
        certify_point(
            X,
            targets,
            w,
            intercept=float(b),
            loss=model.loss,
            lam=model.lam,
            l1_ratio=model.l1_ratio,
            bounds=(0, None) if model.positive else None,
            sample_weight=model.weights(y),
            fit_intercept=model.fit_intercept or penalised,
            intercept_scaling=model.bias if penalised else None,
            epochs=epochs,
        )
        for w, b, targets in zip(model.coef, model.intercept, model.targets(y), strict=True)
    ]
