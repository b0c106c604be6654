"""Rows in parts: in blocks on a disk, or on workers.

Only sums leave the parts. They are added in the order of the parts, so the result is the same to
the last bit wherever the parts are and whichever answers first. The certificate is that of all
rows together, from what each part computes (`Part.examine`). u is summed in chains as long as those
of the longest part and one link more for each part.
"""

from __future__ import annotations

import math
import sys
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.backend import Backend, Seen
from adasdca.backends.facts import Facts
from adasdca.backends.part import PartFacts
from adasdca.backends.parts_term import PartsTerm
from adasdca.backends.teams import Handle, Parts, Team, columns, sums, vector_of
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]


class PartsFacts(Facts):
    """Facts about all rows together."""

    def __init__(self, parts: list[PartFacts], backend: PartsBackend) -> None:
        self.parts, self.backend = parts, backend
        first, self.distance = parts[0], backend.parts.team.distance
        self.d, self.dense, self.entry_bytes = first.d, first.dense, first.entry_bytes
        self.n = sum(part.n for part in self.parts)
        self.stored = sum(part.stored for part in self.parts)
        self.squared_length = self._mean("squared_length")
        self.shared = self._mean("shared")

    def _mean(self, name: str) -> float:
        return math.fsum(part.n * getattr(part, name) for part in self.parts) / self.n

    @cached_property
    def column_shares(self) -> Array:
        shares = self.backend.parts.ask("column_shares", self.backend.space)
        longest = max(len(share) for share in shares)
        total = np.zeros(longest)
        for part, share in zip(self.parts, shares, strict=True):
            total[: len(share)] += part.n / self.n * share
        return total


class PartsBackend(Backend):
    """A `Backend` whose rows are with a team, in parts; those of the problem are not looked at.

    It does not ascend: epochs that go from part to part converge far too slowly. (Wide sparse rows
    in ten blocks, logistic loss: a gap of 2e-3 after 16 epochs, where 16 of all rows in random
    order leave 4e-15; `python -m benchmarks.blocks --order`.)
    """

    def __init__(self, problem: Problem, team: Team) -> None:
        self._join(problem, Parts(team), 0)

    facts: PartsFacts

    def _join(self, problem: Problem, parts: Parts, space: int) -> None:
        self.parts, self.space = parts, space
        self.facts = PartsFacts(parts.ask("facts", space), self)
        chains = [part.chain for part in self.facts.parts]
        self._begin(problem, max(chains) + len(chains))
        self.beta = Handle(parts)
        parts.ask("scatter", self.beta.number)

    def scatter(self, beta: Array) -> Handle:
        duals, ends = Handle(self.parts), np.cumsum([part.n for part in self.facts.parts])
        self.parts.ask("scatter", duals.number, each=np.split(beta, ends[:-1]))
        return duals

    def passed(self, w: Array, b: float, duals: Handle | None) -> None:
        if self.space == 0:
            super().passed(w, b, duals)

    def restrict(self, features: NDArray[np.intp]) -> PartsBackend:
        part = PartsBackend.__new__(PartsBackend)
        number = self.parts.number("spaces", part)
        self.parts.ask("restrict", self.space, number, features)
        part._join(self.problem.without_rows().restrict(features), self.parts, number)
        return part

    def gather(self, duals: Handle) -> Array:
        return np.concatenate(self.parts.ask("gather", duals.number))

    def combine(self, duals: Handle) -> Array:
        return vector_of(self.parts.stream("combine", self.space, duals.number))

    def column_squares(self) -> Array:
        return vector_of(self.parts.stream("column_squares", self.space))

    def freedom(self, w: Array, b: float, duals: Handle) -> tuple[float, float]:
        free, residual = sums(self.parts.ask("freedom", self.space, w, b, duals.number))
        return free, residual

    # -- what surveys ask

    def _scores(self, w: Array) -> Array:
        """Return w: the parts store scores where they need them."""
        return w

    def _score(self, w: Array) -> None:
        """Let the parts store the scores of w, unless these are the last that they have stored."""
        if not self._is_scored(w):
            self.parts.ask("score", self.space, w)
            self.parts.scored = self.space, w

    def _is_scored(self, w: Array) -> bool:
        space, scored = self.parts.scored
        return space == self.space and scored is w

    def _balance(self, scores: Array, b: float) -> tuple[float, float, float]:
        self._score(scores)
        total, mass, curvature = sums(self.parts.ask("balance", b))
        return total, mass, curvature

    def _slopes(self, scores: Array, b: float) -> Handle:
        self._score(scores)
        slopes = Handle(self.parts)
        slopes.figures = sums(self.parts.ask("slopes", slopes.number, b))
        return slopes

    def _figures_of(self, duals: Handle) -> tuple[float, ...]:
        """Return the sides of a dual point, and how many duals are not 0."""
        if not duals.figures:
            duals.figures = sums(self.parts.ask("sides", duals.number))
        return duals.figures

    def _sides(self, duals: Handle) -> tuple[float, float]:
        up, down, _ = self._figures_of(duals)
        return up, down

    def _moved(self, duals: Handle) -> int:
        return int(self._figures_of(duals)[2])

    def _look(
        self, w: Array, b: float, scores: Array, duals: Handle, shares: tuple[float, float]
    ) -> Seen:
        out = Handle(self.parts)
        args = (self.space, duals.number, out.number, w, b, self._is_scored(scores), shares)
        u, *evidence = columns(self.parts.stream("examine", *args))
        whole = np.array([*map(math.fsum, evidence[:7]), *map(max, evidence[7:])])
        # Each part has rounded its Σ c_iβ_i, which the others cancel.
        whole[5] = abs(whole[5]) + sys.float_info.epsilon * math.fsum(map(abs, evidence[5]))
        return Seen(whole, u, out)

    def term(
        self,
        length: float = 0.0,
        centre: Handle | None = None,
        point: tuple[Array, float] | None = None,
        reach: float | None = None,
        exact: bool = False,
    ) -> PartsTerm:
        self.parts.scored = -1, None  # a part that is lost from here on comes back without
        # Only the points of the problem itself are passed on, not those of subproblems.
        plain = length == 0 and self.problem.regularizer.is_quadratic
        watch = self.passed if plain else None
        return PartsTerm(self.parts, self.space, self.facts.n, watch, length, centre, point, reach)
