"""The program as the shell sees it: codes, pipes, signals, terminals, completion."""

import contextlib
import gzip
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import adasdca
from adasdca import models
from adasdca.cli import inputs, main
from adasdca.cli.app import EXAMPLES
from adasdca.cli.progress import Progress, stops_on_ctrl_c
from adasdca.cli.reproduce import reproduce
from bundled import cancer
from commands import call, environment, run, start, write

pty = pytest.importorskip("pty", reason="signals and terminals as Unix has them")

ENDLESS = ["--loss", "hinge", "--C", "1e6", "--method", "sdca", "--tol", "0",
           "--max-epochs", "100000000"]  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("process") / "m"
    done = run("fit", "--model", path, "--json", cwd=path.parent)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["model"] == str(path)
    assert models.load(path).provenance["command"] == f"adasdca fit --model {path} --json"
    return path


def interrupt_at(monkeypatch, count):
    """Press Ctrl-C at a record of the command that is called next; return what follows it."""
    follow, seen = Progress.follow, []

    def followed(self, label):
        draw = follow(self, label)

        def look(record):
            seen.append(label)
            if len(seen) == count:
                os.kill(os.getpid(), signal.SIGINT)
            draw(record)

        return look

    monkeypatch.setattr(Progress, "follow", followed)
    return seen


def test_ctrl_c_keeps_the_model(tmp_path, capsys, monkeypatch):
    seen = interrupt_at(monkeypatch, 2)
    done = call(capsys, "fit", "mushrooms", *ENDLESS, "--model", tmp_path / "m", "--json")
    assert done.returncode == 130
    assert len(seen) == 2
    assert json.loads(done.stdout)["status"] == "interrupted"
    assert "Stopping with what is certified" in done.stderr
    kept = models.load(tmp_path / "m")
    assert kept.provenance["status"] == "interrupted"
    X, y = adasdca.datasets.load_mushrooms()
    (certificate,) = models.certify(kept, X, y)
    assert certificate.primal == pytest.approx(kept.certificates[0]["primal"])


def test_ctrl_c_of_a_process(tmp_path):
    """Whenever it comes: a model and its certificate, or a word and nothing."""
    # Files that others are about to open, such as those of entry points, are left open by it.
    arguments = "fit", "mushrooms", *ENDLESS, "--model", "m", "--json"
    process = start(*arguments, cwd=tmp_path, warnings="ignore::ResourceWarning")
    assert "8124 rows" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in err
    if (tmp_path / "m").exists():
        assert "Stopping with what is certified" in err
        assert json.loads(out)["status"] == "interrupted"
        assert models.load(tmp_path / "m").provenance["status"] == "interrupted"
    else:
        assert out == ""
        assert err.endswith("Interrupted.\n")


@pytest.mark.parametrize(
    ("command", "options"),
    [("path", ["--C", "1", "--C", "10"]), ("compare", ["--max-time", "1e6", "--lam", "1e-6"])],
)
def test_ctrl_c_stops_all_solves_of_a_command(command, options, tmp_path, capsys, monkeypatch):
    seen = interrupt_at(monkeypatch, 1)
    options = [*options, "--tol", "0", "--output", str(tmp_path / "picture.png")]
    done = call(capsys, command, "mushrooms", *options, "--max-epochs", "100000", "--json")
    assert done.returncode == 130
    assert len(seen) == 1
    assert (tmp_path / "picture.png").exists()
    (reached,) = json.loads(done.stdout)["points" if command == "path" else "runs"]
    assert reached["status"] == "interrupted"


def test_ctrl_c_while_reading_is_130_and_writes_nothing(tmp_path):
    os.mkfifo(tmp_path / "slow.svm")  # its reader waits for ever
    # An interrupted open is a file that was never closed: no warning to make an error of.
    process = start("fit", "slow.svm", "--model", "m", cwd=tmp_path, warnings="default")
    writer = None
    while writer is None and process.poll() is None:
        with contextlib.suppress(OSError):  # until the program reads
            writer = os.open(tmp_path / "slow.svm", os.O_WRONLY | os.O_NONBLOCK)
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, err
    os.close(writer)
    assert err.endswith("Interrupted.\n")
    assert out == ""
    assert not (tmp_path / "m").exists()


