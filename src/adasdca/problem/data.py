"""Checked data: what `solve` may trust about X, y and the sample weights."""

from __future__ import annotations

import math
import numbers
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adasdca import _core
from adasdca.errors import InputError, counted
from adasdca.problem.device_rows import check_device_rows, from_device, is_on_device

Array = NDArray[np.float64]

#: Rows whose mean stands for that of all.
MIDDLE = 256
#: The square of the mean of a feature over its variance, from which on it is far from 0.
FAR = 100.0
#: Numbers of a vector that are compared at a time.
COUNTED = 1 << 16


@dataclass(frozen=True)
class DenseRows:
    """A C-ordered matrix of float32 or float64."""

    dense: ClassVar[bool] = True
    values: NDArray[Any]
    #: What a solve has found of the rows for all that have the same, by name.
    known: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        n, d = self.values.shape
        return n, d

    @property
    def core(self) -> _core.Rows:
        """The rows as the core has them, not copied."""
        return _core.Rows.dense(self.values)

    @property
    def n_stored(self) -> int:
        """Number of entries in memory."""
        return self.values.size

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All that is stored."""
        return (self.values,)

    @property
    def entry_bytes(self) -> int:
        """Bytes of an entry, its index included."""
        return self.values.itemsize

    def lengths(self, every: int = 1) -> NDArray[np.int64]:
        """Return the number of entries of every `every`-th row; one number if all are equal."""
        return np.array([self.values.shape[1]])

    def occurrences(self, most: int) -> tuple[NDArray[np.int64], int]:
        """Return how often features occur in about `most` rows, and the number of these rows."""
        return np.full(self.values.shape[1], most), most

    def bounds(self, most: int) -> list[int]:
        """Return where parts of at most `most` entries begin, and the end of the last."""
        n, d = self.shape
        return [*range(0, n, max(1, most // d)), n]

    @cached_property
    def middle(self) -> Array:
        """About the mean of the rows."""
        return np.asarray(self._some.mean(axis=0))

    @cached_property
    def is_far(self) -> bool:
        """Whether a feature is so far from 0 that sums of its squares have lost two digits."""
        return bool((self.middle**2 > FAR * self._some.var(axis=0)).any())

    @property
    def _some(self) -> Array:
        return self.values[:: -(-len(self.values) // MIDDLE)].astype(np.float64)

    def take_columns(self, chosen: NDArray[np.intp]) -> DenseRows:
        """Copy some of the columns."""
        return DenseRows(np.ascontiguousarray(self.values[:, chosen]))

    @property
    def matrix(self) -> NDArray[Any]:
        """The rows as NumPy's matrix, not copied."""
        return self.values

    def take(self, chosen: NDArray[np.intp]) -> DenseRows:
        """Copy some of the rows."""
        return DenseRows(self.values[chosen])

    def part(self, first: int, last: int) -> DenseRows:
        """Return neighbouring rows, not copied."""
        return DenseRows(self.values[first:last])

    def with_constant(self, value: float) -> DenseRows:
        """Copy the rows with one more column, of that value."""
        n, d = self.shape
        values = np.empty((n, d + 1), dtype=self.values.dtype)
        values[:, :d], values[:, d] = self.values, value
        return DenseRows(values)


