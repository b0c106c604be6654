"""Where data sets lie, and the arrays of one file."""

from __future__ import annotations

import os
import sys
from importlib import resources
from pathlib import Path

import numpy as np

from adasdca.datasets._sources import Data
from adasdca.files import FileError, read
from adasdca.storage import replacing


def data_directory() -> Path | None:
    """Return the folder of the data sets: $ADASDCA_DATA, or ../shared/data beside a checkout."""
    named = os.environ.get("ADASDCA_DATA")
    if named:
        return Path(named)
    beside = _beside()
    return beside if beside.is_dir() else None


def cache_directory() -> Path:
    """Return where `fetch` puts data sets: $ADASDCA_DATA, or a folder of the user's caches."""
    named = os.environ.get("ADASDCA_DATA")
    return Path(named) if named else _user_cache() / "adasdca" / "data"


def search_path() -> list[Path]:
    """Return the folders in which `load` looks, in order."""
    named = os.environ.get("ADASDCA_DATA")
    return [*([Path(named)] if named else []), _beside(), _user_cache() / "adasdca" / "data"]


def _beside() -> Path:
    return Path(__file__).resolve().parents[4] / "shared" / "data"


def _user_cache() -> Path:
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    named = os.environ.get("XDG_CACHE_HOME", "")
    return Path(named) if os.path.isabs(named) else Path.home() / ".cache"


def shipped(name: str) -> Path | None:
    """Return the path of a data set that comes with the package."""
    file = resources.files("adasdca.datasets") / "data" / f"{name}.npz"
    return file if isinstance(file, Path) and file.is_file() else None


def find(name: str) -> Path | None:
    """Return the file that `load` reads, or None."""
    places = [folder / f"{name}.npz" for folder in search_path()]
    return shipped(name) or next((place for place in places if place.is_file()), None)


def read_npz(path: Path, name: str) -> Data:
    """Read the arrays of a file."""
    try:
        table = read(path, format="npz", target="y")
        if table.y is None or table.y.dtype.kind != "f":
            raise FileError("y holds no numbers")
    except FileError as error:
        raise FileError(
            f"{path} is damaged ({error}); remove it and run: adasdca datasets fetch {name}"
        ) from error
    return table.X, table.y


def write_npz(path: Path, data: Data) -> None:
    """Write the arrays of a data set, all of them or nothing."""
    X, y = data
    with replacing(path) as file:
        np.savez_compressed(
            file,
            data=X.data,
            indices=X.indices.astype(np.int32),
            indptr=X.indptr.astype(np.int64),
            shape=np.array(X.shape, dtype=np.int64),
            y=y,
        )
