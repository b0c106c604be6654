"""Files that cannot be read: the message names the file, the place, and what to do."""

import importlib
import os
import re
import signal
import sys
import threading

import numpy as np
import pytest

from adasdca import files
from adasdca.files import FileError, streams

GOOD = "1 1:1 2:2\n"
LINES = {
    "several labels": ("1,2 1:1", r"several labels, '1,2'.*give each row one"),
    "no label": ("1:1 2:2", r"no label before '1:1'.*put a number first"),
    "only a blank for a label": ("  1:1", r"no label before '1:1'"),
    "a label in words": ("spam 1:1", r"the label 'spam' is not a number.*number the classes"),
    "a label of nan": ("nan 1:1", r"the label 'nan' is not finite"),
    "a label too large": ("1e999 1:1", r"the label '1e999' is not finite"),
    "a label with an underscore": ("1_0 1:1", r"the label '1_0' is not a number"),
    "a nan": ("1 1:nan", r"the value in '1:nan' is not finite.*remove"),
    "an infinity": ("1 1:1 2:-Infinity", r"the value in '2:-Infinity' is not finite"),
    "an overflow": ("1 1:-1e309", r"the value in '1:-1e309' is not finite"),
    "a word for a value": ("1 1:x", r"the value in '1:x' is not a number"),
    "half an exponent": ("1 1:1e", r"the value in '1:1e' is not a number"),
    "a hexadecimal number": ("1 1:0x10", r"the value in '1:0x10' is not a number"),
    "two points": ("1 1:1.2.3", r"the value in '1:1.2.3' is not a number"),
    "two signs": ("1 1:+-2", r"the value in '1:\+-2' is not a number"),
    "a value left out": ("1 1: 2:3", r"the value in '1:' is not a number"),
    "a second colon": ("1 1:2:3", r"the value in '1:2:3' is not a number"),
    "a decimal comma": ("1 1:0,5", r"the value in '1:0,5' is not a number"),
    "a missing colon": ("1 1", r"'1' is not of the form index:value"),
    "a missing index": ("1 :1", r"':1' is not of the form index:value"),
    "a word for an index": ("1 a:1", r"'a:1' is not of the form index:value"),
    "the index 0": ("1 0:1 1:1", r"the index in '0:1' is 0.*zero_based=True"),
    "a negative index": ("1 -3:1", r"the index in '-3:1' is negative"),
    "an endless index": ("1 12345678901234567890:1", r"12345678901234567890:1' is too large"),
    "an index twice": ("1 3:1 7:2 3:5", r"the index 3 comes twice; keep one"),
    "an index twice in a row": ("1 3:1 3:1", r"the index 3 comes twice"),
    "an index too large": ("1 1:1 11:5", r"the index in '11:5' is beyond n_features=10.*raise"),
    "a query in words": ("1 qid:a 1:1", r"'qid:a' needs a whole number"),
    "an empty query": ("1 qid: 1:1", r"'qid:' needs a whole number"),
    "a query in the wrong place": ("1 1:1 qid:3", r"'qid:3' is in a place of its own"),
    "a lone carriage return": ("1 1:1\r-1 1:2", r"the value in '1:1\\r-1' is not a number"),
    "letters beyond ASCII": ("1 1:½", r"the value in '1:½' is not a number"),
    "another script's digits": ("1 1:٣", r"the value in '1:٣' is not a number"),
    "a no-break space": ("1\u00a01:1", "label"),
}


def refusal(path, **options):
    with pytest.raises(FileError) as caught:
        files.read(path, **options)
    message = str(caught.value)
    assert str(path) in message
    return message


@pytest.mark.parametrize(("line", "reason"), LINES.values(), ids=LINES.keys())
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_a_bad_line_is_named(tmp_path, line, reason, end):
    path = tmp_path / "data.svm"
    path.write_bytes((f"{GOOD}# comment\n\n{line}{end}").encode())
    message = refusal(path, n_features=10)
    assert re.search(reason, message), message
    assert f"{path}, line 4: " in message
    assert f"The line reads: {line!r}" in message


