"""Losses and methods of one's own travel with an estimator to other processes.

A name is registered in one process. Where an estimator is pickled, what was registered goes along
by value, and where it is unpickled the names that are not known there are registered.
"""

from __future__ import annotations

import pickle
import sys
from typing import Any

try:  # joblib 1.6 and later depend on it
    import cloudpickle
except ImportError:  # earlier ones bring it along
    from joblib.externals import cloudpickle

from adasdca.ascent.sampling import BUILT_IN, RULES
from adasdca.methods import PICKERS, REGISTERED
from adasdca.problem.losses import LOSSES
from adasdca.registration import BUILT_IN_LOSSES

_BOOKS: dict[str, dict[str, Any]] = {
    "losses": LOSSES,
    "methods": REGISTERED,
    "pickers": PICKERS,
    "rules": RULES,
}


def packed() -> bytes | None:
    """Return what was registered in this process, None if that is nothing."""
    own = {
        book: {
            name: thing
            for name, thing in entries.items()
            if name not in BUILT_IN_LOSSES and name not in BUILT_IN
        }
        for book, entries in _BOOKS.items()
    }
    whole = {book: entries for book, entries in own.items() if entries}
    if not whole:
        return None
    # Plug-ins are modules that no other process can import by name.
    modules = [m for name, m in list(sys.modules.items()) if name.startswith("adasdca_plugin_")]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(whole))
    except (TypeError, AttributeError, pickle.PicklingError):
        return None  # it holds what cannot travel: the name then has to be registered there
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def unpack(contents: bytes) -> None:
    """Register what is not known in this process."""
    for book, entries in pickle.loads(contents).items():
        for name, thing in entries.items():
            _BOOKS[book].setdefault(name, thing)
