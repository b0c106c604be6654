"""`path`: solutions along the regularisation, each from an extrapolation of the last ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.backend import Backend
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.cuda.device import copied
from adasdca.backends.named import get_backend
from adasdca.engine.interruption import Interruption, interruption
from adasdca.engine.stop import Callback
from adasdca.errors import InputError, counted
from adasdca.frames import as_html, to_frame
from adasdca.methods import Method, get_method
from adasdca.predictor import Track
from adasdca.problem.device_rows import in_kind, is_on_device
from adasdca.problem.losses import Loss
from adasdca.problem.problem import Problem
from adasdca.screening import idle_features, idle_rows
from adasdca.solution import Solution, State, Status
from adasdca.solver import check_threads, solution_in_kind, solve_problem

Array = NDArray[np.float64]

#: Epochs before the first screening.
STRETCH = 10
#: Screening pays if at most this share of the stored values is left.
WORTHWHILE = 0.6
#: A solve that is stopped waits for a certificate of the whole problem if it takes fewer seconds.
QUICK = 0.1


@dataclass(frozen=True, repr=False)
class Path:
    """Solutions along C, from the smallest (the strongest regularisation) to the largest.

    One that was stopped by Ctrl-C or by the callback ends at the C where that happened.

    Attributes
    ----------
    Cs, lams : (k,) array
        C and lam = 1/(C·N).
    coefs : (k, d) array
        Coefficients.
    intercepts, gaps, radii : (k,) array
        Intercepts, duality gaps and radii of the coefficients.
    converged : (k,) array of bool
        Which ones reached `tol`.
    n_epochs : (k,) array of int
        Epochs spent, those on screened problems included.
    n_rows, n_features : (k,) array of int
        Rows and features left by screening.
    solutions : list of Solution
        All of it.
    """

    Cs: Array
    lams: Array
    coefs: Array
    intercepts: Array
    gaps: Array
    radii: Array
    converged: NDArray[np.bool_]
    n_epochs: NDArray[np.int64]
    n_rows: NDArray[np.int64]
    n_features: NDArray[np.int64]
    solutions: list[Solution] = field(repr=False)

    def __len__(self) -> int:
        return len(self.Cs)

    def __repr__(self) -> str:
        reached = int(np.count_nonzero(self.converged))
        return (
            f"Path({counted(len(self), 'solution')}, C {self.Cs[0]:g} to {self.Cs[-1]:g}, "
            f"{reached} converged, d={self.coefs.shape[1]})"
        )

    def to_frame(self, library: str = "pandas") -> Any:
        """Return the solutions as a data frame, a row for each C, without the coefficients.

        Parameters
        ----------
        library : {"pandas", "polars"}, default "pandas"
            Whose data frame.
        """
        columns = {
            "C": self.Cs,
            "lam": self.lams,
            "primal": [s.primal for s in self.solutions],
            "dual": [s.dual for s in self.solutions],
            "gap": self.gaps,
            "relative_gap": [s.relative_gap for s in self.solutions],
            "radius": self.radii,
            "nonzeros": np.count_nonzero(self.coefs, axis=1),
            "intercept": self.intercepts,
            "converged": self.converged,
            "n_epochs": self.n_epochs,
            "n_rows": self.n_rows,
            "n_features": self.n_features,
        }
        return to_frame(columns, library)

    def _repr_html_(self) -> str:
        figures = {
            f"C = {C:.3g}": f"objective {s.primal:.6g}, relative gap {s.relative_gap:.1e}, "
            f"{np.count_nonzero(s.coef)} coefficients not 0, {s.status.value}"
            for C, s in zip(self.Cs.tolist(), self.solutions, strict=True)
        }
        return as_html(f"Path of {counted(len(self), 'solution')}", figures)

    def plot(self, names: Any = None) -> Any:
        """Draw the coefficients along C.

        Parameters
        ----------
        names : sequence of str, optional
            Names of the features, for the legend.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from adasdca.plotting import coefficient_paths

        return coefficient_paths([("", self.Cs, self.coefs)], names)


