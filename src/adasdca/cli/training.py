"""A fit: options into an estimator, the fitted estimator into a model."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold

from adasdca.cli.output import certificate, plain
from adasdca.cli.search import Search
from adasdca.cli.usage import check_positive, usage_error
from adasdca.duality.certificate import Certificate
from adasdca.estimators import (
    AdaSDCAClassifier,
    AdaSDCAClassifierCV,
    AdaSDCARegressor,
    AdaSDCARegressorCV,
)
from adasdca.models import Model
from adasdca.problem.losses import Loss
from adasdca.solution import Record, Status

Array = NDArray[np.float64]

#: If several solves fell short, the first of these that occurred is reported.
GRAVEST = (Status.INTERRUPTED, Status.TIME_LIMIT, Status.EPOCH_LIMIT, Status.STALLED)

MULTI_CLASS = ("auto", "ovr", "multinomial")


@dataclass(frozen=True)
class Recipe:
    """What is to be fitted, and how."""

    loss: Loss
    lam: float | None = None
    C: float | None = None
    l1_ratio: float = 0.0
    positive: bool = False
    bias: float | None = None
    intercept: bool = True
    multi_class: str = "auto"
    method: str = "auto"
    tol: float = 1e-4
    max_epochs: int = 1000
    max_time: float | None = None
    seed: int = 0
    threads: int = 1

    def check(self) -> None:
        """Refuse options that contradict each other."""
        if self.lam is not None and self.C is not None:
            raise usage_error("lam = 1/(C N), so give one of --lam and --C.", "--lam")
        if self.bias is not None and self.intercept:
            raise usage_error(
                "--bias is a penalised constant feature, --intercept is not penalised; give one.",
                "--bias",
            )
        if self.multi_class not in MULTI_CLASS:
            raise usage_error(
                f"{self.multi_class!r} is unknown; choose one of {', '.join(MULTI_CLASS)}.",
                "--multi-class",
            )
        joint = self.loss.joins_classes and self.l1_ratio == 0 and not self.positive
        if self.multi_class == "multinomial" and not joint:
            raise usage_error(
                "a multinomial model has the loss logistic, --l1-ratio 0 and no --positive; choose "
                "ovr for these.",
                "--multi-class",
            )
        for option, value in (("--lam", self.lam), ("--C", self.C), ("--bias", self.bias)):
            check_positive(option, value)

    def estimator(
        self, C: float, weights: dict[Any, float] | None, callback: Any, search: Search | None
    ) -> Any:
        """Return the estimator that does it, with lam or the default turned into C."""
        options: dict[str, Any] = {
            "loss": self.loss,
            "positive": self.positive,
            "fit_intercept": self.intercept or self.bias is not None,
            "intercept_scaling": self.bias,
            "method": self.method,
            "tol": self.tol,
            "max_iter": self.max_epochs,
            "max_time": self.max_time,
            "random_state": self.seed,
            "n_jobs": self.threads,
            "callback": callback,
        }
        regression = self.loss.kind == "regression"
        if not regression:
            options |= {"multi_class": self.multi_class, "class_weight": weights}
        if search is None:
            options |= {"C": C, "l1_ratio": self.l1_ratio}
            return (AdaSDCARegressor if regression else AdaSDCAClassifier)(**options)
        folds = (KFold if regression else StratifiedKFold)(
            search.folds, shuffle=True, random_state=self.seed
        )
        options |= {
            "Cs": [C] if search.Cs is None else search.Cs,
            "l1_ratios": search.l1_ratios or [self.l1_ratio],
            "cv": folds,
            "scoring": search.scoring,
        }
        return (AdaSDCARegressorCV if regression else AdaSDCAClassifierCV)(**options)


@dataclass(frozen=True)
class Fit:
    """A model, how its fit ended and what it took; the estimator has all the rest."""

    model: Model
    status: Status
    C: float
    epochs: int
    seconds: float
    estimator: Any


def class_weights(
    given: list[str], y: NDArray[Any], option: Callable[[str], str] = lambda name: "--weight"
) -> dict[Any, float] | None:
    """Return the weights CLASS=W by class, 1 where none is given; None for none at all.

    `option` names the option of a weight, by the name of the class.
    """
    if not given:
        return None
    weights: dict[Any, float] = dict.fromkeys(np.unique(y).tolist(), 1.0)
    names = {str(plain(label)): label for label in weights}
    for text in given:
        name, _, value = text.rpartition("=")
        try:
            weight = float(value)
        except ValueError:
            weight = np.nan
        if not name or np.isnan(weight):
            raise usage_error(f"{text!r} is not of the form CLASS=W, W a number.", option(name))
        label = names.get(name, names.get(_as_number(name)))
        if label is None:
            raise usage_error(f"{name!r} is none of the classes {', '.join(names)}.", option(name))
        check_positive(option(name), weight)
        weights[label] = weight
    return weights


def _as_number(name: str) -> str:
    """Return a number as labels are shown: +1 and 1.0 as 1."""
    try:
        return str(plain(float(name)))
    except ValueError:
        return name


def train(
    X: Any,
    y: NDArray[Any],
    recipe: Recipe,
    weights: dict[Any, float] | None,
    callback: Callable[[Record], Any],
    search: Search | None = None,
    memory_limit: int | None = None,
) -> Fit:
    """Fit a model; one that is interrupted or reaches a limit is returned as well.

    With a memory limit X is in files mapped into memory, and is looked at block by block.
    """
    total = float(len(y))
    if weights is not None:
        labels, counts = np.unique(y, return_counts=True)
        total = float(sum(weights[k] * n for k, n in zip(labels.tolist(), counts, strict=True)))
    C = 1.0 if recipe.C is None else recipe.C
    if recipe.lam is not None:
        C = 1.0 / (recipe.lam * total)
    estimator = recipe.estimator(C, weights, callback, search)
    if memory_limit is not None:
        estimator._memory_limit = memory_limit
    began = time.perf_counter()
    try:
        # The solver looks at the rows: once is enough. The status says what a warning would, and
        # what is odd about the labels has been told.
        with config_context(assume_finite=True), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", ".* are taken for classes", UserWarning)
            estimator.fit(X, y)
    except KeyboardInterrupt:
        if not hasattr(estimator, "certificate_"):
            raise
    seconds = time.perf_counter() - began
    if search is not None:
        C = estimator.C_
    # lam as it was solved for: that of --lam, but for the rounding on the way through C.
    model = _model(estimator, recipe, 1.0 / (C * total), weights)
    return Fit(model, _status(estimator), C, int(estimator.n_iter_), seconds, estimator)


def _status(estimator: Any) -> Status:
    """Return how the fit ended, of several solves the gravest end."""
    if estimator.converged_:
        return Status.CONVERGED
    found = estimator.status_ if isinstance(estimator.status_, list) else [estimator.status_]
    return next(status for status in GRAVEST if status in found)


def _model(estimator: Any, recipe: Recipe, lam: float, weights: dict[Any, float] | None) -> Model:
    classes: Any = getattr(estimator, "classes_", None)
    coef = np.atleast_2d(estimator.coef_)
    found = estimator.certificate_
    points: list[Certificate] = found if isinstance(found, list) else [found]
    names = [None] if len(points) == 1 else [plain(label) for label in classes]
    factor = None if weights is None else np.array([weights[k] for k in classes.tolist()])
    return Model(
        coef=coef,
        intercept=np.broadcast_to(estimator.intercept_, len(coef)).astype(np.float64),
        classes=classes,
        loss=recipe.loss,
        lam=lam,
        l1_ratio=float(getattr(estimator, "l1_ratio_", recipe.l1_ratio)),
        bias=-1.0 if recipe.bias is None else recipe.bias,
        fit_intercept=recipe.intercept,
        positive=recipe.positive,
        class_weight=factor,
        certificates=[certificate(point, name) for point, name in zip(points, names, strict=True)],
        multinomial=getattr(estimator, "_joint", False),
    )
