"""`adasdca reproduce` as a whole: tiny runs, resumed, drawn again, and its exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import astuple

import pytest
from typer.testing import CliRunner

from adasdca import datasets, methods
from adasdca.ascent import sampling
from adasdca.cli.app import app
from adasdca_reproduce import grid, page, runner
from adasdca_reproduce.experiments import EXPERIMENTS, METHODS
from adasdca_reproduce.figures import pictures
from adasdca_reproduce.machine import commit
from adasdca_reproduce.paper import CLAIMS, PAPER
from adasdca_reproduce.questions import OURS, QUESTIONS
from adasdca_reproduce.results import Results
from adasdca_reproduce.store import Store, compress
from adasdca_reproduce.verdicts import Verdict

TINY = grid.Scope(
    only=("table2", "full", "methods", "m", "optimal", "theory", "samplers"),
    available=("mushrooms",),
    quick=True,
    seeds=2,
    budget=3600.0,  # not reached: which points the curves have is no matter of time
    rows=60,
)


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Return the command, run in an empty folder where mushrooms is all there is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets, "available", lambda: ["mushrooms"])

    def run(*arguments):
        return CliRunner().invoke(app, ["reproduce", *arguments])

    return run


@pytest.fixture
def forgetful():
    """Forget afterwards what a plug-in registered."""
    books = [sampling.RULES, methods.REGISTERED, methods.PICKERS]
    before = [dict(book) for book in books]
    yield
    for book, known in zip(books, before, strict=True):
        book.clear()
        book.update(known)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Return a folder in which all tiny runs of mushrooms were made, and the tasks."""
    folder = tmp_path_factory.mktemp("done")
    todo = grid.tasks(TINY)
    runner.run(todo, Store(folder))
    page.write(Results(Store(folder).read()[0]), folder)
    return folder, todo


