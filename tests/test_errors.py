"""Errors about arguments: their message, in the words of Python and of others."""

import pickle

import numpy as np
import pytest

from adasdca import files, path, solve
from adasdca.errors import Argument, InputError, InPython, counted
from adasdca.methods import get_method
from adasdca.problem.losses import get_loss


def as_option(argument):
    return f"<{argument.name}>"


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        (Argument("drop"), "drop"),
        (Argument("drop", ...), "drop="),
        (Argument("zero_based", True), "zero_based=True"),
        (Argument("target", "it's"), '''target="it's"'''),
    ],
)
def test_an_argument_is_told_as_it_is_passed(argument, text):
    assert str(argument) == text


def test_an_error_has_two_wordings_and_survives_pickling():
    error = InputError("no ", Argument("loss"), InPython(" object"), ".").about("loss")
    for each in (error, pickle.loads(pickle.dumps(error))):
        assert isinstance(each, ValueError)
        assert str(each) == "no loss object."
        assert each.worded(as_option) == "no <loss>."
        assert each.argument == "loss"


@pytest.mark.parametrize("get", [get_loss, get_method])
def test_advice_for_python_is_left_out_elsewhere(get):
    with pytest.raises(InputError, match="object such as") as raised:
        get("unheard")
    assert "object" not in raised.value.worded(as_option)
    assert raised.value.worded(as_option).endswith(".")


def test_a_file_is_refused_in_the_words_of_the_caller(tmp_path):
    path = tmp_path / "zero.svm"
    path.write_text("1 0:1\n")
    with pytest.raises(InputError) as raised:
        files.read(path)
    assert "zero_based=True" in str(raised.value)
    assert "read it with <zero_based>." in raised.value.worded(as_option)


def test_a_method_that_does_not_fit_is_named():
    with pytest.raises(InputError, match="smooth loss") as raised:
        solve([[1.0], [2.0]], [1, -1], loss="hinge", lam=1.0, method="quartz")
    assert raised.value.argument == "method"


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [(1, "row", "1 row"), (2, "row", "2 rows"), (0, "class", "0 classes"), (1, "class", "1 class")],
)
def test_what_is_counted_agrees_with_its_number(count, noun, text):
    assert counted(count, noun) == text


def test_one_is_one_in_what_people_read():
    X, y = np.ones((2, 1)), np.array([-1.0, 1.0])
    found = path(X, y, loss="logistic", Cs=[1.0])
    assert repr(found).startswith("Path(1 solution,")
    with pytest.raises(ValueError, match="X has 1 row:"):
        solve(X[:1], y, loss="logistic", lam=1.0)
