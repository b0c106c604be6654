"""A few rows of a problem with kinks, solved for their duals while the others' stay.

In the coordinates of a row (sign s, target t, z = s·score, b = sβ, r = t − z) a kink is at |r| = ε,
and b there is anywhere between the slopes on its two sides. With a centre b⁰ and a length γ

    max_b  Σ c_i (t_i b_i − ε|b_i| − γ/2 (b_i − b⁰_i)²) − λN/2 ‖u(b)‖²

is the problem of a smooth loss: the same one with its kinks rounded about the duals b⁰. Those of
the regulariser are rounded as well (`rounding`), about u⁰. The primal is minimised by
Newton steps,

    (λN ∇²E + Σ_{i free} (c_i/γ) x_i x_iᵀ) Δv = λN (u − ∇E),

each to the minimum along its line; for L2 v is w, E is ½‖w‖².
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backends.cpu import make_workspace
from adasdca.newton.rounding import regulariser
from adasdca.newton.systems import bordered, cholesky
from adasdca.problem.data import CsrRows, DenseRows, Rows
from adasdca.problem.losses import PiecewiseQuadratic
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.intp]


def dot(a: Array, b: Array) -> float:
    """Return Σ a_i b_i; BLAS would wake its threads for long vectors, which takes longer."""
    return float(np.einsum("i,i->", a, b))


@dataclass(frozen=True)
class Kinks:
    """A loss with kinks, row by row in the rows' own coordinates."""

    sign: Array
    target: Array
    weight: Array
    lower: float
    upper: float
    zone: float

    @classmethod
    def of(cls, problem: Problem) -> Kinks:
        """Return the loss of a problem."""
        loss, y = problem.loss, problem.y
        assert isinstance(loss, PiecewiseQuadratic)
        ones = np.ones(len(y))
        margin = loss.kind == "classification"
        sign, target = (y, ones) if margin else (ones, y)
        weight = ones if problem.weight is None else problem.weight
        return cls(sign, target, weight, *loss.domain, loss.dead_zone)

    def on(self, rows: Index) -> Kinks:
        """Return the loss on some of the rows."""
        return replace(
            self, sign=self.sign[rows], target=self.target[rows], weight=self.weight[rows]
        )

    def slopes(self, z: Array) -> Array:
        """Return −φ' away from kinks, as b."""
        r = self.target - z
        return np.where(r > self.zone, self.upper, np.where(r < -self.zone, self.lower, 0.0))

    def distance(self, z: Array) -> Array:
        """Return how far z is from the nearest kink."""
        away: Array = np.abs(self.target - z)
        return np.abs(away - self.zone, out=away)

    def best(self, z: Array, centre: Array, gamma: float) -> Array:
        """Return −φ' with the kinks rounded about the centre, γ·centre being given, as b."""
        b = self.target - z
        b += centre
        if self.zone > 0:
            b -= np.clip(b, -self.zone, self.zone)
        b /= gamma
        return np.clip(b, self.lower, self.upper, out=b)

    def free(self, b: Array) -> NDArray[np.bool_]:
        """Return which duals are strictly inside a piece."""
        inside = (b > self.lower) & (b < self.upper)
        return inside & (b != 0) if self.zone > 0 else inside

    def linear(self, b: Array) -> float:
        """Return Σ c (t b − ε|b|), N times the part of the dual that the rows add."""
        return float(np.sum(self.weight * (self.target * b - self.zone * np.abs(b))))


@dataclass
class Point:
    """A primal point (w, b) with its scores, and a dual one; they need not belong together."""

    w: Array
    bias: float
    z: Array
    dual: Array
    u: Array


def take_rows(rows: Rows, chosen: Index) -> Rows:
    """Copy some of the rows."""
    if isinstance(rows, DenseRows):
        return DenseRows(rows.values[chosen])
    whole = sp.csr_array((rows.values, rows.columns, rows.start), shape=rows.shape)
    part = whole[chosen]
    return CsrRows(part.data, part.indices, part.indptr.astype(np.int64), part.shape)


