"""Cross-validation over C (and l1_ratio), predicted along C; what both CV estimators share."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass
from numbers import Integral
from threading import Lock
from typing import Any, ClassVar, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import _fit_context, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import d2_pinball_score, get_scorer, get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metadata_routing import _routing_enabled as routing_enabled

from adasdca.engine.interruption import interruption
from adasdca.errors import InputError
from adasdca.estimators._device import adopt_kind, device_of, rows_to_split, stand_in, taken
from adasdca.estimators._progress import logger, with_callbacks
from adasdca.estimators._solves import all_or_nothing
from adasdca.methods import get_method
from adasdca.paths import check_grid
from adasdca.predictor import POWERS, Forecast, Track
from adasdca.problem.data import CheckedRows, check_rows
from adasdca.problem.device_rows import is_on_device, to_numpy
from adasdca.problem.losses import Quantile

Array = NDArray[np.float64]
S = TypeVar("S", bound="Search")

#: Scores this close (relative) to the best count as equal to it; the strongest regularisation wins.
TIE = 1e-10


class Fold:
    """The rows of a fold, copied and checked once, and dropped after the last path."""

    def __init__(self, fold: tuple[Any, Any], paths: int) -> None:
        self.train, self.test = fold
        self._left, self._lock = paths, Lock()
        self._parts: tuple[Any, Any, CheckedRows | None] | None = None

    def rows(self, X: Any) -> tuple[Any, Any, CheckedRows | None]:
        """Return the rows to fit and to score, and the first ones checked, if they are here."""
        with self._lock:
            if self._parts is None:
                chosen = taken(X, self.train)
                checked = None if is_on_device(X) else CheckedRows(check_rows(chosen))
                self._parts = chosen, taken(X, self.test), checked
            found, self._left = self._parts, self._left - 1
            if self._left == 0:
                self._parts = None
            return found


@dataclass(frozen=True)
class FoldPath:
    """The fits along C on the training rows of one fold; `short` has gaps above the tolerance."""

    scores: list[float]
    coefs: list[Array]
    short: list[float]


def constraints_of(model: type[Any]) -> dict[str, list[Any]]:
    """Return the constraints on the parameters of a search with that model."""
    own = model._parameter_constraints.items()
    return {name: kinds for name, kinds in own if name not in ("C", "l1_ratio", "warm_start")} | {
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "l1_ratios": ["array-like"],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
    }


class Search:
    """Chooses C and l1_ratio by cross-validation, then fits all rows with them."""

    _model: ClassVar[type[Any]]

    Cs: Any
    l1_ratios: Any
    cv: Any
    scoring: Any
    n_jobs: int | None
    tol: float
    verbose: int
    coef_: Any
    intercept_: Any
    get_params: Any
    _weights: Any
    _init_callback_context: Any

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self: S, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> S:
        """Choose C and l1_ratio, then fit all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), or of numbers (n_samples, n_targets)
            Labels or targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, 0 or more, for the fits and for the scores.
        **params : dict
            ``groups``, for the splitter `cv`; with scikit-learn's metadata routing, whatever the
            splitter has requested.

        Returns
        -------
        self
        """
        given = X
        X, y = self._to_split(X, y)
        weight = self._weights(sample_weight, X)
        with config_context(array_api_dispatch=False):  # scores are of NumPy's arrays
            self._search_and_fit(X, y, weight, params, **self._changes(y, weight))
        adopt_kind(self, given)
        return self

    def _to_split(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return rows and targets, checked."""
        raise NotImplementedError

    def _changes(self, y: Any, weight: Any) -> dict[str, Any]:
        """Return what of the parameters is to be otherwise, in all fits."""
        return {}

    def _grid(self) -> tuple[Array, Array]:
        cs, ratios = check_grid(self.Cs), np.asarray(self.l1_ratios, dtype=np.float64)
        if ratios.ndim != 1 or not len(ratios) or not ((ratios >= 0) & (ratios <= 1)).all():
            raise InputError(
                f"l1_ratios = {self.l1_ratios!r} is not allowed; pass numbers, 0 <= l1_ratio <= 1."
            )
        return cs, ratios

    def _candidate(self, **changes: Any) -> Any:
        """Return a model without search, with this one's parameters and those changes."""
        names = self._model._get_param_names()
        shared = {k: v for k, v in self.get_params(deep=False).items() if k in names}
        return self._model(**{**shared, **changes})

    def get_metadata_routing(self) -> Any:
        """Return the routing of metadata: weights to the fits, the rest to splitter and scorer.

        Returns
        -------
        MetadataRouter
        """
        folds = check_cv(self.cv, classifier=is_classifier(self))
        router = (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(splitter=folds, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        )
        if self.scoring is not None:
            scorer = get_scorer(self.scoring) if isinstance(self.scoring, str) else self.scoring
            mapping = MethodMapping().add(caller="fit", callee="score")
            router.add(scorer=scorer, method_mapping=mapping)
        return router

    def _split(self, X: Any, y: Any, params: dict[str, Any]) -> list[Any]:
        """Return the folds; `groups`, and what else is routed to the splitter, goes there."""
        if params and routing_enabled():
            params = process_routing(self, "fit", **params).splitter.split
        else:
            unknown = params.keys() - {"groups"}
            if unknown:
                raise TypeError(
                    f"fit got the unexpected argument {min(unknown)!r}; pass groups, or enable "
                    "sklearn.set_config(enable_metadata_routing=True) and request it."
                )
        folds = check_cv(self.cv, y, classifier=is_classifier(self))
        return list(folds.split(X, y, **{k: v for k, v in params.items() if v is not None}))

    def _search_and_fit(
        self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any], **changes: Any
    ) -> None:
        cs, ratios = self._grid()
        device = device_of(self, X)
        if device is not None:
            X, changes = rows_to_split(self, X), {**changes, "device": device}
        folds = [Fold(fold, len(ratios)) for fold in self._split(stand_in(X), y, params)]
        jobs = [(fold, ratio) for fold in folds for ratio in ratios.tolist()]
        context = None
        if getattr(self, "_skl_callbacks", None):
            context = self._init_callback_context(
                max_subtasks=len(jobs) + 1, sequential_subtasks=False
            )
            context.call_on_fit_task_begin(estimator=self, X=X, y=y)

        def path_of(k: int) -> FoldPath | None:
            """Fit along C; None if Ctrl-C came before the end."""
            fold, ratio = jobs[k]
            try:
                around.check()
                with around.joined():
                    return self._fit_path(X, y, sample_weight, fold, ratio, cs, k, context, changes)
            except KeyboardInterrupt:
                around.wish()
                return None

        with interruption() as around:
            # Threads share X, and the wish to stop; the kernels run without the GIL.
            workers = Parallel(self.n_jobs if device is None else 1, require="sharedmem")
            found = list(workers(delayed(path_of)(k) for k in range(len(jobs))))
            around.check()
        paths = [one for one in found if one is not None]
        shape = (len(folds), len(ratios), len(cs))
        self.Cs_, self.l1_ratios_ = cs, ratios
        self.scores_ = np.array([one.scores for one in paths]).reshape(shape)
        same = {c.shape for one in paths for c in one.coefs}
        if len(same) == 1:  # a fold may lack a class
            self.coefs_paths_ = np.array([w.coefs for w in paths]).reshape(*shape, *same.pop())
        mean = self.scores_.mean(axis=0)
        best = mean.max()
        ratio_index, c_index = np.nonzero(mean >= best - TIE * max(1.0, abs(best)))
        pick = int(np.argmin(c_index))
        self.C_ = float(cs[c_index[pick]])
        self.l1_ratio_ = float(ratios[ratio_index[pick]])
        self.best_score_ = float(mean[ratio_index[pick], c_index[pick]])
        self._warn_of_unfinished([gap for one in paths for gap in one.short], len(jobs) * len(cs))
        final = self._candidate(**changes, C=self.C_, l1_ratio=self.l1_ratio_)
        try:
            _fit_under(context, len(jobs), "refit", self, final, X, y, sample_weight)
        except KeyboardInterrupt:
            if not hasattr(final, "certificate_"):
                raise
        given = final.get_params(deep=False)
        for name, value in vars(final).items():
            if name not in given and name != "_skl_callbacks":
                setattr(self, name, value)
        if context is not None:
            context.call_on_fit_task_end(
                estimator=self,
                X=X,
                y=y,
                reconstruction_attributes={"coef_": self.coef_, "intercept_": self.intercept_},
            )

    def _fit_path(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        fold: Fold,
        ratio: float,
        cs: Array,
        k: int,
        context: Any,
        changes: dict[str, Any],
    ) -> FoldPath:
        """Fit a fold's training rows for each C, from the last solution; score its test rows."""
        train, test = fold.train, fold.test
        X_train, X_test, checked = fold.rows(X)
        y_train, y_test = y[train], y[test]
        weight_train = weight_test = None
        if sample_weight is not None:
            weight_train, weight_test = sample_weight[train], sample_weight[test]
        scores: list[float] = []
        coefs: list[Array] = []
        short: list[float] = []
        model = self._candidate(
            **changes, l1_ratio=ratio, warm_start=True, n_jobs=1, callback=None, verbose=0
        )
        model._quiet, model._checked_rows = True, checked
        model._beside = effective_n_jobs(self.n_jobs)
        # Scores by name ask for no bounds of errors.
        model._plain_scores = not callable(self.scoring)
        if context is not None:
            context = context.subcontext(task_name="fold", task_id=k, max_subtasks=len(cs))
            context.call_on_fit_task_begin(estimator=self)
        outlook = WarmStarts(model)
        for c in cs.tolist():
            model.C = c
            outlook.prepare(c)
            _fit_under(context, None, "C", self, model, X_train, y_train, weight_train)
            outlook.learn(c, X_train.shape)
            if not model.converged_:
                short.append(max(c.relative_gap for c in np.ravel(model.certificate_)))
            scores.append(_score(self.scoring, model, X_test, y_test, weight_test))
            coefs.append(np.atleast_2d(model.coef_))
            if self.verbose:
                logger.info(
                    "%s: fold %d, l1_ratio %g, C %g: score %.6g after %d epochs",
                    type(self).__name__,
                    k,
                    ratio,
                    c,
                    scores[-1],
                    model.n_iter_,
                )
        if context is not None:
            context.call_on_fit_task_end(estimator=self)
        return FoldPath(scores, coefs, short)

    def _warn_of_unfinished(self, short: list[float], total: int) -> None:
        if short:
            warnings.warn(
                f"{len(short)} of {total} fits along C did not reach tol={self.tol:.1e}; their "
                "scores are those of the points reached, whose relative duality gaps are up to "
                f"{max(short):.1e}. Raise max_iter or tol, or leave out the "
                "largest values of C.",
                ConvergenceWarning,
                stacklevel=6,
            )


