"""Products and passes in NumPy, for a device's backend where there is no device."""

import numpy as np

from adasdca.backends.cuda.backend import DeviceBackend
from adasdca.backends.cuda.products import ARRAYS, EVERY, Products
from adasdca.backends.cuda.streamed import StreamedRows
from adasdca.backends.facts import KnownFacts
from adasdca.backends.passes import Passes
from adasdca.multinomial.device import DeviceRows
from adasdca.problem.data import DenseRows


def host_products(rows):
    X = rows.values if isinstance(rows, DenseRows) else rows.matrix.toarray()
    return HostProducts(X.astype(float))


def host_backend(problem):
    return DeviceBackend(problem, host_products(problem.rows), host_passes(problem))


def streamed_backend(problem):
    products = StreamedRows(problem.rows, 64, host_products, ARRAYS)
    return DeviceBackend(problem, products, host_passes(problem))


class HostProducts(Products):
    def __init__(self, X):
        self.X, self.shape = X, X.shape
        n, d = X.shape
        self.sizes, self.chain, self.chain_of = float(d), n, n
        counts = np.count_nonzero(X, axis=0).astype(float)
        self.facts = KnownFacts(n, d, n * d, True, 8, float(d) ** 2, counts, ascends=True)

    def scores(self, v, shift=0.0):
        return self.X @ v + shift

    def combine(self, r):
        return r @ self.X

    def scores_of(self, v):
        return v @ self.X.T

    def combine_of(self, r, squared=False):
        return r @ (self.X**2 if squared else self.X)

    def line(self, v, shift, scores, passes, centre, length):
        change = self.scores(v, shift)
        beta = passes.derive(scores, change, 1.0, centre, length).beta
        return change, self.combine(passes.weighted(beta))

    def squares(self, h):
        return h @ self.X**2

    def row_squares(self, factors):
        return self.X**2 @ factors

    def gram(self, h, centre, deadline, rows=EVERY):
        X, n = self.X if centre is None else self.X - centre, len(self.X)
        index = np.arange(n) if rows.index is None else rows.index
        if rows.size:
            bounds = np.linspace(0, n, rows.size + 1).astype(int)[:-1]
            index = np.minimum(bounds + rows.key % max(n // rows.size, 1), n - 1)
        Z, h = np.column_stack([X, np.ones(n)])[index], h[index]
        return Z.T @ (h[:, None] * Z)

    def batches(self, point, passes, height):
        return HostBatches(self.X, point, passes, height)

    def take_rows(self, index):
        return HostProducts(self.X[index])

    def take_columns(self, features):
        return HostProducts(np.ascontiguousarray(self.X[:, features]))


class HostBatches:
    """Mini-batches, each with the intercept at which its steps add up to 0, by bisection."""

    def __init__(self, X, point, passes, height):
        self.X, self.point, self.passes, self.height = X, point, passes, height
        self.u, self.b, self.balance = point.u.copy(), point.b, point.balance

    def __call__(self, order):
        for first in range(0, len(order), self.height):
            self.visit(order[first : first + self.height])
        return self.b

    def visit(self, rows):
        point, passes = self.point, self.passes.part(rows)
        scores, beta, q = self.X[rows] @ self.u, point.beta[rows], point.curvature[rows]

        def moved(b):
            return passes.loss.step(beta, scores + b, passes.y, q)

        def left(b):
            return self.balance + passes.c @ (moved(b) - beta)

        if point.free:
            low = high = self.b
            for reach in 8.0 ** np.arange(-3, 30):
                if left(low) >= 0 >= left(high):
                    break
                low, high = self.b - reach, self.b + reach
            else:
                return  # what is left cannot be mended by these rows
            for _ in range(100):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if left(middle) > 0 else (low, middle)
            self.b = 0.5 * (low + high)
            self.balance = left(self.b)
        new = moved(self.b)
        self.u += (passes.c * (new - beta)) @ self.X[rows] / point.mu
        point.beta[rows] = new


def host_classes(rows, n_classes):
    return DeviceRows(host_products(rows), n_classes)


def streamed_classes(rows, n_classes):
    return DeviceRows(StreamedRows(rows, 64, host_products, ARRAYS), n_classes)


def host_passes(problem):
    return Passes(problem, ARRAYS)
