"""Rows of this process as those of a device."""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np
from cupyx.scipy import sparse

from adasdca.backends.cuda.kernels.csr import CudaCsr
from adasdca.backends.cuda.kernels.dense import CudaDense
from adasdca.backends.cuda.kernels.transfer import upload
from adasdca.backends.cuda.products import Products


def device_matrix(rows: Any) -> Any:
    """Copy rows to the device, unless they are there: an array or a CSR matrix of CuPy."""
    matrix = rows.matrix
    if isinstance(matrix, np.ndarray):
        return upload(matrix)
    if not isinstance(matrix, cp.ndarray) and rows.n_stored >= 2**31:
        raise ValueError(
            f"X has {rows.n_stored} stored values; backend='cuda' takes up to 2**31 - 1: leave out "
            "backend=, or split the rows."
        )
    if isinstance(matrix, (cp.ndarray, sparse.csr_matrix)):
        return matrix
    arrays = (
        upload(matrix.data[: rows.n_stored]),
        upload(matrix.indices[: rows.n_stored].astype(np.int32, copy=False)),
        upload(matrix.indptr.astype(np.int32, copy=False)),
    )
    found = sparse.csr_matrix(arrays, shape=rows.shape)
    found.has_canonical_format = True  # checked rows are sorted and have no duplicates
    return found


def device_products(rows: Any) -> Products:
    """Copy rows to the device, unless they are there."""
    matrix = device_matrix(rows)
    return CudaDense(matrix) if isinstance(matrix, cp.ndarray) else CudaCsr(matrix)
