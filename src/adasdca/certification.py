"""`certify`: how far any linear model can be from the optimum, whoever trained it."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.abilities import memory_told
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.named import get_backend
from adasdca.duality.certificate import Certificate, CertificateError
from adasdca.errors import InputError
from adasdca.problem.data import as_doubles
from adasdca.problem.losses import Loss
from adasdca.problem.problem import Problem, check_count
from adasdca.solution import Status, as_beta
from adasdca.solver import solve_problem

Array = NDArray[np.float64]

#: The relative gap to which a better bound is sought.
FINE = 1e-8


def certify(
    X: Any,
    y: Any,
    coef: Any,
    *,
    intercept: Any = 0.0,
    loss: str | Loss,
    lam: float,
    l1_ratio: float = 0.0,
    bounds: Any = None,
    penalty_factors: Any = None,
    sample_weight: Any = None,
    fit_intercept: bool = False,
    intercept_scaling: float | None = None,
    dual_coef: Any = None,
    epochs: int = 0,
    backend: str | Callable[[Problem], Any] | None = None,
) -> Certificate:
    """Certify any linear model: its objective, a lower bound on the least one, and the gap.

    The objective is that of `solve`. The bound is D at the best multiple of β_i = −φ'(x_i·w + b),
    which closes the gap as the model nears the optimum of a smooth loss.

    Parameters
    ----------
    X, y, loss, lam, l1_ratio, bounds, penalty_factors, sample_weight, fit_intercept, \
            intercept_scaling
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
        Epochs of `solve` to spend on a better bound, at most. Losses with a kink need some: at a
        kink the slope of the loss says little about the dual.
    backend : "cuda" or callable, optional
        Where the rows live, as in `solve`.

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
        penalty_factors=penalty_factors,
        sample_weight=sample_weight,
        fit_intercept=fit_intercept,
        intercept_scaling=intercept_scaling,
        device=backend == "cuda",
    )
    d = problem.rows.shape[1]
    if np.shape(intercept) == (1,):  # as scikit-learn has it, like coefficients of shape (1, d)
        (intercept,) = intercept
    if not isinstance(intercept, numbers.Real) or not math.isfinite(intercept):
        raise InputError(
            f"intercept = {intercept!r} is no finite number; pass the model's intercept, one "
            "number."
        )
    if intercept != 0 and not fit_intercept:
        raise InputError(
            f"intercept = {intercept!r}, but fit_intercept is False: the problem has no intercept. "
            "Pass fit_intercept=True."
        )
    b = float(intercept)
    if problem.constant:
        w, b = np.append(_check_vector(coef, d - 1, "coef", "columns"), b / problem.constant), 0.0
    else:
        w = _check_vector(coef, d, "coef", "columns")
    if problem.bounds is not None and not _within(w, problem.bounds):
        raise InputError("coef violates the bounds, so its objective is infinite; clip it first.")
    epochs = check_count("epochs", epochs, 0)
    make: Any = partial(LocalBackend, pack=epochs > 0)
    if backend is not None:
        make = get_backend(backend)
    rows = make(problem)
    # A product too small for doubles is 0; a point too large for them gets no certificate.
    with np.errstate(all="ignore"), memory_told(rows):
        # The slope's dual point; with an intercept the best b for these scores makes it feasible.
        _, duals = rows.slope_point(w, b)
        candidates = [duals]
        if dual_coef is not None:
            candidates.append(rows.scatter(_check_dual(dual_coef, problem)))
        found = [_best_multiple(rows, w, b, beta) for beta in candidates]
        certificate = min(found, key=lambda each: each.gap)
        if epochs > 0:
            solved = solve_problem(
                problem,
                make,
                method="auto",
                tol=FINE,
                max_epochs=epochs,
                max_time=None,
                random_state=0,
                warm_start=None,
                callback=None,
                threads=1,
                start=time.perf_counter(),
            )
            if solved.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            beta = rows.scatter(_check_dual(solved.dual_coef, problem))
            other = _best_multiple(rows, w, b, beta)
            certificate = min(certificate, other, key=lambda each: each.gap)
    return certificate


def _best_multiple(backend: Any, w: Array, b: float, beta: Any) -> Certificate:
    """Return the best certificate over the dual points tβ, 0 ≤ t ≤ 1."""

    def gap(t: float) -> float:
        try:
            return float(backend.certify(w, b, t * beta).gap)
        except CertificateError:
            return math.inf  # outside the domain of the conjugate

    from scipy.optimize import minimize_scalar  # a third of what `import adasdca` would take

    shrunk = minimize_scalar(gap, bounds=(0.0, 1.0), method="bounded", options={"maxiter": 10})
    best = min((1.0, float(shrunk.x), 0.0), key=gap)
    found: Certificate = backend.certify(w, b, best * beta)
    return found


def _check_vector(x: Any, size: int, name: str, what: str) -> Array:
    vector = as_doubles(x, name)
    if vector.shape == (1, size):
        vector = vector[0]
    if vector.shape != (size,):
        raise InputError(
            f"{name} has shape {vector.shape}, but X has {size} {what}: it must have shape "
            f"({size},)."
        )
    if not np.isfinite(vector).all():
        raise InputError(f"{name} contains NaN or infinity; pass finite numbers.")
    return vector


def _check_dual(dual_coef: Any, problem: Problem) -> Array:
    n, loss = len(problem.y), problem.loss
    alpha = _check_vector(dual_coef, n, "dual_coef", "rows")
    beta = as_beta(alpha, problem.weight, n)[0]
    # α/c may leave the domain by a rounding, where the conjugate is infinite.
    lower, upper = loss.domain
    sign = problem.y if loss.kind == "classification" else 1.0
    nearest = sign * np.clip(sign * beta, lower, upper)
    return np.where(np.abs(beta - nearest) <= 1e-14 * np.abs(beta), nearest, beta)


def _within(w: Array, bounds: tuple[Array, Array]) -> bool:
    return bool(((bounds[0] <= w) & (w <= bounds[1])).all())
