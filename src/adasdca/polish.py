"""The last digits of a small problem: below what the values of P and D can show.

A gap of 0 in double precision leaves ‖w − w*‖ about √(ε·P/λ), eight digits. For a smooth loss the
gradient shows more, and a few Newton steps on it give nearly all sixteen. For a loss with kinks the
optimum is the solution of a linear system, once it is known which duals are free.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adasdca.losses import Kind, Loss, PiecewiseQuadratic

Array = NDArray[np.float64]


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
    """A small problem near its optimum.

    Attributes
    ----------
    X : (n, d) array
        Few rows.
    y, c : (n,) array
        Targets and weights.
    loss : Loss
        The loss.
    l2, l1 : float
        N times the coefficients of ½‖w‖² and ‖w‖₁.
    fit_intercept : bool
        Whether there is a free intercept.
    """

    X: Array
    y: Array
    c: Array
    loss: Loss
    l2: float
    l1: float
    fit_intercept: bool

    @classmethod
    def of(cls, X: Any, y: Array, weight: Array | None, loss: Loss, **problem: Any) -> Corner:
        """Take the rows as a matrix of doubles, and weights of 1 for none."""
        rows = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
        return cls(rows, y, np.ones(len(y)) if weight is None else weight, loss, **problem)

    def newton(
        self, coef: Array, intercept: float, free: NDArray[np.intp], steps: int = 50
    ) -> tuple[Array, Array, float]:
        """Return w, β and b after damped Newton steps, for smooth losses.

        Parameters
        ----------
        coef, intercept
            Where to begin.
        free : array of int
            The coefficients that may move; the others stay where they are, at 0.
        steps : int, default 50
            Most steps; one that lowers neither P nor the gradient ends them.
        """
        rows, extra = self.X[:, free], int(self.fit_intercept)
        rows = np.hstack([rows, np.ones((len(rows), extra))])
        ridge = np.append(np.full(len(free), self.l2), np.zeros(extra))
        kink = np.append(self.l1 * np.sign(coef[free]), np.zeros(extra))
        v = np.append(coef[free], np.full(extra, intercept))

        def measure(v: Array) -> tuple[float, Array]:
            scores = rows @ v
            value = self.c @ self.loss.value(scores, self.y) + 0.5 * ridge @ v**2 + kink @ v
            slope = self.loss.slope(scores, self.y)
            return float(value), np.asarray(rows.T @ (self.c * slope) + ridge * v + kink)

        f, g = measure(v)
        # Where P is straight in some direction, e.g. in b with every row on a straight piece, a
        # step needs a curvature to lean on: as little as will do.
        support = 1e-12
        for _ in range(steps):
            scores = rows @ v
            h = 1e-10 * (1.0 + np.abs(scores))
            rise = self.loss.slope(scores + h, self.y) - self.loss.slope(scores - h, self.y)
            hessian = rows.T @ ((self.c * rise / (2.0 * h))[:, None] * rows) + np.diag(ridge)
            scale = max(float(np.trace(hessian)) / len(v), self.l2)
            while support < 1e8:
                step = np.linalg.solve(hessian + support * scale * np.eye(len(v)), -g)
                f_new, g_new = measure(v + step)
                # Close to the optimum P cannot tell points apart any more, its gradient can.
                finer = np.linalg.norm(g_new) < 0.5 * np.linalg.norm(g)
                if f_new < f + 1e-4 * float(g @ step) or finer:
                    break
                support *= 10.0
            else:
                break
            v, f, g = v + step, f_new, g_new
            support = max(1e-12, 0.01 * support)
        w = np.zeros_like(coef)
        w[free] = v[: len(free)]
        return w, -self.loss.slope(rows @ v, self.y), float(v[-1]) if extra else 0.0

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
        if not isinstance(loss, PiecewiseQuadratic) or self.l1 > 0:
            return None
        sign = self.y if loss.kind == "classification" else np.ones(len(self.y))
        target = np.ones(len(self.y)) if loss.kind == "classification" else self.y
        lower, upper = loss.domain
        near = 1e-7 * (upper - lower)
        b = np.clip(sign * beta, lower, upper)
        b[np.abs(b) < near] = 0.0 if loss.dead_zone > 0 else b[np.abs(b) < near]
        gram = (self.X @ self.X.T) * np.outer(sign, sign * self.c) / self.l2
        free = (b > lower + near) & (b < upper - near)
        free &= (b != 0) | (loss.dead_zone == 0)
        for _ in range(len(b) + 1):
            inside = np.flatnonzero(free)
            held = np.where(free, 0.0, b)
            kink = target[inside] - loss.dead_zone * np.sign(b[inside])
            m, extra = len(inside), int(self.fit_intercept)
            if m == 0:
                return None
            system = np.zeros((m + extra, m + extra))
            system[:m, :m] = gram[np.ix_(inside, inside)]
            right = np.append(kink - gram[inside] @ held, np.zeros(extra))
            if extra:
                system[:m, m] = sign[inside]
                system[m, :m] = (self.c * sign)[inside]
                right[m] = -float(self.c * sign @ held)
            solution, *_ = np.linalg.lstsq(system, right, rcond=None)
            found = solution[:m]
            low = np.where((loss.dead_zone > 0) & (b[inside] > 0), 0.0, lower)
            high = np.where((loss.dead_zone > 0) & (b[inside] < 0), 0.0, upper)
            outside = (found < low) | (found > high)
            b[inside] = np.clip(found, low, high)
            if not outside.any():
                return sign * b, float(solution[m]) if extra else 0.0
            free[inside[outside]] = False
        return None