@dataclass(frozen=True)
class CsrRows:
    """The three arrays of a CSR matrix, sorted and without duplicates."""

    dense: ClassVar[bool] = False
    middle: ClassVar[None] = None  # they are not centred
    values: NDArray[Any]
    columns: NDArray[Any]
    start: NDArray[np.int64]
    shape: tuple[int, int]
    #: As of `DenseRows`.
    known: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    @classmethod
    def none(cls, d: int) -> CsrRows:
        """Return no rows, of so many features."""
        return cls(np.empty(0), np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64), (0, d))

    @property
    def core(self) -> _core.Rows:
        """The rows as the core has them, not copied."""
        return _core.Rows.csr(self.values, self.columns, self.start, self.shape[1])

    @property
    def n_stored(self) -> int:
        """Number of entries in memory."""
        return int(self.start[-1])

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All that is stored."""
        return self.values, self.columns, self.start

    @property
    def entry_bytes(self) -> int:
        """Bytes of an entry, its index included."""
        return self.values.itemsize + self.columns.itemsize

    def lengths(self, every: int = 1) -> NDArray[np.int64]:
        """Return the number of entries of every `every`-th row."""
        some = np.arange(0, self.shape[0], every)
        return self.start[some + 1] - self.start[some]

    def occurrences(self, most: int) -> tuple[NDArray[np.int64], int]:
        """Return how often features occur in about `most` rows, and the number of these rows."""
        n = self.shape[0]
        if n <= most:
            return np.bincount(self.columns[: self.n_stored], minlength=1), n
        # Rows in runs of eight: slices of single rows would take longer than all they tell.
        begins = np.arange(0, n, max(8, -(-8 * n // most)))
        ends = np.minimum(begins + 8, n)
        runs = zip(self.start[begins].tolist(), self.start[ends].tolist(), strict=True)
        parts = [self.columns[first:last] for first, last in runs]
        return np.bincount(np.concatenate(parts), minlength=1), int((ends - begins).sum())

    def bounds(self, most: int) -> list[int]:
        """Return where parts of at most `most` entries begin, and the end of the last."""
        n, bounds = self.shape[0], [0]
        while bounds[-1] < n:
            end = self.start[bounds[-1]] + most
            last = int(np.searchsorted(self.start, end, side="right")) - 1
            bounds.append(min(n, max(last, bounds[-1] + 1)))
        return bounds

    @property
    def matrix(self) -> sp.csr_matrix:
        """The rows as SciPy's matrix, not copied."""
        found = sp.csr_matrix((self.values, self.columns, self.start), shape=self.shape)
        found.has_canonical_format = True  # which takes a pass to find out
        return found

    def take_columns(self, chosen: NDArray[np.intp]) -> CsrRows:
        """Copy some of the columns, given in rising order."""
        part = self.matrix[:, chosen]
        part.sort_indices()
        return CsrRows(part.data, part.indices, part.indptr.astype(np.int64), part.shape)

    def take(self, chosen: NDArray[np.intp]) -> CsrRows:
        """Copy some of the rows."""
        part = self.matrix[chosen]
        return CsrRows(part.data, part.indices, part.indptr.astype(np.int64), part.shape)

    def part(self, first: int, last: int) -> CsrRows:
        """Return neighbouring rows, not copied."""
        begin, end = int(self.start[first]), int(self.start[last])
        start = np.asarray(self.start[first : last + 1]) - begin
        shape = last - first, self.shape[1]
        return CsrRows(self.values[begin:end], self.columns[begin:end], start, shape)

    def with_constant(self, value: float) -> CsrRows:
        """Copy the rows with one more column, of that value."""
        (n, d), ends = self.shape, self.start[1:]
        return CsrRows(
            np.insert(self.values[: self.n_stored], ends, value),
            np.insert(self.columns[: self.n_stored], ends, d),
            self.start + np.arange(n + 1),
            (n, d + 1),
        )


Rows = DenseRows | CsrRows


class CheckedRows(NamedTuple):
    """Rows that were checked where they are."""

    rows: Rows


def check_rows(X: Any, device: bool = False) -> Rows:
    """Return X as rows the core can read, without a copy where that is possible.

    C-ordered arrays and CSR matrices of float32 or float64 (int32 or int64 indices) are used as
    they are, read-only ones included. Everything else is copied: other dtypes become float64, other
    sparse formats CSR, Fortran order C order; unsorted or duplicate entries of a CSR matrix are
    sorted and summed. Those on a CUDA device stay there, and are refused unless `device`.
    """
    if isinstance(X, CheckedRows):
        return X.rows
    if is_on_device(X):
        if not device:
            raise InputError(
                f"X, a {type(X).__name__}, is in the memory of a CUDA device; pass it to solve "
                "with backend='cuda', or copy it to this process first, e.g. X.get() or X.cpu()."
            )
        return cast(Rows, check_device_rows(X))  # read by a backend of that device alone
    rows = _check_sparse(X) if sp.issparse(X) else _check_dense(X)
    n, d = rows.shape
    if n == 0 or d == 0:
        what = "sample(s)" if n == 0 else "feature(s)"
        raise InputError(
            f"X: Found array with 0 {what} (shape={rows.shape}) while a minimum of 1 is required; "
            "check how the data were read."
        )
    if n >= 2**31 or d >= 2**31:
        raise InputError(
            f"X has shape {rows.shape}; up to 2**31 - 1 rows and columns are supported."
        )
    return rows


