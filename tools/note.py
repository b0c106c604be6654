"""Make the note of docs/note: its tables from data files, and the PDF where LaTeX is installed.

    python tools/note.py [FOLDER]

The folder, `build/note` unless given, gets the text, the tables and `note.pdf`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from adasdca_reproduce.paper import CLAIMS
from adasdca_reproduce.questions import QUESTIONS
from adasdca_reproduce.results import Results
from adasdca_reproduce.store import Store
from adasdca_reproduce.verdicts import summary

ROOT = Path(__file__).resolve().parents[1]
NOTE = ROOT / "docs" / "note" / "note.tex"
EPOCHS = ROOT / "benchmarks" / "results" / "published" / "options.json"
RUNS = ROOT / "docs" / "reproduction"
SPECIAL = {"_": r"\_", "%": r"\%", "&": r"\&", "`": "", "−": "$-$", "λ": r"$\lambda$"}


def escaped(text: str) -> str:
    """Return words as LaTeX."""
    return "".join(SPECIAL.get(letter, letter) for letter in text)


def longtable(
    caption: str, label: str, columns: str, head: list[str], rows: list[list[str]]
) -> str:
    """Return a table that may run over pages."""
    lines = [" & ".join(map(escaped, row)) + r" \\" for row in rows]
    top = " & ".join(map(escaped, head)) + r" \\"
    return "\n".join(
        [
            rf"\begin{{longtable}}{{{columns}}}",
            rf"\caption{{{caption}}}\label{{{label}}}\\",
            r"\toprule",
            top,
            r"\midrule",
            r"\endhead",
            *lines,
            r"\bottomrule",
            r"\end{longtable}",
            "",
        ]
    )


def epochs() -> str:
    """Return the epochs by option and m."""
    result: dict[str, Any] = json.loads(EPOCHS.read_text("utf-8"))
    cap, cases = result["cap"], result["cases"]
    labels = list(cases[0]["counts"])
    rows = [
        [case["data"], case["loss"].replace("_", " ")]
        + [f"$>${cap}" if n is None else f"{n:g}" for n in (case["counts"][k] for k in labels)]
        for case in cases
    ]
    caption = f"Epochs to a relative gap of $10^{{-6}}$; medians of {result['seeds']} seeds."
    head = ["data", "loss", *("perm." if k == "permutations" else k for k in labels)]
    return longtable(caption, "epochs", "ll" + "r" * len(labels), head, rows)


@cache
def stored() -> Results:
    """Return the published runs, which take a while to read."""
    return Results(Store(RUNS).read()[0])


def claims() -> str:
    """Return how often each claim holds."""
    results = stored()
    rows = []
    for claim in (*CLAIMS, *QUESTIONS):
        counts = summary(claim.cases(results))
        numbers = (counts.holds, counts.fails, counts.close, counts.tied, counts.open)
        rows.append([claim.reading, *(str(n) if n else "" for n in numbers)])
    head = ["claim", "holds", "does not", "close", "tied", "open"]
    return longtable("Claims of the paper, and questions beyond it.", "claims",
                     "p{85mm}rrrrr", head, rows)  # fmt: skip


TABLES: dict[str, Callable[[], str]] = {"epochs": epochs, "claims": claims}


def main() -> None:
    """Write the tables, and build the PDF."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "note"
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    shutil.copy(NOTE, folder / NOTE.name)
    for name, make in TABLES.items():
        (folder / "tables" / f"{name}.tex").write_text(make(), "utf-8")
    latex = shutil.which("latexmk") or shutil.which("pdflatex")
    if latex is None:
        sys.exit(
            f"{folder} has the text and its tables, but neither latexmk nor pdflatex was found; "
            "install a LaTeX (Debian: texlive-latex-extra latexmk) and run this again."
        )
    command = [latex, *(["-pdf"] if latex.endswith("latexmk") else []), "-halt-on-error", NOTE.name]
    for _ in range(1 if latex.endswith("latexmk") else 2):  # the second run knows the references
        subprocess.run(command, cwd=folder, check=True)
    print(folder / "note.pdf")


if __name__ == "__main__":
    main()
