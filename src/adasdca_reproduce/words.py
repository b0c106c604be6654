"""Sentences of the page; every number in them is taken from the stored runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adasdca_reproduce.document import Line
from adasdca_reproduce.experiments import EXPERIMENTS
from adasdca_reproduce.results import Problem, Results
from adasdca_reproduce.store import Record
from adasdca_reproduce.verdicts import Case, summary

OPENING = (
    "This is Section 6 of Csiba, Qu and Richtárik, *Stochastic Dual Coordinate Ascent with "
    "Adaptive Probabilities* (ICML 2015), on the same data sets, with what the theory says beside"
    " it. The page is the output of `adasdca reproduce`; figures, numbers and verdicts are "
    "computed from the stored runs, one line of `runs.jsonl` each. Claims are judged by medians "
    "over the seeds, at relative duality gaps (P − D)/P. A run that stalled above a gap, at the "
    "limits of double precision, never reaches it."
)

FINDINGS = (
    "“8 of 10” says that a claim holds in 8 of 10 cases that are decided. A case is a problem, a "
    "data set with a loss, mostly at one of several gaps. Cases that the seeds could turn "
    "(close), equal medians (tied), and cases that a budget of time left undecided (open) are "
    "counted apart. Seconds are counted in two ways: with a certificate after each epoch of every"
    " method, and as own seconds, with the pass behind it charged to those methods alone that "
    "draw their probabilities from it (an estimate: the time of all surveys of a run, spread "
    "evenly). In tables a pair such as 14 : 11 is what the claim is about and the best of the "
    "others."
)

RATIOS = (
    "What the claim is about over the best of the others, a dot for each gap from 1e-3 (above) to "
    "1e-13 (below): left of the line it needs less. Ratios of 8 and more are at the edge"
)
VISITS = (
    "What is left of a residue at the end of an epoch of option I, by the number of visits that "
    "the row has had in it: medians over the rows, then over the epochs; 0 is drawn at 0.001"
)

ABOUT = {
    "table1": "Synthetic sparse data, n and nnz varied separately by factors of two, and exponents "
    "fitted by least squares in logarithms, each judged by itself. The paper's formulas are fitted "
    "at the same sizes: their exponents stand beside the measured ones. Drawing rows and updating "
    "them is timed, and for AdaSDCA+ the pass that gives the residues; what the certificates cost "
    "the others is not.",
    "table2": "The data sets as they are here, beside the paper's table.",
    "full": "Algorithm 1 recomputes residues and probabilities before every step. The paper "
    "compares it by iterations alone, with the squared loss, and so does this.",
    "methods": "The heart of the comparison: gaps against epochs and against seconds. An epoch is "
    "n iterations; AdaSDCA+ runs with m = 2, as the paper does not say which m it used. Beside "
    "the paper's methods run random permutations, a baseline that it leaves out, and `auto`, what "
    "this package does by default in its estimators; `auto` is not drawn against epochs, since its "
    "Newton steps are none. The table has the share of the rows that still have a residue when "
    "option I ends, and the epochs of option II over those of option I.",
    "m": "How much less likely a row becomes after a visit. The paper tries 2, 10 and 50; 1.5, 4 "
    "and `auto`, which follows the decay that is seen, are ours. The table has the epochs of each "
    "m over those of the best one: the median over the problems, in brackets the worst, and the "
    "number of problems on which all reached the gap.",
    "optimal": "The paper's theory covers losses that are not quadratic only for probabilities "
    "that solve a program with a constraint, which it leaves unsolved. It has an exact solution, a "
    "sort and a search, so that Corollary 1 becomes a method: here it is beside the "
    "relaxed distribution "
    "in Algorithm 1 and at the start of each epoch of AdaSDCA+.",
    "theory": "Every epoch is surveyed, and the rate θ(κ, p) of the paper is computed at the "
    "probabilities of the method; θ̃ is its mean over the seeds weighted by the gap, and between "
    "surveys it is interpolated. The optimum in the bounds is the largest dual value that any run "
    "has certified. Runs end after 60 epochs.",
    "samplers": "Within an epoch of AdaSDCA+ the probabilities depend on the picks alone, so an "
    "epoch can be drawn before it is run, with the same distribution as the paper's "
    "Random Counters. Epochs "
    "should not differ; seconds should.",
}


def problem(p: Problem) -> str:
    """Name a problem."""
    data, loss = p
    if data == "all":
        return "all problems"
    return f"{data}, {loss.replace('_', ' ')}" if loss else data


def gap(value: float | None) -> str:
    """Write a gap."""
    return "" if value is None else f"{value:.0e}"


def finding(lines: Sequence[Line], judged: Mapping[str, list[Case]]) -> str:
    """Say in two sentences how many claims of the paper hold, and what that comes to."""
    numbers: dict[str, int] = {}
    for line in lines:
        word = line.verdict.removeprefix("✓ ").removeprefix("✗ ").removeprefix("~ ")
        numbers[word] = numbers.get(word, 0) + 1
    parts = [f"{numbers[word]} {words}" for word, words in _PLURAL.items() if word in numbers]
    text = f"Of {len(lines)} claims of the paper that were run, {', '.join(parts)}."
    epochs, own = (count(judged[f"option-I-{m}"]) for m in ("epochs", "own-seconds"))
    if " of " in epochs and " of " in own:
        text += (
            " With m = 2, option I needs fewer epochs than SDCA and IProx-SDCA in "
            f"{epochs} decided cases, and fewer seconds, with the pass for its residues charged to "
            f"it alone, in {own}."
        )
    return text


_PLURAL = {
    "holds": "hold in every case that is decided",
    "mostly": "hold mostly",
    "mixed": "are mixed",
    "mostly not": "mostly do not hold",
    "does not hold": "do not hold",
    "open": "are open",
}


def sign(cases: list[Case]) -> str:
    """Return the sign of a verdict, and nothing if there is none."""
    first = sentence(cases)[0]
    return first if first in "✓✗~" else ""


def count(cases: list[Case]) -> str:
    """Say how many cases hold, of how many that are decided; if none is, how many there are."""
    counts = summary(cases)
    decided = counts.holds + counts.fails
    if decided:
        return f"{counts.holds} of {decided}"
    rest = (("close", counts.close), ("tied", counts.tied), ("open", counts.open))
    return ", ".join(f"{number} {word}" for word, number in rest if number)


def sentence(cases: list[Case]) -> str:
    """Sum the decided cases of a claim up in a few words."""
    counts = summary(cases)
    decided = counts.holds + counts.fails
    if not counts.total:
        return "not run"
    if not decided:
        return "open"
    if not counts.fails:
        return "✓ holds"
    if not counts.holds:
        return "✗ does not hold"
    share = counts.holds / decided
    return "✓ mostly" if share >= 0.75 else "✗ mostly not" if share <= 0.25 else "~ mixed"


def verdict(cases: list[Case]) -> str:
    """Sum the verdicts of a claim up in a sentence."""
    counts = summary(cases)
    if not counts.total:
        return "It was not run."
    if counts.holds == counts.total:
        return "*It holds in every case that was run.*" if counts.total > 1 else "*It holds.*"
    return f"*Of {counts.total} cases: {counts}.*"


def protocol(results: Results) -> list[str]:
    """Say how the runs were made: where, when, how long, how often."""
    runs = [r for r in results.records if "history" in r]
    if not runs:
        return []
    budgets = [text for name in EXPERIMENTS if (text := _budgets(runs, name))]
    machines = {_machine(r) for r in runs}
    versions = {", ".join(f"{k} {v}" for k, v in r["versions"].items()) for r in runs}
    commits = sorted({r["commit"][:10] for r in runs if r.get("commit")})
    without = sum(not r.get("commit") for r in runs)
    from_commit = f"; commit {', '.join(commits)}" if commits else ""
    if commits and without:
        from_commit += f" ({without} earlier runs stored none)"
    dates = sorted(r["date"][:10] for r in runs)
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    jobs = sorted({r["jobs"] for r in runs})
    rows = {r["protocol"]["rows"] for r in runs} - {None}
    subset = f" On subsets of {sorted(rows)} rows." if rows else ""
    how = (
        f"All {len(runs)} runs: γ = 1, λ = 1/n, one thread each, to the limits of double precision "
        f"or the end of a budget; medians over the seeds, bands from the least to the greatest "
        f"(none for own seconds, which are estimates)."
        f"{subset} Made {when} on {'; '.join(sorted(machines))}; "
        f"{' or '.join(map(str, jobs))} run{'s' * (jobs != [1])} at a time; "
        f"{'; '.join(sorted(versions))}{from_commit}."
    )
    allowed = (
        "Seconds allowed for a run, by data set (a second figure is that of the slow methods): "
        f"{'; '.join(budgets)}."
    )
    return [how, allowed]


def _budgets(runs: list[Record], experiment: str) -> str:
    """Say the budgets and the number of seeds of an experiment, nothing if it was not run."""
    seconds: dict[str, set[float]] = {}
    seeds = set()
    for r in runs:
        if r["experiment"] == experiment and not r["data"].startswith("synthetic"):
            seconds.setdefault(r["data"], set()).add(r["protocol"]["budget"])
            seeds.add(r["seed"])
    each = [f"{d} {'/'.join(f'{s:g}' for s in sorted(b))}" for d, b in seconds.items()]
    title = EXPERIMENTS[experiment].title
    many = "s" if len(seeds) > 1 else ""
    return f"*{title}*: {', '.join(each)} ({len(seeds)} seed{many})" if each else ""


def not_run(results: Results) -> list[str]:
    """List what the experiments ask for and the store does not hold."""
    stored = {(r["experiment"], r["data"], r["loss"], r["method"]) for r in results.records}
    lines = []
    for name, e in EXPERIMENTS.items():
        asked = [
            (data, loss, method)
            for data in e.data
            for loss in e.losses
            for method in e.methods
            if e.budget(data, method) is not None
        ]
        gone = [cell for cell in asked if (name, *cell) not in stored]
        if not gone:
            continue
        names = dict.fromkeys(cell[0] for cell in gone)
        whole = [d for d in names if _count(d, asked) == _count(d, gone)]
        rest = len([cell for cell in gone if cell[0] not in whole])
        sizes = [d for d in whole if d.startswith("synthetic")]
        parts = [d for d in whole if d not in sizes]
        if sizes:
            parts.append(f"{len(sizes)} sizes of synthetic data")
        if len(gone) == len(asked):
            parts = ["everything"]
        if rest:
            parts = [*parts, f"{rest} more combination{'s' * (rest > 1)} of data, loss and method"]
        lines.append(f"{e.title}: {', '.join(parts)}")
    return lines


def _count(data: str, cells: list[tuple[str, str, str]]) -> int:
    return sum(cell[0] == data for cell in cells)


def _machine(record: Record) -> str:
    machine = record["machine"]
    return (
        f"{machine['processor']} ({machine['cores']} cores, {machine['system']}, "
        f"core compiled for {machine['level']})"
    )