def test_every_class_is_certified_when_interrupted(tmp_path, capsys, monkeypatch):
    """The solves that had not begun hand over the certificate of the model 0."""
    X = np.random.default_rng(0).standard_normal((3000, 4))
    write(tmp_path / "three.svm", X, np.arange(3000) % 3)
    seen = interrupt_at(monkeypatch, 1)
    done = call(capsys, "fit", tmp_path / "three.svm", "--json", "--model", tmp_path / "m",
                "--tol", "1e-12", "--multi-class", "ovr")  # fmt: skip
    assert done.returncode == 130
    assert len(seen) == 1
    assert json.loads(done.stdout)["status"] == "interrupted"
    kept = models.load(tmp_path / "m")
    assert len(kept.certificates) == 3
    assert all(np.isfinite(c["gap"]) for c in kept.certificates)


def test_a_second_ctrl_c_stops_at_once(capsys):
    before = signal.getsignal(signal.SIGINT)
    with stops_on_ctrl_c() as around:
        assert not around.wished
        signal.raise_signal(signal.SIGINT)
        assert around.wished
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    assert "Ctrl-C again" in capsys.readouterr().err


def test_a_reader_that_has_enough_is_no_error(model):
    """More is written than a pipe holds, so that the end of the reader is noticed."""
    for more in ("--scores", "--json"):
        process = start("predict", model, "mushrooms", more, cwd=model.parent)
        assert process.stdout.read(1) in "-1{"
        process.stdout.close()
        with process.stderr:
            err = process.stderr.read()
        assert process.wait() == 0
        assert "Traceback" not in err
        assert "rror" not in err


def test_a_model_is_written_though_nobody_listens(tmp_path):
    """As in `adasdca fit ... 2>&1 | head -1`."""
    process = start("fit", "--model", "m", cwd=tmp_path)
    process.stderr.close()
    with process.stdout:
        assert process.stdout.read() == ""
    assert process.wait() == 0
    assert models.load(tmp_path / "m").n_features == 112


