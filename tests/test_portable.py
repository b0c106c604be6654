"""What holds whatever compiles the core: `portable.cpp`, by the compilers that are here."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
#: As CMakeLists.txt has them, for the processor that is here; and for those who know the language
#: alone, as MSVC does, and a C++ library without <charconv>.
HEEDED = ["-O3", "-fopenmp-simd", "-ffp-contract=fast"]
if platform.machine() == "x86_64":
    HEEDED.append("-march=native")
PLAIN = ["-O1", "-Wno-unknown-pragmas", "-DADASDCA_GNU=0", "-DADASDCA_CHARCONV=0"]
LIBRARY = "#include <version>"
COMPILERS = {"c++": [os.environ.get("CXX", "c++")], "libc++": ["clang++", "-stdlib=libc++"]}


def compiled(words, source):
    """Run a compiler on a text, with warnings as errors."""
    command = [*words, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-x", "c++", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=False)


def is_here(words):
    return shutil.which(words[0]) and not compiled([*words, "-fsyntax-only"], LIBRARY).returncode


@pytest.mark.parametrize("options", [HEEDED, PLAIN], ids=["heeded", "plain"])
@pytest.mark.parametrize("name", [name for name, words in COMPILERS.items() if is_here(words)])
def test_promises_hold(name, options, tmp_path):
    program = str(tmp_path / "portable")
    includes = [f"-I{folder}" for folder in (TESTS.parent / "core", TESTS)]
    words = [*COMPILERS[name], *options, *includes, "-o", program]
    run = compiled(words, (TESTS / "portable.cpp").read_text("utf-8"))
    assert run.returncode == 0, run.stderr
    run = subprocess.run([program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
