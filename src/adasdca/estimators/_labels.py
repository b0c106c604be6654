"""Labels as numbers, and the weights of classes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from adasdca.errors import InputError
from adasdca.models._certify import balance, quantities

Array = NDArray[np.float64]

#: Integers from the least label to the largest that are counted.
RANGE = 1 << 16


@contextmanager
def explaining_kinds(y: Any) -> Iterator[None]:
    """Say of labels that cannot be sorted of which kinds they are."""
    try:
        yield
    except TypeError as error:
        kinds = ", ".join(sorted({type(label).__name__ for label in y}))
        raise InputError(
            f"y holds labels of several kinds ({kinds}); leave out rows without a label, and make "
            "the others one kind, e.g. y.astype(str)."
        ).about("y") from error


def encoded(y: Any) -> tuple[Any, NDArray[np.intp]]:
    """Return the sorted classes, and for each label its place among them."""
    kind = y.dtype.kind
    if kind not in "iub":  # integers are labels, whatever their values and their type
        if kind != "f" or not (y == np.trunc(y)).all():
            with explaining_kinds(y):
                check_classification_targets(y)
    elif kind != "u" or y.dtype.itemsize < 8:
        low, high = int(y.min()), int(y.max())
        if high - low < RANGE:  # counting them takes a tenth of the time of sorting
            # Labels that are places already stay where they are: fresh memory for all of them can
            # take longer than a pass over the rows (ten million: up to 0.2 s).
            told = low == 0 and y.dtype == np.intp
            place = y if told else np.subtract(y, low, dtype=np.intp)
            seen = np.bincount(place) > 0
            classes = (np.flatnonzero(seen) + low).astype(y.dtype)
            # Without holes their places are those in the range.
            return classes, place if seen.all() else (np.cumsum(seen) - 1)[place]
    classes = np.unique(y)
    # For two classes a comparison does; the inverse of np.unique would sort all the rows.
    codes = (y == classes[-1]) * 1 if len(classes) == 2 else np.searchsorted(classes, y)
    return classes, codes


class OneAgainstOthers(Sequence[Array]):
    """Targets +1 for one class and −1 for all others, made at each access.

    Parameters
    ----------
    codes : (n,) array
        The place of each label among the classes.
    positives : range
        The classes that become +1, one after the other.
    """

    def __init__(self, codes: NDArray[np.intp], positives: range) -> None:
        self._codes, self._positives = codes, positives
        self._last: tuple[Any, Array] | None = None  # that of two classes is asked for again

    def __len__(self) -> int:
        return len(self._positives)

    def __getitem__(self, k: Any) -> Any:
        if self._last is None or self._last[0] != k:
            self._last = k, np.where(self._codes == self._positives[k], 1.0, -1.0)
        return self._last[1]


def doubt_classes(model: Any, classes: Any, codes: Any) -> None:
    """Warn of numbers that look like targets of a regression."""
    if why := quantities(classes, np.bincount(codes)):
        other = type(model).__name__.replace("Classifier", "Regressor")
        warnings.warn(
            f"{why}. If y holds quantities, {other} is for them.", UserWarning, stacklevel=6
        )


def class_weights(model: Any, classes: Any, codes: Any, weight: Array | None) -> Array | None:
    """Return sample weights times class weights."""
    if weight is None and model.class_weight is None and len(classes) > 1:
        return None
    factor = class_factors(model, classes, np.bincount(codes, weight, minlength=len(classes)))
    if factor is None:
        return weight
    each: Array = factor[codes]
    return each if weight is None else each * weight


def class_factors(model: Any, classes: Any, mass: Any) -> Array | None:
    """Return the weights of the classes, None for none, from their total sample weights.

    There must be two classes at least, and every class must have some weight.
    """
    if len(classes) < 2:
        raise InputError(
            f"{type(model).__name__} needs samples of at least two classes, but y holds one class "
            f"only: {classes.tolist()[0]!r}."
        )
    check_mass(classes, mass)
    if model.class_weight is None:
        return None
    if model.class_weight == "balanced":
        return balance(mass)
    factor: Array = compute_class_weight(model.class_weight, classes=classes, y=classes)
    if (factor <= 0).any():
        raise InputError(
            f"class_weight={model.class_weight!r} must be above 0 for every class; leave the "
            "samples of a class out to ignore it."
        )
    return factor


def check_mass(classes: Any, mass: Any) -> None:
    """Refuse classes without any weight."""
    if (mass <= 0).any():
        lost = classes[mass <= 0].tolist()[0]
        raise InputError(
            f"sample_weight is zero on all samples of class {lost!r}; a class needs some weight: "
            "leave its samples out instead."
        )
