"""Runs watched from inside: rates of the theory, rows that are drawn, what visits do to residues.

The loop is that of a solve, with all rows surveyed after each epoch. It takes no part in the
comparison of times.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.ascent.plans import AdaptiveSteps
from adasdca.backends.base import FOREVER
from adasdca.backends.cpu import LocalBackend
from adasdca.duality import theory
from adasdca.methods import AdaSDCA, AdaSDCAPlus, Method
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]
Columns = dict[str, list[Any]]

#: Relative gap at which a run is over: below, residues are rounding.
FLOOR = 1e-13
#: Most visits of a row in an epoch that are told apart, and the fewest rows that make a median.
MOST_VISITS, FEWEST = 3, 20


def watch(
    problem: Problem, method: Method, *, max_epochs: int, max_time: float, seed: int
) -> dict[str, Any]:
    """Run a method with a smooth loss, and return how it went.

    Returns
    -------
    dict
        `status`, `epochs`, `updates`, `seconds`; `theta_star`; `history`, a column a figure with
        an entry a survey, `theta`, the rate of the paper at the probabilities of the method, among
        them; `visits`, the same with an entry an epoch, empty where rows are drawn on the way:

        - `repeats`, the share of the draws that go to a row drawn before in this epoch;
        - `fell`, the share of the visited rows whose residue is smaller at the end;
        - `kept`, the median of the residues at the end over those before, of the rows visited 0,
          1, 2, 3 times (None if these are few);
        - `moved` and `left`, for option I: the total variation between the probabilities at the
          beginning, and as thinned by the visits, and those of the residues at the end.
    """
    began = time.perf_counter()
    backend = LocalBackend(problem)
    n = len(problem.y)
    backend.restart(np.zeros(n), 0.0)
    schedule = method.schedule(problem, backend.facts, 0.0, 1)
    needs = schedule.needs | {"adaptive", "residue"}
    survey = backend.survey(needs)
    assert survey is not None
    scale = {"v": survey.curvature * problem.lam * n, "lam": problem.lam}
    setting: dict[str, Any] = scale | {"gamma": survey.gamma}
    history: Columns = {name: [] for name in ("updates", "seconds", "primal", "dual", "gap")}
    history |= {"active": [], "theta": []}
    visits: Columns = {}
    status, epoch, updates = "epoch limit", 0, 0
    while True:
        assert survey is not None
        assert survey.residue is not None
        live = survey.residue.any()
        theta = _rate(method, survey.residue, setting) if live else 1.0
        spent = time.perf_counter() - began
        row = (updates, round(spent, 6), survey.primal, survey.dual, survey.gap, survey.active)
        for name, value in zip(history, (*row, theta), strict=True):
            history[name].append(value)
        if survey.relative_gap <= FLOOR or not live:
            status = "converged"
            break
        if spent > max_time or epoch == max_epochs:
            status = "time limit" if spent > max_time else status
            break
        plan = schedule.plan(survey, _core.subkey(seed, epoch))
        rows = None if isinstance(plan, AdaptiveSteps) else backend.epochs.draw(plan, FOREVER)
        updates += backend.ascend(plan)
        epoch += 1
        before, survey = survey, backend.survey(needs)
        if rows is not None:
            assert survey is not None
            found = _visits(method, rows, before, survey)
            for name, value in found.items():
                visits.setdefault(name, []).append(value)
    return {
        "status": status,
        "epochs": epoch,
        "updates": updates,
        "seconds": history["seconds"][-1],
        "theta_star": theory.theta_star(**setting),
        "history": history,
        "visits": visits,
    }


def _rate(method: Method, residue: Array, setting: dict[str, Any]) -> float:
    """Return θ(κ, p) for the probabilities from which the method draws the next row."""
    if isinstance(method, AdaSDCA) and method.rule == "optimal":
        p = theory.optimal_probabilities(residue, **setting)
    elif isinstance(method, AdaSDCA) or getattr(method, "option", "") == "I":
        p = theory.relaxed_probabilities(residue, **setting)
    else:
        p = theory.importance_probabilities(**setting)
    return theory.theta(residue, p, **setting)


def _visits(method: Method, rows: NDArray[np.int32], before: Any, after: Any) -> dict[str, Any]:
    """Return the figures of an epoch, from the surveys before and after it."""
    times = np.bincount(rows, minlength=before.n)
    had, has = np.abs(before.residue), np.abs(after.residue)
    seen = (times > 0) & (had > 0)
    kept = []
    for count in range(MOST_VISITS + 1):
        those = (times == count) & (had > 0)
        enough = those.sum() >= FEWEST
        kept.append(round(float(np.median(has[those] / had[those])), 6) if enough else None)
    found: dict[str, Any] = {
        "repeats": round(1.0 - np.count_nonzero(times) / len(rows), 6),
        "fell": round(float(np.mean(has[seen] < had[seen])), 6) if seen.any() else None,
        "kept": kept,
    }
    if isinstance(method, AdaSDCAPlus) and method.option == "I":
        assert not isinstance(method.m, str)
        thinned = before.adaptive * method.m ** -times.astype(np.float64)
        found["moved"] = _total_variation(before.adaptive, after.adaptive)
        found["left"] = _total_variation(thinned, after.adaptive)
    return found


def _total_variation(one: Array, two: Array) -> float | None:
    """Return the total variation between two distributions, given as weights."""
    if not (one.any() and two.any()):
        return None
    return round(float(0.5 * np.abs(one / one.sum() - two / two.sum()).sum()), 6)
