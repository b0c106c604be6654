"""LIBLINEAR's text format of models, read and written.

With two classes the file has one vector w, whose positive scores mean the class named first; with
more, a column for each class in the order of `label`. Where ``bias`` is B ≥ 0, the last row is the
coefficient of a constant feature of value B. An intercept that is not penalised is written as that
of bias 1, as LIBLINEAR itself does (its option -R). The file tells neither C nor the width ε of
support vector regression.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.models._model import Model, ModelError
from adasdca.problem.losses import (
    EpsilonInsensitive,
    Hinge,
    Logistic,
    Loss,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from adasdca.storage import write_whole

Array = NDArray[np.float64]

#: LIBLINEAR's -s: the solver_type, the loss, and whether the regulariser is the L1 norm.
SOLVERS: dict[int, tuple[str, type[Loss], bool]] = {
    0: ("L2R_LR", Logistic, False),
    1: ("L2R_L2LOSS_SVC_DUAL", SquaredHinge, False),
    2: ("L2R_L2LOSS_SVC", SquaredHinge, False),
    3: ("L2R_L1LOSS_SVC_DUAL", Hinge, False),
    5: ("L1R_L2LOSS_SVC", SquaredHinge, True),
    6: ("L1R_LR", Logistic, True),
    7: ("L2R_LR_DUAL", Logistic, False),
    11: ("L2R_L2LOSS_SVR", SquaredEpsilonInsensitive, False),
    12: ("L2R_L2LOSS_SVR_DUAL", SquaredEpsilonInsensitive, False),
    13: ("L2R_L1LOSS_SVR_DUAL", EpsilonInsensitive, False),
}
READ = {name: (loss, lasso) for name, loss, lasso in SOLVERS.values()}
#: Of two names the one of the dual method is written.
WRITTEN = {
    (loss, lasso): name
    for name, loss, lasso in sorted(SOLVERS.values(), key=lambda each: each[0].endswith("DUAL"))
}


def write_liblinear(model: Model, path: str | Path) -> None:
    """Write a model for LIBLINEAR's `predict`; all digits are kept.

    Parameters
    ----------
    model : Model
        Its loss must be one of LIBLINEAR's, its labels integers. Of the regulariser the file says
        no more than that it is not the L1 norm.
    path : str or Path
        Where to; a file of that name is replaced in one step.
    """
    write_whole(path, liblinear_bytes(model))


def liblinear_bytes(model: Model) -> bytes:
    """Return the contents of the file of a model; see `write_liblinear`."""
    solver = check_liblinear(model.loss, model.classes, model.l1_ratio)
    columns = model.coef.T
    bias = model.bias
    if bias < 0 and model.intercept.any():
        bias = 1.0
    if bias >= 0:
        columns = np.vstack([columns, model.intercept / bias if bias else 0 * model.intercept])
    lines = [f"solver_type {solver}"]
    if model.classes is None:
        lines.append("nr_class 2")  # so it does for regression
    else:
        labels = _integers(model.classes)
        # Of two classes ours is the second that has the positive scores, LIBLINEAR's is the first.
        labels = labels[::-1] if len(labels) == 2 else labels
        lines += [f"nr_class {len(labels)}", f"label {' '.join(map(str, labels))}"]
    lines += [f"nr_feature {model.n_features}", f"bias {bias:.17g}", "w"]
    buffer = io.BytesIO(("\n".join(lines) + "\n").encode("ascii"))
    buffer.seek(0, io.SEEK_END)
    np.savetxt(buffer, columns, fmt="%.17g", delimiter=" ", newline=" \n")
    return buffer.getvalue()


def check_liblinear(loss: Loss, classes: NDArray[Any] | None, l1_ratio: float = 0.0) -> str:
    """Return the solver_type of such a model, or refuse what the format cannot say.

    Parameters
    ----------
    loss : Loss
        The loss.
    classes : array or None
        The labels, None for regression.
    l1_ratio : float, default 0.0
        The share of the L1 norm.
    """
    solver = WRITTEN.get((type(loss), l1_ratio == 1))
    if solver is None:
        names = ", ".join(dict.fromkeys(repr(known.name) for known, _ in WRITTEN))
        raise ModelError(
            f"LIBLINEAR has no name for the loss {loss.name!r}, only for {names}; "
            "write the model in adasdca's own format."
        )
    if classes is not None:
        _integers(classes)
    return solver


def read_liblinear(path: str | Path, *, epsilon: float = 0.1) -> Model:
    """Read a model that LIBLINEAR's `train` wrote.

    Parameters
    ----------
    path : str or Path
        The file.
    epsilon : float, default 0.1
        ε of support vector regression (LIBLINEAR's -p), which the file does not tell.

    Returns
    -------
    Model
        With `lam` None: the file does not tell C either.
    """
    text = Path(path).read_text("utf-8", errors="replace")
    lines = iter(enumerate(text.splitlines(), 1))
    header = _header(path, lines)
    solver = header["solver_type"]
    if solver not in READ:
        raise ModelError(
            f"{path}: solver_type {solver} cannot be used here; models of {', '.join(READ)} can."
        )
    kind, lasso = READ[solver]
    regression = kind.kind == "regression"
    d, bias = _integer(path, header, "nr_feature"), _number(path, header, "bias")
    labels = None if regression else _labels(path, header)
    k = 1 if labels is None or len(labels) == 2 else len(labels)
    if (d + (bias >= 0)) * k > len(text):  # no number takes less than a character
        raise ModelError(
            f"{path} is cut short: nr_feature {d} and {k} column(s) ask for more coefficients than "
            "it can hold; copy or write it again."
        )
    w = _matrix(path, lines, d + (bias >= 0), k)
    if labels is not None and len(labels) == 2:
        labels = labels[::-1]
    with np.errstate(over="ignore", invalid="ignore"):  # the model refuses what is not finite
        intercept = bias * w[d] if bias >= 0 else np.zeros(k)
    return Model(
        coef=np.ascontiguousarray(w[:d].T),
        intercept=intercept,
        classes=labels,
        loss=kind(epsilon=epsilon) if regression else kind(),  # type: ignore[call-arg]
        lam=None,
        l1_ratio=1.0 if lasso else 0.0,
        bias=bias if bias >= 0 else -1.0,
        provenance={"source": "LIBLINEAR", "solver_type": solver},
    )


def _header(path: str | Path, lines: Iterator[tuple[int, str]]) -> dict[str, str]:
    header: dict[str, str] = {}
    for number, line in lines:
        key, _, value = line.strip().partition(" ")
        if key == "w":
            missing = {"solver_type", "nr_class", "nr_feature", "bias"} - header.keys()
            if missing:
                raise ModelError(
                    f"{path} is no model of LIBLINEAR: it lacks {', '.join(sorted(missing))}."
                )
            return header
        if key not in ("solver_type", "nr_class", "label", "nr_feature", "bias", "rho"):
            raise ModelError(f"{path}, line {number}: {line[:60]!r} is not understood.")
        header[key] = value.strip()
    raise ModelError(f"{path} is cut short: it has no coefficients; copy or write it again.")


def _labels(path: str | Path, header: dict[str, str]) -> NDArray[Any]:
    count = _integer(path, header, "nr_class")
    try:
        words = header.get("label", "").split()
        labels = np.array([int(word) for word in words], dtype=np.int64)
    except (ValueError, OverflowError):
        labels = np.empty(0, dtype=np.int64)
    if len(labels) != count or count < 2 or len(np.unique(labels)) != count:
        raise ModelError(
            f"{path}: label {header.get('label', '')!r} does not name nr_class = {count} different "
            "classes, two at least; train the model again."
        )
    return labels


def _matrix(path: str | Path, lines: Iterator[tuple[int, str]], rows: int, columns: int) -> Array:
    w = np.empty((rows, columns))
    filled = 0
    for number, line in lines:
        if not line.strip():
            continue
        try:
            values = [float(word) for word in line.split()]
        except ValueError as error:
            raise ModelError(f"{path}, line {number}: {line[:60]!r} are no numbers.") from error
        if len(values) != columns or filled == rows:
            raise ModelError(
                f"{path}, line {number}: {rows} lines of {columns} numbers belong after w, found "
                f"{line[:60]!r}; write the model again."
            )
        w[filled] = values
        filled += 1
    if filled < rows:
        raise ModelError(
            f"{path} is cut short: it has {filled} of {rows} lines of coefficients; copy or write "
            "it again."
        )
    return w


def _integer(path: str | Path, header: dict[str, str], key: str) -> int:
    value = _number(path, header, key)
    if value != int(value) or value < 1:
        raise ModelError(f"{path}: {key} {header[key]!r} is not an integer above 0.")
    return int(value)


def _number(path: str | Path, header: dict[str, str], key: str) -> float:
    try:
        value = float(header[key])
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise ModelError(f"{path}: {key} {header[key]!r} is not a number.")
    return value


def _integers(classes: NDArray[Any]) -> list[int]:
    if classes.dtype.kind not in "biuf" or not (classes == np.floor(classes)).all():
        raise ModelError(
            f"LIBLINEAR's labels are integers, but the classes are "
            f"{', '.join(str(label) for label in classes[:5])}; number them, or write the model in "
            "adasdca's own format."
        )
    return [int(label) for label in classes]
