"""Many features of which few matter: an L1 term or bounds keep the others where they rest.

The problem is solved on a working set of features, those that have left their resting place or
that the dual point would move away from it. The certificate of the whole problem is that of the
lifted point; features that it finds to be moved join the set.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from adasdca.ascent.survey import Survey
from adasdca.backends.abilities import ColumnDescender, able
from adasdca.backends.base import FOREVER, Backend, Facts
from adasdca.newton.budget import Budget
from adasdca.newton.interior import CentralPath
from adasdca.newton.linear import Best, Solver
from adasdca.newton.multipliers import Handover, Multipliers
from adasdca.newton.newton import Ending
from adasdca.problem.problem import Problem
from adasdca.problem.regularizers import Regularizer

Array = NDArray[np.float64]

#: Most features of the first set, if no more have moved. (As many as there are rows: the first
#: rounds are harder then, dorothea, hinge, C = 1, elastic net: 2.1 -> 5.6 s.)
FIRST = 200
#: Features of a set for each one that has moved or is moved: the others are those that move next.
BESIDE = 1.25
#: The set may grow by this factor, and shrinks to what has moved.
GROWTH = 2
#: How exactly a set is solved, in units of the whole problem's gap.
SHARE = 0.1
#: The same where coordinates descend, which go on from set to set at no price: while the set lacks
#: features, and where it has them.
COARSE, FINE = 0.3, 0.01
#: Sets in a row that may leave more than half of the gap: they grow twofold, and cover all by then.
PATIENCE = 20


def solve_on_features(
    backend: Backend,
    problem: Problem,
    survey: Survey,
    target: float,
    deadline: float,
    solver: Callable[[Facts], Solver],
    budget: Budget,
    path: CentralPath | None = None,
    hard: bool = False,
) -> tuple[Best, Ending]:
    """Improve a survey's point until gap ≤ target·primal or double precision shows no more.

    Parameters
    ----------
    solver : callable
        From facts to the way in which equations are solved.
    path : CentralPath, optional
        The central path of all features, where there is one; without it sets have paths.
    hard : bool
        Whether it is gone at once, as it is where it was left before.
    """
    regularizer = problem.regularizer
    best = Best(survey.coef, survey.intercept, survey.certified, survey.certificate)
    w, b, duals = survey.coef, survey.intercept, survey.beta
    rest = regularizer.primal(np.zeros_like(w))
    u = backend.term().place(w, b).u
    squares = backend.column_squares()
    size, idle, finer, whole = FIRST, 0, 1.0, False
    features = np.empty(0, dtype=np.intp)
    handover = Handover(budget)
    descends = able(backend, ColumnDescender) if problem.loss.is_quadratic else None
    if descends is not None:  # their duals are the residuals
        b, duals = descends.slope_point(w, b)
        u = backend.combine(duals)
        size = max(FIRST, min(backend.facts.n, len(w)) // 2)
    hard, own_paths = path is not None and (hard or path.begun), path is None
    while True:
        before, again = best.certificate.gap, False
        if not hard:
            last, features = features, _choose(regularizer, w, u, rest, squares, size)
            again = np.array_equal(features, last)
            if descends is not None:
                share = (FINE if whole else COARSE) * best.certificate.gap
                enough = max(share, 0.5 * target * best.certificate.primal)
                enough *= finer * problem.total
                most = budget.left / budget.entry if budget.entry > 0 else math.inf
                (w, b, duals), done, work = descends.descend_columns(
                    features, (w, b, duals), enough, most, deadline
                )
                budget.pay(budget.entry * work)
                ending = Ending.REACHED if done else Ending.EXHAUSTED
            else:
                part = backend.restrict(features)
                part.place(duals, w[features], b)
                seen = part.survey(frozenset(), FOREVER)
                assert seen is not None
                goal = max(SHARE * best.certificate.gap, 0.5 * target * best.certificate.primal)
                relative = min(goal / max(seen.primal, 1e-300), 1.0)
                own = CentralPath.of(part) if own_paths else None
                own_solver = solver(part.facts)
                method = Multipliers(part, part.problem, own_solver, path=own, budget=budget)
                if path is None:
                    found, ending = method.run(seen, relative, deadline)
                else:
                    start = Best(seen.coef, seen.intercept, seen.certified, seen.certificate)
                    found, ending = method.rounds(start, seen.beta, relative, deadline, handover)
                w = rest.copy()
                w[features] = found.w
                b, duals = found.b, found.duals
            certificate = backend.certify(w, b, duals)
            if certificate.gap < best.certificate.gap:
                best = Best(w, b, duals, certificate)
            hard = ending is Ending.STEPS
        if hard and path is not None:
            # Sets are hard; all features together are not, and no set is left to be found.
            best, ending = path.follow(best, target, deadline, budget)
            path, (w, b, duals) = None, (best.w, best.b, best.duals)
        hard, u = False, backend.combine(duals)
        if best.certificate.relative_gap <= target:
            return best, Ending.REACHED
        late = budget.over or time.perf_counter() >= deadline
        if ending is Ending.TIME or late:
            return best, Ending.TIME
        if best.certificate.gap <= 2.0 * best.certificate.rounding:
            return best, Ending.EXHAUSTED
        # The same set again has the same outcome.
        vain = ending is Ending.EXHAUSTED or again or descends is not None
        idle = idle + 1 if vain and best.certificate.gap > 0.5 * before else 0
        if descends is not None:
            slack = np.abs(u - regularizer.nearest_slope(w, u))
            inside = float(slack[features].max(initial=0.0))
            slack[features] = 0.0
            # Where those of the set are farther off than all others, it is not the set that lacks.
            whole = float(slack.max(initial=0.0)) <= inside
            finer *= SHARE if whole and idle > 0 else 1.0
            if ending is Ending.EXHAUSTED or idle >= PATIENCE:  # rounds go on
                descends, idle = None, 0
                w, b, duals = best.w, best.b, best.duals
                u = backend.combine(duals)
        elif idle >= 2:
            if path is None:
                return best, Ending.EXHAUSTED
            hard = True
        size = GROWTH * max(size, int(np.count_nonzero(w != rest)))


def _choose(
    regularizer: Regularizer, w: Array, u: Array, rest: Array, squares: Array, size: int
) -> NDArray[np.intp]:
    """Return the features that have moved, those that the duals move, and some that they move next.

    With all that do not rest at 0, since scores without them would be others.

    Feature j stays at rest while u_j is in ∂g_j(rest), and moves of the duals by δ move u_j by
    |x_j||δ| at most: what u_j has left, over |x_j|, is how far the duals may move. It is below 0
    where they move it already.
    """
    moved = (w != rest) | (rest != 0)
    low = regularizer.nearest_slope(rest, np.full_like(u, -np.inf))
    high = regularizer.nearest_slope(rest, np.full_like(u, np.inf))
    room = np.full_like(u, np.inf)
    np.divide(np.minimum(u - low, high - u), np.sqrt(squares), out=room, where=squares > 0)
    room[moved] = -np.inf
    most = max(size, GROWTH * int(np.count_nonzero(moved)))
    count = min(math.ceil(BESIDE * max(int(np.count_nonzero(room < 0)), 1)), most, len(w))
    return np.sort(np.argpartition(room, count - 1)[:count])
