"""`adasdca fit`: options, files and classes into a certified model."""

import gzip
import json

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn.linear_model
import sklearn.svm

import adasdca
from adasdca import estimators, models
from adasdca.cli import blocks
from bundled import cancer, diabetes, iris
from commands import call, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three data sets as files, in three formats."""
    place = tmp_path_factory.mktemp("data")
    write(place / "cancer.svm", *cancer())
    X, y = iris()
    names = np.array(["setosa", "versicolor", "virginica"])
    columns = {f"x{k}": X[:, k] for k in range(X.shape[1])}
    pl.DataFrame(columns | {"species": names[y]}).write_csv(place / "iris.csv")
    X, y = diabetes()
    np.savez(place / "diabetes.npz", X=X, y=y)
    return place


def fitted(capsys, *arguments, code=0):
    done = call(capsys, "fit", *arguments, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout), done


def test_without_data_it_is_the_mushrooms(capsys):
    result, done = fitted(capsys, "--tol", "1e-6")
    assert result["data"] | {"sha256": ""} == {
        "source": "mushrooms", "sha256": "", "n": 8124, "d": 112, "nnz": 170604, "classes": [-1, 1],
    }  # fmt: skip
    assert result["status"] == "converged"
    (certificate,) = result["certificates"]
    assert 0 <= certificate["gap"] <= 1e-6 * certificate["primal"]
    assert certificate["radius"] == pytest.approx(
        np.sqrt(2 * certificate["gap"] / result["problem"]["lam"])
    )
    assert result["model"] is None
    assert "no model written" in done.stderr
    assert done.stdout.count("\n") == 1


def test_one_feature_is_no_features(capsys, tmp_path):
    (tmp_path / "one.csv").write_text("x,y\n1,2\n2,3\n3,5\n")
    done = call(capsys, "fit", tmp_path / "one.csv", "--target", "y", "--loss", "squared")
    assert "3 rows, 1 feature, regression" in done.stderr


def test_the_summary_is_for_people(capsys, tmp_path):
    done = call(capsys, "fit", "--model", tmp_path / "m", "--loss", "squared_hinge")
    assert done.stdout == ""
    for word in ("8124 rows", "converged", "no model has less than", "accuracy 100 %", "model:"):
        assert word in done.stderr


@pytest.mark.parametrize(
    ("options", "peer"),
    [
        (
            ["--loss", "logistic", "--no-intercept"],
            sklearn.linear_model.LogisticRegression(fit_intercept=False, tol=1e-10),
        ),
        (
            ["--loss", "log_loss", "--C", "0.1"],
            sklearn.linear_model.LogisticRegression(C=0.1, tol=1e-10),
        ),
        (
            ["--loss", "squared_hinge", "--bias", "2", "--C", "0.5"],
            sklearn.svm.LinearSVC(C=0.5, intercept_scaling=2.0, tol=1e-10, max_iter=10**6),
        ),
        (
            ["--no-intercept", "--weight", "0=2", "--weight", "1=0.5"],
            sklearn.linear_model.LogisticRegression(
                fit_intercept=False, tol=1e-10, class_weight={0: 2.0, 1: 0.5}
            ),
        ),
    ],
)
def test_it_solves_what_others_solve(options, peer, folder, tmp_path, capsys):
    """The objective is LIBLINEAR's, with its C, bias and class weights."""
    X, y = cancer()
    peer.fit(X, y)
    fitted(capsys, folder / "cancer.svm", "--tol", "1e-11", "--model", tmp_path / "m", *options)
    model = models.load(tmp_path / "m")
    np.testing.assert_allclose(model.coef, peer.coef_, rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(model.intercept, peer.intercept_, rtol=2e-3, atol=2e-4)


def test_lam_and_c_say_the_same(folder, capsys):
    one, _ = fitted(capsys, folder / "cancer.svm", "--C", "0.25", "--weight", "1=3")
    N = np.where(cancer()[1] == 1, 3.0, 1.0).sum()
    assert one["problem"]["lam"] == pytest.approx(1 / (0.25 * N))
    two, _ = fitted(
        capsys, folder / "cancer.svm", "--lam", one["problem"]["lam"], "--weight", "1=3"
    )
    assert two["problem"]["C"] == pytest.approx(0.25)
    assert two["certificates"][0]["primal"] == pytest.approx(one["certificates"][0]["primal"])


def test_each_of_many_classes_has_a_certificate(folder, tmp_path, capsys):
    result, done = fitted(
        capsys, folder / "iris.csv", "--target", "species", "--multi-class", "ovr",
        "--tol", "1e-7", "--model", tmp_path / "m",
    )  # fmt: skip
    names = ["setosa", "versicolor", "virginica"]
    assert result["data"]["classes"] == names
    assert [c["class"] for c in result["certificates"]] == names
    assert all(c["relative_gap"] <= 1e-7 for c in result["certificates"])
    assert "class virginica: objective" in done.stderr
    model = models.load(tmp_path / "m")
    assert model.feature_names == ["x0", "x1", "x2", "x3"]
    X, y = iris()
    assert (model.predict(X) == np.array(names)[y]).mean() == result["training"]["accuracy"]
    assert model.certificates == result["certificates"]


@pytest.mark.parametrize(
    ("options", "loss"),
    [
        (["--loss", "squared"], adasdca.Squared()),
        (["--loss", "huber", "--delta", "2"], adasdca.Huber(2.0)),
        (["--loss", "quantile", "--quantile", "0.9"], adasdca.Quantile(0.9)),
        (["--loss", "epsilon_insensitive", "--epsilon", "0.2"], adasdca.EpsilonInsensitive(0.2)),
    ],
)
def test_the_loss_makes_it_regression(options, loss, folder, tmp_path, capsys):
    path = tmp_path / "m"
    result, _ = fitted(capsys, folder / "diabetes.npz", "--model", path, *options)
    model = models.load(path)
    assert model.loss == loss
    assert model.classes is None
    of_quantile = {"d2", "below"} if isinstance(loss, adasdca.Quantile) else set()
    assert result["training"].keys() == {"r2", "mse"} | of_quantile
    X, y = diabetes()
    assert result["training"]["mse"] == pytest.approx(np.mean((model.predict(X) - y) ** 2))


def test_sparse_and_positive_coefficients(folder, tmp_path, capsys):
    path = tmp_path / "m"
    result, _ = fitted(
        capsys, folder / "cancer.svm", "--l1-ratio", "0.9", "--positive",
        "--model", path,
    )  # fmt: skip
    model = models.load(path)
    assert (model.coef >= 0).all()
    assert 0 < result["nonzeros"] == np.count_nonzero(model.coef) < 30
    assert (model.positive, model.l1_ratio) == (True, 0.9)


def test_a_model_knows_where_it_comes_from(folder, tmp_path, capsys):
    path = tmp_path / "m"
    result, _ = fitted(capsys, folder / "cancer.svm", "--model", path, "--seed", "7")
    origin = models.load(path).provenance
    assert origin["data"]["sha256"] == result["data"]["sha256"]
    assert (origin["data"]["n"], origin["data"]["d"]) == (569, 30)
    assert origin["versions"]["adasdca"] == adasdca.__version__
    assert origin["seed"] == 7
    assert origin["status"] == "converged"


def test_an_accuracy_not_reached_is_code_1_and_still_a_model(tmp_path, capsys):
    path = tmp_path / "m"
    result, done = fitted(
        capsys, "--method", "sdca", "--tol", "1e-9", "--max-epochs", "3", "--model", path, code=1
    )
    assert result["status"] == "epoch limit"
    assert "raise --max-epochs (now 3) or --tol" in done.stderr
    model = models.load(path)
    assert model.certificates[0]["relative_gap"] > 1e-9
    assert model.predict(adasdca.datasets.load_mushrooms()[0]).shape == (8124,)


def test_a_time_limit_is_told(tmp_path, capsys):
    result, _ = fitted(capsys, "--tol", "1e-12", "--max-time", "0", "--method", "sdca", code=1)
    assert result["status"] == "time limit"


def test_a_model_for_liblinear(folder, tmp_path, capsys):
    path = tmp_path / "m"
    fitted(capsys, folder / "cancer.svm", "--model", path,
           "--model-format", "liblinear")  # fmt: skip
    assert path.read_text().splitlines()[:3] == [
        "solver_type L2R_LR_DUAL",
        "nr_class 2",
        "label 1 0",
    ]
    done = call(capsys, "fit", folder / "cancer.svm", "--loss", "smoothed_hinge", "--model",
                tmp_path / "n", "--model-format", "liblinear")  # fmt: skip
    assert done.returncode == 2
    assert "LIBLINEAR has no name for the loss" in done.stderr


def test_named_threads_and_features(folder, capsys):
    result, _ = fitted(capsys, folder / "iris.csv", "--target", "species", "--threads", "2",
                       "--multi-class", "ovr")  # fmt: skip
    assert len(result["certificates"]) == 3
    result, _ = fitted(capsys, folder / "cancer.svm", "--features", "40")
    assert result["data"]["d"] == 40


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no_such_file.svm"], "neither a file nor a data set"),
        (["--loss", "hing"], "'smoothed_hinge'"),
        (["--method", "sgd"], "'adasdca+'"),
        (["--method", "quartz", "--loss", "hinge", "--no-intercept"], "needs a smooth loss"),
        (["--method", "quartz", "--intercept"], "cannot fit an intercept"),
        (["--lam", "1e-300"], "beyond double precision"),
        (["--lam", "1", "--C", "1"], "give one of --lam and --C"),
        (["--bias", "1", "--intercept"], "give one"),
        (["--C", "-1"], "'--C': -1 is not allowed"),
        (["--bias", "0"], "'--bias'"),
        (["--l1-ratio", "1.5"], "'--l1-ratio': 1.5"),
        (["--tol", "x"], "'--tol': x"),
        (["--tol", "inf"], "'--tol': inf is not allowed; choose a finite number"),
        (["--max-epochs", "0"], "'--max-epochs'"),
        (["-s", "0"], "LIBLINEAR's options are those of `adasdca train`"),
        (["--penalty", "l1"], " --l1-ratio"),
        (["--n-jobs", "2"], " --threads"),
        (["--weight", "1"], "not of the form CLASS=W"),
        (["--weight", "spam=3"], "'spam' is none of the classes -1, 1"),
        (["--multi-class", "all"], "choose one of auto, ovr, multinomial"),
        (["--multi-class", "multinomial", "--loss", "hinge"], "choose ovr for these"),
        (["--Cs", "1,2"], "--Cs: this needs a search; ask for one with --search"),
        (["--picture", "scores.png"], "--picture: this needs a search"),
        (["--search", "--Cs", "1,x"], "not a list of numbers"),
        (["--search", "--l1-ratios", "2"], "choose numbers from 0 to 1"),
        (["--cv", "1"], "'--cv'"),
        (["--picture", "scores.doc"], "is not a picture"),
        (["--report", "nowhere/fit.html"], "does not exist; make it first"),
        (["--report", "fit.pdf"], "fit.pdf must be a page in HTML; choose a name in .html"),
        (["--one-hot", "auto"], "are for files"),
        (["--weight", "1=-2"], "'--weight': -2 is not allowed"),
        (["--loss", "squared", "--weight", "1=2"], "no classes in regression"),
        (
            ["--loss", "hinge", "--epsilon", "1"],
            "--epsilon: the loss hinge has no epsilon; leave it out",
        ),
        (["--loss", "huber", "--delta", "-1"], "delta = -1"),
        (["--model", "nowhere/m"], "does not exist; make it first"),
        (["--model", "."], "is a folder"),
        (["--model-format", "liblinear", "--loss", "huber"], "no name for the loss 'huber'"),
        (["--model-format", "onnx"], "choose one of adasdca, liblinear"),
        (["--format", "xml"], "choose one of svmlight"),
        (["--plugin", "nothing.py"], "'--plugin'"),
    ],
)
def test_a_wrong_option_is_named(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    done = call(capsys, "fit", *arguments)
    assert done.returncode == 2
    assert message.replace("'", "") in done.stderr.replace("'", "")
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("contents", "arguments", "message"),
    [
        ("+1 1:1\n-1 2:x\n", [], "line 2"),
        ("", [], "empty"),
        ("1 1:1\n1 2:1\n", [], "bad are 1; two classes are needed"),
        ("a,y\n1,u\n4,u\n", ["--format", "csv"], "bad are u; two classes are needed"),
        ("0.5 1:1\n1 2:1\n", [], "holds 0.5, which is no label"),
        ("1 1:1\n-1 5:1\n", ["--features", "3"], "beyond --features 3; remove the entry"),
        ("1 1:1\n-1 5:1\n", ["--target", "y"], "--target y is for files with named columns"),
        ("1 0:1\n-1 5:1\n", [], "read it with --zero-based."),
        ("a,b\n1,2\n", [], "if it is something else, pass --format."),
        ("a,y\n1,2\n", ["--format", "csv", "--zero-based"], "--zero-based is for svmlight"),
        ("a,y,label\n1,2,3\n", ["--format", "csv"], "e.g. --target label."),
        ("1 1:1e200\n-1 1:1\n", [], "scale the features"),
        ("1e200 1:1\n-1 1:1\n", ["--loss", "squared"], "scale the features or the targets"),
        ("a,b,y\n1,2,3\n4,5,6\n", ["--format", "csv", "--target", "c"], "no column 'c'"),
        ("a,b\n1,2\n4,5\n", ["--format", "csv"], "has no target; name its column with --target"),
        ("a,b,y\n1,,3\n4,5,6\n", ["--format", "csv"], "fill the values first (--missing)."),
        ("a,b\nu,3\nv,6\n", ["--format", "csv"], "Name the target (--target), leave them out"),
        ("a,y\nu,3\nv,6\n", ["--format", "csv"], "make a feature of each category (--one-hot)"),
        ("a,y\n1,u\n4,v\n", ["--format", "csv", "--loss", "squared"], "holds text such as 'u'"),
    ],
)
def test_a_bad_file_is_told(contents, arguments, message, tmp_path, capsys):
    (tmp_path / "bad").write_text(contents)
    done = call(capsys, "fit", tmp_path / "bad", "--model", tmp_path / "m", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "m").exists()
    assert done.stdout == ""


