"""Epochs by option and m: `python -m benchmarks.options [--folder DIR] [--data NAME ...]`.

On every data set with every loss, the epochs (n updates each) that permutations and AdaSDCA+ with
options I, III and their mixture take to a relative gap of 1e-6, λ = 1/n, for some m: medians over
the seeds. Counts do not depend on the machine or its load. For quadratic losses the options are the
same, and only m is tried. The last column is option I once more, with other seeds: how far apart
two columns are that differ by chance alone. The end of the table says where an option needs more
epochs than option I, and what each m costs beside the best one.

With `--saturation NAME LOSS` instead: what the rows hold whose residues understate their steps.

The weights of the mixture, a half each, were chosen on some data sets; lines about it are given for
these and for the rest.
"""

from __future__ import annotations

import argparse
import json
import statistics
import textwrap
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

import adasdca
from adasdca import _core
from adasdca.ascent.sampling import StepResidue
from adasdca.backends.cpu import LocalBackend
from adasdca.datasets._folders import read_npz
from adasdca.methods import AdaSDCAPlus, SDCAPerm
from adasdca.problem.losses import LOSSES
from adasdca.problem.problem import Problem
from adasdca_reproduce.machine import commit
from benchmarks import output
from benchmarks.problems import files

TOLERANCE = 1e-6
OPTIONS, MS = ("I", "III"), (2, 10, 50)
MIXTURE, MIXTURE_MS = "I+III", (2, 10)
AGAIN = "I 2 again"
#: What the weights of the mixture were chosen on: every other data set of those of that time.
CHOSEN_ON = frozenset(
    ("basehock", "cadata-scale", "dorothea", "madelon-scale", "news20mc-unit", "protein-std", "w8a")
)
METHODS: dict[str, Any] = (
    {"permutations": SDCAPerm()}
    | {f"{option} {m}": AdaSDCAPlus(option=option, m=float(m)) for option in OPTIONS for m in MS}
    | {f"{MIXTURE} {m}": AdaSDCAPlus(option=MIXTURE, m=float(m)) for m in MIXTURE_MS}
    | {AGAIN: AdaSDCAPlus(option="I", m=2.0)}
)
#: More distinct targets than this are a regression.
MOST_CLASSES = 20


def count(
    X: Any, y: Any, loss: str, method: Any, cap: int, seeds: int, first: int = 0
) -> float | None:
    """Return the median of updates/n over the seeds, from `first` on; None beyond the cap."""
    needed = []
    for seed in range(first, first + seeds):
        sol = adasdca.solve(
            X,
            y,
            loss=loss,
            lam=1 / len(y),
            method=method,
            tol=TOLERANCE,
            max_epochs=cap,
            random_state=seed,
        )
        needed.append(sol.n_updates / len(y) if sol.converged else float("inf"))
    middle = statistics.median(needed)
    return middle if middle < float("inf") else None


def read(path: Path) -> tuple[Any, Any]:
    """Return (X, y) of a file of the data folder; of several classes, one against the rest."""
    X, y = read_npz(path, path.stem)
    if len(np.unique(y)) <= MOST_CLASSES:
        y = np.where(y == y.max(), 1.0, -1.0)
    return X, y


def problems(folder: Path, names: list[str] | None) -> Iterator[tuple[str, Path, str]]:
    """Yield names of data sets, their files, and the losses that fit; quadratic ones need none."""
    paths = files(folder)
    for name in names or sorted(paths, key=lambda name: paths[name].stat().st_size):
        with np.load(paths[name]) as file:
            classes = len(np.unique(file["y"])) <= MOST_CLASSES
        kind = "classification" if classes else "regression"
        for loss, cls in LOSSES.items():
            if cls.kind == kind or cls().is_quadratic:
                yield name, paths[name], loss


def labels(loss: str) -> list[str]:
    """Return the methods that differ for a loss."""
    quadratic = LOSSES[loss]().is_quadratic
    return [label for label in METHODS if not (quadratic and "III" in label)]


