"""Copies between this process and a device."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cupy as cp
import numpy as np
from numpy.typing import NDArray

#: Bytes of a piece, and threads that copy pieces.
PIECE, COPIERS = 1 << 23, 8


def upload(array: NDArray[Any]) -> Any:
    """Copy an array to the device."""
    out = cp.empty(array.shape, array.dtype)
    _transfer(np.ascontiguousarray(array).reshape(-1), out.reshape(-1), True)
    return out


def download(array: Any) -> NDArray[Any]:
    """Copy an array from the device."""
    out = np.empty(array.shape, array.dtype)
    _transfer(out.reshape(-1), cp.ascontiguousarray(array).reshape(-1), False)
    return out


def _transfer(host: NDArray[Any], there: Any, up: bool) -> None:
    """Copy in pieces, by several threads, through memory that the system does not move."""
    cp.cuda.get_current_stream().synchronize()
    size, device = PIECE // host.itemsize, cp.cuda.Device()
    copiers = max(1, min(COPIERS, -(-len(host) // size)))

    def copy_pieces(first: int) -> None:
        with device, cp.cuda.Stream(non_blocking=True) as stream:
            pinned = np.frombuffer(cp.cuda.alloc_pinned_memory(PIECE), host.dtype, size)
            for begin in range(first * size, len(host), copiers * size):
                part = slice(begin, begin + size)
                piece = pinned[: len(host[part])]
                if up:
                    piece[...] = host[part]
                    there[part].set(piece, stream=stream)
                else:
                    there[part].get(out=piece, stream=stream, blocking=False)
                stream.synchronize()
                if not up:
                    host[part] = piece

    if copiers == 1:
        copy_pieces(0)
        return
    with ThreadPoolExecutor(copiers) as pool:
        list(pool.map(copy_pieces, range(copiers)))
