"""Kinds of claims: each knows how to judge itself from stored results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from adasdca_reproduce import tables
from adasdca_reproduce.experiments import with_m
from adasdca_reproduce.results import Measure, Problem, Results
from adasdca_reproduce.verdicts import Case, Verdict, alike, case_of_first, first, shown

#: Relative gaps at which methods are compared; the last is what all methods reach in doubles.
GAPS = (1e-3, 1e-6, 1e-10, 1e-13)
MACHINE_PRECISION = GAPS[-1]


@dataclass(frozen=True)
class Explanation:
    """Words for a verdict, shown only where the stored results have given it.

    Attributes
    ----------
    text : str
        The explanation. It states no number: those are computed.
    verdict : Verdict
        When to show it.
    data, loss : str or None
        Where; None for anywhere.
    """

    text: str
    verdict: Verdict = Verdict.FAILS
    data: str | None = None
    loss: str | None = None

    def applies(self, cases: list[Case]) -> bool:
        """Whether one of the cases is as described."""
        return any(
            case.verdict is self.verdict
            and self.data in (None, case.problem[0])
            and self.loss in (None, case.problem[1])
            for case in cases
        )


class Claim(Protocol):
    """A sentence of the paper, or a question of ours, that results can be held against.

    Attributes
    ----------
    name, experiment : str
        Its own name and the experiment that decides it.
    quote : str
        The paper's words; empty for a question that the paper does not put.
    reading : str
        What is judged here.
    explanations : tuple of Explanation
        Words for what may come out.
    """

    @property
    def name(self) -> str:
        """A short name."""

    @property
    def experiment(self) -> str:
        """The experiment that decides it."""

    @property
    def quote(self) -> str:
        """The paper's words, or nothing."""

    @property
    def reading(self) -> str:
        """What is judged."""

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """Words for what may come out."""

    def cases(self, results: Results) -> list[Case]:
        """Judge it in every case that was run."""


@dataclass(frozen=True)
class First:
    """A method needs less than others, on every problem at every gap."""

    name: str
    experiment: str
    reading: str
    claimant: str
    rivals: tuple[str, ...]
    measure: Measure
    quote: str = ""
    strict: bool = True
    explanations: tuple[Explanation, ...] = ()

    def cases(self, results: Results) -> list[Case]:
        """Judge it in every case that was run."""
        return [
            case_of_first(
                results,
                self.experiment,
                problem,
                gap,
                self.measure,
                claimant=self.claimant,
                rivals=self.rivals,
                strict=self.strict,
            )
            for problem in results.problems(self.experiment)
            if self.claimant in results.methods(self.experiment, problem)
            for gap in GAPS
        ]


@dataclass(frozen=True)
class Alike:
    """Two methods need the same up to what seeds do."""

    name: str
    experiment: str
    reading: str
    pair: tuple[str, str]
    measure: Measure
    quote: str = ""
    explanations: tuple[Explanation, ...] = ()

    def cases(self, results: Results) -> list[Case]:
        """Judge it in every case that was run."""
        found = []
        for problem in results.problems(self.experiment):
            for gap in GAPS:
                needs = results.needs(self.experiment, problem, gap, self.measure)
                if not set(self.pair) <= needs.keys():
                    found.append(Case(problem, gap, Verdict.MISSING))
                    continue
                one, two = (needs[name] for name in self.pair)
                note = ", ".join(f"{p} {shown(needs[p], self.measure)}" for p in self.pair)
                brief = f"{shown(one, self.measure)} : {shown(two, self.measure)}"
                found.append(Case(problem, gap, alike(one, two), note=note, brief=brief))
        return found


@dataclass(frozen=True)
class Within:
    """A method reaches a gap within so many seconds on one problem."""

    name: str
    experiment: str
    reading: str
    claimant: str
    problem: Problem
    seconds: float
    quote: str = ""
    gap: float = MACHINE_PRECISION
    explanations: tuple[Explanation, ...] = ()

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
class Greatest:
    """The ratio of two methods is greatest on one problem."""

    name: str
    experiment: str
    reading: str
    pair: tuple[str, str]
    problem: Problem
    measure: Measure
    quote: str = ""
    explanations: tuple[Explanation, ...] = ()

    def cases(self, results: Results) -> list[Case]:
        """Judge it at every gap, among the problems where both methods reached it."""
        return [self._at(results, gap) for gap in GAPS]

    def _at(self, results: Results, gap: float) -> Case:
        ratios = {}
        for problem in results.problems(self.experiment):
            needs = results.needs(self.experiment, problem, gap, self.measure)
            if set(self.pair) <= needs.keys() and all(needs[p].reached for p in self.pair):
                fast, slow = (needs[p].high for p in self.pair)
                ratios[problem] = slow / fast if fast > 0 else 1.0
        if self.problem not in results.problems(self.experiment):
            return Case(self.problem, gap, Verdict.MISSING)
        if self.problem not in ratios:
            return Case(self.problem, gap, Verdict.OPEN)
        best = max(ratios, key=lambda p: ratios[p])
        verdict = Verdict.HOLDS if best == self.problem else Verdict.FAILS
        note = f"ratio here {ratios[self.problem]:.3g}, greatest {ratios[best]:.3g} on {best[0]}, "
        return Case(self.problem, gap, verdict, note=note + best[1].replace("_", " "))


@dataclass(frozen=True)
class Depends:
    """No single m is the best everywhere."""

    name: str
    experiment: str
    reading: str
    option: str
    choices: tuple[str, ...]
    quote: str = ""
    explanations: tuple[Explanation, ...] = ()

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
class Costs:
    """The time of an epoch grows no faster than the paper's Table 1 says."""

    name: str
    reading: str
    slack: float
    experiment: str = "table1"
    quote: str = ""
    explanations: tuple[Explanation, ...] = ()

    def cases(self, results: Results) -> list[Case]:
        """Judge it for every method, which stands in the place of the data."""
        found = []
        for fit in tables.epoch_costs(results):
            grows, allowed = fit.n + fit.nnz, fit.paper_n + fit.paper_nnz
            verdict = Verdict.HOLDS if grows <= allowed + self.slack else Verdict.FAILS
            note = f"measured {grows:.2f}, by the formula {allowed:.2f}"
            found.append(Case((fit.method, "squared"), None, verdict, note=note))
        return found


@dataclass(frozen=True)
class Shapes:
    """The data sets have the sizes and densities of the paper's Table 2."""

    name: str
    reading: str
    experiment: str = "table2"
    quote: str = ""
    explanations: tuple[Explanation, ...] = ()

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
