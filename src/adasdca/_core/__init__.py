"""The compiled core, in the best version that this processor can run.

The core is built several times, once per x86-64 level: ``_v2`` (SSE4.2, the baseline), ``_v3``
(AVX2 and FMA) and ``_v4`` (AVX-512); elsewhere once, as ``_base``. All versions have the same
functions, which this package re-exports, and their results agree up to rounding. ``_processor``
runs everywhere, and says which of them do.

The environment variable ``ADASDCA_ISA`` (``v2``, ``v3`` or ``v4``) forces a version. `LEVEL` is the
name of the version in use.
"""

import importlib
import importlib.util
import os
from types import ModuleType

from adasdca._core._interface import DIGEST

_VARIABLE = "ADASDCA_ISA"
_LEVELS = ("v2", "v3", "v4")


def _built() -> list[str]:
    """Levels that this installation has, lowest first."""
    return [level for level in ("base", *_LEVELS) if _exists(level)]


def _exists(name: str) -> bool:
    return importlib.util.find_spec(f"{__name__}._{name}") is not None


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}._{name}")


def supported_level() -> int:
    """Return the x86-64 level of this processor; 0 elsewhere."""
    return int(_module("processor").supported_level())


def _check(current: bool) -> None:
    """Refuse a core that was compiled from sources with another interface."""
    if not current:
        raise ImportError(
            "the compiled core of adasdca is not of the same age as its Python sources. "
            "Run `make build` in the checkout, or install the package anew."
        )


def _choose(forced: str | None) -> str:
    """Return the level to use: the one forced, or else the highest that runs here."""
    built = _built()
    if not built:
        raise ImportError(
            "adasdca is not compiled: none of its extension modules was found. "
            "Run `make build` in a checkout, or install a wheel with `pip install adasdca`."
        )
    _check(_exists("processor"))
    supported = supported_level()
    usable = [level for level in built if level == "base" or int(level[1:]) <= supported]
    if not forced:
        if not usable:
            raise ImportError(
                f"adasdca was compiled for processors of level x86-64-{built[0]}, which this one "
                "is not. Run `make build LEVELS=native` in the checkout, or install a wheel."
                if supported >= 2
                else "adasdca needs a processor of level x86-64-v2 (SSE4.2), which this one is not."
            )
        return usable[-1]
    if forced not in _LEVELS:
        raise ImportError(
            f"{_VARIABLE}={forced!r} is not an instruction-set level; "
            f"choose one of {', '.join(_LEVELS)}, or unset it."
        )
    if forced not in built:
        raise ImportError(
            f"{_VARIABLE}={forced} was asked for, but this build of adasdca has only "
            f"{', '.join(built)}."
        )
    if forced not in usable:
        raise ImportError(
            f"{_VARIABLE}={forced} was asked for, but this processor supports only "
            f"{', '.join(usable) or 'lower levels'}."
        )
    return forced


LEVEL: str = _choose(os.environ.get(_VARIABLE))
_check(getattr(_module(LEVEL), "_interface", None) == DIGEST)
_public = {name: value for name, value in vars(_module(LEVEL)).items() if not name.startswith("_")}
globals().update(_public)
__all__ = ["LEVEL", "supported_level", *_public]
