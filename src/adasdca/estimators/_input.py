"""The rows and targets that an estimator is given, checked as scikit-learn does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from adasdca.engine.interruption import interruption
from adasdca.errors import InputError
from adasdca.estimators._device import checked_on_device, device_rows, products_with, stand_in
from adasdca.problem.data import refuse_masked
from adasdca.problem.device_rows import from_device, is_on_device, to_numpy
from adasdca.problem.products import RowProducts

Array = NDArray[np.float64]
FLOATS = [np.float64, np.float32]


def _plain(X: Any) -> Any:
    """Return a matrix of numbers as the solver reads it; None for all else.

    scikit-learn's checks, which take as long as a small solve, would change nothing but the kind
    and the order of the entries (1797 x 64, a slice of a table: 1.5 -> 1.1 ms a fit).
    """
    sparse = sp.issparse(X) and X.format == "csr"
    values = X.data if sparse else X
    if type(values) is not np.ndarray or X.ndim != 2 or min(X.shape) == 0:
        return None
    if values.dtype.kind not in "biuf" or values.dtype.itemsize > 8:
        return None
    dtype = values.dtype.newbyteorder("=") if values.dtype in FLOATS else np.float64
    ready = np.require(values, dtype, ["C", "A"])
    if not sparse or ready is values:
        return X if ready is values else ready
    return type(X)((ready, X.indices, X.indptr), shape=X.shape)


def _accepted(X: Any, y: Any) -> bool:
    """Whether they would accept the targets as they are."""
    if type(y) is not np.ndarray or y.shape != X.shape[:1]:
        return False
    return y.dtype.kind in "iuf" and bool(np.isfinite(y).all())


def _first_text(values: Any) -> str | None:
    """Return the first text among values."""
    found = np.asarray(values, dtype=object).ravel()
    return next((str(value) for value in found if isinstance(value, str)), None)


def _columns_of(X: Any, odd: Callable[[Any], bool]) -> str:
    """Name the columns of a data frame that hold no numbers, empty if there are none."""
    names = [str(name) for name in getattr(X, "columns", ()) if odd(np.asarray(X[name]))]
    shown = ", ".join(map(repr, names[:5])) + ", …" * (len(names) > 5)
    return f"the column{'s' * (len(names) > 1)} {shown} of X" if names else ""


@contextmanager
def explaining_text(X: Any, y: Any = None) -> Iterator[None]:
    """Say of text or dates among numbers where they are, or what is wrong with the targets."""
    if hasattr(X, "collect"):
        raise InputError(f"X is a {type(X).__name__}, not read yet; pass X.collect().").about("X")
    try:
        yield
    except np.exceptions.DTypePromotionError as error:
        if not (columns := _columns_of(X, lambda values: values.dtype.kind in "mM")):
            raise
        raise InputError(
            f"dates in {columns}; make numbers of them first, e.g. days since the first one, or "
            "leave them out."
        ).about("X") from error
    except ValueError as error:
        if str(error) == "Input contains NaN":  # labels that are objects: of X it would say X
            message = "y contains NaN; leave out rows without a label."
            raise InputError(message).about("y") from error
        if "could not convert string to float" not in str(error):
            raise
        if columns := _columns_of(X, lambda values: _first_text(values) is not None):
            raise InputError(
                f"text in {columns}; encode it as numbers first, e.g. with "
                "sklearn.preprocessing.OneHotEncoder, or leave it out."
            ).about("X") from error
        if (text := _first_text(X)) is not None:
            raise InputError(
                f"X holds text such as {text!r}; encode it as numbers first: documents with "
                "sklearn.feature_extraction.text.TfidfVectorizer, categories with "
                "sklearn.preprocessing.OneHotEncoder."
            ).about("X") from error
        if (text := _first_text(y)) is not None:
            raise InputError(
                f"y holds text such as {text!r}, but regression needs numbers; for labels take "
                "a classifier."
            ).about("y") from error
        raise


class CheckedInput:
    """Checks of what `fit` and `predict` are given, and the scores of rows."""

    coef_: Any
    intercept_: Any

    def _checked(self, X: Any, y: Any, finite: bool = True, **options: Any) -> Any:
        """Return the rows and the targets, checked.

        Whether the rows are finite is left to those who read them where that is not asked for.
        """
        if is_on_device(X):
            return checked_on_device(self, X, y, **options)
        plain = None if finite else _plain(X)
        if plain is not None and _accepted(plain, y):
            self.n_features_in_: int = X.shape[1]
            vars(self).pop("feature_names_in_", None)
            return plain, y
        refuse_masked(X, "X")
        refuse_masked(y, "y")
        with explaining_text(X, y), interruption() as around, around.opened():
            found = validate_data(
                self,
                X,
                y,
                accept_sparse="csr",
                accept_large_sparse=True,
                dtype=FLOATS,
                order="C",
                ensure_all_finite=finite,
                **options,
            )
        return tuple(each if sp.issparse(each) else np.asarray(each) for each in found)

    def _weights(self, sample_weight: Any, X: Any) -> Array | None:
        if sample_weight is None:
            return None
        refuse_masked(sample_weight, "sample_weight")
        if is_on_device(sample_weight):
            sample_weight = from_device(sample_weight)
        weight: Array = _check_sample_weight(
            sample_weight, stand_in(X), dtype=np.float64, ensure_non_negative=True
        )
        return weight

    def _rows_to_predict(self, X: Any) -> Any:
        """Return products with the rows, checked."""
        check_is_fitted(self)
        if is_on_device(X):
            return products_with(device_rows(self, X, reset=False))
        plain = None if hasattr(self, "feature_names_in_") else _plain(X)
        if plain is not None and plain.shape[1] != self.n_features_in_:
            plain = None
        if plain is not None and np.isfinite(plain.data if sp.issparse(plain) else plain).all():
            return RowProducts(plain)
        refuse_masked(X, "X")
        with explaining_text(X):
            rows = validate_data(
                self, X, accept_sparse="csr", accept_large_sparse=True, dtype=FLOATS, reset=False
            )
        return RowProducts(rows if sp.issparse(rows) else np.asarray(rows))

    def _scored(self, X: Any) -> Array:
        """Return the scores of all models, a column each."""
        scores = self._rows_to_predict(X).times(self._dense_coef())
        return np.asarray(scores + to_numpy(self.intercept_))

    def _dense_coef(self) -> Array:
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else to_numpy(self.coef_)
        return np.atleast_2d(coef)
