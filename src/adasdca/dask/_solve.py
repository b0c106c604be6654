"""`solve` for collections of Dask."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed import Client, get_client
from numpy.typing import NDArray

from adasdca.backends.parts import PartsBackend
from adasdca.backends.teams import Handle
from adasdca.dask._blocks import Blocks
from adasdca.dask._team import DaskTeam
from adasdca.dask._worker import Task, _same_width
from adasdca.errors import InputError
from adasdca.problem.data import CsrRows
from adasdca.problem.losses import Loss, get_loss
from adasdca.problem.problem import Problem, check_bounds, check_range, check_terms
from adasdca.problem.regularizers import check_factors
from adasdca.solution import Solution
from adasdca.solver import check_threads, solve_problem

Array = NDArray[np.float64]


class DaskBackend(PartsBackend):
    """Parts on workers; their duals come to the driver only if somebody asks for them."""

    def __init__(self, problem: Problem, team: DaskTeam, duals: bool) -> None:
        self._duals = duals
        super().__init__(problem, team)

    def gather(self, duals: Handle) -> Array:
        """Return a dual point as n numbers, or nothing."""
        return super().gather(duals) if self._duals else np.empty(0)


@dataclass(frozen=True)
class Rows:
    """What is known of all rows together."""

    #: Numbers of rows and features.
    n: int
    d: int
    labels: dict[Any, float] | None  #: The weight of every label; None if there are too many.
    weight: float  #: The sum of the weights.

    def total(self, factors: dict[Any, float] | None) -> float:
        """Return N, the weights of labels multiplied by their factors."""
        if factors is None or self.labels is None:
            return self.weight
        return math.fsum(factors[label] * mass for label, mass in self.labels.items())

    @classmethod
    def of(cls, team: DaskTeam) -> Rows:
        """Add what the parts say."""
        kept = [team.summaries[k] for k in team.kept]
        if not kept:
            raise InputError("X has no rows in any block; check how the data were read.")
        _same_width({number: width for s in kept for number, width in s.blocks.items()})
        labels: dict[Any, float] | None = {}
        for summary in kept:
            if summary.labels is None or labels is None:
                labels = None
            else:
                for label, mass in summary.labels.items():
                    labels[label] = labels.get(label, 0.0) + mass
        total = math.fsum(s.weight for s in kept)
        return cls(sum(s.n for s in kept), kept[0].d, labels, total)


def find_client(client: Client | None) -> Client:
    """Return the client given, or the one that is in force."""
    if client is not None:
        return client
    try:
        return get_client()
    except ValueError as error:
        raise InputError(
            "no Dask client is known; make one first, e.g. distributed.Client(), or pass client=."
        ) from error


def make_task(
    rows: Rows,
    *,
    loss: str | Loss,
    lam: float,
    l1_ratio: float = 0.0,
    bounds: Any = None,
    penalty_factors: Any = None,
    fit_intercept: bool = False,
    positive: Any = None,
    factors: dict[Any, float] | None = None,
) -> Task:
    """Check the arguments that are not rows."""
    loss = get_loss(loss)
    lam, l1_ratio = check_terms(lam, l1_ratio, fit_intercept)
    limits = check_bounds(bounds, rows.d)
    penalties = check_factors(penalty_factors, rows.d, limits)
    total = rows.total(factors)
    if not total > 0:
        raise InputError("sample_weight is all zero; at least one weight must be above 0.")
    if positive is None and loss.kind == "classification":
        _check_classes(rows)
    check_range(lam, l1_ratio, total, penalties)
    problem = Problem(
        rows=CsrRows.none(rows.d),
        y=np.empty(0),
        weight=None,
        loss=loss,
        lam=lam,
        l1_ratio=l1_ratio,
        bounds=limits,
        fit_intercept=bool(fit_intercept),
        penalty_factors=penalties,
        whole=total,
    )
    return Task(problem, positive, factors)


def _check_classes(rows: Rows) -> None:
    if rows.labels is None or not set(rows.labels) <= {-1.0, 1.0}:
        shown = "too many" if rows.labels is None else ", ".join(map(str, sorted(rows.labels)[:5]))
        raise InputError(
            f"y holds the values {shown}; a classification loss needs the labels -1 and +1."
        )
    for label in (-1.0, 1.0):
        if not rows.labels.get(label):
            raise InputError(
                f"y holds no label {label:g} of any weight; a classification loss needs both -1 "
                "and +1."
            )


def run(
    team: DaskTeam, task: Task, start: float, duals: bool, callback: Any, **options: Any
) -> Solution:
    """Solve a problem whose rows are with a team; the options are those of `solve_problem`."""
    team.begin(task)
    return solve_problem(
        task.problem,
        lambda problem: DaskBackend(problem, team, duals),
        threads=1,
        start=start,
        callback=team.telling(callback),
        **options,
    )


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
    tol: float = 1e-4,
    max_epochs: int = 1000,
    max_time: float | None = None,
    random_state: Any = None,
    callback: Any = None,
    client: Client | None = None,
    n_parts: int | None = None,
    n_threads: int = 1,
    duals: bool = False,
    checkpoint: Any = None,
    checkpoint_every: float = 60.0,
) -> Solution:
    """Minimise a regularised risk, with a certificate, on rows that are on workers.

    Parameters
    ----------
    X : dask array, data frame or list of delayed blocks
        Blocks of rows, dense or CSR. Columns in several blocks are put together.
    y, sample_weight : dask array, series or list of delayed blocks
        Targets, and weights, in the same blocks.
    loss, lam, l1_ratio, bounds, penalty_factors, fit_intercept, tol, max_epochs, max_time, \
            random_state, callback
        As in `adasdca.solve`.
    client : distributed.Client, optional
        The cluster; by default the client in force.
    n_parts : int, optional
        Parts of the rows, runs of neighbouring blocks; by default one for each worker. The result
        depends on the blocks and on this number, in its last digits, and on nothing else.
    n_threads : int, default 1
        Threads of a worker for passes over its part.
    duals : bool, default False
        Whether the dual variables, n numbers, are to come to this process.
    checkpoint, checkpoint_every
        As in `adasdca.solve`: the last point is written, from which a solve goes on whose driver
        was killed. Its duals are in it only with `duals`.

    Returns
    -------
    Solution
        As of `adasdca.solve`. Without `duals` its `dual_coef` is empty, and so is its state.
    """
    start = time.perf_counter()
    team = DaskTeam(
        find_client(client), Blocks.of(X, y, sample_weight), n_parts, check_threads(n_threads)
    )
    rows = Rows.of(team)
    task = make_task(
        rows,
        loss=loss,
        lam=lam,
        l1_ratio=l1_ratio,
        bounds=bounds,
        penalty_factors=penalty_factors,
        fit_intercept=fit_intercept,
    )
    return run(
        team,
        task,
        start,
        duals,
        method="auto",
        tol=tol,
        max_epochs=max_epochs,
        max_time=max_time,
        random_state=random_state,
        warm_start=None,
        callback=callback,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        data=None if checkpoint is None else team.checksums(),
    )
