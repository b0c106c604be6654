"""Data sets: what is known of them, where they lie, names of one's own, the command line."""

import gzip
import json
import sys
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from adasdca import datasets
from adasdca.datasets import Content, Source, _folders
from adasdca.datasets._originals import ContentError, read_original
from adasdca.datasets._sources import SOURCES
from small_data import CONTENT, TEXT, X, Y
from web import serving


@pytest.fixture(autouse=True)
def own_names(monkeypatch):
    monkeypatch.setattr(datasets, "REGISTERED", {})


@pytest.mark.parametrize("name", datasets.NAMES)
def test_the_content_on_record_is_that_of_the_data(name):
    if name not in datasets.available():
        pytest.skip(f"{name}.npz is not here; get it with: adasdca datasets fetch {name}")
    A, labels = datasets.load(name)
    source = SOURCES[name]
    assert Content.of(A, labels) == source.content
    assert A.shape == (source.n, source.d)
    assert A.dtype == source.dtype
    assert source.licence
    assert source.citation


def test_content_is_independent_of_storage_but_not_of_values():
    shuffled = sp.csr_matrix(sp.coo_matrix(X))
    shuffled.indices = shuffled.indices[::-1].copy()
    shuffled.indices[: X.nnz] = X.indices
    zeros = X.tolil()
    zeros[0, 0] = 5.0
    zeros = zeros.tocsr()
    zeros[0, 0] = X[0, 0]
    last_bit = X.copy()
    last_bit.data = np.nextafter(last_bit.data, 2.0)
    for same in (X.tocsc(), X.toarray(), X.astype(np.float32), shuffled, zeros, last_bit):
        assert Content.of(same, Y) == CONTENT
    changed = X.copy()
    changed.data[7] += 1e-3
    assert Content.of(changed, Y) != CONTENT
    assert Content.of(X, -Y) != CONTENT
    assert Content.of(X[::-1], Y) != CONTENT
    assert Content.of(sp.hstack([X, sp.csr_matrix((len(Y), 1))]), Y) != CONTENT


def test_the_reader_of_dorothea(tmp_path):
    ones = (X > 0.5).astype(np.float32)
    lines = [" ".join(map(str, row.indices + 1)) + " \n" for row in ones]
    path = tmp_path / "d.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("DOROTHEA/dorothea_train.data", "".join(lines))
        archive.writestr("DOROTHEA/dorothea_train.labels", "".join(f"{k:g}\n" for k in Y))
        archive.writestr("dorothea_valid.labels", "1\n")
    source = Source("d", ("http://x/d.zip",), format="dorothea", d=100_000, dtype="float32")
    A, labels = read_original(source, path)
    assert A.shape == (len(Y), 100_000)
    assert (A[:, : X.shape[1]] != ones).nnz == 0
    np.testing.assert_array_equal(labels, Y)


def test_the_reader_of_covtype_scales_and_rounds_as_svm_scale_does(tmp_path):
    rng = np.random.default_rng(1)
    table = np.column_stack([rng.integers(-100, 7000, (50, 3)), rng.integers(0, 2, 50)])
    kinds = rng.integers(1, 8, 50)
    path = tmp_path / "c.gz"
    with gzip.open(path, "wt") as file:
        for row, kind in zip(table, kinds, strict=True):
            file.write(",".join(map(str, [*row, kind])) + "\n")
    A, labels = read_original(Source("c", ("http://x/c.gz",), format="covtype"), path)
    low, high = table.min(axis=0), table.max(axis=0)
    exact = (table - low) / (high - low)
    np.testing.assert_allclose(A.toarray(), exact, rtol=5e-6)
    assert all(float(f"{v:.6g}") == v for v in A.data)
    np.testing.assert_array_equal(labels == 1, kinds == 2)


@pytest.mark.parametrize("name", ["dorothea", "covtype", "svmlight"])
def test_a_file_that_is_something_else_is_refused(name, tmp_path):
    path = tmp_path / "page"
    path.write_bytes(b"<html>Service moved</html>")
    with pytest.raises(ContentError, match=f"cannot be read as {name}"):
        read_original(Source("x", ("http://x/x",), format=name), path)


def test_where_data_sets_are_looked_for(tmp_path, monkeypatch):
    named, beside, home = tmp_path / "named", tmp_path / "beside", tmp_path / "home"
    monkeypatch.setattr(_folders, "_beside", lambda: beside)
    monkeypatch.setattr(_folders, "_user_cache", lambda: home)
    monkeypatch.setenv("ADASDCA_DATA", str(named))
    assert _folders.search_path() == [named, beside, home / "adasdca" / "data"]
    assert datasets.cache_directory() == datasets.data_directory() == named
    monkeypatch.delenv("ADASDCA_DATA")
    assert datasets.cache_directory() == home / "adasdca" / "data"
    assert datasets.data_directory() is None
    with pytest.raises(FileNotFoundError, match="adasdca datasets fetch w8a"):
        datasets.load("w8a")
    assert datasets.available() == ["mushrooms"]
    for folder in reversed([beside, home / "adasdca" / "data"]):
        folder.mkdir(parents=True)
        _folders.write_npz(folder / "w8a.npz", (X, Y))
        assert datasets.fetch("w8a") == folder / "w8a.npz"
        assert datasets.available() == ["w8a", "mushrooms"]


