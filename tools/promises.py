"""Run the commands behind docs/promises.md: promises.py [NAME ...] [--table].

Each command runs from the root of the checkout. Its last figures go to docs/_promises/NAME.json,
and the page's table is written from these files. `--table` runs nothing and writes the table. A
command that is not in this checkout is left out; so is its promise, until there are figures.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "_promises"
TESTS = r"\d+ passed[^=\n]*"


@dataclass(frozen=True)
class Promise:
    """A sentence, the command that tests it, and what of its output are figures."""

    sentence: str
    command: str
    figures: str = TESTS  # the last match of this pattern

    def exists(self) -> bool:
        """Return whether all files of the command are there."""
        words = self.command.split()
        files = [word for word in words if word.endswith(".py")]
        if "-m" in words and words[words.index("-m") + 1].startswith("benchmarks."):
            files.append(words[words.index("-m") + 1].replace(".", "/") + ".py")
        return all((ROOT / file).exists() for file in files)


PROMISES = {
    "certificate": Promise(
        "Gap, lower bound and radius of a certificate hold for the data as given, rounding "
        "included.",
        "python -m pytest tests/test_certificates_exactly.py",
    ),
    "oracle": Promise(
        "No certificate of random small problems is refuted by an optimum of sixty digits.",
        "python -m benchmarks.oracle --counts docs/_promises/counts/oracle.json",
        r"\d+ problems: .*",
    ),
    "sturdiness": Promise(
        "A default solve reaches its tolerance on ordinary and on nasty data.",
        "python -m benchmarks.sturdiness --share 0.02",
        r"\d+ of \d+, \d+ failures",
    ),
    "attack": Promise(
        "Nor do problems that were searched for keep it from there.",
        "python -m benchmarks.attack",
        r"\d+ problems: .*",
    ),
    "interruption": Promise(
        "Ctrl-C and a time limit end a solve at any place, and what was reached is returned "
        "with its certificate.",
        "python -m pytest tests/test_stopping.py tests/test_interruption.py",
    ),
    "time": Promise(
        "`max_time` is exceeded by a tenth of a second and a pass over the rows at most, on ten "
        "million rows.",
        "python -m benchmarks.max_time",
        r"no limit was .*",
    ),
    "interpreter": Promise(
        "No kernel keeps other threads of Python waiting.",
        "python -m pytest tests/test_gil.py",
    ),
    "writers": Promise(
        "A file that is written is the old one or the new one, whatever ends the writer, and a "
        "full disk loses no model.",
        "python -m pytest tests/test_atomic.py tests/test_full_disk.py tests/test_storage.py",
    ),
    "readers": Promise(
        "Damaged files of every format end in an exception of ours, before memory is taken.",
        "python -m pytest tests/test_fuzz.py tests/test_files_bad.py tests/test_models.py",
    ),
    "files": Promise(
        "No file crashes a reader: it is read as what it says, or refused with an exception.",
        "make fuzz TIME=1800",
        r"\d+ inputs in .*",
    ),
    "memory": Promise(
        "The core has no access out of bounds and no undefined behaviour that its tests reach.",
        "make sanitize",
    ),
    "races": Promise(
        "The core's threads do not race.",
        "make sanitize SANITIZER=thread",
    ),
    "environments": Promise(
        "Certificates hold under `python -OO`, with raised floating-point errors, with flush to "
        "zero, and at every instruction-set level.",
        "python -m pytest tests/test_environments.py",
    ),
    "determinism": Promise(
        "The same seed gives the same bits, for any number of threads.",
        'python -m pytest tests/test_kernels.py tests/test_stopping.py -k "no_bit or same_bits"',
    ),
}


def run(name: str) -> bool:
    """Run a command, keep its figures, and return whether it succeeded."""
    promise = PROMISES[name]
    words = shlex.split(promise.command)
    words[0] = sys.executable if words[0] == "python" else words[0]
    version = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    done = subprocess.run(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    found = re.findall(promise.figures, done.stdout)
    record = {
        "command": promise.command,
        "date": dt.date.today().isoformat(),
        "commit": version.stdout.strip(),
        "kept": done.returncode == 0,
        "figures": found[-1].strip() if found else "no figures",
    }
    print(f"{name}: {record['figures']}, exit status {done.returncode}")
    if done.returncode != 0:
        print(done.stdout[-4000:])
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    return done.returncode == 0


def table() -> str:
    """Return the table of the page, in the order of the promises."""
    lines = ["| promise | command | last run |", "| --- | --- | --- |"]
    for name, promise in PROMISES.items():
        path = FOLDER / f"{name}.json"
        if not path.exists():
            continue
        last: dict[str, Any] = json.loads(path.read_text("utf-8"))
        kept = "kept" if last["kept"] else "**broken**"
        lines.append(
            f"| {promise.sentence} | `{last['command']}` | {kept}, {last['date']}, "
            f"`{last['commit']}`: {last['figures']} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what was asked for, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROMISES))
    parser.add_argument("--table", action="store_true", help="run nothing")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in PROMISES]:
        parser.error(f"no promise named {', '.join(unknown)}; known are {', '.join(PROMISES)}")
    kept = True
    if not options.table:
        for name in options.names or [each for each in PROMISES if PROMISES[each].exists()]:
            kept &= run(name)
    (FOLDER / "table.md").write_text(table(), "utf-8")
    sys.exit(not kept)


if __name__ == "__main__":
    main()
