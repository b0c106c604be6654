"""`adasdca predict` and `adasdca certify`: models against data."""

import gzip
import json

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

import adasdca
from adasdca import models
from bundled import cancer, diabetes, iris
from commands import call, run, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("models")
    write(place / "cancer.svm", *cancer())
    write(place / "diabetes.svm", *diabetes())
    X, y = iris()
    columns = {f"x{k}": X[:, k] for k in range(4)}
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    pl.DataFrame(columns | {"label": names}).write_csv(place / "iris.csv")
    return place


@pytest.fixture
def fit(folder, tmp_path, capsys):
    def make(data, *options):
        done = call(capsys, "fit", folder / data, "--model", tmp_path / "m", *options)
        assert done.returncode == 0, done.stderr
        return tmp_path / "m"

    return make


def test_predictions_come_one_a_line(fit, folder, capsys):
    path = fit("cancer.svm")
    done = call(capsys, "predict", path, folder / "cancer.svm")
    assert done.returncode == 0
    X, y = cancer()
    expected = models.load(path).predict(X)
    assert done.stdout.splitlines() == [str(int(p)) for p in expected]
    right = int((expected == y).sum())
    assert f"({right} of {len(y)})" in done.stderr


def test_predictions_of_text_labels_and_their_scores(fit, folder, capsys):
    path = fit("iris.csv")
    done = call(capsys, "predict", path, folder / "iris.csv", "--scores")
    model, (X, _) = models.load(path), iris()
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == model.predict(X).tolist()
    scores = np.array([[float(s) for s in line[1:]] for line in lines])
    np.testing.assert_array_equal(scores, model.decision(X))
    document = json.loads(
        call(capsys, "predict", path, folder / "iris.csv", "--scores", "--json").stdout
    )
    assert document["predictions"] == model.predict(X).tolist()
    assert document["classes"] == ["setosa", "versicolor", "virginica"]
    np.testing.assert_array_equal(document["scores"], scores)


def test_predictions_of_numbers_into_a_file(fit, folder, tmp_path, capsys):
    path = fit("diabetes.svm", "--loss", "squared")
    done = call(capsys, "predict", path, folder / "diabetes.svm", "-o", tmp_path / "out")
    assert done.stdout == ""
    X, y = diabetes()
    predictions = np.loadtxt(tmp_path / "out")
    np.testing.assert_allclose(predictions, models.load(path).predict(X), rtol=1e-12, atol=1e-14)
    r2 = 1 - np.sum((y - predictions) ** 2) / np.sum((y - y.mean()) ** 2)
    assert f"R2 {r2:.4g}" in done.stderr


def test_json_into_a_file(fit, folder, tmp_path, capsys):
    arguments = ["predict", fit("iris.csv"), folder / "iris.csv", "--json"]
    shown = call(capsys, *arguments)
    done = call(capsys, *arguments, "-o", tmp_path / "out")
    assert done.stdout == ""
    assert (tmp_path / "out").read_text() == shown.stdout


@pytest.mark.parametrize("command", ["predict", "certify"])
def test_names_in_the_wrong_order_are_told(command, fit, folder, capsys):
    model = fit("cancer.svm")
    done = call(capsys, command, folder / "cancer.svm", model)
    assert done.returncode == 2
    assert "cancer.svm is no model, but" in done.stderr
    assert "the model comes first" in done.stderr
    done = call(capsys, command, folder / "cancer.svm", folder / "cancer.svm")
    assert "neither of `adasdca fit` nor a text file of LIBLINEAR" in done.stderr


def test_three_names_are_in_the_order_of_liblinear(fit, folder, tmp_path, capsys):
    model, out = fit("cancer.svm"), tmp_path / "out"
    done = call(capsys, "predict", model, folder / "cancer.svm", out)
    assert (done.returncode, out.exists()) == (2, False)
    assert "DATA MODEL OUTPUT; ours is MODEL DATA -o OUT" in done.stderr


def test_a_folder_is_neither_model_nor_output(fit, folder, tmp_path, capsys):
    rows = folder / "iris.csv"
    for arguments in ([tmp_path, rows], [fit("iris.csv"), rows, "--output", tmp_path]):
        done = call(capsys, "predict", *arguments)
        assert done.returncode == 2
        assert "is a folder; name a file in it" in done.stderr


