"""Estimators and rows on a CUDA device: where solves are made, and of what kind results are.

Rows that are on a device are taken where `device="cuda"`, or where scikit-learn's array API
dispatch is on. With the latter coefficients, duals and predictions are arrays of the library of X;
without it they are NumPy's, as everybody else in scikit-learn expects.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils.validation import _check_y

from adasdca.backends.cuda.device import copied
from adasdca.backends.cuda.here import ProductsHere
from adasdca.problem.data import CheckedRows, check_rows
from adasdca.problem.device_rows import DeviceRows, in_kind, is_on_device, to_numpy
from adasdca.problem.products import RowProducts

#: Attributes that are of the kind of X.
OF_ITS_KIND = ("coef_", "intercept_", "dual_coef_")


def dispatches() -> bool:
    """Whether scikit-learn's array API dispatch is on."""
    return bool(get_config().get("array_api_dispatch", False))


def device_of(model: Any, X: Any) -> str | None:
    """Return where the solves of a fit are made."""
    return "cuda" if is_on_device(X) else getattr(model, "device", None)


def device_rows(model: Any, X: Any, reset: bool) -> CheckedRows:
    """Return rows of a device, checked; `reset` as in `validate_data`."""
    if getattr(model, "device", None) is None and not dispatches():
        raise ValueError(
            f"X, a {type(X).__name__}, is in the memory of a CUDA device, and this "
            f"{type(model).__name__} is not: choose device='cuda' where there is this parameter, "
            "or sklearn.set_config(array_api_dispatch=True), or pass X.get() or X.cpu()."
        )
    rows = check_rows(X, device=True)
    width = rows.shape[1]
    if reset:
        model.n_features_in_ = width
        vars(model).pop("feature_names_in_", None)
    elif width != model.n_features_in_:
        raise ValueError(
            f"X has {width} features, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input."
        )
    return CheckedRows(rows)


def checked_on_device(
    model: Any, X: Any, y: Any, multi_output: bool = False, y_numeric: bool = False
) -> tuple[Any, Any]:
    """Return rows of a device as CuPy's, and the targets as NumPy's, checked."""
    rows = device_rows(model, X, reset=True).rows
    if y is None:
        raise ValueError(
            f"{type(model).__name__} requires y to be passed, but the target y is None."
        )
    targets = _check_y(to_numpy(y), multi_output=multi_output, y_numeric=y_numeric, estimator=model)
    if len(targets) != rows.shape[0]:
        raise ValueError(
            f"y has {len(targets)} entries, but X has {rows.shape[0]} rows; pass one for each row."
        )
    return rows.matrix, targets


def rows_to_solve(model: Any, X: Any) -> Any:
    """Return what solves are given: rows that are checked once for all, or copied to the device."""
    checked = getattr(model, "_checked_rows", None)  # by a search, for all its fits
    if checked is not None:
        return checked
    if device_of(model, X) is None:
        return CheckedRows(check_rows(X)) if read_at_once(model) else X
    if model.intercept_scaling is not None:
        return X
    return CheckedRows(copied(check_rows(X, device=True)))


def read_at_once(model: Any) -> bool:
    """Whether a fit reads the rows as they are in memory, and so checks them."""
    return getattr(model, "_memory_limit", None) is None


def rows_to_split(model: Any, X: Any) -> Any:
    """Return X, or a copy on the device that is made once, of which folds are taken."""
    if device_of(model, X) is None:
        return X
    rows = rows_to_solve(model, X)
    return rows.rows.matrix if isinstance(rows, CheckedRows) else X


def stand_in(X: Any) -> Any:
    """Return an array of the shape of X for those who ask for no more than that."""
    return np.broadcast_to(0.0, X.shape) if is_on_device(X) else X


def taken(X: Any, chosen: Any) -> Any:
    """Return some of the rows, where they are."""
    if not is_on_device(X):
        return X[chosen]
    import cupy

    return X[cupy.asarray(chosen)]


def products_with(rows: Any) -> Any:
    """Return products with rows, made where they are."""
    if not isinstance(rows, CheckedRows):
        return RowProducts(rows)
    inner: Any = rows.rows
    return ProductsHere.of(inner) if isinstance(inner, DeviceRows) else RowProducts(inner.matrix)


def in_kind_of(array: Any, X: Any) -> Any:
    """Return an array of NumPy as one of X's library, if array API dispatch is on."""
    if not dispatches() or np.asarray(array).dtype.kind not in "biuf":
        return array
    foreign = is_on_device(X) or hasattr(X, "__dlpack_device__")
    return in_kind(array, X) if foreign else array


def adopt_kind(model: Any, X: Any) -> None:
    """Convert the fitted arrays to X's library, if array API dispatch is on."""
    if not dispatches():
        return
    for name in OF_ITS_KIND:
        found = getattr(model, name, None)
        if isinstance(found, np.ndarray):
            setattr(model, name, in_kind_of(found, X))
