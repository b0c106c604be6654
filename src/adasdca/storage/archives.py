"""Zip archives of NumPy arrays, where nothing is unpickled and no declared size is trusted."""

from __future__ import annotations

import math
import os
import warnings
import zipfile
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from adasdca.storage.damage import FileError, check_size, guarded

CHUNK = 1 << 20
_HEADERS: dict[tuple[int, int], Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_DAMAGED = "is damaged or no archive of arrays ({error}); copy it again, or write it again."


class Archive:
    """A zip archive whose entries together are in proportion to its size.

    Its bytes are read from the file `path`, or from `source`. `remedy` is the message about damage,
    in which ``{error}`` stands for the reader's words.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        source: BinaryIO | None = None,
        remedy: str = _DAMAGED,
    ) -> None:
        self._path, self._remedy = path, remedy
        self._file = open(path, "rb") if source is None else source  # noqa: SIM115 - closed below
        try:
            with guarded(path, remedy):
                size = self._file.seek(0, os.SEEK_END)
                self._zip = zipfile.ZipFile(self._file)
                self._entries = {entry.filename: entry for entry in self._zip.infolist()}
            check_size(path, sum(entry.file_size for entry in self._zip.infolist()), size)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()
        self._file.close()

    @property
    def names(self) -> list[str]:
        """The names of the entries."""
        return list(self._entries)

    def read(self, name: str) -> bytes:
        """Return the bytes of an entry."""
        with guarded(self._path, self._remedy):
            return self._zip.read(self._entries[name])

    def array(self, name: str) -> NDArray[Any]:
        """Return the array of an entry of NumPy's format."""
        with guarded(self._path, self._remedy):
            entry = self._entries[name]
            with self._zip.open(entry) as file:
                return _array(file, name, entry.file_size)


def _array(file: Any, name: str, size: int) -> NDArray[Any]:
    read_header = _HEADERS.get(np.lib.format.read_magic(file))
    if read_header is None:
        raise ValueError(f"{name} is in a version of the npy format that no plain array needs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of headers that Python 2 wrote
        shape, fortran, dtype = read_header(file)
    if dtype.hasobject or dtype.names is not None or dtype.itemsize == 0:
        raise ValueError(f"{name} holds {dtype}, which is neither numbers nor text")
    if min(shape, default=0) < 0 or any(isinstance(k, bool) for k in shape):
        raise ValueError(f"{name} has the shape {shape}")
    count = math.prod(shape)
    if count * dtype.itemsize != size - file.tell():
        raise ValueError(
            f"{name} has {size - file.tell()} bytes where shape {shape} of {dtype} takes "
            f"{count * dtype.itemsize}"
        )
    flat = np.empty(count, dtype=dtype)
    octets = flat.view(np.uint8)
    filled = 0
    while filled < len(octets):
        piece = file.read(min(CHUNK, len(octets) - filled))
        if not piece:
            raise EOFError(f"{name} is cut short")
        octets[filled : filled + len(piece)] = np.frombuffer(piece, np.uint8)
        filled += len(piece)
    if file.read(1):  # at the end of an entry its checksum is compared
        raise ValueError(f"{name} is longer than it says")
    return np.reshape(flat, shape, order="F" if fortran else "C")


def read_arrays(
    path: str | os.PathLike[str], source: BinaryIO | None = None, remedy: str = _DAMAGED
) -> dict[str, NDArray[Any]]:
    """Return all arrays of an npz file; those who wrote it are not trusted. See `Archive`.

    A `FileError` says that it is no such archive, is damaged, or would become far larger than it
    is.
    """
    with Archive(path, source, remedy) as archive:
        other = [name for name in archive.names if not name.endswith(".npy")]
        if other:
            raise FileError(
                f"{os.fspath(path)} holds {other[0]!r}, which is no array; write it with "
                "numpy.savez."
            )
        return {name.removesuffix(".npy"): archive.array(name) for name in archive.names}
