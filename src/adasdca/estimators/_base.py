"""What the estimators share: parameters, the translation into solves, the attributes of a fit.

An estimator translates: parameters and labels into calls of `adasdca.solve`, solutions into
attributes with a trailing underscore. The numbers are made elsewhere.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import fields
from functools import cache, cached_property, lru_cache
from inspect import signature
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from adasdca.duality.error_bounds import Region
from adasdca.errors import InputError
from adasdca.estimators._convergence import adopt, convergence_warning, reached, starts_of
from adasdca.estimators._device import products_with, rows_to_solve
from adasdca.estimators._input import FLOATS, CheckedInput, explaining_text
from adasdca.estimators._progress import CallbackSupportMixin, Monitor, monitored
from adasdca.estimators._registered import packed, unpack
from adasdca.estimators._solves import region_or_unknown, solve_all
from adasdca.methods import METHODS, Custom
from adasdca.problem.device_rows import is_on_device
from adasdca.problem.losses import LOSSES, Loss, get_loss
from adasdca.problem.problem import check_scaling
from adasdca.solution import Status
from adasdca.storage import check_writable, write_whole

Array = NDArray[np.float64]

#: Types whose values are the same if they are equal.
SIMPLE = frozenset({bool, int, float, str})


def losses_of(kind: str) -> list[str]:
    """Return the names of the losses of that kind."""
    return [name for name, loss in LOSSES.items() if loss.kind == kind]


def as_double(value: Any) -> float:
    """Return a number as a double, one beyond them as infinity."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


class Doubles(Interval):
    """An interval of doubles: NumPy compares its smaller kinds with what is too large for them."""

    def __contains__(self, value: Any) -> bool:
        return bool(super().__contains__(as_double(value)))


