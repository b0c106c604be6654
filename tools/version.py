"""Check that all places name the same version: version.py [TAG]. Prints it.

The changelog begins with it: "1.2.0 (unreleased)" while the version is 1.2.0.dev0, "1.2.0" and a
date when it is released.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Where the version stands, and what stands around it.
PLACES = {
    "pyproject.toml": r'^version = "(.+)"$',
    "src/adasdca/__init__.py": r'^__version__ = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
    "recipe/meta.yaml": r'^{% set version = "(.+)" %}$',
}


def versions() -> dict[str, str]:
    """Return the version by the name of the place."""
    found = {}
    for name, pattern in PLACES.items():
        match = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        found[name] = match[1] if match else "none"
    return found


def changelog(text: str) -> str:
    """Return the version that a changelog begins with, that of development if unreleased."""
    heading = next((line for line in text.splitlines() if line.startswith("## ")), "")
    match = re.fullmatch(r"## (\S+) \((.+)\)", heading)
    if match is None:
        return "none"
    return match[1] + ".dev0" * (match[2] == "unreleased")


def main() -> None:
    """Compare all places and the tag, if one is given."""
    found = versions()
    found["CHANGELOG.md"] = changelog((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    if sys.argv[1:] and sys.argv[1]:
        found["the tag"] = sys.argv[1].removeprefix("v")
    if len(set(found.values())) != 1:
        sys.exit("\n".join(f"{place}: {version}" for place, version in found.items()))
    print(found["pyproject.toml"])


if __name__ == "__main__":
    main()
