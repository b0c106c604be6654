"""The page: the findings on one screen, a section for each claim of the paper, the settings."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from adasdca.storage import write_whole
from adasdca_reproduce import dots, words
from adasdca_reproduce.claims import GAPS, Topic
from adasdca_reproduce.document import (
    Line,
    as_html,
    as_markdown,
    details,
    glance,
    heading,
    image,
    listing,
    quote,
    table,
)
from adasdca_reproduce.experiments import MS, with_m
from adasdca_reproduce.figures import NAMES, Picture, draw, pictures
from adasdca_reproduce.paper import PAPER
from adasdca_reproduce.questions import OURS
from adasdca_reproduce.results import Measure, Problem, Results
from adasdca_reproduce.tables import (
    PAPER_COSTS,
    PAPER_SHAPES,
    epoch_costs,
    live_shares,
    m_ratios,
    shapes,
)
from adasdca_reproduce.verdicts import Case, Verdict, shown

FOLDER = "figures"
SHORT = {
    Verdict.HOLDS: "✓",
    Verdict.FAILS: "✗",
    Verdict.OPEN: "open",
    Verdict.MISSING: "not run",
}
#: The cases of every claim, by its name.
Judged = Mapping[str, list[Case]]


def write(results: Results, folder: Path) -> list[Path]:
    """Draw all pictures and write the page as `index.html` and `index.md`; return the files."""
    judged = judge(results)
    drawn = {topic: topic_pictures(topic, results, judged) for topic in (*PAPER, *OURS)}
    files = []
    for picture in (p for found in drawn.values() for p in found):
        path = folder / FOLDER / f"{picture.name}.svg"
        draw(picture, path)
        files.append(path)
    blocks = assemble(results, drawn, judged)
    pages = {"index.md": as_markdown(blocks), "index.html": as_html(blocks, folder)}
    for name, text in pages.items():
        write_whole(folder / name, text)
    return files + [folder / name for name in pages]


def judge(results: Results) -> Judged:
    """Judge all claims of the paper, and all questions of ours."""
    topics = (*PAPER, *OURS)
    return {c.name: c.cases(results) for topic in topics for c in topic.readings.values()}


def topic_pictures(topic: Topic, results: Results, judged: Judged) -> list[Picture]:
    """Return the pictures of a section: its claims at a glance, then those of its experiments."""
    found = []
    readings = {label: judged[claim.name] for label, claim in topic.readings.items()}
    readings = {label: cases for label, cases in readings.items() if dots.draws(cases)}
    if readings:
        paint = partial(dots.draw_ratios, readings=readings)
        size = dots.size(len(readings))
        found.append(Picture(f"claim-{topic.name}", "", words.RATIOS, paint, size))
    if topic.name == "residues" and results.of("theory"):
        paint = partial(dots.draw_visits, results=results)
        found.append(Picture("visits", "theory", words.VISITS, paint, (7.9, 3.0)))
    return found + [p for p in pictures(results) if p.experiment in topic.experiments]


def assemble(
    results: Results, drawn: Mapping[Topic, Sequence[Picture]], judged: Judged
) -> list[str]:
    """Return the page: what was found, then the claims, then how the runs were made."""
    blocks: list[str] = [
        heading(1, "The paper's experiments, run again"),
        words.finding(lines(PAPER, judged), judged),
        glance("what the paper says", lines(PAPER, judged)),
        glance("what we asked beyond it", lines(OURS, judged)),
        words.FINDINGS,
        words.OPENING,
    ]
    for topic in (*PAPER, *OURS):
        blocks += _section(topic, results, drawn[topic], judged)
    blocks.append(heading(2, "How the runs were made"))
    blocks += words.protocol(results)
    gone = words.not_run(results)
    if gone:
        blocks += ["Not run, and so not judged:", listing(gone)]
    return blocks


def lines(topics: Sequence[Topic], judged: Judged) -> list[Line]:
    """Return a line for each topic that was run: what came out, and in a few words why not."""
    found = []
    for topic in topics:
        readings = {label: judged[claim.name] for label, claim in topic.readings.items()}
        parts = [(words.count(cases), label, cases) for label, cases in readings.items()]
        parts = [part for part in parts if part[0]]
        if not parts:
            continue
        why = dict.fromkeys(
            e.short
            for claim in topic.readings.values()
            for e in claim.explanations
            if e.short and e.applies([case for case in judged[claim.name] if case.decided])
        )
        chips: dict[str, list[str]] = {}
        for count, label, cases in parts:
            common, _, rest = label.rpartition(", ")
            chips.setdefault(common, []).append(f"{words.sign(cases)} {rest}: {count}")
        verdict = words.sentence([case for _, _, cases in parts for case in cases])
        found.append(Line(verdict, topic.title, chips, "; ".join(why)))
    return found


def _section(topic: Topic, results: Results, drawn: Sequence[Picture], judged: Judged) -> list[str]:
    """Return a claim: the paper's words, what is judged, why, and the pictures."""
    mine = [(label, claim, judged[claim.name]) for label, claim in topic.readings.items()]
    if not drawn and not any(words.count(cases) for _, _, cases in mine):
        return []
    blocks: list[str] = [heading(2, topic.title)]
    quotes = dict.fromkeys(claim.quote for _, claim, _ in mine if claim.quote)
    blocks += map(quote, quotes)
    asked = "Judged here" if quotes else "Asked beyond the paper"
    own = [p for p in drawn if not p.problem[0]]
    reasons: dict[str, None] = {}
    numbers: list[str] = []
    readings = []
    for label, claim, cases in mine:
        if words.count(cases):
            readings.append(f"{claim.reading} {words.verdict(cases)}")
            reasons |= dict.fromkeys(e.text for e in claim.explanations if e.applies(cases))
            numbers += [f"*{label}*", _numbers_of(cases)]
    if len(readings) == 1:
        blocks.append(f"{asked}: {readings[0]}")
    elif readings:
        blocks += [f"{asked}:", listing(readings)]
    blocks += [image(f"{FOLDER}/{p.name}.svg", p.caption) for p in own]
    blocks += reasons
    for experiment in topic.experiments:
        if results.of(experiment):
            blocks += [words.ABOUT[experiment], *_table_of(experiment, results)]
    if numbers and "table2" not in topic.experiments:  # which is shown as a whole already
        blocks.append(details("The verdicts, case by case", numbers))
    for picture in drawn:
        if picture.problem[0]:
            blocks += _figure(picture, results)
    return blocks


