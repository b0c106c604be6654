"""Many features of which few matter: an L1 term or bounds keep the others where they rest.

The problem is solved on a working set of features, those that have left their resting place or
that the dual point would move away from it. The certificate of the whole problem is that of the
lifted point; features that it finds to be moved join the set.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.ascent.survey import Survey
from adasdca.backends.abilities import ColumnKeeper, able
from adasdca.backends.backend import Backend
from adasdca.backends.base import FOREVER
from adasdca.backends.facts import Facts
from adasdca.newton.budget import Budget
from adasdca.newton.interior import CentralPath
from adasdca.newton.linear import Best, Solver
from adasdca.newton.multipliers import Handover, Multipliers
from adasdca.newton.newton import Ending
from adasdca.newton.proximal import ColumnModels, ProximalObjective
from adasdca.problem.problem import Problem
from adasdca.problem.regularizers import Regularizer

Array = NDArray[np.float64]
#: w of all features, b, and the duals.
PointOfSet = tuple[Array, float, Any]

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


class FeatureSets:
    """A solve on one working set of features after the other.

    Parameters
    ----------
    solver : callable
        From facts to the way in which equations are solved.
    price : callable
        From facts to what rounds are predicted to cost.
    path : CentralPath, optional
        The central path of all features, where there is one; without it sets have paths.
    """

    def __init__(
        self,
        backend: Backend,
        problem: Problem,
        target: float,
        deadline: float,
        solver: Callable[[Facts], Solver],
        price: Callable[[Facts], float],
        budget: Budget,
        path: CentralPath | None = None,
    ) -> None:
        self.backend, self.problem, self.budget = backend, problem, budget
        self.target, self.deadline = target, deadline
        self._solver, self._path, self._own_paths = solver, path, path is None
        self._price = price
        self._handover = Handover(budget)
        #: What minimises a smooth loss on a set by its columns, until that is too slow. With an L2
        #: term rounds take less, unless the loss is quadratic (53 elastic nets and bounds on four
        #: wide data sets: 1.28 of the time of rounds; 32 without: 0.6).
        self._columns: ColumnKeeper | None = None
        bare = problem.loss.smoothness > 0 and problem.regularizer.eta == 0
        if problem.loss.is_quadratic or bare:
            self._columns = able(backend, ColumnKeeper)
        #: The best point that a set has led to.
        self.best: Best | None = None
        #: Sets in a row that have gained little, and what those by columns have cost.
        self._idle, self._vain = 0, 0.0
        #: What a set by columns may leave: less where the set lacks no feature, and less again
        #: where that gains little.
        self._complete, self._finer = False, 1.0

    def run(self, survey: Survey, hard: bool) -> tuple[Best, Ending]:
        """Improve a survey's point until gap ≤ target·primal or double precision shows no more.

        Parameters
        ----------
        hard : bool
            Whether the central path is gone at once, as it is where it was left before.
        """
        backend, regularizer = self.backend, self.problem.regularizer
        best = Best(survey.coef, survey.intercept, survey.certified, survey.certificate)
        w, b, duals = survey.coef, survey.intercept, survey.beta
        rest = regularizer.primal(np.zeros_like(w))
        u, size = backend.term().place(w, b).u, FIRST
        squares = backend.column_squares()
        features = np.empty(0, dtype=np.intp)
        if self._columns is not None:  # their duals are −φ'
            b, duals = self._columns.slope_point(w, b)
            u = backend.combine(duals)
            size = max(FIRST, min(backend.facts.n, len(w)) // 2)
        hard = self._path is not None and (hard or self._path.begun)
        while True:
            before, again, by_columns = best.certificate.gap, False, self._columns is not None
            spent = self.budget.spent
            if not hard:
                last, features = features, _choose(regularizer, w, u, rest, squares, size)
                again = np.array_equal(features, last)
                solve = self._by_columns if by_columns else self._by_rounds
                (w, b, duals), ending = solve(features, (w, b, duals), rest, best)
                certificate = backend.certify(w, b, duals)
                if certificate.gap < best.certificate.gap:
                    best = self.best = Best(w, b, duals, certificate)
                hard = ending is Ending.STEPS
            if hard and self._path is not None:
                # Sets are hard; all features together are not, and no set is left to be found.
                best, ending = self._path.follow(best, self.target, self.deadline, self.budget)
                self._path, (w, b, duals) = None, (best.w, best.b, best.duals)
                if self._columns is not None:
                    b, duals = self._columns.slope_point(w, b)
            hard, u = False, backend.combine(duals)
            if best.certificate.relative_gap <= self.target:
                return best, Ending.REACHED
            late = self.budget.over or time.perf_counter() >= self.deadline
            if ending is Ending.TIME or late:
                return best, Ending.TIME
            if best.certificate.gap <= 2.0 * best.certificate.rounding:
                return best, Ending.EXHAUSTED
            # The same set again has the same outcome.
            vain = ending is Ending.EXHAUSTED or again or by_columns
            self._idle = self._idle + 1 if vain and best.certificate.gap > 0.5 * before else 0
            if by_columns:
                self._judge_columns(features, u, w)
                self._vain = self._vain + self.budget.spent - spent if self._idle else 0.0
                hard = self._path is not None and self._handover.due()
                if ending is Ending.EXHAUSTED or self._rounds_cost_less(features) or hard:
                    self._columns, self._idle = None, 0
                    w, b, duals = best.w, best.b, best.duals
                    u = backend.combine(duals)
            elif self._idle >= 2:
                if self._path is None:
                    return best, Ending.EXHAUSTED
                hard = True
            size = GROWTH * max(size, int(np.count_nonzero(w != rest)))

    def _by_columns(
        self, features: NDArray[np.intp], at: PointOfSet, rest: Array, best: Best
    ) -> tuple[PointOfSet, Ending]:
        """Minimise on a set by its columns."""
        assert self._columns is not None
        budget, known = self.budget, best.certificate
        enough = max((FINE if self._complete else COARSE) * known.gap, self._goal(best))
        enough *= self._finer * self.problem.total
        most = budget.left / budget.entry if budget.entry > 0 else math.inf
        rows, w = self._columns.columns(features), at[0].copy()
        shift, value = rows.middle @ w[features], known.primal * self.problem.total
        models, start = ColumnModels(rows, most), (w[features], at[1] + float(shift), value)
        steps = ProximalObjective(rows.problem, rows, models, start, least=enough)
        ending, _ = steps.run(self.deadline)
        budget.pay(budget.entry * models.work)
        w[features], b = steps.w, steps.b - float(rows.middle @ steps.w)
        done = ending is Ending.REACHED
        if not steps.exact:  # of a loss with a model steps go on in the next set
            done |= not np.array_equal(w, at[0])
        return (w, *self._columns.slope_point(w, b)), Ending.REACHED if done else Ending.EXHAUSTED

    def _judge_columns(self, features: NDArray[np.intp], u: Array, w: Array) -> None:
        """See whether a set lacks features, or its solution digits."""
        slack = np.abs(u - self.problem.regularizer.nearest_slope(w, u))
        inside = float(slack[features].max(initial=0.0))
        slack[features] = 0.0
        # Where those of the set are farther off than all others, it is not the set that lacks.
        self._complete = float(slack.max(initial=0.0)) <= inside
        self._finer *= SHARE if self._complete and self._idle > 0 else 1.0

    def _rounds_cost_less(self, features: NDArray[np.intp]) -> bool:
        """Whether columns have cost in vain what rounds are predicted to cost on this set."""
        return self._vain > 0 and self._vain >= self._price(self.backend.restrict(features).facts)

    def _by_rounds(
        self, features: NDArray[np.intp], at: PointOfSet, rest: Array, best: Best
    ) -> tuple[PointOfSet, Ending]:
        """Minimise on a set by rounds of multipliers."""
        w, b, duals = at
        part = self.backend.restrict(features)
        part.place(duals, w[features], b)
        seen = part.survey(frozenset(), FOREVER)
        assert seen is not None
        goal = max(SHARE * best.certificate.gap, self._goal(best))
        relative = min(goal / max(seen.primal, 1e-300), 1.0)
        own = CentralPath.of(part) if self._own_paths else None
        method = Multipliers(
            part, part.problem, self._solver(part.facts), path=own, budget=self.budget
        )
        if self._path is None:
            found, ending = method.run(seen, relative, self.deadline)
        else:
            start = Best(seen.coef, seen.intercept, seen.certified, seen.certificate)
            rounds = (seen.beta, relative, self.deadline, self._handover)
            found, ending = method.rounds(start, *rounds)
        w = rest.copy()
        w[features] = found.w
        return (w, found.b, found.duals), ending

    def _goal(self, best: Best) -> float:
        """Return the gap that a set is solved to at least."""
        return 0.5 * self.target * best.certificate.primal


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
