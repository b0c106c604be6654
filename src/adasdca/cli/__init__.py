"""The command line, `adasdca` or `python -m adasdca`; needs the extra `adasdca[cli]`."""

from __future__ import annotations

import io
import os
import sys
from importlib.util import find_spec

_EXTRA = ("typer", "rich", "matplotlib")


def main() -> None:
    """Run the command line."""
    missing = [name for name in _EXTRA if find_spec(name) is None]
    if missing:
        sys.exit(
            f"adasdca: the command line needs {', '.join(missing)}, not installed here; "
            "get it with: pip install 'adasdca[cli]'"
        )
    if sys.stdout is None:  # it is closed: nobody wants the results
        sys.stdout = io.StringIO()
    # Labels are of any language, and what this writes is UTF-8 everywhere, as its files are.
    if isinstance(sys.stdout, io.TextIOWrapper) and "PYTHONIOENCODING" not in os.environ:
        sys.stdout.reconfigure(encoding="utf-8", errors=sys.stdout.errors)
    try:
        from adasdca.cli.app import app
    except KeyboardInterrupt:  # to load all that takes a second
        print("Interrupted.", file=sys.stderr)  # noqa: T201
        sys.exit(130)
    app(prog_name="adasdca")
