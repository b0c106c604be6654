"""The paper's two tables, computed from stored runs and beside the paper's figures."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import numpy as np

from adasdca.duality.theory import epoch_cost
from adasdca_reproduce.experiments import EXPERIMENTS, METHODS, MS, with_m
from adasdca_reproduce.results import Problem, Results

#: Table 2 of the paper: d, n, density in per cent and the decimals it is printed with.
PAPER_SHAPES = {
    "w8a": (300, 49_749, 3.9, 1),
    "dorothea": (100_000, 800, 0.9, 1),
    "mushrooms": (112, 8_124, 18.8, 1),
    "cov1": (54, 581_012, 22.0, 0),
    "ijcnn1": (22, 49_990, 41.0, 0),
}

#: Table 1 of the paper.
PAPER_COSTS = {
    "sdca": "O(nnz)",
    "quartz": "O(nnz)",
    "iprox-sdca": "O(nnz + n log n)",
    "option I": "O(nnz + n log n)",
    "adasdca": "O(n · nnz)",
}


@dataclass(frozen=True)
class Shape:
    """A data set as it is here."""

    data: str
    d: int
    n: int
    density: float

    @property
    def agrees(self) -> bool:
        """Whether the paper says the same, to its digits."""
        d, n, density, digits = PAPER_SHAPES[self.data]
        half = 0.5 * 10**-digits * (1 + 1e-9)
        return (self.d, self.n) == (d, n) and abs(self.density - density) <= half

    def here(self) -> str:
        """Say what is here."""
        return f"d = {self.d:,}, n = {self.n:,}, {self.density:.3g} %"

    def there(self) -> str:
        """Say what the paper has."""
        d, n, density, digits = PAPER_SHAPES[self.data]
        return f"d = {d:,}, n = {n:,}, {density:.{digits}f} %"


def shapes(results: Results) -> list[Shape]:
    """Return the data sets that were described."""
    return [
        Shape(r["data"], r["d"], r["n"], 100.0 * r["nnz"] / (r["n"] * r["d"]))
        for r in results.of("table2")
        if r["data"] in PAPER_SHAPES
    ]


@dataclass(frozen=True)
class Cost:
    """Median seconds of an epoch of a method at one size."""

    n: int
    nnz: int
    seconds: float


@dataclass(frozen=True)
class CostFit:
    """Exponents of t = C nⁿ nnzⁿⁿᶻ for a method, measured and of the paper's formula."""

    method: str
    costs: tuple[Cost, ...]
    n: float
    nnz: float
    paper_n: float
    paper_nnz: float


def epoch_costs(results: Results) -> list[CostFit]:
    """Fit, by least squares in logarithms, how the time of an epoch grows with n and with nnz.

    The time is that of drawing rows and of updates. For AdaSDCA+ it includes the survey that gives
    the residues; for the others the survey is for the certificate alone, and is left out. The
    paper's formula is no pure power, so it is fitted at the same sizes in the same way.
    """
    times: dict[str, dict[tuple[int, int], list[float]]] = {}
    for r in results.of("table1"):
        if r["epochs"] < 1:
            continue
        spent = r["timings"]["plan"] + r["timings"]["ascent"]
        if r["method"] == "option I":
            spent += r["timings"]["survey"]
        seconds = spent / (r["updates"] / r["n"])
        times.setdefault(r["method"], {}).setdefault((r["n"], r["nnz"]), []).append(seconds)
    fits = []
    for method in EXPERIMENTS["table1"].methods:
        sizes = times.get(method, {})
        costs = [Cost(*size, statistics.median(found)) for size, found in sorted(sizes.items())]
        name = METHODS[method].name
        formula = [epoch_cost(name, n=c.n, nnz=c.nnz) for c in costs]
        if len({c.n for c in costs}) > 1 and len({c.nnz for c in costs}) > 1:
            mine = _exponents(costs, [c.seconds for c in costs])
            fits.append(CostFit(method, tuple(costs), *mine, *_exponents(costs, formula)))
    return fits


def _exponents(costs: list[Cost], values: list[float]) -> tuple[float, float]:
    design = np.array([[1.0, np.log(c.n), np.log(c.nnz)] for c in costs])
    solution = np.linalg.lstsq(design, np.log(values), rcond=None)[0]
    return float(solution[1]), float(solution[2])


def m_ratios(results: Results, gap: float) -> dict[str, list[float]]:
    """Return the epochs of each m over those of the best m, on each problem where all reached."""
    found: dict[str, list[float]] = {}
    for problem in results.problems("m"):
        needs = results.needs("m", problem, gap, "epochs")
        for option in ("I", "II"):
            labels = [with_m(option, m) for m in MS]
            if all(label in needs and needs[label].reached for label in labels):
                best = min(needs[label].high for label in labels)
                for label in labels:
                    found.setdefault(label, []).append(needs[label].high / best)
    return found


def live_shares(results: Results) -> dict[Problem, float]:
    """Return the share of rows that have a residue at the end of runs of option I, in per cent."""
    shares: dict[Problem, list[float]] = {}
    for r in results.of("methods"):
        if r["method"] == "option I":
            share = 100.0 * r["history"]["active"][-1] / r["n"]
            shares.setdefault((r["data"], r["loss"]), []).append(share)
    return {problem: statistics.median(found) for problem, found in shares.items()}
