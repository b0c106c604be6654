"""Rows on a device: their targets, weights and duals stay there.

Everything here is written for an array module `xp`: that of the device, or NumPy. Epochs of
coordinate ascent are one update after the other, which a device of thousands of slow threads is no
help for: this backend is second-order only.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.ascent.plans import Epoch
from adasdca.ascent.survey import Survey
from adasdca.backends.base import Facts, ScaleError
from adasdca.backends.cuda.certificate import EPS, Certifier
from adasdca.backends.cuda.losses import formulas
from adasdca.backends.cuda.products import Products, host_products, to_host
from adasdca.backends.cuda.term import ArrayTerm, WeightedRows
from adasdca.backends.facts import RowFacts
from adasdca.duality.certificate import Certificate
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: Times that duals of a lasso are scaled until they are feasible.
FEASIBLE = 60
#: Most evaluations for the best intercept.
EVALUATIONS = 200


class ArrayBackend:
    """Rows as arrays of a module, by default NumPy.

    Parameters
    ----------
    problem : Problem
        The checked problem.
    rows : Products, optional
        Products with its rows, where these are.
    """

    def __init__(self, problem: Problem, rows: Products | None = None) -> None:
        self.problem = problem
        self.rows = rows = host_products(problem.rows) if rows is None else rows
        self.xp = xp = rows.xp
        self.loss = formulas(xp, problem.loss)
        self.y = xp.asarray(problem.y)
        self.c: Any = 1.0 if problem.weight is None else xp.asarray(problem.weight)
        margin = problem.loss.kind == "classification"
        self.sign: Any = self.y if margin else 1.0
        self.target: Any = 1.0 if margin else self.y
        self.mu = problem.mu
        self.at = WeightedRows(
            rows, self.loss, self.c, self.sign, self.target, self.mu, problem.total
        )
        self.facts: Facts = self._facts()
        self.certifier = self._certifier()
        self.multiplier = 0.0
        n, d = rows.shape
        self.w, self.b, self.beta = np.zeros(d), 0.0, xp.zeros(n)

    def _facts(self) -> Facts:
        facts = RowFacts(self.problem.rows)
        facts.ascends = False
        return facts

    def _certifier(self) -> Certifier:
        problem, rows, xp = self.problem, self.rows, self.xp
        metric = np.broadcast_to(np.asarray(problem.regularizer.metric, np.float64), rows.shape[1])
        squares = rows.row_squares(1.0 / metric)
        if not math.isfinite(float((self.c * squares).max()) / self.mu):
            raise ScaleError(
                f"X: a row's squared norm over lam·N (lam = {problem.lam:g}) overflows; scale the "
                "features to about 1 or choose a larger lam."
            )
        self.curvature = (self.c / self.mu) * squares
        self.positive = float((self.c * (self.y > 0)).sum())
        return Certifier(problem, self.loss, rows, xp.sqrt(squares))

    # -- the point

    def restart(self, beta: Array, multiplier: float) -> None:
        """Continue from these dual variables."""
        duals = self.xp.asarray(beta)
        self.place(duals, self.problem.regularizer.primal(self.combine(duals)), multiplier)

    def place(self, duals: Any, w: Array, b: float) -> None:
        """Go to a dual point, or −φ', and to a primal one that need not belong together."""
        if duals is None:
            duals = self.slopes(self.rows.scores(w) + b)
        self.beta, self.w, self.b = duals, w, b

    def restrict(self, features: NDArray[np.intp]) -> ArrayBackend:
        """Return the problem on some of the features, at β = 0."""
        problem = self.problem
        bounds, factors = problem.bounds, problem.penalty_factors
        part = replace(
            problem,
            rows=problem.rows.take_columns(features),
            bounds=None if bounds is None else (bounds[0][features], bounds[1][features]),
            penalty_factors=None if factors is None else factors[features],
            constant=0.0,
        )
        return ArrayBackend(part, self.rows.take_columns(features))

    def ascend(self, plan: Epoch, seconds: float) -> int:
        """Refuse: `facts.ascends` is False."""
        raise NotImplementedError("this backend does not ascend; choose method='auto'")

    def gather(self, duals: Any) -> Array:
        """Return a dual point as n numbers."""
        return np.asarray(to_host(duals))

    # -- passes over the rows

    def slopes(self, scores: Any) -> Any:
        """Return −φ' at these scores."""
        return self.sign * self.loss.ascent(self.sign * scores, self.target)

    def combine(self, duals: Any) -> Array:
        """Return u = Σ_i c_iβ_i x_i/(λN)."""
        return self.at.combine(duals)

    def column_squares(self) -> Array:
        """Return Σ_i c_i x_ij² for every feature."""
        return self.rows.squares(self.c * self.xp.ones(self.rows.shape[0]))

    def freedom(self, w: Array, b: float, duals: Any) -> tuple[float, float]:
        """Return the weight of the rows whose duals are free, and the mean residual."""
        xp, loss = self.xp, self.loss
        own = self.sign * duals
        free = (own > loss.lower) & (own < loss.upper)
        if loss.epsilon > 0:
            free = free & (own != 0)
        away = self.c * xp.abs(self.target - self.sign * (self.rows.scores(w) + b))
        return float((self.c * free).sum()), float(away.sum()) / self.problem.total

    def term(
        self,
        length: float = 0.0,
        centre: Any = None,
        point: tuple[Array, float] | None = None,
        reach: float | None = None,
        exact: bool = False,
    ) -> ArrayTerm:
        """Return the rows' part of an objective; all rows take part."""
        return ArrayTerm(self.at, length, centre)

    def interior(self) -> None:
        """Return None: there is no interior-point method here."""

    # -- certificates

    def survey(self, needs: frozenset[str], seconds: float) -> Survey:
        """Certify the point, with an intercept at the best one for its scores."""
        problem, b, n = self.problem, self.b, self.rows.shape[0]
        scores = self.rows.scores(self.w)
        candidates = [self.beta]
        if problem.fit_intercept:
            b = self.best_intercept(scores, self.b)
            if problem.loss.smoothness > 0:
                candidates.append(self.slopes(scores + b))
        found = [self._certify(self.w, b, scores + b, each) for each in candidates]
        certificate, certified = min(found, key=lambda pair: pair[0].gap)
        return Survey(
            certificate=certificate,
            n=n,
            intercept=b,
            active=n,
            moved=int(self.xp.count_nonzero(self.beta)),
            coef=self.w,
            beta=self.beta,
            certified=certified,
            gamma=problem.loss.smoothness,
            curvature=self.curvature,
            weight=self.c,
        )

    def certify(self, w: Array, b: float, duals: Any) -> Certificate:
        """Certify a primal and a dual point; with an intercept Σ c_iβ_i is made 0 first."""
        return self._certify(w, b, self.rows.scores(w) + b, duals)[0]

    def _certify(self, w: Array, b: float, scores: Any, duals: Any) -> tuple[Certificate, Any]:
        """Return the best certificate of a dual point near the one given, and that point."""
        candidates = [duals]
        if self.problem.fit_intercept:
            candidates = [self._balanced(duals)]
        if self.problem.regularizer.eta == 0:
            candidates = [self._feasible(each) for each in candidates]
            candidates.append(self.xp.zeros_like(duals))
        z = self.sign * scores
        found = [(self._at(w, b, z, each), each) for each in candidates]
        return min(found, key=lambda pair: pair[0].gap)

    def _at(self, w: Array, b: float, z: Any, duals: Any) -> Certificate:
        sums = self.certifier.row_sums(z, self.sign * duals, self.target, self.c, w, b)
        imbalance = self.rows.dot(self.c, duals) if self.problem.fit_intercept else 0.0
        u = self.combine(duals)
        return self.certifier.certificate(sums, w, u, imbalance, self.positive)

    def _balanced(self, duals: Any) -> Any:
        """Scale the heavier side of a dual point down until Σ c_iβ_i = 0."""
        xp = self.xp
        up = self.rows.dot(self.c, xp.maximum(duals, 0.0))
        down = self.rows.dot(self.c, xp.maximum(-duals, 0.0))
        lighter = min(up, down)
        return duals * xp.where(duals > 0, lighter / (up or 1.0), lighter / (down or 1.0))

    def _feasible(self, duals: Any) -> Any:
        """Return the largest multiple of these duals at which g*(u) is finite, about."""
        xp, side = self.xp, self.certifier.side
        for attempt in range(FEASIBLE):
            u = self.combine(duals)
            mass = self.rows.dot(self.c, xp.abs(duals) * self.certifier.norms)
            off = self.certifier.off(mass) * np.sqrt(side.metric)
            share = self.problem.regularizer.feasible_share(u + np.copysign(off, u))
            if share == 1.0:
                break
            duals = duals * max(1.0 - 2.0**attempt * (1.0 - share), 0.0)
        return duals

    def best_intercept(self, scores: Any, guess: float) -> float:
        """Return the root b of the falling function Σ_i c_iβ_i(b).

        Newton where it has a slope, else false position with its stale end halved, in a bracket.
        """
        xp, loss, b = self.xp, self.loss, guess
        low, high, at_low, at_high = -math.inf, math.inf, 0.0, 0.0
        reach = 1e-3 * max(1.0, abs(guess))
        for evaluation in range(EVALUATIONS):
            own = loss.ascent(self.sign * (scores + b), self.target)
            at = self.rows.dot(self.c, self.sign * own)
            # The sum is not known better than this.
            if abs(at) <= 4.0 * EPS * self.rows.dot(self.c, xp.abs(own)):
                return b
            if at > 0:
                low, at_low, at_high = b, at, 0.5 * at_high
            else:
                high, at_high, at_low = b, at, 0.5 * at_low
            bracketed = math.isfinite(high - low)
            if bracketed and high - low <= 4.0 * EPS * max(abs(b), 1e-290):
                return b
            bend = self.rows.dot(self.c, loss.curvature(own))
            following = b + at / bend if bend > 0 else math.nan
            if not low < following < high:
                if not bracketed:
                    following = b + math.copysign(reach, at)
                    reach *= 8.0
                else:
                    following = low + at_low / (at_low - at_high) * (high - low)
                    if evaluation % 3 == 2 or not low < following < high:
                        following = 0.5 * (low + high)
            if following == b:
                return b
            b = following
        return b
