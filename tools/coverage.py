"""Print the lines of Python and of C++ that the last `make coverage` ran: coverage.py BUILD_FOLDER.

Python's lines are in .coverage, as pytest-cov left it; those of the core in BUILD_FOLDER, as gcov
counts them. A header's line that any of the compiled files ran counts as run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class File(NamedTuple):
    """Lines of one file."""

    name: str
    lines: int
    missed: list[int]


def python_files() -> list[File]:
    """Read what pytest-cov wrote."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "coverage", "json", "-q", "-o", str(report)]
        subprocess.run(command, cwd=ROOT, check=True)
        files = json.loads(report.read_text("utf-8"))["files"]
    return [
        File(name, found["summary"]["num_statements"], found["missing_lines"])
        for name, found in files.items()
    ]


def core_files(build: Path) -> list[File]:
    """Let gcovr add up the counts of the compiled files."""
    command = [sys.executable, "-m", "gcovr", "--root", str(ROOT), "--filter", str(ROOT / "core")]
    command += ["--gcov-ignore-parse-errors=suspicious_hits.warn", "--json", "-", str(build)]
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found = []
    for entry in json.loads(run.stdout)["files"]:
        counts: dict[int, int] = {}
        for line in entry["lines"]:
            counts[line["line_number"]] = counts.get(line["line_number"], 0) + line["count"]
        missed = [number for number, count in sorted(counts.items()) if count == 0]
        found.append(File(entry["file"], len(counts), missed))
    return found


def spans(numbers: list[int]) -> str:
    """Return 3, 4, 5, 9 as 3-5 9."""
    text: list[list[int]] = []
    for number in numbers:
        if text and number == text[-1][1] + 1:
            text[-1][1] = number
        else:
            text.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in text)


def share(files: list[File]) -> float:
    """Return the per cent of the lines that ran."""
    lines = sum(file.lines for file in files)
    return 100 * (1 - sum(len(file.missed) for file in files) / max(lines, 1))


def main() -> None:
    """Print both shares, and where the largest holes are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path, help="where the core was compiled")
    parser.add_argument("-o", "--output", type=Path, help="write the figures here, as JSON")
    parser.add_argument("--holes", type=int, default=25, help="how many files to list")
    options = parser.parse_args()
    kinds = {"Python": python_files(), "C++": core_files(options.build)}
    for kind, files in kinds.items():
        print(f"{kind}: {share(files):.1f} % of {sum(file.lines for file in files)} lines")
        for file in sorted(files, key=lambda file: -len(file.missed))[: options.holes]:
            if file.missed:
                print(f"  {len(file.missed):4} {file.name}: {spans(file.missed)}")
    if options.output:
        figures = {kind: round(share(files), 1) for kind, files in kinds.items()}
        options.output.write_text(json.dumps(figures) + "\n", "utf-8")


if __name__ == "__main__":
    main()
