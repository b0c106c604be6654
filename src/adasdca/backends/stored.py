"""Rows that stay on a disk: memory-mapped files in blocks, two of which are in memory at a time.

While one block is used the system reads the next one, and the memory of the last one is released.
Vectors of n numbers and arrays of the features stay in memory.
"""

from __future__ import annotations

import math
import mmap
import operator
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adasdca.backends.cpu import LocalBackend
from adasdca.backends.part import Pages, Part
from adasdca.backends.parts import PartsBackend
from adasdca.backends.teams import LocalTeam
from adasdca.errors import InputError
from adasdca.problem.data import CsrRows, DenseRows, Rows, check_rows
from adasdca.problem.problem import Problem

#: Bytes that a solve keeps for a row: its state, its vectors, and those of a step.
ROW_BYTES = 240
#: Vectors of d numbers that a solve keeps, including those of a pass over a block.
FEATURE_VECTORS = 100
#: Most features whose matrix is summed, and copies of it that are there at once.
MOST_UNKNOWNS, MATRICES = 3000, 4
#: Blocks in memory: one in use, and one that is read. Copies for working sets, in blocks.
RESIDENT, COPIED = 2, 1
#: Least bytes of a block.
SMALLEST = 1 << 20
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def check_limit(memory_limit: Any) -> int:
    """Return a number of bytes, given as such or as text, e.g. "2 GB" or "512 MiB"."""
    found = None
    if isinstance(memory_limit, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?)(i?)B?\s*", memory_limit, re.IGNORECASE)
        if match and match[1].count(".") < 2 and match[1] != ".":
            unit = _UNITS[match[2].upper()]
            if match[3]:
                unit = 1024 ** round(math.log10(unit) / 3)
            found = int(float(match[1]) * unit)
    elif not isinstance(memory_limit, (bool, np.bool_)):
        try:
            found = operator.index(memory_limit)
        except TypeError:
            found = None
    if found is None or found < SMALLEST:
        raise InputError(
            f"memory_limit = {memory_limit!r} is not allowed; choose a number of bytes, 1 MiB at "
            "least, or a text such as '2 GB' or '512 MiB'."
        )
    return found


class MappedPages(Pages):
    """The pages of some arrays in mapped files."""

    def __init__(self, arrays: list[NDArray[Any]]) -> None:
        self._ranges = [_range_of(array) for array in arrays if array.size]

    def _advise(self, advice: str) -> None:
        option = getattr(mmap, advice, None)  # not known to every system
        if option is not None:
            for mapping, begin, size in self._ranges:
                mapping.madvise(option, begin, size)

    def read_ahead(self) -> None:
        """Let the system read them."""
        self._advise("MADV_WILLNEED")

    def let_go(self) -> None:
        """Give their memory back."""
        self._advise("MADV_DONTNEED")


def _mapping_of(array: Any) -> mmap.mmap | None:
    """Return the mapping that an array is in, None if it is in none, or in one with changes."""
    while array is not None and not isinstance(array, mmap.mmap):
        if isinstance(array, np.memmap) and array.mode == "c":
            return None  # what was changed is in memory only
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return array


def _range_of(array: NDArray[Any]) -> tuple[mmap.mmap, int, int]:
    """Return the mapping of an array, and the pages it takes there."""
    mapping = _mapping_of(array)
    assert mapping is not None
    base = np.frombuffer(mapping, dtype=np.uint8).ctypes.data
    offset = array.ctypes.data - base
    begin = offset // mmap.PAGESIZE * mmap.PAGESIZE
    return mapping, begin, offset + array.nbytes - begin


def as_mapped(X: Any) -> Rows:
    """Return rows of mapped files, not yet looked at."""
    rows: Any = X
    if sp.issparse(X) and X.format == "csr":
        rows = CsrRows(X.data, X.indices, np.asarray(X.indptr, dtype=np.int64), X.shape)
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.flags.c_contiguous:
        rows = DenseRows(X)
    if not isinstance(rows, (DenseRows, CsrRows)):
        raise InputError(
            f"X of type {type(X).__name__} does not stay on a disk; with memory_limit pass an "
            "array of numpy.load(path, mmap_mode='r'), a CSR matrix of such arrays, or the rows of "
            "a packed file (adasdca.files.open_packed)."
        )
    if any(array.size and _mapping_of(array) is None for array in rows.arrays[:2]):
        raise InputError(
            "X is in memory as a whole; with memory_limit pass an array of numpy.load(path, "
            "mmap_mode='r'), a CSR matrix of such arrays, or the rows of a packed file "
            "(adasdca.files.open_packed), or leave memory_limit out."
        )
    allowed = (np.float32, np.float64)
    if rows.values.dtype not in allowed:
        raise InputError(
            f"X has dtype {rows.values.dtype}; with memory_limit nothing is converted: store "
            "float32 or float64."
        )
    return rows


def _matrix(rows: Rows) -> Any:
    """Return rows for a check, which copies none of them."""
    if isinstance(rows, DenseRows):
        return rows.values
    index = rows.columns.dtype
    start = rows.start.astype(index)  # of few rows: SciPy wants them alike
    matrix = sp.csr_matrix(rows.shape, dtype=rows.values.dtype)
    matrix.data, matrix.indices, matrix.indptr = rows.values, rows.columns, start
    return matrix


def block_bounds(rows: Rows, limit: int) -> list[int]:
    """Return where blocks begin, and the end of the last, such that a solve keeps the limit."""
    n, d = rows.shape
    square = MATRICES * d * d if d <= MOST_UNKNOWNS else 0
    kept = ROW_BYTES * n + 8 * (FEATURE_VECTORS * d + square)
    left = limit - kept
    shares = RESIDENT + COPIED
    least = shares * SMALLEST
    if left < least:
        raise InputError(
            f"memory_limit = {limit} is too little: the vectors of {n} rows and {d} features take "
            f"{kept} bytes beside the blocks; choose {kept + least} or more."
        ).about("memory_limit")
    return rows.bounds(left // (shares * rows.entry_bytes))


def map_rows(
    X: Any, memory_limit: Any, threads: int
) -> tuple[Rows, Callable[[Problem], PartsBackend]]:
    """Return rows of mapped files, checked, and what makes a backend that reads them by blocks."""
    limit = check_limit(memory_limit)
    rows = as_mapped(X)
    if 0 in rows.shape:
        check_rows(_matrix(rows))  # raises
    bounds = block_bounds(rows, limit)
    parts = [rows.part(begin, end) for begin, end in pairwise(bounds)]
    blocks = [(part, MappedPages([*part.arrays[:2]])) for part in parts]
    for k, (part, pages) in enumerate(blocks):
        pages.read_ahead()
        given = _matrix(part)
        try:
            found = check_rows(given)
        except ValueError as error:
            raise InputError(f"rows {bounds[k]} to {bounds[k + 1] - 1}: {error}") from error
        if found.values.ctypes.data != part.values.ctypes.data:
            raise InputError(
                f"X: rows {bounds[k]} to {bounds[k + 1] - 1} would have to be copied; with "
                "memory_limit store C-ordered arrays, and CSR matrices whose indices are sorted "
                "and come once."
            )
        pages.let_go()

    few = min(LocalBackend.few, COPIED / len(blocks))

    def make(problem: Problem) -> PartsBackend:
        parts = []
        for (first, last), (_, pages) in zip(pairwise(bounds), blocks, strict=True):
            pages.read_ahead()
            parts.append(Part(problem.part(first, last), threads, pages, few))
            pages.let_go()
        return PartsBackend(problem, LocalTeam(parts))

    return rows, make
