"""Kernels, compiled when they are first asked for, and what their calls share."""

from __future__ import annotations

from functools import cache
from typing import Any

import cupy as cp
import numpy as np

from adasdca.backends.cuda.source import kernel_source

#: Threads of a block.
THREADS = 256
NULL = np.uintp(0)


@cache
def kernel(source: str, name: str, *definitions: str, together: bool = False) -> Any:
    """Return a kernel, compiled when it is first asked for.

    Where `together`, its blocks run at the same time and may wait for each other.
    """
    return _module(source, *definitions, together=together).get_function(name)


@cache
def _module(source: str, *definitions: str, together: bool) -> Any:
    options = ("--device-as-default-execution-space", *(f"-D{each}" for each in definitions))
    code = kernel_source(source)
    return cp.RawModule(code=code, options=options, enable_cooperative_groups=together)


def real(dtype: Any) -> str:
    """Return what tells kernels the type of entries."""
    return "VALUE_TYPE=" + {"float32": "float", "float64": "double"}[np.dtype(dtype).name]


def blocks_for(count: int) -> tuple[int]:
    """Return the grid of so many threads."""
    return (max(1, -(-count // THREADS)),)


def or_null(array: Any) -> Any:
    """Return an array, or the pointer of none."""
    return NULL if array is None else array
