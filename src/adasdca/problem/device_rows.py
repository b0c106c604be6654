"""Rows that are in the memory of a CUDA device already: CuPy, and what speaks DLPack."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from adasdca.errors import InputError

#: What DLPack calls a CUDA device.
CUDA = 2
#: Finds numbers whose exponents, under these masks, are those of NaN and infinity.
NOT_FINITE = """
extern "C" __global__ void not_finite(const uint2* __restrict__ x, unsigned low, unsigned high,
                                      int* found, long long pairs) {
    const long long stride = gridDim.x * (long long)blockDim.x;
    bool bad = false;
#pragma unroll 4
    for (long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x; k < pairs; k += stride) {
        const uint2 pair = x[k];
        bad |= (low && (pair.x & low) == low) || (pair.y & high) == high;
    }
    if (bad) *found = 1;
}"""


@dataclass(frozen=True)
class DeviceRows:
    """Rows that only a backend on their device can read.

    Attributes
    ----------
    matrix : array or CSR matrix of CuPy
        The rows.
    """

    matrix: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        n, d = self.matrix.shape
        return n, d

    @property
    def n_stored(self) -> int:
        """Number of entries in memory."""
        return int(self.values.size)

    @property
    def values(self) -> Any:
        """The entries."""
        return self.matrix.data if hasattr(self.matrix, "indptr") else self.matrix

    def with_constant(self, value: float) -> DeviceRows:
        """Refuse: what is the user's is not copied there."""
        raise InputError(
            "intercept_scaling copies X with one more column, which is not done on a device; pass "
            "intercept_scaling=None, or X in the memory of this process."
        )


def is_on_device(X: Any) -> bool:
    """Whether X is on a CUDA device."""
    if isinstance(X, np.ndarray):
        return False
    if type(X).__module__.startswith("cupyx."):
        return True
    if hasattr(X, "__cuda_array_interface__"):
        return True
    return hasattr(X, "__dlpack_device__") and int(X.__dlpack_device__()[0]) == CUDA


def from_device(x: Any) -> Any:
    """Copy an array of a device, targets or weights, to this process."""
    import cupy

    return (x if isinstance(x, cupy.ndarray) else cupy.from_dlpack(x)).get()


def to_numpy(x: Any) -> Any:
    """Return an array, wherever it is, as one of NumPy."""
    return from_device(x) if is_on_device(x) else np.asarray(x)


def to_host(array: Any) -> Any:
    """Return an array of CuPy, or of NumPy, as one of NumPy."""
    return array.get() if hasattr(array, "get") else array


def in_kind(array: Any, X: Any) -> Any:
    """Return an array of NumPy as one of the library that X is of, on the device if X is there."""
    if array is None or isinstance(X, np.ndarray):
        return array
    if is_on_device(X):
        import cupy

        array = cupy.asarray(array)
        if type(X).__module__.startswith(("cupy.", "cupyx.")):
            return array
    library = sys.modules.get(type(X).__module__.partition(".")[0])
    namespace = X.__array_namespace__() if hasattr(X, "__array_namespace__") else library
    taken = getattr(namespace, "from_dlpack", None)
    return array if taken is None else taken(array)


def check_device_rows(X: Any) -> DeviceRows:
    """Return X as rows of CuPy, not copied where it is in C order and of float32 or float64."""
    import cupy

    if type(X).__module__.startswith("cupyx."):
        matrix = X.tocsr()
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        values = matrix.data
    else:
        matrix = values = X if isinstance(X, cupy.ndarray) else cupy.from_dlpack(X)
    if matrix.ndim != 2:
        raise InputError(f"X has shape {matrix.shape}; pass a matrix, a row for each sample.")
    if values.dtype not in (np.float32, np.float64):
        raise InputError(
            f"X is on a device and has dtype {values.dtype}; pass float32 or float64, e.g. "
            "X.astype(numpy.float32)."
        )
    if 0 in matrix.shape:
        raise InputError(f"X has shape {matrix.shape}; pass at least one row and one feature.")
    if not _finite(values):
        raise InputError(
            "Input X contains NaN or infinity; drop such rows or fill the values first."
        )
    if matrix is values:
        matrix = cupy.ascontiguousarray(matrix)
    return DeviceRows(matrix)


def device_targets(y: Any, n: int, kind: str) -> Any:
    """Return targets that are on a device as doubles there; None if there is something amiss."""
    import cupy

    y = y if isinstance(y, cupy.ndarray) else cupy.from_dlpack(y)
    if y.shape != (n,) or y.dtype.kind not in "iuf":
        return None
    targets = cupy.ascontiguousarray(y, dtype=np.float64)
    if kind == "classification":
        plus, others = int((targets == 1.0).sum()), int((targets != -1.0).sum())
        return targets if 0 < plus == others < n else None
    return targets if _finite(targets) else None


def _finite(values: Any) -> bool:
    """Look for NaN and infinity, in pairs of 4 bytes: at twice the rate of CuPy's own sums."""
    import cupy

    flat = values.ravel() if values.flags.c_contiguous else values.T.ravel()
    if flat.nbytes < 8 or flat.data.ptr % 8:
        return bool(cupy.isfinite(flat).all())
    masks = (0x7F800000, 0x7F800000) if flat.itemsize == 4 else (0, 0x7FF00000)
    found, pairs = cupy.zeros(1, np.int32), flat.nbytes // 8
    arguments = flat, *map(np.uint32, masks), found, np.int64(pairs)
    cupy.RawKernel(NOT_FINITE, "not_finite")((2048,), (256,), arguments)
    return not found[0] and bool(cupy.isfinite(flat[-1]))
