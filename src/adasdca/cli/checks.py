"""Whether a problem can be solved as asked, before it is: a later error is none of the user's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.backends.facts import RowFacts
from adasdca.cli.refusals import blame
from adasdca.methods import get_method
from adasdca.problem.losses import Loss
from adasdca.problem.problem import Problem


def check_problem(
    X: Any,
    y: NDArray[Any],
    *,
    loss: Loss,
    lam: float,
    l1_ratio: float = 0.0,
    intercept: bool = False,
    method: str | None = None,
) -> None:
    """Refuse data and options that the solver would refuse.

    Of labels it is enough that there are two; the first one stands for them all.
    """
    targets = np.where(y == y[0], 1.0, -1.0) if loss.kind == "classification" else y
    with blame():
        problem = Problem.checked(
            X, targets, loss=loss, lam=lam, l1_ratio=l1_ratio, fit_intercept=intercept
        )
    if method is not None:
        with blame("--method"):
            get_method(method).schedule(problem, RowFacts(problem.rows), 0.0, 1)
