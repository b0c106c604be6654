"""Rounds of the method of multipliers on a CUDA device: steps, iterations, rows with curvature.

    python -m benchmarks.gpu_rounds [--seconds 15]

The hinge on 4,000,000 x 200,000 sparse rows, beside the squared hinge: what makes it slow.
"""

import argparse
import time

import adasdca
from adasdca.backends.cuda.device import load_cupy
from adasdca.newton import equations, multipliers
from benchmarks import gpu


class Count:
    """Counts the iterations of conjugate gradients, and tells of rounds."""

    def __init__(self):
        self.iterations, self.seconds, self.began = 0, 0.0, time.perf_counter()
        self._solve, self._minimise = equations.ConjugateGradients.solve, multipliers.minimise

    def __enter__(self):
        def solve(own, term, step, deadline, most=equations.MOST_ITERATIONS):
            began = time.perf_counter()
            found = self._solve(own, term, step, deadline, most)
            self.iterations += own.taken
            self.seconds += time.perf_counter() - began
            return found

        def minimise(objective, *arguments):
            before, spent, began = self.iterations, self.seconds, time.perf_counter()
            ending, steps = self._minimise(objective, *arguments)
            now, term = time.perf_counter(), objective.term
            print(
                f"{now - self.began:9.3f} s: {steps:3d} steps, {self.iterations - before:5d} its "
                f"{self.seconds - spent:.3f} s of {now - began:.3f}, length {term.length:.2e}, "
                f"curved {term.curved}, {ending.name}",
                flush=True,
            )
            return ending, steps

        equations.ConjugateGradients.solve = solve
        multipliers.minimise = minimise
        return self

    def __exit__(self, *_):
        equations.ConjugateGradients.solve = self._solve
        multipliers.minimise = self._minimise


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=15.0)
    seconds = parser.parse_args().seconds
    card = load_cupy().cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{card}, {time.strftime('%Y-%m-%d')}")
    X, y = gpu.sparse(4_000_000, 200_000, 22)
    for loss in ("squared_hinge", "hinge"):
        with Count() as count:
            found = adasdca.solve(
                X, y, loss=loss, lam=1 / len(y), tol=1e-6, fit_intercept=True, backend="cuda",
                max_time=seconds,
            )  # fmt: skip
            taken = time.perf_counter() - count.began
        print(
            f"{loss}: {taken:.1f} s, {count.iterations} iterations, relative gap "
            f"{found.relative_gap:.1e}, {found.status.value}",
            flush=True,
        )


if __name__ == "__main__":
    main()
