"""Few features: Newton steps where epochs crawl, and digits below what P and D can show.

Coordinate ascent needs about as many epochs as the problem is ill-conditioned, and on features of
very different scale that is too many; Newton's method does not mind. And a gap of 0 in double
precision leaves ‖w − w*‖ about √(ε·P/λ), eight digits, where the gradient still shows more.

For a smooth loss a few damped Newton steps end the matter. For a loss with kinks the optimum is the
solution of a linear system, once it is known which duals are free; to learn that, the kinks are
rounded less and less.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adasdca.losses import Kind, Loss, PiecewiseQuadratic
from adasdca.products import RowProducts

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: Near an optimum no more duals are free than there are unknowns, but for ties; with more than this
#: many times as many there is no use in solving for them.
TIES = 3


@dataclass(frozen=True)
class Rounded(PiecewiseQuadratic):
    """A loss with kinks, each rounded over a length γ."""

    base: PiecewiseQuadratic
    gamma: float
    name = "rounded"

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        """Whether y is a label or a target, as in the base."""
        return self.base.kind

    @property
    def smoothness(self) -> float:
        """γ of the conjugate."""
        return self.gamma

    @property
    def dead_zone(self) -> float:
        """ε of the conjugate, as in the base."""
        return self.base.dead_zone

    @property
    def domain(self) -> tuple[float, float]:
        """Bounds of b, as in the base."""
        return self.base.domain


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
        The loss.
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
        """Return w, β and b after damped Newton steps, for smooth losses.

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

    def rounded(self, gamma: float) -> Corner:
        """Return the problem with the kinks of its loss rounded: γ in the conjugate."""
        assert isinstance(self.loss, PiecewiseQuadratic)
        return replace(self, loss=Rounded(self.loss, gamma))

    def vertex(self, beta: Array) -> tuple[Array, float] | None:
        """Return β and b where the rows of free duals sit on their kinks, for L2 and kinks only.

        A dual strictly inside its interval stays free and its row's score is that of the kink,
        t − ε·sign(b) in the row's own coordinates; the others keep their values. A free dual that
        the system sends out of its interval is held at its end, and the system solved again.
        """
        loss = self.loss
        if not isinstance(loss, PiecewiseQuadratic) or loss.smoothness > 0 or self.l1 > 0:
            return None
        sign = self.y if loss.kind == "classification" else np.ones(len(self.y))
        target = np.ones(len(self.y)) if loss.kind == "classification" else self.y
        lower, upper = loss.domain
        near, zone = 1e-7 * (upper - lower), loss.dead_zone
        b = np.clip(sign * beta, lower, upper)
        if zone > 0:
            b[np.abs(b) < near] = 0.0
        free = (b > lower + near) & (b < upper - near) & ((b != 0) | (zone == 0))
        rows, most = RowProducts(self.X), TIES * (self.X.shape[1] + 1)
        while 0 < (m := int(free.sum())) <= most and time.perf_counter() < self.deadline:
            inside = np.flatnonzero(free)
            held = np.where(free, 0.0, b)
            part = self.X[inside]
            part = np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)
            part *= sign[inside, None]
            fixed = rows.transposed((self.c * sign * held)[:, None])[0]
            extra = int(self.fit_intercept)
            system = np.zeros((m + extra, m + extra))
            system[:m, :m] = (part @ part.T) * self.c[inside] / self.l2
            right = np.append(
                target[inside] - zone * np.sign(b[inside]) - part @ fixed / self.l2,
                np.zeros(extra),
            )
            if extra:
                system[:m, m] = sign[inside]
                system[m, :m] = (self.c * sign)[inside]
                right[m] = -float(self.c * sign @ held)
            solution, *_ = np.linalg.lstsq(system, right, rcond=None)
            found = solution[:m]
            low = np.where((zone > 0) & (b[inside] > 0), 0.0, lower)
            high = np.where((zone > 0) & (b[inside] < 0), 0.0, upper)
            outside = (found < low) | (found > high)
            b[inside] = np.clip(found, low, high)
            if not outside.any():
                return sign * b, float(solution[m]) if extra else 0.0
            free[inside[outside]] = False
        return None
