"""What changes in the rows of this process during a solve, as arrays and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from adasdca.backends.cpu import LocalBackend

#: Numbers that the core keeps beside its vectors.
NUMBERS = 18


def saved(backend: LocalBackend) -> dict[str, Any]:
    """Return all that a backend needs to go on in the same bits."""
    workspace, epochs, kernel = backend.workspace, backend.epochs, backend.kernel
    beta, features = np.empty(workspace.n), np.zeros(4 * workspace.d)
    numbers = np.zeros(NUMBERS)
    workspace.save(beta, features, numbers)
    decay = epochs._decay
    return {
        "beta": beta,
        "features": features,
        "numbers": numbers,
        "packed": workspace.packed_bytes > 0,
        "careful": backend._careful,
        "placed": backend._placed,
        "adaptive": epochs.figures.adaptive,
        "m": epochs._m,
        "decay": None
        if decay._before is None
        else {"before": decay._before, "stride": decay._stride, "indices": decay._indices},
        "known": kernel._known,
        "kernel": kernel._matrix,
    }


def restore(backend: LocalBackend, state: dict[str, Any]) -> None:
    """Lead a new backend to where the saved one was."""
    workspace, epochs, kernel = backend.workspace, backend.epochs, backend.kernel
    if state["packed"]:
        workspace.pack()
    workspace.load(state["beta"], state["features"], state["numbers"])
    backend._careful, backend._placed = state["careful"], state["placed"]
    epochs.figures.adaptive, epochs._m = state["adaptive"], state["m"]
    if state["decay"] is not None:
        decay = state["decay"]
        epochs._decay._before, epochs._decay._stride = decay["before"], decay["stride"]
        epochs._decay._indices = decay["indices"]
    kernel._known, kernel._matrix = state["known"], state["kernel"]
