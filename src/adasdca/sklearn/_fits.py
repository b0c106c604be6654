"""The fit that all classes share: scikit-learn's parameters into solves, these into attributes.

scikit-learn's `tol` bounds a gradient or a step, which is of the order of the square root of a gap:
the relative duality gap asked for is the square of `tol`.

Where there is no penalty, C = inf or alpha = 0, a penalty of next to nothing stands in (`weakest`),
and the certificate is that of the problem with it; `lam_` says how much it was.
"""

from __future__ import annotations

import math
import warnings
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from adasdca.engine.interruption import interruption
from adasdca.estimators._convergence import adopt, convergence_warning, starts_of
from adasdca.estimators._input import explaining_text
from adasdca.estimators._labels import check_mass
from adasdca.estimators._solves import all_or_nothing
from adasdca.models._certify import split_classes
from adasdca.models._objectives import Objective, objective_of
from adasdca.multinomial.solver import solve_multinomial
from adasdca.sklearn._points import LOST, as_expected, as_expected_of_classes, weakest
from adasdca.solution import Status
from adasdca.solver import solve, unsolved

Array = NDArray[np.float64]

#: Smaller gaps are not asked for: a solve goes on as far as double precision allows.
LEAST = 1e-14
#: The gap of estimators without `tol`.
EXACT = 1e-10
#: The gap of those that scikit-learn solves directly: predictions to ten digits and more. Its own
#: solutions have gaps of 1e-9 to 1e-18; the last digits of all take twenty times as long.
DIRECT = 1e-20
#: Epochs of estimators without `max_iter`, or with None.
EPOCHS = 1000


