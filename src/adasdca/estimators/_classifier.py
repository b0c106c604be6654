"""`AdaSDCAClassifier`: linear classification with a certificate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions

from adasdca.duality.error_bounds import Region
from adasdca.errors import Argument, InputError
from adasdca.estimators._base import LinearModel
from adasdca.estimators._device import (
    adopt_kind,
    device_of,
    products_with,
    read_at_once,
    rows_to_solve,
)
from adasdca.estimators._labels import OneAgainstOthers, class_weights, doubt_classes, encoded
from adasdca.estimators._progress import monitored, with_callbacks
from adasdca.estimators._scores import LinearScores
from adasdca.estimators._solves import all_or_nothing, region_or_unknown, threads_of
from adasdca.methods import Auto, Method, get_method
from adasdca.multinomial.solver import solve_multinomial
from adasdca.problem.data import CheckedRows, check_rows
from adasdca.problem.losses import Logistic, Loss
from adasdca.solution import Record

Array = NDArray[np.float64]


class AdaSDCAClassifier(LinearScores, LinearModel):
    """Linear classifier, solved to a certified accuracy.

    Minimises, for labels ±1,

        (1/N) Σ_i c_i φ(x_i·w + b; y_i) + (1/(C·N)) ((1 − l1_ratio)/2 ‖w‖² + l1_ratio ‖w‖₁)

    where c_i are the sample weights (times class weights) and N is their sum: the objective of
    LIBLINEAR, LinearSVC and LogisticRegression with the same C.

    Parameters
    ----------
    loss : {"logistic", "hinge", "squared_hinge", "smoothed_hinge", "modified_huber"} or Loss, \
            default="logistic"
        The loss φ, by name or as an object of `adasdca.losses`.
    C : float, default=1.0
        Inverse strength of the regularisation, as in LIBLINEAR.
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
        others, of a constant feature of that value, as in LIBLINEAR and LinearSVC; X is then
        copied.
    multi_class : {"auto", "ovr", "multinomial"}, default="auto"
        With more than two classes: a model for each class against the rest, or, for the logistic
        loss with l1_ratio=0, without bounds and penalty_factors, one multinomial model.
        ``"auto"`` is multinomial where that is possible.
    class_weight : dict or "balanced", default=None
        Weights of the classes, multiplied with the sample weights; ``"balanced"``: inverse to the
        total weight of each class.
    method : str or method object, default="auto"
        How to solve; see `adasdca.methods`. A multinomial model has Newton's method only, which is
        what "auto" takes for it.
    tol : float, default=1e-4
        Stop when the duality gap is at most tol times the objective. With 0, go on to the limits of
        double precision.
    max_iter : int, default=1000
        Largest number of epochs (of a multinomial model: of Newton steps).
    max_time : float, default=None
        Time limit of a fit in seconds.
    warm_start : bool, default=False
        Whether fit begins at the solution of the last fit. Rows may have been appended since.
    random_state : int, RandomState or None, default=None
        Seed of the order of the rows. The solution depends on it only within `tol`.
    n_jobs : int, default=None
        Classes solved at the same time, in threads that share X. A solve of
        many rows uses several threads in any case, as many as OMP_NUM_THREADS, joblib and
        threadpoolctl allow.
    callback : callable, default=None
        Called with a `Record` after each survey; returning True stops the fit.
    verbose : int, default=0
        1: a line a survey through the logger ``adasdca``; 2: progress bars (needs rich).
    gamma : float, default=1.0
        Width of the parabola by which ``"smoothed_hinge"`` replaces the corner of the hinge.
    device : {"cuda"} or None, default=None
        ``"cuda"``: the solves of fit are made on a CUDA device, to which X is copied once, unless
        it is there. Predictions are made where their rows are.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels.
    coef_ : (1, n_features) or (n_classes, n_features) array
        Coefficients.
    intercept_ : (1,) or (n_classes,) array
        Intercepts.
    dual_coef_ : (1, n_samples) or (n_classes, n_samples) array
        Dual variables α, sample weights included.
    dual_gap_ : float or (n_classes,) array
        Duality gap: how far the objective can be above its minimum; an array with one-versus-rest.
    radius_ : float or (n_classes,) array
        How far the coefficients can be from the exact ones (Euclidean).
    certificate_ : Certificate or list of Certificate
        Objective, lower bound, gap and radius.
    status_ : Status or list of Status
        How the solve ended.
    converged_ : bool
        Whether the gap reached tol.
    n_iter_ : int
        Epochs (and Newton steps) done, the most over the classes.
    history_ : History or list of History
        The surveys of the solve.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : (n_features_in_,) array
        Names of the features, if X had names.

    See Also
    --------
    AdaSDCAClassifierCV : the same with C chosen by cross-validation.
    adasdca.solve : the function behind it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from adasdca import AdaSDCAClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), AdaSDCAClassifier(tol=1e-6, random_state=0))
    >>> round(model.fit(X, y).score(X, y), 2)
    0.99
    >>> print(model[-1].certificate_)  # doctest: +ELLIPSIS
    The objective is 0.06636...; no model has less than 0.0663...
    """

    _kind: ClassVar[str] = "classification"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearModel._parameter_constraints,
        "loss": [str, Loss],
        "multi_class": [StrOptions({"auto", "ovr", "multinomial"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        *,
        loss: str | Loss = "logistic",
        C: float = 1.0,
        l1_ratio: float = 0.0,
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
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        callback: Callable[[Record], Any] | None = None,
        verbose: int = 0,
        gamma: float = 1.0,
        device: str | None = None,
    ) -> None:
        self._keep(locals())

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AdaSDCAClassifier:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            C-ordered arrays and CSR matrices of float32 or float64 are used without a copy.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, 0 or more; an integer weight is the same as a repeated row.

        Returns
        -------
        self
        """
        began, given = time.perf_counter(), X
        X, y = self._checked(X, y, not read_at_once(self))
        classes, codes = encoded(y)
        if len(classes) > 2 and not getattr(self, "_quiet", False):
            doubt_classes(self, classes, codes)
        weight = class_weights(self, classes, codes, self._weights(sample_weight, X))
        count = len(classes)
        if not np.array_equal(getattr(self, "classes_", []), classes):
            self._states = None  # other classes, other problems: no warm start
        self.classes_ = classes
        self._joint = count > 2 and self._multinomial()
        if self._joint:
            self._fit_multinomial(X, codes, weight, began)
        else:
            targets = OneAgainstOthers(codes, range(1, 2) if count == 2 else range(count))
            names = [""] if count == 2 else [f" class {label!r}" for label in classes.tolist()]
            self._fit_targets(X, y, targets, names, weight, began)
        adopt_kind(self, given)
        return self

    def _multinomial(self) -> bool:
        """Whether more than two classes make one multinomial model."""
        logistic = isinstance(self._loss(), Logistic)
        limited = self.positive or self.bounds is not None
        plain = self.l1_ratio == 0 and not limited and self.penalty_factors is None
        possible = logistic and plain
        if self.multi_class == "multinomial" and not possible:
            raise InputError(
                "multi_class='multinomial' needs loss='logistic', l1_ratio=0, positive=False, "
                f"bounds=None and penalty_factors=None, got loss={self.loss!r}, "
                f"l1_ratio={self.l1_ratio!r}, positive={self.positive!r}, bounds={self.bounds!r}, "
                f"penalty_factors={self.penalty_factors!r}; choose multi_class='ovr' for these."
            )
        joint = possible and self.multi_class != "ovr"
        if joint and not isinstance(get_method(self.method), Auto):
            raise InputError(
                Argument("method", self.method),
                " solves no multinomial model: Newton's method does; choose ",
                Argument("method", "auto"),
                ", or ",
                Argument("multi_class", "ovr"),
                " for a model of each class.",
            ).about("method")
        return joint

    def _fit_multinomial(self, X: Any, codes: Any, weight: Array | None, began: float) -> None:
        limit = self.max_time
        if limit is not None:
            limit = max(0.0, limit - (time.perf_counter() - began))
        constant = self._constant(X)
        rows = rows_to_solve(self, X)
        if constant:
            rows = CheckedRows(check_rows(X, device=True).with_constant(constant))
        free = self.fit_intercept and not constant
        start = getattr(self, "_states", None) if self.warm_start else None
        if start is not None and start[0].shape[1] != X.shape[1] + bool(constant):
            start = None
        with monitored(self, [""], X, codes) as monitor:
            solution = solve_multinomial(
                rows,
                codes,
                n_classes=len(self.classes_),
                lam=self._lam(len(codes) if weight is None else math.fsum(weight)),
                sample_weight=weight,
                fit_intercept=free,
                tol=self.tol,
                max_epochs=self.max_iter,
                max_time=limit,
                warm_start=start,
                callback=monitor.of(0),
                n_threads=threads_of(self),
                backend=device_of(self, X),
            )
            self.coef_, self.intercept_ = solution.coef, solution.intercept
            if constant:
                self.coef_, self.intercept_ = solution.coef[:, :-1], constant * solution.coef[:, -1]
            unknown = np.full(len(solution.coef), np.inf)
            self._region = region_or_unknown(
                lambda: Region.of_multinomial(solution, products_with(rows), free, constant),
                Region(unknown, unknown),
            )
            self._adopt([solution], (solution.coef, solution.intercept))
        self._conclude([solution], [""], monitor)
