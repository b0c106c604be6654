"""`backend="cuda"`: rows on the CUDA device that is current, or an error that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from adasdca.backends.cuda.backend import DeviceBackend
from adasdca.backends.cuda.products import Products
from adasdca.backends.cuda.streamed import StreamedRows
from adasdca.problem.device_rows import DeviceRows
from adasdca.problem.problem import Problem

#: Vectors of n doubles that a solve holds at a time, about.
VECTORS = 16
#: Rows that a pass over streamed ones must have room for.
LEAST = 4096
#: What can be done without a device; estimators name it in another way.
ELSE = "Leave out backend='cuda' (device='cuda' of estimators) to solve on the processor."


def load_cupy() -> Any:
    """Return CuPy if it is there and sees a device; a clear error if not."""
    try:
        import cupy
    except ImportError as error:
        raise ImportError(
            f"A solve on a CUDA device needs CuPy, which cannot be imported ({error}); install "
            "adasdca[cuda] for CUDA 12, or the CuPy that suits your driver, e.g. cupy-cuda13x. "
            f"{ELSE}"
        ) from error
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        raise RuntimeError(
            f"There is no CUDA device that works ({error}); check with nvidia-smi "
            "that there is one, and that its driver is not older than CuPy's CUDA "
            f"{runtime.runtimeGetVersion() // 1000}. {ELSE}"
        ) from error
    if count == 0:
        raise RuntimeError(
            f"There is no CUDA device; check CUDA_VISIBLE_DEVICES and nvidia-smi. {ELSE}"
        )
    return cupy


def bytes_of_rows(rows: Any) -> int:
    """Return about how many bytes of a device's memory rows take that are not there yet."""
    there, size = isinstance(rows, DeviceRows), rows.values.itemsize
    n, d = rows.shape
    if rows.n_stored == n * d:
        return int(not there) * int(rows.n_stored) * int(size)
    # By rows and by columns, with an index each, and a third time while they are sorted.
    return (3 - there) * int(rows.n_stored) * (int(size) + 4) + 12 * int(n)


def free_bytes(cupy: Any) -> int:
    """Return how much of the device's memory is free."""
    free, _ = cupy.cuda.runtime.memGetInfo()
    return int(free) + int(cupy.get_default_memory_pool().free_bytes())


def cuda_backend(problem: Problem) -> DeviceBackend:
    """Copy a problem to the current CUDA device; rows that do not fit come there in every pass."""
    products = placed(problem.rows, VECTORS)
    from adasdca.backends.cuda.kernels.passes import CudaPasses

    with _memory_told(problem.rows, VECTORS):
        told = partial(short_of, problem.rows)
        return DeviceBackend(problem, products, CudaPasses(problem), told)


def class_products(rows: Any, n_classes: int) -> Products:
    """Copy rows to the current CUDA device, for a multinomial model."""
    return placed(rows, VECTORS * (n_classes + 1))


def placed(rows: Any, vectors: int) -> Products:
    """Copy rows to the current CUDA device, beside so many vectors of n doubles.

    Those that do not fit come there in every pass.
    """
    cupy = load_cupy()
    free, (n, d) = free_bytes(cupy), rows.shape
    taken, matrix = 8 * vectors * n + 24 * d, bytes_of_rows(rows)
    # A third of what vectors leave: a part of the rows, and what its Gram matrix needs.
    height = int((free - taken) / 3 / max(matrix / n, 1))
    if taken >= free or height < min(n, LEAST):
        raise _too_large(rows, vectors, free)
    from adasdca.backends.cuda.kernels.arrays import device_products
    from adasdca.backends.cuda.kernels.passes import CUDA_ARRAYS

    with _memory_told(rows, vectors):
        if taken + matrix <= free:
            return device_products(rows)
        return StreamedRows(rows, height, device_products, CUDA_ARRAYS)


@contextmanager
def _memory_told(rows: Any, vectors: int) -> Iterator[None]:
    """Say what a device has too little memory for."""
    cupy = load_cupy()
    try:
        yield
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise _too_large(rows, vectors, free_bytes(cupy)) from error


def copied(rows: Any) -> Any:
    """Return checked rows on the device, for several solves; as they are if they do not fit."""
    cupy = load_cupy()
    if 2 * bytes_of_rows(rows) + 8 * VECTORS * rows.shape[0] > free_bytes(cupy):
        return rows
    from adasdca.backends.cuda.kernels.arrays import device_matrix

    return DeviceRows(device_matrix(rows))


def _too_large(rows: Any, vectors: int, free: int) -> MemoryError:
    needed = 8 * vectors * rows.shape[0] + 24 * rows.shape[1] + bytes_of_rows(rows)
    return MemoryError(
        f"A solve on a CUDA device: X of shape {rows.shape} takes about {needed / 2**30:.1f} GiB "
        f"of the device's memory, and {free / 2**30:.1f} GiB are free, too few for its vectors and "
        f"a part of the rows; free some. {ELSE}"
    )


def short_of(rows: Any, error: MemoryError) -> MemoryError:
    """Return what is said of an error in the middle of a solve, if the device's memory is short."""
    cupy = load_cupy()
    if not isinstance(error, cupy.cuda.memory.OutOfMemoryError):
        return error
    free = free_bytes(cupy) / 2**30
    there = isinstance(rows, DeviceRows)
    host = " pass X as an array of NumPy, of which parts come to the device;" if there else ""
    return MemoryError(
        f"A solve on a CUDA device with X of shape {rows.shape} has run out of its memory, of "
        f"which {free:.1f} GiB are free now. Free what other arrays and processes (nvidia-smi) "
        f"have;{host} float32 takes half as much as float64. {ELSE} There memory_limit= reads rows "
        "from a disk."
    )
