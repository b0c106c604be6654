"""All methods, by name: those of the paper, `auto`, and those that were registered.

| name         | class         | which rows, how often                                             |
|--------------|---------------|-------------------------------------------------------------------|
| `sdca`       | `SDCA`        | uniform, with replacement                                         |
| `sdca-perm`  | `SDCAPerm`    | a fresh random permutation each epoch                             |
| `iprox-sdca` | `IProxSDCA`   | the fixed distribution p_i ∝ v_i + nλγ, eq. (pstar)               |
| `quartz`     | `Quartz`      | a fixed distribution, with the averaged primal step of QUARTZ     |
| `adasdca`    | `AdaSDCA`     | Algorithm 1: residues and probabilities anew before every step    |
| `adasdca+`   | `AdaSDCAPlus` | Algorithm 2: residues once an epoch, p_i ← p_i/m after each pick  |
| `auto`       | `Auto`        | permutations, adaptive epochs or Newton, as the surveys advise    |
| your own     | `Custom`      | what a function given to `register_method` says                   |
| a rule's     | `AdaSDCAPlus` | the same with `option`, a rule given to `register_rule`           |
"""

from __future__ import annotations

from adasdca.ascent.methods import (
    PICKERS,
    SDCA,
    AdaSDCA,
    AdaSDCAPlus,
    Custom,
    IProxSDCA,
    Quartz,
    SDCAPerm,
)
from adasdca.ascent.sampling import registered
from adasdca.ascent.schedules import Picker
from adasdca.auto.method import Auto
from adasdca.errors import InputError, InPython

__all__ = [
    "METHODS",
    "PICKERS",
    "REGISTERED",
    "SDCA",
    "AdaSDCA",
    "AdaSDCAPlus",
    "Auto",
    "Custom",
    "IProxSDCA",
    "Method",
    "Picker",
    "Quartz",
    "SDCAPerm",
    "get_method",
    "method_names",
]

BuiltIn = SDCA | SDCAPerm | IProxSDCA | Quartz | AdaSDCA | AdaSDCAPlus | Auto
Method = BuiltIn | Custom

METHODS: dict[str, type[BuiltIn]] = {
    cls.name: cls for cls in (SDCA, SDCAPerm, IProxSDCA, Quartz, AdaSDCA, AdaSDCAPlus, Auto)
}
#: What has been registered, in order.
REGISTERED: dict[str, Method] = {}


def method_names() -> list[str]:
    """Return the names of all methods, those of registered methods and rules included."""
    return list(dict.fromkeys([*METHODS, *REGISTERED, *registered()]))


def get_method(method: str | Method) -> Method:
    """Return the method of that name, with default parameters; an object is returned as it is."""
    if not isinstance(method, str) and isinstance(method, Method):
        return method
    name: object = method  # it may be unhashable
    if isinstance(name, str) and name in REGISTERED:
        return REGISTERED[name]
    if isinstance(name, str) and name in METHODS:
        return METHODS[name]()
    if not isinstance(name, str) or name not in registered():
        raise InputError(
            f"method = {method!r} is unknown; choose one of {', '.join(map(repr, method_names()))}",
            InPython(", or pass a method object such as AdaSDCAPlus(m=4)"),
            ".",
        ).about("method")
    return AdaSDCAPlus(option=name)
