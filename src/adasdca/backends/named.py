"""Backends by name; what a name needs is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from adasdca.backends.backend import Backend
from adasdca.backends.contract import Rows
from adasdca.problem.problem import Problem

NAMES = ("cuda",)


def get_backend(backend: Any) -> Callable[[Problem], Backend]:
    """Return the factory of that name, or a callable whose result is looked at."""
    if callable(backend):
        return partial(_made, backend)
    if backend != "cuda":
        raise ValueError(
            f"backend = {backend!r} is unknown; choose {', '.join(map(repr, NAMES))}, pass a "
            "function from a Problem to a Backend, or leave it out."
        )
    from adasdca.backends.cuda.device import cuda_backend

    return cuda_backend


def _made(factory: Callable[[Problem], Any], problem: Problem) -> Backend:
    rows = factory(problem)
    if isinstance(rows, Rows):
        return Backend(problem, rows)
    if not hasattr(rows, "facts"):
        raise TypeError(
            f"backend = {factory!r} returned {rows!r}, which is no Backend: it lacks `facts`."
        )
    backend: Backend = rows
    return backend
