"""What a worker keeps: the rows of its part, checked and put together once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from distributed import get_worker
from numpy.typing import NDArray

from adasdca.backends.part import Part
from adasdca.engine.checkpoints import checksum
from adasdca.multinomial.part import ClassPart, ClassTask
from adasdca.problem.data import as_doubles, check_rows
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """What a part needs to know of the whole."""

    problem: Problem  #: Without its rows, with the N of all.
    positive: Any = (
        None  #: The label that is +1, all others −1; None: targets are used as they are.
    )
    factors: dict[Any, float] | None = None  #: Of the weights of rows, by label.


@dataclass(frozen=True)
class Summary:
    """What a part says of its rows: shape, type, labels with their weights, and the weight."""

    n: int
    d: int
    dtype: str
    labels: dict[Any, float] | None
    weight: float
    blocks: dict[int, int]


#: More labels than this are targets.
MOST_LABELS = 1000


class WorkerPart:
    """The rows of a part on a worker, and the problem they are in at the moment.

    Of the blocks of these numbers come all X, then all y, then the weights if there are any.
    """

    def __init__(self, numbers: list[int], threads: int, *blocks: Any) -> None:
        count = len(numbers)
        X, y = blocks[:count], blocks[count : 2 * count]
        weight = blocks[2 * count :] or None
        self._threads = threads
        self._widths: dict[int, int] = {}
        self._heights: dict[int, int] = {}
        rows, targets, weights = [], [], []
        for k, number in enumerate(numbers):
            own = None if weight is None else weight[k]
            found = _checked(number, X[k], y[k], own)
            if found is None:
                continue
            rows.append(found[0])
            targets.append(found[1])
            weights.append(found[2])
            self._heights[number], self._widths[number] = found[0].shape
            _same_width(self._widths)
        self._rows: Any = None
        self._y: Any = np.empty(0)
        self._weight: Array | None = None
        if rows:
            sparse = any(sp.issparse(each) for each in rows)
            together = sp.vstack(rows, format="csr") if sparse else np.concatenate(rows)
            self._rows = check_rows(together if len(rows) > 1 else rows[0])
            self._y = np.concatenate(targets)
            self._weight = None if weight is None else np.concatenate(weights)
        self._part: Part | ClassPart | None = None
        self._copied: set[str] = set()

    def summary(self) -> Summary:
        """Say what the rows are."""
        if self._rows is None:
            return Summary(0, 0, "float64", {}, 0.0, {})
        n, d = self._rows.shape
        weight = np.ones(n) if self._weight is None else self._weight
        values, codes = np.unique(self._y, return_inverse=True)
        labels = None
        if len(values) <= MOST_LABELS:
            mass = np.bincount(codes, weights=weight, minlength=len(values))
            labels = dict(zip(values.tolist(), mass.tolist(), strict=True))
        total = float(weight.sum())
        return Summary(n, d, str(self._rows.values.dtype), labels, total, self._widths)

    def checksums(self) -> dict[int, list[int | None]]:
        """Return a checksum of the rows, targets and weights of each block."""
        found, end = {}, 0
        for number, height in self._heights.items():
            begin, end = end, end + height
            rows = self._rows.matrix[begin:end]
            arrays = [rows.data, rows.indices, rows.indptr] if sp.issparse(rows) else [rows]
            weight = None if self._weight is None else self._weight[begin:end]
            arrays += [as_doubles(self._y[begin:end], "y"), weight]
            found[number] = [checksum(array) for array in arrays]
        return found

    def begin(self, task: Task | ClassTask) -> None:
        """Take a problem up, at its beginning."""
        assert self._rows is not None
        y, weight = self._y, self._weight
        if task.factors is not None:
            each = np.array([task.factors[label] for label in y.tolist()])
            weight = each if weight is None else weight * each
        if isinstance(task, ClassTask):
            codes = np.searchsorted(np.array(task.classes), y)
            self._part = ClassPart(self._rows, codes, weight, task)
            return
        if task.positive is not None:
            y = np.where(y == task.positive, 1.0, -1.0)
        problem = replace(task.problem, rows=self._rows, y=as_doubles(y, "y"), weight=weight)
        self._part = Part(problem, self._threads)

    def do(self, command: str, *args: Any) -> Any:
        """Carry a command of `Part`, or of `ClassPart`, out."""
        assert self._part is not None
        return self._part.do(command, *args)

    def copy(self, key: str) -> Any:
        """Return all vectors, once for a key.

        A copy that is lost with its worker would be asked for again, when the vectors are others.
        """
        if key in self._copied:
            raise RuntimeError(f"{key} was made before")
        self._copied.add(key)
        return self.do("vectors")

    def resident(self) -> int:
        """Return the resident memory of this process in bytes, now."""
        import psutil

        return int(psutil.Process().memory_info().rss)


def copied(actor: Any) -> Any:
    """Return the vectors of a part that is on another worker, as a task of this one."""
    return actor.copy(get_worker().get_current_task()).result()


def _same_width(widths: dict[int, int]) -> None:
    """Refuse blocks of different widths, by number."""
    first = next(iter(widths), None)
    for number, width in widths.items():
        if first is not None and width != widths[first]:
            raise ValueError(
                f"block {number} of X has {width} columns where block {first} has "
                f"{widths[first]}; give all blocks the same features."
            )


def _checked(number: int, X: Any, y: Any, weight: Any) -> tuple[Any, Any, Any] | None:
    """Return a block with its targets and weights, checked; None if it has no rows."""
    try:
        rows = X if sp.issparse(X) else np.asarray(X)
        targets = np.asarray(y)
        targets = targets.ravel() if targets.ndim == 2 and targets.shape[1] == 1 else targets
        n = rows.shape[0] if rows.ndim == 2 else -1
        if targets.ndim != 1 or (n >= 0 and len(targets) != n):
            raise ValueError(
                f"y has shape {targets.shape}, but X has {n} rows: y must have shape ({n},)."
            )
        if n == 0:
            return None
        checked = check_rows(rows).matrix
        if targets.dtype.kind in "biuf" and not np.isfinite(targets).all():
            raise ValueError("y contains NaN or infinity; drop such rows or fill the values first.")
        own = None
        if weight is not None:
            own = as_doubles(weight, "sample_weight").ravel()
            if own.shape != (n,) or not (np.isfinite(own) & (own >= 0)).all():
                raise ValueError(
                    f"sample_weight must hold {n} finite numbers, 0 or more, one for each row."
                )
    except ValueError as error:
        raise ValueError(f"block {number}: {error}") from error
    return checked, targets, own
