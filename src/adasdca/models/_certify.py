"""A model, whoever fitted it, against data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from adasdca.certification import certify as certify_point
from adasdca.duality.certificate import Certificate
from adasdca.errors import InputError
from adasdca.models._model import Model, ModelError, UnknownLoss
from adasdca.models._objectives import Objective, UnknownObjectiveError, objective_of
from adasdca.multinomial.certificate import certify_multinomial
from adasdca.problem.data import CheckedRows, check_rows, check_weights
from adasdca.problem.device_rows import to_numpy

Array = NDArray[np.float64]

#: Epochs spent on a better bound for a fitted estimator, unless told otherwise.
EPOCHS = 20

#: Numbers in so few rows (as scikit-learn has it), or that leave at most this chance of a new one,
#: are classes.
FEW, UNSEEN = 20, 0.1


@dataclass(frozen=True)
class Posed:
    """A problem, and coefficients that are an answer to it."""

    #: The point; of a multinomial model a matrix and a vector.
    coef: Array
    intercept: Any
    targets: NDArray[Any]  #: (n,), ±1 or numbers; of a multinomial model the codes of the classes.
    problem: dict[str, Any]  #: Keywords of `adasdca.solve`.
    dual_coef: Any = None  #: (n,), dual variables, where the model has such.

    def certify(self, X: Any, epochs: int, backend: str | None = None) -> Certificate:
        """Certify it on these rows, with that many epochs for a better bound."""
        if self.coef.ndim == 2:
            return self._jointly(X, backend)
        fits = self.dual_coef is not None and np.shape(self.dual_coef) == self.targets.shape
        return certify_point(
            X,
            self.targets,
            self.coef,
            intercept=float(self.intercept),
            dual_coef=self.dual_coef if fits else None,
            epochs=epochs,
            backend=backend,
            **self.problem,
        )

    def _jointly(self, X: Any, backend: str | None) -> Certificate:
        rows = check_rows(X, device=backend == "cuda")
        coef, intercept, constant = self.coef, self.intercept, self.problem["intercept_scaling"]
        if constant is not None:
            rows = rows.with_constant(constant)
            coef = np.column_stack([coef, intercept / constant])
            intercept = np.zeros(len(coef))
        return certify_multinomial(
            CheckedRows(rows),
            self.targets,
            coef,
            intercept,
            lam=self.problem["lam"],
            sample_weight=self.problem["sample_weight"],
            fit_intercept=self.problem["fit_intercept"] and constant is None,
            backend=backend,
        )


@overload
def certify(X: Any, y: Any, coef: Any, *, loss: Any, lam: float, **problem: Any) -> Certificate: ...
@overload
def certify(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    epochs: int = EPOCHS,
    backend: str | None = None,
) -> Certificate | list[Certificate]: ...
def certify(*args: Any, **options: Any) -> Any:
    """Certify any linear model: its objective, a lower bound on the least one, and the gap.

    ``certify(estimator, X, y)`` takes a fitted estimator of scikit-learn or of this package, and
    finds its objective in its parameters. ``certify(X, y, coef, loss=..., lam=...)`` takes
    coefficients from anywhere, and the problem that they are to solve.

    Parameters
    ----------
    estimator : estimator or Model
        A fitted linear model: LogisticRegression, LinearSVC, LinearSVR, Ridge, RidgeClassifier,
        Lasso, ElasticNet (and those with CV), QuantileRegressor, HuberRegressor (at the scale that
        it found), SGDClassifier, SGDRegressor, those of this package; at the end of a Pipeline, in
        a TransformedTargetRegressor, or found by a search such as GridSearchCV. Or a
        `adasdca.models.Model`, as `adasdca.models.load` reads it.
    X, y
        The rows and targets that it was fitted on. The certificate is for these data: it says
        nothing of rows that are not here.
    sample_weight : (n,) array, optional
        The weights of its fit.
    epochs : int
        Epochs of `solve` to spend on a better bound, 20 by default for an estimator and 0 for
        coefficients. Losses with a kink need some: at a kink the slope of the loss says little
        about the dual.
    backend : "cuda", optional
        Where the rows live, as in `adasdca.solve`.
    coef : (d,) array
        Coefficients w.
    **problem
        The problem, of coefficients: see `adasdca.certification.certify`.

    Returns
    -------
    Certificate or list of Certificate
        A list if the estimator is several problems: classes against the rest, or targets.

    Raises
    ------
    ValueError
        If the objective of the estimator is not known; the message says what is missing.

    Examples
    --------
    >>> import adasdca
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = adasdca.datasets.load_mushrooms()
    >>> model = LogisticRegression(C=10.0, tol=1e-8, max_iter=1000).fit(X, y)
    >>> certificate = adasdca.certify(model, X, y)
    >>> bool(certificate.relative_gap < 1e-2)
    True

    The same by hand, of coefficients:

    >>> same = adasdca.certify(
    ...     X,
    ...     y,
    ...     model.coef_[0],
    ...     intercept=float(model.intercept_[0]),
    ...     fit_intercept=True,
    ...     loss="logistic",
    ...     lam=1 / (10.0 * len(y)),
    ...     epochs=20,
    ... )
    >>> bool(same.primal == certificate.primal)
    True
    """
    if "estimator" in options:
        args = (options.pop("estimator"), *args)
    if not args or not hasattr(args[0], "predict"):
        if len(args) == 3 and hasattr(args[2], "predict"):
            name = type(args[2]).__name__
            raise InputError(f"the {name} comes first: certify(model, X, y).").about("coef")
        return certify_point(*args, **options)
    missing = [name for name in ("X", "y")[len(args) - 1 :] if name not in options]
    if missing:
        raise TypeError(f"certify(model, X, y) lacks {' and '.join(missing)}: the rows of the fit.")
    found = certify_model(*args, **{"epochs": EPOCHS, **options})
    return found[0] if len(found) == 1 else found


def certify_model(
    model: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    epochs: int = 0,
    backend: str | None = None,
) -> list[Certificate]:
    """Certify a model, or a fitted estimator, on data: one certificate for each of its problems.

    Of a multinomial model that is one in all. Of a `Model`, `lam` must be known
    (``dataclasses.replace(model, lam=...)``). Arguments are those of `adasdca.certify`.

    Returns
    -------
    list of Certificate
    """
    if not isinstance(model, Model):
        model, X, y = _innermost(model, X, y)
        if hasattr(model, "feature_names_in_"):
            _check_names(model, X)
    posed = problems_of(model, y, sample_weight)
    return [each.certify(X, epochs, backend) for each in posed]


def problems_of(model: Any, y: Any, sample_weight: Any = None) -> list[Posed]:
    """Return the problems that a model, or a fitted linear estimator, solves on these targets."""
    y = to_numpy(y)
    weight = check_weights(sample_weight, len(y))
    if isinstance(model, Model):
        return _posed(
            _objective(model), model.coef, model.intercept, model.classes, None, y, weight
        )
    objective = objective_of(model)
    if not hasattr(model, "coef_"):
        raise UnknownObjectiveError(
            f"This {type(model).__name__} is not fitted; fit it before you certify it."
        )
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else to_numpy(model.coef_)
    coef = np.ascontiguousarray(np.atleast_2d(coef), dtype=np.float64)
    intercept = np.zeros(len(coef))
    if objective.fit_intercept:
        intercept += np.ravel(to_numpy(model.intercept_))
    classes, duals = (getattr(model, name, None) for name in ("classes_", "dual_coef_"))
    return _posed(objective, coef, intercept, classes, duals, y, weight)


def _innermost(model: Any, X: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return the linear model inside pipelines and searches, with the data as it sees them."""
    if hasattr(model, "best_estimator_"):
        return _innermost(model.best_estimator_, X, y)
    if hasattr(model, "steps") and hasattr(model, "named_steps"):
        before = model[:-1]
        return _innermost(model[-1], before.transform(X) if len(before) else X, y)
    if hasattr(model, "regressor_") and hasattr(model, "transformer_"):
        column = np.asarray(y, dtype=np.float64)
        flat = column.ndim == 1
        moved = model.transformer_.transform(column.reshape(-1, 1) if flat else column)
        return _innermost(model.regressor_, X, np.ravel(moved) if flat else moved)
    return model, X, y


