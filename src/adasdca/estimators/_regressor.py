"""`AdaSDCARegressor`: linear regression with a certificate."""

from __future__ import annotations

import time
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.utils._param_validation import Interval

from adasdca.estimators._base import LinearModel
from adasdca.estimators._device import adopt_kind, in_kind_of, read_at_once
from adasdca.estimators._input import explaining_text
from adasdca.estimators._progress import with_callbacks
from adasdca.estimators._solves import all_or_nothing
from adasdca.methods import Method
from adasdca.problem.device_rows import to_numpy
from adasdca.problem.losses import Loss
from adasdca.solution import Record

Array = NDArray[np.float64]


class AdaSDCARegressor(MultiOutputMixin, RegressorMixin, SparseCoefMixin, LinearModel):
    """Linear regression, solved to a certified accuracy.

    Minimises

        (1/N) Σ_i c_i φ(x_i·w + b; y_i) + (1/(C·N)) ((1 − l1_ratio)/2 ‖w‖² + l1_ratio ‖w‖₁)

    where c_i are the sample weights and N is their sum. With the squared loss this is Ridge with
    alpha = 1/C, with ``"epsilon_insensitive"`` it is LinearSVR with the same C.

    Parameters
    ----------
    loss : {"squared", "huber", "absolute", "quantile", "epsilon_insensitive", \
            "squared_epsilon_insensitive"} or Loss, default="squared"
        The loss φ, by name or as an object of `adasdca.losses`.
    C : float, default=1.0
        Inverse strength of the regularisation.
    l1_ratio : float, default=0.0
        Share of the L1 term, 0 ≤ l1_ratio ≤ 1; 1 is the lasso.
    positive : bool, default=False
        Whether to keep the coefficients (not the intercept) non-negative.
    bounds : (lower, upper), default=None
        Bounds of the coefficients (not the intercept), each a number, None or an array of
        n_features numbers; ``(0, None)`` is what positive=True says.
    penalty_factors : array-like of shape (n_features,), default=None
        Factors of the penalty, one for each feature; None: all 1. A feature with the factor 0 is
        not penalised, and needs finite bounds on both sides.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    intercept_scaling : float, default=None
        None: the intercept is not penalised. A number: it is the coefficient, penalised like the
        others, of a constant feature of that value, as in LIBLINEAR and LinearSVR; X is then
        copied.
    method : str or method object, default="auto"
        How to solve; see `adasdca.methods`.
    tol : float, default=1e-4
        Stop when the duality gap is at most tol times the objective. With 0, go on to the limits of
        double precision.
    max_iter : int, default=1000
        Largest number of epochs.
    max_time : float, default=None
        Time limit of a fit in seconds.
    warm_start : bool, default=False
        Whether fit begins at the solution of the last fit. Rows may have been appended since.
    random_state : int, RandomState or None, default=None
        Seed of the order of the rows. The solution depends on it only within `tol`.
    n_jobs : int, default=None
        Targets solved at the same time, in threads that share X. A solve of
        many rows uses several threads in any case, as many as OMP_NUM_THREADS, joblib and
        threadpoolctl allow.
    callback : callable, default=None
        Called with a `Record` after each survey; returning True stops the fit.
    verbose : int, default=0
        1: a line a survey through the logger ``adasdca``; 2: progress bars (needs rich).
    gamma : float, default=1.0
        Divisor of the squared loss, (score − y)²/(2·gamma).
    epsilon : float, default=0.1
        Half the width of the zone without loss of the ε-insensitive losses.
    quantile : float, default=0.5
        The quantile that ``"quantile"`` estimates.
    delta : float, default=1.35
        Where ``"huber"`` turns from a parabola into a line, in units of y.
    device : {"cuda"} or None, default=None
        ``"cuda"``: the solves of fit are made on a CUDA device, to which X is copied once, unless
        it is there. Predictions are made where their rows are.

    Attributes
    ----------
    coef_ : (n_features,) or (n_targets, n_features) array
        Coefficients.
    intercept_ : float or (n_targets,) array
        Intercept.
    dual_coef_ : (n_samples,) or (n_targets, n_samples) array
        Dual variables α, sample weights included.
    dual_gap_ : float or (n_targets,) array
        Duality gap: how far the objective can be above its minimum.
    radius_ : float or (n_targets,) array
        How far the coefficients can be from the exact ones (Euclidean).
    certificate_ : Certificate or list of Certificate
        Objective, lower bound, gap and radius.
    status_ : Status or list of Status
        How the solve ended.
    converged_ : bool
        Whether the gap reached tol.
    n_iter_ : int
        Epochs (and Newton steps) done, the most over the targets.
    history_ : History or list of History
        The surveys of the solve.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : (n_features_in_,) array
        Names of the features, if X had names.

    See Also
    --------
    AdaSDCARegressorCV : the same with C chosen by cross-validation.
    adasdca.solve : the function behind it.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from adasdca import AdaSDCARegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = AdaSDCARegressor(loss="quantile", quantile=0.9, C=100.0, random_state=0).fit(X, y)
    >>> round(float((y <= model.predict(X)).mean()), 1)
    0.9
    """

    _kind: ClassVar[str] = "regression"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearModel._parameter_constraints,
        "loss": [str, Loss],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "delta": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        loss: str | Loss = "squared",
        C: float = 1.0,
        l1_ratio: float = 0.0,
        positive: bool = False,
        bounds: Any = None,
        penalty_factors: Any = None,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        method: str | Method = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        max_time: float | None = None,
        warm_start: bool = False,
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

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AdaSDCARegressor:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            C-ordered arrays and CSR matrices of float32 or float64 are used without a copy.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets; each column is fitted on its own.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, 0 or more; an integer weight is the same as a repeated row.

        Returns
        -------
        self
        """
        began, given = time.perf_counter(), X
        X, y = self._checked(X, y, not read_at_once(self), multi_output=True, y_numeric=True)
        with explaining_text(None, y):
            columns = np.ascontiguousarray(np.atleast_2d(np.asarray(y, dtype=np.float64).T))
        names = [f" target {k}" for k in range(len(columns))] if y.ndim > 1 else [""]
        weight = self._weights(sample_weight, X)
        self._fit_targets(X, y, list(columns), names, weight, began)
        if y.ndim == 1:
            self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])
            self.dual_coef_ = self.dual_coef_[0]
        adopt_kind(self, given)
        return self

    def predict(self, X: Any) -> Any:
        """Return the predictions x·w + b.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        (n_samples,) or (n_samples, n_targets) array
        """
        scores = self._scored(X)
        return in_kind_of(scores[:, 0] if np.ndim(self.intercept_) == 0 else scores, X)

    def certified_error(self, X: Any) -> Any:
        """Return a bound on the difference between each prediction and the exact optimum's.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        (n_samples,) or (n_samples, n_targets) array
        """
        b = np.atleast_1d(to_numpy(self.intercept_))
        errors = self._region.errors(self._rows_to_predict(X), self._dense_coef(), b)
        return in_kind_of(errors[:, 0] if np.ndim(self.intercept_) == 0 else errors, X)
