"""Nonlinear conjugate gradients: Newton's equations are not solved, they change with every step.

Where kinks are rounded, a step that solves its equations crosses rows that these know nothing of,
and is cut short: what its last iterations have found is lost, and the next step begins anew. Here
a step is one iteration along a line that is conjugate to the one before, and every point has the
derivatives of the function itself. A few kinks that are crossed change the matrix a little, and
cost little. (E. Polak and G. Ribière, "Note sur la convergence de méthodes de directions
conjuguées", Revue française d'informatique et de recherche opérationnelle 3, 1969.)
"""

from __future__ import annotations

from typing import Any

from adasdca.backends.base import RowTerm, inner_products
from adasdca.newton.equations import Equations, Scaling

#: A diagonal, which costs about an iteration, serves so many, and while no more than this share of
#: the rows with curvature come or go (10, 30 or 100: 641, 610 and 639 iterations).
RENEWED, CHANGED = 30, 0.2


class ConjugateSteps:
    """Steps of one iteration each."""

    def __init__(self) -> None:
        self._term: RowTerm | None = None
        self._scaling: Scaling
        self._curved, self._taken = 0, 0

    def __call__(self, term: RowTerm, equations: Equations) -> tuple[Any, float]:
        """Return the next line of a term."""
        changed = abs(term.curved - self._curved) > CHANGED * self._curved
        if term is not self._term or changed or self._taken == RENEWED:
            self._term, self._curved, self._taken = term, term.curved, 0
            self._scaling = Scaling.of(term, equations)
        right, balance, (_, scale, mean, mass) = equations.right, equations.balance, self._scaling
        dv = (right if mean is None else right - balance * mean) / scale
        pairs = [(right, dv), (right if mean is None else mean, dv)]
        if self._taken > 0:
            (before, off), (dv_before, db_before) = self._right, self._step
            pairs += [(before, dv), (right, dv_before)]
        energy, shift, *old = inner_products(*pairs)
        db = 0.0 if mean is None else balance / mass - shift
        energy += balance * db
        if old:
            share = max(energy - old[0] - off * db, 0.0) / self._energy
            if energy + share * (old[1] + balance * db_before) > 0:
                dv, db = dv + share * dv_before, db + share * db_before
        self._step, self._right, self._energy = (dv, db), (right, balance), energy
        self._taken += 1
        return dv, db
