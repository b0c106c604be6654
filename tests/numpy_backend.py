"""A backend in plain NumPy whose rows are in two parts: the contract, implemented once more.

It cannot ascend. Vectors of rows are lists of two arrays, and what leaves it is added over them.
"""

import numpy as np

from adasdca.backends.base import Derivatives, Gram, PlainBackend, PlainTerm, RowSlope
from adasdca.backends.facts import RowFacts
from adasdca.duality.certificate import Certificate, scaled_down, sides
from adasdca.problem.data import DenseRows


class TwoParts(PlainBackend):
    def __init__(self, problem):
        rows = problem.rows
        X = rows.values if isinstance(rows, DenseRows) else rows.matrix.toarray()
        c = np.ones(len(X)) if problem.weight is None else problem.weight
        self.problem, self.loss, self.facts = problem, problem.loss, RowFacts(DenseRows(X))
        self.facts.ascends = self.facts.central = False
        self.X, self.y, self.c = map(self.scatter, (X.astype(float), problem.y, c))
        self.place(self.scatter(np.zeros(len(X))), np.zeros(X.shape[1]), 0.0)

    def scatter(self, vector):
        return np.split(vector, [len(vector) // 3])

    def gather(self, duals):
        return np.concatenate(duals)

    def each(self, f, *vectors):
        return [f(*part) for part in zip(self.c, self.y, *vectors, strict=True)]

    def total(self, f, *vectors):
        return sum(self.each(f, *vectors))

    def scores(self, w, b):
        return [X @ w + b for X in self.X]

    def place(self, duals, w, b):
        slopes = self.each(lambda c, y, z: -self.loss.slope(z, y), self.scores(w, b))
        self.point = w, b, slopes if duals is None else duals

    def combine(self, duals):
        return self.total(lambda c, y, X, t: X.T @ (c * t), self.X, duals) / self.problem.mu

    def restrict(self, features):
        return TwoParts(self.problem.restrict(features))

    def column_squares(self):
        return self.total(lambda c, y, X: c @ X**2, self.X)

    def freedom(self, w, b, duals):
        free = self.total(lambda c, y, t: c @ self.loss.is_free(t, y), duals)
        away = self.total(lambda c, y, z: c @ abs(self.loss.residual(z, y)), self.scores(w, b))
        return free, away / self.problem.total

    def certify(self, w, b, duals):
        problem, g, loss = self.problem, self.problem.regularizer, self.loss
        if problem.fit_intercept:
            heavy = self.total(lambda c, y, t: np.array(sides(t, c)), duals)
            duals = [scaled_down(t, *heavy) for t in duals]
        z, u = self.scores(w, b), self.combine(duals)
        v = g.primal(u)
        excess = self.total(lambda c, y, a, t: c @ loss.excess(t, a, y), z, duals)
        excess += problem.mu * max(g.value(w) - g.value(v) - u @ (w - v), 0.0)
        risk = self.total(lambda c, y, a: c @ loss.value(a, y), z)
        primal = (risk + problem.mu * g.value(w)) / problem.total
        rounding = 1e-14 * primal
        gap = excess / problem.total + rounding
        return Certificate.of(primal, gap, rounding, rounding, problem.strength)

    def term(self, length=0.0, centre=None, point=None, reach=None, exact=False):
        return TwoPartsTerm(self, length, centre or [0.0 * y for y in self.y])


class TwoPartsTerm(PlainTerm):
    def __init__(self, rows, length, centre):
        self.rows, self.loss, self.length, self.centre = rows, rows.loss, length, centre

    def at(self, z):
        """Return the duals and the curvature of the rows at these scores."""
        beta = self.rows.each(self.beta, self.centre, z)
        return z, beta, self.rows.each(self.curvature, z, beta)

    def beta(self, c, y, centre, z):
        return self.loss.step(centre, z, y, self.length)

    def curvature(self, c, y, z, beta):
        if self.length == 0:
            return c * self.loss.curvature(z, y)
        return c * self.loss.is_free(beta, y) / (self.loss.smoothness + self.length)

    def ahead(self, length):
        return self.at([z + length * dz for z, dz in zip(self.z, self.dz, strict=True)])

    def place(self, v, b):
        return self.go_to(*self.at(self.rows.scores(v, b)))

    def move(self, length):
        return self.go_to(*self.ahead(length))

    def go_to(self, z, beta, h):
        self.z, self.t, self.h = z, beta, h
        self.balance = self.rows.total(lambda c, y, t: c @ t, beta)
        far = self.rows.total(lambda c, y, z: abs(self.loss.residual(z, y)).sum(), z)
        self.residual = far / self.rows.facts.n
        self.curved = sum(map(np.count_nonzero, h))
        return Derivatives(self.rows.combine(beta), self.balance, sum(map(np.sum, h)))

    def duals(self):
        return self.t

    def aim(self, dv, db):
        self.dz = self.rows.scores(dv, db)

    def slope(self, length):
        _, beta, h = self.ahead(length)
        terms = self.rows.each(lambda c, y, t, dz: -c * t * dz, beta, self.dz)
        curvature = sum(h @ dz**2 for h, dz in zip(h, self.dz, strict=True))
        return RowSlope(sum(map(np.sum, terms)), curvature, sum(abs(s).sum() for s in terms))

    def gram(self, intercept, deadline, sample=None, combined=False, rough=False):
        column, mass = self.curve(np.zeros(self.rows.facts.d), float(intercept))
        mean = column / mass if mass > 0 else column
        pairs = zip(self.rows.X, self.h, strict=True)
        matrix = sum((X - mean).T @ (h[:, None] * (X - mean)) for X, h in pairs)
        sums = self.rows.problem.mu * self.rows.combine(self.t) if combined else None
        return Gram(matrix, column, mass, sums)

    def curve(self, p, q):
        images = [h * z for h, z in zip(self.h, self.rows.scores(p, q), strict=True)]
        return self.across(images, lambda X: X), sum(map(np.sum, images))

    def diagonal(self, intercept):
        powers = (np.square, np.positive) if intercept else (np.square,)
        return np.stack([self.across(self.h, f) for f in powers]), sum(map(np.sum, self.h))

    def across(self, images, f):
        return sum(f(X).T @ a for X, a in zip(self.rows.X, images, strict=True))
