"""Rows in parts: in blocks on a disk, or on workers.

Only sums leave the parts. They are added in the order of the parts, so the result is the same to
the last bit wherever the parts are and whichever answers first. The certificate is that of all
rows together, from what each part computes (`Part.examine`). u is summed in chains as long as those
of the longest part and one link more for each part.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.ascent.plans import Epoch
from adasdca.ascent.survey import Survey
from adasdca.backends.abilities import Watcher
from adasdca.backends.base import FOREVER, PlainBackend, without_rows
from adasdca.backends.part import PartFacts
from adasdca.backends.parts_term import PartsTerm
from adasdca.backends.teams import Handle, Parts, Team, columns, sums, vector_of
from adasdca.backends.workspace import certified_by, make_workspace
from adasdca.duality.certificate import Certificate
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]


@dataclass
class PartsFacts:
    """Facts about all rows together; `RowFacts` says what each is."""

    parts: list[PartFacts]
    backend: PartsBackend
    ascends, batch, central = False, 1, False

    def __post_init__(self) -> None:
        first, self.distance = self.parts[0], self.backend.parts.team.distance
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


class PartsBackend(PlainBackend):
    """A `Backend` whose rows are with a team, in parts; those of the problem are not looked at."""

    watcher: Watcher | None = None

    def __init__(self, problem: Problem, team: Team) -> None:
        self._begin(problem, Parts(team), 0)

    def _begin(self, problem: Problem, parts: Parts, space: int) -> None:
        self.problem, self.parts, self.space = problem, parts, space
        self.facts = PartsFacts(parts.ask("facts", space), self)
        self._workspace = make_workspace(without_rows(problem), pack=False)
        self._links = max(part.chain for part in self.facts.parts) + len(self.facts.parts)
        self.multiplier = 0.0
        start = Handle(parts)
        parts.ask("scatter", start.number)
        w = problem.regularizer.primal(np.zeros(self.facts.d))
        self.point: tuple[Handle | None, Array, float] = start, w, 0.0

    def scatter(self, beta: Array) -> Handle:
        """Return n numbers as a dual point."""
        duals, ends = Handle(self.parts), np.cumsum([part.n for part in self.facts.parts])
        self.parts.ask("scatter", duals.number, each=np.split(beta, ends[:-1]))
        return duals

    def place(self, duals: Handle | None, w: Array, b: float) -> None:
        """Go to a dual point, or −φ', and to a primal one that need not belong together."""
        self.point = duals, w, b
        self.multiplier = b

    def passed(self, w: Array, b: float, duals: Handle | None) -> None:
        """Pass an intermediate point on to the watcher."""
        if self.watcher is not None and self.space == 0:
            self.watcher(w, b, duals)

    def restrict(self, features: NDArray[np.intp]) -> PartsBackend:
        part = PartsBackend.__new__(PartsBackend)
        number = self.parts.number("spaces", part)
        self.parts.ask("restrict", self.space, number, features)
        part._begin(without_rows(self.problem).restrict(features), self.parts, number)
        return part

    def ascend(self, plan: Epoch, seconds: float = FOREVER) -> int:
        """Refuse: epochs that go from part to part converge far too slowly.

        (Wide sparse rows in ten blocks, logistic loss: a gap of 2e-3 after 16 epochs, where 16 of
        all rows in random order leave 4e-15; `python -m benchmarks.blocks --order`.)
        """
        raise NotImplementedError("rows in parts do not ascend; choose method='auto'.")

    def gather(self, duals: Handle) -> Array:
        return np.concatenate(self.parts.ask("gather", duals.number))

    def combine(self, duals: Handle) -> Array:
        return vector_of(self.parts.stream("combine", self.space, duals.number))

    def column_squares(self) -> Array:
        return vector_of(self.parts.stream("column_squares", self.space))

    def freedom(self, w: Array, b: float, duals: Handle) -> tuple[float, float]:
        free, residual = zip(
            *self.parts.ask("freedom", self.space, w, b, duals.number), strict=True
        )
        return math.fsum(free), math.fsum(residual)

    # -- certificates

    def survey(
        self, needs: frozenset[str], seconds: float = FOREVER, enough: float = 0.0
    ) -> Survey | None:
        """Survey all rows; None if that took longer than the seconds given."""
        deadline = time.perf_counter() + seconds
        duals, w, b = self.point
        smooth, found = self.problem.loss.smoothness > 0, []
        if duals is None or (self.problem.fit_intercept and smooth):
            # −φ' at the best intercept; it makes Σ c_iβ_i = 0 but for rounding.
            self.parts.ask("score", self.space, w)
            best = b
            if self.problem.fit_intercept:
                best = _core.root_of_balance(self._balance, b)
            if time.perf_counter() >= deadline:
                return None
            slopes = Handle(self.parts)
            heavy = sums(self.parts.ask("slopes", slopes.number, best))
            found.append((*self._examine(w, best, slopes, heavy, scored=True), best))
            if duals is None:
                self.point = slopes, w, b
        if duals is not None:
            found.append((*self._examine(w, b, duals, scored=bool(found)), b))
        if time.perf_counter() >= deadline:
            return None
        certificate, certified, moved, b = min(found, key=lambda each: each[0].gap)
        beta = self.point[0]
        one = np.ones(0)
        return Survey(
            certificate=certificate,
            n=self.facts.n,
            intercept=b,
            active=self.facts.n,
            moved=moved,
            coef=w,
            beta=beta,  # type: ignore[arg-type]  # a vector that is where the rows are
            certified=certified,  # type: ignore[arg-type]
            gamma=self.problem.loss.smoothness,
            curvature=one,
            weight=one,
        )

    def _balance(self, b: float) -> tuple[float, ...]:
        return sums(self.parts.ask("balance", b))

    def certify(self, w: Array, b: float, duals: Handle) -> Certificate:
        found = self._examine(w, b, duals)[0]
        self.passed(w, b, duals)
        return found

    def _examine(
        self,
        w: Array,
        b: float,
        duals: Handle,
        heavy: tuple[float, ...] | None = None,
        scored: bool = False,
    ) -> tuple[Certificate, Handle, int]:
        """Return a certificate, the dual point it is for, and how many duals are not 0."""
        if not self.problem.fit_intercept:
            heavy = None
        elif heavy is None:
            heavy = sums(self.parts.ask("sides", duals.number))
        regularizer = self.problem.regularizer
        found, u, lost = self._look(w, b, duals, heavy, 1.0, scored)
        if regularizer.eta > 0:
            return found
        # The largest multiple at which g*(u) is finite in spite of the rounding of u; in the worst
        # case 0.
        for share in (regularizer.feasible_share(u + np.copysign(lost, u)), 0.0):
            if math.isfinite(found[0].gap):
                break
            found, _, _ = self._look(w, b, duals, heavy, share, scored)
        return found

    def _look(
        self,
        w: Array,
        b: float,
        duals: Handle,
        heavy: tuple[float, ...] | None,
        share: float,
        scored: bool,
    ) -> tuple[tuple[Certificate, Handle, int], Array, Array]:
        """Certify a multiple of a dual point; return its u and a bound on its rounding, too."""
        out = Handle(self.parts)
        args = (self.space, duals.number, out.number, w, b, scored, heavy, share)
        u, moved, *evidence = columns(self.parts.stream("examine", *args))
        whole = np.array([*map(math.fsum, evidence[:7]), *map(max, evidence[7:])])
        # Each part has rounded its Σ c_iβ_i, which the others cancel.
        whole[5] = abs(whole[5]) + sys.float_info.epsilon * math.fsum(map(abs, evidence[5]))
        certificate = certified_by(self._workspace, self.problem, whole, w, u, self._links)
        # As the core bounds it, and a little more.
        lost = 1.01 * sys.float_info.epsilon * (self._links + 12) * whole[4] / self.problem.mu
        return (certificate, out, sum(moved)), u, lost * np.sqrt(self.problem.regularizer.metric)

    def term(
        self,
        length: float = 0.0,
        centre: Handle | None = None,
        point: tuple[Array, float] | None = None,
        reach: float | None = None,
        exact: bool = False,
    ) -> PartsTerm:
        """Return the rows' part of an objective; sums are never taken in twice the digits."""
        # Only the points of the problem itself are passed on, not those of subproblems.
        plain = length == 0 and self.problem.regularizer.is_quadratic
        watch = self.passed if plain else None
        return PartsTerm(self.parts, self.space, self.facts.n, watch, length, centre, point, reach)
