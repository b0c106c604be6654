"""What every test and every example of a docstring shares."""

import functools
import importlib.util
import multiprocessing.util
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from adasdca import _core, datasets, losses, methods
from adasdca.ascent import sampling
from adasdca.backends.cuda.device import load_cupy

#: Where there is no CuPy, the folder that imports it; where there is no device, the tests on one.
collect_ignore = []
try:
    load_cupy()
except ImportError:
    collect_ignore += ["src/adasdca/backends/cuda/kernels", "tests/test_cuda_device.py"]
except RuntimeError:
    collect_ignore += ["tests/test_cuda_device.py"]

#: Doctests import every module of the package; these import Dask.
collect_ignore_glob = [] if importlib.util.find_spec("distributed") else ["src/adasdca/dask/*"]


def pytest_configure(config: pytest.Config) -> None:
    """Let interrupts interrupt, and threads start on data of any size; nothing else is around."""
    # A shell starts what runs in its background with interrupts ignored.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Tests are small: no thread would have enough to do, and none be tested.
    _core.set_thread_work(1.0)
    # What one machine has and another has not: rates that were measured there, and data sets beside
    # the checkout or in the user's cache. A folder of data that is named is used: ADASDCA_DATA.
    os.environ.pop("ADASDCA_RATES", None)
    for name in ("_beside", "_user_cache"):
        empty = functools.wraps(getattr(datasets._folders, name))(lambda: Path(os.devnull, "none"))
        setattr(datasets._folders, name, empty)
    # A busy machine is slow to make up examples.
    settings.register_profile(
        "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("any machine")


@pytest.fixture(autouse=True, scope="session")
def temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Remove what tests leave behind: memory maps of joblib's, sockets of processes killed."""
    tmp_path_factory.getbasetemp()  # stays where it is
    multiprocessing.util.get_temp_dir()  # is removed by itself, when the folder below is gone
    # The path is short: those of sockets have a limit.
    with (
        tempfile.TemporaryDirectory(prefix="adasdca-", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """Forget what a test has registered: methods of one would take part in the races of another."""
    books = (
        losses.LOSSES,
        methods.REGISTERED,
        methods.PICKERS,
        sampling.RULES,
        datasets.REGISTERED,
    )
    before = [dict(book) for book in books]
    yield
    for book, old in zip(books, before, strict=True):
        if book != old:
            book.clear()
            book.update(old)
