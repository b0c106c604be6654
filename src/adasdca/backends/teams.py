"""Parts that carry commands out together, and the sums of their results."""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backends.facts import HERE, Distance
from adasdca.backends.part import Part

Array = NDArray[np.float64]


class Team(Protocol):
    """Parts that carry out commands."""

    @property
    def distance(self) -> Distance:
        """What it costs that they are elsewhere."""

    def ask(self, command: str, *args: Any, each: list[Any] | None = None) -> Iterator[Any]:
        """Let every part carry out a command, a method of `Part`; yield the results in order.

        All get `args`, and each its own element of `each`.
        """


class LocalTeam:
    """Parts in this process, one after the other; the next one is read while one is at work."""

    distance = HERE

    def __init__(self, parts: list[Part]) -> None:
        self._parts = parts

    def ask(self, command: str, *args: Any, each: list[Any] | None = None) -> Iterator[Any]:
        """Let every part carry a command out."""
        reading = [part.reads(command, *args) for part in self._parts]
        for k, part in enumerate(self._parts):
            if reading[k] and k == 0:
                part.pages.read_ahead()
            if k + 1 < len(self._parts) and reading[k + 1]:
                self._parts[k + 1].pages.read_ahead()
            said = part.do(command, *args, *([] if each is None else [each[k]]))
            if reading[k]:
                part.pages.let_go()
            yield said


class Parts:
    """The parts of a team; they drop what has no holder here any more."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.scored: tuple[int, Any] = -1, None  #: Of what space and w they have stored the scores.
        self._next = itertools.count(1)
        self._dropped: dict[str, list[int]] = {"vectors": [], "terms": [], "spaces": []}

    def number(self, kind: str, holder: Any) -> int:
        """Return a new number, to be forgotten when its holder is gone."""
        number = next(self._next)
        weakref.finalize(holder, self._dropped[kind].append, number)
        return number

    def stream(self, command: str, *args: Any, each: list[Any] | None = None) -> Iterator[Any]:
        """Ask all parts; the results must be taken one by one, to the end."""
        if any(self._dropped.values()):
            dropped = [list(numbers) for numbers in self._dropped.values()]
            for numbers in self._dropped.values():
                numbers.clear()
            list(self.team.ask("forget", *dropped))
        _core.check()
        return self.team.ask(command, *args, each=each)

    def ask(self, command: str, *args: Any, each: list[Any] | None = None) -> list[Any]:
        """Ask all parts, and wait for all."""
        return list(self.stream(command, *args, each=each))


class Handle:
    """A vector or the losses of the rows, which stay where the rows are."""

    def __init__(self, parts: Parts, kind: str = "vectors") -> None:
        self.number = parts.number(kind, self)
        self.figures: tuple[float, ...] = ()  # of a dual point, once they are known


def columns(said: Iterable[Any]) -> list[Any]:
    """Add the vectors of parts in their order; list their numbers."""
    columns: list[Any] = []
    for part in said:
        values = part if isinstance(part, tuple) else (part,)
        if not columns:
            columns = [x.copy() if isinstance(x, np.ndarray) else [x] for x in values]
            continue
        for column, value in zip(columns, values, strict=True):
            if isinstance(column, np.ndarray):
                column += value
            else:
                column.append(value)
    return columns


def vector_of(said: Iterable[Any]) -> Array:
    """Add the vectors of parts in their order."""
    vector: Array = columns(said)[0]
    return vector


def sums(said: list[Any]) -> tuple[float, ...]:
    """Add numbers of parts."""
    return tuple(math.fsum(column) for column in zip(*said, strict=True))
