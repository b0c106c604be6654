"""What a data set contains, as a checksum that no file format, compression or reader changes.

The canonical form is CSR with sorted columns, duplicates summed and explicit zeros dropped. Values
are hashed in single precision, where the last bit of a reader's doubles is gone, so that a copy in
float32 and one in float64, text and arrays, all agree.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class Content:
    """Fingerprint of a matrix and its labels.

    Attributes
    ----------
    n, d, nnz : int
        Rows, columns, and entries that are not 0.
    sha256 : str
        Of the canonical arrays and the labels.
    """

    n: int
    d: int
    nnz: int
    sha256: str

    @classmethod
    def of(cls, X: Any, y: Any) -> Content:
        """Take the fingerprint of data."""
        matrix = sp.csr_matrix(X, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        n, d = (int(k) for k in matrix.shape)
        digest = hashlib.sha256(f"adasdca content 1\n{n} {d} {matrix.nnz}\n".encode())
        for array, kind in (
            (matrix.indptr, "<i8"),
            (matrix.indices, "<i8"),
            (matrix.data, "<f4"),
            (y, "<f8"),
        ):
            digest.update(np.ascontiguousarray(array, dtype=kind).tobytes())
        return cls(n, d, int(matrix.nnz), digest.hexdigest())
