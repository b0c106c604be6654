"""The paper's data sets, and data sets of one's own, by name.

Mushrooms comes with the package. The others are found as NAME.npz in ``$ADASDCA_DATA``, in
``../shared/data`` beside a checkout or in the user's cache, where `fetch` puts them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adasdca.datasets._content import Content
from adasdca.datasets._folders import cache_directory, data_directory, find, read_npz, shipped
from adasdca.datasets._sources import SOURCES, Data, Source
from adasdca.names import check_name, decorator

if TYPE_CHECKING:
    from adasdca.datasets._download import FetchError, Progress

__all__ = [
    "NAMES",
    "Content",
    "FetchError",
    "Source",
    "available",
    "cache_directory",
    "data_directory",
    "fetch",
    "info",
    "load",
    "load_mushrooms",
    "names",
    "register",
]

NAMES = ("w8a", "dorothea", "mushrooms", "cov1", "ijcnn1")
#: Sources and functions of one's own.
REGISTERED: dict[str, Source | Callable[[], Any]] = {}


def __getattr__(name: str) -> Any:
    # Loaded at first use: the modules of the web take longer than all the rest.
    if name == "FetchError":
        from adasdca.datasets._download import FetchError

        return FetchError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def names() -> list[str]:
    """Return the names of all data sets: the paper's, then the registered ones."""
    return [*NAMES, *REGISTERED]


def available() -> list[str]:
    """Return the names of the data sets that `load` would find."""
    return [n for n in names() if not isinstance(_entry(n), Source) or find(n) is not None]


def _entry(name: str) -> Source | Callable[[], Any]:
    known: object = name  # it may be unhashable
    if isinstance(known, str) and known in REGISTERED:
        return REGISTERED[known]
    if isinstance(known, str) and known in SOURCES:
        return SOURCES[known]
    raise ValueError(
        f"name = {name!r} is unknown; choose one of {', '.join(map(repr, names()))}, or register "
        "a data set under that name with adasdca.datasets.register."
    )


def load_mushrooms() -> Data:
    """Return the mushrooms data: 8124 rows of 112 binary features, +1 edible, −1 poisonous.

    Examples
    --------
    >>> from adasdca.datasets import load_mushrooms
    >>> X, y = load_mushrooms()
    >>> X.shape, X.dtype.name, sorted(set(y.tolist()))
    ((8124, 112), 'float32', [-1.0, 1.0])
    """
    with resources.as_file(resources.files("adasdca.datasets") / "data" / "mushrooms.npz") as path:
        return read_npz(path, "mushrooms")


def load(name: str) -> Data:
    """Return a data set as (CSR matrix, labels).

    Parameters
    ----------
    name : str
        One of the paper's, ``"w8a"``, ``"dorothea"``, ``"mushrooms"``, ``"cov1"`` or
        ``"ijcnn1"``, or one that was registered. All but mushrooms are read from NAME.npz in
        ``$ADASDCA_DATA``, ``../shared/data`` beside a checkout, or the user's cache.

    Raises
    ------
    FileNotFoundError
        If the data set lies in none of these folders.
    """
    entry = _entry(name)
    if not isinstance(entry, Source):
        return _check(name, entry())
    if name == "mushrooms":
        return load_mushrooms()
    path = find(name)
    if path is None:
        raise FileNotFoundError(
            f"{name}.npz was not found; get it with: adasdca datasets fetch {name}, or set the "
            "environment variable ADASDCA_DATA to the folder that holds it."
        )
    return read_npz(path, name)


def _check(name: str, data: Any) -> Data:
    """Return what a function of one's own gave, if it can be data."""
    try:
        X, y = data
        rows, labels = X.shape, np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"the function of data set {name!r} did not return (X, y), a matrix and numbers: "
            f"{error}."
        ) from error
    if len(rows) != 2 or labels.shape != (rows[0],):
        raise ValueError(
            f"the function of data set {name!r} returned X of shape {rows} and y of shape "
            f"{labels.shape}; it must return n rows and n labels."
        )
    return X, labels