def test_targets_of_another_kind_are_told_in_the_words_of_certify(fit, folder, tmp_path, capsys):
    (tmp_path / "new.svm").write_text("0.5 1:1\n1 2:1\n")
    done = call(capsys, "certify", fit("cancer.svm"), tmp_path / "new.svm")
    assert done.returncode == 2
    assert "DATA: the target of" in done.stderr
    assert "or a model for regression." in done.stderr
    done = call(capsys, "certify", fit("iris.csv"), folder / "cancer.svm", "--ignore-extra")
    assert done.returncode == 2
    assert "another kind (0.0) than the model's classes ('setosa')" in done.stderr


def test_rows_without_targets_have_predictions(fit, tmp_path, capsys):
    path = fit("iris.csv")
    X, _ = iris()
    # The columns in another order: names tell.
    pl.DataFrame({f"x{k}": X[:, k] for k in (2, 0, 3, 1)}).write_csv(tmp_path / "new.csv")
    done = call(capsys, "predict", path, tmp_path / "new.csv")
    assert done.stdout.split() == models.load(path).predict(X).tolist()
    assert done.stderr == ""


def test_fewer_sparse_features_are_zeros_and_more_are_refused(fit, tmp_path, capsys):
    path = fit("cancer.svm")
    X, y = cancer()
    model = models.load(path)
    write(tmp_path / "fewer.svm", X[:, :20], y)
    done = call(capsys, "predict", path, tmp_path / "fewer.svm")
    padded = np.hstack([X[:, :20], np.zeros((len(X), 10))])
    assert done.stdout.split() == [str(int(p)) for p in model.predict(padded)]
    write(tmp_path / "more.svm", np.hstack([X, np.ones((len(X), 5))]), y)
    done = call(capsys, "predict", path, tmp_path / "more.svm")
    assert done.returncode == 2
    assert "has 35 features, the model 30" in done.stderr
    assert "--ignore-extra" in done.stderr
    done = call(capsys, "predict", path, tmp_path / "more.svm", "--ignore-extra")
    assert done.stdout.split() == [str(int(p)) for p in model.predict(X)]


def test_columns_of_packed_rows_are_known_by_their_names(folder, tmp_path, capsys):
    table = pl.read_csv(folder / "iris.csv").with_columns(label=pl.col("label") == "setosa")
    table.write_csv(tmp_path / "a.csv")
    names = [tmp_path / "a.packed", tmp_path / "m", tmp_path / "b.csv"]
    assert call(capsys, "pack", tmp_path / "a.csv", names[0]).returncode == 0
    assert call(capsys, "fit", names[0], "--model", names[1]).returncode == 0
    table.select("x3", "x1", "x0", "x2").write_csv(names[2])
    done = call(capsys, "predict", *names[1:])
    assert done.stdout.split() == [str(k) for k in table["label"].cast(int)], done.stderr


def test_dense_rows_must_have_the_features(fit, tmp_path, capsys):
    path = fit("iris.csv")
    X, _ = iris()
    pl.DataFrame({f"x{k}": X[:, k] for k in range(3)}).write_csv(tmp_path / "less.csv")
    done = call(capsys, "predict", path, tmp_path / "less.csv")
    assert done.returncode == 2
    assert "lacks the column 'x3' (1 in all)" in done.stderr
    columns = {f"x{k}": X[:, k] for k in range(4)} | {"id": np.arange(len(X))}
    pl.DataFrame(columns).write_csv(tmp_path / "more.csv")
    done = call(capsys, "predict", path, tmp_path / "more.csv")
    assert done.returncode == 2
    assert "the column 'id' (1 in all), which the model was not fitted on" in done.stderr
    done = call(capsys, "predict", path, tmp_path / "more.csv", "--ignore-extra")
    assert done.returncode == 0
    np.savez(tmp_path / "dense.npz", X=X[:, :3])
    done = call(capsys, "predict", path, tmp_path / "dense.npz")
    assert done.returncode == 2
    assert "has 3 features, the model 4" in done.stderr


def test_targets_of_another_kind_are_not_compared(fit, tmp_path, capsys):
    path = fit("iris.csv")
    X, y = iris()
    np.savez(tmp_path / "numbers.npz", X=X, y=y)
    done = call(capsys, "predict", path, tmp_path / "numbers.npz")
    assert done.returncode == 0
    assert "another kind" in done.stderr
    assert "accuracy" not in done.stderr


