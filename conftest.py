"""What every test and every example of a docstring shares."""

from collections.abc import Iterator

import pytest

from adasdca import datasets, losses, methods, sampling


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
