"""Damaged files of every format: answered by the errors of the package, and by no others."""

import collections
import contextlib
import io
import itertools
import struct
import zipfile

import numpy as np
import pytest
from tools.fuzz import files_hold
from tools.fuzz_files import fuzz, make

from adasdca import files, models
from adasdca.files import streams
from adasdca.solution import State
from adasdca.storage import FileError, damage

#: Damaged files of each format.
COUNT = 300


def test_the_command_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert files_hold(0)
    assert list(tmp_path.iterdir()) == []


def test_only_our_errors(tmp_path):
    sound = make(tmp_path)
    for name, (_, read) in sound.items():
        read(tmp_path / name)
    seen, refused = collections.Counter(), collections.Counter()
    wrong = []
    for name, contents, error in itertools.islice(fuzz(sound, tmp_path, 3), COUNT * len(sound)):
        seen[name] += 1
        refused[name] += isinstance(error, FileError)
        if error is not None and not isinstance(error, FileError):
            wrong.append((name, repr(error)[:200], contents[:200]))
        elif error is not None:
            assert str(tmp_path / name) in str(error)
    assert not wrong
    assert set(seen.values()) == {COUNT}
    # The damage is such that readers notice most of it.
    assert min(refused.values()) > COUNT / 2


def npy(shape, dtype="<f8", data=b""):
    """Return the bytes of an array whose header says what it likes."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def archive(path, **entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, contents in entries.items():
            if isinstance(contents, np.ndarray):
                buffer = io.BytesIO()
                np.save(buffer, contents)
                contents = buffer.getvalue()
            out.writestr(f"{name}.npy", contents)


@pytest.mark.parametrize(
    "entry",
    [
        npy("(99999999999, 3)"),
        npy("(9223372036854775807, 9223372036854775807)"),
        npy("(2, 1)", data=bytes(24)),
        npy("(2, 1)", data=bytes(8)),
        npy("(-1, 3)"),
        npy("(True, 1)", data=bytes(8)),
        npy("(999999999999, 1)", "|S0"),
        npy("(1, 1)", "|O", bytes(8)),
        npy("(1, 1)", "[('a', '<f8')]", bytes(8)),
    ],
)
def test_shapes_are_compared_with_the_bytes_before_memory_is_taken(entry, tmp_path):
    path = tmp_path / "data.npz"
    archive(path, X=entry)
    with pytest.raises(FileError, match=r"data\.npz"):
        files.read(path)
    archive(path, beta=entry, multiplier=np.zeros(()), epoch=np.array(1), seed=np.array(1))
    with pytest.raises(FileError, match=r"data\.npz"):
        State.load(path)


@pytest.mark.parametrize("kind", ["csc", "coo"])
def test_empty_rows_are_not_made_without_end(kind, tmp_path):
    path = tmp_path / "data.npz"
    parts = {"data": np.ones(1), "indices": np.zeros(1, int), "indptr": np.array([0, 1])}
    if kind == "coo":
        parts = {"data": np.ones(1), "row": np.zeros(1, int), "col": np.zeros(1, int)}
    np.savez(path, **parts, shape=(2**31 - 2, 1), format=np.array(kind.encode()))
    with pytest.raises(FileError, match="would become 17179869168 in memory"):
        files.read(path)


@pytest.fixture
def strict(monkeypatch):
    """Allow little memory, so that small files can be too large."""
    monkeypatch.setattr(damage, "FREE", 1 << 16)


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz", "zst"])
def test_a_stream_that_grows_out_of_proportion_is_given_up(suffix, tmp_path, strict):
    path, plain = tmp_path / f"data.svm.{suffix}", tmp_path / "data.svm"
    rows = np.zeros((400_000, 1))
    files.write_svmlight(path, rows, np.ones(len(rows)))
    assert path.stat().st_size < 2000
    with pytest.raises(FileError, match=r"would become .* store it uncompressed"):
        files.read(path)
    done = 0
    with contextlib.suppress(FileError):
        for piece in streams.chunks(path, 1 << 12):
            done += len(piece)
    assert done <= damage.allowance(path.stat().st_size) < plain_size(plain, rows)
    assert files.read(plain, n_features=1).X.shape == rows.shape


def plain_size(path, rows):
    files.write_svmlight(path, rows, np.ones(len(rows)))
    return path.stat().st_size


def test_an_archive_that_grows_out_of_proportion_is_given_up(tmp_path, strict):
    path = tmp_path / "data.npz"
    zeros = np.zeros((100_000, 1))
    np.savez_compressed(path, X=zeros, y=zeros[:, 0])
    with pytest.raises(FileError, match=r"would become .* store it uncompressed"):
        files.read(path)
    np.savez(path, X=zeros, y=zeros[:, 0])
    assert files.read(path).X.shape == zeros.shape
    model = tmp_path / "model"
    models.save(
        models.Model(zeros.T, np.zeros(1), np.array([0, 1]), make_loss(), 1.0),
        model,
    )
    with pytest.raises(models.ModelError, match="would become"):
        models.load(model)


def make_loss():
    from adasdca import Hinge

    return Hinge()


def test_a_table_that_grows_out_of_proportion_is_given_up(tmp_path, strict):
    import polars as pl

    path = tmp_path / "data.parquet"
    pl.DataFrame({"a": np.zeros(1_000_000)}).write_parquet(path)
    assert path.stat().st_size < 10_000
    with pytest.raises(FileError, match="would become 8000000 in memory"):
        files.read(path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"beta": np.array([1.0, np.nan])}, "NaN, infinity"),
        ({"beta": np.zeros(2, complex)}, "vector of real numbers"),
        ({"beta": np.zeros((1, 2))}, "vector of real numbers"),
        ({"multiplier": np.array(np.inf)}, "NaN, infinity"),
        ({"epoch": np.array(-1)}, "negative count"),
        ({"epoch": np.array(1.5)}, "integers"),
        ({"seed": np.array([1])}, "integers"),
        ({"more": npy("(1,)", data=b"")}, "damaged"),
    ],
)
def test_no_state_that_makes_no_sense_is_loaded(changes, words, tmp_path):
    path = tmp_path / "state.npz"
    good = {
        "beta": np.ones(2),
        "multiplier": np.array(0.5),
        "epoch": np.array(3),
        "seed": np.array(7),
    }
    archive(path, **good)
    assert State.load(path).seed == 7
    archive(path, **(good | changes))
    with pytest.raises(FileError, match=words):
        State.load(path)


@pytest.mark.parametrize(
    "lines",
    [
        "nr_class 2\nlabel 1 2\nnr_feature 999999999999999\nbias -1\nw\n1 \n",
        "nr_class 2\nlabel 1 2\nnr_feature 1e300\nbias -1\nw\n1 \n",
        "nr_class 2\nlabel 1 99999999999999999999999\nnr_feature 1\nbias -1\nw\n1 \n",
        "nr_class 2\nlabel 1 2\nnr_feature 1\nbias 1e308\nw\n1 \n1e10 \n",
        "nr_class 2\nlabel 1 2\nnr_feature 1\nbias nan\nw\n1 \n1e10 \n",
    ],
)
def test_no_model_of_liblinear_that_makes_no_sense_is_loaded(lines, tmp_path):
    path = tmp_path / "model"
    path.write_text(f"solver_type L2R_LR\n{lines}")
    with pytest.raises(models.ModelError):
        models.load(path)