def _table_of(experiment: str, results: Results) -> list[str]:
    known = {"table1": _costs, "table2": _shapes, "methods": _gains, "m": _choices}
    return [known[experiment](results)] if experiment in known else []


def _numbers_of(cases: list[Case]) -> str:
    """Return the cases of a claim, by problem and gap where they have two numbers each."""
    if any(case.brief for case in cases):
        return _matrix(cases)
    rows = [
        (words.problem(c.problem), words.gap(c.gap), SHORT[c.verdict] + _mark(c), c.note)
        for c in cases
    ]
    return table(("where", "gap", "verdict", "numbers"), rows, left=4)


def _matrix(cases: list[Case]) -> str:
    """Return verdicts by problem and gap, each with the claimant's number and the best other's."""
    found: dict[Problem, dict[float | None, str]] = {}
    for case in cases:
        short = SHORT[case.verdict] + _mark(case) + (f" {case.brief}" if case.brief else "")
        found.setdefault(case.problem, {})[case.gap] = short
    rows = tuple(
        (words.problem(problem), *(cells.get(gap, "") for gap in GAPS))
        for problem, cells in found.items()
    )
    return table(("problem", *(f"gap {gap:.0e}" for gap in GAPS)), rows)


def _figure(picture: Picture, results: Results) -> list[str]:
    """Return a picture with the numbers behind it."""
    measures: tuple[Measure, ...] = tuple(dict.fromkeys(p.measure for p in picture.panels))
    heads = tuple(f"gap {gap:.0e}" for gap in GAPS)
    tables = tuple(_numbers(picture, results, measure, heads) for measure in measures)
    title = picture.caption.partition(";")[0]
    shown = image(f"{FOLDER}/{picture.name}.svg", picture.caption)
    return [shown, *([details(f"Medians: {title}", tables)] if tables else [])]


def _numbers(picture: Picture, results: Results, measure: Measure, heads: tuple[str, ...]) -> str:
    labels = {m for panel in picture.panels if panel.measure == measure for m in panel.curves}
    by_gap = [results.needs(picture.experiment, picture.problem, gap, measure) for gap in GAPS]
    rows = tuple(
        (NAMES.get(label, label), *(shown(needs[label], measure) for needs in by_gap))
        for label in results.methods(picture.experiment, picture.problem)
        if label in labels
    )
    return table((f"median {measure} to", *heads), rows)


def _mark(case: Case) -> str:
    return " ~" if case.close else " =" if case.tied else ""


def _costs(results: Results) -> str:
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
    return table((*head, "measured exponent of n", "of nnz", "ms an epoch"), rows, left=2)


def _gains(results: Results) -> str:
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
    return table(head, rows)


def _choices(results: Results) -> str:
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
    return table(("option", "m", *heads), rows, left=2)


def _exponent(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"  # never −0.00


def _range(seconds: list[float]) -> str:
    return f"{1e3 * min(seconds):.3g} – {1e3 * max(seconds):.3g}"


def _shapes(results: Results) -> str:
    rows = []
    for shape in shapes(results):
        d, n, density, digits = PAPER_SHAPES[shape.data]
        verdict = "agrees" if shape.agrees else "differs"
        there = (f"{d:,}", f"{n:,}", f"{density:.{digits}f} %")
        here = (f"{shape.d:,}", f"{shape.n:,}", f"{shape.density:.2f} %")
        rows.append((shape.data, *there, *here, verdict))
    head = ("data set", "d, paper", "n, paper", "density, paper", "d", "n", "density", "")
    return table(head, rows)
