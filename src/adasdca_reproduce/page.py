"""The page: what was run, each claim of the paper with its verdict, and each figure beside them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from adasdca.storage import write_whole
from adasdca_reproduce import words
from adasdca_reproduce.claims import GAPS, Claim
from adasdca_reproduce.document import (
    Block,
    Heading,
    Image,
    Listing,
    Paragraph,
    Quote,
    Table,
    as_html,
    as_markdown,
)
from adasdca_reproduce.experiments import EXPERIMENTS, MS, with_m
from adasdca_reproduce.figures import NAMES, Picture, draw, pictures
from adasdca_reproduce.paper import CLAIMS
from adasdca_reproduce.questions import QUESTIONS
from adasdca_reproduce.results import Measure, Problem, Results
from adasdca_reproduce.tables import (
    PAPER_COSTS,
    PAPER_SHAPES,
    epoch_costs,
    live_shares,
    m_ratios,
    shapes,
)
from adasdca_reproduce.verdicts import Case, Verdict, shown, summary

FOLDER = "figures"
SHORT = {
    Verdict.HOLDS: "✓",
    Verdict.FAILS: "✗",
    Verdict.OPEN: "open",
    Verdict.MISSING: "not run",
}


def write(
    results: Results, folder: Path, see: Callable[[Picture], None] = lambda picture: None
) -> list[Path]:
    """Draw all pictures and write the page as `index.html` and `index.md`; return the files."""
    drawn = pictures(results)
    judged = [(claim, claim.cases(results)) for claim in (*CLAIMS, *QUESTIONS)]
    files = []
    for picture in drawn:
        path = folder / FOLDER / f"{picture.name}.svg"
        draw(picture, results, path)
        files.append(path)
        see(picture)
    blocks = assemble(results, drawn, judged)
    for name, text in (
        ("index.md", as_markdown(blocks)),
        ("index.html", as_html(blocks, folder)),
    ):
        path = folder / name
        write_whole(path, text)
        files.append(path)
    return files


def assemble(
    results: Results, drawn: Sequence[Picture], judged: Sequence[tuple[Claim, list[Case]]]
) -> list[Block]:
    """Return the page: what was found, then the experiments, then how the runs were made."""
    blocks: list[Block] = [
        Heading(1, "The paper's experiments, run again"),
        Paragraph(words.OPENING),
        Heading(2, "What holds"),
        _findings(judged, paper=True),
        Paragraph(words.FINDINGS),
        Heading(2, "What we asked beyond the paper"),
        _findings(judged, paper=False),
        Heading(2, "The same, gap by gap"),
        Paragraph(words.HOW_TO_READ),
        _overview(judged),
    ]
    for name, experiment in EXPERIMENTS.items():
        if not results.of(name):
            continue
        mine = [(claim, cases) for claim, cases in judged if claim.experiment == name]
        blocks += [Heading(2, experiment.title), Paragraph(words.ABOUT[name])]
        if name == "table1":
            blocks.append(_costs(results))
        if name == "table2":
            blocks.append(_shapes(results))
        if name == "methods":
            blocks.append(_gains(results))
        if name == "m":
            blocks.append(_choices(results))
        said: list[Block] = []
        for claim, cases in mine:
            # What several claims share is said once.
            said += [b for b in _claim(claim, cases) if isinstance(b, Table) or b not in said]
        blocks += said
        for picture in drawn:
            if picture.experiment == name:
                blocks += _figure(picture, results, mine)
    blocks.append(Heading(2, "How the runs were made"))
    blocks += [Paragraph(text) for text in words.protocol(results)]
    gone = words.not_run(results)
    if gone:
        blocks += [Paragraph("Not run, and so not judged:"), Listing(tuple(gone))]
    return blocks


def _findings(judged: Sequence[tuple[Claim, list[Case]]], *, paper: bool) -> Table:
    """Return a line for each claim: what came out, and in a few words why it does not hold."""
    rows = []
    for claim, cases in judged:
        if bool(claim.quote) is not paper:
            continue
        decided = [case for case in cases if case.decided]
        why = [e.short for e in claim.explanations if e.short and e.applies(decided)]
        rows.append((words.sentence(cases), claim.reading, _count(cases), "; ".join(why)))
    return Table(("verdict", "claim", "cases", "why"), tuple(rows), left=4)


def _overview(judged: Sequence[tuple[Claim, list[Case]]]) -> Table:
    """Return a line for each claim: how often it holds at each gap."""
    rows = []
    for claim, cases in judged:
        if not any(case.gap is not None for case in cases):
            continue
        by_gap = [_count([c for c in cases if c.gap == gap]) for gap in GAPS]
        rows.append((claim.reading, "paper" if claim.quote else "ours", *by_gap))
    head = ("claim", "whose", *(f"gap {gap:.0e}" for gap in GAPS))
    return Table(head, tuple(rows), left=2)


def _count(cases: list[Case]) -> str:
    """Say how many cases hold, of how many that are decided; close, tied and open ones follow."""
    counts = summary(cases)
    if not counts.total:
        return ""
    decided = counts.holds + counts.fails
    rest = (("close", counts.close), ("tied", counts.tied), ("open", counts.open))
    parts = [f"{counts.holds} of {decided}"] if decided else []
    return ", ".join(parts + [f"{count} {word}" for word, count in rest if count])


def _claim(claim: Claim, cases: list[Case]) -> list[Block]:
    """Return a claim: the quotation, what is judged, the verdict in sum, and why."""
    blocks: list[Block] = [Quote(claim.quote)] if claim.quote else []
    asked = "Judged here" if claim.quote else "Asked beyond the paper"
    blocks.append(Paragraph(f"{asked}: {claim.reading} {words.verdict(cases)}"))
    if any(case.brief for case in cases):
        blocks.append(_matrix(cases))
    elif cases and claim.experiment != "table2":  # which is shown as a whole already
        rows = [
            (words.problem(c.problem), words.gap(c.gap), SHORT[c.verdict] + _mark(c), c.note)
            for c in cases
        ]
        blocks.append(Table(("where", "gap", "verdict", "numbers"), tuple(rows), left=4))
    return blocks + [Paragraph(e.text) for e in claim.explanations if e.applies(cases)]


def _matrix(cases: list[Case]) -> Table:
    """Return verdicts by problem and gap, each with the claimant's number and the best other's."""
    found: dict[Problem, dict[float | None, str]] = {}
    for case in cases:
        short = SHORT[case.verdict] + _mark(case) + (f" {case.brief}" if case.brief else "")
        found.setdefault(case.problem, {})[case.gap] = short
    rows = tuple(
        (words.problem(problem), *(cells.get(gap, "") for gap in GAPS))
        for problem, cells in found.items()
    )
    return Table(("problem", *(f"gap {gap:.0e}" for gap in GAPS)), rows)


def _figure(
    picture: Picture, results: Results, judged: Sequence[tuple[Claim, list[Case]]]
) -> list[Block]:
    """Return a picture with the verdicts on its problem and the numbers behind them."""
    blocks: list[Block] = []
    if picture.panels:
        title = EXPERIMENTS[picture.experiment].title
        blocks.append(Heading(3, f"{title}: {picture.caption.partition(';')[0]}"))
    blocks.append(Image(f"{FOLDER}/{picture.name}.svg", picture.caption))
    rows = []
    for claim, cases in judged:
        here = {case.gap: case for case in cases if case.problem == picture.problem}
        if any(gap in here for gap in GAPS):
            verdicts = [SHORT[here[g].verdict] + _mark(here[g]) if g in here else "" for g in GAPS]
            rows.append((("" if claim.quote else "(ours) ") + claim.reading, *verdicts))
    heads = tuple(f"gap {gap:.0e}" for gap in GAPS)
    if rows:
        blocks.append(Table(("claim", *heads), tuple(rows)))
    if picture.panels:
        measures: tuple[Measure, ...] = tuple(dict.fromkeys(p.measure for p in picture.panels))
        blocks += [_numbers(picture, results, measure, heads) for measure in measures]
    return blocks


def _numbers(picture: Picture, results: Results, measure: Measure, heads: tuple[str, ...]) -> Table:
    labels = {m for panel in picture.panels if panel.measure == measure for m in panel.curves}
    by_gap = [results.needs(picture.experiment, picture.problem, gap, measure) for gap in GAPS]
    rows = tuple(
        (NAMES.get(label, label), *(shown(needs[label], measure) for needs in by_gap))
        for label in results.methods(picture.experiment, picture.problem)
        if label in labels
    )
    return Table((f"median {measure} to", *heads), rows)


def _mark(case: Case) -> str:
    return " ~" if case.close else " =" if case.tied else ""


def _costs(results: Results) -> Table:
    rows = tuple(
        (
            NAMES[fit.method],
            PAPER_COSTS[fit.method],
            _exponent(fit.paper_n),
            _exponent(fit.paper_nnz),
            _exponent(fit.n),
            _exponent(fit.nnz),
            _range([c.seconds for c in fit.costs]),
        )
        for fit in epoch_costs(results)
    )
    head = ("method", "paper", "its exponent of n", "of nnz")
    return Table((*head, "measured exponent of n", "of nnz", "ms an epoch"), rows, left=2)


def _gains(results: Results) -> Table:
    """Return how many rows stay of interest to option I, and how much it gains over option II."""
    rows = []
    for problem, share in live_shares(results).items():
        by_gap = [results.needs("methods", problem, gap, "epochs") for gap in GAPS]
        pairs = [(n.get("option II"), n.get("option I")) for n in by_gap]
        ratios = [
            f"{two.high / one.high:.2f}" if two and one and two.reached and one.reached else ""
            for two, one in pairs
        ]
        rows.append((words.problem(problem), f"{share:.3g} %", *ratios))
    head = ("problem", "rows with a residue at the end", *(f"II : I, gap {g:.0e}" for g in GAPS))
    return Table(head, tuple(rows))


def _choices(results: Results) -> Table:
    """Return how many times the epochs of the best m each m needs: median and worst."""
    by_gap = [m_ratios(results, gap) for gap in GAPS]
    rows = []
    for option in ("I", "II"):
        for m in MS:
            ratios = [found.get(with_m(option, m), []) for found in by_gap]
            cells = [
                f"{statistics.median(r):.2f} ({max(r):.2f}; {len(r)})" if r else "" for r in ratios
            ]
            rows.append((option, m, *cells))
    heads = (f"gap {gap:.0e}" for gap in GAPS)
    return Table(("option", "m", *heads), tuple(rows), left=2)


def _exponent(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"  # never −0.00


def _range(seconds: list[float]) -> str:
    return f"{1e3 * min(seconds):.3g} – {1e3 * max(seconds):.3g}"


def _shapes(results: Results) -> Table:
    rows = []
    for shape in shapes(results):
        d, n, density, digits = PAPER_SHAPES[shape.data]
        verdict = "agrees" if shape.agrees else "differs"
        there = (f"{d:,}", f"{n:,}", f"{density:.{digits}f} %")
        here = (f"{shape.d:,}", f"{shape.n:,}", f"{shape.density:.2f} %")
        rows.append((shape.data, *there, *here, verdict))
    head = ("data set", "d, paper", "n, paper", "density, paper", "d", "n", "density", "")
    return Table(head, tuple(rows))
