"""`solve`: the one loop. Survey, record, judge, plan, ascend."""

from __future__ import annotations

import math
import operator
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from adasdca import _core
from adasdca.backend import FOREVER, Backend, LocalBackend
from adasdca.losses import Loss
from adasdca.methods import Method, get_method
from adasdca.problem import Problem, check_number
from adasdca.schedules import Schedule, make_schedule
from adasdca.solution import History, Record, Solution, State, Status, as_beta, radius
from adasdca.survey import Survey

#: A survey faster than this many seconds is repeated after an interruption, for a fresher point.
QUICK = 0.03
#: Surveys without progress beyond rounding after which a solve has stalled.
PATIENCE = 20

Callback = Callable[[Record], Any]


def solve(
    X: Any,
    y: Any,
    *,
    loss: str | Loss,
    lam: float,
    l1_ratio: float = 0.0,
    bounds: Any = None,
    sample_weight: Any = None,
    fit_intercept: bool = False,
    method: str | Method = "adasdca+",
    tol: float = 1e-4,
    max_epochs: int = 1000,
    max_time: float | None = None,
    random_state: Any = None,
    warm_start: Any = None,
    callback: Callback | None = None,
    n_threads: int = 1,
    pack: bool | str = "auto",
) -> Solution:
    """Minimise a regularised risk of a linear model, with a certificate.

    Minimises

        P(w, b) = (1/N) Σ_i c_i φ(x_i·w + b; y_i) + lam·((1 − l1_ratio)/2 ‖w‖² + l1_ratio ‖w‖₁)

    over lower ≤ w ≤ upper, where c_i are the sample weights, N = Σ c_i, and b = 0 unless
    `fit_intercept`. LIBLINEAR's C is lam = 1/(C·N).

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        C-ordered arrays and CSR matrices of float32 or float64 are used without a copy; everything else
        is converted, with a copy.
    y : (n,) array
        Labels −1 and +1 for classification losses, real targets for regression losses.
    loss : str or Loss
        A name, e.g. ``"smoothed_hinge"``, or an object, e.g. ``SmoothedHinge(gamma=0.5)``.
    lam : float
        Strength of the regularisation, above 0.
    l1_ratio : float, default 0.0
        Share of the L1 term, 0 ≤ l1_ratio < 1.
    bounds : (lower, upper), optional
        Bounds of the coefficients, each a number, None or an array of d numbers; ``(0, None)`` keeps the
        coefficients non-negative.
    sample_weight : (n,) array, optional
        Weights c_i ≥ 0; an integer weight is the same as a repeated row.
    fit_intercept : bool, default False
        Whether to fit an intercept, which is not penalised.
    method : str or method object, default "adasdca+"
        A name, e.g. ``"iprox-sdca"``, or an object, e.g. ``AdaSDCAPlus(m=4)``; see `adasdca.methods`.
    tol : float, default 1e-4
        Stop when gap ≤ tol·primal. With 0, go on to the limits of double precision.
    max_epochs : int, default 1000
        Most epochs.
    max_time : float, optional
        Most seconds.
    random_state : None, int, RandomState or Generator
        Seed. The same seed on the same kind of machine gives the same bits, whatever `n_threads`.
    warm_start : Solution, State or array, optional
        Where to begin: an earlier solution (lam, weights and later rows may have changed) or a dual
        vector α.
    callback : callable, optional
        Called with a `Record` after each survey; returning True stops the solve.
    n_threads : int, default 1
        Threads for the surveys; −1 for all processors.
    pack : bool or "auto"
        Whether to copy sparse rows into records for faster updates; ``"auto"`` does so if they fit.

    Returns
    -------
    Solution
        The last certified point. Ctrl-C, `max_time` and the callback end a solve early but lose nothing.

    References
    ----------
    .. [1] D. Csiba, Z. Qu and P. Richtárik, "Stochastic dual coordinate ascent with adaptive
       probabilities", ICML 2015.

    Examples
    --------
    >>> import adasdca
    >>> X, y = adasdca.datasets.load_mushrooms()
    >>> sol = adasdca.solve(X, y, loss="smoothed_hinge", lam=1 / len(y), tol=1e-6, random_state=0)
    >>> sol.status.value
    'converged'
    >>> bool(sol.gap <= 1e-6 * sol.primal)
    True
    """
    start = time.perf_counter()
    problem = Problem.checked(
        X,
        y,
        loss=loss,
        lam=lam,
        l1_ratio=l1_ratio,
        bounds=bounds,
        sample_weight=sample_weight,
        fit_intercept=fit_intercept,
    )
    schedule = make_schedule(get_method(method), problem.loss.smoothness, problem.fit_intercept)
    stop = StopRule(
        start=start,
        tol=check_number("tol", tol, 0.0, math.inf, "a finite number, 0 or more"),
        max_epochs=_check_count("max_epochs", max_epochs, 0),
        max_time=None
        if max_time is None
        else check_number("max_time", max_time, 0.0, math.inf, "seconds, 0 or more, or None"),
        callback=callback,
    )
    if callback is not None and not callable(callback):
        raise TypeError(f"callback = {callback!r} is not callable; pass a function of one record.")
    if not isinstance(pack, bool) and pack != "auto":
        raise ValueError(f"pack = {pack!r} is not allowed; choose True, False or 'auto'.")
    seed = _check_seed(random_state)
    threads = (os.cpu_count() or 1) if n_threads == -1 else _check_count("n_threads", n_threads, 1)
    epoch = 0
    backend = LocalBackend(problem, threads, pack)
    if warm_start is not None:
        beta, multiplier, epoch = as_beta(warm_start, problem.weight, len(problem.y))
        backend.restart(beta, multiplier)
    survey, status, records, state = run(backend, schedule, stop, seed, epoch)
    weight = problem.weight
    return Solution(
        coef=survey.coef,
        intercept=survey.intercept,
        dual_coef=survey.certified if weight is None else weight * survey.certified,
        primal=survey.primal,
        dual=survey.dual,
        gap=survey.gap,
        radius=radius(survey.gap, problem.strength),
        status=status,
        n_epochs=records[-1].epoch,
        n_updates=records[-1].updates,
        history=History.of(records),
        state=state,
    )


