"""Models on disk: what `fit` writes and `predict` and `certify` read; LIBLINEAR's files as well."""

from adasdca.models._certify import certify_model as certify
from adasdca.models._file import as_bytes, load, save
from adasdca.models._liblinear import (
    check_liblinear,
    liblinear_bytes,
    read_liblinear,
    write_liblinear,
)
from adasdca.models._model import Model, ModelError

__all__ = [
    "Model",
    "ModelError",
    "as_bytes",
    "certify",
    "check_liblinear",
    "liblinear_bytes",
    "load",
    "read_liblinear",
    "save",
    "write_liblinear",
]
