"""Columns as a data frame of pandas or polars, for those who have one of them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

LIBRARIES = ("pandas", "polars")


def to_frame(columns: Mapping[str, Any], library: str) -> Any:
    """Return columns of the same length as a data frame of that library."""
    if library not in LIBRARIES:
        raise ValueError(
            f"library = {library!r} is unknown; choose one of {', '.join(map(repr, LIBRARIES))}."
        )
    try:
        module = import_module(library)
    except ImportError as error:
        raise ImportError(
            f"to_frame(library={library!r}) needs {library}; install it with `pip install "
            f"{library}`, or choose the other one of {' and '.join(LIBRARIES)}."
        ) from error
    return module.DataFrame(dict(columns))


def as_html(title: str, figures: Mapping[str, str], note: str = "") -> str:
    """Return a small table of names and values for a notebook."""
    from html import escape

    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td>{escape(value)}</td></tr>"
        for name, value in figures.items()
    )
    last = f"<p>{escape(note)}</p>" if note else ""
    return f"<table><caption style='text-align:left'>{escape(title)}</caption>{rows}</table>{last}"
