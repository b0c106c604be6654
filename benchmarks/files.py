"""Reading of LIBSVM files, beside scikit-learn's load_svmlight_file.

python -m benchmarks.files [--size 0.2] [--values decimals counts doubles] [--repeats 3]

A file of the given size (in GB) is made in a temporary folder, read in turn by both in one process,
and the two results are compared bit by bit. "decimals" has six digits behind the point, as most
published files; "counts" small whole numbers; "doubles" all the digits of random doubles. Memory is
that of a fresh process: the most it had while it read, beyond what it had before, beside the size
of the arrays.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from adasdca import files
from benchmarks.measure import (
    Task,
    forget_peak,
    in_fresh_process,
    interleaved,
    machine,
    peak_bytes,
    resident_bytes,
)
from benchmarks.output import ratio, save, seconds, size, table

ROWS, PER_ROW, FEATURES = 2000, 100, 50_000


def block(kind: str, rng: np.random.Generator) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return some rows with about PER_ROW entries each."""
    columns = np.sort(rng.integers(FEATURES, size=(ROWS, PER_ROW)), axis=1)
    first = np.ones(columns.shape, bool)
    first[:, 1:] = columns[:, 1:] > columns[:, :-1]
    start = np.concatenate([[0], np.cumsum(first.sum(axis=1))])
    values = rng.random(start[-1])
    if kind == "counts":
        values = np.ceil(-2 * np.log(values))
    elif kind == "decimals":
        values = values.round(6)
    labels = np.where(rng.random(ROWS) < 0.5, -1.0, 1.0)
    return sp.csr_matrix((values, columns[first], start), (ROWS, FEATURES)), labels


def make(path: Path, kind: str, gigabytes: float) -> int:
    """Write the file, block after block, and return its size."""
    rng = np.random.default_rng(0)
    part = path.with_name("part")
    with path.open("wb") as file:
        while file.tell() < gigabytes * 1e9:
            files.write_svmlight(part, *block(kind, rng))
            file.write(part.read_bytes())
    part.unlink()
    return path.stat().st_size


def same(path: Path) -> bool:
    """Whether both readers see the same numbers, to the last bit."""
    ours = files.read(path)
    X, y = load_svmlight_file(str(path), zero_based=False)
    pairs = [
        (ours.X.data, X.data),
        (ours.X.indices, X.indices),
        (ours.X.indptr, X.indptr),
        (ours.y, y),
    ]
    return ours.X.shape == X.shape and all(np.array_equal(a, b) for a, b in pairs)


def memory(path: Path) -> dict[str, int | None]:
    """Read the file in a fresh process and return what that took."""
    result: dict[str, int | None] = in_fresh_process("files", "--memory-of", path)
    return result


def print_memory(path: str) -> None:
    known, before = forget_peak(), resident_bytes()
    contents = files.read(path)
    peak = peak_bytes() if known else None
    X = contents.X
    arrays = sum(a.nbytes for a in (X.data, X.indices, X.indptr, contents.y))
    used = None if peak is None or before is None else peak - before
    print(json.dumps({"arrays": arrays, "peak": used}))


def measure(kind: str, gigabytes: float, repeats: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.svm"
        count = make(path, kind, gigabytes)
        tasks = {
            "adasdca": Task(lambda: files.read(path)),
            "scikit-learn": Task(lambda: load_svmlight_file(str(path), zero_based=False)),
        }
        times = interleaved(tasks, repeats)
        return {"values": kind, "bytes": count, "same": same(path), **times, **memory(path)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=float, default=0.2, help="of each file, in GB")
    kinds = ["decimals", "counts", "doubles"]
    parser.add_argument("--values", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of:
        print_memory(options.memory_of)
        return
    rows = [measure(kind, options.size, options.repeats) for kind in options.values]
    head = ["values", "file", "adasdca", "MB/s", "scikit-learn", "MB/s", "ratio", "same"]
    print(
        table(
            [*head, "arrays", "peak"],
            [
                [
                    row["values"],
                    size(row["bytes"]),
                    seconds(row["adasdca"]),
                    f"{row['bytes'] / row['adasdca'] / 1e6:.0f}",
                    seconds(row["scikit-learn"]),
                    f"{row['bytes'] / row['scikit-learn'] / 1e6:.0f}",
                    ratio(row["scikit-learn"] / row["adasdca"]),
                    "yes" if row["same"] else "NO",
                    size(row["arrays"]),
                    size(row["peak"]),
                ]
                for row in rows
            ],
        )
    )
    print(f"\n{save({'machine': machine(), 'files': rows}, options.out, 'files.json')}")


if __name__ == "__main__":
    main()
