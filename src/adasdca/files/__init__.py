"""Files of data: LIBSVM/svmlight text, CSV, Parquet and npz, plain or compressed.

`read` guesses the format from the name and returns a `Table`; `write_svmlight` writes the text
format that LIBSVM, LIBLINEAR and others read. A file that cannot be used raises `FileError`, which
says where the trouble is and what to do.
"""

from adasdca.files.columns import Columns
from adasdca.files.packed import Packed, open_packed
from adasdca.files.packing import pack
from adasdca.files.reading import FORMATS, read
from adasdca.files.svmlight import write_svmlight
from adasdca.files.table import Table
from adasdca.storage import FileError

__all__ = [
    "FORMATS",
    "Columns",
    "FileError",
    "Packed",
    "Table",
    "open_packed",
    "pack",
    "read",
    "write_svmlight",
]
