"""Clocks, memory and the machine: what every benchmark here measures with."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from adasdca_reproduce import machine as machines


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Task:
    """Something to time; `prepare` runs before every timing and is not timed."""

    run: Callable[[], Any]
    prepare: Callable[[], Any] = _nothing
    clock: Callable[[], float] = time.perf_counter

    def seconds(self) -> float:
        self.prepare()
        start = self.clock()
        self.run()
        return self.clock() - start


def interleaved(tasks: Mapping[str, Task], repeats: int) -> dict[str, float]:
    """Return the median seconds of each task, run in turn so that a noisy moment hits them all.

    One more round comes first and is not counted: it fills caches and faults pages in.
    """
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for task in tasks.values():
        task.seconds()
    for _ in range(repeats):
        for name, task in tasks.items():
            seconds[name].append(task.seconds())
    return {name: statistics.median(times) for name, times in seconds.items()}


def attempt(task: Callable[[], Any]) -> tuple[Any, str, float]:
    """Return what a task gives (None after an error), what is wrong, and its processor seconds.

    Wrong is an error, or else the first warning.
    """
    found, wrong, began = None, "", time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = task()
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
    if caught and not wrong:
        wrong = f"{caught[0].category.__name__}: {caught[0].message}"
    return found, wrong, time.process_time() - began


ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def in_processes(
    function: Callable[[Any], Any], tasks: Sequence[Any], jobs: int, chunk: int = 1
) -> Iterator[Any]:
    """Yield what a function makes of tasks, in their order, by `jobs` processes of one thread."""
    with threadpool_limits(1):
        if jobs == 1:
            yield from map(function, tasks)
            return
        # Threads of BLAS that were started wait in loops: those of the pool start none.
        os.environ |= dict.fromkeys(ONE_THREAD, "1")
        setting = {"initializer": threadpool_limits, "initargs": (1,)}
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), **setting) as pool:
            yield from pool.map(function, tasks, chunksize=chunk)


def in_fresh_process(module: str, *words: Any) -> Any:
    """Run a module in a process that no earlier work has swollen; return the JSON it prints."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, words)]
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def _status(field: str) -> int | None:
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return None


def forget_peak() -> bool:
    """Make `peak_bytes` start anew from now; False where the system cannot do that."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def resident_bytes() -> int | None:
    """Return the memory that this process has now; None if the system does not say."""
    return _status("VmRSS")


def peak_bytes() -> int | None:
    """Return the most memory that this process had since `forget_peak`."""
    return _status("VmHWM")


def last_level_cache() -> int:
    """Return the size of the largest cache in bytes; 32 MiB if the system does not say."""
    sizes = [32 << 20]
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    found = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    with contextlib.suppress(OSError, ValueError, KeyError):
        sizes = [int(text[:-1]) * units[text[-1]] for f in found if (text := f.read_text().strip())]
    return max(sizes, default=32 << 20)


def machine() -> dict[str, Any]:
    """Return what a reader needs to know to judge the figures."""
    return machines.machine() | {
        "last_level_cache": last_level_cache(),
        "python": platform.python_version(),
        "versions": {k: v for k, v in machines.versions().items() if k != "python"},
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "date": time.strftime("%Y-%m-%d"),
    }
