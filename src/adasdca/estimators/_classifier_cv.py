"""`AdaSDCAClassifierCV`: C chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from adasdca.estimators._classifier import AdaSDCAClassifier
from adasdca.estimators._cv import Search, constraints_of
from adasdca.estimators._labels import encoded, explaining_kinds
from adasdca.methods import Method
from adasdca.models._certify import balance
from adasdca.problem.losses import Loss
from adasdca.solution import Record


class AdaSDCAClassifierCV(Search, AdaSDCAClassifier):
    """Linear classifier with C, and l1_ratio, chosen by cross-validation.

    In each fold C goes from small to large, and each solve starts from a prediction made from the
    solutions before it. Then all rows are fitted with the C and l1_ratio of the best mean score;
    of equal scores the smallest C, which is the strongest regularisation, is taken. The objective
    is that of `AdaSDCAClassifier`.

    Parameters
    ----------
    Cs : int or array-like, default=10
        The values of C, or how many of them on a logarithmic scale between 1e-4 and 1e4.
    l1_ratios : array-like, default=(0.0,)
        The values of l1_ratio.
    cv : int, cross-validation generator or iterable, default=None
        The folds; None: 5 folds, stratified.
    scoring : str or callable, default=None
        The score; None: the accuracy. Sample weights are passed on to scores that take them.
    loss, positive, bounds, penalty_factors, fit_intercept, intercept_scaling, multi_class, \
            class_weight, method, tol, max_iter, random_state, gamma
        As in `AdaSDCAClassifier`.
    max_time : float, default=None
        Time limit in seconds for the solves of one fit; a fold has a fit for each C.
    n_jobs : int, default=None
        Folds that are worked on at the same time, in threads.
    callback : callable, default=None
        Called with a `Record` after each survey of the final fit; returning True stops it.
    verbose : int, default=0
        1: a line a survey of the final fit, and a line a fold and C, through the logger
        ``adasdca``; 2: progress bars for the final fit (needs rich).
    device : {"cuda"} or None, default=None
        ``"cuda"``: all solves are made on a CUDA device, to which X is copied once, one fold after
        the other.

    Attributes
    ----------
    C_, l1_ratio_, best_score_ : float
        The choice, and its mean score.
    Cs_ : (n_cs,) array
        The values of C, from small to large.
    l1_ratios_ : (n_l1_ratios,) array
        The values of l1_ratio.
    scores_ : (n_folds, n_l1_ratios, n_cs) array
        The scores.
    coefs_paths_ : (n_folds, n_l1_ratios, n_cs, n_models, n_features) array
        The coefficients along C; absent if some fold lacked a class.
    coef_, intercept_, dual_coef_, dual_gap_, radius_, certificate_, status_, converged_, n_iter_, \
            history_
        Of the final fit, as in `AdaSDCAClassifier`.

    See Also
    --------
    AdaSDCAClassifier : the same for a given C.
    adasdca.path : solutions along C.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from adasdca import AdaSDCAClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> model = AdaSDCAClassifierCV(Cs=[0.01, 1.0, 100.0], scoring="neg_log_loss", random_state=0)
    >>> model.fit(X, y).C_
    1.0
    """

    _model: ClassVar[type[Any]] = AdaSDCAClassifier

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = constraints_of(AdaSDCAClassifier)

    def __init__(
        self,
        *,
        Cs: Any = 10,
        l1_ratios: Any = (0.0,),
        cv: Any = None,
        scoring: Any = None,
        loss: str | Loss = "logistic",
        positive: bool = False,
        bounds: Any = None,
        penalty_factors: Any = None,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        multi_class: str = "auto",
        class_weight: Any = None,
        method: str | Method = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        max_time: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        callback: Callable[[Record], Any] | None = None,
        verbose: int = 0,
        gamma: float = 1.0,
        device: str | None = None,
    ) -> None:
        self._keep(locals())

    def _to_split(self, X: Any, y: Any) -> tuple[Any, Any]:
        X, y = self._checked(X, y)
        with explaining_kinds(y):
            check_classification_targets(y)
        return X, y

    def _changes(self, y: Any, weight: Any) -> dict[str, Any]:
        if self.class_weight != "balanced":
            return {}
        # Balanced over all rows, not anew in every fold: the folds then score one and the same
        # objective, that of the final fit.
        classes, codes = encoded(y)
        factor = balance(np.bincount(codes, weights=weight))
        return {"class_weight": dict(zip(classes.tolist(), factor.tolist(), strict=True))}