def _check_dense(X: Any) -> DenseRows:
    values = _as_array(X, "X")
    if values.ndim != 2:
        raise InputError(
            f"X must be a matrix, but has {values.ndim} dimension(s); reshape your data with "
            "X.reshape(-1, 1) for a single feature or X.reshape(1, -1) for a single sample."
        )
    rows = DenseRows(_laid_out(_as_float(values)))
    if not rows.core.inspect()[1]:
        raise _not_finite("X")
    return rows


def _check_sparse(X: Any) -> CsrRows:
    if X.ndim != 2:
        raise InputError(
            f"X must be a matrix, but has {X.ndim} dimension(s); reshape your data with "
            "X.reshape(-1, 1) for a single feature or X.reshape(1, -1) for a single sample."
        )
    _check_structure(X)
    csr = X.tocsr()
    values, columns = _as_float(csr.data), csr.indices
    if columns.dtype not in (np.int32, np.int64):
        columns = columns.astype(np.int64)
    values, columns = _laid_out(values), _laid_out(columns)
    start = _laid_out(np.asarray(csr.indptr, dtype=np.int64))
    shape = (int(csr.shape[0]), int(csr.shape[1]))
    if len(start) != shape[0] + 1:
        raise InputError(
            f"X: indptr has {len(start)} entries where {shape[0] + 1} belong; "
            "build the CSR matrix anew."
        )
    rows = CsrRows(values, columns, start, shape)
    in_range, finite, canonical = rows.core.inspect()
    if not in_range:
        raise InputError(
            f"X: the CSR structure is inconsistent with its shape {shape}: indices must lie in "
            f"[0, {shape[1]}) and indptr must start at 0 and never fall; build the matrix anew."
        )
    if not finite:
        raise _not_finite("X")
    if not canonical:
        rows = CsrRows(*rows.core.sort(), start, shape)
        if not rows.core.inspect()[2]:
            fixed = sp.csr_matrix((rows.values, rows.columns, start), shape=shape)
            fixed.sum_duplicates()
            return _check_sparse(fixed)
    return rows


def _check_structure(X: Any) -> None:
    """Check what SciPy converts on trust: with an index out of range it writes out of bounds."""
    try:
        if X.format in ("csc", "bsr"):
            X.check_format(full_check=True)
        if X.format == "coo" and X.nnz:
            for index, size in ((X.row, X.shape[0]), (X.col, X.shape[1])):
                if index.min() < 0 or index.max() >= size:
                    raise InputError(f"indices must lie in [0, {size})")
    except ValueError as error:
        raise InputError(
            f"X: the structure of this {X.format} matrix is inconsistent with its shape {X.shape} "
            f"({error}); build the matrix anew."
        ) from error


def _as_float(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype in (np.float32, np.float64):
        return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))
    if np.issubdtype(values.dtype, np.complexfloating):
        raise InputError(
            f"X: Complex data not supported (dtype {values.dtype}); pass real numbers."
        )
    try:
        return _cast(values)
    except (OverflowError, TypeError, ValueError) as error:
        raise InputError(
            f"X has dtype {values.dtype}, which cannot be read as numbers ({error}); "
            "encode categories and text first, e.g. with sklearn.preprocessing.OneHotEncoder."
        ) from error


def is_number(x: Any) -> bool:
    """Whether x is one real number, not beyond doubles."""
    if type(x) is float:  # most are, and to ask for a kind of number takes a while
        return math.isfinite(x)
    if isinstance(x, (bool, np.bool_)) or not isinstance(x, numbers.Real):
        return False
    try:
        return math.isfinite(x)
    except OverflowError:
        return False


