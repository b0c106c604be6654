"""Rows that are elsewhere: the point of a backend, its surveys and certificates.

What is asked of the rows on the way are a few operations, each of which may be a message to several
places. A bound on the rounding of u charges for as many additions as a sum goes through at most, in
whatever order.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.ascent.plans import Epoch
from adasdca.ascent.survey import Survey
from adasdca.backends.abilities import Watcher
from adasdca.backends.base import FOREVER, RowTerm
from adasdca.backends.contract import RowVector
from adasdca.backends.facts import Facts
from adasdca.backends.workspace import make_workspace
from adasdca.duality.certificate import Certificate, shares_of
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
#: Times that duals of a lasso are scaled until they are feasible.
FEASIBLE = 60
#: Shares that leave duals as they are.
WHOLE = 1.0, 1.0


class Seen(NamedTuple):
    """What the rows show of a primal and a dual point."""

    evidence: Array  #: Nine numbers; see `Workspace.certify_by`.
    u: Array
    duals: RowVector


class Elsewhere(ABC):
    """What backends have in common whose rows are not in the memory of this process."""

    watcher: Watcher | None = None
    facts: Facts

    def __init__(self, problem: Problem, links: int) -> None:
        """Take a problem up, sums over whose rows go through so many additions."""
        self.problem, self._links = problem, links
        self._workspace = make_workspace(problem.without_rows(), pack=False)
        self.w, self.b = problem.regularizer.primal(np.zeros(problem.rows.shape[1])), 0.0
        self.beta: RowVector = None  # to be made by the rows, all 0
        self._placed = True  # the duals are worth a certificate of their own

    # -- what is asked of the rows

    @abstractmethod
    def scatter(self, beta: Array) -> RowVector:
        """Return n numbers as a dual point."""

    @abstractmethod
    def gather(self, duals: RowVector) -> Array:
        """Return a dual point as n numbers."""

    @abstractmethod
    def combine(self, duals: RowVector) -> Array:
        """Return u = Σ_i c_iβ_i x_i/(λN)."""

    @abstractmethod
    def term(
        self,
        length: float = 0.0,
        centre: RowVector = None,
        point: tuple[Array, float] | None = None,
        reach: float | None = None,
        exact: bool = False,
    ) -> RowTerm:
        """Return the rows' part of an objective; sums are never taken in twice the digits."""

    @abstractmethod
    def _scores(self, w: Array) -> Any:
        """Return the scores x_i·w, or what stands for them."""

    @abstractmethod
    def _balance(self, scores: Any, b: float) -> tuple[float, float, float]:
        """Return Σ cβ, Σ c|β| and Σ cφ'' for β = −φ' at scores + b."""

    @abstractmethod
    def _slopes(self, scores: Any, b: float) -> RowVector:
        """Return −φ' at scores + b."""

    @abstractmethod
    def _sides(self, duals: RowVector) -> tuple[float, float]:
        """Return Σ c max(β, 0) and Σ c max(−β, 0)."""

    @abstractmethod
    def _look(
        self, w: Array, b: float, scores: Any, duals: RowVector, shares: tuple[float, float]
    ) -> Seen:
        """Look at w, b and these shares of the duals above and below 0."""

    @abstractmethod
    def _moved(self, duals: RowVector) -> int:
        """Return how many duals are not 0."""

    # -- the point

    @property
    def multiplier(self) -> float:
        """b_k of the method of multipliers."""
        return self.b

    def restart(self, beta: Array, multiplier: float) -> None:
        duals = self.scatter(beta)
        self.place(duals, self.problem.regularizer.primal(self.combine(duals)), multiplier)

    def place(self, duals: RowVector | None, w: Array, b: float) -> None:
        """Go to a dual point, or −φ', and to a primal one that need not belong together."""
        self._placed = duals is not None
        self.beta = self._slopes(self._scores(w), b) if duals is None else duals
        self.w, self.b = w, b

    def ascend(self, plan: Epoch, seconds: float) -> int:
        """Refuse: the facts say that these rows do not ascend."""
        raise NotImplementedError("these rows do not ascend; choose method='auto'.")

    def kept(self, duals: RowVector) -> Any:
        """Return a dual point as n numbers, or a function that does."""
        return np.asarray(self.gather(duals))

    def slope_point(self, w: Array, b: float) -> tuple[float, RowVector]:
        """Return the best intercept for w, begun at b, and the dual point −φ' there."""
        scores = self._scores(w)
        b = self.best_intercept(scores, b) if self.problem.fit_intercept else b
        return b, self._slopes(scores, b)

    def best_intercept(self, scores: Any, guess: float) -> float:
        """Return the root b of the falling function Σ_i c_iβ_i(b)."""

        def balance(b: float) -> tuple[float, float, float]:
            total, mass, slope = self._balance(scores, b)
            return total, slope, mass

        return _core.root_of_balance(balance, guess)

    # -- certificates

    def survey(
        self, needs: frozenset[str], seconds: float = FOREVER, enough: float = 0.0
    ) -> Survey | None:
        """Certify the point, with an intercept at the best one for its scores."""
        deadline = time.perf_counter() + seconds
        problem, w, b, n = self.problem, self.w, self.b, self.facts.n
        scores, points = self._scores(w), [(b, self.beta)]
        if problem.fit_intercept:
            b = self.best_intercept(scores, b)
            smooth = problem.loss.smoothness > 0
            # The slopes at the best intercept are balanced as they are; duals are only tried where
            # somebody has placed them.
            points = [(b, self._slopes(scores, b))] if smooth else []
            if self._placed or not smooth:
                points.append((b, self.beta))
        if time.perf_counter() >= deadline:
            return None
        found = [self._certify(w, b, scores, duals) for b, duals in points]
        if time.perf_counter() >= deadline:
            return None
        certificate, certified = min(found, key=lambda each: each[0].gap)
        none = np.ones(0)
        figures = {"active": n, "curvature": none, "weight": none}
        return Survey(
            certificate=certificate,
            n=n,
            intercept=b,
            moved=self._moved(self.beta),
            coef=w,
            beta=self.beta,
            certified=certified,
            gamma=problem.loss.smoothness,
            **figures | self._figures(needs, scores, b),
        )

    def _figures(self, needs: frozenset[str], scores: Any, b: float) -> dict[str, Any]:
        """Return what a survey has for coordinate ascent."""
        return {}

    def certify(self, w: Array, b: float, duals: RowVector) -> Certificate:
        found, certified = self._certify(w, b, self._scores(w), duals)
        self.passed(w, b, certified)
        return found

    def passed(self, w: Array, b: float, duals: RowVector | None) -> None:
        """Pass an intermediate point on to the watcher."""
        if self.watcher is not None:
            self.watcher(w, b, duals)

    def _certify(
        self, w: Array, b: float, scores: Any, duals: RowVector
    ) -> tuple[Certificate, RowVector]:
        """Return the best certificate of a dual point near the one given, and that point."""
        g = self.problem.regularizer
        shares = shares_of(*self._sides(duals)) if self.problem.fit_intercept else WHOLE
        seen = self._look(w, b, scores, duals, shares)
        found = self._proof(seen, w)
        if g.eta > 0:
            return found, seen.duals
        # The largest multiple at which g*(u) is finite in spite of the rounding of u, about.
        for attempt in range(FEASIBLE):
            if found.gap < math.inf:
                break
            off = self.off(seen.evidence[4]) * np.sqrt(g.metric)
            share = g.feasible_share(seen.u + np.copysign(off, seen.u))
            share = max(1.0 - 2.0**attempt * (1.0 - share), 0.0)
            seen = self._look(w, b, scores, seen.duals, (share, share))
            found = self._proof(seen, w)
        if not found.gap <= found.primal:
            # The losses are not negative, which is more than that says.
            seen = self._look(w, b, scores, seen.duals, (0.0, 0.0))
            found = self._proof(seen, w)
        return found, seen.duals

    def off(self, mass: float) -> float:
        """Return how far u can be from the truth, in the dual of the regulariser's metric."""
        # As the core bounds it, and a little more.
        return 1.01 * EPS * (self._links + 12) * mass / self.problem.mu

    def _proof(self, seen: Seen, w: Array) -> Certificate:
        """Return a certificate; one of a dual point at which g*(u) is infinite says nothing."""
        problem = self.problem
        found = self._workspace.certify_by(seen.evidence, w, seen.u, self._links)
        if not math.isfinite(found.gap) and problem.regularizer.eta == 0:
            return Certificate(found.primal, -math.inf, math.inf, math.inf)
        return Certificate.of(found.primal, found.gap, found.rounding, found.blur, problem.strength)
