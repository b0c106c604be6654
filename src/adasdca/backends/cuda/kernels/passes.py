"""Losses of all rows and their sums, on a device."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import cupy as cp
import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backends.cuda.kernels.compiled import NULL, THREADS, blocks_for, kernel, or_null
from adasdca.backends.cuda.kernels.transfer import download, upload
from adasdca.backends.cuda.products import Arrays
from adasdca.backends.passes import Derived, Passes, RowSums
from adasdca.problem.losses import Logistic
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: Blocks that share a sum over the rows, at most.
SUMS = 1024


def summed(
    kernel_of: Callable[[str], Any], n: int, name: str, count: int, *arguments: Any
) -> list[float]:
    """Run a kernel that stores so many sums over n rows and a maximum; return them."""
    _core.check()
    grid = (min(SUMS, *blocks_for(n)),)
    parts, out = cp.empty(grid[0] * (2 * count + 1)), cp.empty(count + 1)
    kernel_of(name)(grid, (THREADS,), (*arguments, parts, np.int64(n)))
    kernel_of(f"finish{count}")((1,), (THREADS,), (parts, np.int32(grid[0]), out))
    return list(out.get().tolist())


def total(values: Any) -> float:
    """Return the sum of numbers, taken in twice the digits."""

    def of_no_loss(name: str) -> Any:
        return kernel("passes", name, f"THREADS={THREADS}", "MARGIN=0", "LOGISTIC=0")

    values = cp.ascontiguousarray(values, dtype=cp.float64)
    return summed(of_no_loss, len(values), "total", 1, values, NULL)[0]


class CudaArrays(Arrays):
    """Vectors of n numbers on the device."""

    xp: Any = cp

    def scatter(self, numbers: Array) -> Any:
        return upload(numbers)

    def gather(self, vector: Any) -> Array:
        return download(vector)

    def sums(self, function: Callable[..., tuple[Any, ...]], *vectors: Any) -> list[float]:
        return [total(each) for each in function(*vectors)]


CUDA_ARRAYS = CudaArrays()


class CudaPasses(Passes):
    """Passes in kernels, over rows whose targets and weights are on a device."""

    xp: Any = cp

    def __init__(self, problem: Problem) -> None:
        self.loss = loss = problem.loss
        self.vectors = CUDA_ARRAYS
        y: Any = problem.y
        self.y = y if isinstance(y, cp.ndarray) else upload(y)
        self.c = None if problem.weight is None else upload(problem.weight)
        self.n = len(self.y)
        numbers = loss.smoothness, loss.dead_zone, *loss.domain
        self._loss = tuple(map(np.float64, numbers))
        margin, logistic = loss.kind == "classification", isinstance(loss, Logistic)
        self.definitions = (
            f"THREADS={THREADS}",
            f"MARGIN={int(margin)}",
            f"LOGISTIC={int(logistic)}",
        )

    def part(self, rows: slice) -> CudaPasses:
        found = copy(self)
        found.y, found.c = self.y[rows], None if self.c is None else self.c[rows]
        found.n = len(found.y)
        return found

    def _run(self, name: str, count: int, *arguments: Any) -> list[float]:
        return summed(self._kernel, self.n, name, count, *arguments)

    def _kernel(self, name: str) -> Any:
        return kernel("passes", name, *self.definitions)

    def rows(self) -> tuple[Any, ...]:
        """Return what kernels are told of the rows and their loss."""
        return (self.y, or_null(self.c), *self._loss)

    def derive(self, scores: Any, change: Any, step: float, centre: Any, length: float) -> Derived:
        beta, h = cp.empty(self.n), cp.empty(self.n)
        moved = scores if change is None else cp.empty(self.n)
        line = scores, or_null(change), np.float64(step), or_null(centre), np.float64(length)
        stay = NULL if change is None else moved
        balance, mass, residual, curved, reach = self._run(
            "derive", 4, *line, *self.rows(), stay, beta, h
        )
        return Derived(moved, beta, h, balance, mass, residual, int(curved), reach)

    def slope(
        self, scores: Any, change: Any, step: float, centre: Any, length: float
    ) -> tuple[float, float, float]:
        line = scores, change, np.float64(step), or_null(centre), np.float64(length)
        value, size, curvature, _ = self._run("slope", 3, *line, *self.rows())
        return value, size, curvature

    def balance(self, scores: Any, b: float) -> tuple[float, float, float]:
        total, mass, curvature, _ = self._run(
            "balance", 3, scores, np.float64(b), *self.rows(), NULL
        )
        return total, mass, curvature

    def slopes(self, scores: Any, b: float) -> Any:
        beta = cp.empty(self.n)
        self._run("balance", 3, scores, np.float64(b), *self.rows(), beta)
        return beta

    def shares(self, scores: Any, b: float, duals: Any, curvature: Any) -> tuple[Any, Any]:
        share, step = cp.empty(self.n), cp.empty(self.n)
        arguments = scores, np.float64(b), duals, curvature, *self.rows(), share, step
        self._kernel("shares")(blocks_for(self.n), (THREADS,), (*arguments, np.int64(self.n)))
        return share, step

    def sides(self, duals: Any) -> tuple[float, float]:
        up, down, _ = self._run("sides", 2, duals, or_null(self.c))
        return up, down

    def row_sums(
        self, scores: Any, b: float, duals: Any, share: Any, norms: Any, norm_w: float, outer: float
    ) -> RowSums:
        numbers = np.float64(norm_w), np.float64(outer)
        point = scores, np.float64(b), duals, share, norms, *numbers
        return RowSums(*self._run("certify", 6, *point, *self.rows()))

    def weighted(self, x: Any) -> Any:
        return x if self.c is None else self.c * x
