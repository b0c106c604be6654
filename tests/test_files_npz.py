"""npz files, sparse and dense."""

import numpy as np
import pytest
import scipy.sparse as sp

from adasdca import files
from adasdca.datasets import load_mushrooms
from adasdca.files import FileError
from test_files_bad import refusal

X = np.array([[1.0, 0.0, 0.5], [0.0, 2.0, 0.0]])
Y = np.array([1.0, -1.0])
SPARSE = sp.csr_matrix(X)
PARTS = {"data": SPARSE.data, "indices": SPARSE.indices, "indptr": SPARSE.indptr, "shape": (2, 3)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.npz"


@pytest.mark.parametrize(
    "make", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_matrix, sp.coo_array]
)
def test_what_scipy_saves_is_read(path, make):
    sp.save_npz(path, make(X))
    table = files.read(path)
    assert table.y is None
    assert table.X.format == "csr"
    np.testing.assert_array_equal(table.X.toarray(), X)
    with np.load(path) as saved:
        arrays = dict(saved)
    np.savez_compressed(path, **arrays, y=Y)
    np.testing.assert_array_equal(files.read(path).y, Y)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_both_layouts_of_our_own_are_read(path, kind):
    np.savez(path, **{**PARTS, "data": SPARSE.data.astype(kind)}, y=[1, -1])
    table = files.read(path)
    np.testing.assert_array_equal(table.X.toarray(), X.astype(kind), strict=True)
    np.testing.assert_array_equal(table.y, Y, strict=True)
    np.savez(path, X=X.astype(kind, order="F"), y=[1, -1])
    table = files.read(path)
    np.testing.assert_array_equal(table.X, X.astype(kind), strict=True)
    assert table.X.flags.c_contiguous


def test_the_shipped_data_are_read():
    from importlib import resources

    X, y = load_mushrooms()
    with resources.as_file(resources.files("adasdca.datasets") / "data" / "mushrooms.npz") as path:
        table = files.read(path)
    assert (table.X != X).nnz == 0
    assert table.X.dtype == X.dtype
    np.testing.assert_array_equal(table.y, y)


def test_targets_by_name_and_as_text(path):
    np.savez(path, X=X, y=Y, other=["a", "b"])
    assert files.read(path, target="other").y.tolist() == ["a", "b"]
    assert files.read(path, target=False).y is None
    assert "no array 'z' for the target; it holds X, other, y" in refusal(path, target="z")


def test_the_number_of_features_is_checked(path):
    np.savez(path, **PARTS, y=Y)
    assert files.read(path, n_features=5).X.shape == (2, 5)
    assert "has 3 features where n_features=2" in refusal(path, n_features=2)
    np.savez(path, X=X, y=Y)
    assert "has 3 features where n_features=5" in refusal(path, n_features=5)


BAD = {
    "objects": ({"X": np.array([[1, None]], dtype=object)}, "plain arrays"),
    "nothing of use": ({"a": X, "b": Y}, r"it holds a, b\): neither X nor data and shape"),
    "a part missing": ({k: v for k, v in PARTS.items() if k != "indptr"}, "indptr"),
    "a wrong index": ({**PARTS, "indices": SPARSE.indices + 1}, "inconsistent|index"),
    "a wrong start": ({**PARTS, "indptr": [0, 9, 3]}, "inconsistent|index|indptr"),
    "an unknown format": ({**PARTS, "format": b"dok"}, "'dok' is not one of csr, csc and coo"),
    "a vector": ({"X": Y}, "must be a matrix"),
    "text": ({"X": X.astype(str)}, "cannot be read as numbers"),
    "a nan": ({"X": np.where(X, X, np.nan)}, "contains NaN or infinity"),
    "no rows": ({"X": X[:0]}, "0 sample"),
    "a short y": ({"X": X, "y": Y[:1]}, r"y has shape \(1,\), but X has 2 rows"),
    "a nan in y": ({"X": X, "y": [1.0, np.nan]}, r"y\[1\] is nan"),
    "a complex y": ({"X": X, "y": Y + 0j}, "y has dtype complex128"),
}


@pytest.mark.parametrize(("arrays", "match"), BAD.values(), ids=BAD.keys())
def test_bad_arrays_are_refused(path, arrays, match):
    np.savez(path, **arrays)
    with pytest.raises(FileError, match=match) as caught:
        files.read(path)
    assert str(path) in str(caught.value)


def test_other_archives_and_arrays_are_refused(path):
    import zipfile

    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sheet.xml", "<xml/>")
    assert "sheet.xml" in refusal(path)
    with path.open("wb") as file:
        np.save(file, X)
    assert "single array" in refusal(path)
    path.write_text("1 1:1\n")
    assert "not an npz archive" in refusal(path)
