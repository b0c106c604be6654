"""`adasdca train`: LIBLINEAR's options, files and words."""

import numpy as np
import pytest
import scipy.sparse as sp

from adasdca import models
from bundled import cancer, diabetes, iris
from commands import call, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("liblinear")
    write(place / "cancer", *cancer())
    write(place / "iris", *iris())
    write(place / "diabetes", *diabetes())
    return place


@pytest.mark.parametrize(
    ("options", "data", "rows"),
    [
        ("-s 0 -c 0.5 -B 1", "cancer", cancer),
        ("-s 1 -w1 2 -w0 0.5", "cancer", cancer),
        ("-s 3 -c 0.01", "cancer", cancer),
        ("-s 6 -c 0.1", "cancer", cancer),
        ("-s 1 -B 2", "iris", iris),
        ("-s 11 -p 0.3 -c 0.1", "diabetes", diabetes),
    ],
)
def test_it_fits_what_liblinear_fits(options, data, rows, folder, tmp_path, capsys):
    liblinear = pytest.importorskip("liblinear.liblinearutil")
    X, y = rows()
    theirs = liblinear.train(y.tolist(), sp.csr_matrix(X), f"{options} -e 1e-9 -q")
    liblinear.save_model(str(tmp_path / "theirs"), theirs)
    path = tmp_path / "ours"
    done = call(capsys, "train", *options.split(), "-e", "1e-9", folder / data, path)
    assert done.returncode == 0, done.stderr
    ours, other = models.load(path), models.load(tmp_path / "theirs")
    # LIBLINEAR's classes are in the order of their first rows.
    sign, order = 1.0, [0]
    if len(other.coef) > 1:
        order = np.argsort(other.classes)
    elif other.classes is not None and other.classes[0] > other.classes[1]:
        sign = -1.0
    for name in ("coef", "intercept"):
        theirs = sign * getattr(other, name)[order]
        np.testing.assert_allclose(getattr(ours, name), theirs, rtol=2e-3, atol=2e-4)


def test_the_model_has_the_name_of_the_data(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call(capsys, "train", "-q", folder / "cancer")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    lines = (tmp_path / "cancer.model").read_text().splitlines()
    assert lines[:2] == ["solver_type L2R_L2LOSS_SVC_DUAL", "nr_class 2"]


def test_cross_validation_and_the_best_c(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("adasdca.cli.liblinear.GRID", [0.01, 1.0])
    done = call(capsys, "train", "-v", "3", folder / "cancer")
    assert done.stdout.startswith("Cross Validation Accuracy = 9")
    done = call(capsys, "train", "-C", "-s", "0", folder / "cancer")
    assert done.stdout.startswith("Best C = ")
    for option, words in (("-v", "Cross Validation Mean squared error = "), ("-C", "CV MSE = ")):
        value = ["3"] if option == "-v" else []
        done = call(capsys, "train", "-s", "11", option, *value, folder / "diabetes")
        assert float(done.stdout.partition(words)[2]) > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-s", "4"], "the support vector machine of Crammer and Singer"),
        (["-s", "21"], "one-class"),
        (["-s", "8"], "choose one of 0, 1, 2, 3, 5, 6, 7, 11, 12, 13"),
        (["-x", "1"], "none of LIBLINEAR's -s -c -p"),
        (["-m", "4"], "--threads"),
        (["-b", "1"], "at prediction: predict -b 1"),
        (["-c", "0"], "choose a number above 0"),
        (["-c", "much"], "not a finite number"),
        (["-R"], "wants -B 1"),
        (["-v", "1"], "choose 2 or more"),
        (["-w7", "2"], "for -w7: '7' is none of the classes 0, 1"),
        (["-w1", "-2"], "for -w1: -2 is not allowed"),
        (["-B", "0"], "a constant feature of 0 is none"),
    ],
)
def test_options_that_differ_are_explained(arguments, message, folder, tmp_path, capsys):
    done = call(capsys, "train", *arguments, folder / "cancer", tmp_path / "m")
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "m").exists()


def test_options_come_first(folder, capsys):
    done = call(capsys, "train", folder / "cancer", "-c", "2")
    assert done.returncode == 2
    assert "options come before the names of files" in done.stderr


@pytest.mark.parametrize(("word", "message"), [("-x", "none of LIBLINEAR's"), ("-c", "is missing")])
def test_the_last_word_is_an_option(word, message, capsys):
    done = call(capsys, "train", word)
    assert done.returncode == 2
    assert message in done.stderr
