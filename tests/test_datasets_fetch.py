"""Fetching data sets in spite of a web that misbehaves."""

import bz2
import gzip
import hashlib
import io
from pathlib import Path

import numpy as np
import pytest

from adasdca import datasets
from adasdca.datasets import Content, FetchError, Source
from small_data import CONTENT, SHA, TEXT, X
from web import serving


@pytest.fixture(autouse=True)
def own_names(monkeypatch):
    monkeypatch.setattr(datasets, "REGISTERED", {})
    monkeypatch.setattr("adasdca.datasets._download.LONGEST_WAIT", 0.01)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ADASDCA_DATA", str(tmp_path))
    return tmp_path


def tiny(web, **facts):
    urls = (web.url,) if hasattr(web, "url") else web
    return Source("tiny", urls, **{"d": X.shape[1], "content": CONTENT, **facts})


def get(source, **options):
    datasets.register(source)
    return datasets.fetch(source.name, **{"timeout": 60.0, "wait": 0.001, **options})


def visible(folder):
    """The files that anyone but a later fetch would look at."""
    return sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))


def assert_right(folder):
    assert visible(folder) == ["tiny.lock.json", "tiny.npz"]
    A, labels = datasets.load("tiny")
    assert Content.of(A, labels) == CONTENT
    assert (A != X).nnz == 0


@pytest.mark.parametrize("pack", [("", bytes), (".bz2", bz2.compress), (".gz", gzip.compress)])
def test_a_good_server(cache, pack):
    suffix, compress = pack
    body = compress(TEXT)  # once: gzip writes the time into its header
    told = []
    with serving(body) as web:
        path = get(tiny((web.url + suffix,)), progress=lambda *k: told.append(k))
    assert path == cache / "tiny.npz"
    assert_right(cache)
    assert told[-1] == (len(body),) * 2
    record = datasets.info("tiny")["record"]
    assert record["sha256"] == hashlib.sha256(body).hexdigest()
    assert record["vouched"] is False


GOOD_IN_THE_END = {
    "a truncated answer": ["half", "good"],
    "a reset connection": ["reset", "reset", "good"],
    "an error of the server passes": ["500", "503", "429", "good"],
    "a server that goes silent": ["stall", "good"],
    "a server that says no length": ["says no length"],
}


@pytest.mark.parametrize("habits", GOOD_IN_THE_END.values(), ids=GOOD_IN_THE_END)
def test_the_right_file_arrives(cache, habits):
    # Where silence has to be noticed, a busy machine may take its own pauses for it, and ask more
    # often: it may do so for long.
    patience = {"timeout": 0.2, "attempts": 100} if "stall" in habits else {}
    with serving(TEXT, *habits) as web:
        get(tiny(web, sha256=SHA, bytes=len(TEXT)), **patience)
    assert_right(cache)
    assert web.requests == len(habits) or ("stall" in habits and web.requests > 2)


def test_another_address_is_tried(cache):
    with serving(b"", "404") as bad, serving(TEXT, "wrong") as worse, serving(TEXT) as good:
        get(tiny((bad.url, worse.url, good.url), sha256=SHA))
    assert_right(cache)
    assert datasets.info("tiny")["record"]["url"] == good.url


def test_a_redirection_is_followed(cache):
    with serving(TEXT) as good, serving(b"", f"to {good.url}") as web:
        get(tiny(web))
    assert_right(cache)


FAILURES = {
    "not found": (["404"], {}, "HTTP 404"),
    "forbidden": (["403"], {}, "HTTP 403"),
    "errors without end": (["500"], {}, "HTTP 500"),
    "another checksum": (["wrong"], {"sha256": SHA}, "its sha256 is [0-9a-f]{64}, not " + SHA),
    "another size": (["good"], {"bytes": 3}, f"it has {len(TEXT)} bytes, not 3"),
    "another content": (["wrong"], {}, "cannot be read as svmlight"),
    "other rows": (["good"], {"content": None, "n": 3}, "it has n = 400, not 3"),
    "other values": (
        ["good"],
        {"content": Content(400, 30, 1, "0" * 64)},
        "it contains .* not .*000",
    ),
    "a way out of the web": (["to file:///etc/hostname"], {}, "file"),
    "silence": (["stall"], {}, "tim(ed )?out"),
}


