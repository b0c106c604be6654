"""Every writer of files, and a process that ends each of them at chosen points.

``python writers.py HOW FOLDER`` replaces the first version of each file by the second, again and
again, and each time the writer is killed, interrupted or denied the disk at another point. It
prints, as JSON, how often the old version was found afterwards, how often the new one, how often
neither, and how many files were left beside them.
"""

import bz2
import contextlib
import errno
import gzip
import json
import lzma
import os
import resource
import signal
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import zstandard

import adasdca
from adasdca import files, models, plotting
from adasdca.auto.rates import Rates
from adasdca.cli.output import save_somewhere
from adasdca.cli.predict import _write
from adasdca.datasets._folders import write_npz
from adasdca.solution import State
from adasdca.storage import write_whole
from adasdca_reproduce.store import KEY, Store, compress

#: Points at which a writer is ended.
POINTS = {"killed": 50, "interrupted": 30, "denied": 20, "limited": 20}
#: Calls that touch the disk.
TOUCHING = {"open", "write", "flush", "fstat", "replace", "close", "unlink", "fchmod", "chmod"}
N = 200


def rows(version):
    return np.random.default_rng(version).standard_normal((N, 2))


def model(version):
    return models.Model(
        coef=rows(version).reshape(1, -1),
        intercept=np.zeros(1),
        classes=np.array([0, 1]),
        loss=adasdca.SquaredHinge(),
        lam=1.0,
    )


def text(version):
    return "".join(f"{number!r}\n" for number in rows(version).ravel().tolist())


def svmlight(path, version):
    files.write_svmlight(path, rows(version), np.ones(N))


def picture(path, version):
    from matplotlib.figure import Figure  # large: the children before are copied without it

    figure = Figure(figsize=(1, 1))
    figure.subplots().plot(rows(version)[:, 0])
    plotting.save(figure, path)


def source(path, version):
    store = Store(path.with_name(f"store{version}"))
    if not store.exists():
        key = dict.fromkeys(KEY, version)
        store.append({**key, "protocol": {"budget": 1.0}, "text": text(version)})
    compress(store, path)


def carelessly(path, version):
    """How not to do it."""
    with path.open("w") as file:
        for line in text(version).splitlines(keepends=True):
            file.write(line)


WRITERS = {
    "state.npz": lambda path, v: State(rows(v).ravel(), 0.0, v, 0).save(path),
    "data.svm": svmlight,
    "data.svm.gz": svmlight,
    "data.svm.bz2": svmlight,
    "data.svm.xz": svmlight,
    "data.svm.zst": svmlight,
    "model": lambda path, v: models.save(model(v), path),
    "model.txt": lambda path, v: models.write_liblinear(model(v), path),
    "rates.json": lambda path, v: Rates(row=1.0 + v).save(path),
    "set.npz": lambda path, v: write_npz(path, (sp.csr_matrix(rows(v)), np.ones(N))),
    "text": lambda path, v: write_whole(path, text(v)),
    "predictions": lambda path, v: _write(text(v).splitlines(), path),
    "kept": lambda path, v: save_somewhere(text(v).encode(), path),
    "runs.jsonl.xz": source,
    "careless": carelessly,
    "picture.png": picture,
}

#: Where the bytes tell the time, what they stand for is compared.
READERS = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


def contents(path):
    data = path.read_bytes()
    try:
        return READERS[path.suffix](data) if path.suffix in READERS else data
    except (OSError, EOFError, lzma.LZMAError, zstandard.ZstdError):
        return b"damaged"


def events(write):
    """Return the number of calls that a writer makes, and those among them that touch the disk."""
    found = []
    sys.setprofile(
        lambda frame, event, thing: found.append((event, getattr(thing, "__name__", "")))
    )
    write()
    sys.setprofile(None)
    disk = [k for k, (event, name) in enumerate(found) if event[:2] == "c_" and name in TOUCHING]
    return len(found), disk


def some(numbers, count):
    """Return up to so many of the numbers, evenly spaced, the last ones included."""
    numbers = list(numbers)
    return sorted({numbers[round(k)] for k in np.linspace(0, len(numbers) - 1, count)})


def ends_at(point, write, end):
    """Run a writer that is ended before its call of that number."""
    seen = 0

    def count(frame, event, thing):
        nonlocal seen
        seen += 1
        if seen == point + 1:
            end()

    try:
        sys.setprofile(count)
        write()
        sys.setprofile(None)
    except (KeyboardInterrupt, Exception):  # zipfile makes others of them
        sys.setprofile(None)


def killed_at(point, write):
    """Run a writer in a child that is killed before its call of that number."""
    child = os.fork()
    if child == 0:
        ends_at(point, write, lambda: os.kill(os.getpid(), signal.SIGKILL))
        os._exit(0)
    os.waitpid(child, 0)


def limited_to(size, write):
    """Run a writer while files can have so many bytes and no more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        with contextlib.suppress(OSError):
            write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def interrupt():
    raise KeyboardInterrupt


def deny():
    raise OSError(errno.ENOSPC, "No space left on device")


HOW = {
    "killed": killed_at,
    "interrupted": lambda point, write: ends_at(point, write, interrupt),
    "denied": lambda point, write: ends_at(point, write, deny),
    "limited": limited_to,
}


def outcome(name, how, folder):
    """Return how often a file was found in which state, and the drafts left behind."""
    path = folder / name
    writer = WRITERS[name]
    versions = []
    for version in (1, 0):
        writer(path, version)
        versions.insert(0, contents(path))
    old, new = versions
    assert old != new

    def write():
        writer(path, 1)

    if how == "limited":
        points = [int(x) for x in np.linspace(0, path.stat().st_size - 1, POINTS[how])]
    else:
        total, disk = events(write)
        half = POINTS[how] // 2
        # A failing disk is seen where it is touched only.
        points = some(disk, POINTS[how])
        if how != "denied":
            points = some([k + after for k in disk for after in (0, 1)], half)
            points += some(range(total), POINTS[how] - len(points))
    found = {"old": 0, "new": 0, "neither": 0, "left": 0}
    names = {p.name for p in folder.iterdir()}
    for point in points:
        writer(path, 0)
        HOW[how](point, write)
        now = contents(path) if path.exists() else b""
        found["old" if now == old else "new" if now == new else "neither"] += 1
        for other in {p.name for p in folder.iterdir()} - names:
            found["left"] += 1
            (folder / other).unlink()
    return found


def main(how, folder):
    # No test cuts the power, and waiting for the disk is most of the time; that it is called is
    # seen in test_storage.py.
    os.fsync = os.fstat
    found = {name: outcome(name, how, Path(folder)) for name in WRITERS}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
