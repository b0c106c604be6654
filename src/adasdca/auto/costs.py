"""What the steps of a solve cost on a problem, so that `auto` can choose between them.

Costs are nanoseconds by rates of this package's kernels (`Rates`), which microbenchmarks measure
(`calibration`). The published ones are in force by default and no clock is read, so that the same
seed takes the same path on every run.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from adasdca.auto.rates import current
from adasdca.problem.data import DenseRows
from adasdca.problem.problem import Problem

#: Bytes that stay close to a core.
CACHE = 2**24
#: The largest system that is factorised. A factorisation cannot be interrupted: this one takes
#: about 0.3 s, and 72 MB.
MOST_UNKNOWNS = 3000
#: Rows a feature, least and most, whose curvature is enough for a Newton step where it changes
#: smoothly: such steps are as many as full ones, or two more (cov1 logistic: 299 -> 200 ms).
SAMPLE = 300, 600
#: Columns of which a row fits into one mask, in the kernel of the Gram matrix.
NARROW = 64
#: Passes over the rows that conjugate gradients take for a step.
ITERATIONS = 160


class Costs:
    """What the steps of a solve cost on a problem, in nanoseconds by the rates in force."""

    def __init__(self, problem: Problem) -> None:
        self.rates = rates = current()
        self._rows = rows = problem.rows
        self._dense = isinstance(rows, DenseRows)
        n, d = rows.shape
        stored = rows.n_stored
        entry = rates.dense_entry if self._dense else rates.sparse_entry
        size = rows.values.itemsize + (0 if isinstance(rows, DenseRows) else rows.columns.itemsize)
        if size * stored > CACHE:
            entry = max(entry, rates.byte * size)
        logistic = problem.loss.curvature_varies
        transcendental = rates.transcendental if logistic else 0.0
        # Surveys take the losses of many rows at once, updates one after the other.
        self.survey = 2 * entry * stored + (rates.row + 0.1 * transcendental) * n
        self.update = 2 * entry * stored / n + rates.update + transcendental
        self.draw_adaptive, self.draw_permutation = rates.draw, rates.shuffle
        if 8 * stored + 64 * n > CACHE:
            # Rows in random order come from memory.
            self.update += 15.0
            self.draw_adaptive += 8.0
        # A Newton step: two passes and the curvatures, beside its equations.
        self.pass_ = 2 * entry * stored + (0.75 * rates.row + 0.1 * transcendental) * n

        # Rows whose curvature a Newton step looks at.
        few, many = SAMPLE[0] * d, SAMPLE[1] * d
        self.sample = min(max(n // 8, few), many) if logistic and 4 * few <= n else n

    @cached_property
    def gram_row(self) -> float:
        """A row of the Gram matrix of the features."""
        rows = self._rows
        if isinstance(rows, DenseRows):
            return self.rates.dense_pair * float(rows.shape[1]) ** 2
        # A thousand rows tell how long they are.
        some = np.arange(0, rows.shape[0], -(-rows.shape[0] // 1024))
        squares = float(((rows.start[some + 1] - rows.start[some]) ** 2.0).mean())
        # The kernel gathers the commonest columns, in tiles of eight, into lines. As it does
        # (`core/gram.hpp`), take their best number: tiles in the line's product, the line met by
        # other entries, pairs of those, and sorting all into place; in units of a pair.
        counts = self._counts(256)
        share = np.sort(counts[0] / counts[1])[::-1]
        rest = np.append(share.sum() - np.append(0.0, share.cumsum())[: len(share) : 8], 0.0)
        tiles = np.arange(len(rest))
        every = max(rest[0], 1e-300)
        sorting = 4.0 * (tiles > 0)
        if rows.shape[1] <= NARROW:
            sorting[-1] = 1.0
        lines = 2 * tiles * (tiles + 1) + 1.3 * rest * tiles + sorting * every
        return self.rates.sparse_pair * float((lines + squares * (rest / every) ** 2).min())

    def _counts(self, most: int) -> tuple[NDArray[np.int64], int]:
        """How often features occur in about so many sparse rows, and in how many it was."""
        rows = self._rows
        assert not isinstance(rows, DenseRows)
        n = rows.shape[0]
        # Rows in runs of eight: slices of single rows would take longer than all they tell.
        begins = np.arange(0, n, max(8, -(-8 * n // most)))
        ends = np.minimum(begins + 8, n)
        runs = zip(rows.start[begins].tolist(), rows.start[ends].tolist(), strict=True)
        parts = [rows.columns[first:last] for first, last in runs]
        return np.bincount(np.concatenate(parts), minlength=1), int((ends - begins).sum())

    def _product(self, shared: float) -> float:
        """Price an inner product of two sparse rows: half of one, and the copy by columns."""
        n = self._rows.shape[0]
        return self.rates.product * (0.5 * shared + 2.0 * self._rows.n_stored / n**2)

    @cached_property
    def product(self) -> float:
        """An inner product of two rows, both triangles of their matrix counted."""
        rows = self._rows
        n, d = rows.shape
        if isinstance(rows, DenseRows):
            return self.rates.dense_pair * d
        # The features that two rows share, on average.
        counts, m = self._counts(64)
        if m < 2:
            return self._product(rows.n_stored / n)
        return self._product(float((counts * (counts - 1)).sum()) / (m * (m - 1)))

    def factor(self, m: int) -> float:
        """Price a factorisation of m unknowns."""
        return self.rates.factor * float(m) ** 3 + 20000.0

    def epoch(self, picks: int, adaptive: bool) -> float:
        """Survey, plan and ascent of an epoch."""
        draw = self.draw_adaptive if adaptive else self.draw_permutation
        return self.rates.interpreter + self.survey + picks * (self.update + draw)

    most_unknowns = MOST_UNKNOWNS

    def equations(
        self, steps: float, active: int, known: int = 0, ridge: bool = True
    ) -> tuple[str, float]:
        """Return the cheapest way to solve the equations of so many Newton steps, and its price.

        Parameters
        ----------
        steps : float
            The number of steps.
        active : int
            Rows with curvature.
        known : int
            Rows whose inner products are known.
        ridge : bool
            Whether there is a way by rows.
        """
        d = self._rows.shape[1]
        prices = {"iterations": steps * ITERATIONS * self.pass_}
        if d <= MOST_UNKNOWNS:
            prices["features"] = steps * (min(active, self.sample) * self.gram_row + self.factor(d))
        if ridge and active <= MOST_UNKNOWNS and known <= MOST_UNKNOWNS:
            new = max(active - known, 0) * (active + known) * self.product
            # A step takes the matrix out of the known one, and two more passes.
            step = self.factor(active) + 3.0 * active**2 + self.pass_
            prices["rows"] = new + steps * step
        return min(prices.items(), key=lambda item: item[1])

    def newton(self, steps: float, active: int, known: int = 0) -> float:
        """Newton steps with so many rows of curvature, and the survey that judges them."""
        step = 2 * self.rates.interpreter + self.pass_
        solving = self.equations(steps, active, known)[1]
        return self.rates.interpreter + self.survey + steps * step + solving
