"""`certify`: how far any linear model can be from the optimum, whoever trained it."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from adasdca.ascent.schedules import PermutationSchedule
from adasdca.backends.cpu import LocalBackend
from adasdca.duality.certificate import Certificate, certified_gap, radius
from adasdca.problem.data import as_doubles
from adasdca.problem.losses import Loss
from adasdca.problem.problem import Problem, check_count
from adasdca.solution import as_beta

Array = NDArray[np.float64]


def certify(
    X: Any,
    y: Any,
    coef: Any,
    *,
    intercept: float = 0.0,
    loss: str | Loss,
    lam: float,
    l1_ratio: float = 0.0,
    bounds: Any = None,
    sample_weight: Any = None,
    fit_intercept: bool = False,
    dual_coef: Any = None,
    epochs: int = 0,
) -> Certificate:
    """Certify any linear model: its objective, a lower bound on the least one, and the gap.

    The objective is that of `solve`. The bound is D at the best multiple of β_i = −φ'(x_i·w + b),
    which closes the gap as the model nears the optimum of a smooth loss.

    Parameters
    ----------
    X, y, loss, lam, l1_ratio, bounds, sample_weight, fit_intercept
        The problem, as in `solve`. With `fit_intercept` the optimum is over w and b; without it
        `intercept` must be 0.
    coef : (d,) array
        Coefficients w.
    intercept : float, default 0.0
        Intercept b.
    dual_coef : (n,) array, optional
        Dual variables α, if the model's trainer gave any: their bound is used if it is the better
        one.
    epochs : int, default 0
        Epochs of dual ascent to spend on a better bound. Losses with a kink need some: at a kink
        the slope of the loss says little about the dual.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> import adasdca
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = adasdca.datasets.load_mushrooms()
    >>> model = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-8, max_iter=1000).fit(X, y)
    >>> certificate = adasdca.certify(X, y, model.coef_[0], loss="logistic", lam=1 / len(y))
    >>> bool(certificate.relative_gap < 1e-4)
    True
    """
    problem = Problem.checked(
        X,
        y,
        loss=loss,
        lam=lam,
        l1_ratio=l1_ratio,
        bounds=bounds,
        sample_weight=sample_weight,
        fit_intercept=fit_intercept,
    )
    n, d = problem.rows.shape
    w = _check_coef(coef, d, problem.bounds)
    value: Any = intercept
    if not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise ValueError(
            f"intercept = {intercept!r} is not finite; pass the model's intercept, one number."
        )
    if intercept != 0 and not fit_intercept:
        raise ValueError(
            f"intercept = {intercept!r}, but fit_intercept is False: the problem has no intercept. "
            "Pass fit_intercept=True."
        )
    epochs = check_count("epochs", epochs, 0)
    backend = LocalBackend(problem, pack=epochs > 0)
    workspace = backend.workspace
    scores = np.empty(n)
    workspace.scores(w, scores, 1)
    primal = workspace.primal_value(scores, float(intercept), w)

    # The slope's dual point; with an intercept the best b for these scores makes it feasible.
    best = workspace.best_intercept(scores, float(intercept)) if fit_intercept else 0.0
    slope = -problem.loss.slope(scores + best, problem.y)
    candidates = [slope]
    if dual_coef is not None:
        candidates.append(_check_dual(dual_coef, problem))
    dual, beta = max(
        (_best_multiple(backend, candidate) for candidate in candidates), key=lambda pair: pair[0]
    )
    if epochs > 0:
        dual = max(dual, _ascended(backend, beta, best, epochs))
    dual += 0.0  # no minus zero
    gap = certified_gap(primal, dual, abs(primal) + abs(dual), n + d)
    return Certificate(primal, dual, gap, radius(gap, problem.strength))


def _best_multiple(backend: LocalBackend, beta: Array) -> tuple[float, Array]:
    """Return max D(tβ) over 0 ≤ t ≤ 1 and tβ; the domain of φ* is an interval around 0."""
    workspace, problem = backend.workspace, backend.problem
    if problem.fit_intercept:
        beta = _balanced(beta, np.ones_like(beta) if problem.weight is None else problem.weight)
    full = workspace.dual_value(beta, 1)
    shrunk = minimize_scalar(
        lambda t: -workspace.dual_value(t * beta, 1),
        bounds=(0.0, 1.0),
        method="bounded",
        options={"maxiter": 10},
    )
    return (full, beta) if full >= -shrunk.fun else (-float(shrunk.fun), shrunk.x * beta)


def _balanced(beta: Array, weight: Array) -> Array:
    """Return β with its heavier sign scaled down until Σ c_iβ_i = 0, which an intercept demands."""
    up, down = weight @ np.maximum(beta, 0.0), weight @ np.maximum(-beta, 0.0)
    lighter = min(up, down)
    return beta * np.where(beta > 0, lighter / (up or 1.0), lighter / (down or 1.0))


def _ascended(backend: LocalBackend, beta: Array, intercept: float, epochs: int) -> float:
    """Return the best dual value over some epochs of dual ascent from β."""
    schedule = PermutationSchedule()
    backend.restart(beta, intercept)
    dual = -np.inf
    for epoch in range(epochs + 1):
        survey = backend.survey(schedule.needs)
        assert survey is not None
        dual = max(dual, survey.dual)
        plan = backend.plan(schedule, survey, epoch)
        if plan is None or epoch == epochs:
            break
        backend.ascend(plan)
    return float(dual)


def _check_dual(dual_coef: Any, problem: Problem) -> Array:
    n, loss = len(problem.y), problem.loss
    alpha = as_doubles(dual_coef, "dual_coef")
    if alpha.shape == (1, n):
        alpha = alpha[0]
    if alpha.shape != (n,):
        raise ValueError(
            f"dual_coef has shape {alpha.shape}, but X has {n} rows: it must have shape ({n},)."
        )
    if not np.isfinite(alpha).all():
        raise ValueError("dual_coef contains NaN or infinity; pass finite dual variables.")
    beta = as_beta(alpha, problem.weight, n)[0]
    # α/c may leave the domain by a rounding, where the conjugate is infinite. (Only the logistic
    # loss does not tell its own.)
    lower, upper = getattr(loss, "domain", (0.0, 1.0))
    sign = problem.y if loss.kind == "classification" else 1.0
    nearest = sign * np.clip(sign * beta, lower, upper)
    return np.where(np.abs(beta - nearest) <= 1e-14 * np.abs(beta), nearest, beta)


def _check_coef(coef: Any, d: int, bounds: tuple[Array, Array] | None) -> Array:
    w = as_doubles(coef, "coef")
    if w.shape == (1, d):
        w = w[0]
    if w.shape != (d,):
        raise ValueError(
            f"coef has shape {w.shape}, but X has {d} columns: it must have shape ({d},)."
        )
    if not np.isfinite(w).all():
        raise ValueError("coef contains NaN or infinity; pass finite coefficients.")
    if bounds is not None and ((w < bounds[0]) | (w > bounds[1])).any():
        raise ValueError("coef violates the bounds, so its objective is infinite; clip it first.")
    return w
