"""The solves of one fit, one for each vector of targets; fits that end early, or not at all."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from adasdca import _core
from adasdca.backends.blas import available_threads
from adasdca.certification import certify
from adasdca.duality.error_bounds import Region
from adasdca.engine.interruption import Interruption, interruption
from adasdca.estimators._device import device_of
from adasdca.estimators._progress import Monitor
from adasdca.problem.losses import Loss
from adasdca.solution import History, Record, Solution, Status
from adasdca.solver import solve, unsolved

Array = NDArray[np.float64]
Fit = TypeVar("Fit", bound=Callable[..., Any])
#: Seconds past the limit of a fit for the first certificate of a solve.
GRACE = 0.05
#: Seconds after Ctrl-C for the passes that bound the errors of intercepts.
HURRY = 0.1


def region_or_unknown(make: Callable[[], Region], unknown: Region) -> Region:
    """Return the region within which the optimum is; the unknown one if Ctrl-C leaves no time."""
    with interruption() as around:
        with suppress(KeyboardInterrupt), around.heeded():
            return make()
        # A wish of its own, which nobody makes: only the time ends this.
        with suppress(_core.Expired), Interruption().heeded(HURRY):
            return make()
    return unknown


def _next_to_0(bounds: Any, d: int) -> Array:
    """Return the coefficients within bounds, as `solve` takes them, that are next to 0."""
    lower, upper = (None, None) if bounds is None else bounds
    low = -np.inf if lower is None else np.asarray(lower, dtype=np.float64)
    high = np.inf if upper is None else np.asarray(upper, dtype=np.float64)
    return np.clip(np.zeros(d), low, high)


def threads_of(model: Any, jobs: int = 1) -> int:
    """Return the threads of a solve, when `jobs` solves of a fit run at the same time."""
    return max(1, available_threads() // (jobs * getattr(model, "_beside", 1)))


def solve_all(
    model: Any,
    X: Any,
    rows: Any,
    loss: Loss,
    targets: Sequence[Array],
    weight: Array | None,
    monitor: Monitor,
    starts: list[Any],
    began: float,
) -> list[Any]:
    """Solve for each vector of targets, on the same rows, `n_jobs` at a time.

    `rows` are those of X, on the device if the solves are made there. A solve that was not begun
    when the fit ended early gets the model 0 and its certificate, or the model within the bounds
    that is next to 0.
    """
    count = len(targets)
    device = device_of(model, X)
    jobs = 1 if device or count == 1 else min(effective_n_jobs(model.n_jobs), count)
    threads = threads_of(model, jobs)
    limit = None if model.max_time is None else began + model.max_time
    prepared = time.perf_counter() - began
    seed = model.random_state
    if not isinstance(seed, Integral):
        seed = int(check_random_state(seed).randint(np.iinfo(np.int32).max))

    total = X.shape[0] if weight is None else math.fsum(weight)
    problem = {"loss": loss, "lam": model._lam(total), "l1_ratio": model.l1_ratio}
    more = {
        "bounds": model._bounds(),
        "penalty_factors": model.penalty_factors,
        "sample_weight": weight,
        "fit_intercept": model.fit_intercept,
        "intercept_scaling": model.intercept_scaling,
    }

    def left_out(k: int, status: Status) -> Solution:
        factors = model.penalty_factors
        least = 1.0 if factors is None else float(np.min(factors))
        # At the model 0 either label loses the same.
        labels = np.broadcast_to(1.0, X.shape[:1])
        found = unsolved(
            labels if model._kind == "classification" else targets[k],
            weight,
            X.shape[1],
            loss=loss,
            strength=problem["lam"] * (1.0 - model.l1_ratio) * least,
            status=status,
            state=starts[k],
        )
        coef = _next_to_0(more["bounds"], X.shape[1])
        if not coef.any():
            return found
        said = certify(X, targets[k], coef, dual_coef=found.dual_coef, **problem, **more)
        record = Record(0, 0, 0.0, said.primal, said.dual, said.gap, 0)
        return replace(found, coef=coef, certificate=said, history=History.of([record]))

    def one(k: int) -> Solution | None:
        share = None
        if around.wished:
            return None
        if limit is not None:
            left = max(0.0, limit - time.perf_counter())
            # To make and check targets and to lay rows out takes twice as long as what came before.
            late = starts[k] is None and 2.0 * prepared > left + GRACE
            if late or (left == 0 and k > 0):
                return left_out(k, Status.TIME_LIMIT)
            share = left / math.ceil((count - k) / jobs)
        if monitor.stopped:
            return left_out(k, Status.INTERRUPTED)
        try:
            with around.joined():
                return solve(
                    rows,
                    targets[k],
                    **problem,
                    **more,
                    method=model.method,
                    tol=model.tol,
                    max_epochs=model.max_iter,
                    max_time=share,
                    random_state=seed + k,
                    warm_start=starts[k],
                    callback=monitor.of(k),
                    n_threads=threads,
                    backend=device,
                    memory_limit=getattr(model, "_memory_limit", None),
                )
        except KeyboardInterrupt:
            around.wish()
            return None

    with interruption() as around:
        if jobs == 1:
            found = [one(k) for k in range(count)]
        else:
            # Threads share X, and the wish to stop; the kernels run without the GIL.
            workers = Parallel(jobs, require="sharedmem")
            found = list(workers(delayed(one)(k) for k in range(count)))
        if not any(found):
            raise KeyboardInterrupt
        return [s or left_out(k, Status.INTERRUPTED) for k, s in enumerate(found)]


def all_or_nothing(fit: Fit) -> Fit:
    """Let a fit that raises leave the estimator as it was, and Ctrl-C leave a fitted one.

    Ctrl-C ends the solves with what they have certified, the estimator is fitted with that, and
    KeyboardInterrupt goes on: a grid search around this fit must not go on as if nothing had
    happened. Before the first certificate there is nothing to fit with.
    """

    @wraps(fit)
    def whole_fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        with interruption() as around:
            before = dict(vars(self))
            try:
                fit(self, *args, **kwargs)
            except BaseException:
                vars(self).clear()
                vars(self).update(before)
                raise
        around.check()
        return self

    return whole_fit  # type: ignore[return-value]
