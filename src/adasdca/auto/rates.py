"""The rates of the cost model: published ones by default, or those of a machine at hand."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from adasdca.storage import FileError, write_whole

#: The environment variable that names a file of rates.
VARIABLE = "ADASDCA_RATES"


@dataclass(frozen=True)
class Rates:
    """Nanoseconds of the kernels; the defaults are those of the machine of the benchmarks.

    Attributes
    ----------
    dense_entry, sparse_entry : float
        A stored entry in half a pass, e.g. in the scores of all rows.
    byte : float
        A byte of the rows where they come from memory, if that takes longer.
    row : float
        What else a survey does for a row.
    update : float
        What else an update does for a row.
    transcendental : float
        What the logistic loss adds to an update.
    draw, shuffle : float
        A pick of an adaptive epoch, and of a permutation.
    dense_pair, sparse_pair : float
        A product x_ij·x_ik of a Gram matrix, both triangles counted though one is computed.
    product : float
        A product x_ij·x_kj of the inner products of sparse rows.
    factor : float
        A factorisation of m unknowns, divided by m³.
    interpreter : float
        What an epoch costs outside of its kernels.
    batch : float
        A mini-batch on a device, in units of its passes: 8 µs beside 0.0085 ns an entry.
    """

    dense_entry: float = 0.14
    sparse_entry: float = 0.35
    byte: float = 0.03
    row: float = 8.5
    update: float = 21.5
    transcendental: float = 50.0
    draw: float = 8.5
    shuffle: float = 1.5
    dense_pair: float = 0.026
    sparse_pair: float = 0.63
    product: float = 0.76
    factor: float = 0.0134
    interpreter: float = 3e4
    batch: float = 3.3e5

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not 0 < value < math.inf:
                raise ValueError(
                    f"{name} = {value!r} is not a rate; give the nanoseconds as a finite number "
                    "above 0, or leave it out for the published one."
                )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the rates to a JSON file."""
        write_whole(path, json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Rates:
        """Read rates from a JSON file; those it leaves out are the published ones."""
        try:
            found: Any = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise FileError(
                f"{os.fspath(path)!r} cannot be read as rates ({error}); write such a file with "
                f"python -m adasdca.calibration -o {os.fspath(path)}."
            ) from error
        names = [field.name for field in fields(cls)]
        if not isinstance(found, dict):
            raise FileError(
                f"{os.fspath(path)!r} holds {type(found).__name__}, not rates by name; write such "
                f"a file with python -m adasdca.calibration -o {os.fspath(path)}."
            )
        unknown = sorted(set(found) - set(names))
        if unknown:
            raise FileError(
                f"{os.fspath(path)!r} holds {unknown[0]!r}, which is no rate; remove it or choose "
                f"among {', '.join(names)}."
            )
        try:
            return cls(**found)
        except ValueError as error:
            raise FileError(f"{os.fspath(path)!r}: {error}") from None


PUBLISHED = Rates()
_used: Rates | None = None


def current() -> Rates:
    """Return the rates in force: those of `use`, of the environment, or the published ones."""
    if _used is not None:
        return _used
    path = os.environ.get(VARIABLE)
    return _from_environment(path) if path else PUBLISHED


@cache
def _from_environment(path: str) -> Rates:
    """Read the file once: one process has one model."""
    try:
        return Rates.load(path)
    except ValueError as error:
        raise ValueError(
            f"the environment variable {VARIABLE} = {path!r} names no usable rates: {error} "
            f"Without {VARIABLE} the published rates are used."
        ) from error


@contextmanager
def use(rates: Rates) -> Iterator[Rates]:
    """Solve by these rates inside a `with` block, in all threads."""
    global _used
    if not isinstance(rates, Rates):
        raise ValueError(
            f"rates = {rates!r} is not allowed; pass Rates(...), calibrate() or Rates.load(path)."
        )
    before, _used = _used, rates
    try:
        yield rates
    finally:
        _used = before
