"""Packed folders and rows on a disk: packed in pieces, checked, and solved within a limit."""

import gzip
import json
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
from adasdca import files
from adasdca.backends.stored import block_bounds, check_limit
from adasdca.files import FileError, packing
from adasdca.problem.data import CsrRows, DenseRows
from commands import call

LIMIT = "6 MiB"


@pytest.fixture
def sparse():
    rng = np.random.default_rng(0)
    X = sp.random(3000, 40, 0.3, "csr", random_state=rng)
    return X, np.where(X @ rng.normal(size=40) + 0.1 * rng.normal(size=3000) > 0, 1.0, -1.0)


def write(path, X, y):
    files.write_svmlight(path, X, y)
    return path


def same(packed, X, y):
    assert isinstance(packed.X, CsrRows)
    X = sp.csr_matrix(X)
    assert packed.X.shape == X.shape
    assert np.array_equal(packed.X.values, X.data)
    assert np.array_equal(packed.X.columns, X.indices)
    assert np.array_equal(packed.X.start, X.indptr)
    assert np.array_equal(packed.y, y)


@pytest.mark.parametrize("suffix", [".svm", ".svm.gz"])
def test_an_svmlight_file_is_packed_in_pieces(tmp_path, sparse, suffix, monkeypatch):
    monkeypatch.setattr(packing, "PIECE", 20_000)
    source = write(tmp_path / f"train{suffix}", *sparse)
    told = []
    found = files.pack(source, tmp_path / "packed", tell=lambda rows, stored: told.append(rows))
    same(found, *sparse)
    assert len(told) > 3
    assert told[-1] == 3000
    same(files.open_packed(tmp_path / "packed", verify=True), *sparse)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_are_packed_dense(tmp_path, kind, monkeypatch):
    polars = pytest.importorskip("polars")
    monkeypatch.setattr(packing, "PIECE", 3000)
    monkeypatch.setattr(packing, "ROWS", 70)
    rng = np.random.default_rng(0)
    frame = polars.DataFrame({"a": rng.normal(size=200), "y": rng.normal(size=200), "b": 1.5})
    source = tmp_path / f"table.{kind}"
    getattr(frame, f"write_{kind}")(source)
    found = files.pack(source, tmp_path / "packed", dtype="float32")
    assert isinstance(found.X, DenseRows)
    assert np.array_equal(found.X.values, frame.select("a", "b").to_numpy().astype(np.float32))
    assert np.array_equal(found.y, frame["y"].to_numpy())
    assert found.names == ["a", "b"]


def test_a_packing_that_was_stopped_goes_on(tmp_path, sparse, monkeypatch):
    monkeypatch.setattr(packing, "PIECE", 20_000)
    source, folder = write(tmp_path / "train.svm", *sparse), tmp_path / "packed"

    def stop(rows, stored):
        if rows > 1000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.pack(source, folder, tell=stop)
    with pytest.raises(FileError, match="pack the same source"):
        files.open_packed(folder)
    with (folder / "values").open("ab") as file:  # a piece that was begun
        file.write(b"half")
    told = []
    found = files.pack(source, folder, tell=lambda rows, stored: told.append(rows))
    assert told[0] > 1000
    same(found, *sparse)
    same(files.open_packed(folder, verify=True), *sparse)
    with pytest.raises(FileError, match="packed already"):
        files.pack(source, folder)