def fetch(
    name: str,
    *,
    directory: str | os.PathLike[str] | None = None,
    force: bool = False,
    timeout: float = 30.0,
    attempts: int = 5,
    wait: float = 1.0,
    progress: Progress | None = None,
) -> Path:
    """Get a data set from its origin, verify it, and return the file that `load` reads.

    The size and the checksum of the file are verified where they are known (else the first
    download is recorded and later ones are compared with it), and for the paper's data sets the
    parsed matrix and labels, entry by entry, through a checksum of their canonical form. Nothing
    appears under the final name before that.

    Parameters
    ----------
    name : str
        A data set of the paper, or a registered `Source`.
    directory : path, optional
        Where to put it; `cache_directory` if None. Elsewhere, `load` finds it only if
        ``$ADASDCA_DATA`` says so.
    force : bool, default False
        Fetch it even if it is there.
    timeout : float, default 30.0
        Seconds without an answer or a byte after which an attempt has failed.
    attempts : int, default 5
        Attempts for each address.
    wait : float, default 1.0
        Seconds before the second attempt, doubled before each further one.
    progress : callable, optional
        Called with the bytes that are there and how many there will be (None if unknown).

    Raises
    ------
    FetchError
        An `OSError` that says what was tried and what to do.
    """
    entry = _entry(name)
    if not isinstance(entry, Source):
        raise ValueError(
            f"name = {name!r} is made by a function and needs no fetching; call "
            f"adasdca.datasets.load({name!r})."
        )
    if not force and directory is None:
        found = find(name)
        # A file of the cache is verified below; what lies elsewhere is the user's own.
        if found is not None and found.parent != cache_directory():
            return found
        if found is not None and not (found.parent / f"{name}.lock.json").is_file():
            return found
    from adasdca.datasets._download import Patience
    from adasdca.datasets._fetch import fetch_source

    folder = cache_directory() if directory is None else Path(directory)
    return fetch_source(entry, folder, force, Patience(timeout, attempts, wait), progress)


def info(name: str) -> dict[str, Any]:
    """Return what is known of a data set: origin, size, licence, and where it lies here.

    Examples
    --------
    >>> import adasdca
    >>> facts = adasdca.datasets.info("w8a")
    >>> facts["n"], facts["d"], facts["urls"][0].rpartition("/")[2]
    (49749, 300, 'w8a')
    """
    entry = _entry(name)
    if not isinstance(entry, Source):
        words = (entry.__doc__ or "").strip().partition("\n")[0]
        return {"name": name, "format": "function", "notes": words, "path": None, "record": None}
    from adasdca.datasets._fetch import read_record

    path = find(name)
    facts = asdict(entry)
    if callable(entry.format):
        facts["format"] = getattr(entry.format, "__name__", repr(entry.format))
    facts["shipped"] = shipped(name) is not None
    facts["path"] = None if path is None else str(path)
    facts["record"] = None if path is None else read_record(path.parent, name)
    return facts


def register(what: str | Source, function: Callable[[], Any] | None = None) -> Any:
    """Make a data set of your own known to `load`; with a name alone, a decorator.

    Parameters
    ----------
    what : Source or str
        A source, which `fetch` can get; or the name of what a function returns.
    function : callable, optional
        ``function() -> (X, y)``.

    Examples
    --------
    >>> import numpy as np
    >>> import adasdca
    >>> @adasdca.datasets.register("parity")
    ... def parity():
    ...     X = np.random.default_rng(0).choice([-1.0, 1.0], (100, 3))
    ...     return X, X.prod(axis=1)
    >>> adasdca.datasets.load("parity")[0].shape
    (100, 3)
    """
    name = what.name if isinstance(what, Source) else what
    check_name(name, NAMES)
    if isinstance(what, Source):
        REGISTERED[name] = what
        return None
    if function is None:
        return decorator(register, name)
    if not callable(function):
        raise TypeError(
            f"function = {function!r} is not callable; pass a function that returns (X, y)."
        )
    REGISTERED[name] = function
    return None