@pytest.mark.parametrize(
    ("platform", "variable", "value", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "/x", "/x"),
        ("linux", "XDG_CACHE_HOME", "relative", "/home/me/.cache"),
        ("darwin", "XDG_CACHE_HOME", "/x", "/home/me/Library/Caches"),
        ("win32", "LOCALAPPDATA", "/local", "/local"),
    ],
)
def test_the_users_cache(monkeypatch, platform, variable, value, expected):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv(variable, value)
    # Under the one that finds nothing, which all other tests get.
    assert _folders._user_cache.__wrapped__().as_posix() == expected


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"name": "../x"}, "names a file"),
        ({"name": ""}, "names a file"),
        ({"urls": ("ftp://x/y",)}, "must be http or https"),
        ({"urls": ("file:///etc/passwd",)}, "must be http or https"),
        ({"urls": ()}, "must be http or https"),
        ({"format": "excel"}, "'svmlight', 'dorothea', 'covtype'"),
        ({"sha256": "abc"}, "64 hexadecimal digits"),
    ],
)
def test_a_source_that_cannot_be(facts, words):
    with pytest.raises(ValueError, match=words):
        Source(**{"name": "x", "urls": ("http://x/y",), **facts})


def test_names_of_ones_own():
    datasets.register("ours", lambda: (X, Y))
    assert datasets.names() == [*datasets.NAMES, "ours"]
    assert "ours" in datasets.available()
    assert datasets.load("ours")[0] is X
    with pytest.raises(ValueError, match="needs no fetching"):
        datasets.fetch("ours")
    with pytest.raises(ValueError, match="belongs to the package"):
        datasets.register("w8a", lambda: (X, Y))
    with pytest.raises(ValueError, match=r"'ours'.*register"):
        datasets.load("theirs")
    for wrong in (lambda: None, lambda: (X, Y[1:]), lambda: (Y, Y), lambda: (X, ["a"] * len(Y))):
        datasets.register("wrong", wrong)
        with pytest.raises(ValueError, match="data set 'wrong'"):
            datasets.load("wrong")


@pytest.fixture
def run(capsys, monkeypatch):
    from commands import call

    def command(*arguments, **environment):
        with monkeypatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            return call(capsys, "datasets", *arguments)

    return command


def test_the_list(run, tmp_path):
    done = run("list", "--json", ADASDCA_DATA=str(tmp_path))
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row["name"] for row in rows] == list(datasets.NAMES)
    assert next(row for row in rows if row["name"] == "mushrooms")["path"].endswith(".npz")
    words = run("list").stdout
    assert all(name in words for name in datasets.NAMES)


def test_the_facts(run):
    done = run("info", "cov1", "--json")
    facts = json.loads(done.stdout)
    assert facts["content"]["n"] == 581012
    assert facts["urls"] == list(SOURCES["cov1"].urls)
    assert "CC BY 4.0" in run("info", "cov1").stdout
    wrong = run("info", "cov2")
    assert wrong.returncode == 2
    assert "'cov1'" in wrong.stderr
    assert wrong.stdout == ""


PLUGIN = """
import adasdca
from adasdca.datasets import Source
adasdca.datasets.register(Source("tiny", ("{url}",), d=30))
"""


def test_fetching_at_the_command_line(run, tmp_path):
    plugin, cache = tmp_path / "plugin.py", tmp_path / "cache"
    with serving(TEXT, "half", "good") as web:
        plugin.write_text(PLUGIN.format(url=web.url))
        options = ("--plugin", str(plugin), "--wait", "0.01")
        done = run("fetch", "tiny", "--json", *options, ADASDCA_DATA=str(cache))
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == [{"name": "tiny", "path": str(cache / "tiny.npz")}]
        web.habits = ["404"]
        failed = run("fetch", "tiny", "--force", *options, ADASDCA_DATA=str(cache))
    assert failed.returncode == 3
    assert "HTTP 404" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert failed.stdout == ""
    unknown = run("fetch", "tinny", ADASDCA_DATA=str(cache))
    assert unknown.returncode == 2
    assert "'tinny' is unknown" in unknown.stderr
    missing = run("fetch", "tiny", "--plugin", str(tmp_path / "none.py"))
    assert missing.returncode == 2
    assert "none.py" in missing.stderr
