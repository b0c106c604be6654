"""The choice among the compiled versions of the core, and its type stub."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adasdca import _core

STUBS = Path(__file__).parents[1] / "tools" / "stubs.py"
VERSIONS = _core._built()
RUNNABLE = [
    level
    for level in VERSIONS
    if level != "base" and int(level.removeprefix("v")) <= _core.supported_level()
]


def python(*arguments: str, isa: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a fresh interpreter: the version is chosen once, at import."""
    environment = {name: value for name, value in os.environ.items() if name != "ADASDCA_ISA"}
    if isa is not None:
        environment["ADASDCA_ISA"] = isa
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


PRINT_LEVEL = "from adasdca import _core; print(_core.LEVEL)"


def test_default_is_the_highest_that_runs():
    run = python("-c", PRINT_LEVEL)
    assert run.stdout.strip() == (RUNNABLE[-1] if RUNNABLE else "base"), run.stderr


@pytest.mark.parametrize("level", RUNNABLE)
def test_a_level_can_be_forced(level):
    run = python("-c", PRINT_LEVEL, isa=level)
    assert run.stdout.strip() == level, run.stderr


def test_an_unknown_level_is_refused_with_the_choices():
    run = python("-c", PRINT_LEVEL, isa="avx2")
    assert run.returncode != 0
    assert "'avx2' is not an instruction-set level" in run.stderr
    assert "v2, v3, v4" in run.stderr


def test_a_level_beyond_the_processor_is_refused(monkeypatch):
    monkeypatch.setattr(_core, "_built", lambda: ["v2", "v3"])
    monkeypatch.setattr(_core, "supported_level", lambda: 2)
    assert _core._choose(None) == "v2"
    with pytest.raises(ImportError, match="v3 was asked for, but this processor supports only v2"):
        _core._choose("v3")
    with pytest.raises(ImportError, match="v4 was asked for, but this build of adasdca has only"):
        _core._choose("v4")


def test_a_build_for_another_processor_is_explained(monkeypatch):
    monkeypatch.setattr(_core, "_built", lambda: ["v4"])
    monkeypatch.setattr(_core, "supported_level", lambda: 3)
    with pytest.raises(ImportError, match="compiled for processors of level x86-64-v4"):
        _core._choose(None)
    monkeypatch.setattr(_core, "supported_level", lambda: 0)
    with pytest.raises(ImportError, match="needs a processor of level x86-64-v2"):
        _core._choose(None)


def test_a_missing_build_is_explained(monkeypatch):
    monkeypatch.setattr(_core, "_built", list)
    with pytest.raises(ImportError, match="not compiled"):
        _core._choose(None)


def test_a_core_older_than_the_sources_is_refused():
    """As after a pull whose core was not compiled: the Python files are new, the core is not."""
    program = (
        "import sys, types; new = types.ModuleType('adasdca._core._interface'); "
        "new.DIGEST = 'of tomorrow'; sys.modules[new.__name__] = new; import adasdca"
    )
    run = python("-c", program)
    assert run.returncode != 0
    assert "Run `make build` in the checkout" in run.stderr


def test_versions_have_the_same_names():
    names = [
        {name for name in vars(_core._module(level)) if not name.startswith("_")}
        for level in VERSIONS
        if level == "base" or level in RUNNABLE
    ]
    assert all(other == names[0] for other in names)
    assert set(_core.__all__) == names[0] | {"LEVEL", "supported_level"}


def test_stub_is_current():
    run = python(str(STUBS), "--check")
    assert run.returncode == 0, run.stderr