def path(
    X: Any,
    y: Any,
    *,
    loss: str | Loss,
    Cs: Any = 10,
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
    screen: bool = True,
    callback: Callback | None = None,
    n_threads: int = 1,
    backend: str | Callable[[Problem], Backend] | None = None,
) -> Path:
    """Solve along C, each time from an extrapolation of the last solutions, with safe screening.

    Parameters
    ----------
    X, y, loss, l1_ratio, bounds, penalty_factors, sample_weight, fit_intercept, \
            intercept_scaling, method, random_state, callback, n_threads
        As in `solve`. The callback's True, as Ctrl-C, stops the whole path.
    backend : "cuda" or callable, optional
        As in `solve`; to a device X is copied once. There is no screening there.
    Cs : int or array-like, default 10
        LIBLINEAR's C, lam = 1/(C·N): the values, or how many on a logarithmic scale from 1e-4 to
        1e4.
    tol, max_epochs, max_time
        As in `solve`, for each C.
    screen : bool, default True
        Whether rows and features that provably do not matter are left out of the later epochs,
        where that makes the problem enough smaller. The certificate is that of the whole problem.

    Returns
    -------
    Path

    Examples
    --------
    >>> import adasdca
    >>> X, y = adasdca.datasets.load_mushrooms()
    >>> path = adasdca.path(X, y, loss="squared_hinge", Cs=[0.01, 0.1, 1.0], random_state=0)
    >>> bool(path.converged.all()), path.coefs.shape
    (True, (3, 112))
    """
    problem = Problem.checked(
        X,
        y,
        loss=loss,
        lam=1.0,
        l1_ratio=l1_ratio,
        bounds=bounds,
        penalty_factors=penalty_factors,
        sample_weight=sample_weight,
        fit_intercept=fit_intercept,
        intercept_scaling=intercept_scaling,
        device=backend == "cuda",
    )
    grid, threads = check_grid(Cs), check_threads(n_threads)
    # A penalised intercept is a coefficient like the others until the solutions are returned.
    posed = replace(problem, constant=0.0)
    make: Callable[[Problem], Backend] = partial(LocalBackend, n_threads=threads)
    if backend is not None:
        make = get_backend(backend)  # an unknown name is refused before anything is copied
        screen = False
    if backend == "cuda":
        posed = replace(posed, rows=copied(problem.rows))
    options: dict[str, Any] = {
        "method": method,
        "tol": tol,
        "max_epochs": max_epochs,
        "max_time": max_time,
        "callback": callback,
        "threads": threads,
        "random_state": random_state,
    }
    lams = 1.0 / (grid * problem.total)
    descents: list[Descent] = []
    solutions: list[Solution] = []
    g = problem.regularizer
    curvature = g.curvature if g.is_quadratic else None
    track = Track(problem.loss, problem.rows.shape, curvature, get_method(method))
    options["method"] = track.method
    with interruption() as around:
        for lam in lams.tolist():
            descent = Descent(replace(posed, lam=lam), make, options, around)
            try:
                around.check()
                solution = descent.run(track.start(lam * problem.total), screen)
            except KeyboardInterrupt:
                if not solutions:
                    raise
                break
            descents.append(descent)
            solutions.append(solution)
            mu = lam * problem.total
            track.learn(mu, solution.coef, solution.intercept, solution.state)
            if solution.status is Status.INTERRUPTED:
                break
        found = _gathered(problem, grid, lams, descents, solutions)
    if not is_on_device(X):
        return found
    solutions = [solution_in_kind(each, X) for each in found.solutions]
    coefs, intercepts = in_kind(found.coefs, X), in_kind(found.intercepts, X)
    return replace(found, coefs=coefs, intercepts=intercepts, solutions=solutions)


def _gathered(
    problem: Problem,
    grid: Array,
    lams: Array,
    descents: list[Descent],
    solutions: list[Solution],
) -> Path:
    """Return the solutions that there are, in the features of the caller."""
    d = problem.rows.shape[1] - bool(problem.constant)
    for k, solution in enumerate(solutions):
        coef, intercept = problem.split(solution.coef, solution.intercept)
        solutions[k] = replace(solution, coef=coef, intercept=intercept)
    return Path(
        Cs=grid[: len(solutions)],
        lams=lams[: len(solutions)],
        coefs=np.array([s.coef for s in solutions]),
        intercepts=np.array([s.intercept for s in solutions]),
        gaps=np.array([s.gap for s in solutions]),
        radii=np.array([s.radius for s in solutions]),
        converged=np.array([s.converged for s in solutions]),
        n_epochs=np.array([descent.n_epochs for descent in descents]),
        n_rows=np.array([len(descent.rows) for descent in descents]),
        n_features=np.array([int((descent.features < d).sum()) for descent in descents]),
        solutions=solutions,
    )


