"""Memory of one solve, measured in a process of its own: `python -m benchmarks.memory mushrooms`.

Prints a JSON object: bytes resident with the data loaded, and the peak during the solve.
"""

from __future__ import annotations

import json
import sys

import adasdca
from benchmarks.measure import forget_peak, in_fresh_process, peak_bytes, resident_bytes


def of_solve(name: str, loss: str) -> dict[str, int | None]:
    """Measure a solve of a few epochs in a process of its own."""
    result: dict[str, int | None] = in_fresh_process("memory", name, loss)
    return result


def main(name: str, loss: str = "squared") -> None:
    X, y = adasdca.datasets.load(name)
    # Once on a few rows: what the libraries set up for themselves is not the solve's.
    few = [*(y > 0).nonzero()[0][:2], *(y < 0).nonzero()[0][:2]]
    adasdca.solve(X[few], y[few], loss=loss, lam=1.0, max_epochs=1)
    known = forget_peak()
    loaded = resident_bytes()
    adasdca.solve(X, y, loss=loss, lam=1 / len(y), tol=0.0, max_epochs=3, random_state=0)
    print(json.dumps({"loaded": loaded, "peak": peak_bytes() if known else None}))


if __name__ == "__main__":
    main(*sys.argv[1:])
