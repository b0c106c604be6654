"""Rows as a solve knows them: a point, surveys and certificates, and terms for second-order steps.

A bound on the rounding of u charges for as many additions as a sum goes through at most, in
whatever order.
"""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.ascent.plans import Epoch
from adasdca.ascent.survey import Survey
from adasdca.backends.abilities import Watcher
from adasdca.backends.base import FOREVER
from adasdca.backends.contract import RowVector
from adasdca.backends.facts import Facts
from adasdca.backends.passes import EPS, Passes
from adasdca.backends.term import RowTerm, WeightedRows
from adasdca.backends.workspace import make_workspace
from adasdca.duality.certificate import Certificate, scaled, shares_of
from adasdca.problem.device_rows import to_host
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: Times that duals of a lasso are scaled until they are feasible.
FEASIBLE = 60
#: Shares that leave duals as they are.
WHOLE = 1.0, 1.0


class Seen(NamedTuple):
    """What the rows show of a primal and a dual point."""

    evidence: Array  #: Nine numbers; see `Workspace.certify_by`.
    u: Array
    duals: RowVector


class Backend:
    """Rows with their targets, weights and loss, a regulariser, and a point (w, b, β) to move.

    It begins at β = 0. What a solve asks of it is made of the few operations of `Rows`; what is
    asked of surveys and certificates on the way may be a message to several places. A backend that
    does something better overrides it. Vectors of n numbers stay where the rows are: a dual point
    is handed out and taken back.

    Parameters
    ----------
    problem : Problem
        The checked problem; its own rows are asked for their shape only.
    rows : Rows
        Its rows.
    passes : Passes, optional
        Its loss, for rows that have passes of their own.
    """

    problem: Problem
    facts: Facts  #: What the cost model asks.
    watcher: Watcher | None = None
    w: Array
    b: float
    beta: RowVector

    def __init__(self, problem: Problem, rows: Any, passes: Passes | None = None) -> None:
        self.rows, self.facts = rows, rows.facts
        sizes, links = self._chains()
        self._begin(problem, links)
        self.passes = passes or Passes(problem, rows)
        d, mu, each = self.facts.d, problem.mu, rows.each
        self._weight = self.passes.weighted(each(np.ones_like, self.passes.y))
        metric = np.broadcast_to(np.asarray(problem.regularizer.metric, np.float64), d)
        total, squares = self._first_sums(1.0 / metric)
        middle, n = total / problem.total, self.facts.n
        self.at = WeightedRows(rows, self.passes, middle, n, mu, problem.total)
        self._curvature = each(lambda q: q / mu, self.passes.weighted(squares))
        problem.check_scale(rows.largest(np.positive, self._curvature))
        #: The lengths of rows in the dual of the regulariser's metric, and the share of that times
        #: |w| by which a score is off at most: it is a sum of so many products, in any order.
        self.norms = each(np.sqrt, squares)
        self.share = each(lambda norm: EPS * (sizes + 8.0) * norm, self.norms)
        # The weight of the label 1, where y is labels, and the largest |x|²/(λN).
        longest = rows.largest(np.positive, self.norms)
        self._rest = self.passes.sides(self.passes.y)[0], longest**2 / mu
        self.beta = self._none = each(np.zeros_like, self.passes.y)
        self._known: tuple[Any, RowVector] = None, None

    def _begin(self, problem: Problem, links: int) -> None:
        """Take a problem up, sums over whose rows go through so many additions."""
        self.problem, self._links = problem, links
        self._workspace = make_workspace(problem.without_rows(), pack=False)
        self.w, self.b = problem.regularizer.primal(np.zeros(problem.rows.shape[1])), 0.0
        self._placed = True  # the duals are worth a certificate of their own

    def _chains(self) -> tuple[Any, int]:
        """Return the number of entries of rows, and the most additions of an entry of `combine`."""
        return float(self.facts.d), self.facts.n

    def _first_sums(self, factors: Array) -> tuple[Any, RowVector]:
        """Return Σ_i c_i x_i, and Σ_j f_j x_ij² of all rows."""
        return self.rows.combine(self._weight), self.rows.row_squares(factors)

    # -- the point

    @property
    def multiplier(self) -> float:
        """b_k of the method of multipliers."""
        return self.b

    def restart(self, beta: Array, multiplier: float) -> None:
        """Go to a dual point given by n numbers, and to the w that belongs to it."""
        duals = self.scatter(beta)
        self.place(duals, self.problem.regularizer.primal(self.combine(duals)), multiplier)

    def place(self, duals: RowVector | None, w: Array, b: float) -> None:
        """Go to a dual point and to a primal one that need not belong together.

        Without a dual point, to −φ' at the primal one.
        """
        self._placed = duals is not None
        self.beta = self._slopes(self._scores(w), b) if duals is None else duals
        self.w, self.b = w, b

    def ascend(self, plan: Epoch, seconds: float) -> int:
        """Carry a plan out for at most that many seconds; return the number of updates.

        Only asked for where `facts.ascends`.
        """
        raise NotImplementedError("these rows do not ascend; choose method='auto'.")

    def kept(self, duals: RowVector) -> Any:
        """Return a dual point as n numbers, or a function that does when somebody asks."""
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
        """Certify the point, with an intercept at the best one for its scores.

        Nothing is changed. None if that took longer than the seconds given; a relative gap that is
        `enough` need not be known better.
        """
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
        figures: dict[str, Any] = {"active": n, "curvature": none, "weight": none}
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
        """Certify a primal and a dual point; with an intercept Σ c_iβ_i is made 0 first."""
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
        found, seen = self._seen(w, b, scores, duals, shares)
        if g.eta > 0:
            return found, seen.duals
        # The largest multiple at which g*(u) is finite in spite of the rounding of u, about.
        for attempt in range(FEASIBLE):
            if found.gap < math.inf:
                break
            off = self.off(seen.evidence[4]) * np.sqrt(g.metric)
            share = g.feasible_share(seen.u + np.copysign(off, seen.u))
            share = max(1.0 - 2.0**attempt * (1.0 - share), 0.0)
            found, seen = self._seen(w, b, scores, seen.duals, (share, share))
        if not found.gap <= found.primal:
            # The losses are not negative, which is more than that says.
            found, seen = self._seen(w, b, scores, seen.duals, (0.0, 0.0))
        return found, seen.duals

    def off(self, mass: float) -> float:
        """Return how far u can be from the truth, in the dual of the regulariser's metric."""
        # As the core bounds it, and a little more.
        return 2.02 * EPS * (self._links + 12) * mass / self.problem.mu

    def _seen(
        self, w: Array, b: float, scores: Any, duals: RowVector, shares: tuple[float, float]
    ) -> tuple[Certificate, Seen]:
        """Return the certificate of w, b and these shares of the duals, and what it is made of."""
        seen = self._look(w, b, scores, duals, shares)
        found = self._workspace.certify_by(seen.evidence, w, seen.u, self._links)
        return self._certificate(found), seen

    def _certificate(self, found: _core.Certified) -> Certificate:
        """Return a certificate; one of a dual point at which g*(u) is infinite says nothing."""
        problem, primal = self.problem, found.primal
        if not math.isfinite(found.gap) and math.isfinite(primal) and not problem.regularizer.eta:
            return Certificate(primal, -math.inf, math.inf, math.inf)
        return Certificate.of(primal, found.gap, found.rounding, found.blur, problem.strength)

    # -- the rows

    def restrict(self, features: NDArray[np.intp]) -> Backend:
        """Return the problem on some of the features, at β = 0; dual points are shared."""
        problem = self.problem.without_rows().restrict(features)
        return type(self)(problem, self.rows.take_columns(features), self.passes)

    def scatter(self, beta: Array) -> RowVector:
        """Return n numbers as a dual point."""
        return self.rows.scatter(beta)

    def gather(self, duals: RowVector) -> Array:
        """Return a dual point as n numbers."""
        return np.asarray(self.rows.gather(duals))

    def combine(self, duals: RowVector) -> Array:
        """Return u = Σ_i c_iβ_i x_i/(λN)."""
        if duals is self._none:
            return np.zeros(self.facts.d)
        return np.asarray(to_host(self.at.combine(duals)))

    def column_squares(self) -> Array:
        """Return Σ_i c_i x_ij² for every feature."""
        return np.asarray(to_host(self.rows.squares(self._weight)))

    def freedom(self, w: Array, b: float, duals: RowVector) -> tuple[float, float]:
        """Return the weight of the rows whose duals are free, and the mean residual.

        Only asked for where the loss has kinks.
        """
        free, away = self.passes.freedom(self._scores(w), b, duals)
        return free, away / self.problem.total

    def term(
        self,
        length: float = 0.0,
        centre: RowVector = None,
        point: tuple[Array, float] | None = None,
        reach: float | None = None,
        exact: bool = False,
    ) -> RowTerm:
        """Return the rows' part of an objective.

        Parameters
        ----------
        length, centre : float, dual point
            Kinks are rounded over this length about these duals; with 0, not at all.
        point : (w, b), optional
            Where the steps will begin. If given, a backend may leave out rows that are far from
            their kinks there and whose duals are right about it: they keep their duals.
        reach : float, optional
            How near to a kink is near.
        exact : bool
            Plain sums have hidden what is left: a wish for an `ExactTerm`, which a backend may
            ignore.
        """
        return RowTerm(self.at, length, centre, self._known)

    def interior(self) -> Any:
        """Return the rows' part of an interior-point method, as `InteriorTerm` is one.

        None if there is none: the loss is not piecewise quadratic, or there are too many rows and
        features to factorise their equations.
        """
        return None

    # -- what surveys ask

    def _scores(self, w: Array) -> RowVector:
        """Return x_i·w of all rows, those of the last w as they were."""
        if self._known[0] is not w:
            self._known = w, self.rows.scores(w) if w.any() else self._none
        return self._known[1]

    def _balance(self, scores: RowVector, b: float) -> tuple[float, float, float]:
        """Return Σ cβ, Σ c|β| and Σ cφ'' for β = −φ' at scores + b."""
        return self.passes.balance(scores, b)

    def _slopes(self, scores: RowVector, b: float) -> RowVector:
        """Return −φ' at scores + b."""
        return self.passes.slopes(scores, b)

    def _sides(self, duals: RowVector) -> tuple[float, float]:
        """Return Σ c max(β, 0) and Σ c max(−β, 0)."""
        return self.passes.sides(duals)

    def _moved(self, duals: RowVector) -> int:
        """Return how many duals are not 0."""
        return int(self.rows.sums(lambda t: (t != 0,), duals)[0])

    def _look(
        self, w: Array, b: float, scores: RowVector, duals: RowVector, shares: tuple[float, float]
    ) -> Seen:
        """Look at w, b and these shares of the duals above and below 0."""
        problem, constant = self.problem, self.problem.constant
        if shares != (1.0, 1.0):
            duals = self.rows.each(lambda t: scaled(t, shares), duals)
        outer = abs(b) + (abs(constant * float(w[-1])) if constant else 0.0)
        norm_w = math.sqrt(float((problem.regularizer.metric * w) @ w))
        sums = self.passes.row_sums(scores, b, duals, self.share, self.norms, norm_w, outer)
        positive, square = self._rest
        evidence = np.array([*sums[:6], positive, sums.far, square])
        return Seen(evidence, self.combine(duals), duals)
