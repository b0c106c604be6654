"""Data that would not fit into memory: packed into a folder, and read from there in blocks."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from adasdca.backends.stored import check_limit
from adasdca.cli.output import note
from adasdca.cli.usage import usage_error, usage_errors
from adasdca.files import Table, open_packed, pack
from adasdca.files.packed import HEADER
from adasdca.files.reading import guess_format
from adasdca.files.streams import strip_compression
from adasdca.storage import file_sha256

#: Bytes of memory that a byte of a file becomes while it is read, and of a compressed one.
READ, COMPRESSED = 2.5, 10.0
#: The share of the free memory that data may take, and that a solve in blocks may take.
SHARE, SOLVE = 0.8, 0.5
#: Stored values of a CSR matrix from which on SciPy would copy the indices into memory.
MOST = 1 << 31


def free_memory() -> int | None:
    """Return the bytes that a process may take without others being swapped out, if known."""
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError, IndexError):
        return None


def is_packed(data: str) -> bool:
    """Whether this is a folder of `adasdca pack`."""
    return (Path(data) / HEADER).is_file()


def limit_for(data: str, kind: str | None, asked: str | None) -> int | None:
    """Return the memory limit of a solve in blocks, None where the data fit into memory.

    The default limit is the free memory.
    """
    with usage_errors("--memory-limit"):
        most = None if asked is None else check_limit(asked)
    free = free_memory() if most is None else most
    if is_packed(data):
        return most or int(SOLVE * (free or 1 << 30))
    if free is None or not os.path.isfile(data):
        return None
    if (kind or guess_format(Path(data))) == "npz":
        return None
    squeezed = strip_compression(Path(data))[1] is not None
    needed = os.path.getsize(data) * (COMPRESSED if squeezed else READ)
    if needed <= (SHARE * free if most is None else most):
        return None
    note(f"{data} would take about {needed / 1e9:.2g} GB of memory: it is read in blocks.")
    return most or int(SOLVE * free)


def packed_table(
    data: str, kind: str | None, target: str | None, features: int | None, zero_based: bool
) -> tuple[Table, str]:
    """Return the rows of a packed folder, or of a file that is packed for this command alone.

    And the SHA-256 of the header, which has the checksums of all the rest.
    """
    if is_packed(data):
        found = open_packed(data)
    else:
        folder = tempfile.mkdtemp(prefix="adasdca-packed-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        note(f"Packing into {folder}; `adasdca pack` does so once and for all.")
        found = pack(
            data, folder, format=kind, target=target, n_features=features, zero_based=zero_based
        )
    if found.X.n_stored >= MOST and not found.X.dense:
        raise usage_error(
            f"{data} has {found.X.n_stored} stored values; from {MOST} on use adasdca.solve with "
            "the rows of adasdca.files.open_packed.",
            "DATA",
        )
    table = Table(found.X.matrix, found.y, found.names, data)
    return table, file_sha256(Path(found.source) / HEADER)


def refuse_others(**given: object) -> None:
    """Refuse options that need all rows in memory; they are given by name."""
    for option, value in given.items():
        if value:
            raise usage_error(
                "is for data in memory, and these are read in blocks: leave it out, or give more "
                "memory with --memory-limit.",
                "--" + option.replace("_", "-"),
            )
