"""`adasdca pack`: a file of any size as a folder that is read in blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adasdca.cli import options
from adasdca.cli.output import emit, note
from adasdca.cli.usage import usage_error, usage_errors
from adasdca.errors import counted
from adasdca.files import open_packed
from adasdca.files import pack as pack_file


def pack(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="SOURCE", help="An svmlight, CSV or Parquet file, or with --verify nothing."
        ),
    ] = None,
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="The folder to write.")
    ] = None,
    target: options.Target = None,
    file_format: options.Format = None,
    features: options.Features = None,
    zero_based: options.ZeroBased = False,
    dtype: Annotated[
        str, typer.Option(metavar="TYPE", help="Type of the entries: float64 or float32.")
    ] = "float64",
    verify: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Compare a packed folder with its checksums."),
    ] = None,
) -> None:
    """Convert SOURCE to a packed FOLDER, a piece at a time.

    A packing that was stopped goes on where it was when the same command is run again. Python reads
    the folder with adasdca.files.open_packed, and adasdca.solve(..., memory_limit=...) solves it
    without loading it.
    """
    if verify is not None:
        if source is not None:
            raise usage_error(f"{source} cannot be packed and verified at once; leave one out.")
        with usage_errors("--verify"):
            emit(f"{open_packed(verify, verify=True)}\nAll checksums are right.")
        return
    if source is None or folder is None:
        raise usage_error("SOURCE and FOLDER are needed, or --verify FOLDER.")
    with usage_errors("SOURCE"):
        found = pack_file(
            source,
            folder,
            format=file_format,
            target=target,
            n_features=features,
            zero_based=zero_based,
            dtype=dtype,
            tell=lambda rows, stored: note(f"{counted(rows, 'row')}, {stored} entries"),
        )
    emit(repr(found))
    if found.y is None:
        note("The source has no target; name its column with --target.")
