"""`solve`: check the arguments, run the loop, hand over the solution."""

from __future__ import annotations

import math
import operator
import os
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backends.abilities import memory_told
from adasdca.backends.backend import Backend
from adasdca.backends.base import FOREVER
from adasdca.backends.blas import available_threads
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.named import get_backend
from adasdca.backends.stored import map_rows
from adasdca.duality.certificate import Certificate
from adasdca.engine.checkpoints import Checkpoint, fingerprint, watched_by
from adasdca.engine.interruption import interruption
from adasdca.engine.loop import Loop, Outcome
from adasdca.engine.stop import Callback, StopRule
from adasdca.errors import InputError
from adasdca.methods import Method, get_method
from adasdca.problem.data import CheckedRows
from adasdca.problem.device_rows import in_kind, is_on_device, to_numpy
from adasdca.problem.losses import Loss
from adasdca.problem.problem import Problem, check_count, check_number
from adasdca.solution import Guess, History, Record, Solution, State, Status, as_beta

Array = NDArray[np.float64]

#: Seconds past the deadline that a first certificate may take; after that it is the model 0.
FIRST = 0.1

#: Rows whose losses at 0 are summed at a time, in the cache.
BLOCK = 1 << 15
#: More threads than any machine has processors.
MOST_THREADS = 1 << 16


