"""A backend in plain NumPy whose rows are in two parts: the contract, implemented once more.

It cannot ascend. Row vectors are lists of two arrays, one for each part, and what leaves it is
added over the parts.
"""

from dataclasses import replace

import numpy as np
from scipy.optimize import brentq

from adasdca.ascent.survey import Survey
from adasdca.backends.base import Derivatives, Gram, RowSlope
from adasdca.backends.facts import RowFacts
from adasdca.duality.certificate import Certificate
from adasdca.problem.data import DenseRows


class TwoParts:
    def __init__(self, problem):
        rows = problem.rows
        X = rows.values if isinstance(rows, DenseRows) else rows.matrix.toarray()
        c = np.ones(len(problem.y)) if problem.weight is None else problem.weight
        self.cut = [slice(0, len(c) // 3), slice(len(c) // 3, None)]
        self.X, self.y, self.c = ([a[s] for s in self.cut] for a in (X.astype(float), problem.y, c))
        self.problem, self.loss, self.mu = problem, problem.loss, problem.mu
        self.f = np.ones(X.shape[1]) if problem.penalty_factors is None else problem.penalty_factors
        self.facts = RowFacts(DenseRows(X))
        self.facts.ascends = self.facts.central = False
        self.multiplier, self.b = 0.0, 0.0
        self.w, self.beta = np.zeros(X.shape[1]), self.scatter(np.zeros(len(c)))

    def scatter(self, vector):
        return [vector[s] for s in self.cut]

    def gather(self, duals):
        return np.concatenate(duals)

    kept = gather

    def total(self, f, *vectors):
        return sum(f(*part) for part in zip(self.c, self.y, *vectors, strict=True))

    def restart(self, beta, multiplier):
        self.place(self.scatter(beta), self.primal(self.combine(self.scatter(beta))), multiplier)

    def place(self, duals, w, b):
        slopes = [-self.loss.slope(z, y) for z, y in zip(self.scores(w, b), self.y, strict=True)]
        self.beta, self.w, self.b = slopes if duals is None else duals, w, b

    def scores(self, w, b):
        return [X @ w + b for X in self.X]

    def combine(self, duals):
        return self.total(lambda c, y, X, beta: X.T @ (c * beta), self.X, duals) / self.mu

    def restrict(self, features):
        bounds = self.problem.bounds
        part = replace(
            self.problem, rows=DenseRows(np.concatenate(self.X)[:, features]),
            bounds=bounds and (bounds[0][features], bounds[1][features]),
            penalty_factors=self.f[features],
        )  # fmt: skip
        return TwoParts(part)

    def column_squares(self):
        return self.total(lambda c, y, X: c @ X**2, self.X)

    def primal(self, u):
        sigma = self.problem.l1_ratio / (1 - self.problem.l1_ratio)
        lower, upper = self.problem.bounds or (-np.inf, np.inf)
        return np.clip(np.sign(u) * np.maximum(np.abs(u) / self.f - sigma, 0), lower, upper)

    def certify(self, w, b, duals):
        if self.problem.fit_intercept:
            up = self.total(lambda c, y, t: c @ np.maximum(t, 0), duals)
            down = self.total(lambda c, y, t: c @ np.maximum(-t, 0), duals)
            low = min(up, down)
            duals = [t * np.where(t > 0, low / (up or 1), low / (down or 1)) for t in duals]
        problem, z, u = self.problem, self.scores(w, b), self.combine(duals)
        sigma = problem.l1_ratio / (1 - problem.l1_ratio)
        risk = self.total(lambda c, y, a: c @ self.loss.value(a, y), z)
        excess = self.total(lambda c, y, a, t: c @ self.loss.excess(t, a, y), z, duals)
        v = self.primal(u)
        g, at_v = (self.f @ (0.5 * x**2 + sigma * np.abs(x)) for x in (w, v))
        gap = (excess + self.mu * max(g - at_v - u @ (w - v), 0.0)) / problem.total
        primal = (risk + self.mu * g) / problem.total
        rounding = 1e-14 * primal
        return Certificate.of(primal, gap + rounding, rounding, rounding, problem.strength)

    def survey(self, needs, seconds, enough=0.0):
        b, duals = self.b, self.beta
        if self.problem.fit_intercept:
            z, far = self.scores(self.w, 0.0), 1.0 + 2 * max(abs(y).max() for y in self.y)

            def balance(b):
                return self.total(lambda c, y, a: c @ -self.loss.slope(a + b, y), z)

            far += 2 * max(abs(a).max(initial=0.0) for a in z)
            b = brentq(balance, -far, far, xtol=1e-15) if balance(-far) * balance(far) < 0 else b
            if self.loss.smoothness > 0:
                duals = [-self.loss.slope(a + b, y) for a, y in zip(z, self.y, strict=True)]
        return Survey(
            certificate=self.certify(self.w, b, duals), n=self.facts.n, intercept=b,
            active=self.facts.n, moved=self.facts.n, coef=self.w, beta=self.beta, certified=duals,
            gamma=self.loss.smoothness, curvature=None, weight=None,
        )  # fmt: skip

    def interior(self):
        return None

    def freedom(self, w, b, duals):
        lower, upper = self.loss.domain
        sign = [y if self.loss.kind == "classification" else 1.0 for y in self.y]
        free = [(s * t > lower) & (s * t < upper) for s, t in zip(sign, duals, strict=True)]
        scatter = self.total(lambda c, y, a: c @ abs(self.loss.residual(a, y)), self.scores(w, b))
        return self.total(lambda c, y, f: c @ f, free), scatter / self.problem.total

    def term(self, length=0.0, centre=None, point=None, reach=None, exact=False):
        return TwoPartsTerm(self, length, centre or [np.zeros(len(y)) for y in self.y])


class TwoPartsTerm:
    known = 0

    def __init__(self, rows, length, centre):
        self.rows, self.length, self.centre = rows, length, centre

    def beta(self, z):
        loss, q = self.rows.loss, self.length
        return [loss.step(t, a, y, q) for t, a, y in zip(self.centre, z, self.rows.y, strict=True)]

    def curvatures(self, z, beta):
        loss, rows, (lower, upper) = self.rows.loss, self.rows, self.rows.loss.domain
        if self.length == 0:
            return [c * loss.curvature(a, y) for c, a, y in zip(rows.c, z, rows.y, strict=True)]
        own = [
            t * y if loss.kind == "classification" else t for t, y in zip(beta, rows.y, strict=True)
        ]
        inside = [(t > lower) & (t < upper) & ((t != 0) | (loss.dead_zone == 0)) for t in own]
        return [
            c * i / (loss.smoothness + self.length) for c, i in zip(rows.c, inside, strict=True)
        ]

    def go(self, v, b):
        self.place(v, b)

    def place(self, v, b):
        self.z = self.rows.scores(v, b)
        return self.derive()

    def derive(self):
        self.t = self.beta(self.z)
        self.h = self.curvatures(self.z, self.t)
        self.balance = self.rows.total(lambda c, y, t: c @ t, self.t)
        u = self.rows.combine(self.t)
        return Derivatives(u, self.balance, sum(h.sum() for h in self.h))

    def duals(self):
        return self.t

    curved = property(lambda self: sum(np.count_nonzero(h) for h in self.h))
    travel = property(lambda self: 0.0)

    @property
    def residual(self):
        far = self.rows.total(lambda c, y, a: abs(self.rows.loss.residual(a, y)).sum(), self.z)
        return far / self.rows.facts.n

    def aim(self, dv, db):
        self.dz = self.rows.scores(dv, db)

    def slope(self, length):
        z = [a + length * da for a, da in zip(self.z, self.dz, strict=True)]
        t = self.beta(z)
        terms = [c * s * da for c, s, da in zip(self.rows.c, t, self.dz, strict=True)]
        curvature = sum(h @ da**2 for h, da in zip(self.curvatures(z, t), self.dz, strict=True))
        return RowSlope(-sum(s.sum() for s in terms), curvature, sum(abs(s).sum() for s in terms))

    def move(self, length):
        self.z = [a + length * da for a, da in zip(self.z, self.dz, strict=True)]
        return self.derive()

    def gram(self, intercept, deadline, sample=None, combined=False, rough=False):
        pairs = list(zip(self.rows.X, self.h, strict=True))
        mass = sum(h.sum() for h in self.h) if intercept else 0.0
        column = sum(X.T @ h for X, h in pairs) if mass > 0 else np.zeros(self.rows.facts.d)
        mean = column / mass if mass > 0 else column
        matrix = sum((X - mean).T @ (h[:, None] * (X - mean)) for X, h in pairs)
        sums = self.rows.mu * self.rows.combine(self.t) if combined else None
        return Gram(matrix, column, mass, sums)

    def curve(self, p, q):
        images = [h * a for h, a in zip(self.h, self.rows.scores(p, q), strict=True)]
        pairs = zip(self.rows.X, images, strict=True)
        return sum(X.T @ a for X, a in pairs), sum(a.sum() for a in images)

    def diagonal(self, intercept):
        powers = (2, 1) if intercept else (2,)
        lines = [
            sum(h @ X**power for X, h in zip(self.rows.X, self.h, strict=True)) for power in powers
        ]
        return np.stack(lines), sum(h.sum() for h in self.h)
