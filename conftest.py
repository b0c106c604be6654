"""What every test and every example of a docstring shares."""

import signal
from collections.abc import Iterator

import pytest

from adasdca import _core, datasets, losses, methods
from adasdca.ascent import sampling


def pytest_configure(config: pytest.Config) -> None:
    """Let interrupts interrupt, and threads start on data of any size."""
    # A shell starts what runs in its background with interrupts ignored.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Tests are small: no thread would have enough to do, and none be tested.
    _core.set_thread_work(1.0)


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
