"""Damage files of every format, and see that their readers answer with errors of the package.

``python tools/fuzz_files.py [SECONDS] [SEED]`` runs for that long and prints the counts; a file
that was answered otherwise is kept in the current folder, and the exit code is 1.
"""

from __future__ import annotations

import collections
import io
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import adasdca
from adasdca import files, models
from adasdca.auto.rates import Rates
from adasdca.datasets._folders import read_npz, write_npz
from adasdca.solution import State
from adasdca.storage import FileError

X = np.random.default_rng(0).standard_normal((12, 3)).round(3)
Y = np.where(X[:, 0] > 0, 1.0, -1.0)

#: What text and headers may be made to say.
WORDS = (
    *(
        b"0",
        b"-1",
        b"nan",
        b"inf",
        b"1e999",
        b"9" * 30,
        b"1" * 5000,
        b"[" * 3000,
        b'"',
        b"{",
        b"\\",
    ),
    *(b"\0", b"\xff\xfe", b"\n", b" ", b",", b":", b"<f8", b"|O", b"<c16", b"(1,)", b"True"),
    *(b"null", b"<U0", b"99999999999", b"(99999999999, 9)", b"(-1, 3)", b"]]", b"descr"),
)


def model(**changes: Any) -> models.Model:
    """Return a small model."""
    facts: dict[str, Any] = {
        "coef": X[:1],
        "intercept": np.array([0.5]),
        "classes": np.array([-1, 1]),
        "loss": adasdca.SquaredHinge(),
        "lam": 0.1,
        "certificates": [{"class": None, "primal": 1.0, "dual": 0.5, "gap": 0.5}],
        "feature_names": ["a", "b", "c"],
    }
    return models.Model(**(facts | changes))


def make(folder: Path) -> dict[str, tuple[bytes, Callable[[Path], object]]]:
    """Return sound contents and the reader of each format, by the name of a file."""
    readers: dict[str, Callable[[Path], object]] = {}

    def add(name: str, write: Callable[[Path], object], read: Callable[[Path], object]) -> None:
        write(folder / name)
        readers[name] = read

    import polars as pl

    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y})
    add("model", lambda p: models.save(model(), p), models.load)
    many = model(classes=np.array(["a", "b", "c"]), coef=X[:3], intercept=X[0])
    add("many.model", lambda p: models.save(many, p), models.load)
    add("liblinear", lambda p: models.write_liblinear(model(), p), models.load)
    add("state.npz", lambda p: State(Y, 0.5, 3, 7).save(p), State.load)
    add("rates.json", lambda p: Rates().save(p), Rates.load)
    add("set.npz", lambda p: write_npz(p, (sp.csr_matrix(X), Y)), lambda p: read_npz(p, "set"))
    for suffix in ("", ".gz", ".bz2", ".xz", ".zst"):
        add(f"data.svm{suffix}", lambda p: files.write_svmlight(p, X, Y), files.read)
    add("dense.npz", lambda p: np.savez(p, X=X, y=Y), files.read)
    for kind in ("csr", "csc", "coo"):
        add(
            f"{kind}.npz",
            lambda p, k=kind: sp.save_npz(p, sp.coo_matrix(X).asformat(k)),
            files.read,
        )
    add("data.csv", lambda p: frame.write_csv(p), files.read)
    add("data.parquet", lambda p: frame.write_parquet(p), files.read)
    return {name: ((folder / name).read_bytes(), read) for name, read in readers.items()}


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Return the contents damaged in one of many ways; of archives, the entries as well."""
    if data[:2] == b"PK" and rng.random() < 0.6:
        return _repacked(data, rng)
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        _damage(out, rng)
    return bytes(out)


def _damage(out: bytearray, rng: np.random.Generator) -> None:
    size = len(out)
    place = int(rng.integers(size + 1))
    length = int(rng.integers(1, 20))
    way = int(rng.integers(8))
    if way == 0:
        del out[place:]
    elif way == 1:
        del out[place : place + length]
    elif way == 2:
        out[place:place] = rng.bytes(length)
    elif way == 3:
        out[place:place] = out[place : place + length] * int(rng.integers(1, 50))
    elif way == 4:
        word = WORDS[int(rng.integers(len(WORDS)))]
        out[place : place + (len(word) if rng.random() < 0.5 else 0)] = word
    elif way == 5 and place < size:
        out[place] ^= 1 << int(rng.integers(8))
    elif way == 6 and place < size:
        out[place] = int(rng.choice([0, 1, 127, 128, 255]))
    else:
        out[place : place + 4] = int(rng.integers(2**32)).to_bytes(4, "little")


def _repacked(data: bytes, rng: np.random.Generator) -> bytes:
    """Damage the entries of an archive, whose checksums are right again afterwards."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    names = sorted(entries)
    name = names[int(rng.integers(len(names)))]
    way = int(rng.integers(4))
    if way == 0:
        del entries[name]
    elif way == 1:
        entries[name] = entries[names[int(rng.integers(len(names)))]]
    elif way == 2 and name.endswith(".npy"):
        buffer = io.BytesIO()
        np.save(buffer, _odd_array(rng), allow_pickle=True)
        entries[name] = buffer.getvalue()
    else:
        changed = bytearray(entries[name])
        _damage(changed, rng)
        entries[name] = bytes(changed)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, contents in entries.items():
            archive.writestr(each, contents)
    return out.getvalue()


def _odd_array(rng: np.random.Generator) -> np.ndarray:
    """Return an array that no file of ours should hold."""
    kinds = ("f8", "i8", "u8", "c16", "U3", "S2", "?", "O", "i4,f8", "M8[s]", "f2", "V3", ">f8")
    shapes = ((), (0,), (1,), (3,), (12,), (13,), (0, 3), (3, 0), (12, 3), (1, 3), (2, 2, 2))
    shape = shapes[int(rng.integers(len(shapes)))]
    array = np.zeros(shape, dtype=kinds[int(rng.integers(len(kinds)))])
    if array.dtype.kind in "fi" and array.size:
        array.flat[0] = rng.choice([0, -1, 2**40]) if array.dtype.kind == "i" else np.nan
    return array


def fuzz(
    sound: dict[str, tuple[bytes, Callable[[Path], object]]], folder: Path, seed: int
) -> Iterator[tuple[str, bytes, BaseException | None]]:
    """Yield, without end, a format, damaged contents, and what its reader raised."""
    rng = np.random.default_rng(seed)
    while True:
        for name, (data, read) in sound.items():
            contents = mutated(data, rng)
            path = folder / name
            path.write_bytes(contents)
            error: BaseException | None = None
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    read(path)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as raised:  # a panic of polars is no Exception
                error = raised
            yield name, contents, error


def main(seconds: float = 60.0, seed: int = 0) -> int:
    """Fuzz for so long; return 1 if anything but our own errors was raised."""
    counts: collections.Counter[str] = collections.Counter()
    wrong = 0
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, contents, error in fuzz(make(folder), folder, seed):
            counts[f"{name}: {'read' if error is None else type(error).__name__}"] += 1
            if error is not None and not isinstance(error, FileError):
                wrong += 1
                kept = Path(f"fuzzed-{wrong}-{name}")
                kept.write_bytes(contents)
                sys.stdout.write(f"{kept}: {type(error).__name__}: {str(error)[:200]}\n")
            if time.monotonic() > end:
                break
    for line, count in sorted(counts.items()):
        sys.stdout.write(f"{count:8} {line}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*(float(a) if k == 0 else int(a) for k, a in enumerate(sys.argv[1:3]))))