class Patch:
    """Some of the rows, with the duals of the others fixed.

    Parameters
    ----------
    problem : Problem
        The whole problem.
    kinks : Kinks
        Its loss.
    rows : array of int
        The rows whose duals may move.
    point : Point
        Where everything is.
    """

    #: Newton steps on one centre. More mean that γ fell too fast.
    most = 50

    def __init__(self, problem: Problem, kinks: Kinks, rows: Index, point: Point) -> None:
        self.rows = rows
        self.kinks = kinks.on(rows)
        self.stiffness = problem.strength * problem.total
        self.intercept = problem.fit_intercept
        self.regulariser = regulariser(problem)
        weight = self.kinks.weight
        # λN is that of the whole, so that `combine` gives these rows' part of u.
        part = replace(
            problem,
            rows=take_rows(problem.rows, rows),
            y=problem.y[rows],
            weight=weight,
            lam=self.stiffness / float(weight.sum()),
            l1_ratio=0.0,
            bounds=None,
            fit_intercept=False,
        )
        self.workspace = make_workspace(part, pack=False)
        self.centre, self.u = point.dual[rows], point.u
        self.fixed = point.u - self.combine(self.centre)
        held = dot(kinks.weight, kinks.sign * point.dual)
        self.held = held - dot(weight, self.kinks.sign * self.centre)

    def combine(self, b: Array) -> Array:
        """Return these rows' part of u."""
        u = np.empty(self.workspace.d)
        self.workspace.combine(self.kinks.sign * b, u, 1)
        return u

    def minimise(
        self, point: Point, gamma: float, rho: float, enough: float, deadline: float
    ) -> tuple[Point, bool]:
        """Return the point for this γ and ρ, with z and b of these rows only, and if it is good.

        Parameters
        ----------
        point : Point
            Where to begin.
        gamma : float
            The length over which the kinks of the loss are rounded.
        rho : float
            The stiffness of those of the regulariser, if it has any.
        enough : float
            The gap at which to stop.
        deadline : float
            When to stop, on the clock of `time.perf_counter`.
        """
        kinks, mu = self.kinks, self.stiffness
        rounded = self.regulariser.about(self.u, rho)
        v, bias, z = point.w, point.bias, point.z[self.rows]
        centre = gamma * self.centre
        self.steps = 0
        while True:
            b = kinks.best(z, centre, gamma)
            u = self.fixed + self.combine(b)
            place = rounded.at(v)
            right = mu * (u - place.p)
            balance = 0.0
            lost = 0.5 * rounded.bend * float((u - place.p) @ right)
            if self.intercept:
                balance = self.held + dot(kinks.weight, kinks.sign * b)
                # What is too much on one side will be scaled down, at this price.
                lost += abs(balance) * float(np.abs(kinks.target - z).mean())
            here = Point(place.w, bias, z, b, u)
            if lost <= enough:
                return here, True
            move = None
            if self.steps < rounded.effort * self.most and time.perf_counter() < deadline:
                h = np.where(kinks.free(b), kinks.weight / gamma, 0.0)
                move = self._direction(z, h, mu * place.curvature, right, balance, deadline)
            if move is None:
                return here, False
            self.steps += 1
            dv, db = move
            dz = np.empty(len(z))
            self.workspace.scores(dv, dz, 1)
            dz = kinks.sign * (dz + db)
            line = Line(
                kinks,
                gamma,
                centre,
                z,
                dz,
                fixed=-mu * float(self.fixed @ dv) - db * self.held,
                stiffness=mu,
                rise=rounded.along(v, dv),
            )
            length = line.minimum(-float(right @ dv) - balance * db)
            if length == 0.0:  # rounding is all that is left, and would be so each time
                return here, False
            v, bias, z = v + length * dv, bias + length * db, z + length * dz

    def _direction(
        self,
        z: Array,
        h: Array,
        diagonal: float | Array,
        right: Array,
        balance: float,
        deadline: float,
    ) -> tuple[Array, float] | None:
        """Solve Newton's equations, the intercept's at the border; None if that failed."""
        d = len(right)
        mass = float(h.sum()) if self.intercept else 0.0
        matrix, column = _core.vector(d * d).reshape(d, d), np.zeros((int(mass > 0), d))
        ones = np.ones((len(column), len(h)))
        seconds = deadline - time.perf_counter()
        if not self.workspace.gram(h, ones, matrix, column, 1, seconds):
            return None
        solve = cholesky(matrix, diagonal)
        if solve is None:
            return None
        dw, db = bordered(solve, right, column.sum(axis=0), mass, balance)
        if self.intercept and mass == 0:
            # Without a free dual P is straight in b: any length will do, the line search mends it.
            db = float(np.copysign(np.abs(self.kinks.target - z).mean(), balance))
        return (dw, db) if np.isfinite(dw).all() and np.isfinite(db) else None


@dataclass
class Line:
    """The primal of a rounded problem along a step from z to z + dz."""

    kinks: Kinks
    gamma: float
    centre: Array
    z: Array
    dz: Array
    fixed: float
    stiffness: float
    rise: Callable[[float], float]

    def __post_init__(self) -> None:
        self.weighted = self.kinks.weight * self.dz

    def slope(self, length: float) -> float:
        """Return the derivative at some length: it rises, in straight pieces."""
        b = self.kinks.best(self.z + length * self.dz, self.centre, self.gamma)
        return self.fixed + self.stiffness * self.rise(length) - dot(self.weighted, b)

    def minimum(self, start: float) -> float:
        """Return the length where the slope is about 0; at length 0 it is `start` < 0."""
        near = 0.1 * abs(start)
        low, f_low, high = 0.0, start, 1.0
        f_high = self.slope(high)
        while f_high < -near and high < 64.0:
            low, f_low, high = high, f_high, 2.0 * high
            f_high = self.slope(high)
        if f_high <= near:
            return high
        for _ in range(20):
            # Regula falsi, the value at the end that stays halved.
            length = high - f_high * (high - low) / (f_high - f_low)
            f = self.slope(length)
            if abs(f) <= near:
                return length
            if f > 0:
                high, f_high, f_low = length, f, 0.5 * f_low
            else:
                low, f_low, f_high = length, f, 0.5 * f_high
        return low
