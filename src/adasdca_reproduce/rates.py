"""Runs that were watched, beside what the theory says of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adasdca.duality.theory import adaptive_bound, importance_bound
from adasdca_reproduce.results import Problem, Results
from adasdca_reproduce.store import Record

Array = NDArray[np.float64]
EXPERIMENT = "theory"


@dataclass(frozen=True)
class Rates:
    """A method on a problem, survey by survey, up to the end of the shortest of its runs."""

    epochs: Array  #: Updates over n.
    gap: Array  #: Mean relative gap over the seeds, (P − D)/P at the optimal P.
    #: θ̃_t/θ_*: the mean of θ over the seeds weighted by the gap, over the rate of importance
    #: sampling.
    ratio: Array
    #: What the theorem for the method says of `gap`. Between surveys θ̃ is interpolated in its
    #: logarithm.
    bound: Array


def watched(results: Results, problem: Problem, method: str) -> list[Record]:
    """Return the stored runs, one a seed; none if it was not run."""
    data, loss = problem
    return [
        r
        for r in results.of(EXPERIMENT)
        if (r["data"], r["loss"], r["method"]) == (data, loss, method)
    ]


def rates(results: Results, problem: Problem, method: str) -> Rates | None:
    """Return gaps and rates of a method, and its bound; None if it was not run."""
    runs = watched(results, problem, method)
    if not runs:
        return None
    length = min(len(r["history"]["gap"]) for r in runs)
    gaps, thetas = (
        np.array([r["history"][name][:length] for r in runs]) for name in ("gap", "theta")
    )
    steps = np.array(runs[0]["history"]["updates"][:length])
    theta = (thetas * gaps).sum(axis=0) / gaps.sum(axis=0)
    best = optimum(results, problem, runs[0]["n"])
    error = max(best - runs[0]["history"]["dual"][0], 0.0)
    least = runs[0]["theta_star"]
    if method == "iprox-sdca":
        bound = importance_bound(steps, theta_star=least, dual_error=error)
    else:
        between = np.interp(np.arange(steps[-1] + 1), steps, np.log(theta))
        bound = adaptive_bound(np.exp(np.minimum(between, 0.0)), error)[steps]
    return Rates(steps / runs[0]["n"], gaps.mean(axis=0) / best, theta / least, bound / best)


def optimum(results: Results, problem: Problem, n: int) -> float:
    """Return the largest dual value that any run has certified: the optimum but for rounding."""
    data, loss = problem
    found = [
        max(r["history"]["dual"])
        for r in results.records
        if "history" in r and (r["data"], r["loss"], r["n"]) == (data, loss, n)
    ]
    return float(max(found))
