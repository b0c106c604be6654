"""Products and passes in NumPy, for a device's backend where there is no device.

Losses are the core's, by its Python face; sums are of long doubles.
"""

import math
from copy import copy

import numpy as np

from adasdca.backends.cuda.backend import DeviceBackend
from adasdca.backends.cuda.facts import DeviceFacts
from adasdca.backends.cuda.products import Derived, RowSums
from adasdca.backends.cuda.streamed import StreamedRows
from adasdca.multinomial.device import DeviceRows
from adasdca.problem.data import DenseRows


def host_products(rows):
    X = rows.values if isinstance(rows, DenseRows) else rows.matrix.toarray()
    return HostProducts(X.astype(float))


def host_backend(problem):
    return DeviceBackend(problem, host_products(problem.rows), HostPasses(problem))


def streamed_backend(problem):
    products = StreamedRows(problem.rows, 64, host_products, np)
    return DeviceBackend(problem, products, HostPasses(problem))


class HostProducts:
    def __init__(self, X):
        self.X, self.shape = X, X.shape
        n, d = X.shape
        self.sizes, self.chain, self.chain_of = float(d), n, n
        counts = np.count_nonzero(X, axis=0).astype(float)
        self.facts = DeviceFacts(n, d, n * d, True, 8, float(d) ** 2, counts, ascends=True)

    def to_device(self, x):
        return x

    from_device = to_device

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

    def curve(self, h, v, shift):
        image = h * self.scores(v, shift)
        return self.combine(image), image

    def iterate(self, system, few, wait, deadline, most):
        return NotImplemented

    def begin(self, r, factors):
        return self.combine(r), self.row_squares(factors)

    def squares(self, h):
        return h @ self.X**2

    def row_squares(self, factors):
        return self.X**2 @ factors

    def gram(self, h, centre, rows, deadline):
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


class HostSummation:
    xp = np

    def sum(self, values, weight):
        return total(values, 1.0 if weight is None else weight)


def host_classes(rows, n_classes):
    return DeviceRows(host_products(rows), HostSummation(), n_classes)


def streamed_classes(rows, n_classes):
    return DeviceRows(StreamedRows(rows, 64, host_products, np), HostSummation(), n_classes)


def total(*factors):
    return float(math.prod(np.asarray(each, np.longdouble) for each in factors).sum())


class HostPasses:
    xp = np

    def __init__(self, problem):
        self.loss, self.y = problem.loss, problem.y
        self.c = np.ones(len(self.y)) if problem.weight is None else problem.weight
        self.sign = self.y if self.loss.kind == "classification" else 1.0

    def weighted(self, x):
        return self.c * x

    def part(self, rows):
        found = copy(self)
        found.y, found.c = self.y[rows], self.c[rows]
        found.sign = found.y if self.loss.kind == "classification" else 1.0
        return found

    def _rounded(self, scores, centre, length):
        if length == 0:
            bend = self.loss.curvature(scores, self.y)
            return -self.loss.slope(scores, self.y), bend
        beta = self.loss.step(centre, scores, self.y, length)
        own, (lower, upper) = self.sign * beta, self.loss.domain
        inside = (own > lower) & (own < upper) & ((own != 0) | (self.loss.dead_zone == 0))
        return beta, inside / (self.loss.smoothness + length)

    def derive(self, scores, change, step, centre, length):
        scores = scores if change is None else scores + step * change
        beta, bend = self._rounded(scores, centre, length)
        h, away = self.c * bend, np.abs(self.loss.residual(scores, self.y))
        sums = total(self.c, beta), total(h), total(away)
        return Derived(scores, beta, h, *sums, np.count_nonzero(h), np.abs(scores).max())

    def slope(self, scores, change, step, centre, length):
        beta, bend = self._rounded(scores + step * change, centre, length)
        value = total(self.c, beta, change)
        return value, total(self.c, np.abs(beta * change)), total(self.c, bend, change, change)

    def slopes(self, scores, b):
        return -self.loss.slope(scores + b, self.y)

    def shares(self, scores, b, duals, curvature):
        step = self.loss.step(duals, scores + b, self.y, curvature) - duals
        share = self.loss.excess(duals, scores + b, self.y)
        return self.c * share, self.c * curvature * np.abs(step)

    def balance(self, scores, b):
        beta, bend = self.slopes(scores, b), self.loss.curvature(scores + b, self.y)
        return total(self.c, beta), total(self.c, np.abs(beta)), total(self.c, bend)

    def sides(self, duals):
        return total(self.c, np.maximum(duals, 0)), total(self.c, np.maximum(-duals, 0))

    def row_sums(self, scores, b, duals, share, norms, norm_w, outer):
        loss, y, c, a = self.loss, self.y, self.c, scores + b
        target = 1.0 if loss.kind == "classification" else np.abs(y)
        eps = np.finfo(float).eps / 2
        delta = norm_w * share + 4 * eps * (outer + np.abs(a) + target)
        s = -loss.slope(a, y)
        change = 0.5 * delta
        if not loss.curvature_varies:
            change = np.abs(loss.slope(a + delta, y) - loss.slope(a - delta, y))
        return RowSums(
            total(c, loss.value(a, y)),
            total(c, loss.excess(duals, a, y)),
            total(c, delta * (np.abs(s - duals) + change)),
            total(c, delta * (np.abs(s) + change)),
            total(c, np.abs(duals) * norms),
            total(c, duals),
            np.abs(loss.residual(a, y)).max(),
        )
