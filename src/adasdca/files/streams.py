"""Bytes of plain and compressed files, in pieces.

The first bytes of a file tell its compression. A name that promises a compression which they do not
show is an error: such a file is damaged or misnamed.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, cast

from adasdca.storage import FileError, check_size, guarded, replacing

#: Suffix -> first bytes.
MAGIC = {
    ".gz": b"\x1f\x8b",
    ".bz2": b"BZh",
    ".xz": b"\xfd7zXZ\x00",
    ".zst": b"\x28\xb5\x2f\xfd",
}

#: About the size of a second-level cache: the parser then reads what was just written.
CHUNK = 1 << 20


def strip_compression(path: Path) -> tuple[Path, str | None]:
    """Return the path without the suffix of a compression, and that suffix."""
    suffix = path.suffix.lower()
    return (path.with_suffix(""), suffix) if suffix in MAGIC else (path, None)


def first_bytes(path: Path, count: int) -> bytes:
    """Return the first bytes of a file; none of a pipe, which can be read only once."""
    if path.is_dir():
        raise FileError(f"{path} is a directory; name a file in it.")
    if path.exists() and not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(count)


def _compression(path: Path, head: bytes) -> str | None:
    """Return the compression as a suffix, by the first bytes of a file; None if it has none."""
    if not head:
        raise FileError(f"{path} is empty; check how it was written or downloaded.")
    for suffix, magic in MAGIC.items():
        if head.startswith(magic):
            return suffix
    promised = strip_compression(path)[1]
    if promised:
        raise FileError(
            f"{path} does not begin like a {promised} file; get it again if it is damaged, "
            f"or remove {promised} from its name if it is not compressed."
        )
    return None


def chunks(path: Path, size: int = CHUNK) -> Iterator[bytes]:
    """Yield the contents of a file, decompressed, in pieces of about `size` bytes."""
    if path.is_dir():
        raise FileError(f"{path} is a directory; name a file in it.")
    source = _Counted(path)
    with io.BufferedReader(source, size) as file:
        kind = _compression(path, file.peek(8))
        pieces = _frames(file) if kind == ".zst" and _OLD else _pieces(file, kind, size)
        done = 0
        while True:
            if kind is None:
                piece = next(pieces, b"")
            else:
                with guarded(
                    path,
                    f"cannot be read: the {kind} file is truncated or damaged ({{error}}); copy or "
                    "download it again.",
                ):
                    piece = next(pieces, b"")
            if not piece:
                return
            done += len(piece)
            check_size(path, done, source.count)
            yield piece


class _Counted(io.FileIO):
    """A file that counts what was read of it, pipes included."""

    count = 0

    def readinto(self, buffer: Any) -> int | None:
        got = super().readinto(buffer)
        self.count += got or 0
        return got


def seekable(path: Path) -> Path | io.BytesIO:
    """Return the file itself, or its contents in memory if it is compressed or a pipe."""
    head = first_bytes(path, 8)
    if path.is_file() and _compression(path, head) is None:
        return path
    return io.BytesIO(b"".join(chunks(path)))


@contextmanager
def create(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to be written, compressed as its suffix says; it appears when it is whole."""
    kind = strip_compression(path)[1]
    with replacing(path) as file:
        if kind is None:
            yield file
        else:
            with _layer(file, kind, "wb") as text:
                yield text


def _gzip(file: BinaryIO, mode: Any) -> gzip.GzipFile:
    # Without the name of the file, which is that of a draft; level 9 is slow and hardly smaller.
    return gzip.GzipFile("", mode, 6, file)


_OPENERS = {".gz": _gzip, ".bz2": bz2.open, ".xz": lzma.open}


def _layer(file: BinaryIO, kind: str, mode: str) -> BinaryIO:
    opener: Any = _zstd().open if kind == ".zst" else _OPENERS[kind]
    return cast(BinaryIO, opener(file, mode))


def _pieces(file: BinaryIO, kind: str | None, size: int) -> Iterator[bytes]:
    with file if kind is None else _layer(file, kind, "rb") as text:
        while piece := text.read(size):
            yield piece


_OLD = sys.version_info < (3, 14)


def _zstd() -> Any:
    try:
        return import_module("zstandard" if _OLD else "compression.zstd")
    except ImportError as error:
        raise ImportError(
            ".zst files need zstandard; install it with `pip install adasdca[files]`, "
            "or decompress the file first."
        ) from error


def _frames(file: BinaryIO) -> Iterator[bytes]:
    """Yield what zstandard decompresses; its own reader takes a truncated file for a whole one."""
    zstandard = _zstd()
    frame = None
    while piece := file.read(1 << 12):  # may become 128 MiB
        while piece:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            try:
                text = frame.decompress(piece)
            except zstandard.ZstdError as error:
                raise EOFError(str(error)) from error
            if text:
                yield text
            piece, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame is not None:
        raise EOFError("its last frame is not complete")