def check_grid(Cs: Any) -> Array:
    """Return the values of C in order, of values or of how many there are to be."""
    if isinstance(Cs, (int, np.integer)) and not isinstance(Cs, bool) and Cs > 0:
        return np.logspace(-4, 4, int(Cs))
    try:
        grid = np.unique(np.asarray(Cs, dtype=np.float64).ravel())
    except (TypeError, ValueError, OverflowError):
        grid = np.empty(0)
    if (
        isinstance(Cs, (bool, int, np.integer))
        or not len(grid)
        or not np.isfinite(grid).all()
        or grid[0] <= 0
    ):
        raise InputError(
            f"Cs = {Cs!r} is not allowed; pass finite numbers above 0, or how many of them."
        )
    return grid


class Descent:
    """The solve for one lam: stretches of epochs with screening between them.

    The first stretch has `STRETCH` epochs, several times the cost of screening, so easy problems
    are never screened. Each stretch is twice as long as the last.
    """

    def __init__(
        self,
        problem: Problem,
        backend: Callable[[Problem], Backend],
        options: dict[str, Any],
        around: Interruption,
    ) -> None:
        self.whole, self.part = problem, problem
        self.rows, self.features = (np.arange(k) for k in problem.rows.shape)
        self.backend, self.options = backend, options
        self.n_epochs = 0
        self._around = around
        self._began = time.perf_counter()
        self._last: Solution | None = None  # of the whole problem

    def run(self, start: Any, screen: bool) -> Solution:
        """Solve, and certify the whole problem."""
        try:
            solution = self._descend(start, screen)
            if self.part is self.whole:
                return solution
            if solution.status in (Status.INTERRUPTED, Status.TIME_LIMIT):
                return self._cut(solution)
            return self._solve(self.whole, self._lifted(solution.state), self._epochs_left())
        except KeyboardInterrupt:
            if self._last is None:
                raise
            return replace(self._last, status=Status.INTERRUPTED)

    def _descend(self, start: Any, screen: bool) -> Solution:
        """Solve on ever smaller parts of the problem."""
        stretch = STRETCH if screen else self.options["max_epochs"]
        while True:
            solution = self._solve(self.part, start, min(stretch, self._epochs_left()))
            if solution.status is not Status.EPOCH_LIMIT or self._epochs_left() == 0:
                return solution
            start = self._screened(solution)
            stretch *= 2

    def _epochs_left(self) -> int:
        return max(0, int(self.options["max_epochs"]) - self.n_epochs)

    def _lifted(self, state: State) -> State:
        """Return a state of the part as one of the whole problem."""
        beta = np.zeros(len(self.whole.y))
        beta[self.rows] = state.beta
        return replace(state, beta=beta)

    def _cut(self, solution: Solution) -> Solution:
        """Return the result of a solve that was stopped on a part of the problem."""
        assert self._last is not None
        spent, looks = self._last.timings, len(self._last.history)
        if spent["setup"] + spent["survey"] / looks > QUICK:
            return replace(self._last, status=solution.status)
        start = self._lifted(solution.state)
        with self._around.opened():
            whole = self._solve(self.whole, start, 0, callback=None, max_time=None)
        return replace(whole, status=solution.status)

    def _screened(self, solution: Solution) -> State:
        """Leave idle rows and features out if that makes the problem enough smaller."""
        problem, X = self.part, self.part.rows.matrix
        rows, features = ~idle_rows(problem, X, solution), ~idle_features(problem, X, solution)
        both = problem.loss.kind == "regression" or len(np.unique(problem.y[rows])) == 2
        pays = rows.mean() * features.mean() <= WORTHWHILE
        if not (pays and both and rows.any() and features.any()):
            return solution.state
        self.part = _restricted(problem, np.flatnonzero(rows), np.flatnonzero(features))
        self.rows, self.features = self.rows[rows], self.features[features]
        return replace(solution.state, beta=solution.state.beta[rows])

    def _solve(self, problem: Problem, start: Any, max_epochs: int, **limits: Any) -> Solution:
        now, left = time.perf_counter(), self.options["max_time"]
        if left is not None:
            left = max(0.0, left - (now - self._began))
        solution = solve_problem(
            problem,
            self.backend,
            warm_start=start,
            start=now,
            **{**self.options, "max_epochs": max_epochs, "max_time": left, **limits},
        )
        self.n_epochs += solution.n_epochs
        if problem is self.whole:
            self._last = solution
        return solution


def _restricted(problem: Problem, rows: NDArray[np.intp], features: NDArray[np.intp]) -> Problem:
    """Return the problem without the idle rows and features: P times N/N', the same minimiser."""
    weight = None if problem.weight is None else problem.weight[rows]
    total = float(len(rows)) if weight is None else float(weight.sum())
    part = replace(
        problem,
        rows=problem.rows.take(rows),
        y=problem.y[rows],
        weight=weight,
        lam=problem.lam * problem.total / total,
    )
    return part.restrict(features)
