"""Names of one's own: which are allowed, and the decorators that give them."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, TypeVar

R = TypeVar("R")

#: The methods of the package. A rule is a method of the same name, and can have none of these.
METHOD_NAMES = frozenset(
    {"sdca", "sdca-perm", "iprox-sdca", "quartz", "adasdca", "adasdca+", "auto"}
)


def check_name(name: object, taken: Container[object]) -> None:
    """Refuse what cannot be the name of a user's loss, rule, method or data set."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"name = {name!r} is not allowed; choose a non-empty string.")
    if name in taken:
        raise ValueError(f"name = {name!r} belongs to the package; choose another name.")


def decorator(register: Callable[[str, Any], None], name: str) -> Callable[[R], R]:
    """Return the decorator that registers under a name."""

    def decorate(given: R) -> R:
        register(name, given)
        return given

    return decorate
