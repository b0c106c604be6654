"""What the steps of a solve cost on a problem, so that `auto` can choose between them.

Costs are nanoseconds by rates of this package's kernels (`Rates`), which microbenchmarks measure
(`calibration`). The published ones are in force by default and no clock is read, so that the same
seed takes the same path on every run.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from adasdca import _core
from adasdca.auto.rates import current
from adasdca.backends.facts import Facts
from adasdca.problem.losses import Loss

#: Bytes that stay close to a core.
CACHE = 2**24
#: A vector of features of more bytes than this is not at hand: an entry of a sparse row then takes
#: so many times as long, and a feature itself so many times an entry in a pass and in an iteration
#: (62,061 features, 80 entries a row: a survey takes 3.5 ms, without these 1.0 was predicted).
NEAR, SCATTERED, FEATURE, FEATURES = 2**17, 3.0, 15.0, 30.0
#: The largest system that is factorised: about 1.5 s, and 200 MB.
MOST_UNKNOWNS = 5000
#: Most features of Newton steps that are taken in one call.
FEW = 64
#: Rows a feature, least and most, whose curvature is enough for a Newton step where it changes
#: smoothly: such steps are as many as full ones, or two more (cov1 logistic: 299 -> 200 ms).
SAMPLE = 300, 600
#: The share of a matrix of dense rows, and of its factor, that they take in single precision; the
#: iterations that it then preconditions (33 such problems: 1 to 5; C = 100 on raw pixels: 14), and
#: those of a later step that it serves, more where rows are few and curvature changes more (5 to 8
#: with 16 rows a feature and more, 15 with 4).
SINGLE, REFINING, STALE, FEWER = 0.5, 2.0, 5.0, 40.0
#: Passes over the rows that conjugate gradients take for a step, if nothing better is known.
ITERATIONS = 160.0


class Costs:
    """What the steps of a solve cost on a problem, in nanoseconds by the rates in force.

    Attributes
    ----------
    iterations : float
        Passes over the rows that conjugate gradients are predicted to take for a step.
    rough : bool
        Whether matrices of dense rows are in single precision, one for all steps.
    """

    def __init__(self, facts: Facts, loss: Loss) -> None:
        self.rates = rates = current()
        self.rough = False
        self.facts = facts
        self._command, self._number, self._share = facts.distance
        # Of rows in several places, those of one, and a vector of features to and from all.
        n, d, stored = self._share * facts.n, facts.d, self._share * facts.stored
        travel = self._command + self._number * d
        entry = rates.dense_entry if facts.dense else rates.sparse_entry
        # Conjugate gradients read dense rows once for both products.
        twice = max(2 * entry, rates.byte * facts.entry_bytes)
        if facts.entry_bytes * stored > CACHE:
            entry = max(entry, rates.byte * facts.entry_bytes)
        if not facts.dense and 8 * d > NEAR:
            # Of the entries, as many as of the features are far.
            far = 1.0 - NEAR / (8.0 * d)
            entry = max(entry, (1.0 + (SCATTERED - 1.0) * far) * rates.sparse_entry)
        vector = rates.sparse_entry * d
        transcendental = rates.transcendental if loss.curvature_varies else 0.0
        # Surveys take the losses of many rows at once, updates one after the other.
        self.survey = 2 * entry * stored + (rates.row + 0.1 * transcendental) * n
        self.survey += FEATURE * vector + 3.0 * travel
        self.update = 2 * entry * stored / n + rates.update + transcendental
        self.draw_adaptive, self.draw_permutation = rates.draw, rates.shuffle
        if 8 * stored + 64 * n > CACHE:
            # Rows in random order come from memory.
            self.update += 15.0
            self.draw_adaptive += 8.0
        #: Scores of all rows, and a sum of them.
        self.pass_ = 2 * entry * stored + (0.75 * rates.row + 0.1 * transcendental) * n
        self.pass_ += FEATURE * vector + travel
        # A Newton step beside its equations: such a pass, and vectors of n numbers for slopes,
        # curvatures and the line search (about 15 to 22 ns a row). Steps in one call of the core
        # have these at hand (20,640 x 8: 0.15 to 0.2 ms).
        self._step = self.pass_ + 2.0 * self._command
        if d > FEW:
            self._step += 1.5 * rates.row * n
        #: Outside of kernels (146 x 236: about 130 us beside the equations).
        self.between = (1.0 if d <= FEW else 6.0) * rates.interpreter
        #: An iteration of conjugate gradients, in unknowns of the rows where these are fewer.
        self.iteration = self.pass_ - 0.1 * transcendental * n + 0.3 * rates.interpreter
        if facts.n >= d or not loss.is_quadratic:
            self.iteration += (FEATURES - FEATURE) * vector
        if facts.dense:
            self.iteration -= max(2 * entry - twice, 0.0) * stored

        self.iterations = ITERATIONS
        # Rows whose curvature a Newton step looks at.
        few, many = SAMPLE[0] * d, SAMPLE[1] * d
        varies = loss.curvature_varies and 4 * few <= facts.n
        self.sample = min(max(facts.n // 8, few), many) if varies else None

    @cached_property
    def gram_row(self) -> float:
        """A row of the Gram matrix of the features."""
        facts = self.facts
        if facts.dense:
            return float(self.rates.dense_pair * facts.squared_length)
        shares = np.ascontiguousarray(facts.column_shares)
        pairs = _core.gram_pairs(shares, facts.squared_length, facts.d)
        return self.rates.sparse_pair * pairs

    @cached_property
    def product(self) -> float:
        """An inner product of two rows, both triangles of their matrix counted."""
        facts = self.facts
        if facts.dense:
            return self.rates.dense_pair * facts.d
        # Half of one, and the copy by columns.
        return float(self.rates.product * (0.5 * facts.shared + 2.0 * facts.stored / facts.n**2))

    def factor(self, m: int) -> float:
        """Price a factorisation of m unknowns."""
        return self.rates.factor * float(m) ** 3 + 20000.0

    def epoch(self, updates: int, adaptive: bool, rounds: int = 1) -> float:
        """Survey, plan and ascent of an epoch, if there is a survey after every so many."""
        if not self.facts.ascends:
            return math.inf
        if self.facts.batch > 1:
            return self.survey + self.rates.batch * updates / self.facts.batch
        draw = self.draw_adaptive if adaptive else self.draw_permutation
        return (self.rates.interpreter + self.survey) / rounds + updates * (self.update + draw)

    def equations(
        self,
        steps: float,
        active: int,
        known: int = 0,
        ridge: bool = True,
        iterations: float | None = None,
    ) -> dict[str, float]:
        """Return the prices of the ways to solve the equations of so many Newton steps.

        Parameters
        ----------
        ridge : bool
            Whether the diagonal is the same for all features and steps.
        iterations : float
            Conjugate gradients of a step; those predicted by default.
        """
        d = self.facts.d
        if iterations is None:
            iterations = self.iterations
        prices = {"iterations": steps * iterations * self.iteration}
        if d <= MOST_UNKNOWNS:
            prices["features"] = self.by_features(active, steps)
        if active <= MOST_UNKNOWNS and known <= MOST_UNKNOWNS:
            # A step takes the matrix out of the known one, and two more passes.
            step = self.factor(active) + 3.0 * active**2 + self.pass_
            new = max(active - known, 0) * (active + known) * self.product
            if not ridge:
                # Its diagonal changes from step to step, and so do the inner products.
                step, new = step + 2.0 * active**2 * self.product, 0.0
            prices["rows"] = new + steps * step
        return prices

    def by_features(self, active: int, steps: float = 1.0, rough: bool = True) -> float:
        """Price the equations of steps by features, with so many rows of curvature."""
        facts, price = self.facts, self._matrix(min(active, self.sample or active))
        if not (rough and self.rough and facts.dense and facts.batch == 1 and facts.d > FEW):
            return steps * price
        if self.sample is not None:
            return steps * (SINGLE * price + REFINING * self.iteration)
        later = (steps - 1.0) * (STALE + FEWER * facts.d / facts.n)
        return SINGLE * price + (REFINING + later) * self.iteration

    def _matrix(self, active: int) -> float:
        """Price the matrix of the features, of so many rows with curvature, and its factor."""
        d = self.facts.d
        price = self._share * active * self.gram_row + self.factor(d)
        return price + self._command + self._number * d**2

    @cached_property
    def model(self) -> float:
        """A proximal step by a matrix of its own."""
        facts = self.facts
        single = facts.dense and facts.batch == 1 and facts.d > FEW
        matrix = (SINGLE if single else 1.0) * self._matrix(facts.n)
        return self.between + self._step + matrix

    def step(self, active: int) -> float:
        """Price a Newton step beside its equations, on a set of rows with so many of curvature.

        Sets are about twice as large.
        """
        share = min(2.0 * active / self.facts.n, 1.0)
        return self.between + share * self._step

    def path_step(self, ridge: bool = True) -> float:
        """Price a step along the central path, of all rows; inf where there is none."""
        if not self.facts.central:
            return math.inf
        n = self.facts.n
        prices = self.equations(1.0, n, n, ridge)
        prices.pop("iterations", None)
        if "features" in prices:
            prices["features"] = self.by_features(n, rough=False)
        # The steps that a factorisation serves are passes, and hundreds of vectors of n numbers,
        # of d too where coefficients have bounds or kinks (50,000 x 22: 0.6 us a row).
        variables = n if ridge else n + self.facts.d
        rest = 6.0 * self.pass_ + 35.0 * self.rates.row * variables + 40.0 * self.rates.interpreter
        return min(prices.values(), default=math.inf) + rest

    def newton(self, steps: float, active: int, known: int = 0) -> float:
        """Newton steps with so many rows of curvature, and the survey that judges them."""
        step = self.between + self._step
        solving = min(self.equations(steps, active, known).values())
        return self.rates.interpreter + self.survey + steps * step + solving