def test_the_command_line_fits_what_python_fits(folder, tmp_path, capsys):
    """The same intercept, the same classes, the same defaults."""
    for name, target, kind, (X, y) in (
        ("cancer.svm", [], adasdca.AdaSDCAClassifier, (sp.csr_matrix(cancer()[0]), cancer()[1])),
        ("iris.csv", ["--target", "species"], adasdca.AdaSDCAClassifier, iris()),
        ("diabetes.npz", ["--loss", "squared"], adasdca.AdaSDCARegressor, diabetes()),
    ):
        fitted(capsys, folder / name, *target, "--model", tmp_path / "m")
        model, estimator = models.load(tmp_path / "m"), kind(random_state=0).fit(X, y)
        coef, intercept = np.atleast_2d(estimator.coef_), np.ravel(estimator.intercept_)
        np.testing.assert_allclose(model.coef, coef, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(model.intercept, intercept, rtol=1e-9, atol=1e-11)
        assert model.multinomial == (name == "iris.csv")


def test_numbers_taken_for_classes_of_one_row_are_told(tmp_path, capsys):
    """A quantity in whole numbers has values that occur once; labels do so rarely."""
    X = np.random.default_rng(0).normal(size=(24, 2))
    quantity, labels = np.array([*range(20, 42), 50, 50]), np.arange(24) % 3
    for y, told in ((quantity, True), (labels, False)):
        np.savez(tmp_path / "rows.npz", X=X, y=y)
        done = call(capsys, "fit", tmp_path / "rows.npz")
        assert done.returncode == 0
        found = "23 different numbers" in done.stderr and "22 of them" in done.stderr
        assert found == told == ("choose a loss for regression: --loss squared" in done.stderr)
    np.savez(tmp_path / "rows.npz", X=X, y=quantity)
    assert (
        "different numbers"
        not in call(capsys, "fit", tmp_path / "rows.npz", "--loss", "squared").stderr
    )


def test_text_that_is_hardly_of_categories_is_told(tmp_path, capsys):
    frame = pl.DataFrame({"y": [0, 1] * 6, "town": ["Bern", "Ulm", "Linz"] * 4})
    frame = frame.with_columns(price=pl.Series([f"1,{k}00.50" for k in range(12)]))
    frame.write_csv(tmp_path / "rows.csv")
    done = call(capsys, "fit", tmp_path / "rows.csv", "--one-hot", "auto")
    assert "column 'price'" in done.stderr
    assert "12 different texts on 12 rows" in done.stderr
    assert "town" not in done.stderr
    assert "different texts" not in call(
        capsys, "fit", tmp_path / "rows.csv", "--one-hot", "price,town"
    ).stderr  # fmt: skip


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "a.csv",
            ["--missing", "zero"],
            "Invalid value for --missing: missing = 'zero' is unknown",
        ),
        ("a.json", ["--one-hot", "auto"], "not for svmlight; leave them out, or say what the file"),
    ],
)
def test_a_wrong_reading_is_named(tmp_path, capsys, name, options, message):
    (tmp_path / name).write_text("a,y\n1,0\n2,1\n")
    done = call(capsys, "fit", tmp_path / name, *options)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_second_name_is_told_where_the_model_goes(folder, capsys):
    done = call(capsys, "fit", folder / "iris.csv", "iris.model")
    assert done.returncode == 2
    assert "(iris.model); the file for the model is named with --model." in done.stderr