@pytest.mark.parametrize("options", [[], ["--no-intercept"], ["--bias", "2"], ["--positive"]])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_a_fit_certifies_again(loss, options, fit, folder, capsys):
    path = fit("cancer.svm", "--loss", loss, "--tol", "1e-8", "--C", "0.1", *options)
    done = call(capsys, "certify", path, folder / "cancer.svm", "--epochs", "1000", "--json")
    assert done.returncode == 0, done.stderr
    (here,), (there,) = json.loads(done.stdout)["certificates"], models.load(path).certificates
    assert here["primal"] == pytest.approx(there["primal"], rel=1e-9)
    assert here["dual"] <= there["primal"] * (1 + 1e-12)
    assert here["relative_gap"] < 1e-2
    assert "SHA-256" not in done.stderr


def test_the_same_rows_are_known_again_in_a_compressed_file(fit, folder, tmp_path, capsys):
    packed = tmp_path / "same.svm.gz"
    packed.write_bytes(gzip.compress((folder / "cancer.svm").read_bytes()))
    done = call(capsys, "certify", fit("cancer.svm"), packed)
    assert done.returncode == 0, done.stderr
    assert "SHA-256" not in done.stderr


def test_a_certificate_in_words_and_against_other_data(fit, folder, tmp_path, capsys):
    path = fit("cancer.svm", "--tol", "1e-6")
    done = call(capsys, "certify", path, folder / "cancer.svm", "--tol", "1e-3")
    assert done.returncode == 0
    assert done.stdout.startswith("objective ")
    X, y = cancer()
    write(tmp_path / "half.svm", X[::2], y[::2])
    done = call(capsys, "certify", path, tmp_path / "half.svm", "--tol", "1e-3")
    assert done.returncode == 1
    assert "not that of the data that the model was fitted on" in done.stderr
    assert "is above --tol 0.001" in done.stderr


def test_each_class_is_certified(fit, folder, capsys):
    path = fit("iris.csv", "--weight", "setosa=2")
    done = call(capsys, "certify", path, folder / "iris.csv", "--tol", "1e-4")
    assert done.returncode == 0
    assert done.stdout.startswith("objective ")
    path = fit("iris.csv", "--weight", "setosa=2", "--multi-class", "ovr")
    done = call(capsys, "certify", path, folder / "iris.csv")
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == [
        "class setosa",
        "class versicolor",
        "class virginica",
    ]


def test_liblinears_models_are_certified(folder, tmp_path, capsys):
    liblinear = pytest.importorskip("liblinear.liblinearutil")
    X, y = cancer()
    options = "-s 0 -c 0.5 -e 1e-10 -B 1 -q"
    liblinear.save_model(
        str(tmp_path / "m"), liblinear.train(y.tolist(), sp.csr_matrix(X), options)
    )
    done = call(capsys, "certify", tmp_path / "m", folder / "cancer.svm")
    assert done.returncode == 2
    assert "do not tell their C" in done.stderr
    done = call(capsys, "certify", tmp_path / "m", folder / "cancer.svm", "--C", "0.5",
                "--tol", "1e-6", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    done = call(capsys, "certify", tmp_path / "m", folder / "cancer.svm", "--C", "50",
                "--tol", "1e-6")  # fmt: skip
    assert done.returncode == 1
    done = call(capsys, "predict", tmp_path / "m", folder / "cancer.svm")
    labels, _, _ = liblinear.predict(
        [], sp.csr_matrix(X), liblinear.load_model(str(tmp_path / "m")), "-q"
    )
    assert done.stdout.split() == [str(int(label)) for label in labels]


def test_epsilon_and_a_free_intercept_of_liblinear(folder, tmp_path, capsys):
    """What its file does not tell can be said: the width -p, and -R."""
    liblinear = pytest.importorskip("liblinear.liblinearutil")
    X, y = diabetes()
    for line, words in (
        ("-s 12 -p 0.3 -c 0.1 -e 1e-9 -B -1 -q", ["--epsilon", "0.3"]),
        ("-s 11 -p 0.1 -c 0.1 -e 1e-9 -B 1 -R -q", ["--intercept"]),
    ):
        trained = liblinear.train(y.tolist(), sp.csr_matrix(X), line)
        liblinear.save_model(str(tmp_path / "m"), trained)
        limits = ["--C", "0.1", "--tol", "1e-4", "--epochs", "300"]
        command = ["certify", tmp_path / "m", folder / "diabetes.svm", *limits]
        assert call(capsys, *command, *words).returncode == 0


@pytest.mark.parametrize("command", ["predict", "certify"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.unlink(), "does not exist; check the name"),
        (lambda p: p.write_bytes(p.read_bytes()[:-40]), "damaged or cut short"),
        (lambda p: p.write_bytes(b""), "is no model"),
        (lambda p: p.write_text("+1 1:2\n"), "is no model"),
        (lambda p: p.write_text("solver_type L2R_LR\nnr_class 2\n"), "no coefficients"),
    ],
)
def test_a_bad_model_is_told(command, change, message, fit, folder, capsys):
    path = fit("cancer.svm")
    change(path)
    done = call(capsys, command, path, folder / "cancer.svm")
    assert done.returncode == 2
    assert message in done.stderr
    assert "MODEL" in done.stderr
    assert done.stdout == ""


