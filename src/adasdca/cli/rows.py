"""The rows of a file as a model expects them."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import scipy.sparse as sp
import typer

from adasdca import models
from adasdca.cli.inputs import Reading, Source, read_data
from adasdca.cli.output import busy
from adasdca.cli.usage import usage_error, usage_errors
from adasdca.errors import counted
from adasdca.files import Table
from adasdca.files.columns import Columns
from adasdca.models import Model

IgnoreExtra = Annotated[
    bool,
    typer.Option(
        "--ignore-extra", help="Leave out features and categories that the model does not know."
    ),
]


def read_model(path: Path, data: str, order: str = "the model comes first") -> Model:
    """Read a model of ours or of LIBLINEAR, and say so if it is the data's name that has one."""
    if not path.exists():
        raise usage_error(f"{path} does not exist; check the name.", "MODEL")
    if path.is_dir():
        raise usage_error(f"{path} is a folder; name a file in it.", "MODEL")
    with usage_errors("MODEL"), busy(f"Reading {path}"):
        try:
            return models.load(path)
        except models.ModelError:
            with contextlib.suppress(models.ModelError, OSError):
                models.load(Path(data))
                raise ValueError(f"{path} is no model, but {data} is: {order}.") from None
            raise


def read_rows(data: str, how: Reading, model: Model, ignore_extra: bool) -> Source:
    """Read data as the model's own were read: its columns, categories, fills and target."""
    known = None
    if model.columns is not None:
        known = Columns.of(model.columns)
    elif model.feature_names:
        known = Columns(None, model.feature_names)
    return read_data(data, replace(how, known=known, lenient=ignore_extra))


def fitting_rows(table: Table, model: Model, ignore_extra: bool) -> Any:
    """Return the rows with exactly the features of the model.

    Sparse rows may have fewer columns, as the last features need not occur in a file; more are
    refused, unless they are to be ignored.
    """
    X, d = table.X, model.n_features
    found = X.shape[1]
    width = counted(found, "feature")
    if found > d and not ignore_extra:
        raise usage_error(
            f"{table.source} has {width}, the model {d}; pass rows of the features that "
            "it was fitted on, or --ignore-extra to leave the others out, as LIBLINEAR does.",
            "DATA",
        )
    if found < d and not sp.issparse(X):
        raise usage_error(
            f"{table.source} has {width}, the model {d}: some columns are missing; pass "
            "rows of the features that the model was fitted on.",
            "DATA",
        )
    if found < d:
        return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], d))
    return X if found == d else X[:, :d]


def probabilities(model: Model, X: Any) -> Any:
    """Return the probabilities of the classes, as the estimators compute them."""
    from adasdca.estimators import AdaSDCAClassifier  # slow to import

    if model.classes is None:
        raise usage_error("a model of regression has no classes, so no probabilities.", "--proba")
    estimator = AdaSDCAClassifier(loss=model.loss)
    estimator.coef_, estimator.intercept_ = model.coef, model.intercept
    estimator.classes_, estimator._joint = model.classes, model.multinomial
    estimator.n_features_in_ = model.n_features
    if not hasattr(estimator, "predict_proba"):
        raise usage_error(
            f"a model of the loss {model.loss.name!r} gives no probabilities; fit with --loss "
            "logistic or modified_huber.",
            "--proba",
        )
    return estimator.predict_proba(X)
