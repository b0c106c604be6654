"""Rows on a device: their targets, weights and duals stay there.

What is done to rows is `Products` and `Passes`, whatever these are. Epochs are of mini-batches, and
only there for losses with kinks on sparse rows: smooth losses need a few second-order steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from adasdca.ascent.plans import Epoch
from adasdca.backends.backend import Backend
from adasdca.backends.cuda.epochs import DeviceEpochs
from adasdca.backends.cuda.products import BatchProducts, Products, Told
from adasdca.backends.cuda.term import DeviceTerm, Others
from adasdca.backends.facts import KnownFacts
from adasdca.backends.passes import Passes
from adasdca.backends.working_set import has_room, within_reach
from adasdca.problem.device_rows import to_host
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: Share of the rows up to which those near their kinks are copied for a round.
FEW = 0.3


class DeviceBackend(Backend):
    """The `Backend` of rows on a device, or wherever their products and passes are made."""

    rows: Products

    def __init__(
        self, problem: Problem, rows: Products, passes: Passes, told: Told | None = None
    ) -> None:
        super().__init__(problem, rows, passes)
        self._told, self._epochs = told, None
        if isinstance(self.facts, KnownFacts):
            kinked = problem.loss.smoothness == 0
            if self.facts.ascends and kinked and problem.regularizer.is_ridge:
                epochs = DeviceEpochs(
                    problem,
                    cast(BatchProducts, rows),
                    passes,
                    self.facts.counts,
                    self._curvature,
                )
                self._epochs = epochs if epochs.pays else None
            batch = self._epochs.height if self._epochs else 1
            self.facts = replace(self.facts, ascends=self._epochs is not None, batch=batch)

    def short_of_memory(self, error: MemoryError) -> MemoryError:
        return error if self._told is None else self._told(error)

    def _chains(self) -> tuple[Any, int]:
        return self.rows.sizes, self.rows.chain

    def _first_sums(self, factors: Array) -> tuple[Any, Any]:
        return self.rows.begin(self._weight, factors)

    def ascend(self, plan: Epoch, seconds: float) -> int:
        """Carry a plan out in mini-batches, for at most about that many seconds."""
        assert self._epochs is not None
        duals, b, visits = self._epochs.ascend(plan, self.beta, self.b, seconds)
        self.place(duals, self.problem.regularizer.primal(self.combine(duals)), b)
        return visits

    def _figures(self, needs: frozenset[str], scores: Any, b: float) -> dict[str, Any]:
        figures = {"curvature": self._curvature, "weight": self._weight}
        if self._epochs is None or "adaptive" not in needs:
            return figures
        active, effective_share = self._epochs.look(scores, b, self.beta)
        return {**figures, "active": active, "effective_share": effective_share}

    def kept(self, duals: Any) -> Callable[[], Array]:
        return lambda: np.asarray(to_host(duals))

    def term(
        self,
        length: float = 0.0,
        centre: Any = None,
        point: tuple[Array, float] | None = None,
        reach: float | None = None,
        exact: bool = False,
    ) -> DeviceTerm:
        """Return the rows' part of an objective.

        Where it begins at a point, rows that are far from their kinks there, and whose duals are
        right about it, keep their duals and are left out.
        """
        found = None if point is None else self._working_set(length, centre, *point, reach)
        return found or DeviceTerm(self.at, length, centre, self._known)

    def _working_set(
        self, length: float, centre: Any, w: Array, b: float, reach: float | None
    ) -> DeviceTerm | None:
        """Return the term of the rows near their kinks; None if they are many."""
        problem, passes, (n, d) = self.problem, self.passes, self.rows.shape
        scores = self._scores(w)
        away = abs(problem.loss.residual(scores + b, passes.y))
        distance = abs(away - problem.loss.dead_zone)
        distance[centre != passes.slopes(scores, b)] = 0.0
        if passes.c is not None:
            distance[passes.c == 0] = np.inf
        chosen = within_reach(distance, reach, d)
        if len(chosen) > FEW * n:
            return None
        others, weight, part = centre.copy(), self._weight[chosen], passes.part(chosen)
        others[chosen] = 0.0
        held = float((self._weight * others).sum())
        if problem.fit_intercept and not has_room(problem, part.y, weight, held):
            return None
        rows = self.rows.take_rows(chosen)
        if rows is None:
            return None
        residual = float(away.sum() - away[chosen].sum())
        fixed = Others(centre, chosen, self.at.combine(others), held, residual)
        at = replace(self.at, rows=rows, passes=part, n=len(chosen))
        return DeviceTerm(at, length, centre[chosen], (w, scores[chosen]), fixed)
