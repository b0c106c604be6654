"""Which objective a linear estimator minimises: those of scikit-learn, and those of this package.

Estimators are known by the name of their class, or of a class that it comes from; scikit-learn is
not imported for that. All are written in terms of `adasdca.solve`: a mean of losses and lam times
the elastic net. scikit-learn writes the strength in three ways, with n rows of total weight N:

| estimators                            | lam         |
|---------------------------------------|-------------|
| C: LogisticRegression, LinearSVC, ... | 1/(C·N)     |
| alpha of a sum: Ridge, ...            | alpha/N     |
| alpha of a mean: Lasso, ...           | alpha       |
| alpha of a mean over rows: SGD        | alpha·n/N   |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from adasdca.problem.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    Quantile,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    get_loss,
)


class UnknownObjectiveError(ValueError):
    """An estimator whose objective cannot be certified; the message says why."""


@dataclass(frozen=True)
class Objective:
    """What an estimator minimises, as far as its parameters tell."""

    loss: Loss
    strength: Any  #: C or alpha; an array has one for each target.
    unit: str  #: "C", "sum", "mean" or "rows": which of the ways above `strength` is written in.
    #: As in `adasdca.solve`.
    l1_ratio: float = 0.0
    bounds: Any = None
    penalty_factors: Any = None
    fit_intercept: bool = True
    intercept_scaling: float | None = None
    class_weight: Any = None  #: Weights of the classes.
    #: Whether the weight of a class counts only where it stands against the rest, as in LIBLINEAR
    #: and SGD, and not in the problems of the other classes.
    own_only: bool = False
    balanced_by_weight: bool = True  #: Whether "balanced" counts weights instead of rows.
    multinomial: bool = False  #: Whether more than two classes make one model.

    def strength_of(self, k: int) -> float:
        """Return C or alpha of problem k."""
        values = np.atleast_1d(np.asarray(self.strength, dtype=np.float64))
        return float(values[k if len(values) > 1 else 0])

    def penalised(self, k: int = 0) -> bool:
        """Whether problem k has a penalty at all."""
        return self.strength_of(k) != (np.inf if self.unit == "C" else 0.0)

    def lam(self, n: int, total: float, k: int = 0) -> float:
        """Return lam of problem k, for n rows of that total weight."""
        value = self.strength_of(k)
        if self.unit == "C":
            lam = 1.0 / (value * total)
        else:
            lam = value * {"sum": 1.0 / total, "mean": 1.0, "rows": n / total}[self.unit]
        if not 0 < lam < np.inf:
            raise UnknownObjectiveError(
                f"{'C' if self.unit == 'C' else 'alpha'} = {value:g} is a problem without a "
                "penalty: nothing bounds how far its optimum is, so there is no certificate; fit "
                "with some regularisation, however weak."
            )
        return lam

    def problem(self, lam: float, weight: Any) -> dict[str, Any]:
        """Return the problem of that lam and those sample weights, as keywords of `solve`."""
        return {
            "loss": self.loss,
            "lam": lam,
            "l1_ratio": self.l1_ratio,
            "bounds": self.bounds,
            "penalty_factors": self.penalty_factors,
            "sample_weight": weight,
            "fit_intercept": self.fit_intercept,
            "intercept_scaling": self.intercept_scaling,
        }


def objective_of(estimator: Any) -> Objective:
    """Return the objective of an estimator, or say why it is not known."""
    name = type(estimator).__name__
    for cls in type(estimator).__mro__:
        package = cls.__module__.partition(".")[0]
        reader = _READERS.get(cls.__name__) if package in ("sklearn", "adasdca") else None
        if reader is not None:
            return reader(estimator)
        if package == "sklearn" and cls.__name__ in _REASONS:
            reason = _REASONS[cls.__name__]
            raise UnknownObjectiveError(f"{name} cannot be certified: {reason}.")
    for inner in ("estimators_", "estimator_"):
        if hasattr(estimator, inner):
            raise UnknownObjectiveError(
                f"{name} cannot be certified: it is made of others; certify what is in its "
                f"{inner}, on the rows, features and targets that those were fitted on."
            )
    raise UnknownObjectiveError(
        f"{name} is not known here; pass its coefficients instead: "
        "certify(X, y, coef, intercept=..., loss=..., lam=...). Known are "
        f"{', '.join(sorted(_READERS))}, alone, at the end of a Pipeline, or found by a search."
    )


def _chosen(estimator: Any, name: str) -> Any:
    """Return a parameter, or what a search put in its place."""
    found = getattr(estimator, f"{name}_", None)
    return getattr(estimator, name) if found is None else found


def _positive(estimator: Any) -> Any:
    return (0, None) if getattr(estimator, "positive", False) else None


def _own(m: Any) -> Objective:
    bounds = m.bounds if getattr(m, "bounds", None) is not None else _positive(m)
    return Objective(
        m._loss(),
        _chosen(m, "C"),
        "C",
        l1_ratio=float(_chosen(m, "l1_ratio")),
        bounds=bounds,
        penalty_factors=m.penalty_factors,
        fit_intercept=m.fit_intercept,
        intercept_scaling=m.intercept_scaling,
        class_weight=getattr(m, "class_weight", None),
        multinomial=getattr(m, "_joint", False),
    )


def _l1_share(m: Any) -> float:
    """Return the share of the L1 term from `penalty`, which newer versions leave to l1_ratio."""
    penalty = getattr(m, "penalty", "deprecated")
    if penalty in ("l1", "l2"):
        return float(penalty == "l1")
    ratio = np.ravel(_chosen(m, "l1_ratio"))[0]  # one for each class of a search, or None
    return 0.0 if ratio is None else float(ratio)


def _counts_weights() -> bool:
    """Whether this version of scikit-learn counts weights for "balanced": before 1.7, rows."""
    from sklearn.utils import class_weight

    return "sample_weight" in signature(class_weight.compute_class_weight).parameters


def _logistic(m: Any) -> Objective:
    liblinear = m.solver == "liblinear"
    return Objective(
        Logistic(),
        np.inf if getattr(m, "penalty", "") is None else np.ravel(_chosen(m, "C"))[0],
        "C",
        l1_ratio=_l1_share(m),
        fit_intercept=m.fit_intercept,
        intercept_scaling=m.intercept_scaling if liblinear and m.fit_intercept else None,
        class_weight=m.class_weight,
        own_only=liblinear,
        balanced_by_weight=_counts_weights(),
        multinomial=not liblinear and getattr(m, "multi_class", "auto") != "ovr",
    )


def _linear_svc(m: Any) -> Objective:
    if m.multi_class == "crammer_singer":
        raise UnknownObjectiveError(
            "LinearSVC(multi_class='crammer_singer') has one objective for all classes that is not "
            "solved here; choose multi_class='ovr'."
        )
    return Objective(
        Hinge() if m.loss == "hinge" else SquaredHinge(),
        m.C,
        "C",
        l1_ratio=float(m.penalty == "l1"),
        fit_intercept=m.fit_intercept,
        intercept_scaling=m.intercept_scaling if m.fit_intercept else None,
        class_weight=m.class_weight,
        own_only=True,
        balanced_by_weight=_counts_weights(),
    )


def _linear_svr(m: Any) -> Objective:
    squared = m.loss == "squared_epsilon_insensitive"
    return Objective(
        (SquaredEpsilonInsensitive if squared else EpsilonInsensitive)(m.epsilon),
        m.C,
        "C",
        fit_intercept=m.fit_intercept,
        intercept_scaling=m.intercept_scaling if m.fit_intercept else None,
    )


def _ridge(m: Any) -> Objective:
    return Objective(
        Squared(),
        _chosen(m, "alpha"),
        "sum",
        bounds=_positive(m),
        fit_intercept=m.fit_intercept,
        class_weight=getattr(m, "class_weight", None),
        balanced_by_weight=False,
    )


def _elastic_net(m: Any) -> Objective:
    return Objective(
        Squared(),
        _chosen(m, "alpha"),
        "mean",
        l1_ratio=float(_chosen(m, "l1_ratio")) if hasattr(m, "l1_ratio") else 1.0,
        bounds=_positive(m),
        fit_intercept=m.fit_intercept,
    )


def _quantile(m: Any) -> Objective:
    return Objective(
        Quantile(m.quantile), m.alpha, "mean", l1_ratio=1.0, fit_intercept=m.fit_intercept
    )


def _huber(m: Any) -> Objective:
    # At the scale σ that was fitted: Σ_i σ·H(r_i/σ) + α‖w‖² is 2/σ times Σ_i φ(r_i) + ασ/2·‖w‖²,
    # φ our loss with δ = εσ.
    sigma = float(m.scale_)
    return Objective(
        Huber(m.epsilon * sigma), m.alpha * sigma, "sum", fit_intercept=m.fit_intercept
    )


def _sgd(m: Any) -> Objective:
    names = {"huber": "delta", "epsilon_insensitive": "epsilon"}
    own = names.get(str(m.loss).removeprefix("squared_"))
    if m.loss == "perceptron" or (m.loss in ("huber",) and hasattr(m, "class_weight")):
        raise UnknownObjectiveError(f"The loss {m.loss!r} of {type(m).__name__} is not known here.")
    loss = get_loss(m.loss, **({own: m.epsilon} if own else {}))
    return Objective(
        loss,
        m.alpha if m.penalty is not None else 0.0,
        "rows",
        l1_ratio={"l2": 0.0, "l1": 1.0, "elasticnet": m.l1_ratio, None: 0.0}[m.penalty],
        fit_intercept=m.fit_intercept,
        class_weight=getattr(m, "class_weight", None),
        own_only=True,
        balanced_by_weight=False,
    )


_READERS: dict[str, Callable[[Any], Objective]] = {
    "AdaSDCAClassifier": _own,
    "AdaSDCARegressor": _own,
    "LogisticRegression": _logistic,
    "LogisticRegressionCV": _logistic,
    "LinearSVC": _linear_svc,
    "LinearSVR": _linear_svr,
    "Ridge": _ridge,
    "RidgeCV": _ridge,
    "RidgeClassifier": _ridge,
    "RidgeClassifierCV": _ridge,
    "ElasticNet": _elastic_net,
    "ElasticNetCV": _elastic_net,
    "Lasso": _elastic_net,
    "LassoCV": _elastic_net,
    "LassoLars": _elastic_net,
    "LassoLarsCV": _elastic_net,
    "QuantileRegressor": _quantile,
    "HuberRegressor": _huber,
    "SGDClassifier": _sgd,
    "SGDRegressor": _sgd,
}

_GLM = "its loss is none of adasdca.losses"
_NO_PENALTY = "it has no penalty, and without one nothing bounds how far the optimum is"
#: Why other linear models of scikit-learn cannot be certified.
_REASONS = {
    "LinearRegression": f"{_NO_PENALTY}; fit a Ridge with a small alpha",
    "SVC": "it is a machine of kernels, even a linear one; fit LinearSVC(loss='hinge')",
    "SVR": "it is a machine of kernels, even a linear one; fit LinearSVR",
    "BaseDecisionTree": "it is no linear model",
    "BaseForest": "it is no linear model",
    "BaseGradientBoosting": "it is no linear model",
    "BaseHistGradientBoosting": "it is no linear model",
    "Perceptron": "it stops at any separating plane, and minimises nothing that has one optimum",
    "PassiveAggressiveClassifier": "it minimises a new objective at every step",
    "PassiveAggressiveRegressor": "it minimises a new objective at every step",
    "SGDOneClassSVM": "one-class problems are not solved here",
    "PoissonRegressor": _GLM,
    "GammaRegressor": _GLM,
    "TweedieRegressor": _GLM,
    "MultiTaskElasticNet": "its penalty is on groups of coefficients",
    "MultiTaskLasso": "its penalty is on groups of coefficients",
    "Lars": "its points are steps of a path, minimisers of nothing that it names",
    "OrthogonalMatchingPursuit": "it chooses features one by one, which is no convex problem",
    "BayesianRidge": "it is Ridge(alpha=model.lambda_ / model.alpha_): certify that",
    "ARDRegression": "each coefficient has a strength of its own: pass them to certify as "
    "penalty_factors=model.lambda_",
    "RANSACRegressor": "it fits a part of the rows; certify its estimator_ on those",
    "TheilSenRegressor": "a median of many fits minimises no objective that is known here",
    "CalibratedClassifierCV": "certify the models in its calibrated_classifiers_",
}
