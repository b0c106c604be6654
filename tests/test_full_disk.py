"""A full disk after a long fit: the certificate is told, and the model is somewhere."""

import base64
import errno
import json
import os
import re
from pathlib import Path

import pytest

from adasdca import models
from adasdca.cli import output
from commands import call, run

FIT = ("fit", "mushrooms", "--loss", "squared_hinge", "--tol", "1e-3", "--model")
FULL = Path("/dev/full")


@pytest.fixture
def full(monkeypatch):
    """Return a function after which only files below some folders can be written."""
    real = output.write_whole

    def only(*folders):
        def write(path, contents):
            if not any(Path(path).is_relative_to(folder) for folder in folders):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            real(path, contents)

        monkeypatch.setattr(output, "write_whole", write)

    return only


def settle(monkeypatch, temporary, home):
    monkeypatch.setattr(output.tempfile, "gettempdir", lambda: str(temporary))
    monkeypatch.setattr(Path, "home", lambda: home)


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_a_device_that_is_full(tmp_path):
    done = run(*FIT, FULL, cwd=tmp_path, TMPDIR=str(tmp_path))
    assert done.returncode == 3
    assert "no model has less than" in done.stderr
    assert "on these rows" in done.stderr
    assert "No space left on device" in done.stderr
    place = Path(re.search(r"the model is in (\S+): move it", done.stderr)[1])
    assert place.parent == tmp_path
    assert models.load(place).n_features == 112
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("room", ["temporary", "home"])
def test_another_place_is_found(room, tmp_path, capsys, monkeypatch, full):
    folders = [tmp_path / "temporary", tmp_path / "home"]
    for folder in folders:
        folder.mkdir()
    settle(monkeypatch, *folders)
    full(tmp_path / room)
    done = call(capsys, *FIT, tmp_path / "m")
    assert done.returncode == 3
    assert not (tmp_path / "m").exists()
    (place,) = (tmp_path / room).iterdir()
    assert f"the model is in {place}" in done.stderr
    assert "gap" in done.stderr
    assert models.load(place).n_features == 112
    full(tmp_path / room)
    done = call(capsys, *FIT, tmp_path / "m", "--json")
    assert done.returncode == 3
    assert models.load(json.loads(done.stdout)["model"]).n_features == 112


@pytest.mark.parametrize("as_json", [False, True])
def test_if_there_is_no_place_the_model_is_printed(as_json, tmp_path, capsys, monkeypatch, full):
    settle(monkeypatch, tmp_path, tmp_path)
    full()
    done = call(capsys, *FIT, tmp_path / "m", *(["--json"] if as_json else []))
    assert done.returncode == 3
    assert "no model has less than" in done.stderr
    assert f"base64 -d > {tmp_path / 'm'}" in done.stderr
    text = json.loads(done.stdout)["model_base64"] if as_json else done.stdout
    (tmp_path / "again").write_bytes(base64.b64decode(text))
    assert models.load(tmp_path / "again").n_features == 112


def test_a_disk_that_is_full_beforehand_is_told_before_the_fit(tmp_path, capsys, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    done = call(capsys, *FIT, tmp_path / "m")
    assert done.returncode == 3
    assert "m cannot be written: " in done.stderr
    assert "No space left on device" in done.stderr
    assert "rows" not in done.stderr
    assert list(tmp_path.iterdir()) == []