def test_every_task_is_one_line_with_its_history(done):
    folder, todo = done
    lines = (folder / "runs.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert len(records) == len(todo)
    for record, task in zip(records, todo, strict=True):
        assert task.as_dict().items() <= record.items()
        assert {"versions", "machine", "commit", "date"} <= record.keys()
        if task.experiment == "table2":
            continue
        history = record["history"]
        assert len({len(column) for column in history.values()}) == 1
        assert history["updates"][-1] == record["updates"]
        assert record["n"] == 60
        for p, d, gap in zip(history["primal"], history["dual"], history["gap"], strict=True):
            assert gap == pytest.approx(p - d, rel=1e-9, abs=1e-12 * p)


def test_runs_that_are_stored_are_not_made_again(done):
    folder, todo = done
    records, cut = Store(folder).read()
    assert cut == 0
    assert runner.pending(todo, records) == []
    longer = grid.tasks(grid.Scope(**(vars(TINY) | {"budget": 3601.0})))
    assert runner.pending(longer, records) == longer


def test_a_failed_run_is_stored_with_the_reason_and_tried_again(tmp_path):
    protocol = grid.Protocol(0.05, 10, 150)
    bad = grid.Task("methods", "mushrooms", "no_such_loss", "sdca", 0, protocol)
    good = grid.Task("methods", "mushrooms", "squared", "sdca", 0, protocol)
    made = runner.run([bad, good], Store(tmp_path))
    assert [record["status"] == "failed" for record in made] == [True, False]
    assert "no_such_loss" in made[0]["error"]
    records, _ = Store(tmp_path).read()
    assert runner.pending([bad, good], records) == [bad]
    assert len(Results(records).records) == 1


def test_a_line_that_was_cut_short_costs_one_run(done, tmp_path):
    folder, todo = done
    whole = (folder / "runs.jsonl").read_bytes()
    (tmp_path / "runs.jsonl").write_bytes(whole[:-40])
    store = Store(tmp_path)
    records, cut = store.read()
    assert cut == 1
    left = runner.pending(todo, records)
    assert left == todo[-1:]
    runner.run(left, store)
    again, cut = store.read()
    assert cut == 1  # kept as it was
    assert runner.pending(todo, again) == []


def test_two_processes_make_the_same_runs(tmp_path):
    scope = grid.Scope(**(vars(TINY) | {"only": ("samplers",)}))
    todo = grid.tasks(scope)
    alone = runner.run(todo, Store(tmp_path / "one"))
    beside = runner.run(todo, Store(tmp_path / "two"), jobs=2)

    def gaps(records):
        key = ("experiment", "data", "loss", "method", "seed")
        return {tuple(r[k] for k in key): r["history"]["gap"] for r in records}

    assert gaps(alone) == gaps(beside)


def test_the_page_is_a_function_of_the_stored_runs(done, tmp_path):
    """Drawn from the lines alone, in another order and compressed, it is the same to the byte."""
    folder, _ = done
    lines = (folder / "runs.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "reversed").mkdir()
    (tmp_path / "reversed" / "runs.jsonl").write_bytes(b"".join(reversed(lines)))
    compress(Store(tmp_path / "reversed"), tmp_path / "runs.jsonl.xz")
    page.write(Results(Store(tmp_path).read()[0]), tmp_path)
    names = ["index.md", "index.html", *(f"figures/{p.name}" for p in folder.glob("figures/*"))]
    assert len(names) > 2 + len(TINY.only)
    for name in names:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


def test_every_figure_is_on_the_page_and_nothing_else_is_needed(done):
    folder, _ = done
    results = Results(Store(folder).read()[0])
    judged = page.judge(results)
    drawn = [p for t in (*PAPER, *OURS) for p in page.topic_pictures(t, results, judged)]
    assert {p.name for p in pictures(results)} < {p.name for p in drawn}
    assert {p.experiment for p in pictures(results)} == set(TINY.only) - {"table2"}
    markdown = (folder / "index.md").read_text("utf-8")
    images = re.findall(r"!\[[^]]*\]\(([^)]*)\)", markdown)
    assert images == [f"figures/{p.name}.svg" for p in drawn]
    assert all((folder / image).is_file() for image in images)
    document = (folder / "index.html").read_text("utf-8")
    sources = re.findall(r'(?:src|href)="([^"]*)"', document)
    assert sum(s.startswith("data:image/svg+xml;base64,") for s in sources) == len(drawn)
    assert all(s.startswith(("data:", "#")) for s in sources)
    assert "http" not in re.sub(r'src="data:[^"]*"', "", document)
    assert len(document) < 5e6


def test_findings_come_first_then_claims_then_settings(done):
    folder, _ = done
    markdown = (folder / "index.md").read_text("utf-8")
    first, *sections = re.split(r"^## ", markdown, flags=re.MULTILINE)
    titles = [section.partition("\n")[0] for section in sections]
    known = [topic.title for topic in (*PAPER, *OURS)]
    assert titles[:-1] == [title for title in known if title in titles]
    assert titles[-1] == "How the runs were made"
    links = re.findall(r'<a href="#([^"]*)">([^<]*)</a>', first)
    assert [title for _, title in links] == [t for t in titles[:-1] if t in dict(links).values()]
    document = (folder / "index.html").read_text("utf-8")
    for name, title in links:
        assert f'<h2 id="{name}">{title}</h2>' in document
    assert first.index("claims of the paper that were run") < first.index("<table")
    # Whoever sees no colours reads signs.
    for kind, sign in (("yes", "✓"), ("no", "✗"), ("mixed", "~")):
        marked = re.findall(rf'class="(?:chip )?{kind}">(.)', markdown)
        assert set(marked) <= {sign}
        assert marked or kind != "yes"


def test_every_claim_has_one_place_on_the_page():
    names = [claim.name for claim in (*CLAIMS, *QUESTIONS)]
    assert len(set(names)) == len(names)
    assert all(bool(claim.quote) == (claim in CLAIMS) for claim in (*CLAIMS, *QUESTIONS))
    shown = [name for topic in (*PAPER, *OURS) for name in topic.experiments]
    assert sorted(shown) == sorted(EXPERIMENTS)


def test_the_theorems_hold_on_the_runs_that_were_watched(done):
    """Two seeds of 60 rows: bounds are about means, and far above what is seen."""
    results = Results(Store(done[0]).read()[0])
    for claim in CLAIMS:
        if claim.name.startswith(("bound-", "rate-")):
            cases = claim.cases(results)
            assert cases
            assert all(case.verdict is Verdict.HOLDS for case in cases), claim.name


def test_the_page_says_what_was_not_run(done):
    folder, _ = done
    assert "cov1" in (folder / "index.md").read_text("utf-8").partition("Not run")[2]


def test_an_early_end_has_every_method():
    seeds = [task.seed for task in grid.tasks(grid.Scope())]
    assert seeds == sorted(seeds)
    assert sum(task.experiment == "table2" for task in grid.tasks(grid.Scope(seeds=3))) == 5
    todo = grid.tasks(grid.Scope())
    assert {astuple(t)[:4] for t in todo if t.seed == 0} == {astuple(t)[:4] for t in todo}


def test_the_grid_is_that_of_the_experiments():
    todo = grid.tasks(grid.Scope())
    assert len(set(todo)) == len(todo)
    assert {task.experiment for task in todo} == set(EXPERIMENTS)
    full = [t for t in todo if t.experiment == "full" and t.method == "adasdca" and t.seed == 0]
    assert sorted(t.data for t in full) == ["dorothea", "ijcnn1", "mushrooms", "w8a"]
    comparison = {astuple(t)[1:4] for t in todo if t.experiment == "methods"}
    assert len(comparison) == 5 * 2 * 6
    # On two cores, every run to the end of its budget.
    assert grid.most_seconds(todo, 2) < 3 * 3600


def test_methods_of_plugins_join_the_comparison(command, forgetful, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import adasdca\n"
        "@adasdca.register_method('mine-first')\n"
        "def mine(survey, rng):\n"
        "    return rng.permutation(len(survey.beta))\n"
        "adasdca.register_rule('mine-flat', lambda survey: survey.weight)\n"
    )
    arguments = ["--only", "methods", "--quick", "--budget", "0.02", "--jobs", "2", "--json"]
    ended = command("--plugin", "mine.py", *arguments)
    assert ended.exit_code == 0, ended.output
    records, _ = Store(tmp_path / "reproduction").read()
    labels = {r["method"] for r in records}
    assert {"mine-first", "option mine-flat"} <= labels
    assert all(r["status"] != "failed" for r in records)
    assert "mine-first" in (tmp_path / "reproduction" / "index.md").read_text("utf-8")


def test_the_command_goes_on_where_it_was_and_draws_again(command, tmp_path):
    arguments = ["--only", "samplers", "--quick", "--budget", "0.02", "--output", "here"]
    first = command(*arguments)
    assert first.exit_code == 0, first.output
    assert "Left out, not here: dorothea" in first.stderr
    assert first.stdout.splitlines()[-1] == "Page: " + os.path.join("here", "index.html")
    assert "\x1b" not in first.stderr
    lines = (tmp_path / "here" / "runs.jsonl").read_bytes()
    second = command(*arguments)
    assert "0 runs, 4 stored already" in second.stderr
    assert (tmp_path / "here" / "runs.jsonl").read_bytes() == lines
    (tmp_path / "here" / "index.html").unlink()
    third = command("--figures-only", "--output", "here", "--json")
    assert third.exit_code == 0
    assert json.loads(third.stdout)["runs"] == 4
    assert third.stderr == ""
    assert (tmp_path / "here" / "index.html").is_file()


def test_times_are_announced_as_they_usually_are_and_at_most(command):
    ended = command("--only", "samplers", "--quick", "--budget", "0.02")
    assert "4 runs; usually about 1 s, at most 1 s." in ended.stderr.splitlines()
    whole = grid.tasks(grid.Scope(quick=True))
    assert grid.usual_seconds(whole, 1) < 120  # "about a minute" of the help
    assert grid.usual_seconds(whole, 1) < grid.most_seconds(whole, 1)
    assert grid.usual_seconds(whole, 2) == grid.usual_seconds(whole, 1) / 2


def test_parts_made_elsewhere_are_put_together(command, tmp_path):
    part = ["--quick", "--budget", "0.02"]
    for name, place in (("samplers", "there"), ("table2", "here")):
        assert command("--only", name, "--output", place, *part).exit_code == 0
    here, there = (Store(tmp_path / place) for place in ("here", "there"))
    here.path.write_bytes(here.path.read_bytes() + 2 * there.path.read_bytes())
    ended = command("--figures-only", "--output", "here", "--json")
    assert ended.exit_code == 0, ended.output
    assert json.loads(ended.stdout)["runs"] == 5
    assert {r["experiment"] for r in here.read()[0]} == {"samplers", "table2"}


def test_a_copy_without_history_is_told_its_commit(monkeypatch):
    monkeypatch.setenv("ADASDCA_COMMIT", "c0ffee")
    assert commit.__wrapped__() == "c0ffee"
    monkeypatch.setenv("ADASDCA_COMMIT", "")
    assert commit.__wrapped__() != ""


def test_several_processes_begin_with_the_longest_runs():
    todo = grid.tasks(grid.Scope(quick=False))
    budgets = [task.protocol.budget for task in grid.longest_first(todo)]
    assert budgets == sorted(budgets, reverse=True)
    assert len(budgets) == len(todo)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "figure9"], "table1"),
        (["--figures-only"], "without --figures-only"),
        (["--plugin", "nowhere.py"], "nowhere.py"),
        (["--jobs", "0"], "--jobs"),
        (["--seeds", "0"], "--seeds"),
        (["--budget", "0"], "--budget"),
    ],
)
def test_a_wrong_argument_is_named(arguments, message, command, tmp_path):
    ended = command(*arguments)
    assert ended.exit_code == 2
    assert message in ended.stderr
    assert isinstance(ended.exception, SystemExit)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_something_else_is_refused(command, tmp_path):
    (tmp_path / "runs.jsonl").write_text('{"experiment": "methods"}\n')
    ended = command("--figures-only", "--output", ".")
    assert ended.exit_code == 2
    assert "runs.jsonl, line 1" in ended.stderr


