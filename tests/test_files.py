"""svmlight text: what is written is read, however the file is cut, and as others read it."""

import os
import threading
from decimal import Context
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import files as benchmark
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from adasdca import _core, files
from adasdca.datasets import load_mushrooms
from adasdca.files import streams
from adasdca.problem.data import check_rows

COMPRESSIONS = ["", *streams.MAGIC]
FINITE = st.floats(allow_nan=False, allow_infinity=False)
TEXT = (
    b"\xef\xbb\xbf# a comment, then a blank line\r\n\r\n"
    b"+1 1:0.5  3:2e3 # tail \xff 9:9\r\n"
    b"-1\tqid:7 2:.5\t7:-1.e-2 \n"
    b"  1.5e0 4:1 2:123456789012345678901234567890 3:+4#no blank before\n"
    b"0\n"
    b"-0.0 1:-0 8:12345678901234567890.5"
)


def parse(pieces, base=1, **limits):
    reader = _core.SvmlightReader(base, **limits)
    for piece in pieces:
        assert reader.feed(piece) is None
    assert reader.finish() is None
    return reader.take()


def assert_same_bits(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
        if isinstance(a, np.ndarray) and a.dtype == np.float64:
            np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


def test_every_form_that_a_line_may_have():
    values, columns, start, labels, width = parse([TEXT])
    expected = {
        (0, 0): 0.5,
        (0, 2): 2000.0,
        (1, 1): 0.5,
        (1, 6): -0.01,
        (2, 1): 123456789012345678901234567890.0,
        (2, 2): 4.0,
        (2, 3): 1.0,
        (4, 0): -0.0,
        (4, 7): 12345678901234567890.5,
    }
    rows = np.repeat(np.arange(5), np.diff(start))
    entries = list(zip(rows.tolist(), columns.tolist(), strict=True))
    assert dict(zip(entries, values.tolist(), strict=True)) == expected
    assert entries == sorted(entries)
    assert labels.tolist() == [1.0, -1.0, 1.5, 0.0, 0.0]
    assert np.signbit(labels[-1])
    assert width == 8
    assert columns.dtype == start.dtype == np.int32


def test_a_file_may_be_cut_at_any_byte():
    whole = parse([TEXT])
    for cut in range(len(TEXT) + 1):
        assert_same_bits(parse([TEXT[:cut], TEXT[cut:]]), whole)
    for size in range(1, 20):
        assert_same_bits(parse(TEXT[k : k + size] for k in range(0, len(TEXT), size)), whole)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@st.composite
def tables(draw):
    shape = draw(hnp.array_shapes(min_dims=2, max_dims=2, max_side=8))
    X = draw(hnp.arrays(np.float64, shape, elements=FINITE | st.just(0.0)))
    return X, draw(hnp.arrays(np.float64, shape[0], elements=FINITE))


@settings(deadline=None)
@given(tables(), st.booleans(), st.sampled_from(COMPRESSIONS), st.integers(1, 40))
def test_what_is_written_is_read(folder, data, zero_based, compression, size):
    X, y = data
    path = folder / f"data.svm{compression}"
    files.write_svmlight(path, X, y, zero_based=zero_based)
    table = files.read(path, n_features=X.shape[1], zero_based=zero_based)
    assert_same_bits([table.X.toarray() + 0.0, table.y], [X + 0.0, y])
    assert sp.csr_matrix(X).nnz == table.X.nnz
    assert table.names is None
    assert table.source == str(path)
    text = b"".join(streams.chunks(path))
    pieces = [text[k : k + size] for k in range(0, len(text), size)]
    base = 0 if zero_based else 1
    assert_same_bits(parse(pieces, base), parse([text], base))


@settings(deadline=None)
@given(tables(), st.integers(0, 80))
def test_wide_indices_hold_the_same_numbers(data, narrow):
    """Index and entries beyond a limit, here a low one, change the type and nothing else."""
    X, y = data
    text, end = _core.write_svmlight(check_rows(sp.csr_matrix(X)).core, y, 1, 1 << 20, 0)
    assert end == len(y)
    pieces = text.splitlines(keepends=True)
    small, wide = parse(pieces), parse(pieces, narrow=narrow)
    kind = wide[1].dtype
    assert kind == np.int64 or max(wide[4], len(wide[0])) <= narrow
    assert_same_bits([a.astype(kind) if a.dtype == np.int32 else a for a in small[:4]], wide[:4])
    assert small[4] == wide[4]


def test_indices_beyond_32_bits_are_read(tmp_path):
    path = tmp_path / "wide.svm"
    path.write_text("1 1:1 2147483647:2\n2 5:3 2147483648:4\n")
    X = files.read(path).X
    assert X.shape == (2, 2**31)
    assert X.indices.dtype == np.int64
    assert X.indices.tolist() == [0, 2**31 - 2, 4, 2**31 - 1]
    assert X.indptr.tolist() == [0, 2, 4]


def halfway(low):
    """Return a double, the point between it and the next, and a little more than that."""
    exact = Context(prec=1200)
    middle = (Fraction(low) + Fraction(float(np.nextafter(low, np.inf)))) / 2
    text = f"{exact.divide(middle.numerator, middle.denominator):f}"
    return [repr(low), text, (text if "." in text else text + ".") + "001"]


DIGITS = st.text("0123456789", max_size=25)
NUMBERS = st.one_of(
    st.builds("{}{}.{}".format, st.sampled_from(["", "+", "-"]), DIGITS, DIGITS)
    .filter(lambda text: text.strip("+-") != ".")
    .flatmap(
        lambda text: st.sampled_from(["", "e5", "E-9", "e+17", "e-25", "e-330", "e300"]).map(
            text.__add__
        )
    ),
    st.from_regex(r"[0-9]{1,25}", fullmatch=True),
    st.floats(-1e300, 1e300).flatmap(lambda low: st.sampled_from(halfway(low))),
)


@settings(deadline=None)
@given(st.lists(NUMBERS, max_size=30))
def test_numbers_are_those_of_python(texts):
    finite = [text for text in texts if np.isfinite(float(text))]
    line = "1 " + " ".join(f"{k}:{text}" for k, text in enumerate(finite, start=1))
    values = parse([line.encode()])[0]
    assert_same_bits([values], [np.array([float(text) for text in finite])])


def test_scikit_learn_reads_the_same(tmp_path):
    X, y = load_mushrooms()
    X = X[:500].astype(np.float64)
    rng = np.random.default_rng(0)
    X.data = rng.standard_normal(X.nnz) * 10.0 ** rng.integers(-12, 12, X.nnz)
    y = y[:500] * rng.random(500)
    path = tmp_path / "data"
    for write in (
        lambda: files.write_svmlight(path, X, y),
        lambda: dump_svmlight_file(X, y, str(path), zero_based=False, comment="by others"),
    ):
        write()
        theirs, labels = load_svmlight_file(str(path), zero_based=False, n_features=X.shape[1])
        ours = files.read(path, n_features=X.shape[1])
        assert_same_bits(
            [ours.X.data, ours.X.indices, ours.X.indptr, ours.y],
            [theirs.data, theirs.indices.astype(np.int32), theirs.indptr.astype(np.int32), labels],
        )
    files.write_svmlight(path, X, y)
    assert_same_bits([files.read(path).X.data, files.read(path).y], [X.data, y])


def test_single_precision_is_written_exactly(tmp_path):
    X = np.array([[0.1, 1 / 3], [1e-45, 3e38]], dtype=np.float32)
    for matrix in (X, sp.csr_matrix(X), sp.csc_matrix(X)):
        files.write_svmlight(tmp_path / "data.svm", matrix, [0.1, -2])
        np.testing.assert_array_equal(files.read(tmp_path / "data.svm").X.toarray(), X)


def test_a_large_file_is_read_in_pieces(tmp_path):
    """Several chunks, and one line longer than a chunk."""
    rng = np.random.default_rng(1)
    X = sp.random(9, 100_000, 0.2, format="csr", random_state=rng)
    X = sp.vstack([X, sp.csr_matrix(rng.random((1, 100_000)))]).tocsr()
    y = rng.random(10)
    for suffix in ("", ".gz", ".zst"):
        path = tmp_path / f"data.txt{suffix}"
        files.write_svmlight(path, X, y)
        table = files.read(path)
        assert_same_bits(
            [table.X.data, table.X.indices, table.X.indptr, table.y],
            [X.data, X.indices, X.indptr, y],
        )
    assert len(list(streams.chunks(tmp_path / "data.txt"))) > 5


def test_solving_takes_what_was_read_as_it_is(tmp_path):
    """Sorted, in range, in double precision: nothing is copied."""

    (tmp_path / "data.svm").write_text("1 3:1 1:2\n-1 2:5\n")
    X = files.read(tmp_path / "data.svm").X
    assert X.has_canonical_format
    rows = check_rows(X)
    assert np.shares_memory(rows.values, X.data)
    assert np.shares_memory(rows.columns, X.indices)


@pytest.mark.parametrize("compression", list(streams.MAGIC))
def test_compression_is_told_by_the_first_bytes(tmp_path, compression):
    named = tmp_path / f"data.svm{compression}"
    files.write_svmlight(named, [[1.0, 2.0]], [3.0])
    assert named.read_bytes().startswith(streams.MAGIC[compression])
    plain = named.rename(tmp_path / "data.svm")
    assert files.read(plain).X.toarray().tolist() == [[1.0, 2.0]]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("kind", ["svmlight", "csv"])
def test_pipes_are_read_once(tmp_path, kind, compression):
    text = {"svmlight": b"3 1:1 2:2\n", "csv": b"a,b,y\n1,2,3\n"}[kind]
    with streams.create(tmp_path / f"data{compression}") as file:
        file.write(text)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = (tmp_path / f"data{compression}").read_bytes()
    writer = threading.Thread(target=pipe.write_bytes, args=[data])
    writer.start()
    try:
        table = files.read(pipe, format=kind)
    finally:
        writer.join()
    assert sp.csr_matrix(table.X).toarray().tolist() == [[1.0, 2.0]]
    assert table.y.tolist() == [3.0]


@pytest.mark.parametrize("compression", list(streams.MAGIC))
def test_joined_compressed_files_are_read_to_the_end(tmp_path, compression):
    path = tmp_path / f"data{compression}"
    files.write_svmlight(path, [[1.0]], [3.0])
    path.write_bytes(path.read_bytes() * 3)
    assert files.read(path).y.tolist() == [3.0] * 3


@pytest.mark.parametrize("y", [[1.0], [1.0, np.nan], [[1.0, 2.0]], ["a", "b"]])
def test_targets_that_cannot_be_written_are_refused(tmp_path, y):
    with pytest.raises(ValueError, match="y "):
        files.write_svmlight(tmp_path / "data.svm", np.eye(2), y)
    assert list(tmp_path.iterdir()) == []


def test_the_benchmark_compares_what_is_equal():
    result = benchmark.measure("doubles", 1e-3, repeats=1)
    assert result["same"]
    assert result["bytes"] >= 1e6
    assert result["peak"] is None or result["peak"] >= result["arrays"] / 2