class StopRule:
    """Judges a record: go on, or stop with a status."""

    def __init__(
        self,
        start: float,
        tol: float,
        max_epochs: int,
        max_time: float | None,
        callback: Callback | None,
    ) -> None:
        self.start = start
        self.tol = tol
        self.max_epochs = max_epochs
        self.deadline = math.inf if max_time is None else start + max_time
        self.callback = callback
        self._best_gap = self._best_dual = self._last_gap = math.inf
        self._waited = 0

    def elapsed(self) -> float:
        return time.perf_counter() - self.start

    def seconds_left(self) -> float:
        return min(FOREVER, self.deadline - time.perf_counter())

    def judge(self, record: Record) -> Status | None:
        """Return why to stop after this record, or None."""
        wanted = self.callback is not None and bool(self.callback(record))
        if record.gap <= self.tol * record.primal:
            return Status.CONVERGED
        if wanted:
            return Status.INTERRUPTED
        if record.epoch >= self.max_epochs:
            return Status.EPOCH_LIMIT
        if self.seconds_left() <= 0:
            return Status.TIME_LIMIT
        return Status.STALLED if self._stalled(record) else None

    def _stalled(self, record: Record) -> bool:
        """Whether neither gap nor dual has moved beyond rounding for a while."""
        rounding = 4 * np.finfo(np.float64).eps * (abs(record.primal) + abs(record.dual))
        first = math.isinf(self._best_gap)
        moved = record.gap < self._best_gap - rounding or record.dual > self._best_dual + rounding
        # With an intercept the certificate swings for a while before it settles.
        swung = abs(record.gap - self._last_gap) > 1e4 * rounding
        self._waited = 0 if first or moved or swung else self._waited + 1
        self._last_gap = record.gap
        self._best_gap = min(self._best_gap, record.gap)
        self._best_dual = record.dual if first else max(self._best_dual, record.dual)
        return self._waited >= PATIENCE


def run(
    backend: Backend, schedule: Schedule, stop: StopRule, seed: int, epoch: int = 0
) -> tuple[Survey, Status, list[Record], State]:
    """Survey, record, judge, plan, ascend, until there is a reason to stop.

    Returns the last certified survey, the status, the records, and the state to go on from.
    """
    records: list[Record] = []
    first, updates, duration = epoch, 0, 0.0
    survey: Survey | None = None
    status: Status | None = None

    def look(seconds: float) -> bool:
        """Survey and record; False if time ran out on the way."""
        nonlocal survey, duration, multiplier
        began = time.perf_counter()
        seen = backend.survey(schedule.needs, seconds)
        if seen is None:
            return False
        duration = time.perf_counter() - began
        survey, multiplier = seen, backend.multiplier
        records.append(
            Record(
                epoch - first, updates, stop.elapsed(), seen.primal, seen.dual, seen.gap, seen.active
            )
        )
        return True

    multiplier = backend.multiplier
    look(FOREVER)  # without a first certificate there is nothing to return
    try:
        while (status := stop.judge(records[-1])) is None:
            plan = backend.plan(schedule, survey, _core.subkey(seed, epoch))
            if plan is None:
                status = Status.STALLED
                break
            updates += backend.ascend(plan, stop.seconds_left())
            epoch += 1
            if not look(stop.seconds_left()):
                status = Status.TIME_LIMIT
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    if records[-1].updates < updates and duration < QUICK:
        look(FOREVER)
    assert survey is not None
    state = State(survey.beta, multiplier, first + records[-1].epoch, seed)
    return survey, status, records, state


def _check_count(name: str, value: Any, least: int) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        count = least - 1
    if count < least or isinstance(value, bool):
        raise ValueError(f"{name} = {value!r} is not allowed; choose an integer of {least} or more.")
    return count


def _check_seed(random_state: Any) -> int:
    """Return a seed of 64 bits; None draws a fresh one."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**64, dtype=np.uint64))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**63, dtype=np.int64))
    try:
        return int(operator.index(random_state)) % 2**64
    except TypeError:
        raise ValueError(
            f"random_state = {random_state!r} is not understood; pass None, an integer, a "
            "numpy.random.RandomState or a numpy.random.Generator."
        ) from None