def _check_names(model: Any, X: Any) -> None:
    """Refuse columns that have other names than those of the fit, or the same in another order."""
    # Slow to import, and here whoever has an estimator has it already.
    from sklearn.utils.validation import _check_feature_names, _get_feature_names

    if _get_feature_names(X) is not None:
        _check_feature_names(model, X, reset=False)


def _objective(model: Model) -> Objective:
    """Return what a model of a file minimises."""
    if isinstance(model.loss, UnknownLoss):
        raise ModelError(
            f"The model was fitted with the loss {model.loss.name!r}, which is not known here; "
            "register it first (--plugin on the command line)."
        )
    if model.lam is None:
        raise ModelError(
            "The strength of the regularisation is not known, as the file of the model does not "
            "tell; give lam or C."
        )
    weights = None
    if model.class_weight is not None and model.classes is not None:
        weights = dict(zip(model.classes.tolist(), model.class_weight.tolist(), strict=True))
    return Objective(
        model.loss,
        model.lam,
        "mean",
        l1_ratio=model.l1_ratio,
        bounds=(0, None) if model.bounds is None and model.positive else model.bounds,
        penalty_factors=model.penalty_factors,
        fit_intercept=model.fit_intercept or model.bias > 0,
        intercept_scaling=model.bias if model.bias > 0 else None,
        class_weight=weights,
        multinomial=model.multinomial,
    )