class WarmStarts:
    """Predicts where the fits along C begin.

    Parameters
    ----------
    model : LinearModel
        The model, fitted once more for each C, with ``warm_start=True``.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._tracks: list[Track] = []
        self._joint: Forecast | None = None

    def prepare(self, c: float) -> None:
        """Leave the model where the next fit is to begin."""
        if self._tracks:
            self._model._states = [track.start(1.0 / c) for track in self._tracks]
        if self._joint is not None:
            coef, intercept = self._model._states
            point = self._joint.guess(1.0 / c)
            assert point is not None
            self._model._states = (
                point[: coef.size].reshape(coef.shape),
                point[coef.size :].reshape(intercept.shape),
            )

    def learn(self, c: float, shape: tuple[int, int]) -> None:
        """Take note of a fit."""
        model = self._model
        if getattr(model, "_joint", False):
            coef, intercept = model._states
            self._joint = self._joint or Forecast(POWERS, len(intercept))
            self._joint.learn(1.0 / c, np.append(coef, intercept))
            return
        if not self._tracks:
            curvature = None
            if model.l1_ratio == 0 and not model.positive:
                factors = model.penalty_factors
                curvature = 1.0 if factors is None else np.asarray(factors, dtype=np.float64)
            loss, method = model._loss(), get_method(model.method)
            self._tracks = [Track(loss, shape, curvature, method) for _ in model._states]
            if len(self._tracks) == 1:
                # What is known of the curvature belongs to one vector of targets.
                model.set_params(method=self._tracks[0].method)
        found = zip(np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_), strict=True)
        for track, state, (coef, intercept) in zip(self._tracks, model._states, found, strict=True):
            track.learn(1.0 / c, coef, float(intercept), state)


def _fit_under(
    context: Any,
    task_id: int | None,
    name: str,
    owner: Any,
    model: Any,
    X: Any,
    y: Any,
    weight: Any,
) -> None:
    """Fit a model, as a task of its owner where scikit-learn's callbacks are in use."""
    if context is None:
        model.fit(X, y, sample_weight=weight)
        return
    task = context.subcontext(task_name=name, task_id=task_id)
    with task.propagate_callback_context(model):
        # Callbacks that go down to the model hear of this task from there.
        task.call_on_fit_task_begin(estimator=owner, X=X, y=y)
        model.fit(X, y, sample_weight=weight)
        task.call_on_fit_task_end(estimator=owner, X=X, y=y)


