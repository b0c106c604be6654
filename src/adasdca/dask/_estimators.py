"""The estimators for collections of Dask; a fitted one is a local model."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from adasdca.dask._blocks import Blocks, is_collection
from adasdca.dask._solve import Rows, find_client, make_task, run
from adasdca.dask._team import DaskTeam
from adasdca.dask._worker import MOST_LABELS
from adasdca.duality.error_bounds import Region
from adasdca.errors import InputError
from adasdca.estimators import _classifier, _regressor
from adasdca.estimators._labels import class_factors
from adasdca.estimators._progress import monitored
from adasdca.estimators._scores import _gives_probabilities
from adasdca.multinomial.part import ClassTask
from adasdca.multinomial.parts import PartedMultinomial
from adasdca.multinomial.solver import solve_posed

Array = NDArray[np.float64]


class _OnWorkers:
    """What both share: fits on workers, and predictions block by block."""

    def _lazily(self, name: str, X: Any) -> Any:
        """Return what a method says of a collection, not computed yet; of all else, at once."""
        method = getattr(super(), name)
        if not is_collection(X):
            return method(X)
        if hasattr(X, "map_partitions") and hasattr(X, "divisions"):
            empty = np.asarray(method(X._meta.reindex([0], fill_value=0.0)))
            return X.map_partitions(method, meta=empty[:0])
        if isinstance(X, (list, tuple)):
            import dask

            return [dask.delayed(method)(block) for block in X]
        whole = X.rechunk({1: -1})
        like = np.asarray(method(np.zeros((1, whole.shape[1]))))[:0]
        if like.ndim == 1:
            return whole.map_blocks(method, drop_axis=1, dtype=like.dtype, meta=like)
        chunks = (whole.chunks[0], (like.shape[1],))
        return whole.map_blocks(method, chunks=chunks, dtype=like.dtype, meta=like)

    def predict(self, X: Any) -> Any:
        """Return the predictions; lazily for collections."""
        return self._lazily("predict", X)

    def _gathered(self, X: Any, y: Any, weight: Any, client: Any) -> tuple[DaskTeam, Rows]:
        """Check the parameters, and put the rows together on workers."""
        model: Any = self
        model._validate_params()
        blocks = Blocks.of(X, y, weight)
        team = DaskTeam(find_client(client), blocks)
        rows = Rows.of(team)
        model.n_features_in_ = rows.d
        if blocks.names is not None:
            model.feature_names_in_ = np.array(blocks.names, dtype=object)
        return team, rows

    def _fit_on_workers(self, team: DaskTeam, tasks: list[Any], names: list[str]) -> None:
        """Fit one model for each task and take the solutions over."""
        model: Any = self
        start = time.perf_counter()
        solutions = []
        with monitored(model, names, None, None) as monitor:
            for k, task in enumerate(tasks):
                left = None
                if model.max_time is not None:
                    left = max(0.0, model.max_time - (time.perf_counter() - start))
                solutions.append(
                    run(
                        team,
                        task,
                        time.perf_counter(),
                        False,
                        method=model.method,
                        tol=model.tol,
                        max_epochs=model.max_iter,
                        max_time=left,
                        random_state=model.random_state,
                        warm_start=None,
                        callback=monitor.of(k),
                    )
                )
        radius = np.array([s.radius for s in solutions])
        # Without a pass over the rows nothing bounds an intercept that is not penalised.
        slack = np.full_like(radius, np.inf) if model.fit_intercept else np.zeros_like(radius)
        model._region = Region(radius, slack, None)
        model.coef_ = np.array([s.coef for s in solutions])
        model.intercept_ = np.array([s.intercept for s in solutions])
        model._adopt(solutions, None)
        model._conclude(solutions, names, monitor)

    def _task(self, rows: Rows, **more: Any) -> Any:
        model: Any = self
        if model.intercept_scaling is not None or model.warm_start or model.device is not None:
            raise ValueError(
                f"intercept_scaling = {model.intercept_scaling!r}, warm_start = "
                f"{model.warm_start!r}, device = {model.device!r}: none of them is there for rows "
                "on workers; leave them out."
            )
        return make_task(
            rows,
            loss=model._loss(),
            lam=model._lam(rows.total(more.get("factors"))),
            l1_ratio=model.l1_ratio,
            bounds=model._bounds(),
            penalty_factors=model.penalty_factors,
            fit_intercept=model.fit_intercept,
            **more,
        )


class AdaSDCAClassifier(_OnWorkers, _classifier.AdaSDCAClassifier):
    """`adasdca.AdaSDCAClassifier` for collections of Dask.

    Parameters and attributes are the same. The dual variables stay on the workers: `dual_coef_` is
    empty. Predictions of collections are lazy; of arrays they need no cluster.
    """

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, client: Any = None
    ) -> AdaSDCAClassifier:
        """Fit the model; X, y and the weights are collections of Dask with the same blocks."""
        if not is_collection(X):
            super().fit(X, y, sample_weight)
            return self
        team, rows = self._gathered(X, y, sample_weight, client)
        if rows.labels is None:
            raise InputError(f"y holds more than {MOST_LABELS} classes; a classifier needs labels.")
        classes = np.array(sorted(rows.labels))
        mass = np.array([rows.labels[label] for label in classes.tolist()])
        factor, factors = class_factors(self, classes, mass), None
        if factor is not None:
            factors = dict(zip(classes.tolist(), factor.tolist(), strict=True))
        self.classes_, self._states = classes, None
        self._joint = len(classes) > 2 and self._multinomial()
        if self._joint:
            self._fit_jointly(team, rows, factors)
            return self
        positives = classes[1:].tolist() if len(classes) == 2 else classes.tolist()
        names = [""] if len(classes) == 2 else [f" class {label!r}" for label in positives]
        tasks = [self._task(rows, positive=label, factors=factors) for label in positives]
        self._fit_on_workers(team, tasks, names)
        return self

    def _fit_jointly(self, team: DaskTeam, rows: Rows, factors: dict[Any, float] | None) -> None:
        """Fit a multinomial model."""
        model: Any = self
        whole = self._task(rows, factors=factors, positive=self.classes_[0]).problem
        labels = self.classes_.tolist()
        task = ClassTask(labels, whole.lam, whole.total, whole.fit_intercept, factors)
        shape = len(labels), rows.d

        def posed() -> PartedMultinomial:
            team.begin(task)
            return PartedMultinomial(
                team, rows.d, len(labels), task.lam, task.whole, task.fit_intercept
            )

        with monitored(model, [""], None, None) as monitor:
            solution = solve_posed(
                posed,
                shape,
                0,
                task.lam,
                tol=self.tol,
                max_epochs=self.max_iter,
                max_time=self.max_time,
                warm_start=None,
                callback=team.telling(monitor.of(0)),
                start=time.perf_counter(),
            )
        self.coef_, self.intercept_ = solution.coef, solution.intercept
        # Without a pass over the rows nothing bounds an intercept that is not penalised.
        slack = np.full(len(labels), np.inf if self.fit_intercept else 0.0)
        self._region = Region(np.full(len(labels), solution.radius / np.sqrt(2.0)), slack)
        self._adopt([solution], None)
        self._conclude([solution], [""], monitor)

    def decision_function(self, X: Any) -> Any:
        """Return the scores; lazily for collections."""
        return self._lazily("decision_function", X)

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes; lazily for collections."""
        return self._lazily("predict_proba", X)

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities; lazily for collections."""
        return self._lazily("predict_log_proba", X)

    def certified_margin(self, X: Any) -> Any:
        """Return how safe each prediction is; lazily for collections."""
        return self._lazily("certified_margin", X)


class AdaSDCARegressor(_OnWorkers, _regressor.AdaSDCARegressor):
    """`adasdca.AdaSDCARegressor` for collections of Dask, with one target.

    Parameters and attributes are the same. The dual variables stay on the workers: `dual_coef_` is
    empty. Predictions of collections are lazy; of arrays they need no cluster.
    """

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, client: Any = None
    ) -> AdaSDCARegressor:
        """Fit the model; X, y and the weights are collections of Dask with the same blocks."""
        if not is_collection(X):
            super().fit(X, y, sample_weight)
            return self
        team, rows = self._gathered(X, y, sample_weight, client)
        self._fit_on_workers(team, [self._task(rows)], [""])
        self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])
        self.dual_coef_ = self.dual_coef_[0]
        return self

    def certified_error(self, X: Any) -> Any:
        """Return a bound on the error of each prediction; lazily for collections."""
        return self._lazily("certified_error", X)
