"""Files that appear whole: what is kept of the one before, and what is told beforehand."""

import errno
import os
import stat
import subprocess
import sys

import pytest

from adasdca.storage import FileError, check_writable, guarded, replacing, write_whole, writing

POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has other rights and links")


def test_text_and_bytes_are_written(tmp_path):
    write_whole(tmp_path / "a", "ü\n")
    assert (tmp_path / "a").read_bytes() == b"\xc3\xbc\n"
    write_whole(str(tmp_path / "a"), b"\0")
    assert (tmp_path / "a").read_bytes() == b"\0"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


@POSIX
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_rights_are_kept(tmp_path, mode):
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(mode)
    with replacing(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == mode
        file.write(b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_text() == "new"


@POSIX
def test_a_new_file_has_the_usual_rights(tmp_path):
    (tmp_path / "usual").write_text("")
    write_whole(tmp_path / "a", "")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "usual").stat().st_mode


@POSIX
def test_the_target_of_a_link_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "a"
    target.write_text("old")
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "other").symlink_to(tmp_path / "link")
    write_whole(tmp_path / "other", "new")
    assert target.read_text() == "new"
    assert not target.is_symlink()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "other").is_symlink()


def test_a_name_as_long_as_names_may_be(tmp_path):
    write_whole(tmp_path / ("n" * 255), "new")
    assert (tmp_path / ("n" * 255)).read_text() == "new"


@POSIX
def test_a_pipe_behind_a_link_is_written_to(tmp_path):
    program = "from adasdca.storage import write_whole; write_whole('/dev/stdout', 'text')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"text"


def test_what_is_write_protected_stays(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)
    for write in (lambda: write_whole(path, "new"), lambda: check_writable(path)):
        with pytest.raises(PermissionError, match="write-protected"):
            write()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_an_error_names_the_file_and_not_the_draft(tmp_path):
    path = tmp_path / "missing" / "a"
    for write in (lambda: write_whole(path, "new"), lambda: check_writable(path)):
        with pytest.raises(FileNotFoundError) as caught:
            write()
        assert str(path) in str(caught.value)
        assert ".adasdca-" not in str(caught.value)


def test_an_error_of_a_draft_is_as_pythons_own(tmp_path, monkeypatch):
    def fail(draft, goal):
        raise PermissionError(13, "Permission denied", str(draft), None, str(goal))

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(PermissionError) as caught:
        write_whole(tmp_path / "m", b"")
    assert str(caught.value) == f"[Errno 13] Permission denied: '{tmp_path / 'm'}'"


def test_the_file_is_on_the_disk_before_its_name_is(tmp_path, monkeypatch):
    done = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, r=real, n=name: (done.append(n), r(*a))[1])
    write_whole(tmp_path / "a", "new")
    assert done == ["fsync", "replace", "fsync"] if os.name != "nt" else ["fsync", "replace"]


def test_a_check_leaves_nothing(tmp_path):
    (tmp_path / "a").write_text("old")
    check_writable(tmp_path / "a")
    check_writable(tmp_path / "b")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"


@POSIX
def test_a_check_sees_a_full_disk(tmp_path):
    program = f"""
import resource
from adasdca.storage import check_writable
resource.setrlimit(resource.RLIMIT_FSIZE, ({writing.BLOCK - 1}, {writing.BLOCK - 1}))
try:
    check_writable({str(tmp_path / "a")!r})
except OSError as error:
    print(error.errno)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(errno.EFBIG)
    assert list(tmp_path.iterdir()) == []


def test_an_exception_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")

    def interrupted():
        with replacing(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


class PanicException(BaseException):
    """As polars has it."""


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyError("x"), FileError),
        (MemoryError(), FileError),
        (RecursionError("deep"), FileError),
        (PanicException("index out of bounds"), FileError),
        (OSError("not a gzip file"), FileError),
        (OSError(errno.EINVAL, "negative seek"), FileError),
        (OSError(errno.EIO, "the disk"), OSError),
        (ImportError("zstandard"), ImportError),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (FileError("told already"), FileError),
    ],
)
def test_damage_is_told_and_trouble_of_the_disk_is_not(error, told):
    with pytest.raises(told) as caught, guarded("a", "is damaged ({error})"):
        raise error
    assert (caught.value is error) == (told is type(error) or error.args == ("told already",))
    if caught.value is not error:
        assert str(caught.value).startswith("a is damaged (")