@pytest.mark.parametrize(("habits", "facts", "words"), FAILURES.values(), ids=FAILURES)
def test_a_failure_is_told_and_leaves_nothing_behind(cache, habits, facts, words):
    timeout = 0.2 if habits == ["stall"] else 60.0
    with serving(TEXT, *habits) as web, pytest.raises(FetchError, match=words) as caught:
        get(tiny(web, homepage="http://home/", **facts), timeout=timeout, attempts=2)
    assert "tiny could not be fetched" in str(caught.value)
    assert web.url in str(caught.value)
    assert "see http://home/" in str(caught.value)
    assert visible(cache) == []
    with pytest.raises(FileNotFoundError, match="adasdca datasets fetch tiny"):
        datasets.load("tiny")


@pytest.mark.parametrize("habit", ["endless", "good"])
def test_no_more_is_fetched_than_the_file_has(cache, habit):
    told = []
    with serving(TEXT, habit) as web, pytest.raises(FetchError, match=r"bytes"):
        get(tiny(web, bytes=len(TEXT) - 1), progress=lambda done, total: told.append(done))
    # What a server says beforehand is believed, if it is no good.
    assert told == [] if habit == "good" else max(told, default=0) < len(TEXT)
    assert web.requests == 1
    assert visible(cache) == []


def test_a_full_disk_is_not_blamed_on_the_web(cache, monkeypatch):
    real = Path.open

    class Full(io.BytesIO):
        def write(self, _):
            raise OSError(28, "No space left on device")

    def opened(path, mode="r", *more, **options):
        return Full() if mode == "wb" else real(path, mode, *more, **options)

    monkeypatch.setattr(Path, "open", opened)
    with serving(TEXT) as web, pytest.raises(FetchError, match=r"cannot write .*No space left"):
        get(tiny(web))
    assert web.requests == 1


def test_no_server_at_all(cache):
    with serving(TEXT) as web:
        url = web.url
    with pytest.raises(FetchError, match="Connection"):
        get(tiny((url,)), attempts=2)
    assert visible(cache) == []


def test_a_failed_fetch_keeps_the_file_of_before(cache):
    with serving(TEXT, "good", "500") as web:
        get(tiny(web))
        before = (cache / "tiny.npz").read_bytes()
        with pytest.raises(FetchError):
            get(tiny(web), force=True, attempts=1)
    assert (cache / "tiny.npz").read_bytes() == before
    assert_right(cache)


def test_a_folder_that_cannot_be_made(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ADASDCA_DATA", str(tmp_path / "file"))
    with serving(TEXT) as web, pytest.raises(FetchError, match="ADASDCA_DATA"):
        get(tiny(web))


# Trust.


def test_what_is_intact_is_not_fetched_again(cache):
    with serving(TEXT) as web:
        get(tiny(web))
        get(tiny(web))
        assert web.requests == 1
        (cache / "tiny.npz").write_bytes(b"damaged")
        with pytest.raises(ValueError, match=r"damaged.*adasdca datasets fetch tiny"):
            datasets.load("tiny")
        get(tiny(web))
        assert web.requests == 2
        get(tiny(web), force=True)
        assert web.requests == 3
    assert_right(cache)


def test_the_first_checksum_is_remembered_where_nothing_else_is_known(cache):
    with serving(TEXT) as web:
        source = tiny(web, content=None)
        get(source)
        web.body = TEXT[: TEXT.rindex(b"\n", 0, -1) + 1]  # a row less, and a good file still
        with pytest.raises(FetchError, match=r"first fetched.*remove .*tiny\.lock\.json"):
            get(source, force=True)
        assert_right(cache)
        (cache / "tiny.lock.json").unlink()
        get(source, force=True)
    assert datasets.load("tiny")[0].shape[0] == X.shape[0] - 1


def test_known_content_may_be_packed_anew(cache):
    with serving(gzip.compress(TEXT, 1)) as web:
        source = tiny((web.url + ".gz",))
        get(source)
        web.body = gzip.compress(TEXT, 9)
        get(source, force=True)
    assert_right(cache)


def test_a_format_of_ones_own(cache):
    def read(path):
        table = np.loadtxt(path, delimiter=";")
        return table[:, 1:], table[:, 0]

    with serving(b"1;2;0\n-1;0;4\n") as web:
        get(Source("pair", (web.url,), format=read))
    A, labels = datasets.load("pair")
    np.testing.assert_array_equal(A.toarray(), [[2, 0], [0, 4]])
    np.testing.assert_array_equal(labels, [1, -1])