def test_bad_data_for_a_good_model(fit, folder, tmp_path, capsys):
    path = fit("cancer.svm")
    done = call(capsys, "predict", path, tmp_path / "nothing.svm")
    assert (done.returncode, "neither a file" in done.stderr) == (2, True)
    (tmp_path / "bad.svm").write_text("1 1:1\n0 2:oops\n")
    done = call(capsys, "predict", path, tmp_path / "bad.svm")
    assert (done.returncode, "line 2" in done.stderr) == (2, True)
    write(tmp_path / "strange.svm", cancer()[0], cancer()[1] + 5)
    done = call(capsys, "certify", path, tmp_path / "strange.svm")
    assert (done.returncode, "none of the model's classes" in done.stderr) == (2, True)
    done = call(capsys, "predict", path, folder / "cancer.svm", "-o", tmp_path / "no" / "where")
    assert (done.returncode, "--output" in done.stderr) == (2, True)


def test_probabilities_are_those_of_the_estimator(fit, folder, tmp_path, capsys):
    X, y = iris()
    for options, kind in (([], "auto"), (["--multi-class", "ovr"], "ovr")):
        path = fit("iris.csv", *options)
        done = call(capsys, "predict", path, folder / "iris.csv", "--proba")
        lines = [line.split() for line in done.stdout.splitlines()]
        expected = adasdca.AdaSDCAClassifier(multi_class=kind, random_state=0).fit(X, y)
        found = np.array([[float(p) for p in line[1:]] for line in lines])
        np.testing.assert_allclose(found, expected.predict_proba(X), rtol=1e-12)
    done = call(capsys, "predict", path, folder / "iris.csv", "--proba", "--json")
    np.testing.assert_array_equal(json.loads(done.stdout)["probabilities"], found)
    for options in (["--loss", "hinge"], ["--loss", "squared"]):
        data = "diabetes.svm" if "squared" in options else "cancer.svm"
        done = call(capsys, "predict", fit(data, *options), folder / data, "--proba")
        assert done.returncode == 2
        assert "probabilities" in done.stderr


def test_liblinears_arguments_and_format(fit, folder, tmp_path, capsys):
    """predict -b 1 DATA MODEL OUTPUT: the class of positive scores first, and its accuracy line."""
    out = tmp_path / "out"
    path = fit("cancer.svm")
    done = call(capsys, "predict", "-b", "1", folder / "cancer.svm", path, out)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Accuracy = 98.7")
    lines = out.read_text().splitlines()
    assert lines[0] == "labels 1 0"
    model, (X, _) = models.load(path), cancer()
    p = 1 / (1 + np.exp(-model.decision(X)[:, 0]))
    np.testing.assert_allclose([float(line.split()[1]) for line in lines[1:]], p, rtol=1e-9)
    assert call(capsys, "predict", "-q", folder / "cancer.svm", path, out).stdout == ""
    path = fit("diabetes.svm", "--loss", "squared")
    done = call(capsys, "predict", folder / "diabetes.svm", path, out)
    assert done.stdout.startswith("Mean squared error = ")
    assert "Squared correlation coefficient = 0.5" in done.stdout


def test_labels_of_any_language(tmp_path):
    """Where the locale knows ASCII alone, and wherever stdout goes."""
    labels = ["ö", "ö", "日", "日"]
    (tmp_path / "d.csv").write_text(
        "x,k\n" + "".join(f"{k},{label}\n" for k, label in enumerate(labels)), "utf-8"
    )
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = run("fit", "d.csv", "--target", "k", "--model", "m", cwd=tmp_path, **plain)
    assert done.returncode == 0, done.stderr
    done = run("predict", "m", "d.csv", "--quiet", cwd=tmp_path, **plain)
    assert done.stdout.split() == labels, done.stderr
