"""A backend whose rows are in three parts, in this process."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from adasdca.backends.part import Part
from adasdca.backends.parts import PartsBackend
from adasdca.backends.teams import LocalTeam


def cut(problem, bounds):
    """The parts of a problem between these rows."""
    parts = []
    for begin, end in pairwise(bounds):
        weight = None if problem.weight is None else problem.weight[begin:end]
        rows = problem.rows.take(np.arange(begin, end))
        own = replace(
            problem, rows=rows, y=problem.y[begin:end], weight=weight, whole=problem.total
        )
        parts.append(Part(own))
    return parts


def three_parts(problem):
    n = problem.rows.shape[0]
    return PartsBackend(problem, LocalTeam(cut(problem, [0, max(n // 5, 1), max(n // 2, 2), n])))
