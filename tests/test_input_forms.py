"""What is accepted: every form of the same numbers gives the same result, without copies."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from adasdca import _core, certify, solve
from adasdca.problem.problem import Problem

RNG = np.random.default_rng(0)
N, D = 60, 7
# Small integers are exact in every type of number, and zeros in every sparse format.
DENSE = RNG.integers(0, 4, size=(N, D)) * (RNG.random((N, D)) < 0.5).astype(np.float64)
Y = np.where(RNG.random(N) < 0.5, 1.0, -1.0)
OPTIONS = {"loss": "smoothed_hinge", "lam": 0.05, "tol": 0.0, "max_epochs": 5, "random_state": 0}
FORMATS = ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"]


def strided(array):
    wide = np.zeros((2 * N, 3 * D))
    wide[::2, ::3] = array
    return wide[::2, ::3]


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def misaligned(array):
    """The same numbers, each an odd number of bytes from where the processor likes it."""
    raw = np.zeros(array.nbytes + 1, np.uint8)
    found = raw[1:].view(array.dtype).reshape(array.shape)
    found[...] = array
    assert not found.flags.aligned
    return found


def with_misaligned_parts(matrix):
    matrix = matrix.copy()
    for part in ("data", "indices", "indptr"):
        setattr(matrix, part, misaligned(getattr(matrix, part)))
    return matrix


def shuffled(matrix):
    """The same CSR matrix with the entries of each row in another order."""
    order = np.lexsort((RNG.random(matrix.nnz), matrix.tocoo().row))
    parts = (matrix.data[order], matrix.indices[order], matrix.indptr)
    return sp.csr_matrix(parts, shape=matrix.shape)


def doubled(matrix):
    """The same CSR matrix with every entry written as two halves."""
    parts = (matrix.data.repeat(2) / 2, matrix.indices.repeat(2), matrix.indptr * 2)
    return sp.csr_matrix(parts, shape=matrix.shape)


def with_long_indices(matrix):
    matrix = matrix.copy()
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


CSR = sp.csr_matrix(DENSE)
DENSE_FORMS = {
    "list": DENSE.tolist(),
    "fortran": np.asfortranarray(DENSE),
    "strided": strided(DENSE),
    "reversed": DENSE[::-1].copy()[::-1],
    "read-only": read_only(DENSE),
    "object": DENSE.astype(object),
    "misaligned": misaligned(DENSE),
    **{
        kind: DENSE.astype(kind)
        for kind in ("f2", "f4", "g", "i1", "i8", "u2", ">f8", ">f4", ">i4")
    },
}
SPARSE_FORMS = {
    **{name: CSR.asformat(name) for name in FORMATS},
    **{f"{name}-array": sp.csr_array(DENSE).asformat(name) for name in FORMATS},
    "unsorted": shuffled(CSR),
    "duplicates": doubled(CSR),
    "misaligned": with_misaligned_parts(CSR),
    "long-indices": with_long_indices(CSR),
    **{kind: CSR.astype(kind) for kind in ("f4", "i4", "u1", "g")},
}


def same(one, other):
    np.testing.assert_array_equal(one.coef, other.coef)
    np.testing.assert_array_equal(one.dual_coef, other.dual_coef)
    assert (one.primal, one.dual) == (other.primal, other.dual)


@pytest.mark.parametrize("form", DENSE_FORMS)
def test_dense(form):
    if form == "f4":
        # It stays as it is, and the order of a sum of floats is the processor's: so are the last
        # places, and with them the picks.
        many = {**OPTIONS, "max_epochs": 300}
        single, double = (solve(x, Y, **many) for x in (DENSE_FORMS[form], DENSE))
        np.testing.assert_allclose(single.coef, double.coef, atol=1e-7)
        return
    same(solve(DENSE_FORMS[form], Y, **OPTIONS), solve(DENSE, Y, **OPTIONS))


@pytest.mark.parametrize("form", SPARSE_FORMS)
def test_sparse(form):
    same(solve(SPARSE_FORMS[form], Y, **OPTIONS), solve(CSR, Y, **OPTIONS))


@pytest.mark.parametrize("X", [misaligned(DENSE), with_misaligned_parts(CSR)])
def test_the_core_sees_aligned_numbers(X):
    ones = misaligned(np.ones(D))
    problem = Problem.checked(
        X, misaligned(Y), loss="hinge", lam=1.0, sample_weight=misaligned(Y + 2.0),
        bounds=(-ones, ones),
    )  # fmt: skip
    parts = [getattr(problem.rows, name, Y) for name in ("values", "columns", "start")]
    parts += [problem.y, problem.weight, *problem.bounds]
    assert all(part.flags.aligned and part.flags.c_contiguous for part in parts)


def test_dense_and_sparse_agree():
    dense, sparse = (solve(x, Y, **{**OPTIONS, "max_epochs": 300}) for x in (DENSE, CSR))
    np.testing.assert_allclose(dense.coef, sparse.coef, atol=1e-7)
    packed, plain = (solve(CSR, Y, pack=pack, **OPTIONS) for pack in (True, False))
    same(packed, plain)


def test_booleans():
    same(solve(DENSE > 0, Y, **OPTIONS), solve((DENSE > 0) * 1.0, Y, **OPTIONS))
    same(solve(CSR > 0, Y, **OPTIONS), solve((CSR > 0) * 1.0, Y, **OPTIONS))


@pytest.mark.parametrize(
    "labels", [Y.astype(int), Y.astype(">f8"), Y.tolist(), Y.astype("f4"), np.repeat(Y, 2)[::2]]
)
def test_labels(labels):
    same(solve(DENSE, labels, **OPTIONS), solve(DENSE, Y, **OPTIONS))


@pytest.mark.parametrize("weight", [np.ones(N, int), np.ones(N, bool), [1] * N, np.full(N, 8.0)])
def test_weights(weight):
    weighted, plain = solve(DENSE, Y, sample_weight=weight, **OPTIONS), solve(DENSE, Y, **OPTIONS)
    np.testing.assert_allclose(weighted.coef, plain.coef, rtol=1e-12)
    assert weighted.gap == pytest.approx(plain.gap, rel=1e-9)


def test_bounds():
    unbounded = solve(DENSE, Y, **OPTIONS)
    for bounds in ((None, None), (-np.inf, np.inf), np.array([-1e9, 1e9]), ([-1e9] * D, 1e9)):
        far = solve(DENSE, Y, bounds=bounds, **OPTIONS)
        assert np.linalg.norm(far.coef - unbounded.coef) <= far.radius + unbounded.radius
    assert (solve(DENSE, Y, bounds=(0, None), **OPTIONS).coef >= 0).all()
    fixed = solve(DENSE, Y, bounds=(np.arange(D), np.arange(D)), **OPTIONS)
    np.testing.assert_array_equal(fixed.coef, np.arange(D))


@pytest.mark.parametrize("seed", [0, np.int64(0), 2**64])
def test_seeds(seed):
    same(solve(DENSE, Y, **{**OPTIONS, "random_state": seed}), solve(DENSE, Y, **OPTIONS))


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
def test_generators_move_on(kind):
    """Two solves from one generator differ, two from equal generators do not."""
    generator = kind(5)
    options = {**OPTIONS, "method": "sdca"}
    first, second = (solve(DENSE, Y, **{**options, "random_state": generator}) for _ in range(2))
    assert (first.coef != second.coef).any()
    same(first, solve(DENSE, Y, **{**options, "random_state": kind(5)}))


@pytest.mark.parametrize("shape", [(1, 1), (1, D), (N, 1)])
def test_small(shape):
    x = np.ones(shape)
    solution = solve(x, np.arange(len(x)) + 1.0, loss="squared", lam=0.1, tol=1e-9, random_state=0)
    assert solution.converged


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_canonical_forms_are_not_copied(kind):
    for change in (lambda x: x, read_only):
        x = change(DENSE.astype(kind))
        rows = Problem.checked(x, Y, loss="hinge", lam=0.1).rows
        assert np.shares_memory(rows.values, x)
    for matrix in (CSR.astype(kind), with_long_indices(CSR.astype(kind)), sp.csr_array(CSR)):
        matrix.data, matrix.indices = read_only(matrix.data), read_only(matrix.indices)
        rows = Problem.checked(matrix, Y, loss="hinge", lam=0.1).rows
        assert np.shares_memory(rows.values, matrix.data)
        assert np.shares_memory(rows.columns, matrix.indices)


def test_inputs_are_left_alone():
    weight, warm = np.ones(N), np.zeros(N)
    for x in (DENSE, *SPARSE_FORMS.values()):
        parts = ("data", "indices", "indptr", "row", "col", "offsets")
        arrays = [getattr(x, name) for name in parts if isinstance(getattr(x, name, 0), np.ndarray)]
        arrays = [x] if x is DENSE else arrays
        before = [array.copy() for array in arrays]
        solve(x, Y, sample_weight=weight, warm_start=warm, **OPTIONS)
        for array, copy in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(array, copy)
    assert (weight == 1).all()
    assert (warm == 0).all()


def test_certify_reads_the_same_forms():
    coef = RNG.normal(size=D)
    expected = certify(DENSE, Y, coef, loss="logistic", lam=0.1)
    for x in (*DENSE_FORMS.values(), *SPARSE_FORMS.values()):
        for w in (coef, coef.tolist(), coef[None, :], coef.astype(object)):
            found = certify(x, Y, w, loss="logistic", lam=0.1)
            assert found.primal == pytest.approx(expected.primal, rel=1e-12)
            assert found.gap == pytest.approx(expected.gap, rel=1e-9)


def test_data_frames():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = {f"x{j}": DENSE[:, j] for j in range(D)}
    for library in (pandas, polars):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            frame, labels = library.DataFrame(columns), library.Series(Y)
            same(solve(frame, labels, **OPTIONS), solve(DENSE, Y, **OPTIONS))


@pytest.mark.parametrize("kind", ["Float64", "Int64", "boolean"])
def test_missing_values_of_nullable_columns_are_told_as_such(kind):
    pandas = pytest.importorskip("pandas")
    column = pandas.Series([0, 1, 1, 0, 1, 0], dtype=kind)
    frame, y = pandas.DataFrame({"a": column, "b": column}), np.array([1.0, -1, 1, -1, 1, -1])
    options = {"loss": "squared", "lam": 1.0}
    whole = solve(frame, y, **options)
    np.testing.assert_array_equal(
        whole.coef, solve(frame.astype(float).to_numpy(), y, **options).coef
    )
    with pytest.raises(ValueError, match="Input X contains NaN"):
        solve(frame.mask(frame["a"] == 0), y, **options)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        solve(np.eye(6), column.mask(column == 0), **options)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 200, 70_000])
def test_rows_are_sorted_by_their_columns(d, dtype, index):
    """Of any length; entries of the same column keep their order."""
    rng = np.random.default_rng(d)
    size = np.array([0, 1, 2, 31, 32, 33, 400, 0, 5])
    start = np.concatenate([[0], np.cumsum(size)])
    columns = rng.integers(d, size=start[-1]).astype(index)
    values = np.arange(start[-1]).astype(dtype)
    found, places = _core.Rows.csr(values, columns, start, d).sort()
    assert (found.dtype, places.dtype) == (dtype, index)
    for begin, end in itertools.pairwise(start):
        order = np.argsort(columns[begin:end], kind="stable")
        np.testing.assert_array_equal(places[begin:end], columns[begin:end][order])
        np.testing.assert_array_equal(found[begin:end], values[begin:end][order])


def test_more_entries_than_there_are_cannot_be_sorted():
    with pytest.raises(ValueError, match="too many entries"):
        _core.Rows.csr(np.ones(2), np.zeros(2, np.int32), np.array([0, 3]), 1).sort()
