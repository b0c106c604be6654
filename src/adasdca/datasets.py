"""The paper's data sets: mushrooms, shipped with the package, and the others from a folder."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

NAMES = ("w8a", "dorothea", "mushrooms", "cov1", "ijcnn1")

Data = tuple[Any, NDArray[np.float64]]


def _read(file: Any) -> Data:
    with np.load(file, allow_pickle=False) as z:
        shape = tuple(int(k) for k in z["shape"])
        return sp.csr_matrix((z["data"], z["indices"], z["indptr"]), shape=shape), z["y"]


def data_directory() -> Path | None:
    """Return the folder of the data sets: $ADASDCA_DATA, or ../shared/data beside a checkout."""
    named = os.environ.get("ADASDCA_DATA")
    if named:
        return Path(named)
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    return beside if beside.is_dir() else None


def available() -> list[str]:
    """Return the names of the data sets that `load` would find."""
    folder = data_directory()
    return [
        name
        for name in NAMES
        if name == "mushrooms" or (folder is not None and (folder / f"{name}.npz").is_file())
    ]


def load_mushrooms() -> Data:
    """Return the mushrooms data: 8124 rows of 112 binary features, +1 edible, −1 poisonous.

    Examples
    --------
    >>> from adasdca.datasets import load_mushrooms
    >>> X, y = load_mushrooms()
    >>> X.shape, X.dtype.name, sorted(set(y.tolist()))
    ((8124, 112), 'float32', [-1.0, 1.0])
    """
    with resources.as_file(resources.files("adasdca") / "data" / "mushrooms.npz") as path:
        return _read(path)


def load(name: str) -> Data:
    """Return one of the paper's data sets as (CSR matrix, labels).

    Parameters
    ----------
    name : {"w8a", "dorothea", "mushrooms", "cov1", "ijcnn1"}
        All but mushrooms are read from the folder `data_directory`, as NAME.npz.
    """
    if name not in NAMES:
        raise ValueError(
            f"name = {name!r} is unknown; choose one of {', '.join(map(repr, NAMES))}."
        )
    if name == "mushrooms":
        return load_mushrooms()
    folder = data_directory()
    if folder is None or not (folder / f"{name}.npz").is_file():
        raise FileNotFoundError(
            f"{name}.npz was not found; set the environment variable ADASDCA_DATA to the folder "
            "that holds it."
        )
    return _read(folder / f"{name}.npz")
