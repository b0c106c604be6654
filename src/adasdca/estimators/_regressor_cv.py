"""`AdaSDCARegressorCV`: C chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from adasdca.estimators._cv import Search, constraints_of
from adasdca.estimators._regressor import AdaSDCARegressor
from adasdca.methods import Method
from adasdca.problem.losses import Loss
from adasdca.solution import Record


class AdaSDCARegressorCV(Search, AdaSDCARegressor):
    """Linear regression with C, and l1_ratio, chosen by cross-validation.

    In each fold C goes from small to large, and each solve starts from a prediction made from the
    solutions before it. Then all rows are fitted with the C and l1_ratio of the best mean score;
    of equal scores the smallest C, which is the strongest regularisation, is taken. The objective
    is that of `AdaSDCARegressor`.

    Parameters
    ----------
    Cs : int or array-like, default=10
        The values of C, or how many of them on a logarithmic scale between 1e-4 and 1e4.
    l1_ratios : array-like, default=(0.0,)
        The values of l1_ratio.
    cv : int, cross-validation generator or iterable, default=None
        The folds; None: 5 folds.
    scoring : str or callable, default=None
        The score; None: R², and for quantiles D² of their loss (scikit-learn's d2_pinball_score).
        Sample weights are passed on to scores that take them.
    loss, positive, bounds, penalty_factors, fit_intercept, intercept_scaling, method, tol, \
            max_iter, random_state, gamma, epsilon, quantile, delta
        As in `AdaSDCARegressor`.
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
    coefs_paths_ : (n_folds, n_l1_ratios, n_cs, n_targets, n_features) array
        The coefficients along C.
    coef_, intercept_, dual_coef_, dual_gap_, radius_, certificate_, status_, converged_, n_iter_, \
            history_
        Of the final fit, as in `AdaSDCARegressor`.

    See Also
    --------
    AdaSDCARegressor : the same for a given C.
    adasdca.path : solutions along C.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from adasdca import AdaSDCARegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = AdaSDCARegressorCV(Cs=[0.1, 1.0, 10.0, 100.0], random_state=0).fit(X, y)
    >>> model.C_
    100.0
    """

    _model: ClassVar[type[Any]] = AdaSDCARegressor

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = constraints_of(AdaSDCARegressor)

    def __init__(
        self,
        *,
        Cs: Any = 10,
        l1_ratios: Any = (0.0,),
        cv: Any = None,
        scoring: Any = None,
        loss: str | Loss = "squared",
        positive: bool = False,
        bounds: Any = None,
        penalty_factors: Any = None,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        method: str | Method = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        max_time: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        callback: Callable[[Record], Any] | None = None,
        verbose: int = 0,
        gamma: float = 1.0,
        epsilon: float = 0.1,
        quantile: float = 0.5,
        delta: float = 1.35,
        device: str | None = None,
    ) -> None:
        self._keep(locals())

    def _to_split(self, X: Any, y: Any) -> tuple[Any, Any]:
        X, y = self._checked(X, y, multi_output=True, y_numeric=True)
        return X, np.asarray(y, dtype=np.float64)