def accuracy(y: Any, found: Any, weight: Array | None) -> float:
    """Return scikit-learn's accuracy, whose checks take longer than a small fit."""
    return float(np.average(found == y, weights=weight))


def determination(y: Any, found: Any, weight: Array | None) -> float:
    """Return scikit-learn's R², the mean of those of all targets, likewise."""
    rest = np.average((y - found) ** 2, axis=0, weights=weight)
    spread = np.average((y - np.average(y, axis=0, weights=weight)) ** 2, axis=0, weights=weight)
    share = np.where(spread > 0, rest / np.where(spread > 0, spread, 1.0), rest > 0)
    return float(1.0 - share.mean())


def own_score(estimator: Any) -> str:
    """Return the name of the default score.

    R² asks for means: it would choose the model of a quantile that is nearest to the mean.
    """
    if is_classifier(estimator):
        return "accuracy"
    return "D² of the quantile loss" if isinstance(estimator._loss(), Quantile) else "R²"


def _score(scoring: Any, model: Any, X: Any, y: Any, weight: Any) -> float:
    """Score a model, with the sample weights if there are any and the score takes them."""
    if scoring is None:
        loss = model._loss()
        if isinstance(loss, Quantile):
            found = to_numpy(model.predict(X))
            return float(d2_pinball_score(y, found, sample_weight=weight, alpha=loss.quantile))
        judge = accuracy if is_classifier(model) else determination
        if len(y) > 1:  # scikit-learn has something to say about one row
            return judge(y, to_numpy(model.predict(X)), weight)
        return float(model.score(X, y, sample_weight=weight))
    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    function = getattr(scorer, "_score_func", scorer)
    if weight is None or "sample_weight" not in inspect.signature(function).parameters:
        return float(scorer(model, X, y))
    return float(scorer(model, X, y, sample_weight=weight))