def test_ctrl_c_at_the_start(capsys, monkeypatch):
    class Slow:
        def find_spec(self, name, path, target=None):
            if name == "adasdca.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "adasdca.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Slow(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "Interrupted.\n"


def test_a_closed_stdout_is_no_error(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "argv", ["adasdca", "fit", "mushrooms", "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code


def test_a_full_disk_is_code_3(model):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    done = run("predict", model, "mushrooms", "--output", "/dev/full", cwd=model.parent)
    assert done.returncode == 3
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_fails_is_code_3(tmp_path, capsys, monkeypatch):
    write(tmp_path / "d.svm", *cancer())

    def fail(*_, **__):
        raise PermissionError(13, "Permission denied", "d.svm")

    monkeypatch.setattr(inputs, "read", fail)
    done = call(capsys, "fit", tmp_path / "d.svm")
    assert done.returncode == 3
    assert done.stderr.endswith("Error: d.svm: Permission denied\n")


def test_a_file_without_rights_is_told_before_the_fit(tmp_path, capsys, monkeypatch):
    (tmp_path / "m").write_text("precious")
    monkeypatch.setattr(os, "access", lambda path, mode, **_: mode != os.W_OK)
    done = call(capsys, "fit", "--model", tmp_path / "m")
    assert done.returncode == 3
    assert "m cannot be written" in done.stderr
    assert "write-protected" in done.stderr
    assert "rows" not in done.stderr  # the data were not even read
    assert (tmp_path / "m").read_text() == "precious"


@pytest.mark.parametrize(
    "command", [("compare", "--output"), ("path", "--output"), ("fit", "--search", "--picture")]
)
def test_a_picture_without_rights_is_told_before_the_solves(command, tmp_path, capsys, monkeypatch):
    (tmp_path / "p.png").write_text("precious")
    monkeypatch.setattr(os, "access", lambda path, mode, **_: mode != os.W_OK)
    done = call(capsys, *command, tmp_path / "p.png", "mushrooms")
    assert done.returncode == 3
    assert "p.png cannot be written" in done.stderr
    assert "mushrooms" not in done.stdout + done.stderr


def test_bars_move_on_a_terminal(tmp_path):
    """The program runs until they do."""
    main, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "adasdca", "fit", *ENDLESS],
        cwd=tmp_path,
        env=environment(TERM="xterm", COLUMNS="100"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=side,
    )
    os.close(side)
    shown, stopped = b"", False
    while True:
        try:
            piece = os.read(main, 4096)
        except OSError:  # how Linux tells that the other side is closed
            break
        if not piece:
            break
        shown += piece
        if not stopped and "━" in shown.decode(errors="ignore") and b" epochs" in shown:
            process.send_signal(signal.SIGINT)
            stopped = True
    os.close(main)
    assert process.wait() == 130
    assert stopped


def test_examples_of_the_help_work(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.svm").write_text("+1 1:0.5 3:2\n-1 2:1.5\n")
    for command, example in EXAMPLES.items():
        shown = call(capsys, command.__name__, "--help")
        assert call(capsys, command.__name__, "-h") == shown
        assert shown.returncode == 0
        assert shown.stdout.rstrip().endswith(f"Example:\n    {example}")
        if command is reproduce:  # minutes; tested beside it
            continue
        words = shlex.split(example)
        assert words[:2] == ["adasdca", command.__name__]
        done = call(capsys, *words[1:])
        assert done.returncode == 0, done.stderr
    names = {"mushrooms.model", "labels.txt", "compare.png", "train.svm", "train.packed"}
    assert {p.name for p in tmp_path.iterdir()} == names


def test_help_lists_commands_and_codes(capsys):
    shown = call(capsys, "--help").stdout
    for name in ("fit", "predict", "certify", "path", "compare", "pack", "datasets", "reproduce"):
        assert re.search(rf"^  {name} ", shown, re.MULTILINE)
    for code in ("0", "1", "2", "3", "130"):
        assert re.search(rf"^    {code} ", shown, re.MULTILINE)
    assert "--install-completion" in shown


def test_the_script_and_the_module_are_the_same(tmp_path):
    script = Path(sys.executable).with_name("adasdca")
    if not script.exists():
        pytest.skip("the script is not installed beside this Python")
    done = subprocess.run([script, "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == run("--help", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("adasdca fit --loss smo", {"smoothed_hinge"}),
        ("adasdca fit --method ada", {"adasdca", "adasdca+"}),
        ("adasdca compare mush", {"mushrooms"}),
        ("adasdca predict m tiny", {"tiny.svm"}),
        ("adasdca path d --format p", {"parquet"}),
    ],
)
def test_completion(line, expected, tmp_path, capsys, monkeypatch):
    (tmp_path / "tiny.svm").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("_ADASDCA_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    done = call(capsys)
    assert set(done.stdout.split()) == expected, done.stderr


def test_completion_is_offered(capsys, monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "True")
    done = call(capsys, "--show-completion", "bash")
    assert "_ADASDCA_COMPLETE=complete_bash" in done.stdout


def test_what_is_piped_in_is_read_and_named(tmp_path):
    """`zcat train.svm.gz | adasdca fit` fits what comes through the pipe."""
    X = np.random.default_rng(0).normal(size=(50, 3))
    write(tmp_path / "a.svm", X, np.sign(X[:, 0]))
    packed = gzip.compress((tmp_path / "a.svm").read_bytes())
    for contents in ((tmp_path / "a.svm").read_bytes(), packed):
        done = subprocess.run(
            [sys.executable, "-m", "adasdca", "fit", "--model", "m"],
            cwd=tmp_path, env=environment(), input=contents, capture_output=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert b"standard input: 50 rows, 3 features, 2 classes" in done.stderr
    bad = subprocess.run(
        [sys.executable, "-m", "adasdca", "fit"],
        env=environment(), input=b"+1 1:x\n", capture_output=True,
    )  # fmt: skip
    assert b"standard input, line 1" in bad.stderr
    done = run("fit", "--quiet", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["data"]["source"] == "mushrooms"
