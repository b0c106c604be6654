"""What all files share: they appear whole or not at all, and damage is reported as damage."""

from adasdca.storage.archives import Archive, read_arrays
from adasdca.storage.damage import FileError, allowance, check_size, file_sha256, guarded
from adasdca.storage.writing import check_writable, replacing, write_whole

__all__ = [
    "Archive",
    "FileError",
    "allowance",
    "check_size",
    "check_writable",
    "file_sha256",
    "guarded",
    "read_arrays",
    "replacing",
    "write_whole",
]