def test_a_folder_that_cannot_be_written_is_a_failure_of_io(command, tmp_path):
    (tmp_path / "file").write_text("")
    ended = command("--only", "table2", "--output", "file/inside")
    assert ended.exit_code == 3
    assert isinstance(ended.exception, SystemExit)


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interruption_keeps_what_was_done(jobs, tmp_path):
    # The last of these runs, Algorithm 1 on all rows, takes longer than anyone here waits.
    arguments = ["--only", "full", "--quick", "--budget", "3600", "--jobs", str(jobs)]
    process = subprocess.Popen(
        [sys.executable, "-m", "adasdca", "reproduce", *arguments],
        cwd=tmp_path,
        env={**os.environ, "ADASDCA_DATA": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    stored = tmp_path / "reproduction" / "runs.jsonl"
    while process.poll() is None and not (stored.is_file() and stored.stat().st_size):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, words = process.communicate()
    assert process.returncode == 130, words
    assert "what was done is stored" in words
    records, cut = Store(stored.parent).read()
    assert cut == 0
    assert records
    assert all(record["status"] in ("converged", "stalled") for record in records)


def test_labels_are_known():
    for experiment in EXPERIMENTS.values():
        assert set(experiment.methods) <= METHODS.keys() | {"shape"}
        assert set(experiment.costs) <= set(experiment.methods)


def test_the_help_names_all_experiments():
    from adasdca.cli import reproduce

    assert tuple(EXPERIMENTS) == reproduce.EXPERIMENTS
