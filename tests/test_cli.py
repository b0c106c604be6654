"""`adasdca compare`, run as users run it: arguments in, table or JSON and a picture out."""

import io
import json
import subprocess
import sys

import matplotlib.image
import pytest
import rich.console

import adasdca
from adasdca import plotting
from adasdca.cli import compare
from adasdca.cli.output import print_rows
from adasdca.cli.progress import Progress
from adasdca.solution import Record
from commands import call, run, write

# Rows so few that Algorithm 1, whose epochs take n² steps, needs no limit of time.
QUICK = ["--tol", "1e-3", "--max-epochs", "60", "--max-time", "3600"]


@pytest.fixture(scope="module")
def as_json(tmp_path_factory):
    folder = tmp_path_factory.mktemp("json")
    X, y = adasdca.datasets.load_mushrooms()
    write(folder / "few.svm", X[::8].toarray(), y[::8])
    done = run("compare", "few.svm", "--json", *QUICK, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done, json.loads(done.stdout), folder


@pytest.fixture(scope="module")
def as_table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    limits = ["--max-epochs", "60", "--max-time", "0"]
    done = run("compare", "--loss", "hinge", *limits, "--output", "hinge.png", cwd=folder)
    assert done.returncode == 0, done.stderr
    return done, folder


def test_every_method_takes_part(as_json):
    _, results, _ = as_json
    assert [r["label"] for r in results["runs"]] == list(compare.METHODS)
    assert results["left_out"] == {}


def test_json_repeats_the_arguments(as_json):
    _, results, _ = as_json
    problem, limits = results["problem"], results["limits"]
    assert (problem["data"], problem["n"], problem["d"]) == ("few.svm", 1016, 112)
    assert problem["loss"] == {"name": "smoothed_hinge", "gamma": 1.0}
    assert problem["lam"] == 1 / 1016
    assert limits == {"tol": 1e-3, "max_epochs": 60, "max_time": 3600.0}


def test_results_are_certificates_of_one_problem(as_json):
    """Weak duality across methods: no dual value exceeds any primal value."""
    _, results, _ = as_json
    runs = results["runs"]
    assert max(r["dual"] for r in runs) <= min(r["primal"] for r in runs)
    for r in runs:
        assert r["dual"] <= r["primal"] - r["gap"]
        assert r["gap"] == pytest.approx(r["primal"] - r["dual"], abs=1e-12 * r["primal"])
        assert r["relative_gap"] == pytest.approx(r["gap"] / r["primal"])
        assert (r["relative_gap"] <= 1e-3) == (r["status"] == "converged")
        assert r["history"]["gap"][-1] == r["gap"]
        assert r["history"]["epoch"] == sorted(r["history"]["epoch"])


def test_json_is_all_there_is_on_stdout_and_stderr_is_quiet(as_json):
    done, _, _ = as_json
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_the_picture_is_written(as_json, as_table):
    for path in (as_json[2] / "compare.png", as_table[1] / "hinge.png"):
        pixels = matplotlib.image.imread(path)
        assert pixels.ndim == 3
        assert pixels.std() > 0


def test_the_table_has_a_line_for_each_method(as_table):
    done, _ = as_table
    lines = [line.strip() for line in done.stdout.splitlines()]
    for label in compare.METHODS:
        assert sum(line.startswith(f"{label} ") for line in lines) == 1
    assert lines[-1] == "picture: hinge.png"


def test_the_title_of_a_table_is_one_line(capsys):
    title = "a title that is much longer than the table below it, n = 150, d = 4"
    print_rows(title, ("a", "b"), [("1", "2")], left=())
    assert capsys.readouterr().out.splitlines()[0] == title


def test_a_method_that_does_not_fit_is_left_out_with_the_reason(as_table):
    done, _ = as_table
    (line,) = [line for line in done.stdout.splitlines() if "quartz" in line]
    assert line.strip().endswith("left out: needs a smooth loss")


def test_output_that_is_not_a_terminal_has_no_escapes_and_no_progress(as_table):
    done, _ = as_table
    assert "\x1b" not in done.stdout
    assert done.stderr == "No data given: these are the mushrooms, which come with the package.\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["w9a"], "mushrooms"),
        (["--loss", "hing"], "'smoothed_hinge'"),
        (["--loss", "hinge", "--gamma", "1"], "--gamma: the loss hinge has no gamma; leave it out"),
        (["--lam", "0"], "'--lam': 0 is not allowed"),
        (["--tol", "-1"], "'--tol'"),
        (["--max-epochs", "-1"], "'--max-epochs'"),
        (["--max-epochs", "many"], "'--max-epochs'"),
        (["--max-time", "-1"], "'--max-time'"),
        (["--output", "nowhere/compare.png"], "folder does not exist"),
        (["--output", "compare.doc"], ".png"),
        (["--no-such-option"], "--no-such-option"),
        (["mushrooms", "--format", "csv"], "are for files"),
    ],
)
def test_a_wrong_argument_is_named(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call(capsys, "compare", *arguments)
    assert done.returncode == 2
    assert message.replace("'", "") in done.stderr.replace("'", "")
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_data_that_are_not_here_are_an_error_with_the_remedy(tmp_path, capsys, monkeypatch):
    for variable in ("ADASDCA_DATA", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr("adasdca.datasets.find", lambda name: None)
    done = call(capsys, "compare", "w8a")
    assert done.returncode == 2
    assert "ADASDCA_DATA" in done.stderr


def test_methods_of_a_plug_in_take_part(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compare, "METHODS", {"sdca": adasdca.SDCA()})
    (tmp_path / "own.py").write_text(
        "import adasdca\n"
        "@adasdca.register_method('backwards')\n"
        "def backwards(survey, rng):\n"
        "    return rng.permutation(len(survey.beta))[::-1]\n"
        "adasdca.register_rule('flat', lambda survey: survey.weight)\n"
        "@adasdca.datasets.register('tiny')\n"
        "def tiny():\n"
        "    X, y = adasdca.datasets.load_mushrooms()\n"
        "    return X[:300], y[:300]\n"
    )
    try:
        done = call(capsys, "compare", "tiny", "--plugin", "own.py", "--json", *QUICK)
    finally:
        adasdca.methods.REGISTERED.pop("backwards", None)
        adasdca.datasets.REGISTERED.pop("tiny", None)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results["problem"]["n"] == 300
    ended = {r["label"]: r["status"] for r in results["runs"]}
    assert ended["backwards"] == ended["flat"] == "converged"


def test_version(capsys):
    assert call(capsys, "--version").stdout == f"adasdca {adasdca.__version__}\n"


@pytest.mark.parametrize("package", ["typer", "rich", "matplotlib"])
def test_a_missing_extra_is_named(package, tmp_path):
    code = f"import sys; sys.modules[{package!r}] = None; from adasdca.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert package in done.stderr
    assert "pip install 'adasdca[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_algorithm_1_is_left_out_where_an_epoch_costs_too_much():
    loss = adasdca.SmoothedHinge()
    large, small = {"n": 581_012, "nnz": 6_940_438}, {"n": 8124, "nnz": 170_604}
    for label, method in compare.METHODS.items():
        assert bool(compare.reason_against(method, loss, **large)) == (label == "adasdca")
        assert not compare.reason_against(method, loss, **small)


def test_progress_on_a_terminal_shows_each_gap():
    stream = io.StringIO()
    console = rich.console.Console(file=stream, force_terminal=True, width=100)
    with Progress(1e-4, console) as progress:
        progress.interval = 0.0
        look = progress.follow("sdca")
        look(Record(0, 0, 0.0, 1.0, 0.0, 1.0, 9))
        look(Record(7, 70, 0.1, 1.0, 0.99, 0.01, 9))
    assert "1.0e-02" in stream.getvalue()
    assert "7 epochs" in stream.getvalue()


def test_the_picture_holds_what_it_was_given():
    curves = [
        plotting.Curve(f"method {k}", [0, 1, 2], [0.1, 0.2, 0.3], [1.0, 0.1 / (k + 1), 0.01])
        for k in range(10)
    ]
    figure = plotting.convergence(curves, tol=1e-3, title="a title")
    by_epoch, by_time = figure.axes
    for axes, x in ((by_epoch, [0, 1, 2]), (by_time, [0.1, 0.2, 0.3])):
        assert axes.get_yscale() == "log"
        for line, curve in zip(axes.lines, curves, strict=False):
            assert list(line.get_xdata()) == x
            assert list(line.get_ydata()) == curve.relative_gap
    assert [t.get_text() for t in figure.legends[0].get_texts()] == [c.label for c in curves]


def test_of_several_classes_one_stands_against_the_rest(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compare, "METHODS", {"sdca": adasdca.SDCA()})
    write(tmp_path / "three.svm", [[1.0, 0], [0, 1], [1, 1], [1, 2]], [1, 2, 3, 3])
    titles = {}
    for options in ([], ["--class", "2"]):
        done = call(capsys, "compare", "three.svm", "--json", *options, *QUICK)
        titles[len(options)] = json.loads(done.stdout)["problem"]["data"]
    assert titles[0] == "three.svm, class 3 against the rest"
    assert titles[2] == "three.svm, class 2 against the rest"


def test_tables_are_compared_as_they_are_fitted(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compare, "METHODS", {"sdca": adasdca.SDCA()})
    (tmp_path / "a.csv").write_text("id,age,town,y\n" + "1,2,Bern,0\n2,,Ulm,1\n3,4,Ulm,1\n" * 4)
    refused = call(capsys, "compare", "a.csv", *QUICK)
    assert "leave them out (--drop), make a feature" in refused.stderr.lower()
    columns = ["--drop", "id", "--one-hot", "auto", "--missing", "mean"]
    done = call(capsys, "compare", "a.csv", "--json", *columns, *QUICK)
    assert json.loads(done.stdout)["problem"]["d"] == 3


def test_options_of_another_command_are_told_as_such(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("age,town,y\n1,Bern,0\n2,Ulm,1\n")
    done = call(capsys, "pack", "a.csv", "a.packed")
    assert done.returncode == 2
    assert "Leave them out (--drop of `adasdca fit`)" in done.stderr.replace("\n", " ")


def test_a_plug_in_that_fails_in_a_solve_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.py").write_text(
        "import adasdca\n"
        "@adasdca.register_method('bad')\n"
        "def bad(survey, rng):\n"
        "    return survey.nothing\n"
    )
    try:
        done = call(capsys, "fit", "--no-intercept", "--plugin", "bad.py", "--method", "bad")
    finally:
        adasdca.methods.REGISTERED.pop("bad", None)
    assert done.returncode == 2
    assert "bad.py, line 4: AttributeError" in done.stderr
