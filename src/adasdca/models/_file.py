"""The format of models: a zip archive of a JSON header and NumPy arrays, without pickle.

| entry           | contents                                                          |
|-----------------|-------------------------------------------------------------------|
| `header.json`   | format, version, loss, regularisation, certificates, provenance   |
| `coef.npy`      | (k, d) doubles                                                    |
| `intercept.npy` | (k,) doubles                                                      |
| `classes.npy`   | (K,) numbers or text; absent for regression                       |
| `lower.npy`, `upper.npy`, `penalty_factors.npy` | (d,) doubles; absent where there are none |

The archive's checksums tell a damaged file. Readers refuse versions they do not know. Version 2 has
more in its header than version 1: whether a model is multinomial, and how columns become features.
"""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.models._liblinear import read_liblinear
from adasdca.models._model import Model, ModelError, UnknownLoss
from adasdca.problem.losses import LOSSES, Loss, get_loss
from adasdca.storage import Archive, FileError, guarded, write_whole

FORMAT = "adasdca-model"
VERSION = 2

#: Fields of a model that the header holds as they are.
_PLAIN = (
    "lam",
    "l1_ratio",
    "bias",
    "fit_intercept",
    "positive",
    "certificates",
    "provenance",
    "feature_names",
)
#: Those that version 1 did not have.
_NEWER = ("multinomial", "columns")
#: Arrays that need not be there.
_OPTIONAL = ("classes", "lower", "upper", "penalty_factors")

_DAMAGED = "is damaged or cut short ({error}); copy it again or fit the model again."


def save(model: Model, path: str | Path) -> None:
    """Write a model; a file of that name is replaced in one step, once the new one is complete.

    Parameters
    ----------
    model : Model
        The model. Its loss must be one that has a name.
    path : str or Path
        Where to.
    """
    write_whole(path, as_bytes(model))


def as_bytes(model: Model) -> bytes:
    """Return the contents of the file of a model; see `save`."""
    if not isinstance(model, Model):
        raise TypeError(
            f"model is of type {type(model).__name__}, and not an adasdca.models.Model; keep "
            "estimators by pickle or joblib."
        )
    if LOSSES.get(model.loss.name) is not type(model.loss):  # an UnknownLoss as well
        raise ModelError(
            f"{model.loss!r} is not one of the losses of adasdca.losses, so that a reader of the "
            "file would not know it; store coef and intercept by other means."
        )
    weight = None if model.class_weight is None else model.class_weight.tolist()
    header = {
        "format": FORMAT,
        "version": VERSION,
        "loss": {"name": model.loss.name, **_parameters(model.loss)},
        "class_weight": weight,
        **{name: getattr(model, name) for name in (*_PLAIN, *_NEWER)},
    }
    text = json.dumps(header, indent=1, allow_nan=False)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "header.json", text.encode())
        _add(archive, "coef.npy", _as_npy(model.coef))
        _add(archive, "intercept.npy", _as_npy(model.intercept))
        if model.classes is not None:
            labels = model.classes
            labels = labels.astype(str) if labels.dtype.kind in "OUS" else labels
            _add(archive, "classes.npy", _as_npy(labels))
        lower, upper = model.bounds or (None, None)
        factors = model.penalty_factors
        for name, array in (("lower", lower), ("upper", upper), ("penalty_factors", factors)):
            if array is not None:
                _add(archive, f"{name}.npy", _as_npy(array))
    return buffer.getvalue()


def load(path: str | Path) -> Model:
    """Read a model written by `save`, or by LIBLINEAR.

    Parameters
    ----------
    path : str or Path
        The file. Nothing in it is executed.

    Returns
    -------
    Model
    """
    with open(path, "rb") as file:
        head = file.read(4)
    if head.startswith(b"solv"):
        try:
            return read_liblinear(path)
        except ModelError as error:
            raise _of_file(path, error) from error
    if not head.startswith(b"PK"):
        raise ModelError(
            f"{path} is no model: it is neither of `adasdca fit` nor a text file of LIBLINEAR; "
            "name the file that --model wrote."
        )
    try:
        with Archive(path, remedy=_DAMAGED) as archive:
            if "header.json" not in archive.names:
                raise ModelError(f"{path} is no model; name a file that `adasdca fit` wrote.")
            text = archive.read("header.json")
            with guarded(path, _DAMAGED):
                header = json.loads(text)
            _check_version(path, header)
            arrays = {
                name: archive.array(f"{name}.npy")
                for name in ("coef", "intercept", *_OPTIONAL)
                if name not in _OPTIONAL or f"{name}.npy" in archive.names
            }
        with guarded(path, _DAMAGED):
            return _assembled(arrays, header)
    except FileError as error:
        raise _of_file(path, error) from error


def _of_file(path: str | Path, error: FileError) -> ModelError:
    """Return an error that names the file, which one over the model in it does not."""
    words = str(error)
    return ModelError(words if str(path) in words else f"{path}: {words}")


def _check_version(path: str | Path, header: Any) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelError(f"{path} is no model of adasdca; name a file that `adasdca fit` wrote.")
    version = header.get("version")
    if version not in (1, VERSION) or isinstance(version, bool):
        raise ModelError(
            f"{path} has version {version} of the format; this adasdca reads versions 1 to "
            f"{VERSION}. Install the adasdca that wrote it, or a newer one."
        )


def _assembled(arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> Model:
    for name in arrays.keys() - {"classes"}:
        if arrays[name].dtype.kind not in "biuf":
            raise ModelError(f"{name} is of {arrays[name].dtype}; it must be real numbers.")
    weight = header["class_weight"]
    return Model(
        coef=arrays["coef"].astype(np.float64, copy=False),
        intercept=arrays["intercept"].astype(np.float64, copy=False),
        classes=arrays.get("classes"),
        loss=_loss(dict(header["loss"]), "classes" in arrays),
        class_weight=None if weight is None else np.array(weight, dtype=np.float64),
        bounds=(arrays["lower"], arrays["upper"]) if "lower" in arrays else None,
        penalty_factors=arrays.get("penalty_factors"),
        **{name: header[name] for name in _PLAIN},
        **{name: header[name] for name in _NEWER if name in header},
    )


def _loss(given: dict[str, Any], classes: bool) -> Loss:
    """Return the loss of a header; one that is not known here is enough for predictions."""
    name = given.pop("name")
    if not isinstance(name, str) or name in LOSSES:
        return get_loss(name, **given)
    return UnknownLoss(name, "classification" if classes else "regression")


def _parameters(loss: Loss) -> dict[str, Any]:
    return {f.name: getattr(loss, f.name) for f in dataclasses.fields(loss)}  # type: ignore[arg-type]


def _add(archive: zipfile.ZipFile, name: str, contents: bytes) -> None:
    # A fixed date: the same model gives the same bytes.
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, contents)


def _as_npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()