def _posed(
    objective: Objective,
    coef: Array,
    intercept: Array,
    classes: Any,
    duals: Any,
    y: NDArray[Any],
    weight: Array | None,
) -> list[Posed]:
    """Return the problem behind each row of coefficients; of a multinomial model the only one."""
    duals = [None] * len(coef) if duals is None else np.atleast_2d(to_numpy(duals))
    if classes is None:
        targets = [*np.atleast_2d(np.asarray(y, dtype=np.float64).T)]
        weights = [weight] * len(targets)
    else:
        targets, weights = split_classes(np.asarray(classes), objective, y, weight)
    if len(targets) < len(coef):
        coef, intercept, duals = coef[None], intercept[None], [None]
    found = []
    for k, (w, b) in enumerate(zip(coef, intercept, strict=True)):
        own = weights[k]
        total = float(len(y)) if own is None else math.fsum(own)
        problem = objective.problem(objective.lam(len(y), total, k), own)
        found.append(Posed(w, b, targets[k], problem, duals[k]))
    return found


def split_classes(
    classes: NDArray[Any], objective: Objective, y: NDArray[Any], weight: Array | None
) -> tuple[list[NDArray[Any]], list[Array | None]]:
    """Return the targets and the weights of each of the problems that classes make.

    Two classes make one problem, more of them one each, or a multinomial one in all, whose targets
    are the codes of the classes.
    """
    if (y.dtype.kind in "OUS") != (classes.dtype.kind in "OUS"):
        raise ModelError(
            f"The labels are of another kind ({y.tolist()[0]!r}) than the model's classes "
            f"({classes.tolist()[0]!r}); pass the labels that it was fitted on."
        )
    order = np.argsort(classes)
    codes = order[np.minimum(np.searchsorted(classes, y, sorter=order), len(classes) - 1)]
    if not (classes[codes] == y).all():
        labels = [y[classes[codes] != y].tolist()[0], *classes.tolist()[:10]]
        strange, *known = (f"{k:g}" if isinstance(k, float) else repr(k) for k in labels)
        raise ModelError(
            f"The label {strange} is none of the model's classes ({', '.join(known)}); pass the "
            "labels that it was fitted on."
        )
    if objective.multinomial and len(classes) > 2 and objective.l1_ratio > 0:
        raise UnknownObjectiveError(
            "A multinomial model of more than two classes with an L1 term is not solved here; "
            "choose l1_ratio=0, or one class against the rest: "
            "sklearn.multiclass.OneVsRestClassifier."
        )
    factor = _factors(classes, codes, objective, weight)
    every = weight if factor is None else _product(factor[codes], weight)
    if len(classes) == 2:
        return [np.where(codes == 1, 1.0, -1.0)], [every]
    if objective.multinomial:
        return [codes], [every]
    targets, weights = [], []
    for k in range(len(classes)):
        targets.append(np.where(codes == k, 1.0, -1.0))
        own = every
        if factor is not None and objective.own_only:
            own = _product(np.where(codes == k, factor[k], 1.0), weight)
        weights.append(own)
    return targets, weights


def _factors(
    classes: NDArray[Any], codes: NDArray[Any], objective: Objective, weight: Array | None
) -> Array | None:
    """Return the weights of the classes, None where all are 1."""
    given = objective.class_weight
    if given is None:
        return None
    if given == "balanced":
        counted = weight if objective.balanced_by_weight else None
        return balance(np.bincount(codes, counted, minlength=len(classes)))
    return np.array([float(given.get(label, 1.0)) for label in classes.tolist()])


def balance(mass: NDArray[Any]) -> Array:
    """Return the weights that give every class the same total, from the totals without them."""
    return np.asarray(mass.sum() / (len(mass) * np.where(mass > 0, mass, 1.0)))


def quantities(classes: NDArray[Any], counts: NDArray[Any]) -> str:
    """Say of numbers taken for classes that they may be quantities; empty where they hardly are.

    Quantities have tails of values that occur once. The share of these in the rows is the chance
    that the next row is of a class that is not here (Good and Turing).
    """
    once, n = int(np.count_nonzero(counts == 1)), int(counts.sum())
    if classes.dtype.kind not in "iuf" or len(classes) < 3 or n <= FEW or once <= UNSEEN * n:
        return ""
    return f"{len(classes)} different numbers are taken for classes, {once} of them of one row only"


def _product(first: Array | None, second: Array | None) -> Array | None:
    if first is None or second is None:
        return second if first is None else first
    return first * second
