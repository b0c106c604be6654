"""Files of one's own: what a Python file registers, for commands that take `--plugin FILE.py`.

A plug-in is an ordinary file that calls `register_rule`, `register_method`, `register_loss` or
`datasets.register`; importing it is all there is to do. It runs with all the rights of the caller.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from types import ModuleType

from adasdca import datasets
from adasdca.ascent.sampling import RULES
from adasdca.methods import PICKERS, REGISTERED
from adasdca.problem.losses import LOSSES


class PluginError(ValueError):
    """A plug-in that cannot be loaded; the message names the file and the remedy."""


@dataclass(frozen=True)
class Plugin:
    """A loaded file and the names it registered, in order."""

    path: Path
    module: ModuleType
    rules: tuple[str, ...]
    methods: tuple[str, ...]
    losses: tuple[str, ...]
    datasets: tuple[str, ...]


def load(path: str | PathLike[str]) -> Plugin:
    """Import a Python file, which ends in ``.py``, and return what it registered.

    Its folder is not put on the import path.
    """
    file = Path(fspath(path)).expanduser()
    if not file.is_file() or file.suffix != ".py":
        raise PluginError(
            f"plug-in {fspath(path)!r} is not a Python file that exists; name a file such as "
            "my_method.py that registers a method, a loss, a rule or a data set."
        )
    file = file.resolve()
    # A name of its own for each path, and always the same, so that what it defines can be pickled.
    digest = hashlib.sha256(str(file).encode()).hexdigest()[:8]
    name = f"adasdca_plugin_{file.stem}_{digest}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    books: tuple[dict[str, object], ...] = (RULES, REGISTERED, LOSSES, datasets.REGISTERED, PICKERS)  # type: ignore[assignment]
    before = [dict(book) for book in books]
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        sys.modules.pop(name, None)
        for book, old in zip(books, before, strict=True):
            book.clear()
            book.update(old)
        raise PluginError(
            f"plug-in {file}{_line(error, file)}: {type(error).__name__}: {error}; "
            f"run `python {file.name}` to see all of it."
        ) from error
    new = [
        tuple(key for key, value in book.items() if old.get(key) is not value)
        for book, old in zip(books, before, strict=True)
    ]
    if not any(new):
        del sys.modules[name]
        raise PluginError(
            f"plug-in {file} registered nothing; call adasdca.register_method, register_loss, "
            "register_rule or adasdca.datasets.register in it."
        )
    return Plugin(file, module, *new[:4])  # functions of methods go by their methods' names


def load_all(paths: Iterable[str | PathLike[str]]) -> list[Plugin]:
    """Load plug-ins in the order given."""
    return [load(path) for path in paths]


def place_in(error: BaseException) -> str | None:
    """Return the plug-in and the line that an error came from, None if it came from elsewhere."""
    files = {
        str(module.__file__)
        for name, module in list(sys.modules.items())
        if name.startswith("adasdca_plugin_")
    }
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename in files]
    return f"plug-in {frames[-1].filename}, line {frames[-1].lineno}" if frames else None


def _line(error: Exception, file: Path) -> str:
    """Return the last line of the plug-in on the way to the error, as ``, line 3``."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f", line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(file)]
    return f", line {lines[-1]}" if lines else ""