class CertifiedFit:
    """Solves the objective that the parameters of a scikit-learn estimator describe.

    Attributes
    ----------
    certificate_ : Certificate or list of Certificate
        Objective, lower bound, gap and radius; a list with several classes or targets.
    dual_gap_ : float or array
        Duality gap: how far the objective can be above its minimum.
    radius_ : float or array
        How far the coefficients can be from the exact ones.
    status_ : Status or list of Status
        How the solve ended.
    converged_ : bool
        Whether the gap reached the square of tol.
    history_ : History or list of History
        The surveys of the solve.
    lam_ : float or array
        The strength of the penalty as in `adasdca.solve`; of the one that stands for none where
        C = inf or alpha = 0, or where a penalty on squares is lost in rounding.
    """

    fit_intercept: bool
    coef_: Any
    intercept_: Any
    n_iter_: Any
    _fit: Any
    #: Whether scikit-learn solves it directly, to the last digits, whatever `tol`.
    _direct = False
    #: Whether rows in single precision get coefficients of that precision.
    _keeps_single = True
    _single: bool

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model; see scikit-learn's."""
        self._fit(X, y, sample_weight)
        return self

    def _gap(self) -> float:
        """Return the relative gap that `tol` stands for."""
        if self._direct:
            return DIRECT
        tol = getattr(self, "tol", None)
        if tol is None:
            return EXACT
        return float(tol) ** 2 if tol**2 >= LEAST else 0.0

    def _read(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> Any:
        """Return rows, targets and weights, checked."""
        with explaining_text(X, y):
            X, y = validate_data(
                self,
                X,
                y,
                accept_sparse="csr",
                accept_large_sparse=True,
                dtype=[np.float64, np.float32],
                order="C",
                **options,
            )
        self._single = X.dtype == np.float32 and self._keeps_single
        if sample_weight is None:
            return X, y, None
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return X, y, weight

    def _fit_numbers(self, X: Any, y: Any, weight: Array | None) -> list[Any]:
        """Solve for each column of real targets."""
        columns = np.ascontiguousarray(np.atleast_2d(np.asarray(y, dtype=np.float64).T))
        return self._solutions(X, objective_of(self), list(columns), [weight] * len(columns))

    def _fit_labels(self, X: Any, y: Any, sample_weight: Any) -> list[Any]:
        """Solve for classes: one problem of two, one each or a multinomial one of more.

        Sets `classes_`, `coef_` and `intercept_`.
        """
        X, y, weight = self._read(X, y, sample_weight)
        vars(self)["classes_"] = classes = classes_of(y, self)  # a property, once, of one class
        objective = objective_of(self)
        targets, weights = split_classes(classes, objective, y, weight)
        if len(classes) > 2 and objective.multinomial:
            found = [self._multinomial(X, objective, targets[0], weights[0], len(classes))]
        else:
            if weight is not None and objective.loss.kind == "classification":
                check_mass(classes, np.bincount(np.searchsorted(classes, y), weight))
            found = self._solutions(X, objective, targets, weights)
        kind = np.float32 if self._single else np.float64
        self.coef_ = np.vstack([s.coef for s in found]).astype(kind)
        self.intercept_ = np.hstack([s.intercept for s in found]).astype(kind)
        return found

    def _solutions(
        self,
        X: Any,
        objective: Objective,
        targets: list[NDArray[Any]],
        weights: list[Array | None],
    ) -> list[Any]:
        starts = starts_of(self, len(targets), X.shape[0])
        solutions: list[Any] = []
        lams = []
        with interruption() as around:
            for k, (each, weight) in enumerate(zip(targets, weights, strict=True)):
                problem = objective.problem(self._lam(objective, X, each, weight, k), weight)
                if not objective.penalised(k):
                    problem["l1_ratio"] = 0.0
                lams.append(problem["lam"])
                if around.wished:
                    solutions.append(_left_out(X, each, problem, starts[k]))
                    continue
                try:
                    solution = solve(
                        X,
                        each,
                        tol=self._gap(),
                        max_epochs=self._epochs(),
                        random_state=self._seed(),
                        warm_start=starts[k],
                        **problem,
                    )
                except KeyboardInterrupt:
                    if not solutions:
                        raise
                    around.wish()
                    solution = _left_out(X, each, problem, starts[k])
                solutions.append(as_expected(solution, X, each, self._gap(), self._single, problem))
        self._adopt(solutions, lams)
        return solutions

    def _multinomial(
        self, X: Any, objective: Objective, codes: Any, weight: Array | None, count: int
    ) -> Any:
        start = None
        if getattr(self, "warm_start", False) and np.shape(getattr(self, "coef_", 0)) == (
            count,
            X.shape[1],
        ):
            start = (
                np.asarray(self.coef_, dtype=np.float64),
                np.asarray(self.intercept_, dtype=np.float64) * np.ones(count),
            )
        problem: dict[str, Any] = {
            "lam": self._lam(objective, X, codes, weight, 0),
            "sample_weight": weight,
            "fit_intercept": objective.fit_intercept,
        }
        solution = solve_multinomial(
            X,
            codes,
            n_classes=count,
            tol=self._gap(),
            max_epochs=self._epochs(),
            warm_start=start,
            **problem,
        )
        if self._single or not objective.penalised():
            solution = as_expected_of_classes(solution, X, codes, self._single, problem)
        self._adopt([solution], [problem["lam"]])
        return solution

    def _lam(self, objective: Objective, X: Any, y: Any, weight: Array | None, k: int) -> float:
        if not objective.penalised(k):
            return weakest(X, y, objective.loss)
        n = len(y)
        lam = objective.lam(n, float(n) if weight is None else math.fsum(weight), k)
        return max(lam, LOST * weakest(X, y, objective.loss)) if self._direct else lam

    def _epochs(self) -> int:
        given = getattr(self, "max_iter", None)
        return EPOCHS if given is None or given < 0 else int(given)

    def _seed(self) -> int:
        seed = getattr(self, "random_state", None)
        if seed is None:
            return 0
        if isinstance(seed, Integral):
            return int(seed)
        return int(check_random_state(seed).randint(np.iinfo(np.int32).max))

    def _adopt(self, solutions: list[Any], lams: list[float]) -> None:
        """Keep the certificates, and warn of a tolerance that was not reached."""
        several = len(solutions) > 1
        self.lam_ = np.array(lams) if several else lams[0]
        self.status_ = [s.status for s in solutions] if several else solutions[0].status
        gap = self._gap()
        # A direct solution is as exact as its data allow.
        adopt(self, solutions, 0.0 if self._direct else gap)
        if hasattr(self, "warm_start"):
            self._states = [s.state for s in solutions if hasattr(s, "state")]
        # A stalled solve is as exact as its data allow: scikit-learn's tolerance is met.
        if any(s.status in (Status.EPOCH_LIMIT, Status.TIME_LIMIT) for s in solutions):
            names = [f" problem {k}" for k in range(len(solutions))] if several else [""]
            warnings.warn(
                convergence_warning(type(self).__name__, solutions, names, gap, self._epochs()),
                ConvergenceWarning,
                stacklevel=8,
            )


def _left_out(X: Any, y: Any, problem: dict[str, Any], start: Any) -> Any:
    """Return the model 0 of a class or target that Ctrl-C has left no time for."""
    return unsolved(
        y,
        problem["sample_weight"],
        X.shape[1],
        loss=problem["loss"],
        strength=problem["lam"] * (1.0 - problem["l1_ratio"]),
        status=Status.INTERRUPTED,
        state=start,
    )


def classes_of(y: Any, owner: Any) -> Any:
    """Return the classes of labels, two at least."""
    check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError(
            f"{type(owner).__name__}: This solver needs samples of at least 2 classes in the data, "
            f"but the data contains only one class: {classes.tolist()[0]!r}"
        )
    return classes
