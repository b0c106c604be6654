"""Rows in plain NumPy, in two parts: the contract, implemented once more.

Vectors of rows are lists of two arrays, and what leaves is added over them.
"""

import math

import numpy as np

from adasdca.backends.contract import Rows
from adasdca.backends.facts import dense_facts
from adasdca.problem.data import DenseRows


class TwoParts(Rows):
    def __init__(self, problem, X=None):
        rows = problem and problem.rows
        if X is None:
            X = rows.values if isinstance(rows, DenseRows) else rows.matrix.toarray()
        self.facts, self.X = dense_facts(*X.shape), self.scatter(X.astype(float))

    def scatter(self, numbers):
        return np.split(numbers, [len(numbers) // 3])

    def gather(self, vector):
        return np.concatenate(vector)

    def each(self, function, *vectors):
        return [function(*part) for part in zip(*vectors, strict=True)]

    def sums(self, function, *vectors):
        parts = zip(*self.each(function, *vectors), strict=True)
        return [math.fsum(map(math.fsum, part)) for part in parts]

    def largest(self, function, *vectors):
        return max(part.max() for part in self.each(function, *vectors))

    def scores(self, v, shift=0.0):
        return [X @ v + shift for X in self.X]

    def combine(self, r):
        return sum(self.each(lambda X, r: r @ X, self.X, r))

    def squares(self, h):
        return sum(self.each(lambda X, h: h @ X**2, self.X, h))

    def row_squares(self, factors):
        return [X**2 @ factors for X in self.X]

    def gram(self, h, centre, deadline):
        def of_part(X, h):
            Z = np.column_stack([X if centre is None else X - centre, np.ones(len(X))])
            return Z.T @ (h[:, None] * Z)

        return sum(self.each(of_part, self.X, h))

    def take_columns(self, features):
        return TwoParts(None, self.gather(self.X)[:, features])
