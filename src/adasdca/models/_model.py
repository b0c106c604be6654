"""`Model`: a fitted linear model apart from its data, with its certificates and its origin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.errors import counted
from adasdca.files.columns import Columns
from adasdca.problem.data import check_rows, is_number
from adasdca.problem.losses import Loss
from adasdca.problem.problem import check_bounds, check_terms
from adasdca.problem.products import RowProducts
from adasdca.problem.regularizers import check_factors
from adasdca.storage import FileError

Array = NDArray[np.float64]

#: The numbers of a certificate; None stands for one that is not finite.
FIGURES = ("primal", "dual", "gap", "relative_gap", "radius")


class ModelError(FileError):
    """A model, or the file of one, that cannot be used; the message says why and what to do."""


class UnknownLoss(Loss):
    """The loss of a model that was fitted with one that is not registered here.

    Predictions need no loss; all else is refused.
    """

    def __init__(self, name: str, kind: Any) -> None:
        self.name, self.kind = name, kind  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"{self.name} (not registered here)"


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A linear model with all that is needed to apply it and to certify it again.

    Attributes
    ----------
    coef : (k, d) array
        Coefficients: one row for regression and for two classes, else a row for each class.
    intercept : (k,) array
        Intercepts, in units of the score for any `bias`.
    classes : (K,) array or None
        The labels, numbers or text; None for regression. Of two classes the second is the one of
        the positive scores.
    loss : Loss
        The loss.
    lam : float or None
        Strength of the regularisation; None where the file of the model does not tell.
    l1_ratio : float
        Share of the L1 term.
    bias : float
        LIBLINEAR's -B: the intercept is this constant feature times a coefficient that is penalised
        like the others; −1 for none.
    fit_intercept : bool
        Whether there is an intercept that is not penalised.
    positive : bool
        Whether the coefficients were kept non-negative.
    class_weight : (K,) array or None
        Weights of the classes.
    certificates : list of dict
        For each row of `coef`: class, primal, dual, gap, relative_gap, radius. Empty if unknown.
    provenance : dict
        Where the model comes from: versions, data, command, date.
    feature_names : list of str or None
        Names of the features, if the data had names.
    multinomial : bool
        Whether the rows of `coef` make one multinomial model, and not one for each class against
        the rest.
    bounds : (lower, upper) or None
        Bounds of the coefficients, (d,) arrays; None for none but those of `positive`.
    penalty_factors : (d,) array or None
        Factors of the penalty; None: all 1.
    columns : dict or None
        How the columns of a table become features: see `adasdca.files.Columns`.
    """

    coef: Array
    intercept: Array
    classes: NDArray[Any] | None
    loss: Loss
    lam: float | None
    l1_ratio: float = 0.0
    bias: float = -1.0
    fit_intercept: bool = False
    positive: bool = False
    class_weight: Array | None = None
    certificates: list[dict[str, Any]] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)
    feature_names: list[str] | None = None
    multinomial: bool = False
    bounds: tuple[Array, Array] | None = None
    penalty_factors: Array | None = None
    columns: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self._check_coefficients()
        self._check_classes()
        self._check_problem()
        names: Any = self.feature_names
        if names is None:
            return
        text = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if not text or len(set(names)) != len(names):
            raise ModelError("The names of the features must be text, each of them once.")
        if len(names) != self.n_features:
            width = counted(self.n_features, "feature")
            raise ModelError(f"The number of names for {width} is {len(names)}.")

    def _check_coefficients(self) -> None:
        for name in ("coef", "intercept"):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
                kind = getattr(array, "dtype", type(array).__name__)
                raise ModelError(f"{name} is of {kind}; it must be an array of real numbers.")
        if self.coef.ndim != 2 or self.intercept.shape != self.coef.shape[:1]:
            raise ModelError(
                f"coef has shape {self.coef.shape} and intercept {self.intercept.shape}; "
                "they must have shapes (k, d) and (k,)."
            )
        if self.coef.shape[1] == 0:
            raise ModelError("The model has no features; fit it on one at least.")
        if not (np.isfinite(self.coef).all() and np.isfinite(self.intercept).all()):
            raise ModelError("The coefficients contain NaN or infinity; fit the model again.")

    def _check_classes(self) -> None:
        labels = self.classes
        if (labels is None) != (self.loss.kind == "regression"):
            raise ModelError(f"The loss {self.loss.name!r} is for {self.loss.kind}.")
        count = 0
        if labels is not None:
            count = len(labels) if labels.ndim == 1 else 1
            if labels.dtype.kind not in "biufOUS":
                raise ModelError(f"classes is of {labels.dtype}; labels are numbers or text.")
            if labels.dtype.kind == "f" and not np.isfinite(labels).all():
                raise ModelError("The classes contain NaN or infinity; fit the model again.")
            if len(set(labels.ravel().tolist())) != labels.size:
                raise ModelError("A class comes twice; fit the model again.")
        if count == 1 or len(self.coef) != (1 if count <= 2 else count):
            raise ModelError(
                f"{len(self.coef)} rows of coefficients do not fit {count} classes; there must be "
                "one row for two classes and for regression, and else one for each class."
            )
        weight = self.class_weight
        if weight is not None and not (
            weight.shape == (count,) and np.isfinite(weight).all() and (weight > 0).all()
        ):
            raise ModelError(f"class_weight must hold {count} finite numbers above 0.")

    def _check_problem(self) -> None:
        if not is_number(self.bias):
            raise ModelError(f"bias = {self.bias!r} must be a finite number.")
        for name in ("positive", "multinomial"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ModelError(f"{name} = {getattr(self, name)!r} must be True or False.")
        if self.multinomial and (not self.loss.joins_classes or len(self.coef) == 1):
            raise ModelError(
                f"A multinomial model has the logistic loss and more than two classes, not "
                f"{self.loss.name!r} and {len(self.coef)} row(s) of coefficients."
            )
        try:
            check_terms(1.0 if self.lam is None else self.lam, self.l1_ratio, self.fit_intercept)
            limits = check_bounds(self.bounds, self.n_features)
            check_factors(self.penalty_factors, self.n_features, limits)
        except ValueError as error:
            raise ModelError(f"{error}") from error
        if self.columns is not None:
            Columns.of(self.columns)
        origin: Any = self.provenance  # a file may say anything
        found: Any = self.certificates
        if not isinstance(origin, dict):
            raise ModelError(f"provenance = {origin!r} must be a dictionary.")
        if not isinstance(found, list) or not all(
            isinstance(entry, dict) and all(_is_figure(entry.get(key)) for key in FIGURES)
            for entry in found
        ):
            raise ModelError(
                f"certificates must be a list of dictionaries of numbers: {', '.join(FIGURES)}."
            )

    def __repr__(self) -> str:
        kind = "regression" if self.classes is None else counted(len(self.classes), "class")
        lam = "unknown" if self.lam is None else f"{self.lam:.3g}"
        width = counted(self.n_features, "feature")
        return f"Model({kind}, {width}, loss {self.loss!r}, lam {lam})"

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.coef.shape[1])

    def decision(self, X: Any) -> Array:
        """Return the scores x·w + b of rows, an (n, k) array."""
        rows = check_rows(X)
        if rows.shape[1] != self.n_features:
            raise ModelError(
                f"X has {counted(rows.shape[1], 'feature')}, but the model was fitted on "
                f"{self.n_features}; "
                "pass rows of the same features."
            )
        return RowProducts(rows.matrix).times(self.coef) + self.intercept

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted labels of rows, or their scores for regression."""
        return self.predicted(self.decision(X))

    def predicted(self, scores: Array) -> NDArray[Any]:
        """Return what those scores, of `decision`, predict."""
        if self.classes is None:
            return scores[:, 0]
        # At a tie the first class, as LIBLINEAR does.
        best = (scores[:, 0] > 0).astype(np.intp) if len(self.coef) == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes[best])

    def total_weight(self, y: Any) -> float:
        """Return N, the sum of the class weights of rows of these labels."""
        labels = np.asarray(y)
        if self.class_weight is None or self.classes is None:
            return float(len(labels))
        pairs = zip(self.classes, self.class_weight, strict=True)
        return float(sum(weight * np.count_nonzero(labels == label) for label, weight in pairs))


def _is_figure(value: Any) -> bool:
    return value is None or is_number(value)
