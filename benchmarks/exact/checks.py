"""What must hold of certificates in real numbers, whatever the problem."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import adasdca
from adasdca.problem.problem import Problem as Checked
from adasdca.screening import idle_features, idle_rows
from adasdca.solution import Status, as_beta
from benchmarks.exact.numbers import ONE, ZERO, Vector, dot, vector
from benchmarks.exact.optimum import CLOSE, Bracket
from benchmarks.exact.problems import MAX_TIME, Case

#: A solve has stalled early if a gap this much smaller can be certified at its optimum in doubles.
EARLY = 100.0

MODEL = ("coef", "intercept", "dual_coef")

#: An answer of the checks: what does not hold, in words.
Findings = Iterator[str]


def certificate_holds(of: Any, primal: Decimal, most: Decimal, apart: Decimal) -> Findings:
    """Check primal, dual, gap and radius, given P here, min P ≤ most, and the distance from w*."""
    claimed, gap, dual = Decimal(of.primal), Decimal(of.gap), Decimal(of.dual)
    if abs(claimed - primal) > claimed - gap - dual:
        yield f"primal {of.primal!r} is {primal:.20g}, off by {claimed - primal:.2e}"
    if dual > most:
        yield f"dual {of.dual!r} is above min P by {dual - most:.2e}"
    if gap < primal - most:
        yield f"gap {of.gap!r} is below P − min P = {primal - most:.4e}"
    if np.isfinite(of.radius) and Decimal(of.radius) < apart:
        yield f"radius {of.radius!r} is below |w − w*| = {apart:.4e}"


def status_holds(found: Any, tol: float, primal: Decimal, most: Decimal) -> Findings:
    """Check what the status of a solve says of its gap."""
    if found.status is Status.CONVERGED and (
        found.gap > tol * found.primal or primal - most > Decimal(tol) * primal
    ):
        yield f"converged at a gap of {found.gap!r}, with tol = {tol:g}"
    if found.status is Status.STALLED and f"{found.relative_gap:.2g}" not in found.message:
        yield "stalled without saying where"


class Oracle:
    """A case and its optimum, found from a solution near it, on which it does not depend.

    `nearer` makes another one, if the optimum is not found from the first.
    """

    def __init__(self, case: Case, near: Any, nearer: Callable[[], Any] | None = None) -> None:
        self.case, self.exact = case, case.exactly()
        self.optimum: Bracket = self._from(near, thorough=nearer is None)
        if nearer is not None and not self.decided:
            again = self._from(nearer(), thorough=True)
            self.optimum = min(self.optimum, again, key=lambda each: each.width)

    def _from(self, near: Any, thorough: bool) -> Bracket:
        beta = as_beta(near.dual_coef, self.case.options["sample_weight"], len(self.case.y))[0]
        return self.exact.optimum(*self.point(near.coef, near.intercept), beta, thorough)

    @property
    def decided(self) -> bool:
        """Whether the optimum is known to all the digits that certificates have."""
        return self.optimum.width < CLOSE

    def point(self, coef: Any, intercept: float) -> tuple[Vector, Decimal]:
        """Return a model as the exact problem has it, a penalised intercept among its w."""
        w, b = vector(coef), Decimal(float(intercept))
        if self.case.constant:
            return [*w, b / Decimal(self.case.constant)], ZERO
        return w, b

    def certificate(self, of: Any, coef: Any, intercept: float) -> Findings:
        """Check a certificate of this model."""
        w, b = self.point(coef, intercept)
        return self._certificate(of, w, self.exact.primal(w, b))

    def _certificate(self, of: Any, w: Vector, primal: Decimal) -> Findings:
        return certificate_holds(of, primal, self.optimum.most, self.distance(w))

    def distance(self, w: Vector) -> Decimal:
        """Return a number below ‖w − w*‖, and by less than w* is uncertain."""
        if not self.exact.strength:
            return ZERO
        away = [x - y for x, y in zip(w, self.optimum.at.coef, strict=True)]
        unknown = 2 * (self.optimum.most - self.optimum.least) / self.exact.strength
        return dot(away, away).sqrt() - max(unknown, ZERO).sqrt()

    def solution(self, found: Any, tol: float) -> Findings:
        """Check a solution: its certificate, and what its status says."""
        w, b = self.point(found.coef, found.intercept)
        primal = self.exact.primal(w, b)
        yield from self._certificate(found, w, primal)
        yield from status_holds(found, tol, primal, self.optimum.most)

    def early(self, found: Any, tol: float) -> Findings:
        """Check that a solve stalled only where doubles have no more to give."""
        if found.status is Status.STALLED and self.decided:
            best = self.in_doubles().relative_gap
            if found.relative_gap > max(EARLY * best, tol, 1e-9):
                yield f"stalled at {found.relative_gap:.1e}, though {best:.1e} can be certified"

    def rounded(self) -> tuple[Any, float, Any]:
        """Return the optimum in doubles: coefficients, intercept and duals α."""
        at, constant = self.optimum.at, self.case.constant
        coef, b = np.array([float(x) for x in at.coef]), float(at.intercept)
        if constant:
            coef, b = coef[:-1], float(at.coef[-1] * Decimal(constant))
        terms = zip(self.exact.weight, self.exact.sign, at.beta, strict=True)
        return coef, b, np.array([float(c * s * x) for c, s, x in terms])

    def in_doubles(self) -> Any:
        """Return what can be certified of the optimum in doubles."""
        coef, b, alpha = self.rounded()
        case = self.case
        return adasdca.certify(case.X, case.y, coef, intercept=b, dual_coef=alpha, **case.options)

    def screening(self, found: Any) -> Findings:
        """Check that what is screened out does not matter at the optimum."""
        case, at = self.case, self.optimum.at
        if not self.decided:
            return
        checked = Checked.checked(case.X, case.y, **case.options)
        if case.constant or case.options["l1_ratio"] == 1.0:
            return
        for i in np.flatnonzero(idle_rows(checked, checked.rows.matrix, found)):
            if abs(at.beta[i]) > CLOSE and self.exact.weight[i]:
                yield f"row {i} is screened, but its dual is {at.beta[i]:.3e}"
        for j in np.flatnonzero(idle_features(checked, checked.rows.matrix, found)):
            if abs(at.coef[j]) > CLOSE:
                yield f"feature {j} is screened, but its coefficient is {at.coef[j]:.3e}"

    def certify(self, rng: np.random.Generator) -> Findings:
        """Check `certify` at the optimum, rounded to doubles, and at points near it."""
        case = self.case
        coef, b, alpha = self.rounded()
        size = float(rng.choice([0.0, 1e-15, 1e-9, 1e-3, 1.0]))
        if size:
            coef = coef * (1.0 + size * rng.standard_normal(len(coef)))
            if case.options["bounds"] is not None:
                coef = np.clip(coef, *case.options["bounds"])
            if case.options["fit_intercept"]:
                b *= 1.0 + size * rng.standard_normal()
        options = {"dual_coef": alpha} if rng.random() < 0.5 else {}
        if rng.random() < 0.2 and case.options["l1_ratio"] < 1.0:
            options["epochs"] = 2
        result = adasdca.certify(case.X, case.y, coef, intercept=b, **case.options, **options)
        for each in self.certificate(result, coef, b):
            yield f"certify, {size:g} off: {each}"

    def estimator(self) -> Findings:
        """Check an estimator's certificate, and its bounds on scores."""
        case, options = self.case, self.case.options
        if options["bounds"] not in (None, (0.0, np.inf)):
            return
        regression = options["loss"].kind == "regression"
        model = adasdca.AdaSDCARegressor if regression else adasdca.AdaSDCAClassifier
        weight = options["sample_weight"]
        total = len(case.y) if weight is None else math.fsum(weight)
        fitted = model(
            loss=options["loss"],
            C=1.0 / (options["lam"] * total),
            l1_ratio=options["l1_ratio"],
            penalty_factors=options.get("penalty_factors"),
            positive=options["bounds"] is not None,
            fit_intercept=options["fit_intercept"],
            intercept_scaling=options["intercept_scaling"],
            tol=max(case.how["tol"], 1e-9),
            max_time=MAX_TIME,
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted.fit(case.X, case.y, sample_weight=weight)
        # The strength is 1/(C·N), rounded: the problem is another one by a digit.
        oracle, lam = self, 1.0 / (fitted.C * total)
        if lam != options["lam"]:
            model_of = SimpleNamespace(**dict(zip(MODEL, self.rounded(), strict=True)))
            oracle = Oracle(replace(case, options=options | {"lam": lam}), model_of)
        coef, b = np.ravel(fitted.coef_), float(np.ravel(fitted.intercept_)[0])
        for each in oracle.certificate(fitted.certificate_, coef, b):
            yield f"estimator: {each}"
        if not oracle.decided:
            return
        yield from oracle.scores(fitted, coef, b)

    def scores(self, fitted: Any, coef: Any, b: float) -> Findings:
        """Check the bounds of an estimator on the scores of the optimum."""
        at = self.optimum.at
        best = self.exact.margins(at.coef, at.intercept)
        if hasattr(fitted, "certified_error"):
            errors, said = fitted.certified_error(self.case.X), fitted.predict(self.case.X)
            for i, (e, here) in enumerate(zip(errors.tolist(), said.tolist(), strict=True)):
                off = abs(best[i] - Decimal(here))
                if np.isfinite(e) and Decimal(e) < off * (ONE - CLOSE):
                    yield f"row {i}: error {e!r} is below {off:.4e}"
        else:
            here = self.exact.margins(*self.point(coef, b))
            for i, m in enumerate(fitted.certified_margin(self.case.X).tolist()):
                if Decimal(m) > best[i] * (ONE if here[i] > 0 else -ONE):
                    yield f"row {i}: certified by {m!r}, but {here[i]:.3e} becomes {best[i]:.3e}"
