"""Kinds of claims: each knows how to judge itself from stored results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Literal

from adasdca_reproduce import tables
from adasdca_reproduce.experiments import with_m
from adasdca_reproduce.results import Measure, Problem, Results
from adasdca_reproduce.verdicts import (
    Case,
    Verdict,
    alike,
    best_of,
    case_of_first,
    first,
    ratio,
    shown,
)

#: Relative gaps at which methods are compared; the last is what all methods reach in doubles.
GAPS = (1e-3, 1e-6, 1e-10, 1e-13)
MACHINE_PRECISION = GAPS[-1]


@dataclass(frozen=True)
class Explanation:
    """Words for a verdict, shown only where the stored results have given it."""

    text: str  #: It states no number: those are computed.
    verdict: Verdict = Verdict.FAILS
    #: Where; None for anywhere.
    data: str | None = None
    loss: str | None = None
    short: str = ""  #: The same in a few words.

    def applies(self, cases: list[Case]) -> bool:
        """Whether one of the cases is as described."""
        return any(
            case.verdict is self.verdict
            and self.data in (None, case.problem[0])
            and self.loss in (None, case.problem[1])
            for case in cases
        )


@dataclass(frozen=True)
class Claim(ABC):
    """A sentence of the paper, or a question of ours, that results can be held against."""

    name: str
    experiment: str  #: The experiment that decides it.
    reading: str  #: What is judged here.
    #: The paper's words; empty for a question that the paper does not put.
    quote: str = field(default="", kw_only=True)
    explanations: tuple[Explanation, ...] = field(default=(), kw_only=True)

    @abstractmethod
    def cases(self, results: Results) -> list[Case]:
        """Judge it in every case that was run."""


@dataclass(frozen=True, eq=False)
class Topic:
    """A section of the page: a sentence, and the ways in which it can be read."""

    name: str  #: For files.
    title: str  #: Its heading, and its line on the first screen.
    readings: dict[str, Claim]  #: The claims that are judged here, by a word or two for each.
    experiments: tuple[str, ...] = ()  #: The experiments that are described and pictured here.


@dataclass(frozen=True)
class First(Claim):
    """A method needs less than others, on every problem at every gap."""

    claimant: str | tuple[str, ...]  #: Of several methods the best on each problem at each gap.
    rivals: tuple[str, ...]
    measure: Measure
    strict: bool = True
    rivals_of: str = ""  #: The experiment of the rivals; that of the claimant unless given.

    @property
    def claimants(self) -> tuple[str, ...]:
        """The methods of which the best is judged."""
        return (self.claimant,) if isinstance(self.claimant, str) else self.claimant

    def cases(self, results: Results) -> list[Case]:
        """Judge it in every case that was run."""
        return [
            self._at(results, problem, gap)
            for problem in results.problems(self.experiment)
            if set(self.claimants) <= set(results.methods(self.experiment, problem))
            for gap in GAPS
        ]

    def _at(self, results: Results, problem: Problem, gap: float) -> Case:
        needs = results.needs(self.experiment, problem, gap, self.measure)
        theirs = results.needs(self.rivals_of or self.experiment, problem, gap, self.measure)
        others = {name: theirs[name] for name in self.rivals if name in theirs}
        if len(others) < len(self.rivals):
            return Case(problem, gap, Verdict.MISSING)
        return case_of_first(
            problem,
            gap,
            self.measure,
            best_of(needs[name] for name in self.claimants),
            others,
            claimant=self.claimants[0] if len(self.claimants) == 1 else "the best m",
            strict=self.strict,
        )


@dataclass(frozen=True)
class Alike(Claim):
    """Two methods, perhaps of two experiments, need the same up to what seeds do."""

    pair: tuple[str, str]
    measure: Measure
    other_of: str = ""

    def cases(self, results: Results) -> list[Case]:
        """Judge it in every case that was run."""
        found = []
        for problem in results.problems(self.experiment):
            for gap in GAPS:
                needs = results.needs(self.experiment, problem, gap, self.measure)
                other = results.needs(self.other_of or self.experiment, problem, gap, self.measure)
                if self.pair[0] not in needs or self.pair[1] not in other:
                    found.append(Case(problem, gap, Verdict.MISSING))
                    continue
                one, two = needs[self.pair[0]], other[self.pair[1]]
                words = shown(one, self.measure), shown(two, self.measure)
                note = ", ".join(f"{p} {w}" for p, w in zip(self.pair, words, strict=True))
                brief = " : ".join(words)
                verdict, apart = alike(one, two), ratio(one, two)
                found.append(Case(problem, gap, verdict, note=note, brief=brief, ratio=apart))
        return found


@dataclass(frozen=True)
class Within(Claim):
    """A method reaches a gap on one problem within a number of seconds."""

    claimant: str
    problem: Problem
    seconds: float
    gap: float = MACHINE_PRECISION

    def cases(self, results: Results) -> list[Case]:
        """Judge it on its problem."""
        needs = results.needs(self.experiment, self.problem, self.gap, "seconds")
        if self.claimant not in needs:
            return [Case(self.problem, self.gap, Verdict.MISSING)]
        mine = needs[self.claimant]
        verdict = Verdict.OPEN
        if mine.high <= self.seconds:
            verdict = Verdict.HOLDS
        elif mine.low > self.seconds:
            verdict = Verdict.FAILS
        note = f"{self.claimant} {shown(mine, 'seconds')} s"
        return [Case(self.problem, self.gap, verdict, note=note)]


@dataclass(frozen=True)
class Greatest(Claim):
    """The difference of two methods, or their ratio, is greatest on one problem."""

    pair: tuple[str, str]
    problem: Problem
    measure: Measure
    kind: Literal["ratio", "difference"] = "ratio"

    def cases(self, results: Results) -> list[Case]:
        """Judge it at every gap, among the problems where both methods reached it."""
        return [self._at(results, gap) for gap in GAPS]

    def _at(self, results: Results, gap: float) -> Case:
        apart = {}
        for problem in results.problems(self.experiment):
            needs = results.needs(self.experiment, problem, gap, self.measure)
            if set(self.pair) <= needs.keys() and all(needs[p].reached for p in self.pair):
                fast, slow = (needs[p].high for p in self.pair)
                times = slow / fast if fast > 0 else 1.0
                apart[problem] = times if self.kind == "ratio" else slow - fast
        if self.problem not in results.problems(self.experiment):
            return Case(self.problem, gap, Verdict.MISSING)
        if self.problem not in apart:
            return Case(self.problem, gap, Verdict.OPEN)
        best = max(apart, key=lambda p: apart[p])
        verdict = Verdict.HOLDS if best == self.problem else Verdict.FAILS
        here, most = f"{apart[self.problem]:.3g}", f"{apart[best]:.3g}"
        note = f"{self.kind} here {here}, greatest {most} on {best[0]}, "
        return Case(self.problem, gap, verdict, note=note + best[1].replace("_", " "))


@dataclass(frozen=True)
class Depends(Claim):
    """No single m is the best everywhere."""

    option: str
    choices: tuple[str, ...]

    def cases(self, results: Results) -> list[Case]:
        """Judge it at every gap, over all problems."""
        return [self._at(results, gap) for gap in GAPS]

    def _at(self, results: Results, gap: float) -> Case:
        everywhere = ("all", "all")
        labels = {m: with_m(self.option, m) for m in self.choices}
        common, wins, judged = set(self.choices), [], 0
        for problem in results.problems(self.experiment):
            needs = results.needs(self.experiment, problem, gap, "epochs")
            if not set(labels.values()) <= needs.keys():
                continue
            judged += 1
            mine = {m: needs[label] for m, label in labels.items()}
            best = {
                m
                for m in mine
                if first(mine[m], {k: n for k, n in mine.items() if k != m}, strict=False)
                is Verdict.HOLDS
            }
            if best:
                least = " = ".join(sorted(best, key=float))
                wins.append(f"{problem[0]} {problem[1].replace('_', ' ')} {least}")
                common &= best
        if not judged:
            return Case(everywhere, gap, Verdict.MISSING)
        if not wins:
            return Case(everywhere, gap, Verdict.OPEN)
        verdict = Verdict.FAILS if common else Verdict.HOLDS
        return Case(everywhere, gap, verdict, note="least epochs: " + "; ".join(wins))


@dataclass(frozen=True)
class Costs(Claim):
    """The time of an epoch grows no faster than Table 1 says, with n and with nnz by themselves."""

    slack: float

    def cases(self, results: Results) -> list[Case]:
        """Judge it for every method, which stands in the place of the data."""
        found = []
        for fit in tables.epoch_costs(results):
            pairs = {"n": (fit.n, fit.paper_n), "nnz": (fit.nnz, fit.paper_nnz)}
            for size, (grows, allowed) in pairs.items():
                verdict = Verdict.HOLDS if grows <= allowed + self.slack else Verdict.FAILS
                note = f"exponent of {size}: measured {grows:.2f}, by the formula {allowed:.2f}"
                found.append(Case((fit.method, size), None, verdict, note=note))
        return found


@dataclass(frozen=True)
class Shapes(Claim):
    """The data sets have the sizes and densities of the paper's Table 2."""

    def cases(self, results: Results) -> list[Case]:
        """Judge it for every data set."""
        return [
            Case(
                (shape.data, ""),
                None,
                Verdict.HOLDS if shape.agrees else Verdict.FAILS,
                note=f"here {shape.here()}, in the paper {shape.there()}",
            )
            for shape in tables.shapes(results)
        ]
