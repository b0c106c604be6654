"""Rows in the memory of this process, ascended by the compiled core."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.ascent.plans import Epoch
from adasdca.ascent.survey import Survey
from adasdca.backends.backend import Backend
from adasdca.backends.base import FOREVER
from adasdca.backends.columns import ColumnTerm
from adasdca.backends.cpu_term import CpuTerm
from adasdca.backends.digits import FinerDuals
from adasdca.backends.epochs import CpuEpochs, RowFigures
from adasdca.backends.exact_term import ExactCpuTerm
from adasdca.backends.facts import RowFacts
from adasdca.backends.interior import MOST_UNKNOWNS, InteriorTerm
from adasdca.backends.interpolation import interpolated
from adasdca.backends.kernel_matrix import KernelMatrix
from adasdca.backends.working_set import WorkingSet, can_balance, near_kinks
from adasdca.backends.workspace import make_workspace
from adasdca.duality.certificate import Certificate, balanced, evened
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: Entries of which a pass takes no longer than the copy of a working set, which so saves nothing.
SHORT = 1 << 14
#: See `ones`.
ONE = np.ones(1)
#: The share of a gap that may be rounding of plain sums.
SEEN = 0.1
EPS = float(np.finfo(np.float64).eps)
#: Times that duals of a lasso are scaled until they are feasible; at the latest then they are 0.
FEASIBLE = 60


def ones(n: int) -> Array:
    """Return n ones that take no memory, and cannot be written to."""
    found: Array = np.ndarray((n,), buffer=ONE, strides=(0,))  # a tenth of the time of broadcast_to
    found.flags.writeable = False
    return found


class LocalBackend(Backend):
    """Rows in the memory of this process, ascended by the compiled core.

    Parameters
    ----------
    problem : Problem
        The checked problem.
    n_threads : int
        Threads for the surveys. The result does not depend on it.
    pack : bool or "auto"
        Whether sparse rows are copied into records, which makes updates in random order 2–3 times
        as fast; ``"auto"`` does so if the copy fits into half of the free memory.
    """

    #: Share of the rows beyond which a working set has all.
    few = 0.7

    def __init__(self, problem: Problem, n_threads: int = 1, pack: bool | str = "auto") -> None:
        self.problem = problem
        self._threads = n_threads
        self.workspace = make_workspace(problem, pack)
        n = self.workspace.n
        self._curvature = _core.vector(n)
        self.workspace.curvature(self._curvature)
        problem.check_scale(self._curvature.max())
        self._weight = ones(n) if problem.weight is None else problem.weight
        self.facts = RowFacts(problem.rows)
        self.facts.ascends = problem.regularizer.ascends
        self.kernel = KernelMatrix(problem.rows, self.workspace)
        figures = RowFigures(self._curvature, self._weight, problem.loss.smoothness)
        self.epochs = CpuEpochs(self.workspace, figures, n_threads)
        self._careful = False  # plain sums were not enough
        self._placed = False  # the duals are worth a certificate of their own

    @property
    def multiplier(self) -> float:
        return self.workspace.multiplier

    @property
    def packed_bytes(self) -> int:
        """Size of the packed copy of the rows, 0 if there is none."""
        return self.workspace.packed_bytes

    def restart(self, beta: Array, multiplier: float) -> None:
        self._placed = False
        self.workspace.set_beta(beta, self._threads)
        self.workspace.multiplier = multiplier

    def restrict(self, features: NDArray[np.intp]) -> LocalBackend:
        part = self.problem.restrict(features)
        return LocalBackend(part, self._threads, pack=False)

    def columns(self, features: NDArray[np.intp]) -> ColumnTerm:
        """Return the rows of some of the features, by columns."""
        part = self.problem.restrict(features)
        return ColumnTerm(part, self.workspace, self._threads, self.kernel)

    def slope_point(self, w: Array, b: float) -> tuple[float, Array]:
        scores = np.empty(self.workspace.n)
        self.workspace.scores(w, scores, self._threads)
        if self.problem.fit_intercept:
            b = self.workspace.best_intercept(scores, b, self._threads)
        return b, -self.problem.loss.slope(scores + b, self.problem.y)

    def scatter(self, beta: Array) -> Array:
        return beta

    def survey(
        self, needs: frozenset[str], seconds: float = FOREVER, enough: float = 0.0
    ) -> Survey | None:
        n, d = self.workspace.n, self.workspace.d
        arrays: dict[str, Any] = {
            name: _core.vector(n) if name in needs else None
            for name in ("score", "residue", "share", "adaptive")
        }
        beta, coef = _core.vector(n), np.empty(d)
        certified = _core.vector(n) if self.problem.fit_intercept else beta
        seen = self.workspace.survey(
            arrays["score"],
            arrays["residue"],
            arrays["share"],
            arrays["adaptive"],
            beta,
            certified,
            coef,
            enough,
            self._threads,
            seconds,
        )
        if not seen.complete:
            return None
        self.epochs.figures.adaptive = arrays["adaptive"]
        intercept = seen.intercept
        if self.problem.regularizer.eta > 0:
            certificate = self._certificate(seen.certificate)
        else:
            certificate, _ = self._proof(coef, intercept, certified, enough)
        others: list[float] = []
        if self._placed and certified is not beta:
            # With an intercept the core has taken slopes for duals, and the best b for these. Near
            # the last digit of b either b may be the better one.
            others = [self.multiplier, seen.intercept][: 1 + self._careful]
        elif self._careful:
            others = [intercept]  # bounded row by row, where surveys bound blocks of rows
        for b in others:
            placed, duals = self._proof(coef, b, beta)
            if placed.gap < certificate.gap:
                certificate, intercept, certified = placed, b, duals
        return Survey(
            n=n,
            certificate=certificate,
            intercept=intercept,
            active=seen.active,
            coef=coef,
            beta=beta,
            moved=seen.moved,
            certified=certified,
            gamma=self.problem.loss.smoothness,
            curvature=self._curvature,
            weight=self._weight,
            effective_share=seen.effective_share,
            **arrays,
        )

    def ascend(self, plan: Epoch, seconds: float = FOREVER) -> int:
        self._placed = False
        return self.epochs.ascend(plan, seconds)

    def gather(self, duals: Array) -> Array:
        return duals

    kept = gather

    # -- what second-order phases ask

    def combine(self, beta: Array) -> Array:
        u = np.zeros(self.workspace.d)
        if beta.any():  # a solve begins with none
            self.workspace.combine(beta, u, self._threads)
        return u

    def place(self, duals: Array | None, w: Array, b: float) -> None:
        smooth = self.problem.loss.smoothness > 0
        self._placed = duals is not None and (smooth or self._careful)
        if duals is None:
            self.workspace.place_primal(w, b)
        else:
            self.workspace.place(duals, w, b)

    def certify(self, w: Array, b: float, beta: Array) -> Certificate:
        return self._proof(w, b, beta)[0]

    def _proof(
        self, w: Array, b: float, beta: Array, enough: float = 0.0
    ) -> tuple[Certificate, Array]:
        """Return the best certificate of a point, and the duals near those given that prove it."""
        if self.problem.regularizer.eta == 0 and not self._careful:
            plain = self._proof_by_plain_sums(w, b, beta, enough)
            if plain is not None:
                return plain
        candidates = [beta]
        flat = self.problem.regularizer.eta == 0
        if self.problem.fit_intercept:
            # Where sums cancel, scaling duals that are balanced but for rounding costs digits, all
            # of them without an L2 term, for u has to be feasible (20,640 x 8 in raw units, lasso:
            # relative gap 5.8e-2 -> 2e-10 after one).
            candidates = [balanced(beta, self._weight)]
            if self._careful or flat:
                candidates += [beta, self._even(beta)]
        near = candidates[-1]
        if flat:
            candidates = [self._feasible(each) for each in candidates]
        found = [self.workspace.certify(w, b, each, self._threads) for each in candidates]
        if self._careful:
            best = min(range(len(found)), key=lambda k: found[k].gap)
            if self.problem.regularizer.eta > 0:
                near = candidates[best]
            finer = self._finer.near(w, b, near, found[best])
            if finer is not None:
                found.append(finer[0])
                candidates.append(finer[1])
        if (self._careful or flat) and all(not each.gap <= each.primal for each in found):
            # The losses are not negative, which is more than any of these say. (No duals are
            # feasible, too, whatever rounding does to others.)
            candidates.append(np.zeros_like(beta))
            found.append(self.workspace.certify(w, b, candidates[-1], self._threads))
        best = min(range(len(found)), key=lambda k: found[k].gap)
        return self._certificate(found[best]), candidates[best]

    def _proof_by_plain_sums(
        self, w: Array, b: float, beta: Array, enough: float
    ) -> tuple[Certificate, Array] | None:
        """Do that without an L2 term, where u must be feasible in spite of its rounding.

        None where that rounding matters, and more than `enough` is left. Sums in twice the digits
        take ten times as long (20,000 x 100, lasso: 24 -> 9 ms a solve).
        """
        problem, scores = self.problem, np.empty(self.workspace.n)
        self.workspace.scores(w, scores, self._threads)
        links = self.workspace.chain
        if problem.fit_intercept:
            beta = balanced(beta, self._weight)
        lost = 0.0
        for _ in range(FEASIBLE):
            u = self.combine(beta)
            said = np.array(self.workspace.evidence(scores, w, b, beta, self._threads))
            found = self.workspace.certify_by(said, w, u, links)
            if found.gap < math.inf:
                break
            lost = 2.0 * EPS * (links + 12) * said[4] / problem.mu
            wide = np.abs(u) + lost * np.sqrt(problem.regularizer.metric)
            share = problem.regularizer.feasible_share(np.copysign(wide, u))
            if not 0 < share < 1:
                return None
            beta = share * beta
        # Duals that are smaller by a share make D smaller by twice that share of P, about.
        hidden = found.rounding + 2.0 * lost * found.primal
        clear = found.gap <= enough * found.primal or hidden <= SEEN * found.gap
        return (self._certificate(found), beta) if clear and found.gap < math.inf else None

    @cached_property
    def _finer(self) -> FinerDuals:
        return FinerDuals(
            self.problem, self.workspace, self._curvature, self._weight, self._threads
        )

    def _feasible(self, beta: Array) -> Array:
        """Return the largest multiple of these duals at which g*(u) is finite, about.

        A multiple is rounded, too: where u is far smaller than its terms, that takes it out again.
        """
        u = np.empty(self.workspace.d)
        for attempt in range(FEASIBLE):
            self.workspace.combine_exactly(beta, u, self._threads)
            share = self.problem.regularizer.feasible_share(u)
            if share == 1.0:
                break
            beta = beta * max(1.0 - 2.0**attempt * (1.0 - share), 0.0)
            if self.problem.fit_intercept:
                beta = self._even(beta)
        return beta

    def _even(self, beta: Array) -> Array:
        """Return duals whose Σ c_iβ_i, 0 but for rounding, is 0 in all digits if that can be."""
        balance = self.workspace.combine_exactly(beta, np.empty(self.workspace.d), self._threads)
        return evened(beta, self._weight, balance)

    def term(
        self,
        length: float = 0.0,
        centre: Array | None = None,
        point: tuple[Array, float] | None = None,
        reach: float | None = None,
        exact: bool = False,
    ) -> CpuTerm:
        """Return the rows' part of an objective; an exact one leaves out no rows."""
        problem, threads = self.problem, self._threads
        self._careful |= exact
        if point is None or exact or self.facts.stored <= SHORT:
            kind = ExactCpuTerm if exact else CpuTerm
            return kind(problem, self.workspace, threads, length, centre, kernel=self.kernel)
        assert centre is not None
        w, b = point
        scores = _core.vector(self.workspace.n)
        self.workspace.scores(w, scores, threads, b)
        chosen = near_kinks(problem, scores, centre, reach, self.workspace.d)
        if len(chosen) > self.few * self.workspace.n or not can_balance(problem, chosen, centre):
            return CpuTerm(problem, self.workspace, threads, length, centre, kernel=self.kernel)
        u = self.combine(centre)
        return WorkingSet(problem, chosen, centre, u, length, threads, self.kernel)

    def interpolate(self, w: Array, b: float, duals: Array, deadline: float) -> Array | None:
        """Return coefficients for which scores are nearer to the kinks of free duals, or None."""
        return interpolated(self.term(), w, b, duals, deadline)

    def interior(self) -> InteriorTerm | None:
        too_many = min(self.workspace.n, self.workspace.d) > MOST_UNKNOWNS
        if too_many or self.problem.loss.curvature_varies:
            return None
        return InteriorTerm(self.term())

    def freedom(self, w: Array, b: float, beta: Array) -> tuple[float, float]:
        scores = _core.vector(self.workspace.n)
        self.workspace.scores(w, scores, self._threads, b)
        free = self.problem.loss.is_free(beta, self.problem.y)
        residual = np.abs(self.problem.loss.residual(scores, self.problem.y))
        total = self.problem.total
        return float(self._weight @ free), float(self._weight @ residual) / total

    def column_squares(self) -> Array:
        squares = np.empty(self.workspace.d)
        self.workspace.squares(np.ascontiguousarray(self._weight), squares, self._threads)
        return squares
