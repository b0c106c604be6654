"""The text of the kernels. Losses are written once, in the core: here is that very text."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "kernels"


def loss_source() -> str:
    """Return the losses of the core: its header's text between the concept and the checks."""
    text = (FOLDER / "loss.hpp").read_text(encoding="utf-8")
    body = text[text.index("struct PiecewiseQuadratic") : text.index("static_assert(Loss<")]
    return body.replace("std::", "device::")


def kernel_source(name: str) -> str:
    """Return the source of a file of kernels."""
    text = (FOLDER / f"{name}.cu").read_text(encoding="utf-8")
    losses = (FOLDER / "losses.cuh").read_text(encoding="utf-8")
    text = text.replace('#include "losses.cuh"', losses)
    return text.replace('#include "loss.hpp"', loss_source())
