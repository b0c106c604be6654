"""`backend="cuda"`: rows on the CUDA device that is current, or an error that says what to do."""

from __future__ import annotations

from typing import Any

from adasdca.backends.cuda.backend import DeviceBackend
from adasdca.problem.device_rows import DeviceRows
from adasdca.problem.problem import Problem

#: Vectors of n doubles that a solve holds at a time, about.
VECTORS = 16


def load_cupy() -> Any:
    """Return CuPy if it is there and sees a device; a clear error if not."""
    try:
        import cupy
    except ImportError as error:
        raise ImportError(
            f"backend = 'cuda' needs CuPy, which cannot be imported ({error}); install "
            "adasdca[cuda] for CUDA 12, or the CuPy that suits your driver, e.g. cupy-cuda13x. "
            "Leave out backend= to solve on the processor."
        ) from error
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        raise RuntimeError(
            f"backend = 'cuda' finds no CUDA device that works ({error}); check with nvidia-smi "
            "that there is one, and that its driver is not older than CuPy's CUDA "
            f"{runtime.runtimeGetVersion() // 1000}. Leave out backend= to solve on the processor."
        ) from error
    if count == 0:
        raise RuntimeError(
            "backend = 'cuda' finds no CUDA device; check CUDA_VISIBLE_DEVICES and nvidia-smi. "
            "Leave out backend= to solve on the processor."
        )
    return cupy


def bytes_needed(problem: Problem) -> int:
    """Return about how many bytes of a device's memory a solve takes."""
    rows, (n, d) = problem.rows, problem.rows.shape
    there, size = isinstance(rows, DeviceRows), rows.values.itemsize
    if rows.n_stored == n * d:
        entries = (not there) * rows.n_stored * size
    else:
        # By rows and by columns, with an index each.
        entries = (2 - there) * rows.n_stored * (size + 4) + 12 * n
    return entries + 8 * VECTORS * n + 8 * 3 * d


def cuda_backend(problem: Problem) -> DeviceBackend:
    """Copy a problem to the current CUDA device."""
    cupy = load_cupy()
    free, _ = cupy.cuda.runtime.memGetInfo()
    free += cupy.get_default_memory_pool().free_bytes()
    needed = bytes_needed(problem)
    if needed > free:
        raise _too_large(problem, needed, free)
    from adasdca.backends.cuda.kernels import CudaPasses, device_products

    try:
        return DeviceBackend(problem, device_products(problem.rows), CudaPasses(problem))
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise _too_large(problem, needed, free) from error


def _too_large(problem: Problem, needed: int, free: int) -> MemoryError:
    return MemoryError(
        f"backend = 'cuda': X of shape {problem.rows.shape} takes about {needed / 2**30:.1f} GiB "
        f"of the device's memory, and {free / 2**30:.1f} GiB are free; free some, pass float32, "
        "or leave out backend= to solve on the processor."
    )
