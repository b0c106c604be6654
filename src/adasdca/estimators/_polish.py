"""Few features: Newton steps where epochs crawl, and digits below what P and D can show.

Coordinate ascent needs about as many epochs as the problem is ill-conditioned, and on features of
very different scale that is too many; Newton's method does not mind. And a gap of 0 in double
precision leaves ‖w − w*‖ about √(ε·P/λ), eight digits, where the gradient still shows more.

For a smooth loss a few damped Newton steps end the matter; those with kinks have the solver's own
finish (`adasdca.newton.kinks`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.problem.losses import Loss
from adasdca.problem.products import RowProducts

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Corner:
    """A problem with few features, near its optimum or not.

    Attributes
    ----------
    X : (n, d) array or CSR matrix
        Rows, read in blocks.
    y, c : (n,) array
        Targets and weights.
    loss : Loss
        The loss, a smooth one.
    l2, l1 : float
        N times the coefficients of ½‖w‖² and ‖w‖₁.
    fit_intercept : bool
        Whether there is a free intercept.
    deadline : float
        When to stop, on the clock of `time.perf_counter`.
    """

    X: Any
    y: Array
    c: Array
    loss: Loss
    l2: float
    l1: float
    fit_intercept: bool
    deadline: float = np.inf

    def measure(self, rows: RowProducts, w: Array, b: float) -> tuple[Array, float, Array, float]:
        """Return scores, N·P (of the moving part), and its gradient in w and b."""
        scores = rows.times(w[None])[:, 0] + b
        slope = self.c * self.loss.slope(scores, self.y)
        value = float(self.c @ self.loss.value(scores, self.y) + 0.5 * self.l2 * (w @ w))
        gradient = rows.transposed(slope[:, None])[0] + self.l2 * w + self.l1 * np.sign(w)
        return (
            scores,
            value + self.l1 * float(np.abs(w).sum()),
            gradient,
            float(slope.sum()) if self.fit_intercept else 0.0,
        )

    def newton(
        self, coef: Array, intercept: float, free: Index, steps: int = 300
    ) -> tuple[Array, Array, float]:
        """Return w, β and b after damped Newton steps.

        Parameters
        ----------
        coef, intercept
            Where to begin.
        free : array of int
            The coefficients that may move; the others stay where they are, at 0.
        steps : int, default 300
            Most steps; one that lowers neither P nor the gradient ends them.
        """
        rows, w, b = RowProducts(self.X), coef, intercept
        moving = np.append(free, len(coef)) if self.fit_intercept else free
        ridge = np.append(np.full(len(coef), self.l2), 0.0)[moving]
        scores, f, g_w, g_b = self.measure(rows, w, b)
        # Where P is straight in some direction, e.g. in b with every row on a straight piece, a
        # step needs a curvature to lean on: as little as will do.
        support = 1e-12
        for _ in range(steps if len(moving) else 0):
            g = np.append(g_w, g_b)[moving]
            h = 1e-10 * (1.0 + np.abs(scores))
            rise = self.loss.slope(scores + h, self.y) - self.loss.slope(scores - h, self.y)
            hessian = rows.gram(self.c * rise / (2.0 * h))[np.ix_(moving, moving)]
            hessian += np.diag(ridge)
            scale = max(float(np.trace(hessian)) / len(moving), self.l2)
            while support < 1e8 and time.perf_counter() < self.deadline:
                move = np.zeros(len(coef) + 1)
                lean = support * scale * np.eye(len(moving))
                move[moving] = np.linalg.solve(hessian + lean, -g)
                new = self.measure(rows, w + move[:-1], b + move[-1])
                g_new = np.append(new[2], new[3])[moving]
                # Close to the optimum P cannot tell points apart any more, its gradient can.
                finer = np.linalg.norm(g_new) < 0.5 * np.linalg.norm(g)
                level = new[1] <= f + 1e-12 * abs(f)
                if new[1] < f + 1e-4 * float(g @ move[moving]) or (finer and level):
                    break
                support *= 10.0
            else:
                break
            w, b = w + move[:-1], b + float(move[-1])
            scores, f, g_w, g_b = new
            support = max(1e-12, 0.01 * support)
        return w, -self.loss.slope(scores, self.y), b
