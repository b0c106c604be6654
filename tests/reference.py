"""The whole method once more, slow, dense and obvious: the oracle the package is tested against.

Nothing here imports the package. Letters as in the paper: beta (dual per unit of weight), u (dual
average), w = grad g*(u), kappa (residue), q (curvature of a row), c (weights, N their sum).

An intercept is a last column of constant value ``s`` which the L1 term and the bounds leave alone,
plus an ``offset`` b_k added to every score. That is the multiplier of sum(c beta) = 0, and moves by
``pace`` s u_b at every step to a dual inside of its bounds, and by ``reach`` s u_b after an ascent
that changed none. The pace is divided by 4 when s u_b, having changed its sign, was twice as large
as ever before.
"""

import contextlib
import pickle
import warnings
from typing import NamedTuple

import cvxpy as cp
import numpy as np
from scipy.optimize import brentq

from reference_losses import LOSSES, soft


class Problem:
    """P(w, b) = (1/N) sum c_i phi(x_i . w + b; y_i) + lam ((1-l1_ratio)/2 |w|^2 + l1_ratio |w|_1).

    Minimised over low <= w <= high and, with an intercept, b. Loss parameters are keywords. With
    penalty factors f the penalty of w_j is f_j times as large.
    """

    def __init__(
        self, X, y, loss, *, lam, l1_ratio=0.0, bounds=None, sample_weight=None,
        fit_intercept=False, penalty_factors=None, **params,
    ):  # fmt: skip
        self.X, self.y = np.asarray(X, float), np.asarray(y, float)
        self.n, self.d = self.X.shape
        self.loss, self.fit_intercept = LOSSES[loss](**params), fit_intercept
        self.c = np.ones(self.n) if sample_weight is None else np.asarray(sample_weight, float)
        self.N = self.c.sum()
        self.eta, self.lam = float(l1_ratio < 1), lam * ((1 - l1_ratio) or 1.0)
        # One entry a column of A; the last, of the intercept, is free.
        self.sigma = np.append(np.full(self.d, l1_ratio / ((1 - l1_ratio) or 1.0)), 0.0)
        self.f = np.append(np.ones(self.d) if penalty_factors is None else penalty_factors, 1.0)
        low, high = (-np.inf, np.inf) if bounds is None else bounds
        self.low = np.append(np.broadcast_to(low, self.d), -np.inf)
        self.high = np.append(np.broadcast_to(high, self.d), np.inf)
        # Norms of rows are dual to the one in which g is 1-strongly convex.
        self.inverse = 1 / np.where(self.f > 0, self.f, np.inf)
        # Where w is u, all rows together may answer to an intercept.
        self.linear = l1_ratio == 0 and bounds is None and penalty_factors is None
        self.s, self.reach, self.pace = self.constant() if fit_intercept else (0.0, 0.0, 0.0)
        self.A = np.column_stack([self.X, np.full(self.n, self.s)])
        self.v = self.A**2 @ self.inverse
        if fit_intercept and self.loss.gamma == 0:
            square = self.v - self.s**2 * self.inverse[-1]
            self.v += np.maximum(1e-4 * square.mean() - square, 0.0)
        self.q = self.c * self.v / (self.lam * self.N)

    def constant(self):
        """s, and the two shares of s u_b by which the multiplier moves."""
        far = 1.0 if self.loss.kind == "classification" else np.abs(self.y).mean()
        gamma = max(self.loss.gamma, far / (self.loss.high - self.loss.low))
        square = self.X**2 @ self.inverse[:-1]
        scale = self.c / (self.lam * self.N)
        answer = np.zeros(self.n)
        some = scale > 0
        answer[some] = 1 / (gamma / scale[some] + square[some] + square.mean() / 64)
        mean = answer.mean()
        if not self.linear:
            return np.sqrt(0.25 / mean), 1.0, 0.125 * 0.25
        s2 = min(16 / self.n, 0.25) / mean
        rows = slice(None, None, -(-self.n // 256))
        share, x = answer[rows], self.X[rows]
        pairs = ((share @ x) ** 2).sum() - share**2 @ (x**2).sum(axis=1)
        others = share.sum() ** 2 - share @ share
        p2 = s2 + (max(pairs / others, 0.0) if others > 0 else 0.0)
        return np.sqrt(s2), p2 / s2, 0.125 * min(p2 * mean, 1.0) * p2 / s2

    def average(self, beta):
        return self.A.T @ (self.c * beta) / (self.lam * self.N)

    def primal_point(self, u):
        return np.clip(soft(u / self.f, self.sigma), self.low, self.high)

    def g(self, w):
        return self.f @ (self.eta * w**2 / 2 + self.sigma * np.abs(w))

    def primal(self, w, b=0.0):
        """P at the d coefficients ``w`` and the intercept ``b``."""
        losses = self.loss.value(self.X @ w + b, self.y)
        return self.c @ losses / self.N + self.lam * self.g(np.append(w, 0.0))

    def dual(self, beta, offset=0.0):
        """D(beta); with an intercept the augmented Lagrangian, which is D where sum(c beta) = 0."""
        u = self.average(beta)
        w = self.primal_point(u)
        conjugates = self.loss.conjugate(beta, self.y) + offset * beta
        return -self.c @ conjugates / self.N - self.lam * (u @ w - self.g(w))


class Survey(NamedTuple):
    """What one pass over the rows shows; ``share`` is G_i (sum(c G) / N = gap, no intercept)."""

    score: np.ndarray
    residue: np.ndarray
    share: np.ndarray


def survey(problem, beta, offset=0.0):
    score = problem.A @ problem.primal_point(problem.average(beta)) + offset
    loss, y = problem.loss, problem.y
    share = loss.value(score, y) + loss.conjugate(beta, y) + score * beta
    return Survey(score, beta + loss.slope(score, y), share)


def certificate(problem, beta):
    """Primal and dual value of the point that ``beta`` stands for; primal >= optimum >= dual.

    With an intercept: the best b for w, and the better of beta and -phi' once the heavier sign is
    scaled down until sum(c beta) = 0.
    """
    w = problem.primal_point(problem.average(beta))[:-1]
    if not problem.fit_intercept:
        return problem.primal(w), problem.dual(beta)

    def slopes(b):
        return problem.loss.slope(problem.X @ w + b, problem.y)

    def balanced(beta):
        up, down = problem.c @ np.maximum(beta, 0), problem.c @ np.maximum(-beta, 0)
        lighter = min(up, down)
        return np.where(beta > 0, lighter / (up or 1.0), lighter / (down or 1.0)) * beta

    reach = 1.0
    while problem.c @ slopes(-reach) > 0 or problem.c @ slopes(reach) < 0:
        reach *= 2
    b = brentq(lambda b: problem.c @ slopes(b), -reach, reach, xtol=1e-15)
    duals = [problem.dual(balanced(candidate)) for candidate in (beta, -slopes(b))]
    return problem.primal(w, b), max(duals)


def importance(problem, survey=None):
    return problem.loss.gamma + problem.q


def relaxed(problem, survey):
    if problem.loss.gamma == 0:
        return problem.c * np.maximum(survey.share, 0.0)
    return np.abs(survey.residue) * np.sqrt(problem.c * (problem.q + problem.loss.gamma))


def gains(problem, survey):
    """What the exact step on each row adds to N/c_i times the dual (with L2, exactly that)."""
    loss, y = problem.loss, problem.y
    beta = survey.residue - loss.slope(survey.score, y)
    new = [loss.step(*row) for row in zip(beta, survey.score, y, problem.q, strict=True)]
    change = np.array(new, float) - beta
    fall = loss.conjugate(beta, y) - loss.conjugate(beta + change, y)
    return np.maximum(fall - survey.score * change - problem.q * change**2 / 2, 0.0)


def step(problem, survey):
    """Rule: the relaxed one with sqrt(2 (q + gamma) gain) / gamma in place of the residue."""
    gamma = problem.loss.gamma or problem.q.mean()
    residue = np.sqrt(2 * (problem.q + gamma) * gains(problem, survey)) / gamma
    return residue * np.sqrt(problem.c * (problem.q + gamma))


class Swings:
    """The pace of the multiplier, how high s u_b has swung, and how wide the multiplier."""

    def __init__(self, problem):
        self.pace, self.peak, self.highest = problem.pace, 0.0, 0.0
        self.n, self.fastest, self.visits = problem.n, problem.pace, 0
        self.seen = self.moved = self.turned = self.widest = 0.0

    def look(self, offset):
        """After n visits: a swing must be half as wide as those before it."""
        move = offset - self.seen
        if move * self.moved < 0:
            width = abs(self.seen - self.turned)
            if 2 * width > self.widest > 0:
                self.pace, self.widest = self.pace / 4, width
            self.widest, self.turned = max(self.widest, width), self.seen
        else:
            self.pace = min(1.2 * self.pace, self.fastest)
        self.seen, self.moved, self.visits = offset, move, 0

    def move(self, before, after):
        self.peak = max(self.peak, abs(after))
        if before * after < 0:
            if 0 < 2 * self.highest < self.peak:
                self.pace /= 4
            self.highest, self.peak = max(self.highest, self.peak), abs(after)


def follow(problem, beta, rows, offset=0.0, swings=None):
    """Exact coordinate steps at ``rows``, one after the other; returns beta and the offset."""
    beta, u, rests = beta.copy(), problem.average(beta), True
    swings = swings or Swings(problem)
    sign = problem.y if problem.loss.kind == "classification" else np.ones(problem.n)
    for i in rows:
        score = problem.A[i] @ problem.primal_point(u) + offset
        new = problem.loss.step(beta[i], score, problem.y[i], problem.q[i])
        rests = rests and new == beta[i]
        if new != beta[i] and problem.loss.low < new * sign[i] < problem.loss.high:
            offset += swings.pace * problem.s * u[-1]
        before = problem.s * u[-1]
        u += problem.c[i] * (new - beta[i]) / (problem.lam * problem.N) * problem.A[i]
        if new != beta[i]:
            swings.move(before, problem.s * u[-1])
            if swings.visits >= problem.n:
                swings.look(offset)
        swings.visits += 1
        beta[i] = new
    if rests:
        offset += min(len(rows) / problem.n, 1.0) * problem.reach * problem.s * u[-1]
    return beta, offset


def ascend(problem, beta, rows, offset=0.0):
    """The duals after exact coordinate steps at ``rows``."""
    return follow(problem, beta, rows, offset)[0]


def draw(weights, m, count, rng):
    """The picks of Algorithm 2 within an epoch: p_i <- p_i / m after each pick of i."""
    p, rows = np.array(weights, float), []
    for _ in range(count):
        below = np.cumsum(p)
        rows.append(int(np.searchsorted(below, rng.random() * below[-1], side="right")))
        p[rows[-1]] /= m
    return rows


def adasdca(problem, steps, rng, rule=relaxed):
    """Algorithm 1: yields (beta, p) before every step; ``rule(problem, survey)`` gives p."""
    beta = np.zeros(problem.n)
    for _ in range(steps):
        p = rule(problem, survey(problem, beta))
        p = p / p.sum()
        yield beta, p
        beta = ascend(problem, beta, [rng.choice(problem.n, p=p)])


def adasdca_plus(problem, epochs, rng, m=2.0, rule=relaxed):
    """Algorithm 2; returns beta and the multiplier of the intercept."""
    beta, offset, swings = np.zeros(problem.n), 0.0, Swings(problem)
    for _ in range(epochs):
        weights = rule(problem, survey(problem, beta, offset))
        picks = draw(weights, m, problem.n, rng) if weights.any() else range(problem.n)
        beta, offset = follow(problem, beta, picks, offset, swings)
    return beta, offset


def quartz(problem, rows, weights, exact=False):
    """QUARTZ at ``rows`` drawn from p ~ ``weights``; returns beta and its own primal point."""
    p = weights / weights.sum()
    theta = np.min(p * problem.loss.gamma / (problem.loss.gamma + problem.q))
    beta, w = np.zeros(problem.n), np.zeros(problem.d + 1)
    for i in rows:
        w = (1 - theta) * w + theta * problem.primal_point(problem.average(beta))
        score, y = problem.A[i] @ w, problem.y[i]
        if exact:
            beta[i] = problem.loss.step(beta[i], score, y, problem.q[i])
        else:
            slope = problem.loss.slope(score, y)
            beta[i] = (1 - theta / p[i]) * beta[i] - theta / p[i] * slope
    return beta, w[:-1]


# The losses a third time, in the words of CVXPY: of the residual r or of 1 - y a.
CONVEX = {
    "squared": lambda r, gamma=1.0: cp.square(r) / (2 * gamma),
    "smoothed_hinge": lambda h, gamma=1.0: cp.huber(cp.pos(h), gamma) / (2 * gamma),
    "hinge": lambda h: cp.pos(h),
    "squared_hinge": lambda h: cp.square(cp.pos(h)),
    "modified_huber": lambda h: cp.huber(cp.pos(h), 2.0),
    "logistic": lambda h: cp.logistic(h - 1),
    "huber": lambda r, delta=1.35: cp.huber(r, delta) / 2,
    "absolute": lambda r: cp.abs(r),
    "epsilon_insensitive": lambda r, epsilon=0.1: cp.pos(cp.abs(r) - epsilon),
    "squared_epsilon_insensitive": lambda r, epsilon=0.1: cp.square(cp.pos(cp.abs(r) - epsilon)),
    "quantile": lambda r, quantile=0.5: cp.maximum(-quantile * r, (1 - quantile) * r),
}


def optimum(
    X, y, loss, params=None, *, lam, l1_ratio=0.0, bounds=None, sample_weight=None,
    fit_intercept=False, penalty_factors=None,
):  # fmt: skip
    """Optimal value, coefficients and intercept by an interior-point method.

    Of one problem they are found once: many tests, and many storages, ask for the same.
    """
    params = params or {}
    asked = (X, y, loss, params, lam, l1_ratio, bounds, sample_weight, fit_intercept,
             penalty_factors)  # fmt: skip
    key = pickle.dumps([np.asarray(x) if isinstance(x, list) else x for x in asked])
    if key not in KNOWN:
        KNOWN[key] = _optimum(*asked)
    value, coef, intercept = KNOWN[key]
    return value, coef.copy(), intercept


KNOWN = {}


def _optimum(X, y, loss, params, lam, l1_ratio, bounds, sample_weight, fit_intercept, factors):
    setting = {"lam": lam, "l1_ratio": l1_ratio, "bounds": bounds, "sample_weight": sample_weight}
    setting |= {"fit_intercept": fit_intercept, "penalty_factors": factors}
    problem = Problem(X, y, loss, **setting, **params)
    w, b = cp.Variable(problem.d), cp.Variable() if fit_intercept else 0.0
    score, classify = problem.X @ w + b, problem.loss.kind == "classification"
    losses = CONVEX[loss](1 - cp.multiply(problem.y, score) if classify else score - y, **params)
    square, size = cp.sum_squares(w), cp.norm1(w)
    if factors is not None:
        square, size = factors @ cp.square(w), factors @ cp.abs(w)
    penalty = (1 - l1_ratio) / 2 * square + l1_ratio * size
    low, high = problem.low[:-1], problem.high[:-1]
    limits = [w[j] >= low[j] for j in np.flatnonzero(np.isfinite(low))]
    limits += [w[j] <= high[j] for j in np.flatnonzero(np.isfinite(high))]
    objective = cp.Minimize(problem.c @ losses / problem.N + lam * penalty)
    solve_tightly(cp.Problem(objective, limits))
    coef, intercept = np.clip(w.value, low, high), float(b.value) if fit_intercept else 0.0
    return problem.primal(coef, intercept), coef, intercept


def solve_tightly(problem):
    """Solve to the tightest tolerance that can be met on this problem, 1e-9 at the worst."""
    for tol in (1e-13, 1e-12, 1e-11, 1e-10, 1e-9):
        # Steps shorter than the default 0.99 keep the last iterations from stalling.
        limits = {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol, "max_step_fraction": 0.9}
        with warnings.catch_warnings(), contextlib.suppress(cp.SolverError):
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")
            problem.solve(solver=cp.CLARABEL, **limits)
            if problem.status == cp.OPTIMAL:
                return
    raise AssertionError(f"no optimum within 1e-9: {problem.status}")
