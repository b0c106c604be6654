"""A model, whoever fitted it, against data."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

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
    weight = model.weights(y)
    constant = model.bias > 0
    if constant:
        X = _with_constant(X, model.bias)
    lower = np.zeros(X.shape[1]) if model.positive else None
    if lower is not None and constant:
        lower[-1] = -np.inf
    certificates = []
    for w, b, targets in zip(model.coef, model.intercept, model.targets(y), strict=True):
        certificates.append(
            certify_point(
                X,
                targets,
                np.append(w, b / model.bias) if constant else w,
                intercept=0.0 if constant else float(b),
                loss=model.loss,
                lam=model.lam,
                l1_ratio=model.l1_ratio,
                bounds=None if lower is None else (lower, None),
                sample_weight=weight,
                fit_intercept=model.fit_intercept,
                epochs=epochs,
            )
        )
    return certificates


def _with_constant(X: Any, value: float) -> Any:
    column = np.full((X.shape[0], 1), value, dtype=X.dtype)
    return sp.hstack([X, column], format="csr") if sp.issparse(X) else np.hstack([X, column])
