"""A backend whose rows are in three parts, in this process."""

from itertools import pairwise

from adasdca.backends.part import Part
from adasdca.backends.parts import PartsBackend
from adasdca.backends.teams import LocalTeam


def cut(problem, bounds):
    """The parts of a problem between these rows."""
    return [Part(problem.part(*ends)) for ends in pairwise(bounds)]


def three_parts(problem):
    n = problem.rows.shape[0]
    return PartsBackend(problem, LocalTeam(cut(problem, [0, max(n // 5, 1), max(n // 2, 2), n])))
