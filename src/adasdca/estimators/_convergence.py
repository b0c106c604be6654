"""What to tell the user about a fit that did not reach its tolerance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adasdca.duality.certificate import in_figures, in_percent, relative_gap
from adasdca.solution import History, Status

#: How a fit ended that is not what was asked for.
ENDS = {
    Status.EPOCH_LIMIT: "reached max_iter before it converged",
    Status.TIME_LIMIT: "reached max_time before it converged",
    Status.STALLED: "made no more progress before it converged",
    Status.INTERRUPTED: "was interrupted before it converged",
    Status.CONVERGED: "converged",
}


def reached(solution: Any, tol: float) -> bool:
    """Whether a solve reached tol; with tol = 0, the limits of double precision."""
    return solution.status is Status.CONVERGED or (tol == 0 and solution.status is Status.STALLED)


def adopt(model: Any, solutions: list[Any], tol: float) -> None:
    """Set what a fit says of its solves: of several a list, or an array of numbers."""
    one = len(solutions) == 1
    gaps, radii = ([getattr(s, name) for s in solutions] for name in ("gap", "radius"))
    model.dual_gap_, model.radius_ = (
        (float(gaps[0]), float(radii[0])) if one else (np.array(gaps), np.array(radii))
    )
    model.history_ = solutions[0].history if one else [s.history for s in solutions]
    model.certificate_ = solutions[0].certificate if one else [s.certificate for s in solutions]
    model.converged_ = all(reached(s, tol) for s in solutions)


def starts_of(model: Any, count: int, n: int) -> list[Any]:
    """Return the states of the last fit if they fit this one: as many, and no more rows."""
    states = getattr(model, "_states", None) if getattr(model, "warm_start", False) else None
    if states is None or len(states) != count or any(len(s.beta) > n for s in states):
        return [None] * count
    return list(states)


def epochs_to_go(history: History, tol: float) -> int | None:
    """Estimate the epochs still needed from the rate of the last surveys; None if there is none."""
    count = max(3, len(history) // 2)
    gap, epoch = history.gap[-count:], history.epoch[-count:]
    goal = tol * history.primal[-1]
    if len(gap) < 3 or goal <= 0 or (gap <= 0).any() or epoch[-1] == epoch[0]:
        return None
    rate = float(np.polyfit(epoch, np.log(gap), 1)[0])
    if rate >= 0:
        return None
    return max(1, math.ceil(math.log(goal / gap[-1]) / rate))


def convergence_warning(
    owner: str, solutions: list[Any], names: list[str], tol: float, max_iter: int
) -> str:
    """Return the warning for the solve farthest from its tolerance."""
    gaps = [relative_gap(s.gap, s.primal) for s in solutions]
    worst = int(np.argmax(gaps))
    solution, gap = solutions[worst], gaps[worst]
    failed = sum(not reached(s, tol) for s in solutions)
    which = (
        f" ({failed} of {len(solutions)} solves; the worst is{names[worst]})"
        if names[worst]
        else ""
    )
    ended = (
        f"{owner} {ENDS[solution.status]}{which}: relative duality gap {gap:.2g}, asked {tol:.2g}."
    )
    # No objective here is below 0, so a larger share says nothing.
    meaning = "How far the objective is above its minimum is not known yet"
    if gap < 1.0:
        meaning = f"At most {in_percent(gap)} of the objective can still be gained"
    if math.isinf(solution.radius):
        meaning += "; nothing bounds how far the coefficients are from the exact ones."
    else:
        meaning += (
            f"; the exact coefficients are within {in_figures(solution.radius, 2)} of these, "
            f"whose length is {in_figures(float(np.linalg.norm(solution.coef)), 2)}."
        )
    words = [ended, meaning]
    if solution.status is Status.STALLED:
        return " ".join([*words, solution.message])
    more = epochs_to_go(solution.history, tol)
    if more is None:
        words.append("The last epochs show no rate to count on:")
    else:
        total = solution.n_epochs + more
        words.append(f"At the rate observed about {more} more epochs would do ({total} in all):")
    limit = "max_time" if solution.status is Status.TIME_LIMIT else "max_iter"
    now = f" (now {max_iter})" if limit == "max_iter" else ""
    words.append(
        f"raise {limit}{now}, raise tol, scale the features, or continue with warm_start=True."
    )
    return " ".join(words)