def measure(
    case: tuple[str, Path, str], cap: int, seeds: int, known: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the epochs of all methods on a problem; those that are known are not run again."""
    name, path, loss = case
    X, y = read(path)
    counts = {
        label: known[label]
        if known and label in known
        else count(X, y, loss, METHODS[label], cap, seeds, first=seeds if label == AGAIN else 0)
        for label in labels(loss)
    }
    return {"data": name, "loss": loss, "commit": commit(), "counts": counts}


def saturation(X: Any, y: Any, loss: str, epochs: int) -> list[tuple[float, float, float]]:
    """Watch option I with m = 2, and return three figures at the beginning of each epoch.

    The first two are of the rows whose residue is less than half of their step residue: the share
    of what single steps can gain, and of the probability. The third is the expected gain of a step
    with the probabilities of option III over that with those of option I.
    """
    problem = Problem.checked(X, y, loss=loss, lam=1 / len(y))
    backend, rule, found = LocalBackend(problem), StepResidue(problem), []
    backend.restart(np.zeros(len(y)), 0.0)
    schedule = AdaSDCAPlus(option="I", m=2.0).schedule(problem, backend.facts, 0.0, 1)
    for epoch in range(epochs):
        survey = backend.survey(schedule.needs | {"score"})
        assert survey is not None
        assert survey.adaptive is not None
        one, three = survey.adaptive / survey.adaptive.sum(), rule(survey)
        gain = (three / (survey.curvature + survey.gamma)) ** 2
        apart = three > 2.0 * survey.adaptive
        found.append((
            gain[apart].sum() / gain.sum(), one[apart].sum(),
            (three @ gain / three.sum()) / (one @ gain),
        ))  # fmt: skip
        backend.ascend(schedule.plan(survey, _core.subkey(0, epoch)))
    return found


def compared(cases: list[dict[str, Any]], cap: int, label: str, other: str) -> str:
    """Say how often a column has fewer epochs than another, by more than one, and where more."""
    apart = [
        ((cap if c["counts"][label] is None else c["counts"][label])
         - (cap if c["counts"][other] is None else c["counts"][other]), c)
        for c in cases
    ]  # fmt: skip
    worse = [f"{c['data']} {c['loss']} +{d:g}" for d, c in apart if d > 1]
    better = sum(d < -1 for d, _ in apart)
    return (
        f"{label} needs fewer epochs than {other} by more than one in {better} of {len(cases)} "
        f"cases, more by more than one in {len(worse)}: {', '.join(worse) or 'none'}"
    )


def show(result: dict[str, Any]) -> str:
    """Return the table, and what it says of the option and of m."""
    cap, cases = result["cap"], result["cases"]

    def number(value: float | None) -> str:
        return f">{cap}" if value is None else f"{value:g}"

    rows = [
        [c["data"], c["loss"]]
        + [number(c["counts"][label]) if label in c["counts"] else "" for label in METHODS]
        for c in cases
    ]
    commits = sorted({c["commit"][:10] for c in cases if c["commit"]})
    title = (
        f"epochs to a relative gap of {result['tolerance']:g}, medians of {result['seeds']} seeds"
    )
    lines = [
        f"{title}; commit {', '.join(commits) or 'unknown'}",
        output.table(["data", "loss", *METHODS], rows, left=(0, 1)),
    ]
    lines += [compared(cases, cap, f"I {m}", f"I {MS[0]}") for m in MS[1:]]
    lines.append("by chance alone: " + compared(cases, cap, AGAIN, "I 2"))
    apart = [c for c in cases if f"{MIXTURE} {MIXTURE_MS[0]}" in c["counts"]]
    lines += [compared(apart, cap, f"III {m}", f"I {m}") for m in MS]
    lines.append("the same, by chance alone: " + compared(apart, cap, AGAIN, "I 2"))
    for words, chosen in (("chosen on", True), ("not chosen on", False)):
        some = [c for c in apart if (c["data"] in CHOSEN_ON) == chosen]
        for label, other in ((f"{MIXTURE} {m}", f"I {m}") for m in MIXTURE_MS):
            lines.append(f"data sets that the mixture was {words}: "
                         + compared(some, cap, label, other))  # fmt: skip
        lines.append(f"the same, by chance alone: {compared(some, cap, AGAIN, 'I 2')}")
    full = [{k: cap if v is None else v for k, v in c["counts"].items()} for c in cases]
    for option in OPTIONS:
        found = [[f[f"{option} {m}"] for m in MS] for f in full if f"{option} {MS[0]}" in f]
        ratios = {m: [row[k] / min(row) for row in found] for k, m in enumerate(MS)}
        words = [
            f"m = {m}: {statistics.median(r):.2f}, {statistics.geometric_mean(r):.3f}, {max(r):.2f}"
            for m, r in ratios.items()
        ]
        lines.append(
            f"option {option}, epochs over those of the best m (median, geometric mean, worst): "
            + "; ".join(words)
        )
    return "\n".join(line if "\n" in line else textwrap.fill(line, 110) for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("data"), help="of .npz files")
    parser.add_argument("--data", nargs="+", help="names of files; all unless given")
    parser.add_argument("--loss", nargs="+", choices=list(LOSSES), help="all unless given")
    parser.add_argument("--cap", type=int, default=200, help="most epochs")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", help="results file; what it holds is not run again")
    parser.add_argument(
        "--saturation", nargs=2, metavar=("NAME", "LOSS"), help="watch option I, and no more"
    )
    args = parser.parse_args()
    if args.saturation:
        data, kind = args.saturation
        rows = saturation(*read(files(args.folder)[data]), kind, epochs=25)
        cells = [[str(k), *(f"{x:.3g}" for x in seen)] for k, seen in enumerate(rows)]
        head = ["after epochs", "share of gains", "of probability", "gain of III : I"]
        print(output.table(head, cells))
        return
    path = Path(args.out) if args.out else None
    done = json.loads(path.read_text())["cases"] if path and path.is_file() else []
    known = {(c["data"], c["loss"]): c["counts"] for c in done}
    todo = [
        (name, file, loss)
        for name, file, loss in problems(args.folder, args.data)
        if not known.get((name, loss), {}).keys() >= set(labels(loss))
        and (not args.loss or loss in args.loss)
    ]
    counts = [known.get((name, loss)) for name, _, loss in todo]
    result = {
        "cap": args.cap,
        "seeds": args.seeds,
        "tolerance": TOLERANCE,
        "cases": done,
    }
    with ProcessPoolExecutor(args.jobs) as pool:
        jobs = (todo, repeat(args.cap), repeat(args.seeds), counts)
        for case in pool.map(measure, *jobs):
            done[:] = [c for c in done if (c["data"], c["loss"]) != (case["data"], case["loss"])]
            done.append(case)
            print(case, flush=True)
            output.save(result, args.out, "options.json")
    print(f"\n{show(result)}\n\nwritten to {output.save(result, args.out, 'options.json')}")


if __name__ == "__main__":
    main()
