"""What a reader needs to know about where a run was made."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from adasdca import _core


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


@cache
def versions() -> dict[str, str]:
    """Return the versions of what a run depends on."""
    names = ("adasdca", "numpy", "scipy", "scikit-learn")
    return {"python": platform.python_version()} | {n: metadata.version(n) for n in names}


@cache
def commit() -> str | None:
    """Return the commit of the sources, with a `+` if they were changed.

    A copy without its history takes it from the variable ADASDCA_COMMIT; else it is None.
    """
    told = os.environ.get("ADASDCA_COMMIT")
    if told:
        return told
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        ask = ["git", "-C", str(root)]
        head = subprocess.check_output([*ask, "rev-parse", "HEAD"], text=True).strip()
        changed = subprocess.check_output([*ask, "status", "--porcelain", "src", "core"])
        return head + "+" * bool(changed)
    return None


@cache
def machine() -> dict[str, Any]:
    """Return the processor, its cores, the system, and the instruction set in use."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "level": _core.LEVEL,
    }
