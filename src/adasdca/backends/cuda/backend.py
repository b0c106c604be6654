"""Rows on a device: their targets, weights and duals stay there.

What is done to rows is `Products` and `Passes`; everything else is here, whatever these are. Epochs
are of mini-batches, and only there for losses with kinks on sparse rows: smooth losses need a few
second-order steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.ascent.plans import Epoch
from adasdca.ascent.survey import Survey
from adasdca.backends.abilities import Watcher
from adasdca.backends.base import Facts, PlainBackend, ScaleError, to_host, without_rows
from adasdca.backends.cuda.certificate import Certifier
from adasdca.backends.cuda.epochs import DeviceEpochs
from adasdca.backends.cuda.facts import DeviceFacts
from adasdca.backends.cuda.products import BatchProducts, Passes, Products, Told
from adasdca.backends.cuda.term import DeviceTerm, Others, WeightedRows
from adasdca.backends.working_set import has_room, within_reach
from adasdca.duality.certificate import Certificate
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: Share of the rows up to which those near their kinks are copied for a round.
FEW = 0.3
#: Times that duals of a lasso are scaled until they are feasible; 0 is tried beside them.
FEASIBLE = 60


class DeviceBackend(PlainBackend):
    """The `Backend` of rows on a device, or wherever their products and passes are made.

    Of the rows of the problem only the shape is asked for.
    """

    watcher: Watcher | None = None

    def __init__(
        self,
        problem: Problem,
        products: Products,
        passes: Passes,
        told: Told | None = None,
    ) -> None:
        self.problem, self.products, self.passes = problem, products, passes
        self._told = told
        self.xp, self.mu = passes.xp, problem.mu
        kinked = problem.loss.smoothness == 0
        n, d = products.shape
        self._weight = passes.weighted(self.xp.ones(n))
        metric = np.broadcast_to(np.asarray(problem.regularizer.metric, np.float64), d)
        total, squares = products.begin(self._weight, 1.0 / metric)
        self.at = WeightedRows(products, passes, total / problem.total, self.mu, problem.total)
        self._curvature = passes.weighted(squares) / self.mu
        if not math.isfinite(float(self._curvature.max())):
            raise ScaleError(
                f"X: a row's squared norm over lam·N (lam = {problem.lam:g}) overflows; scale the "
                "features to about 1 or choose a larger lam"
                + (" or larger penalty_factors." if problem.penalty_factors is not None else ".")
            )
        self.facts: Facts = products.facts
        self._epochs: DeviceEpochs | None = None
        if isinstance(self.facts, DeviceFacts):
            if self.facts.ascends and kinked and problem.regularizer.is_ridge:
                epochs = DeviceEpochs(
                    problem,
                    cast(BatchProducts, products),
                    passes,
                    self.facts.counts,
                    self._curvature,
                )
                self._epochs = epochs if epochs.pays else None
            batch = self._epochs.height if self._epochs else 1
            self.facts = replace(self.facts, ascends=self._epochs is not None, batch=batch)
        self.certifier = Certifier(problem, products, passes, self.xp.sqrt(squares))
        self.multiplier, self.b = 0.0, 0.0
        self.w, self.beta = np.zeros(d), self.xp.zeros(n)
        self._none = self.beta  # the duals of which u is known to be 0
        self._placed = True  # the duals are worth a certificate of their own
        self._known: tuple[Array, Any] = self.w, self.xp.zeros(n)

    def short_of_memory(self, error: MemoryError) -> MemoryError:
        return error if self._told is None else self._told(error)

    # -- the point

    def place(self, duals: Any, w: Array, b: float) -> None:
        """Go to a dual point, or −φ', and to a primal one that need not belong together."""
        self._placed = duals is not None
        if duals is None:
            duals = self.passes.slopes(self._scores(w), b)
        self.beta, self.w, self.b = duals, w, b

    def restrict(self, features: NDArray[np.intp]) -> DeviceBackend:
        problem = without_rows(self.problem).restrict(features)
        return DeviceBackend(problem, self.products.take_columns(features), self.passes)

    def ascend(self, plan: Epoch, seconds: float) -> int:
        """Carry a plan out in mini-batches, for at most about that many seconds."""
        assert self._epochs is not None
        duals, b, visits = self._epochs.ascend(plan, self.beta, self.b, seconds)
        self.place(duals, self.problem.regularizer.primal(self.combine(duals)), b)
        return visits

    def gather(self, duals: Any) -> Array:
        return self.products.from_device(duals)

    def kept(self, duals: Any) -> Callable[[], Array]:
        return lambda: np.asarray(to_host(duals))

    def scatter(self, beta: Array) -> Any:
        """Return n numbers as a dual point."""
        return self.products.to_device(beta)

    def slope_point(self, w: Array, b: float) -> tuple[float, Any]:
        """Return the best intercept for w, begun at b, and the dual point −φ' there."""
        scores = self._scores(w)
        b = self.best_intercept(scores, b) if self.problem.fit_intercept else b
        return b, self.passes.slopes(scores, b)

    # -- passes over the rows

    def _scores(self, w: Array) -> Any:
        """Return x_i·w of all rows, those of the last w as they were."""
        if self._known[0] is not w:
            self._known = w, self.products.scores(w)
        return self._known[1]

    def combine(self, duals: Any) -> Array:
        if duals is self._none:
            return np.zeros(self.products.shape[1])
        return np.asarray(to_host(self.at.combine(duals)))

    def column_squares(self) -> Array:
        return np.asarray(to_host(self.products.squares(self._weight)))

    def freedom(self, w: Array, b: float, duals: Any) -> tuple[float, float]:
        free = self.problem.loss.is_free(duals, self.passes.y)
        away, total = self._away(self._scores(w) + b), self.problem.total
        return float((self._weight * free).sum()), float((self._weight * away).sum()) / total

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
        xp, problem, passes, n = self.xp, self.problem, self.passes, self.products.shape[0]
        scores = self._scores(w)
        away = self._away(scores + b)
        distance = xp.abs(away - problem.loss.dead_zone)
        distance[centre != passes.slopes(scores, b)] = 0.0
        if problem.weight is not None:
            distance[self._weight == 0] = xp.inf
        chosen = within_reach(distance, reach, self.products.shape[1])
        if len(chosen) > FEW * n:
            return None
        others, weight, part = centre.copy(), self._weight[chosen], passes.part(chosen)
        others[chosen] = 0.0
        held = float((self._weight * others).sum())
        if problem.fit_intercept and not has_room(problem, part.y, weight, held):
            return None
        rows = self.products.take_rows(chosen)
        if rows is None:
            return None
        residual = float(away.sum() - away[chosen].sum())
        fixed = Others(centre, chosen, self.at.combine(others), held, residual)
        at = replace(self.at, products=rows, passes=part)
        return DeviceTerm(at, length, centre[chosen], (w, scores[chosen]), fixed)

    def _away(self, scores: Any) -> Any:
        """Return the sizes of the residuals."""
        y = self.passes.y
        margin = self.problem.loss.kind == "classification"
        return self.xp.abs(1.0 - y * scores if margin else y - scores)

    # -- certificates

    def survey(self, needs: frozenset[str], seconds: float, enough: float = 0.0) -> Survey:
        """Certify the point, with an intercept at the best one for its scores."""
        problem, b, n = self.problem, self.b, self.products.shape[0]
        scores = self._scores(self.w)
        points = [(b, self.beta)]
        if problem.fit_intercept:
            b = self.best_intercept(scores, self.b)
            smooth = problem.loss.smoothness > 0
            # The slopes at the best intercept are balanced as they are; duals are only tried where
            # somebody has placed them.
            points = [(b, self.passes.slopes(scores, b))] if smooth else []
            if self._placed or not smooth:
                points.append((b, self.beta))
        found = [(*self._certify(self.w, at, scores, duals), at) for at, duals in points]
        certificate, certified, b = min(found, key=lambda each: each[0].gap)
        active, effective_share = n, 1.0
        if self._epochs is not None and "adaptive" in needs:
            active, effective_share = self._epochs.look(scores, b, self.beta)
        return Survey(
            certificate=certificate,
            n=n,
            intercept=b,
            active=active,
            effective_share=effective_share,
            moved=int(self.xp.count_nonzero(self.beta)),
            coef=self.w,
            beta=self.beta,
            certified=certified,
            gamma=problem.loss.smoothness,
            curvature=self._curvature,
            weight=self._weight,
        )

    def certify(self, w: Array, b: float, duals: Any) -> Certificate:
        found, certified = self._certify(w, b, self._scores(w), duals)
        if self.watcher is not None:
            self.watcher(w, b, certified)
        return found

    def _certify(self, w: Array, b: float, scores: Any, duals: Any) -> tuple[Certificate, Any]:
        """Return the best certificate of a dual point near the one given, and that point."""
        if self.problem.fit_intercept:
            duals = self._balanced(duals)
        candidates = [duals]
        if self.problem.regularizer.eta == 0:
            # (0 is feasible, whatever rounding does to others.)
            candidates = [self._feasible(duals), self.xp.zeros_like(duals)]
        found = [(self._at(w, b, scores, each), each) for each in candidates]
        return min(found, key=lambda pair: pair[0].gap)

    def _at(self, w: Array, b: float, scores: Any, duals: Any) -> Certificate:
        sums = self.certifier.row_sums(scores, b, duals, w)
        return self.certifier.certificate(sums, w, self.combine(duals))

    def _balanced(self, duals: Any) -> Any:
        """Scale the heavier side of a dual point down until Σ c_iβ_i = 0."""
        up, down = self.passes.sides(duals)
        if up == down:
            return duals
        lighter = min(up, down)
        return duals * self.xp.where(duals > 0, lighter / (up or 1.0), lighter / (down or 1.0))

    def _feasible(self, duals: Any) -> Any:
        """Return the largest multiple of these duals at which g*(u) is finite, about."""
        sizes = self.passes.weighted(self.xp.abs(duals) * self.certifier.norms)
        mass = 1.001 * float(sizes.sum())
        off = self.certifier.off(mass) * np.sqrt(self.problem.regularizer.metric)
        for attempt in range(FEASIBLE):
            u = self.combine(duals)
            share = self.problem.regularizer.feasible_share(u + np.copysign(off, u))
            if share == 1.0:
                break
            duals = duals * max(1.0 - 2.0**attempt * (1.0 - share), 0.0)
        return duals

    def best_intercept(self, scores: Any, guess: float) -> float:
        """Return the root b of the falling function Σ_i c_iβ_i(b)."""

        def balance(b: float) -> tuple[float, float, float]:
            total, mass, slope = self.passes.balance(scores, b)
            return total, slope, mass

        return _core.root_of_balance(balance, guess)
