"""Models on disk: what `fit` writes and `predict` and `certify` read; LIBLINEAR's files as well."""

from adasdca.models._atomic import replacing
from adasdca.models._certify import certify
from adasdca.models._file import load, save
from adasdca.models._liblinear import check_liblinear, read_liblinear, write_liblinear
from adasdca.models._model import Model, ModelError

__all__ = [
    "Model",
    "ModelError",
    "certify",
    "check_liblinear",
    "load",
    "read_liblinear",
    "replacing",
    "save",
    "write_liblinear",
]
