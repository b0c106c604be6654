"""Copy a page of `adasdca reproduce` into the documentation: publish_reproduction.py DIR.

The page and its pictures go to docs/reproduction, with the runs behind them compressed, so that
`adasdca reproduce --figures-only --output docs/reproduction` draws the same page again.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from adasdca_reproduce.store import Store, compress

TARGET = Path(__file__).resolve().parents[1] / "docs" / "reproduction"


def main() -> None:
    """Copy what the documentation shows."""
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "index.md").is_file():
        sys.exit("usage: publish_reproduction.py DIR, the --output of `adasdca reproduce`")
    source = Path(sys.argv[1])
    shutil.rmtree(TARGET / "figures", ignore_errors=True)
    shutil.copytree(source / "figures", TARGET / "figures")
    shutil.copy(source / "index.md", TARGET / "index.md")
    compress(Store(source), TARGET / "runs.jsonl.xz")


if __name__ == "__main__":
    main()
