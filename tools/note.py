"""Make the note of docs/note: its tables from data files, and the PDF where LaTeX is installed.

    python tools/note.py [FOLDER]

The folder, `build/note` unless given, gets the text, the tables and `note.pdf`.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from adasdca_reproduce import page
from adasdca_reproduce.figures import NAMES, THEOREMS, pictures
from adasdca_reproduce.inside import PRECISE, arrival
from adasdca_reproduce.paper import PAPER
from adasdca_reproduce.questions import OURS
from adasdca_reproduce.rates import rates as of_method
from adasdca_reproduce.results import Results
from adasdca_reproduce.store import Store

ROOT = Path(__file__).resolve().parents[1]
NOTE = ROOT / "docs" / "note" / "note.tex"
EPOCHS = ROOT / "benchmarks" / "results" / "published" / "options.json"
RUNS = ROOT / "docs" / "reproduction"
SPECIAL = {"_": r"\_", "%": r"\%", "&": r"\&", "`": "", "−": "$-$", "λ": r"$\lambda$"}


def escaped(text: str) -> str:
    """Return words as LaTeX."""
    return "".join(SPECIAL.get(letter, letter) for letter in text)


def table(caption: str, label: str, columns: str, head: list[str], rows: list[list[str]]) -> str:
    """Return a table that floats."""
    lines = [" & ".join(map(escaped, row)) + r" \\" for row in rows]
    top = " & ".join(map(escaped, head)) + r" \\"
    return "\n".join(
        [
            r"\begin{table}[tp]",
            r"\centering\footnotesize\setlength{\tabcolsep}{2.5pt}",
            rf"\caption{{{caption}}}\label{{{label}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            top,
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


#: A column of so many millimetres, with a ragged edge.
LEFT = r">{{\raggedright\arraybackslash}}p{{{}mm}}"

#: Columns of the table of epochs, and what they are called.
COLUMNS = {"permutations": "perm.", "I 2": "I", "III 2": "III", "I+III 2": "mix", "I 2 again": "I'"}


def loss_name(loss: str) -> str:
    """Return a loss as the table of epochs has it, which is narrow."""
    short = loss.replace("epsilon_insensitive", r"$\varepsilon$-insensitive")
    return short.replace("squared_", "sq. ").replace("_", " ")


def reached(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cases in which options differ, and one of them or permutations arrives."""
    return [
        case
        for case in result["cases"]
        if COLUMNS.keys() <= case["counts"].keys()
        and any(case["counts"][label] is not None for label in COLUMNS)
    ]


def epochs() -> str:
    """Return the epochs by option at m = 2, the cases in two columns."""
    result: dict[str, Any] = json.loads(EPOCHS.read_text("utf-8"))
    cap, cases = result["cap"], sorted(reached(result), key=lambda c: (c["data"], c["loss"]))
    rows = [
        [case["data"], loss_name(case["loss"])]
        + [f"$>${cap}" if n is None else f"{n:g}" for n in (case["counts"][k] for k in COLUMNS)]
        for case in cases
    ]
    half = -(-len(rows) // 2)
    empty = [""] * (2 + len(COLUMNS))
    pairs = [rows[k] + (rows[k + half] if k + half < len(rows) else empty) for k in range(half)]
    caption = (
        f"Epochs to a relative gap of $10^{{-6}}$, $m=2$; medians of {result['seeds']} seeds. "
        f"Cases that no column gets to in {cap} epochs are left out. "
        "\\emph{mix} is the mean of options I and III, I$'$ option I with other seeds."
    )
    head = ["data", "loss", *COLUMNS.values()]
    columns = "ll" + "r" * len(COLUMNS)
    return table(caption, "epochs", f"{columns}@{{\\quad}}{columns}", head * 2, pairs).replace(
        r"footnotesize\setlength{\tabcolsep}{2.5pt}", r"scriptsize\setlength{\tabcolsep}{1.8pt}"
    )


@cache
def stored() -> Results:
    """Return the published runs, which take a while to read."""
    return Results(Store(RUNS).read()[0])


def claims() -> str:
    """Return how often each claim holds, by the ways to read it."""
    judged = page.judge(stored())
    rows = []
    for line in page.lines((*PAPER, *OURS), judged):
        groups = (f"{common + ': ' if common else ''}{', '.join(parts)}" for common, parts in
                  line.parts.items())  # fmt: skip
        rows.append([line.heading, line.verdict, "; ".join(groups)])
    rows = [[re.sub("[✓✗~] ?", "", cell) for cell in row] for row in rows]
    rows = [[re.sub(r"(\d+) of (?=\d)", r"\1/", cell) for cell in row] for row in rows]
    caption = "Claims of the paper, and below the line questions beyond it, by ways to read them."
    text = table(
        caption,
        "claims",
        LEFT.format(50) + "l" + LEFT.format(88),
        ["claim", "verdict", "holds in"],
        rows,
    )
    first = escaped(OURS[0].title)
    return text.replace(f"\n{first} &", f"\n\\midrule\n{first} &")


def rates() -> str:
    """Return rates and bounds beside what was measured."""
    results = stored()
    rows = []
    for problem in results.problems("theory"):
        for method, losses in THEOREMS.items():
            seen = of_method(results, problem, method)
            if seen is None or problem[1] not in losses:
                continue
            k = arrival(seen)
            told = seen.gap > PRECISE
            rows.append(
                [
                    problem[0],
                    problem[1].replace("_", " "),
                    NAMES[method],
                    f"{statistics.median(seen.ratio[told]):.2f}",
                    f"{seen.ratio[told].max():.2f}",
                    f"{seen.epochs[k]:.0f}",
                    f"{seen.gap[k]:.0e}",
                    f"{seen.bound[k]:.0e}",
                ]
            )
    head = ["data", "loss", "method", "median", "largest", "epochs", "gap", "bound"]
    caption = (
        r"Rates $\tilde\theta_t/\theta_*$ over a run, and the mean relative gap with its bound at "
        "the end of the run or when it reaches $10^{-6}$, whichever is first."
    )
    return table(caption, "rates", "lllrrrrr", head, rows)


TABLES: dict[str, Callable[[], str]] = {"epochs": epochs, "claims": claims, "rates": rates}
#: The picture of the note, one of the reproduction's.
PICTURE = "theory-mushrooms-smoothed_hinge"


def draw(path: Path) -> None:
    """Draw the picture of rates and bounds."""
    from matplotlib.figure import Figure

    (picture,) = [p for p in pictures(stored()) if p.name == PICTURE]
    figure = Figure(figsize=picture.size, layout="constrained")
    picture.paint(figure)
    figure.savefig(path, metadata={"CreationDate": None})


def main() -> None:
    """Write the tables, and build the PDF."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "note"
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    shutil.copy(NOTE, folder / NOTE.name)
    for name, make in TABLES.items():
        (folder / "tables" / f"{name}.tex").write_text(make(), "utf-8")
    draw(folder / f"{PICTURE}.pdf")
    latex = shutil.which("latexmk") or shutil.which("pdflatex")
    if latex is None:
        sys.exit(
            f"{folder} has the text and its tables, but neither latexmk nor pdflatex was found; "
            "install a LaTeX (Debian: texlive-latex-extra lmodern latexmk) and run this again."
        )
    command = [latex, *(["-pdf"] if latex.endswith("latexmk") else []), "-halt-on-error", NOTE.name]
    for _ in range(1 if latex.endswith("latexmk") else 2):  # the second run knows the references
        subprocess.run(command, cwd=folder, check=True)
    print(folder / "note.pdf")


if __name__ == "__main__":
    main()
