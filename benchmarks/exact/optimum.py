"""The optimum of a small problem, between two numbers that are equal to sixty digits.

From a good start, active sets are guessed, the equations of the optimum solved on them, and the
sets guessed anew, which is a semismooth Newton method. Nothing depends on its success: the upper
number is P at a point, the lower one D at a dual point that is feasible, so the least P is between
them wherever the iteration ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.problem.losses import Logistic, Loss
from benchmarks.exact.numbers import (
    DIGITS,
    MARGIN,
    ONE,
    ZERO,
    Vector,
    clip,
    digits,
    dot,
    eliminate,
    vector,
)

Array = NDArray[np.float64]
INFINITY = Decimal("Infinity")
ROUNDS, MOST_ROUNDS = 10, 60  # of guesses, and of steps that may be cut
STIFFNESSES = tuple(Decimal(x) for x in ("1", "1e-4", "1e4", "1e-8", "1e8"))
CLOSE = Decimal("1e-45")  # relative width of a bracket that is good enough


@dataclass(frozen=True)
class Point:
    """A primal and a dual point, the latter in the coordinates of a row."""

    coef: Vector
    intercept: Decimal
    beta: Vector


@dataclass(frozen=True)
class Guess:
    """Duals and coefficients that are fixed (None: free), and the slopes of |·| where they are."""

    rows: list[Decimal | None]
    sides: Vector
    features: list[Decimal | None]
    slopes: Vector


@dataclass(frozen=True)
class Bracket:
    """least ≤ min P ≤ most: D and P, taken at a point."""

    least: Decimal
    most: Decimal
    at: Point

    @property
    def width(self) -> Decimal:
        """The part of P that is not decided."""
        return (self.most - self.least) / (abs(self.most) or ONE)


class Problem:
    """P and D of a problem as given, in the coordinates of a row: z = y·score, or the score.

    Arguments are those of `solve`; `weight` has n numbers, `bounds` is a pair of arrays or None.
    With a penalised intercept, its constant is the last column of X.
    """

    def __init__(
        self,
        X: Any,
        y: Array,
        *,
        weight: Array,
        loss: Loss,
        lam: float,
        l1_ratio: float = 0.0,
        bounds: tuple[Array, Array] | None = None,
        fit_intercept: bool = False,
        factors: Array | None = None,
    ) -> None:
        self.n, self.d = X.shape
        self.loss, self.intercept = loss, fit_intercept
        margin = loss.kind == "classification"
        self.sign = vector(y) if margin else [ONE] * self.n
        self.target = [ONE] * self.n if margin else vector(y)
        rows = np.asarray(X, dtype=np.float64)
        self.rows = [vector(row) for row in (rows * y[:, None] if margin else rows)]
        self.weight = vector(weight)
        self.total = sum(self.weight, ZERO)
        ratio = Decimal(l1_ratio)
        f = vector(np.ones(self.d) if factors is None else factors)
        # N·lam·f_j, the parts of the squares and of the absolute values.
        self.ridge = [self.total * Decimal(lam) * (ONE - ratio) * each for each in f]
        self.sigma = [self.total * Decimal(lam) * ratio * each for each in f]
        low, high = bounds or (np.full(self.d, -np.inf), np.full(self.d, np.inf))
        self.low, self.high = vector(low), vector(high)
        self.smooth = Decimal(loss.smoothness)
        self.half = self.smooth / 2
        self.zone = Decimal(loss.dead_zone)
        self.lower, self.upper = (Decimal(x) for x in loss.domain)

    @property
    def strength(self) -> Decimal:
        """The modulus of strong convexity of P."""
        return min(self.ridge) / self.total

    @cached_property
    def columns(self) -> list[Vector]:
        """The features."""
        return [list(column) for column in zip(*self.rows, strict=True)]

    @cached_property
    def is_logistic(self) -> bool:
        """Whether the loss is not piecewise quadratic."""
        return isinstance(self.loss, Logistic)

    # -- the two objectives

    def margins(self, w: Vector, b: Decimal) -> Vector:
        """Return z."""
        scores = [dot(row, w) for row in self.rows]
        return [z + s * b for z, s in zip(scores, self.sign, strict=True)] if b else scores

    def ascent(self, z: Decimal, t: Decimal) -> Decimal:
        """Return −φ'(z), one of them at a kink."""
        if self.is_logistic:
            e = (-abs(z)).exp()
            return (e if z > 0 else ONE) / (ONE + e)
        return self.best(t - z, self.smooth)

    def best(self, s: Decimal, h: Decimal) -> Decimal:
        """Return the b in the domain that maximises s·b − ε|b| − h·b²/2."""
        beyond = abs(s) - self.zone
        if beyond <= 0:
            return ZERO
        most = self.upper if s > 0 else -self.lower
        return (min(beyond / h, most) if h else most).copy_sign(s)

    def value(self, z: Decimal, t: Decimal) -> Decimal:
        """Return φ(z)."""
        if self.is_logistic:
            return max(-z, ZERO) + (ONE + (-abs(z)).exp()).ln()
        s = t - z
        beyond = abs(s) - self.zone
        if beyond <= 0:
            return ZERO
        most = self.upper if s > 0 else -self.lower
        b = min(beyond / self.smooth, most) if self.smooth else most
        return b * (beyond - self.half * b)

    def conjugate(self, b: Decimal, t: Decimal) -> Decimal:
        """Return φ*(−b) for a b in the domain."""
        if self.is_logistic:
            rest = ONE - b
            return (b * b.ln() if b else ZERO) + (rest * rest.ln() if rest else ZERO)
        return -t * b + self.zone * abs(b) + self.smooth * b * b / 2

    def primal(self, w: Vector, b: Decimal) -> Decimal:
        """Return P(w, b), infinite outside the bounds."""
        return self._primal(w, self.margins(w, b))

    def _primal(self, w: Vector, margins: Vector) -> Decimal:
        if any(not lo <= x <= hi for x, lo, hi in zip(w, self.low, self.high, strict=True)):
            return INFINITY
        losses = map(self.value, margins, self.target)
        squares = (x * x for x in w)
        penalty = dot(self.ridge, squares) / 2 + dot(self.sigma, map(abs, w))
        return (dot(self.weight, losses) + penalty) / self.total

    def feasible(self, beta: Vector) -> Vector:
        """Return duals in their domain, their sum by weights 0 and g* finite, near these."""
        beta = [clip(b, self.lower, self.upper) for b in beta]
        if self.intercept:
            signed = [c * s * b for c, s, b in zip(self.weight, self.sign, beta, strict=True)]
            up = sum((x for x in signed if x > 0), ZERO)
            down = -sum((x for x in signed if x < 0), ZERO)
            share = min(up, down) / (max(up, down) or ONE)
            heavy = (lambda x: x > 0) if up > down else (lambda x: x < 0)
            beta = [b * share if heavy(x) else b for b, x in zip(beta, signed, strict=True)]
        # Without an L2 term g* is finite within the L1 weight only, where w has no bound.
        share = ONE
        for j, v in enumerate(self.sums(beta) if ZERO in self.ridge else []):
            up, down = self.high[j] == INFINITY, self.low[j] == -INFINITY
            most = max(v if up else ZERO, -v if down else ZERO)
            if not self.ridge[j] and most > self.sigma[j]:
                share = min(share, self.sigma[j] / most * (ONE - MARGIN))
        return beta if share == ONE else [share * b for b in beta]

    def sums(self, beta: Vector) -> Vector:
        """Return V = Σ_i c_i b_i x_i."""
        alpha = [c * b for c, b in zip(self.weight, beta, strict=True)]
        return [dot(column, alpha) for column in self.columns]

    def best_coef(self, j: int, v: Decimal) -> Decimal:
        """Return the w_j that maximises v·w − ridge·w²/2 − sigma·|w| within its bounds."""
        shrunk = max(abs(v) - self.sigma[j], ZERO)
        if not shrunk:
            return clip(ZERO, self.low[j], self.high[j])
        x = shrunk / self.ridge[j] if self.ridge[j] else INFINITY
        return clip(x.copy_sign(v), self.low[j], self.high[j])

    def dual(self, beta: Vector) -> Decimal:
        """Return D at feasible duals, less what its digits can have lost."""
        losses = [
            c * self.conjugate(b, t) for c, b, t in zip(self.weight, beta, self.target, strict=True)
        ]
        parts = []
        for j, v in enumerate(self.sums(beta)):
            w = self.best_coef(j, v)
            if w.is_infinite():  # where features cancel in all digits, nothing is proved
                return -INFINITY
            parts += [v * w, -self.ridge[j] * w * w / 2, -self.sigma[j] * abs(w)]
        terms = losses + parts
        lost = MARGIN * sum(map(abs, terms), ZERO)
        return (-sum(terms, ZERO) - lost) / self.total

    # -- the optimum

    def bracket(self, at: Point) -> Bracket:
        """Return what these points prove, −φ' for the duals of a smooth loss."""
        margins = self.margins(at.coef, at.intercept)
        if self.smooth:
            beta = [self.ascent(z, t) for z, t in zip(margins, self.target, strict=True)]
            at = Point(at.coef, at.intercept, beta)
        most = self._primal(at.coef, margins) * (ONE + MARGIN)
        return Bracket(self.dual(self.feasible(at.beta)), most, at)

    def optimum(self, coef: Any, intercept: Any, beta: Any, thorough: bool = True) -> Bracket:
        """Return a bracket of min P, as narrow as could be found from a point and duals.

        Unless `thorough`, by the first attempt alone.
        """
        duals = [s * b for s, b in zip(self.sign, vector(beta), strict=True)]
        start = Point(vector(coef), Decimal(float(intercept)), duals)
        brackets = []
        for stiffness in STIFFNESSES[:1] if self.smooth else STIFFNESSES:
            brackets.append(self.bracket(self._descend(start, stiffness, damped=False)))
            if brackets[-1].width < CLOSE or not thorough:
                return brackets[-1]
        if self.smooth:
            brackets.append(self.bracket(self._descend(start, ONE, damped=True)))
        return min([*brackets, self.bracket(start)], key=lambda each: each.width)

    def _descend(self, point: Point, stiffness: Decimal, damped: bool) -> Point:
        """Guess and solve until a guess comes back, or as long as steps that may be cut gain."""
        seen: list[Guess] = []
        for k in range(MOST_ROUNDS if damped else ROUNDS):
            guess = self._guess(point, stiffness)
            # The same equations have the same solution, but for the logistic loss.
            if guess in seen and not self.is_logistic and not damped:
                break
            # Its exponentials are dear, and steps double the digits that are right.
            with digits(20 << k if self.is_logistic and not damped else DIGITS):
                moved, new = self._step(point, guess)
            if damped:
                cut = self._cut(point, new)
                if cut is None:
                    return point
                new = cut
            point = new
            if moved < CLOSE:
                break
            seen.append(guess)
        return point

    def _cut(self, at: Point, to: Point) -> Point | None:
        """Return the first point of halved steps where P is less; None if there is none."""
        value, share = self.primal(at.coef, at.intercept), ONE
        while share > CLOSE:
            w = [x + share * (y - x) for x, y in zip(at.coef, to.coef, strict=True)]
            b = at.intercept + share * (to.intercept - at.intercept)
            if self.primal(w, b) < value:
                return Point(w, b, to.beta)
            share /= 2
        return None

    def _guess(self, at: Point, stiffness: Decimal) -> Guess:
        """Guess which duals and coefficients are free, and the values of the others."""
        beta, sides = at.beta, [ZERO] * self.n
        rows: list[Decimal | None] = [None] * self.n
        if not self.is_logistic:
            z = self.margins(at.coef, at.intercept)
            off = [t - a for t, a in zip(self.target, z, strict=True)]
            # At a kink the dual says which side it is, as in a step of coordinate ascent.
            q = ZERO
            if not self.smooth:
                mean = max(sum(map(abs, off), ZERO) / self.n, MARGIN)
                q = stiffness * mean / (self.upper - self.lower)
            pull = [r + q * now for r, now in zip(off, at.beta, strict=True)]
            news = [self.best(s, self.smooth + q) for s in pull]
            rows = [self._fixed(x, self.lower, self.upper, self.zone) for x in news]
            sides = [self.zone.copy_sign(s) for s in pull]
            if self.smooth:
                beta = news
        features, slopes = [], []
        for j, v in enumerate(self.sums(beta)):
            stiff, lo, hi = self._stiffness[j], self.low[j], self.high[j]
            p = v + (stiff - self.ridge[j]) * at.coef[j]
            new = clip((max(abs(p) - self.sigma[j], ZERO) / stiff).copy_sign(p), lo, hi)
            features.append(self._fixed(new, lo, hi, self.sigma[j]))
            slopes.append(self.sigma[j].copy_sign(p))
        return Guess(rows, sides, features, slopes)

    @staticmethod
    def _fixed(x: Decimal, low: Decimal, high: Decimal, corner: Decimal) -> Decimal | None:
        """Return x if it is at a bound, or at the corner of an absolute value, else None."""
        return None if low < x < high and (x != 0 or not corner) else x

    @cached_property
    def _stiffness(self) -> Vector:
        """The curvature of N·P along each feature, or a guess at it."""
        h = ONE / self.smooth if self.smooth else ONE
        squares = [dot(self.weight, (x * x for x in column)) for column in self.columns]
        return [r + h * square or ONE for r, square in zip(self.ridge, squares, strict=True)]

    def _step(self, at: Point, guess: Guess) -> tuple[Decimal, Point]:
        """Solve for what is free; return how far the coefficients moved, relative, and where to."""
        w = [x if f is None else f for x, f in zip(at.coef, guess.features, strict=True)]
        z = self.margins(w, at.intercept)
        free = [j for j, f in enumerate(guess.features) if f is None]
        active = [i for i, r in enumerate(guess.rows) if r is None and self.weight[i]]
        beta = [x if r is None else r for x, r in zip(at.beta, guess.rows, strict=True)]
        pull = [t - s - a for t, s, a in zip(self.target, guess.sides, z, strict=True)]
        curved: list[tuple[int, Decimal]] = []
        if self.is_logistic:
            beta = [self.ascent(a, ONE) for a in z]
            curved = [(i, self.weight[i] * beta[i] * (ONE - beta[i])) for i in active]
        elif self.smooth:
            for i in active:
                beta[i] = pull[i] / self.smooth
            curved = [(i, self.weight[i] / self.smooth) for i in active]
        columns = [self.columns[j] for j in free] + [self.sign] * self.intercept
        alpha = [c * x for c, x in zip(self.weight, beta, strict=True)]
        right = [dot(column, alpha) for column in columns]
        size = len(columns)
        matrix = [[ZERO] * size for _ in range(size)]
        within = [[column[i] for i, _ in curved] for column in columns]
        for k, column in enumerate(columns):
            scaled = [h * column[i] for i, h in curved]
            for m in range(k, size):
                other = within[m]
                matrix[k][m] = matrix[m][k] = dot(scaled, other)
        for k, j in enumerate(free):
            right[k] -= self.ridge[j] * w[j] + guess.slopes[j]
            matrix[k][k] += self.ridge[j]
        # Rows at a kink have a dual that is not known, and a margin that is.
        kinks = [] if self.smooth else active
        for i in kinks:
            for line, column in zip(matrix, columns, strict=False):
                line.append(column[i])
            right.append(pull[i])
        matrix += [[column[i] for column in columns] + [ZERO] * len(kinks) for i in kinks]
        found = eliminate(matrix, right)
        for k, j in enumerate(free):
            w[j] += found[k]
        b = at.intercept + (found[len(free)] if self.intercept else ZERO)
        for k, i in enumerate(kinks):
            beta[i] -= found[size + k] / self.weight[i]
        length = max(map(abs, found[:size]), default=ZERO)
        w = [clip(x, lo, hi) for x, lo, hi in zip(w, self.low, self.high, strict=True)]
        return length / (max(map(abs, [*w, b])) or ONE), Point(w, b, beta)
