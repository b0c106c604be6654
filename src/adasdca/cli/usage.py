"""Errors about what a command was given: the argument, the value and what to do."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from adasdca import plotting
from adasdca.errors import Argument, InputError
from adasdca.storage import check_writable

#: Arguments of the library that have another name here.
_OPTIONS = {
    "X": "DATA",
    "y": "DATA",
    "n_features": "--features",
    "lenient": "--ignore-extra",
    "fit_intercept": "--intercept",
    "folder": "FOLDER",
}

#: Parameters of scikit-learn, by the options that do the same.
_ELSEWHERE = {
    "--alpha": "--lam",
    "--class-weight": "--weight",
    "--max-iter": "--max-epochs",
    "--n-jobs": "--threads",
    "--penalty": "--l1-ratio",
    "--random-state": "--seed",
    "--solver": "--method",
}


class _Command:
    """The options of the command that runs; none of a group of commands."""

    options: frozenset[str] = frozenset()


def set_options(command: Any) -> None:
    """Name the options of this command as such, and others as those of `adasdca fit`."""
    params = [] if hasattr(command, "commands") else command.params
    _Command.options = frozenset(name for each in params for name in each.opts)


@contextmanager
def usage_errors(hint: str | None = None) -> Iterator[None]:
    """Turn errors of the library into errors about an argument or option."""
    try:
        yield
    except (ValueError, ImportError, FileNotFoundError, IsADirectoryError) as error:
        raise as_usage_error(error, hint) from error


def as_usage_error(error: Exception, hint: str | None = None) -> Exception:
    """Return the error that ends a command, for one of the library's, in the words of commands."""
    if not isinstance(error, InputError):
        return usage_error(str(error), hint)
    if error.argument is not None:
        hint = option_named(error.argument)
    return usage_error(error.worded(_named), hint)


def option_named(argument: str) -> str:
    """Return the option that stands for an argument of the library."""
    return _OPTIONS.get(argument, "--" + argument.replace("_", "-"))


def _named(argument: Argument) -> str:
    """Return an option as it is typed, with its value."""
    option = option_named(argument.name)
    if option.startswith("--") and _Command.options and option not in _Command.options:
        return f"{option} of `adasdca fit`"
    if argument.value is False:
        return f"--no-{option.removeprefix('--')}"
    if argument.value in (None, True, ...):
        return option
    return f"{option} {argument.value}"


def usage_error(text: str, hint: str | None = None) -> Exception:
    """Return the error that ends a command with a usage line, the argument and the text."""
    words = " ".join(text.split()).replace("/dev/stdin", "standard input")
    return typer.BadParameter(words, param_hint=hint)


def check_positive(option: str, value: float | None) -> None:
    """Refuse a number that is not finite and above 0."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise usage_error(f"{value:g} is not allowed; choose a finite number above 0.", option)


def check_finite(value: float | None) -> float | None:
    """Refuse infinity and NaN: a callback of options whose range is checked already."""
    if value is not None and not math.isfinite(value):
        raise usage_error(f"{value:g} is not allowed; choose a finite number.")
    return value


def check_output(path: Path, option: str) -> None:
    """Refuse a file that has no place to be, before anything is computed."""
    try:
        with usage_errors(option):
            check_writable(path)
    except OSError as error:
        raise type(error)(f"{path} cannot be written: {error.strerror or error}") from error


def check_picture(path: Path, option: str) -> None:
    """Refuse a picture of an unknown kind, or one that has no place to be."""
    with usage_errors(option):
        plotting.check_path(path)
    check_output(path, option)


def os_message(error: OSError) -> str:
    """Return what is wrong with a file, without the number that Python adds."""
    if error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def suggest_option(error: Any) -> None:
    """Say what an option of scikit-learn is called here, and which command knows LIBLINEAR's."""
    option = str(getattr(error, "option_name", ""))
    if _ELSEWHERE.get(option) in _Command.options:
        error.possibilities = [_ELSEWHERE[option]]
    if re.fullmatch(r"-[secpBRwvCnq].*", option):
        error.message = f"{error.message}; LIBLINEAR's options are those of `adasdca train`."


def suggest_model(error: Any) -> None:
    """Say that the file of the model is named with --model, if `fit` was given a second name."""
    of_fit = error.ctx is not None and error.ctx.info_name == "fit"
    if of_fit and "unexpected extra argument" in error.message:
        error.message = f"{error.message}; the file for the model is named with --model."


def add_value(error: typer.BadParameter) -> None:
    """Put the value into an error of typer's, which in its newer versions says the rule only."""
    details = getattr(error.__cause__, "errors", None)
    if callable(details):
        first = details()[0]
        rule = first["msg"]
        error.message = f"{first['input']} is not allowed: {rule[0].lower()}{rule[1:]}."