def _laid_out(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array in C order at addresses that its type allows, copied if it is not."""
    flags = array.flags
    if type(array) is np.ndarray and flags.c_contiguous and flags.aligned:
        return array
    return np.require(array, requirements=["C", "A", "E"])


def refuse_masked(x: Any, name: str) -> None:
    """Refuse an array with masked entries: nothing below would see the mask."""
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        count = np.count_nonzero(np.ma.getmaskarray(x))
        raise InputError(
            f"{name} is a masked array, and {count} of its entries are masked; drop such rows or "
            "fill the values first, e.g. with numpy.ma.filled."
        )


def _as_array(x: Any, name: str) -> NDArray[Any]:
    if is_on_device(x):
        x = from_device(x)
    refuse_masked(x, name)
    try:
        return np.asarray(x)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} is not an array ({error}); give all rows the same length."
        ) from error


def _cast(array: NDArray[Any]) -> Array:
    if array.dtype == np.float64:
        return _laid_out(array)
    if array.dtype.kind not in "biufO":  # text, dates and complex numbers would be converted, too
        raise TypeError(f"dtype {array.dtype} is not one of real numbers")
    pandas = sys.modules.get("pandas")
    if array.dtype == object and pandas is not None:  # its NA is no number, but as good as NaN
        array = np.where(pandas.isna(array), np.nan, array)
    with np.errstate(over="ignore"):  # an infinity is found later
        return _laid_out(np.asarray(array, dtype=np.float64))


def as_doubles(x: Any, name: str) -> Array:
    """Return an array of doubles in C order."""
    try:
        return _cast(_as_array(x, name))
    except (OverflowError, TypeError, ValueError) as error:
        raise InputError(
            f"{name} cannot be read as real numbers ({error}); pass a numeric array."
        ) from error


def _not_finite(name: str) -> InputError:
    return InputError(
        f"Input {name} contains NaN or infinity; drop such rows or fill the values first, "
        "e.g. with sklearn.impute.SimpleImputer."
    )


def _count(x: Array, value: float) -> int:
    """Return how often a value occurs, in blocks: fresh memory for masks takes twice as long."""
    if len(x) <= COUNTED:
        return int(np.count_nonzero(x == value))
    blocks = (x[first : first + COUNTED] for first in range(0, len(x), COUNTED))
    return sum(int(np.count_nonzero(block == value)) for block in blocks)


def _check_vector(x: Any, n: int, name: str, finite: bool = True) -> Array:
    """Return a vector of n doubles, which are finite unless nobody minds."""
    vector = as_doubles(x, name)
    if vector.ndim != 1 or len(vector) != n:
        raise InputError(
            f"{name} has shape {vector.shape}, but X has {counted(n, 'row')}: {name} must have "
            f"shape ({n},)."
        )
    if finite and not np.isfinite(vector).all():
        raise _not_finite(name)
    return vector


def check_targets(y: Any, n: int, kind: str) -> Array:
    """Return y as doubles; for classification −1 and +1, both present."""
    if y is None:
        raise InputError("y is None; pass one label or target per row of X.")
    y = _as_array(y, "y")
    if y.dtype.kind in "OUSb" and kind == "classification":
        raise InputError(
            f"y has dtype {y.dtype}; labels must be the numbers -1 and +1, e.g. "
            "numpy.where(y == positive_class, 1.0, -1.0)."
        )
    targets = _check_vector(y, n, "y", kind != "classification")
    if kind == "classification":
        plus = _count(targets, 1.0)
        if plus + _count(targets, -1.0) != n:
            if not np.isfinite(targets).all():
                raise _not_finite("y")
            found = np.unique(targets)
            shown = ", ".join(f"{v:g}" for v in found[:5]) + (", ..." if len(found) > 5 else "")
            raise InputError(
                f"y holds the values {shown}; a classification loss needs the labels -1 and +1, "
                "e.g. numpy.where(y == positive_class, 1.0, -1.0)."
            )
        if plus in (0, n):
            raise InputError(
                f"y holds one class only ({targets[0]:g}); "
                "a classification loss needs both -1 and +1."
            )
    return targets


def check_weights(sample_weight: Any, n: int) -> Array | None:
    """Return non-negative weights with a positive sum, or None for equal ones."""
    if sample_weight is None:
        return None
    weight = _check_vector(sample_weight, n, "sample_weight")
    if (weight < 0).any():
        raise InputError(
            f"sample_weight holds negative values (the least is {weight.min():g}); "
            "weights must be 0 or more."
        )
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if total == 0:
        raise InputError("sample_weight is all zero; at least one weight must be above 0.")
    if not 1e-290 < total < 1e290:
        raise InputError(
            f"sample_weight has the sum {total:g}, beyond double precision; scale the weights to "
            "about 1, which changes nothing."
        )
    return weight
