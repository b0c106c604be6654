"""Backends by name; what a name needs is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adasdca.backends.base import Backend
from adasdca.problem.problem import Problem

NAMES = ("cuda",)


def get_backend(backend: Any) -> Callable[[Problem], Backend]:
    """Return the factory of that name; a callable is returned as it is."""
    if callable(backend):
        return backend  # type: ignore[no-any-return]
    if backend != "cuda":
        raise ValueError(
            f"backend = {backend!r} is unknown; choose {', '.join(map(repr, NAMES))}, pass a "
            "function from a Problem to a Backend, or leave it out."
        )
    from adasdca.backends.cuda.device import cuda_backend

    return cuda_backend