class LinearModel(CheckedInput, CallbackSupportMixin, BaseEstimator):
    """A linear model fitted by `adasdca.solve`; the base of the classifier and the regressor."""

    _kind: ClassVar[str]

    coef_: Any
    intercept_: Any
    dual_gap_: Any
    radius_: Any
    certificate_: Any
    history_: Any
    converged_: bool
    n_iter_: int
    _region: Region
    _ends: list[str]
    _duals: list[Array]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="right")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "positive": ["boolean"],
        "bounds": ["array-like", None],
        "penalty_factors": ["array-like", None],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither"), None],
        "method": [str, *METHODS.values(), Custom],
        "tol": [Doubles(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_time": [Doubles(Real, 0, None, closed="left"), None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "callback": [callable, None],
        "verbose": ["verbose"],
        "gamma": [Interval(Real, 0, None, closed="left")],
        "device": [StrOptions({"cuda"}), None],
    }

    def _keep(self, arguments: dict[str, Any]) -> None:
        """Set the arguments of `__init__`, given as its `locals()`, under their own names."""
        own = {k: v for k, v in arguments.items() if k not in ("self", "__class__")}
        self.__dict__.update(own)

    @classmethod
    @cache
    def _defaults(cls) -> dict[str, Any]:
        """Return the parameters by name; to read a signature takes as long as a small solve."""
        found = signature(cls).parameters.items()
        return {name: p.default for name, p in found if p.kind is not p.VAR_KEYWORD}

    def _validate_params(self) -> None:
        """Check the parameters as scikit-learn does; defaults need no check."""
        others = {}
        for name, default in self._defaults().items():
            value = getattr(self, name)
            if type(value) in SIMPLE and value is not default:
                self._allow(name, type(value).__name__, value)
            elif value is not default:
                others[name] = value
        if others:
            validate_parameter_constraints(
                self._parameter_constraints, others, caller_name=type(self).__name__
            )

    @classmethod
    @lru_cache(maxsize=256)
    def _allow(cls, name: str, kind: str, value: Any) -> None:
        """Check a parameter; one that was right is right again (100 × 10: 25 -> 1 µs a fit)."""
        validate_parameter_constraints(
            cls._parameter_constraints, {name: value}, caller_name=cls.__name__
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        contents = packed()
        return state if contents is None else {**state, "_registered": contents}

    def __setstate__(self, state: dict[str, Any]) -> None:
        contents = state.get("_registered")
        if contents is not None:
            unpack(contents)
        super().__setstate__({k: v for k, v in state.items() if k != "_registered"})

    def _loss(self) -> Loss:
        """Return the loss with those of the estimator's parameters that it has."""
        loss = get_loss(self.loss)
        if loss.kind != self._kind:
            raise InputError(
                f"loss = {self.loss!r} is for {loss.kind}; {type(self).__name__} takes "
                f"one of {', '.join(map(repr, losses_of(self._kind)))}."
            ).about("loss")
        if isinstance(self.loss, Loss):
            return loss
        own = [f.name for f in fields(loss) if hasattr(self, f.name)]  # type: ignore[arg-type]
        return type(loss)(**{name: getattr(self, name) for name in own})

    def _lam(self, total: float) -> float:
        """Return lam = 1/(C·N), N = `total` the sum of the weights."""
        C = as_double(self.C)
        if math.isinf(C):
            raise InputError(
                "C = inf asks for no penalty at all, and then nothing bounds how far the optimum "
                "is; choose a large number, e.g. C = 1e6."
            )
        return float(1.0 / (C * total))

    def _bounds(self) -> Any:
        """Return the bounds of the coefficients, given as such or by `positive`."""
        if not self.positive:
            return self.bounds
        if self.bounds is not None:
            raise InputError(
                f"positive=True is bounds=(0, None), but bounds = {self.bounds!r} is given as "
                "well; give one of them."
            )
        return (0, None)

    def _constant(self, X: Any) -> float:
        """Return the constant feature of a penalised intercept, 0 if there is none."""
        if self.intercept_scaling is None:
            return 0.0
        return check_scaling(self.intercept_scaling, self.fit_intercept, X.dtype)

    def _fit_targets(
        self,
        X: Any,
        y: Any,
        targets: Sequence[Array],
        names: list[str],
        weight: Any,
        began: float,
    ) -> None:
        """Fit one model for each vector of targets and take the solutions over.

        `began` is when the fit began, on the clock of `time.perf_counter`.
        """
        loss, constant = self._loss(), self._constant(X)
        starts, rows = starts_of(self, len(targets), X.shape[0]), rows_to_solve(self, X)
        with monitored(self, names, X, y) as monitor:
            solutions = solve_all(self, X, rows, loss, targets, weight, monitor, starts, began)
            radius = np.array([s.radius for s in solutions])
            unknown = Region(radius, np.full_like(radius, np.inf))
            if getattr(self, "_plain_scores", False):
                self._region = unknown
            elif not self.fit_intercept or constant:
                self._region = Region(radius, np.zeros_like(radius), None, constant)
            else:
                self._region = region_or_unknown(
                    lambda: Region.of_models(solutions, products_with(rows), targets, weight, loss),
                    unknown,
                )
            self.coef_ = np.array([s.coef for s in solutions])
            self.intercept_ = np.array([s.intercept for s in solutions])
            self._adopt(solutions, [s.state for s in solutions])
        self._conclude(solutions, names, monitor)

    def _adopt(self, solutions: list[Any], states: Any) -> None:
        """Turn solutions into attributes, and keep where to go on from if that is wanted."""
        self.__dict__.pop("dual_coef_", None)
        self._duals = [s.dual_coef for s in solutions]
        self._ends = [s.status.value for s in solutions]
        adopt(self, solutions, self.tol)
        self.n_iter_ = max(len(s.history) - 1 for s in solutions)
        self._states = states if self.warm_start else None

    @cached_property
    def dual_coef_(self) -> Array:
        """Dual variables; those of many rows and classes are joined at the first access.

        After a fit that ends for its time, that would take longer than what is left of the fit.
        """
        if not hasattr(self, "_duals"):
            raise AttributeError(f"This {type(self).__name__} has no dual_coef_: it is not fitted.")
        duals: list[Array] = self.__dict__.pop("_duals")
        return np.atleast_2d(duals[0]) if len(duals) == 1 else np.vstack(duals)

    @property
    def status_(self) -> Status | list[Status]:
        """How the solve ended; a list if there were several."""
        if not hasattr(self, "_ends"):
            raise AttributeError(f"This {type(self).__name__} has no status_ before it is fitted.")
        found = [Status(end) for end in self._ends]
        return found[0] if len(found) == 1 else found

    def _conclude(self, solutions: list[Any], names: list[str], monitor: Monitor) -> None:
        """Warn of a tolerance not reached, unless somebody wanted it so."""
        ends = [s.status for s in solutions if not reached(s, self.tol)]
        if monitor.stopped or not ends or Status.INTERRUPTED in ends:
            return
        if getattr(self, "_quiet", False):  # a search warns once, for all its fits
            return
        warnings.warn(
            convergence_warning(type(self).__name__, solutions, names, self.tol, self.max_iter),
            ConvergenceWarning,
            stacklevel=5,
        )

    def report(
        self,
        X: Any,
        y: Any,
        *,
        path: Any = None,
        feature_names: Any = None,
        title: str = "",
        command: str | None = None,
    ) -> str:
        """Return a page in HTML about the fit, to be forwarded; needs matplotlib.

        It shows what was fitted on what, the certificate in words and numbers, how the solve
        converged, the largest coefficients and whether their signs are certain, calibration or
        residuals, and how many predictions are certified.

        Parameters
        ----------
        X, y
            The rows and targets that it was fitted on.
        path : path, optional
            Where to write the page.
        feature_names : sequence of str, optional
            Names of the features; those of the fit by default.
        title : str, optional
            The heading, e.g. the name of the data.
        command : str, optional
            The line that repeats the fit; the estimator's parameters by default.

        Returns
        -------
        str
            The page.
        """
        from adasdca.estimators._report import report  # what it draws with is slow to import

        if is_on_device(X):
            raise InputError(
                f"X, a {type(X).__name__}, is in the memory of a CUDA device, where no report "
                "reads it; pass X.get() or X.cpu()."
            )
        check_is_fitted(self)
        if path is not None:
            check_writable(path)
        with explaining_text(X):
            shape = validate_data(
                self, X, accept_sparse="csr", accept_large_sparse=True, dtype=FLOATS, reset=False
            ).shape
        y = np.asarray(y)
        page = report(
            self, X, y, shape=shape, feature_names=feature_names, title=title, command=command
        )
        if path is not None:
            write_whole(path, page)
        return page