def test_a_long_line_is_shortened_around_the_place(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text(" ".join(["1", *(f"{k}:1" for k in range(1, 10**5)), "x"]) + " 7:7" * 1000)
    message = refusal(path)
    assert len(message) < 400
    assert ":1 99999:1 x 7:7 7:7 " in message
    assert message.split("The line reads")[1].count("...") == 2


def test_the_line_is_right_far_into_a_file(tmp_path, monkeypatch):
    path = tmp_path / "data.svm"
    path.write_text(GOOD * 500_000 + "1 2:oops\n" + GOOD * 1000)
    assert path.stat().st_size > 4 * streams.CHUNK
    assert ", line 500001: the value in '2:oops'" in refusal(path)


@pytest.mark.parametrize("text", [b"1 1:\xff", b"1 \xe9:1", b"\xe9 1:1", b"1 1:1 \x80"])
def test_what_is_not_utf8_is_shown_as_bytes(tmp_path, text):
    path = tmp_path / "data.svm"
    path.write_bytes(GOOD.encode() + text)
    message = refusal(path)
    assert ", line 2: " in message
    assert "\\x" in message


@pytest.mark.parametrize(
    "data",
    [
        np.random.default_rng(0).bytes(10_000),
        bytes(10_000),
        bytes(3),
        GOOD.encode("utf-16"),
        b"\x7fELF\x02\x01\x01\x00",
    ],
)
def test_binary_files_are_refused(tmp_path, data):
    path = tmp_path / "data"
    path.write_bytes(data)
    message = refusal(path)
    assert ", line 1: " in message
    assert "format=" in message


def test_a_binary_file_without_lines_is_given_up_early(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(bytes(5 * streams.CHUNK))
    read = []

    def counted(*args, chunks=streams.chunks):
        for piece in chunks(*args):
            read.append(len(piece))
            yield piece

    module = importlib.import_module("adasdca.files.svmlight")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "chunks", counted)
        assert "zero byte" in refusal(path)
    assert len(read) == 1


def test_the_format_is_doubted_only_if_it_was_guessed(tmp_path):
    path = tmp_path / "data.json"
    path.write_text("{}")
    assert "format=" in refusal(path)
    assert "format=" not in refusal(path, format="svmlight")


@pytest.mark.parametrize("suffix", ["svm", "csv", "npz", "parquet", "svm.gz"])
def test_empty_files_are_refused(tmp_path, suffix):
    path = tmp_path / f"data.{suffix}"
    path.write_bytes(b"")
    assert "is empty" in refusal(path)


@pytest.mark.parametrize("text", ["\n", "# nothing\n\n  \r\n", "#"])
def test_files_without_rows_are_refused(tmp_path, text):
    path = tmp_path / "data.svm"
    path.write_text(text)
    assert "has no rows" in refusal(path)


@pytest.mark.parametrize("name", ["data", "data.csv", "data.npz", "data.parquet", "data.gz"])
def test_directories_are_refused(tmp_path, name):
    path = tmp_path / name
    path.mkdir()
    assert "is a directory; name a file in it" in refusal(path)


@pytest.mark.parametrize("name", ["data", "data.csv", "data.npz", "data.parquet", "data.gz"])
def test_missing_files_are_the_systems_business(tmp_path, name):
    with pytest.raises(FileNotFoundError):
        files.read(tmp_path / name)


@pytest.mark.parametrize("compression", list(streams.MAGIC))
@pytest.mark.parametrize("left", [0.1, 0.5, 0.9, 0.9999])
def test_truncated_files_are_refused(tmp_path, compression, left):
    rng = np.random.default_rng(0)
    path = tmp_path / f"data.svm{compression}"
    files.write_svmlight(path, rng.random((2000, 10)), rng.random(2000))
    data = path.read_bytes()
    path.write_bytes(data[: int(left * len(data))])
    message = refusal(path)
    assert f"the {compression} file is truncated or damaged" in message
    assert "download it again" in message


@pytest.mark.parametrize("compression", list(streams.MAGIC))
def test_a_misleading_suffix_is_refused(tmp_path, compression):
    path = tmp_path / f"data{compression}"
    path.write_text(GOOD)
    message = refusal(path)
    assert f"does not begin like a {compression} file" in message
    assert f"remove {compression} from its name" in message


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"format": "arff"}, "'svmlight', 'csv', 'parquet', 'npz'"),
        ({"target": "y"}, "begin with the target: leave it out"),
        ({"n_features": 0}, "at least 1"),
        ({"format": "npz", "zero_based": True}, "zero_based is for svmlight files only"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, options, match):
    path = tmp_path / "data.svm"
    path.write_text(GOOD)
    with pytest.raises(ValueError, match=match) as caught:
        files.read(path, **options)
    assert not isinstance(caught.value, FileError)


@pytest.mark.parametrize(("name", "missing"), [("a.csv", "polars"), ("a.zst", "zstandard")])
def test_a_missing_extra_is_named(tmp_path, monkeypatch, name, missing):
    if missing == "zstandard" and sys.version_info >= (3, 14):
        missing = "compression.zstd"
    path = tmp_path / name
    path.write_bytes(streams.MAGIC.get(path.suffix, b"a,b\n1,2\n"))
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=r"pip install adasdca\[files\]"):
        files.read(path)


def test_an_interrupt_ends_the_reading(tmp_path, monkeypatch):
    """Between two pieces, of which a file may have very many."""
    assert threading.current_thread() is threading.main_thread()

    def long(path):
        yield GOOD.encode()
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(10_000):
            yield GOOD.encode()

    path = tmp_path / "data.svm"
    path.write_text(GOOD)
    monkeypatch.setattr(importlib.import_module("adasdca.files.svmlight"), "chunks", long)
    with pytest.raises(KeyboardInterrupt):
        files.read(path)
