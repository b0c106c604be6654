"""Whatever ends a writer, and wherever: the file it replaces is the old one or the new one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

SCRIPT = Path(__file__).with_name("writers.py")


def outcomes(how, parent):
    folder, elsewhere = parent / "files", parent / "elsewhere"
    for each in (folder, elsewhere):
        each.mkdir()
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    environment |= {"TMPDIR": str(elsewhere)}
    command = [sys.executable, str(SCRIPT), how, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    # The points are such that a careless writer does damage at most of them.
    careless = found.pop("careless")
    assert careless["neither"] > careless["old"] + careless["new"]
    # What took long to compute is kept in another place where the disk does not take it.
    assert how != "denied" or any(elsewhere.iterdir())
    return found


@pytest.mark.parametrize("how", ["killed", "interrupted", "denied", "limited"])
def test_a_file_is_old_or_new(how, tmp_path):
    found = outcomes(how, tmp_path)
    assert len(found) == 15
    damaged = {name: counts for name, counts in found.items() if counts["neither"]}
    assert not damaged
    assert all(counts["old"] > 0 for counts in found.values())
    if how == "killed":
        assert sum(counts["new"] for counts in found.values()) > 50
        assert all(sum(counts.values()) - counts["left"] >= 40 for counts in found.values())
    if how in ("denied", "limited"):  # a draft takes room that is wanted
        assert not any(counts["left"] for counts in found.values())
