"""Names for losses and methods of one's own; `sampling` does it for rules, `datasets` for data.

A name of the package is never given away; one's own may be registered again, as a notebook does
when a cell is run twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from adasdca.methods import METHODS, PICKERS, REGISTERED, Custom, Method
from adasdca.names import check_name, decorator
from adasdca.problem.losses import ALIASES, LOSSES, Loss, PiecewiseQuadratic

BUILT_IN_LOSSES = frozenset({*LOSSES, *ALIASES})

L = TypeVar("L", bound=type[Loss])
M = TypeVar("M")


def register_loss(cls: L) -> L:
    """Make a loss of your own known by its name; a decorator.

    Parameters
    ----------
    cls : class
        A subclass of `PiecewiseQuadratic` with `name`, `kind` and the numbers of the family.
        Annotated attributes become its parameters, each with a default.

    Returns
    -------
    class
        The class, as a frozen dataclass.

    Examples
    --------
    >>> import adasdca
    >>> @adasdca.register_loss
    ... class SteepHinge(adasdca.losses.PiecewiseQuadratic):
    ...     name = "steep_hinge"
    ...     kind = "classification"
    ...     domain = (0.0, 3.0)
    >>> X, y = adasdca.datasets.load_mushrooms()
    >>> adasdca.solve(X, y, loss="steep_hinge", lam=1e-3, random_state=0).converged
    True
    """
    given: Any = cls
    if not isinstance(given, type) or not issubclass(given, Loss):
        raise TypeError(
            f"{cls!r} is not a loss; register a subclass of adasdca.losses.PiecewiseQuadratic."
        )
    if "__dataclass_fields__" not in vars(given):
        given = dataclass(frozen=True)(given)
    name: Any = getattr(given, "name", None)
    kind: Any = getattr(given, "kind", None)
    check_name(name, BUILT_IN_LOSSES)
    if kind not in ("classification", "regression"):
        raise ValueError(
            f"{given.__name__}: kind = {kind!r} is not allowed; choose 'classification' or "
            "'regression'."
        )
    try:
        loss = given()
        valid = not isinstance(loss, PiecewiseQuadratic) or _is_convex(loss)
        _ = loss.kernel
    except (TypeError, ValueError, NotImplementedError) as error:
        reason = str(error) or "it lacks `domain`, the bounds of its dual variables"
        raise ValueError(
            f"{given.__name__} cannot be made with its defaults: {reason}; give every parameter a "
            "default, and `domain` two numbers."
        ) from error
    if not valid:
        raise ValueError(
            f"{given.__name__}: smoothness = {loss.smoothness!r}, dead_zone = {loss.dead_zone!r}, "
            f"domain = {loss.domain!r} are the numbers of no loss; choose 0 or more for the first "
            "two, a domain that contains 0, and a smoothness above 0 if the domain has no end."
        )
    LOSSES[name] = given
    return given  # type: ignore[no-any-return]


def _is_convex(loss: PiecewiseQuadratic) -> bool:
    """Whether the four numbers are those of a finite convex loss."""
    lower, upper = loss.domain
    ends = lower <= 0 <= upper and lower < upper
    curved = loss.smoothness > 0 or (math.isfinite(lower) and math.isfinite(upper))
    finite = math.isfinite(loss.smoothness) and math.isfinite(loss.dead_zone)
    return ends and curved and finite and loss.smoothness >= 0 and loss.dead_zone >= 0


@overload
def register_method(name: str) -> Callable[[M], M]: ...
@overload
def register_method(name: str, method: Any) -> None: ...
def register_method(name: str, method: Any = None) -> Any:
    """Make a method of your own known under a name; without `method`, a decorator.

    Parameters
    ----------
    name : str
        The name to use in ``solve(method=name)``.
    method : callable, class or method object
        ``method(survey, rng) -> rows``: the rows that the coming epoch visits, in order, from a
        `Survey` with all its arrays and a `numpy.random.Generator` that depends on the seed and the
        epoch alone. Each visit is an exact coordinate step. No rows at all end the solve, as
        interrupted.
        Of a class, one object is made for each solve, which may remember what it saw. A method
        object, such as ``AdaSDCAPlus(m=4)``, gets a second name.

    Examples
    --------
    >>> import numpy as np
    >>> import adasdca
    >>> @adasdca.register_method("worst-half")
    ... def worst_half(survey, rng):
    ...     worst = np.argsort(-survey.adaptive)[: len(survey.beta) // 2]
    ...     return rng.permutation(worst)
    >>> X, y = adasdca.datasets.load_mushrooms()
    >>> adasdca.solve(X, y, loss="squared_hinge", lam=1e-3, method="worst-half").converged
    True
    """
    check_name(name, METHODS)
    if method is None:
        return decorator(register_method, name)
    if isinstance(method, Method):
        PICKERS.pop(name, None)
        REGISTERED[name] = method
    elif callable(method):
        PICKERS[name] = method
        REGISTERED[name] = Custom(name)
    else:
        raise TypeError(
            f"method = {method!r} is neither callable nor a method; pass a function of a survey "
            "and a generator to rows, or an object such as AdaSDCAPlus(m=4)."
        )
    return None