def solve(
    X: Any,
    y: Any,
    *,
    loss: str | Loss,
    lam: float,
    l1_ratio: float = 0.0,
    bounds: Any = None,
    penalty_factors: Any = None,
    sample_weight: Any = None,
    fit_intercept: bool = False,
    intercept_scaling: float | None = None,
    method: str | Method = "auto",
    tol: float = 1e-4,
    max_epochs: int = 1000,
    max_time: float | None = None,
    random_state: Any = None,
    warm_start: Any = None,
    callback: Callback | None = None,
    n_threads: int = 1,
    pack: bool | str = "auto",
    backend: str | Callable[[Problem], Backend] | None = None,
    memory_limit: int | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
) -> Solution:
    """Minimise a regularised risk of a linear model, with a certificate.

    Minimises

        P(w, b) = (1/N) Σ_i c_i φ(x_i·w + b; y_i) + lam·((1 − l1_ratio)/2 ‖w‖² + l1_ratio ‖w‖₁)

    over lower ≤ w ≤ upper, where c_i are the sample weights, N = Σ c_i, and b = 0 unless
    `fit_intercept`. LIBLINEAR's C is lam = 1/(C·N).

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        C-ordered arrays and CSR matrices of float32 or float64 are used without a copy; everything
        else is converted, with a copy.
        They must not change before the solve ends: an index that another thread makes larger than
        the matrix is read out of range.
    y : (n,) array
        Labels −1 and +1 for classification losses, real targets for regression losses.
    loss : str or Loss
        A name, e.g. ``"smoothed_hinge"``, or an object, e.g. ``SmoothedHinge(gamma=0.5)``.
    lam : float
        Strength of the regularisation, above 0.
    l1_ratio : float, default 0.0
        Share of the L1 term, 0 ≤ l1_ratio ≤ 1. With 1 (the lasso) the objective is certified, but
        not the coefficients: `radius` is infinite.
    bounds : (lower, upper), optional
        Bounds of the coefficients, each a number, None or an array of d numbers; ``(0, None)``
        keeps the coefficients non-negative.
    penalty_factors : (d,) array, optional
        Factors f_j ≥ 0 of the penalty, one for each feature: lam·Σ_j f_j ((1 − l1_ratio)/2 w_j² +
        l1_ratio |w_j|). All 1 by default; they are not normalised. A feature with the factor 0 is
        not penalised, and needs finite bounds on both sides; `radius` is then infinite.
    sample_weight : (n,) array, optional
        Weights c_i ≥ 0; an integer weight is the same as a repeated row.
    fit_intercept : bool, default False
        Whether to fit an intercept.
    intercept_scaling : float, optional
        None: the intercept is not penalised. A number: it is the coefficient, penalised like the
        others but not bounded, of a constant feature of that value, as in LIBLINEAR; X is then
        copied.
    method : str or method object, default "auto"
        A name, e.g. ``"iprox-sdca"``, or an object, e.g. ``AdaSDCAPlus(m=4)``; see
        `adasdca.methods`.
    tol : float, default 1e-4
        Stop when gap ≤ tol·primal. With 0, go on to the limits of double precision.
    max_epochs : int, default 1000
        Largest number of epochs.
    max_time : float, optional
        Time limit in seconds.
    random_state : None, int, RandomState or Generator
        Seed. The same seed on the same kind of machine gives the same bits, whatever `n_threads`.
    warm_start : Solution, State or array, optional
        Where to begin: an earlier solution (lam, weights and later rows may have changed) or a dual
        vector α.
    callback : callable, optional
        Called with a `Record` after each survey; returning True stops the solve.
    n_threads : int, default 1
        Threads for the surveys and the passes of second-order steps; −1 for as many as the
        processors, OMP_NUM_THREADS, joblib and threadpoolctl allow.
    pack : bool or "auto"
        Whether to copy sparse rows into records for faster updates; ``"auto"`` does so if they fit.
    backend : "cuda" or callable, optional
        Where the rows are. By default they stay in the memory of this process; `n_threads` and
        `pack` apply to that case only. ``"cuda"`` copies them to a CUDA device, unless X is an
        array or CSR matrix of CuPy, or another array that is on the device and speaks DLPack:
        `coef` and `dual_coef` are then arrays of the same library there. A callable makes a
        `Backend` of the checked problem.
    memory_limit : int or str, optional
        Memory that the solve may take in addition to what the process uses when it begins: bytes,
        or a text such as ``"2 GB"``. X stays on the disk then, and is read in blocks: an array of
        ``numpy.load(path, mmap_mode="r")``, a CSR matrix of such arrays, or the rows of a packed
        file (`adasdca.files.open_packed`). Only second-order steps are taken.
    checkpoint : str or path, optional
        A file to which the state of the solve is written now and then, whole or not at all. A later
        solve of the same problem with the same options continues from it. With rows in memory the
        result is then bit for bit that of an uninterrupted solve; any other backend continues from
        its last certified point. The file is removed at the end.
    checkpoint_every : float, default 60.0
        Least number of seconds between two checkpoints; they are written between epochs.

    Returns
    -------
    Solution
        The best certified point. A solve that Ctrl-C, `max_time` or the callback ends early returns
        it, too; before the first certificate Ctrl-C raises KeyboardInterrupt.

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
    make = None if backend is None else get_backend(backend)
    if memory_limit is not None:
        if backend is not None or intercept_scaling is not None:
            raise InputError(
                f"memory_limit = {memory_limit!r} has a backend of its own, and no room for the "
                "column of intercept_scaling; leave backend and intercept_scaling out."
            )
        rows, make = map_rows(X, memory_limit, check_threads(n_threads))
        X = CheckedRows(rows)
    problem = Problem.checked(
        X,
        y,
        loss=loss,
        lam=lam,
        l1_ratio=l1_ratio,
        bounds=bounds,
        penalty_factors=penalty_factors,
        sample_weight=sample_weight,
        fit_intercept=fit_intercept,
        intercept_scaling=intercept_scaling,
        device=backend == "cuda",
        stays=backend == "cuda" and checkpoint is None,
    )
    if not isinstance(pack, bool) and pack != "auto":
        raise InputError(f"pack = {pack!r} is not allowed; choose True, False or 'auto'.")
    threads = check_threads(n_threads)
    found = solve_problem(
        problem,
        make or (lambda checked: LocalBackend(checked, threads, pack)),
        method=method,
        tol=tol,
        max_epochs=max_epochs,
        max_time=max_time,
        random_state=random_state,
        warm_start=warm_start,
        callback=callback,
        threads=threads,
        start=start,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        stays=is_on_device(X),
    )
    return solution_in_kind(found, X)


def solution_in_kind(solution: Solution, X: Any) -> Solution:
    """Return coefficients and duals as arrays of the library of X, where X is on a device."""
    if not is_on_device(X):
        return solution
    coef, dual = in_kind(solution.coef, X), in_kind(solution.dual_coef, X)
    return replace(solution, coef=coef, dual_coef=dual)


def check_threads(n_threads: Any) -> int:
    """Return a number of threads; −1 stands for all that this process may use."""
    if n_threads == -1:
        return available_threads()
    return check_count("n_threads", n_threads, 1, MOST_THREADS)


def solve_problem(
    problem: Problem,
    backend: Callable[[Problem], Backend],
    *,
    method: str | Method,
    tol: float,
    max_epochs: int,
    max_time: float | None,
    random_state: Any,
    warm_start: Any,
    callback: Callback | None,
    threads: int,
    start: float,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    stays: bool = False,
    data: Any = None,
) -> Solution:
    """Solve a checked problem; the arguments are those of `solve`.

    Parameters
    ----------
    problem : Problem
        The problem. Its rows, targets and weights may be with the backend alone.
    backend : callable
        Makes a backend of it.
    method, tol, max_epochs, max_time, random_state, warm_start, callback
        As they were given.
    threads : int
        Threads for passes over the rows.
    start : float
        When the solve began, on the clock of `time.perf_counter`.
    checkpoint, checkpoint_every
        As they were given.
    stays : bool
        Whether the dual point stays where the backend has it.
    data
        What tells the rows from others, for a checkpoint, if the backend alone has them.
    """
    tol = check_number("tol", tol, 0.0, math.inf, "a finite number, 0 or more")
    method = get_method(method)
    max_epochs = check_count("max_epochs", max_epochs, 0)
    if max_time is not None:
        max_time = check_number("max_time", max_time, 0.0, math.inf, "seconds, 0 or more, or None")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback = {callback!r} is not callable; pass a function of one record.")
    seed = _check_seed(random_state)
    keeper = None
    if checkpoint is not None:
        every = check_number(
            "checkpoint_every", checkpoint_every, 0.0, math.inf, "seconds, 0 or more"
        )
        told = repr(random_state) if isinstance(random_state, (int, np.integer)) else None
        options = repr(method), tol, told, data
        keeper = Checkpoint(checkpoint, every, fingerprint(problem, options))
        seed = seed if keeper.seed is None else keeper.seed
        callback = watched_by(keeper, callback)
    # A product too small for doubles is 0; a point too large for them gets no certificate.
    with interruption() as around, np.errstate(all="ignore"):
        stop = StopRule(start, tol, max_epochs, max_time, callback, around)
        here = len(problem.y) > 0  # the targets are not with the backend alone
        state = None
        if here and warm_start is not None and not isinstance(warm_start, Guess):
            state = State(*as_beta(warm_start, problem.weight, len(problem.y)), seed)
        bounds = problem.bounds
        allowed = bounds is None or bool(((bounds[0] <= 0) & (bounds[1] >= 0)).all())
        first = max(stop.seconds_left(), 0.0) + FIRST if allowed and here else FOREVER
        begun = time.perf_counter()
        try:
            with around.heeded(first):
                rows = backend(problem)
                rest = problem.resting_intercept
                if rest is not None:
                    rows.place(None, np.zeros(problem.rows.shape[1]), rest)
                elif isinstance(warm_start, Guess):
                    rows.place(warm_start.duals, *problem.joined(*warm_start[:2]))
                elif warm_start is not None:
                    if state is None:
                        beta = as_beta(warm_start, problem.weight, rows.facts.n)
                        state = State(*beta, seed)
                    rows.restart(state.beta, state.multiplier)
            if not rows.facts.ascends and method.ascends:
                raise InputError(
                    f"method = {method!r} ascends coordinate by coordinate, which l1_ratio = "
                    f"{problem.l1_ratio!r}, a penalty factor of 0 or this backend does not allow; "
                    "choose method='auto', or an l1_ratio below 1 and penalty_factors above 0."
                )
            schedule = method.schedule(problem, rows.facts, tol, threads)
            around.check()
            epoch, idle = 0 if state is None else state.epoch, None
            if here and allowed and warm_start is not None:
                idle = partial(_loss_of_nothing, problem)
            loop = Loop(rows, schedule, stop, seed, epoch, idle)
            if keeper is not None:
                keeper.resume(loop, rows, stop)
            with memory_told(rows):
                outcome = loop.run(first - (time.perf_counter() - begun))
                if keeper is not None:
                    keeper.end(outcome.status in (Status.CONVERGED, Status.STALLED))
                return _solution(problem, rows, outcome, stays)
        except _core.Expired:
            return unsolved(
                problem.y,
                problem.weight,
                problem.rows.shape[1] - bool(problem.constant),
                loss=problem.loss,
                strength=problem.strength,
                status=Status.TIME_LIMIT,
                state=state,
            )


def _loss_of_nothing(problem: Problem) -> float:
    losses = problem.loss.value(np.zeros(len(problem.y)), problem.y)
    return float(np.average(losses, weights=problem.weight))


def _solution(problem: Problem, rows: Backend, outcome: Outcome, stays: bool) -> Solution:
    survey, records, weight = outcome.survey, outcome.records, problem.weight
    # (A copy: the state may fetch the same array later, whatever has been done to this one.)
    certified: Any = survey.certified.copy() if stays else rows.gather(survey.certified)
    if stays and weight is not None:
        weight = in_kind(weight, certified)
    coef, intercept = problem.split(survey.coef, survey.intercept)
    return Solution(
        coef=coef,
        intercept=intercept,
        dual_coef=certified if weight is None else weight * certified,
        certificate=survey.certificate,
        status=outcome.status,
        n_epochs=records[-1].epoch,
        n_updates=records[-1].updates,
        history=History.of(records),
        phases=outcome.phases,
        timings=outcome.timings,
        state=outcome.state,
        digits=outcome.digits,
    )


def unsolved(
    y: Array,
    weight: Array | None,
    d: int,
    *,
    loss: Loss,
    strength: float,
    status: Status,
    state: State | None = None,
) -> Solution:
    """Return the model 0 for a solve that was never begun: its certificate needs no row of X.

    At w = 0, b = 0 and β = 0 the gap is P, as φ*(0) = 0 and g*(0) = 0. Bounds must allow for 0.

    Parameters
    ----------
    y, weight : (n,) array
        Checked targets and weights.
    d : int
        The number of features.
    loss : Loss
        The loss.
    strength : float
        Modulus of strong convexity of the regulariser.
    status : Status
        Why it was not begun.
    state : State, optional
        Where it would have begun.
    """
    y = to_numpy(y)
    n, none = len(y), np.zeros(len(y))
    total = float(n if weight is None else weight.sum())
    if loss.kind == "classification":  # all rows of a label have the same loss
        plus = float(np.count_nonzero(y > 0) if weight is None else weight.sum(where=y > 0))
        y, weight = np.array([-1.0, 1.0]), np.array([total - plus, plus])
    primal = 0.0
    for first in range(0, len(y), BLOCK):
        part = slice(first, first + BLOCK)
        values = loss.value(0.0, y[part])
        primal += float(values.sum() if weight is None else weight[part] @ values) / total
    blur = 4 * n * sys.float_info.epsilon * primal
    found = Certificate.of(primal, primal + blur, blur, blur, strength)
    record = Record(0, 0, 0.0, found.primal, found.dual, found.gap, 0)
    return Solution(
        coef=np.zeros(d),
        intercept=0.0,
        dual_coef=none,
        certificate=found,
        status=status,
        n_epochs=0,
        n_updates=0,
        history=History.of([record]),
        phases=(),
        timings={},
        state=state or State(none, 0.0, 0, 0),
    )


def _check_seed(random_state: Any) -> int:
    """Return a seed of 64 bits; None draws a fresh one."""
    if random_state is None:
        return secrets.randbits(64)  # a fortieth of the time of NumPy's SeedSequence, 55 µs
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**64, dtype=np.uint64))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**63, dtype=np.int64))
    try:
        return int(operator.index(random_state)) % 2**64
    except TypeError:
        raise InputError(
            f"random_state = {random_state!r} is not understood; pass None, an integer, a "
            "numpy.random.RandomState or a numpy.random.Generator."
        ) from None
