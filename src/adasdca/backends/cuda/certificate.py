"""The certificate of a primal and a dual point on a device, with a bound of its rounding.

Sums over the rows are taken on the device; what the features add to them is the core's. What an
addition can lose is charged for as many additions as a sum goes through at most, in whatever order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.base import without_rows
from adasdca.backends.cuda.products import Passes, Products, RowSums
from adasdca.backends.workspace import certified_by, make_workspace
from adasdca.duality.certificate import Certificate
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps) / 2


class Certifier:
    """Certifies points of a problem whose rows are on a device.

    `norms` are the lengths of the rows in the dual of the regulariser's metric.
    """

    def __init__(self, problem: Problem, products: Products, passes: Passes, norms: Any) -> None:
        self.problem, self.products, self.passes = problem, products, passes
        self.norms = norms
        # A sum of so many products, in whatever order; the core halves it for long rows.
        self._share = EPS * (products.sizes + 8.0) * norms
        self._workspace = make_workspace(without_rows(problem), pack=False)
        # The weight of the label 1, where y is labels, and the largest |x|²/(λN).
        self._rest = passes.sides(passes.y)[0], float(norms.max()) ** 2 / problem.mu

    def norm(self, w: Array) -> float:
        """Return |w| in the regulariser's metric."""
        return math.sqrt(float((self.problem.regularizer.metric * w) @ w))

    def row_sums(self, scores: Any, b: float, duals: Any, w: Array) -> RowSums:
        """Sum over the rows, at scores + b with these duals."""
        constant = self.problem.constant
        outer = abs(b) + (abs(constant * float(w[-1])) if constant else 0.0)
        return self.passes.row_sums(scores, b, duals, self._share, self.norms, self.norm(w), outer)

    def off(self, mass: float) -> float:
        """Return how far u can be from the truth, in the dual of the regulariser's metric."""
        return 2.0 * EPS * (self.products.chain + 12) * mass / self.problem.mu

    def certificate(self, sums: RowSums, w: Array, u: Array) -> Certificate:
        """Certify w and a dual point with its u, by the rows' part."""
        positive, square = self._rest
        evidence = np.array([*sums[:6], positive, sums.far, square])
        return certified_by(self._workspace, self.problem, evidence, w, u, self.products.chain)
