"""Sampling rules: from a survey to unnormalised weights of the rows.

A rule is a function; `register_rule` gives it a name, under which `AdaSDCAPlus(option=...)` knows
it.

Examples
--------
>>> import numpy as np
>>> import adasdca
>>> def sharp(survey):
...     return np.abs(survey.residue) ** 2
>>> X, y = adasdca.datasets.load_mushrooms()
>>> method = adasdca.AdaSDCAPlus(option=sharp)
>>> adasdca.solve(X, y, loss="squared", lam=1 / len(y), method=method, random_state=0).converged
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.ascent.survey import Survey
from adasdca.names import METHOD_NAMES, check_name, decorator
from adasdca.problem.data import as_doubles
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]
Rule = Callable[[Survey], Any]
R = TypeVar("R")


def adaptive(survey: Survey) -> Array:
    """Option I: p_i ∝ |κ_i|√(c_i(q_i + γ)), eq. (optipsdf); where γ = 0, the shares of the gap."""
    assert survey.adaptive is not None
    return survey.adaptive


def importance(survey: Survey) -> Array:
    """Option II: p_i ∝ γ + q_i, eq. (pstar); where γ = 0 the mean of q takes its place."""
    return importance_weights(survey.curvature, survey.gamma, survey.weight)


def importance_weights(curvature: Array, gamma: float, weight: Array) -> Array:
    """Return γ + q_i on the rows of positive weight."""
    floor = gamma if gamma > 0 else float(curvature.mean())
    distribution = np.where(weight > 0, curvature + floor, 0.0)
    return distribution if distribution.any() else (weight > 0).astype(np.float64)


class StepResidue:
    """Option III: p_i ∝ (q_i + γ)√(c_i g_i), g_i what the exact step on row i adds to the dual.

    For a quadratic loss these are the probabilities of option I. For others the step knows the
    bounds of β_i, which a residue does not. Where γ = 0 the mean of q takes its place.
    """

    def __init__(self, problem: Problem) -> None:
        self._loss, self._y, self._weight = problem.loss, problem.y, problem.weight

    def __call__(self, survey: Survey) -> Array:
        """Return the weights of all rows."""
        assert survey.score is not None
        weights = _core.vector(survey.n)
        self._loss.kernel.step_weights(
            survey.beta,
            survey.score,
            survey.intercept,
            self._y,
            survey.curvature,
            self._weight,
            weights,
        )
        return weights


class Mixture:
    """Option I+III: the mean of the probabilities of options I and III.

    Each row has at least half of the probability that either gives it, so that neither starves a
    row that the other visits, and half of either's rate is left.
    """

    def __init__(self, problem: Problem) -> None:
        self._step = StepResidue(problem)

    def __call__(self, survey: Survey) -> Array:
        """Return the weights of all rows."""
        assert survey.adaptive is not None
        steps = self._step(survey)
        sums = float(survey.adaptive.sum()), float(steps.sum())
        # Rounding may leave the one without a row while the other has some.
        if min(sums) == 0.0:
            return steps if sums[0] == 0.0 else survey.adaptive
        return np.asarray(survey.adaptive / sums[0] + steps / sums[1])


#: By name. A class is made into a rule by the problem.
RULES: dict[str, Rule | type[StepResidue | Mixture]] = {
    "I": adaptive,
    "II": importance,
    "III": StepResidue,
    "I+III": Mixture,
}


BUILT_IN = frozenset(RULES)


def registered() -> list[str]:
    """Return the names of the rules that were registered, in order."""
    return [name for name in RULES if name not in BUILT_IN]


@overload
def register_rule(name: str) -> Callable[[R], R]: ...
@overload
def register_rule(name: str, rule: Rule) -> None: ...
def register_rule(name: str, rule: Any = None) -> Any:
    """Make a sampling rule known under a name; without `rule`, a decorator.

    Parameters
    ----------
    name : str
        The name to use in ``AdaSDCAPlus(option=name)``, or in ``solve(method=name)`` for the same
        with the other parameters left as they are.
    rule : callable
        ``rule(survey) -> weights``: n numbers, 0 or more, not all 0, where `survey` is a `Survey`
        with all its arrays. Rows of weight 0 are not visited in the coming epoch.
    """
    check_name(name, BUILT_IN | METHOD_NAMES)
    if rule is None:
        return decorator(register_rule, name)
    if not callable(rule):
        raise TypeError(
            f"rule = {rule!r} is not callable; pass a function from a survey to weights."
        )
    RULES[name] = rule
    return None


def get_rule(option: str | Rule) -> Rule | type[StepResidue | Mixture]:
    """Return the rule of that name; a callable is its own rule."""
    if callable(option):
        return option
    known: object = option  # it may be unhashable
    if not isinstance(known, str) or known not in RULES:
        raise ValueError(
            f"option = {option!r} is unknown; choose one of {', '.join(map(repr, RULES))}, "
            "register a rule under that name, or pass a function from a survey to weights."
        )
    return RULES[known]


def check_probabilities(weights: Any, n: int, name: str) -> Array:
    """Return the weights a rule gave as n finite doubles, none negative."""
    distribution = as_doubles(weights, f"what rule {name} returned")
    if distribution.shape != (n,):
        raise ValueError(
            f"rule {name} returned shape {distribution.shape}; it must return {n} weights."
        )
    largest = distribution.max()
    if not np.isfinite(largest) or (distribution < 0).any():
        raise ValueError(
            f"rule {name} returned weights that are negative, NaN or infinite; they must be finite "
            "and 0 or more."
        )
    return (
        distribution if largest < 1e290 else distribution / largest
    )  # their sum must not overflow
