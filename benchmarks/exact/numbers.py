"""Arithmetic of eighty digits, in the decimal numbers of the standard library.

Doubles are taken as they are. A sum of terms t loses 1e-78·Σ|t| at most, and nothing is decided by
less than MARGIN·Σ|t|: what is decided holds in real numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Context, Decimal, DivisionByZero, InvalidOperation, Overflow, localcontext
from operator import mul
from typing import Any

import numpy as np

DIGITS = 80
MARGIN = Decimal("1e-60")
ZERO, ONE = Decimal(0), Decimal(1)

Vector = list[Decimal]


def digits(count: int = DIGITS) -> Any:
    """Return a context of that many digits, at most DIGITS; anything invalid is an error."""
    traps = [InvalidOperation, DivisionByZero, Overflow]
    context = Context(prec=min(count, DIGITS), Emin=-999999, Emax=999999, traps=traps)
    return localcontext(context)


def vector(values: Any) -> Vector:
    """Return doubles as they are."""
    return [Decimal(x) for x in np.asarray(values, dtype=np.float64).ravel().tolist()]


def dot(a: Iterable[Decimal], b: Iterable[Decimal]) -> Decimal:
    """Return Σ a_i b_i."""
    return sum(map(mul, a, b), ZERO)


def clip(x: Decimal, low: Decimal, high: Decimal) -> Decimal:
    """Return the point of [low, high] next to x."""
    return min(max(x, low), high)


def eliminate(matrix: Sequence[Vector], right: Vector) -> Vector:
    """Solve a symmetric system by elimination; what it does not determine is 0."""
    n = len(right)
    rows = [[*line, b] for line, b in zip(matrix, right, strict=True)]
    # Equations in units of their largest coefficient.
    for row in rows:
        most = max((abs(x) for x in row[:n]), default=ZERO)
        if most:
            row[:] = [x / most for x in row]
    left, order = list(range(n)), []
    for column in range(n):
        pivot = max(left, key=lambda i: abs(rows[i][column]), default=None)
        if pivot is None or abs(rows[pivot][column]) < Decimal("1e-50"):
            continue
        left.remove(pivot)
        order.append((column, pivot))
        line = rows[pivot]
        for i in left:
            factor = rows[i][column] / line[column]
            if factor:
                row = rows[i]
                row[column:] = [
                    x - factor * y for x, y in zip(row[column:], line[column:], strict=True)
                ]
    found = [ZERO] * n
    for column, pivot in reversed(order):
        row = rows[pivot]
        rest = row[n] - sum((row[j] * found[j] for j in range(column + 1, n) if found[j]), ZERO)
        found[column] = rest / row[column]
    return found
