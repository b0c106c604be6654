"""What scikit-learn's users expect of a solution beside its accuracy.

A problem without a penalty has a solution, coefficients have the precision of the rows, and those
that an L1 term takes out are exactly 0.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import mean_variance_axis

from adasdca.certification import certify
from adasdca.multinomial.certificate import certify_multinomial
from adasdca.problem.losses import Loss

Array = NDArray[np.float64]

#: A penalty that stands for none, in units of the curvature of the loss. Weaker ones do not choose
#: among solutions in double precision, stronger ones can be seen in the coefficients.
WEAKEST = 1e-13
#: Below this part of it a penalty on squares is lost in the rounding of the equations.
LOST = 0.1
#: Rows that are looked at.
ENOUGH = 1000
#: Features vary if their standard deviation is above this part of their mean.
ROUNDING = 16 * float(np.finfo(np.float64).eps)
#: Coefficients below this part of the largest one may be zeros that were not met exactly.
SMALL = 1e-6


def weakest(X: Any, y: Array, loss: Loss) -> float:
    """Return a lam so small that its solution is the one of least norm without a penalty.

    In units of the variance of the feature that varies least, since a penalty that is next to
    nothing beside the others may be all there is to that one; the loss of numbers is in units of
    the targets, or of their squares. Some of the rows tell enough.
    """
    some = X[:: 1 + len(y) // ENOUGH]
    with np.errstate(all="ignore"):
        if hasattr(some, "tocsr"):
            mean, variance = mean_variance_axis(some, axis=0)
        else:
            mean = np.mean(some, axis=0, dtype=np.float64)
            variance = np.var(some, axis=0, dtype=np.float64)
        varies = variance > (ROUNDING * mean) ** 2
        unit = np.count_nonzero(varies) * float(variance.min(initial=np.inf, where=varies))
        if loss.kind == "regression":
            centred = y - np.mean(y)
            unit *= float(np.mean(loss.value(np.zeros(len(y)), centred)) / np.mean(centred**2))
    return WEAKEST * (unit if 0 < unit < np.inf else 1.0)


def as_expected(
    solution: Any, X: Any, y: Any, tol: float, single: bool, objective: dict[str, Any]
) -> Any:
    """Return the solution with exact zeros, and in single precision if `single`.

    The certificate is then that of the new coefficients. Zeros stay only if the gap allows them.
    """
    size = np.abs(solution.coef)
    doubtful = (size > 0) & (size <= SMALL * size.max(initial=0.0))
    if objective["l1_ratio"] > 0 and doubtful.any():
        cleared = _moved(
            solution, np.where(doubtful, 0.0, solution.coef), solution.intercept, X, y, objective
        )
        if cleared.relative_gap <= max(tol, solution.relative_gap):
            solution = cleared
    if single:
        coef, intercept = (
            np.asarray(value, dtype=np.float32).astype(np.float64)
            for value in (solution.coef, solution.intercept)
        )
        solution = _moved(solution, coef, float(intercept), X, y, objective)
    return solution


def _moved(
    solution: Any, coef: Array, intercept: float, X: Any, y: Any, objective: dict[str, Any]
) -> Any:
    found = certify(X, y, coef, intercept=intercept, dual_coef=solution.dual_coef, **objective)
    return dataclasses.replace(solution, coef=coef, intercept=intercept, certificate=found)


def as_expected_of_classes(
    solution: Any, X: Any, codes: Any, single: bool, objective: dict[str, Any]
) -> Any:
    """Return a multinomial solution whose coefficients sum to 0, rounded to single if `single`.

    What is the same for all classes changes no probability, and the penalty wants none of it.
    """
    coef, intercept = solution.coef - solution.coef.mean(axis=0), solution.intercept
    if single:
        coef, intercept = (
            np.asarray(value, dtype=np.float32).astype(np.float64) for value in (coef, intercept)
        )
    found = certify_multinomial(X, codes, coef, intercept, **objective)
    return dataclasses.replace(solution, coef=coef, intercept=intercept, certificate=found)
