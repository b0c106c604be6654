"""The method `auto`, as its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from adasdca.ascent.schedules import Schedule
from adasdca.auto.schedule import AutoSchedule
from adasdca.backends.facts import Facts
from adasdca.problem.problem import Problem


@dataclass(frozen=True)
class Auto:
    """The fastest way to a certified solution: the program chooses.

    Permutations while all rows matter alike, adaptive epochs with m from the decay seen when they
    do not, and second-order steps as soon as they are the cheaper way to the gap asked for:
    semismooth Newton, or where there are kinks the proximal method of multipliers.
    `Solution.phases` tells what was done.
    """

    name: ClassVar[str] = "auto"
    #: Whether it needs coordinate ascent.
    ascends: ClassVar[bool] = False

    def schedule(self, problem: Problem, facts: Facts, tol: float, threads: int) -> Schedule:
        """Return what the method does during one solve."""
        return AutoSchedule(problem, facts, tol, threads)
