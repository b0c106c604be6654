"""Which way the equations of a step are solved: the one that costs least."""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import NDArray

from adasdca.auto.costs import FEW, Costs
from adasdca.backends.abilities import RowEquations, able
from adasdca.backends.base import Gram
from adasdca.backends.blas import cholesky
from adasdca.backends.term import RowTerm
from adasdca.newton.budget import Budget
from adasdca.newton.equations import (
    GAIN,
    ConjugateGradients,
    Equations,
    Solve,
    Step,
    solve_by_features,
    solve_formed,
)
from adasdca.newton.gradients import LOOKS, MOST_ITERATIONS
from adasdca.newton.newton import MOST_STEPS

Array = NDArray[np.float64]

#: How many times the iterations that were not enough are expected from then on.
MORE = 4.0
#: More iterations than any clock allows.
ENDLESS = 10**9
#: The share of the right-hand side that is left where a factor in few digits preconditions.
FINER = 0.1


class EquationChoice:
    """Solves the equations of a step in the way that costs least.

    Parameters
    ----------
    costs : Costs
        The prices.
    ridge : bool
        Whether the penalty is ½‖w‖²: the inner products of rows then serve all steps.
    steps : float
        Steps that are expected.
    exact : bool
        Whether the matrix of the features is to be factorised if it can be: only that way does not
        mind features of different scales.
    budget : Budget, optional
        What the steps may cost.
    tried : bool
        Whether the predicted price of iterations is trusted. Those of rounded kinks depend on where
        these are: they are tried once, and may cost as much as the next way.
    kept : list of Gram, optional
        Of a function whose curvature does not change: its matrix, once it is known.
    """

    def __init__(
        self,
        costs: Costs,
        ridge: bool,
        steps: float,
        exact: bool = False,
        budget: Budget | None = None,
        tried: bool = True,
        kept: list[Gram] | None = None,
    ) -> None:
        self.costs, self.ridge, self.steps, self.exact = costs, ridge, steps, exact
        self._tried, self.kept = tried or exact, kept
        self.budget = budget or Budget()
        self.iterations = ConjugateGradients(gain=0.0 if tried else GAIN)
        self.iterated = False  # whether the last step was
        #: The duals where it ends, if it was solved by rows and curvatures stay.
        self.ended: Array | None = None
        #: Whether the matrix of the features may have few digits, and one is for several steps.
        self._rough, self._smooth = tried and not exact and costs.rough, tried
        #: Of a matrix in few digits, maybe that of an earlier step, or phase.
        self.factor: Solve | None = None
        self._expected = costs.iterations
        #: Rows in whose unknowns a step was lost in rounding.
        self._lost = math.inf
        #: What the prices were asked for, and these, the least one first.
        self._facts: tuple[int, int, float] | None = None
        self._prices: dict[str, float] = {}

    def __call__(self, term: RowTerm, equations: Equations, deadline: float) -> Step | None:
        """Solve the equations; None if time or the budget ran out."""
        if self.budget.over:
            return None
        self.budget.pay(self.costs.step(term.curved))
        facts = term.curved, term.known, self._expected
        if facts != self._facts:
            curved, known, expected = self._facts = facts
            prices = self.costs.equations(self.steps, curved, known, self.ridge, expected)
            if self.exact and "features" in prices:
                prices["iterations"] = math.inf
            self._prices = dict(sorted(prices.items(), key=lambda item: item[1]))
        # Where a step was lost in rounding among rows, one among half as many may not be (400 x 448
        # in raw units, squared hinge: 24 steps tried both ways, 10.9 -> 7 ms).
        ways = [way for way in self._prices if way != "rows" or 2 * term.curved <= self._lost]
        if self.factor is not None or self.kept:
            ways.sort(key=lambda way: way != "features")
        elif not self._tried:
            ways.sort(key=lambda way: way != "iterations")
        for k, way in enumerate(ways):
            found = self._solve(way, ways[k + 1 :], term, equations, deadline)
            if found is not None or time.perf_counter() >= deadline:
                return found
        self.iterated = True
        return self.iterations.solve(term, equations, deadline)

    def afford(self, n: int) -> int:
        """Return how many steps on n rows may be taken in one call: 0 if features are not the way.

        They are, too, where their sums cost less than the interpreter does between two steps.
        """
        costs, d = self.costs, self.costs.facts.d
        if d > FEW or self.exact or self.budget.over:
            return 0
        solving = n * costs.gram_row + costs.rates.factor * d**3
        if solving > costs.rates.interpreter:
            prices = costs.equations(self.steps, n, 0, self.ridge, self._expected)
            if min(prices, key=prices.__getitem__) != "features":
                return 0
        # No interpreter between them: priced with it, 53 steps on 100 rows cost all patience.
        self._once = costs.pass_ + solving
        return int(min(self.budget.left / self._once, MOST_STEPS)) + 1

    def pay(self, steps: int) -> None:
        """Pay for steps that were taken in one call."""
        self.budget.pay(steps * self._once)

    def _solve(
        self,
        way: str,
        others: list[str],
        term: RowTerm,
        equations: Equations,
        deadline: float,
    ) -> Step | None:
        rows: RowEquations | None = None
        self.iterated, self.ended = way == "iterations", None
        if way == "features" and self.kept:
            self.budget.pay(self.costs.factor(self.costs.facts.d))
            return solve_formed(self.kept[0], equations, deadline)
        if way == "rows":
            rows = able(term, RowEquations)
            if rows is None or not np.all(equations.diagonal):
                return None
        if way == "features" and self._rough and equations.sample is None:
            found = self._preconditioned(term, equations, deadline)
            if found is not None or time.perf_counter() >= deadline:
                return found
        if way != "iterations":
            once = self.costs.equations(1.0, term.curved, term.known, self.ridge)
            self.budget.pay(once.get(way, 0.0))
        if rows is not None:
            found = rows.solve_by_rows(*equations[:4], deadline, equations.gradient)
            if found is None:
                self._lost = term.curved
            else:
                self.ended = rows.ended
            return found
        if way == "features" and self.kept is not None and not self._rough:
            formed = term.gram(equations.intercept, deadline)
            if formed is not None:
                self.kept.append(formed)
            return formed and solve_formed(formed, equations, deadline)
        if way == "features":
            return solve_by_features(term, equations, deadline, self._rough)
        # Iterations may cost as much as a step in another way does, and no more.
        once = self.costs.equations(1.0, term.curved, term.known, self.ridge)
        other = min((once[name] for name in others), default=math.inf)
        rival = other / self.costs.iteration
        left = rival - self.iterations.before(equations)
        self._tried = True
        enough = self.budget.left / self.costs.iteration
        # What is begun anew has lost its directions: those of a quadratic function go on to its end
        # (counts of words, 9000 x 20,601, C = 100: 44,000 iterations in 25 runs, 15,000 in one).
        whole = self.iterations.share > 0
        most = min(left, enough, ENDLESS if whole else MOST_ITERATIONS)
        # One at least: a step of none would look like one that rounding hides.
        found = self.iterations.solve(
            term, equations, deadline, max(int(most), 0) + 1, max(rival, LOOKS)
        )
        self.budget.pay(self.iterations.taken * self.costs.iteration)
        # The first step, from afar, takes more than the others; kinks are rounded more and more.
        before = self._expected if self._smooth else self.iterations.taken
        self._expected = max(0.5 * (before + self.iterations.taken), 10.0)
        # What the budget has cut short still leads down.
        cut = most == enough and self.iterations.taken > most
        if self.iterations.done or rival == math.inf or cut:
            return found
        self._expected *= MORE
        # The one step of a quadratic function is whole, and next to kinks another way pays.
        return None if self.iterations.share > 0 or not self._smooth else found

    def _preconditioned(self, term: RowTerm, equations: Equations, deadline: float) -> Step | None:
        """Iterate with the factor of an earlier step's matrix, or of this one's, in few digits.

        None if it is too far from the matrix that is meant.
        """
        costs, iterations = self.costs, self.iterations
        rival = costs.by_features(term.curved) / costs.iteration
        finer = ConjugateGradients(accuracy=FINER, share=iterations.share)
        for fresh in (False, True):
            if fresh:
                formed = term.gram(equations.intercept, deadline, rough=True)
                if formed is None:
                    return None
                self.budget.pay(costs.by_features(term.curved))
                if not formed.single:
                    self._rough = False
                    return solve_formed(formed, equations, deadline)
                self.factor = cholesky(formed.matrix, equations.diagonal)
            if self.factor is not None:
                most = max(int(rival), LOOKS)
                found = finer.solve(term, equations, deadline, most, factor=self.factor)
                self.budget.pay(finer.taken * costs.iteration)
                if found is None or finer.done:
                    return found
                self.factor = None
        self._rough = False  # rows far from 0, without an intercept, have no digits in it
        return None