def test_a_packing_that_was_killed_goes_on(tmp_path, sparse):
    """At any write: here in the middle of a piece, some arrays longer than what is noted."""
    source, folder = write(tmp_path / "train.svm", *sparse), tmp_path / "packed"
    script = """
import os, signal, sys
from adasdca.files import packing
packing.PIECE, sync, count = 20_000, os.fsync, iter(range(15))
def kill(descriptor):
    sync(descriptor)
    if next(count, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
os.fsync = kill
packing.pack(*sys.argv[1:])
"""
    command = [sys.executable, "-c", script, str(source), str(folder)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    noted = json.loads((folder / "progress.json").read_text())
    assert any((folder / name).stat().st_size > size for name, size in noted["sizes"].items())
    same(files.pack(source, folder), *sparse)
    same(files.open_packed(folder, verify=True), *sparse)


def test_another_source_is_not_mixed_in(tmp_path, sparse, monkeypatch):
    monkeypatch.setattr(packing, "PIECE", 20_000)
    X, y = sparse
    source, folder = write(tmp_path / "train.svm", X, y), tmp_path / "packed"

    def stop(rows, stored):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.pack(source, folder, tell=stop)
    write(source, X[:100], y[:100])
    with pytest.raises(FileError, match="another packing"):
        files.pack(source, folder)


def test_a_flaw_is_told_with_its_line(tmp_path, sparse, monkeypatch):
    monkeypatch.setattr(packing, "PIECE", 20_000)
    source = write(tmp_path / "train.svm", *sparse)
    lines = source.read_text().splitlines()
    lines[2500] = "1 3:x"
    source.write_text("\n".join(lines) + "\n")
    with pytest.raises(FileError, match="line 2501: the value in '3:x' is not a number"):
        files.pack(source, tmp_path / "packed")


def test_damage_is_seen(tmp_path, sparse):
    source = write(tmp_path / "train.svm", *sparse)
    folder = tmp_path / "packed"
    files.pack(source, folder)
    data = bytearray((folder / "values").read_bytes())
    data[100] ^= 1
    (folder / "values").write_bytes(data)
    files.open_packed(folder)
    with pytest.raises(FileError, match="checksum"):
        files.open_packed(folder, verify=True)
    (folder / "values").write_bytes(data[:-1])
    with pytest.raises(FileError, match="bytes where"):
        files.open_packed(folder)
    header = json.loads((folder / "header.json").read_text())
    (folder / "header.json").write_text(json.dumps(header | {"shape": [-3, 40]}))
    with pytest.raises(FileError, match="damaged"):
        files.open_packed(folder)
    with pytest.raises(FileError, match="not a packed folder"):
        files.open_packed(tmp_path)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_packed_rows_are_solved_within_a_limit(tmp_path, sparse, loss):
    X, y = sparse
    found = files.pack(write(tmp_path / "train.svm", X, y), tmp_path / "packed")
    options = {"loss": loss, "lam": 1e-3, "fit_intercept": True, "tol": 1e-8}
    inside = adasdca.solve(X, y, **options)
    outside = adasdca.solve(found.X, found.y, memory_limit=LIMIT, **options)
    assert outside.converged
    assert abs(inside.primal - outside.primal) <= inside.gap + outside.gap
    assert outside.dual_coef.shape == y.shape


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mapped_arrays_are_solved_within_a_limit(tmp_path, dtype):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6000, 30)).astype(dtype)
    y = X @ rng.normal(size=30) + rng.normal(size=6000)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    options = {"loss": "squared", "lam": 1e-3, "fit_intercept": True, "tol": 1e-9}
    limit = 240 * 6000 + 8 * (100 * 30 + 4 * 900) + (3 << 20) + 1000
    assert len(block_bounds(DenseRows(mapped), limit)) > 1
    outside = adasdca.solve(mapped, y, memory_limit=limit, **options)
    inside = adasdca.solve(X, y, **options)
    assert outside.converged
    assert abs(inside.primal - outside.primal) <= inside.gap + outside.gap
    csr = sp.csr_matrix(X)
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / name, getattr(csr, name))
    parts = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("data", "indices")]
    triplet = sp.csr_matrix(csr.shape, dtype=dtype)
    triplet.data, triplet.indices, triplet.indptr = *parts, csr.indptr
    sparse = adasdca.solve(triplet, y, memory_limit=limit, **options)
    assert abs(sparse.primal - outside.primal) <= sparse.gap + outside.gap


def test_blocks_hold_the_limit():
    rows = DenseRows(np.empty((100_000, 50), dtype=np.float32))
    limit = 30 * 2**20
    bounds = block_bounds(rows, limit)
    assert bounds[0] == 0
    assert bounds[-1] == 100_000
    height = max(np.diff(bounds))
    assert 3 * height * 50 * 4 + 240 * 100_000 <= limit
    start = np.arange(0, 1_000_001, 10)
    csr = CsrRows(np.empty(10**6), np.empty(10**6, dtype=np.int32), start, (100_000, 50))
    bounds = block_bounds(csr, limit)
    assert 3 * max(np.diff(start[bounds])) * 12 + 240 * 100_000 <= limit
    with pytest.raises(ValueError, match=r"choose 27\d* or more"):
        block_bounds(rows, 20 * 2**20)


@pytest.mark.parametrize(
    ("text", "found"),
    [("2 GB", 2 * 10**9), ("512MiB", 512 * 2**20), ("1.5 k", None), (10**7, 10**7), (True, None),
     ("much", None), (-1, None), (1.5, None)],
)  # fmt: skip
def test_limits(text, found):
    if found is None:
        with pytest.raises(ValueError, match="memory_limit"):
            check_limit(text)
    else:
        assert check_limit(text) == found


def test_what_cannot_stay_on_a_disk_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    y = np.sign(X[:, 0])
    options = {"loss": "logistic", "lam": 0.1, "memory_limit": "10 MB"}
    with pytest.raises(ValueError, match="in memory as a whole"):
        adasdca.solve(X, y, **options)
    with pytest.raises(ValueError, match="does not stay on a disk"):
        adasdca.solve([[1.0], [2.0]], [1, -1], **options)
    X[70, 1] = np.nan
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match="rows 0 to 99: Input X contains NaN"):
        adasdca.solve(np.load(tmp_path / "X.npy", mmap_mode="r"), y, **options)
    changed = np.load(tmp_path / "X.npy", mmap_mode="c")
    with pytest.raises(ValueError, match="in memory as a whole"):
        adasdca.solve(changed, y, **options)
    np.save(tmp_path / "X.npy", np.ones((100, 3), dtype=np.int64))
    with pytest.raises(ValueError, match="dtype int64"):
        adasdca.solve(np.load(tmp_path / "X.npy", mmap_mode="r"), y, **options)
    with pytest.raises(ValueError, match="intercept_scaling"):
        adasdca.solve(X, y, fit_intercept=True, intercept_scaling=1.0, **options)


def test_the_command(tmp_path, sparse, capsys):
    source = tmp_path / "train.svm.gz"
    plain = write(tmp_path / "train.svm", *sparse).read_bytes()
    source.write_bytes(gzip.compress(plain))
    done = call(capsys, "pack", source, tmp_path / "packed")
    assert done.returncode == 0
    assert "3000 x 40" in done.stdout
    assert call(capsys, "pack", "--verify", tmp_path / "packed").returncode == 0
    again = call(capsys, "pack", source, tmp_path / "packed")
    assert again.returncode == 2
    assert "Invalid value for FOLDER" in again.stderr
    assert "packed already" in again.stderr
    assert call(capsys, "pack").returncode == 2
