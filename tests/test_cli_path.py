"""`adasdca path`: a table, a document or a picture of the solutions along C."""

import json

import matplotlib.image
import numpy as np
import pytest

import adasdca
from bundled import cancer, diabetes, iris
from commands import call, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("path")
    write(place / "cancer.svm", *cancer())
    np.savez(place / "diabetes.npz", X=diabetes()[0], y=diabetes()[1])
    write(place / "iris.svm", *iris())
    return place


def test_the_points_are_those_of_the_library(folder, tmp_path, capsys):
    done = call(
        capsys, "path", folder / "cancer.svm", "--loss", "squared_hinge", "--C", "1", "--C", "0.01",
        "--C", "0.1", "--tol", "1e-8", "--l1-ratio", "0.5", "--json", "--coefficients",
        "--output", tmp_path / "path.png",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    points = json.loads(done.stdout)["points"]
    X, y = cancer()
    path = adasdca.path(
        X, np.where(y == 1, 1.0, -1.0), loss="squared_hinge", Cs=[0.01, 0.1, 1.0], tol=1e-8,
        l1_ratio=0.5, random_state=0, fit_intercept=True,
    )  # fmt: skip
    assert [p["C"] for p in points] == [0.01, 0.1, 1.0]
    np.testing.assert_allclose([p["coef"] for p in points], path.coefs, atol=1e-4)
    assert all(p["relative_gap"] <= 1e-8 for p in points)
    assert [p["nonzeros"] for p in points] == [np.count_nonzero(p["coef"]) for p in points]
    assert all(p["lam"] == pytest.approx(1 / (p["C"] * len(y))) for p in points)
    assert matplotlib.image.imread(tmp_path / "path.png").std() > 0


def test_the_table_has_a_line_for_each_c(folder, capsys):
    options = ["--C", "0.001", "--C", "0.1", "--loss", "huber", "--intercept", "--positive"]
    done = call(capsys, "path", folder / "diabetes.npz", *options)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if "converged" in line]
    assert [line[0] for line in lines] == ["0.001", "0.1"]
    assert "\x1b" not in done.stdout


def test_values_of_c_are_a_list_or_repeated(folder, capsys):
    tables = [
        call(capsys, "path", folder / "cancer.svm", "--loss", "squared", *values).stdout
        for values in (["--C", "0.001,0.1"], ["--C", "0.1", "-c", "0.001"], ["--Cs", "0.001,0.1"])
    ]
    assert tables[0] == tables[1] == tables[2]
    assert tables[0].count("converged") == 2


def test_several_classes_have_a_path_each(folder, tmp_path, capsys):
    arguments = ["path", folder / "iris.svm", "--C", "0.1", "--C", "1"]
    done = call(capsys, *arguments, "--json", "--output", tmp_path / "three.svg")
    assert done.returncode == 0, done.stderr
    points = json.loads(done.stdout)["points"]
    assert [(p["class"], p["C"]) for p in points] == [(k, C) for k in (0, 1, 2) for C in (0.1, 1)]
    X, y = iris()
    one = adasdca.path(
        X, np.where(y == 1, 1.0, -1.0), loss="logistic", Cs=[0.1, 1.0], fit_intercept=True
    )
    np.testing.assert_allclose([p["primal"] for p in points[2:4]],
                               [s.primal for s in one.solutions], rtol=2e-4)  # fmt: skip
    assert (tmp_path / "three.svg").read_text().count("class 1") == 1
    done = call(capsys, *arguments, "--class", "2", "--json")
    assert [p["C"] for p in json.loads(done.stdout)["points"]] == [0.1, 1.0]
    assert "class 1: logistic" in " ".join(call(capsys, *arguments).stdout.split())


def test_what_is_not_reached_is_code_1(folder, capsys):
    done = call(
        capsys, "path", folder / "cancer.svm", "--C", "100", "--max-epochs", "1", "--method", "sdca"
    )
    assert done.returncode == 1
    assert "1 of 1 solutions did not reach" in done.stderr
    assert "epoch limit" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["iris.svm", "--class", "7"], "'7' is none of the classes 0, 1, 2"),
        (["diabetes.npz", "--loss", "squared", "--class", "1"], "no classes in regression"),
        (["cancer.svm", "--C", "0"], "--C: 0 is not allowed"),
        (["cancer.svm", "--C", "1,0"], "--C: 0 is not allowed"),
        (["cancer.svm", "--C", "1;2"], "--C: '1;2' is not a list of numbers"),
        (["cancer.svm", "--points", "0"], "--points"),
        (["cancer.svm", "--loss", "hing"], "smoothed_hinge"),
        (["cancer.svm", "--method", "sgd"], "adasdca+"),
        (["cancer.svm", "--l1-ratio", "1.5"], "--l1-ratio"),
        (["cancer.svm", "--output", "path.doc"], ".png"),
        (["nothing.svm"], "neither a file"),
        ([], "DATA"),
    ],
)
def test_a_wrong_argument_is_named(arguments, message, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    done = call(capsys, "path", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_no_number_is_cut_at_a_narrow_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, to rich
    done = call(capsys, "path", "mushrooms", "--points", "2")
    assert done.returncode == 0
    assert "…" not in done.stdout
    assert "0.0001" in done.stdout
