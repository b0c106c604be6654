"""The command line for tests: in this process, or in one of its own."""

import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from adasdca.cli.app import app
from adasdca.files import write_svmlight


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


def call(capsys, *arguments):
    """Run a command in this process."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        app([str(a) for a in arguments], prog_name="adasdca")
    out, err = capsys.readouterr()
    return Done(ended.value.code or 0, out, err)


def environment(**more):
    """Return an environment in which nothing is coloured."""
    clean = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "TTY_COMPATIBLE")}
    return clean | more


#: Of processes: errors, unless the caller of the tests says something else.
WARNINGS = os.environ.get("PYTHONWARNINGS") or "error"


def start(*arguments, cwd, warnings=WARNINGS, stdin=None, **more):
    """Start a process that runs a command."""
    return subprocess.Popen(
        [sys.executable, "-W", warnings, "-m", "adasdca", *map(str, arguments)],
        cwd=cwd,
        env=environment(**more),
        stdin=subprocess.DEVNULL if stdin is None else stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def run(*arguments, cwd, **more):
    """Run a command in a process of its own."""
    process = start(*arguments, cwd=cwd, **more)
    out, err = process.communicate()
    return Done(process.returncode, out, err)


def write(path, X, y):
    """Write rows as svmlight text and return the path."""
    write_svmlight(path, np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64))
    return path
