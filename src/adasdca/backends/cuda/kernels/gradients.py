"""Conjugate gradients on a device, whose numbers are looked at now and then only."""

from __future__ import annotations

import time
from typing import Any

import cupy as cp
import numpy as np

from adasdca.backends.cuda.kernels.compiled import THREADS, blocks_for, kernel, or_null
from adasdca.backends.cuda.products import Few, Iterated, System

#: So many iterations are looked at one by one while they are of all rows; else every so many.
LOOK = 4
#: Numbers of a state, and the places of those that are read here.
STATE, ENERGY, GOAL, STOPPED, TAKEN = 5, 0, 1, 2, 3


def iterate(
    rows: Any, system: System, few: Few, wait: int, deadline: float, most: int
) -> Iterated | None:
    """Solve a system with the matrix of these rows; None if time ran out.

    After so many iterations `few` is called: it returns rows, and their curvatures, that do as
    well.
    """
    own, scale, h, mean = system.own, system.scale, system.h, or_null(system.mean)
    d = len(scale)
    x, r = cp.zeros(d), system.right.copy()
    p = r / scale
    energy = float(cp.vdot(r, p))
    first = np.array([energy, system.accuracy**2 * energy, 0.0, 0.0, 0.0])
    states, found = cp.zeros((2, STATE)), cp.empty(2)
    states[0] = cp.asarray(first)
    grid = (min(THREADS, *blocks_for(d)),)
    bends, energies, shifts = (cp.zeros(THREADS) for _ in range(3))
    if system.mean is not None:
        shifts[0] = cp.vdot(system.mean, p)
    size, parts, here, whole = np.int64(d), np.int32(grid[0]), first, True
    for taken in range(most):
        if taken % LOOK == 0 or (whole and taken < LOOK):
            here = states[taken % 2].get()
            if here[STOPPED] or here[ENERGY] <= here[GOAL]:
                break
            if time.perf_counter() >= deadline:
                return None
        if taken == wait and (found_few := few()) is not None:
            (rows, h), whole = found_few, False
        state, following = states[taken % 2], states[(taken + 1) % 2]
        image = rows._dot(p, 0.0, 0)
        n = len(image)
        over = (min(THREADS, *blocks_for(n)),)
        _kernel("weigh")(over, (THREADS,), (image, h, shifts, parts, np.int64(n)))
        q = rows._combine(image, 0)
        _kernel("meet")(grid, (THREADS,), (q, own, p, bends, size))
        given = x, r, p, q, scale, state, bends, parts, found, energies, size
        _kernel("move")(grid, (THREADS,), given)
        numbers = np.float64(system.gain), state, found, energies, parts, following, shifts, size
        _kernel("turn")(grid, (THREADS,), (p, r, scale, mean, *numbers))
    else:
        here = states[most % 2].get()
    if here[STOPPED] and not here[TAKEN]:  # no curvature at all
        return Iterated(system.right / scale, 0, True)
    done = bool(here[STOPPED] or here[ENERGY] <= here[GOAL])
    return Iterated(x, int(here[TAKEN]), done)


def _kernel(name: str) -> Any:
    return kernel("gradients", name, f"THREADS={THREADS}")
