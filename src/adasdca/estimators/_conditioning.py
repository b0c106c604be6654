"""How a fit is put to the solver: the same problem in a form that is quick and exact to solve."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adasdca.duality.certificate import CertificateError
from adasdca.estimators._polish import Corner
from adasdca.problem.losses import Loss, Quantile
from adasdca.solution import History, Record, Solution, State, Status
from adasdca.solver import solve

Array = NDArray[np.float64]

#: Up to this many stored values a fit goes on beyond `tol`, to the limits of double precision.
SMALL = 2048
#: For this many more epochs at most.
EXTRA = 300
#: With up to this many features Newton steps are tried where epochs crawl,
FEW = 500
#: which is after this many.
STRETCH = 100


@dataclass(frozen=True)
class Data:
    """The rows of a fit as the solver gets them.

    Attributes
    ----------
    X : (n, d) or (n, d + 1) array or CSR matrix
        Rows; with a constant column where the intercept is penalised.
    weight : (n,) array or None
        Sample weights.
    constant : float
        The value of that column; 0 for none.
    centre : (d,) array or None
        What was subtracted from every row.
    """

    X: Any
    weight: Array | None
    constant: float = 0.0
    centre: Array | None = None

    @property
    def total(self) -> float:
        """N: the sum of the weights."""
        return float(self.X.shape[0] if self.weight is None else math.fsum(self.weight))

    @property
    def is_small(self) -> bool:
        """Whether solving to the limits of double precision costs next to nothing."""
        stored = self.X.nnz if sp.issparse(self.X) else self.X.size
        return bool(max(stored, self.X.shape[0]) <= SMALL)

    def intercept(self, solution: Any) -> float:
        """Return the intercept for the rows as they came."""
        if self.constant:
            return float(self.constant * solution.coef[-1])
        shift = 0.0 if self.centre is None else float(solution.coef @ self.centre)
        return float(solution.intercept - shift)


def with_constant(X: Any, weight: Array | None, value: float) -> Data:
    """Append a constant column, whose coefficient is a penalised intercept."""
    column = np.full((X.shape[0], 1), value, dtype=X.dtype)
    X = sp.hstack([X, column], format="csr") if sp.issparse(X) else np.hstack([X, column])
    return Data(X, weight, constant=value)


def centred(X: Any, weight: Array | None) -> Data:
    """Move dense rows to their mean if that is far from 0.

    With an intercept that is not penalised this changes nothing but the intercept. Coordinate
    ascent crawls on rows that all point the same way (100 times their spread from 0: 10⁵ epochs
    instead of 30). Sparse rows would not stay sparse.
    """
    if sp.issparse(X):
        return Data(X, weight)
    centre = X.mean(axis=0, dtype=np.float64).astype(X.dtype)
    square = float(np.einsum("ij,ij->", X, X, dtype=np.float64)) / len(X)
    distance = float(np.vdot(centre, centre))
    if distance <= 0.2 * square:
        return Data(X, weight)
    return Data(X - centre, weight, centre=centre.astype(np.float64))


def first_state(targets: Array, loss: Loss, seed: int) -> State | None:
    """Return where to begin with an intercept: regression, at a constant that fits the targets."""
    if loss.kind == "classification":
        return None
    level = loss.quantile if isinstance(loss, Quantile) else 0.5
    return State(np.zeros(len(targets)), float(np.quantile(targets, level)), 0, seed)


class Settle:
    """A callback that lets a solve go on beyond `tol` for a while."""

    def __init__(self, tol: float, callback: Callable[[Record], Any] | None) -> None:
        self._tol, self._callback = tol, callback
        self._last = math.inf

    def __call__(self, record: Record) -> bool:
        stop = self._callback is not None and bool(self._callback(record))
        if math.isinf(self._last) and record.gap <= self._tol * record.primal:
            self._last = record.epoch + EXTRA
        return stop or record.epoch >= self._last


def solve_on(X: Any, targets: Array, *, goal: float, max_epochs: int, **options: Any) -> Solution:
    """Solve; where that stalls with the intercept still on its way, go on from there.

    The duals can rest at their bounds while the multiplier of the intercept has far to go. Such a
    stall is none: the next solve begins with the best intercept for the coefficients reached.

    Parameters
    ----------
    X, targets, max_epochs, **options
        As in `solve`.
    goal : float
        The relative gap below which a stall is taken for what it is.
    """
    solution = solve(X, targets, max_epochs=max_epochs, **options)
    rounds = 0
    while (
        solution.status is Status.STALLED
        and solution.relative_gap > max(goal, 1e-15)
        and _unbalanced(solution.state.beta, options.get("sample_weight"))
        and solution.n_epochs + rounds < max_epochs
    ):
        rounds += 1  # a solve without an epoch counts as one
        start = replace(solution.state, multiplier=solution.intercept)
        left = max_epochs - solution.n_epochs - rounds
        more = solve(X, targets, max_epochs=left, **{**options, "warm_start": start})
        solution = _joined(solution, more)
    return solution


def solve_small(data: Data, targets: Array, *, goal: float, **options: Any) -> Solution:
    """Solve a small problem to its last digits: it costs a few milliseconds at most.

    The answer then depends neither on the seed nor on the order of the rows, and a row of weight 2
    is two rows to the last digits.
    """
    further = {"tol": 0.0, "callback": Settle(goal, options["callback"])}
    try:
        solution = solve_on(data.X, targets, goal=goal, **{**options, **further})
        smooth = options["loss"].smoothness > 0
        return _resolved(data, targets, solution, {**options, **further}) if smooth else solution
    except CertificateError:
        # The numbers do not allow a certificate that fine; the one asked for may well be possible.
        return solve_on(data.X, targets, goal=goal, **options)


def solve_any(data: Data, targets: Array, *, goal: float, **options: Any) -> Solution:
    """Solve; where epochs crawl, on few features, by Newton steps as well if the loss is smooth."""
    limit = options["max_epochs"]
    plain = options["l1_ratio"] == 0 and options["bounds"] is None
    few = (
        plain
        and options["loss"].smoothness > 0
        and data.X.shape[1] <= FEW
        and options["method"] == "auto"
    )
    began = time.perf_counter()
    first = {**options, "max_epochs": min(limit, STRETCH) if few else limit}
    solution = solve_on(data.X, targets, goal=goal, **first)
    if not few or solution.status not in (Status.EPOCH_LIMIT, Status.STALLED):
        return solution
    # Newton steps may take as long again as the epochs did, and a second more: where that is not
    # enough, more epochs are the better way.
    spent, allowed = time.perf_counter() - began, options["max_time"]
    left = 1.0 + spent if allowed is None else min(1.0 + spent, allowed - spent)
    solution = _resolved(data, targets, solution, options, left)
    if solution.relative_gap <= goal or solution.n_epochs >= limit:
        return solution
    rest = {**options, "max_epochs": limit - solution.n_epochs, "warm_start": solution}
    if allowed is not None:
        rest["max_time"] = max(0.0, allowed - (time.perf_counter() - began))
    return _joined(solution, solve_on(data.X, targets, goal=goal, **rest))


def _resolved(
    data: Data,
    targets: Array,
    solution: Solution,
    options: dict[str, Any],
    seconds: float = np.inf,
) -> Solution:
    """Return the solution by Newton steps from the one given, certified, if that is better."""
    strength, ratio = options["lam"] * data.total, options["l1_ratio"]
    plain = ratio == 0 and options["bounds"] is None
    corner = Corner(
        data.X,
        targets,
        np.ones(len(targets)) if data.weight is None else data.weight,
        options["loss"],
        l2=strength * (1.0 - ratio),
        l1=strength * ratio,
        fit_intercept=options["fit_intercept"],
        deadline=time.perf_counter() + seconds,
    )
    free = np.arange(len(solution.coef)) if plain else np.flatnonzero(solution.coef)
    _, beta, b = corner.newton(solution.coef, solution.intercept, free)
    start = State(beta, b, 0, solution.state.seed)
    once = {"max_epochs": 0, "callback": None, "max_time": None, "warm_start": start}
    fine = solve(data.X, targets, **{**options, **once})
    as_good = fine.gap <= solution.gap + 1e-15 * fine.primal
    return _joined(solution, fine) if as_good else solution


def _unbalanced(beta: Array, weight: Array | None) -> bool:
    """Whether Σ c_iβ_i, which is 0 once the intercept has arrived, is not."""
    alpha = beta if weight is None else weight * beta
    return abs(float(alpha.sum())) > 1e-13 * float(np.abs(alpha).sum())


def _joined(first: Solution, second: Solution) -> Solution:
    """Return the second solution with the history of both."""
    before, after = first.history, second.history
    columns = {
        f.name: np.concatenate(
            [
                getattr(before, f.name),
                getattr(after, f.name)[1:]
                + (getattr(before, f.name)[-1] if f.name in ("epoch", "updates", "seconds") else 0),
            ]
        )
        for f in fields(History)
    }
    return replace(
        second,
        history=History(**columns),
        n_epochs=first.n_epochs + second.n_epochs,
        n_updates=first.n_updates + second.n_updates,
    )
