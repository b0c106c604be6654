"""Errors about what a caller has passed; a caller with other words for it can put them in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Argument:
    """An argument that a message speaks of, with the value it has or should have.

    `...` is a value that the caller is to choose.
    """

    name: str
    value: Any = None

    def __str__(self) -> str:
        if self.value is None:
            return self.name
        return f"{self.name}={'' if self.value is ... else repr(self.value)}"


def counted(count: int, noun: str) -> str:
    """Return a number with what it counts: 1 row, 2 rows."""
    return f"{count} {noun}{'' if count == 1 else 'es' if noun.endswith('s') else 's'}"


class InPython(str):
    """A part of a message that only helps in Python."""


class InputError(ValueError):
    """An argument that cannot be used; the message says which, why, and what to do.

    The arguments of the exception are the parts of the message: texts, and an `Argument` wherever
    one is named.

    Examples
    --------
    >>> from adasdca.errors import Argument, InputError
    >>> error = InputError("there is no column 'z'; choose another ", Argument("target"), ".")
    >>> str(error)
    "there is no column 'z'; choose another target."
    >>> error.worded(lambda argument: f"--{argument.name}")
    "there is no column 'z'; choose another --target."
    """

    #: The argument that it is about, where a caller may not see that by itself.
    argument: str | None = None

    def __str__(self) -> str:
        return "".join(map(str, self.args))

    def about(self, argument: str) -> InputError:
        """Say which argument it is about, and return it."""
        self.argument = argument
        return self

    def worded(self, name: Callable[[Argument], str]) -> str:
        """Return the message for a caller who has names of its own, and is not Python."""
        return "".join(
            name(part) if isinstance(part, Argument) else str(part)
            for part in self.args
            if not isinstance(part, InPython)
        )