def test_a_regression_worse_than_the_mean_says_so(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(60, 3))
    write(tmp_path / "far.svm", X, 100 + X[:, 0])
    arguments = [tmp_path / "far.svm", "--loss", "squared"]
    done = call(capsys, "fit", *arguments, "--no-intercept")
    assert "R2 is below 0: the mean of the targets would predict" in done.stderr
    assert "leave --no-intercept out" in done.stderr
    assert "below 0" not in call(capsys, "fit", *arguments).stderr
    # A quantile is not compared with the mean.
    arguments = [tmp_path / "far.svm", "--loss", "quantile", "--quantile", "0.99"]
    told = call(capsys, "fit", *arguments, "--cv", "3")
    assert "of the targets are at most what is predicted" in told.stderr
    assert "D2 of the quantile loss" in told.stdout
    assert "R2" not in told.stderr + told.stdout


def test_cross_validation_and_a_search(folder, tmp_path, capsys):
    arguments = [folder / "iris.csv", "--target", "species", "--cv", "3"]
    result, done = fitted(capsys, *arguments)
    scores = np.array(result["cross_validation"]["scores"])
    assert scores.shape == (3, 1, 1)
    assert "cross-validation, 3 folds: accuracy" in done.stderr
    picture = tmp_path / "scores.png"
    wide = ["--search", "--Cs", "0.01,1", "--l1-ratios", "0,0.5", "--picture", picture]
    done = call(capsys, "fit", *arguments, *wide, "--model", tmp_path / "m", "--tol", "1e-3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("chosen") == 1
    assert "mean accuracy" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    result, _ = fitted(capsys, *arguments, *wide, "--tol", "1e-3")
    search, model = result["cross_validation"], models.load(tmp_path / "m")
    assert np.shape(search["scores"]) == (3, 2, 2)
    assert search["C"] == result["problem"]["C"]
    assert model.l1_ratio == search["l1_ratio"]
    assert model.lam == pytest.approx(1 / (150 * search["C"]))


def test_quiet_says_results_and_errors_only(folder, capsys):
    done = call(capsys, "fit", folder / "cancer.svm", "--quiet")
    assert (done.stdout, done.stderr) == ("", "")
    assert "nothing.svm" in call(capsys, "fit", "nothing.svm", "-q").stderr
    assert "converged" in call(capsys, "fit", folder / "cancer.svm").stderr
    asked = call(capsys, "fit", folder / "cancer.svm", "--cv", "3", "--quiet")
    assert asked.stdout.startswith("cross-validation, 3 folds: accuracy")
    assert asked.stderr == ""


def test_columns_of_a_table_are_kept_in_the_model(tmp_path, capsys):
    """Categories, fills and the target are those of the fit, wherever its columns stand."""
    people = [("20", "Bern", "no"), ("", "Ulm", "yes"), ("40", "Ulm", "yes")] * 8
    rows = [f"{','.join(person)},{k}" for k, person in enumerate(people)]
    (tmp_path / "a.csv").write_text("\n".join(["age,town,paid,id", *rows]) + "\n")
    options = ["--target", "paid", "--one-hot", "auto", "--missing", "median", "--drop", "id",
               "--C", "100"]  # fmt: skip
    result, _ = fitted(capsys, tmp_path / "a.csv", *options, "--model", tmp_path / "m")
    assert result["data"]["d"] == 3
    model = models.load(tmp_path / "m")
    assert model.feature_names == ["age", "town=Bern", "town=Ulm"]
    assert model.columns == {
        "target": "paid", "names": ["age", "town"], "categories": {"town": ["Bern", "Ulm"]},
        "fill": {"age": 30.0, "town": "Ulm"}, "left_out": ["id"],
    }  # fmt: skip
    (tmp_path / "b.csv").write_text("town,age\nUlm,\nBern,20\n")
    done = call(capsys, "predict", tmp_path / "m", tmp_path / "b.csv")
    assert done.stdout.split() == ["yes", "no"], done.stderr
    # What the fit has left out may be there again; what it has not seen may not.
    done = call(capsys, "predict", tmp_path / "m", tmp_path / "a.csv")
    assert "accuracy 100 %" in done.stderr
    (tmp_path / "d.csv").write_text("town,age,cat\nUlm,30,1\n")
    done = call(capsys, "predict", tmp_path / "m", tmp_path / "d.csv")
    assert "has the column 'cat'" in done.stderr
    done = call(capsys, "predict", tmp_path / "m", tmp_path / "d.csv", "--ignore-extra")
    assert done.stdout.split() == ["yes"]
    (tmp_path / "c.csv").write_text("town,age\nRome,30\n")
    done = call(capsys, "predict", tmp_path / "m", tmp_path / "c.csv")
    assert done.returncode == 2
    assert "'Rome' in row 1, a category that the model does not know" in done.stderr


def test_an_error_of_the_program_is_not_blamed_on_the_user(capsys, monkeypatch):
    def broken(*_):
        raise ValueError("a bug")

    monkeypatch.setattr(adasdca.AdaSDCAClassifier, "fit", broken)
    with pytest.raises(ValueError, match="a bug"):
        call(capsys, "fit")


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """Rows that 20 MB are too little for: as text, compressed text and a packed folder."""
    place = tmp_path_factory.mktemp("wide")
    rng = np.random.default_rng(0)
    X = sp.random(4000, 600, 0.2, "csr", random_state=0)
    y = np.where(X @ rng.normal(size=600) + 0.5 * rng.normal(size=4000) > 0, 1.0, -1.0)
    adasdca.files.write_svmlight(place / "wide.svm", X, y)
    (place / "wide.svm.gz").write_bytes(gzip.compress((place / "wide.svm").read_bytes(), 1))
    adasdca.files.pack(place / "wide.svm", place / "wide.packed")
    return place


@pytest.mark.parametrize("name", ["wide.svm", "wide.svm.gz", "wide.packed"])
def test_data_that_would_not_fit_are_read_in_blocks(name, wide, tmp_path, monkeypatch, capsys):
    arguments = ["--loss", "logistic", "--tol", "1e-6", "--C", "1"]
    whole, done = fitted(capsys, wide / "wide.svm", *arguments)
    assert "in blocks" not in done.stderr
    limits, solve = [], estimators._solves.solve

    def watched(*args, **options):
        limits.append(options["memory_limit"])
        return solve(*args, **options)

    monkeypatch.setattr(estimators._solves, "solve", watched)
    limit = ["--memory-limit", "20 MB"]
    model = tmp_path / "m"
    found, done = fitted(capsys, wide / name, *arguments, *limit, "--model", model)
    assert limits == [20 * 10**6]
    assert ("in blocks" in done.stderr) == (not name.endswith("packed"))
    (one,), (two,) = whole["certificates"], found["certificates"]
    assert abs(one["primal"] - two["primal"]) <= one["gap"] + two["gap"] + 1e-14 * one["primal"]
    assert two["gap"] <= 1e-6 * two["primal"]
    assert models.load(model).coef.shape == (1, 600)


def test_blocks_are_taken_where_memory_is_scarce(wide, monkeypatch, capsys):
    arguments = wide / "wide.svm", "--tol", "1e-3"
    for free, expected in ((10**9, False), (34 * 10**6, True), (None, False)):
        monkeypatch.setattr(blocks, "free_memory", lambda free=free: free)
        done = call(capsys, "fit", *arguments)
        assert done.returncode == 0, done.stderr
        assert ("in blocks" in done.stderr) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cv", "3"], "--cv: is for data in memory"),
        (["--method", "sdca"], "--method: is for data in memory"),
        (["--multi-class", "multinomial"], "--multi-class: is for data in memory"),
        (["--missing", "drop"], "--missing: is for data in memory"),
        (["--memory-limit", "2 x"], "--memory-limit: memory_limit = '2 x' is not allowed"),
        (["--memory-limit", "1MiB"], "--memory-limit: memory_limit = 1048576 is too little"),
    ],
)
def test_what_blocks_are_not_for(arguments, message, wide, capsys):
    limit = [] if "--memory-limit" in arguments else ["--memory-limit", "8 MB"]
    done = call(capsys, "fit", wide / "wide.svm", *limit, *arguments)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


def test_a_column_without_a_name_is_told(tmp_path, capsys):
    X, y = diabetes()
    people = [f"person {k}" for k in range(len(y))]
    pl.DataFrame({"": people, "age": X[:, 0], "y": y}).write_csv(tmp_path / "people.csv")
    result, done = fitted(capsys, tmp_path / "people.csv", "--loss", "squared")
    assert "The first column of" in done.stderr
    assert result["data"]["d"] == 1


def test_rows_that_are_left_out_are_counted(tmp_path, capsys):
    (tmp_path / "town.csv").write_text("town,y\nUlm,1\nNone,1\nUlm,0\n,0\nBern,1\n")
    path = tmp_path / "town.csv"
    _, done = fitted(capsys, path, "--one-hot", "auto", "--missing", "drop")
    assert f"2 of 5 rows of {path} lack a value and are left out." in " ".join(done.stderr.split())
