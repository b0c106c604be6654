"""The experiments of Section 6, as data: which problems, which methods, how long, how often.

All of them solve with λ = 1/n, γ = 1 and one thread, to the limits of double precision or to the
end of a budget of seconds. An epoch is n updates.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adasdca.ascent.survey import Survey
from adasdca.duality.theory import water_fill
from adasdca.methods import (
    SDCA,
    AdaSDCA,
    AdaSDCAPlus,
    Auto,
    IProxSDCA,
    Method,
    Quartz,
    SDCAPerm,
    get_method,
)

DATA = ("w8a", "dorothea", "mushrooms", "cov1", "ijcnn1")
LOSSES = ("squared", "smoothed_hinge")
#: The "method" of a task that only describes a data set.
SHAPE = "shape"


def constrained(survey: Survey) -> NDArray[np.float64]:
    """Rule for AdaSDCA+: the exact solution of the paper's eq. (optp) at the start of an epoch."""
    assert survey.adaptive is not None
    assert survey.residue is not None
    largest = float(survey.adaptive.max())
    if largest == 0.0:
        return survey.adaptive
    # Relative to the largest, so that squares of tiny residues do not underflow.
    target = float(np.sum(survey.weight * survey.gamma * (survey.residue / largest) ** 2))
    return water_fill(survey.adaptive / largest, target)[0]


def with_m(option: str, m: str) -> str:
    """Return the label of AdaSDCA+ with that option and m."""
    return f"option {option}, m = {m}"


MS = ("1.5", "2", "4", "10", "50", "auto")

METHODS: dict[str, Method] = {
    "sdca": SDCA(),
    "sdca-perm": SDCAPerm(),
    "iprox-sdca": IProxSDCA(),
    "quartz": Quartz(),
    "option I": AdaSDCAPlus(option="I", m=2.0),
    "option II": AdaSDCAPlus(option="II", m=2.0),
    "auto": Auto(),
    "adasdca": AdaSDCA(rule="relaxed"),
    "adasdca, optimal": AdaSDCA(rule="optimal"),
    "adasdca+, optimal": AdaSDCAPlus(option=constrained, m=2.0),
    "tree": AdaSDCAPlus(option="I", m=2.0, sampler="tree"),
}
for _option in ("I", "II"):
    for _m in MS:
        METHODS[with_m(_option, _m)] = AdaSDCAPlus(
            option=_option, m="auto" if _m == "auto" else float(_m)
        )


def method_of(label: str) -> Method:
    """Return the method of a label: one of `METHODS`, or a method or rule that was registered."""
    if label in METHODS:
        return METHODS[label]
    rule = label.removeprefix("option ")
    return AdaSDCAPlus(option=rule) if rule != label else get_method(label)


@dataclass(frozen=True)
class Experiment:
    """A grid of runs: data sets × losses × methods × seeds."""

    #: For `--only`, and for people.
    name: str
    title: str
    budgets: dict[str, float]  #: Seconds of a run, by data set.
    methods: tuple[str, ...]
    #: Names and labels; each data set gets all of them.
    losses: tuple[str, ...] = LOSSES
    seeds: int = 3  #: Number of seeds; a quick run has one.
    max_epochs: int = 100_000  #: Most epochs of a run.
    #: Budgets of methods that need more time than the others, by method and data set; where a
    #: method is listed, it takes part on these data sets alone.
    costs: dict[str, dict[str, float]] = field(default_factory=dict)
    quick: tuple[str, ...] = ("mushrooms", "dorothea", "ijcnn1")  #: Data sets of a quick run.
    quick_budget: float = 3.0  #: Most seconds of a run in a quick run.
    watched: bool = False  #: Whether the runs are watched from inside, see `watching`.

    @property
    def data(self) -> list[str]:
        """The data sets on which some method takes part."""
        return list(dict.fromkeys([*self.budgets, *(d for c in self.costs.values() for d in c)]))

    def budget(self, data: str, method: str) -> float | None:
        """Return the seconds of a run, None if the method does not take part on these data."""
        if method in self.costs:
            return self.costs[method].get(data)
        return self.budgets.get(data)


#: Seconds in which a method that makes n cheap updates an epoch usually reaches the limits of
#: double precision on two busy cores, and then some.
_BUDGETS = {"w8a": 12.0, "dorothea": 3.0, "mushrooms": 3.0, "cov1": 15.0, "ijcnn1": 4.0}


def synthetic(n: int, per_row: int, d: int) -> str:
    """Name synthetic data of n rows with `per_row` non-zeros each; see `problems`."""
    return f"synthetic n={n} per_row={per_row} d={d}"


def _sizes(n: int, per_row: int, d: int, steps: int) -> tuple[str, ...]:
    """Return sizes in which n varies at fixed nnz and nnz at fixed n, each doubled step by step."""
    grow_nnz = [(n, per_row * 2**k // 2 ** (steps // 2)) for k in range(steps)]
    grow_n = [(n * 2**k // 2 ** (steps // 2), per_row * n) for k in range(steps)]
    pairs = dict.fromkeys([*grow_nnz, *((rows, nnz // rows) for rows, nnz in grow_n)])
    return tuple(synthetic(rows, count, d) for rows, count in pairs)


_LARGE = _sizes(40_000, 20, 20_000, 5)
_SMALL = _sizes(2_000, 40, 2_000, 5)
_QUICK = ("mushrooms", "dorothea")

EXPERIMENTS: dict[str, Experiment] = {
    e.name: e
    for e in (
        Experiment(
            "table1",
            "Cost of an epoch",
            dict.fromkeys(_LARGE, 3.0),
            ("sdca", "quartz", "iprox-sdca", "option I", "adasdca"),
            losses=("squared",),
            max_epochs=30,
            costs={"adasdca": dict.fromkeys(_SMALL, 6.0)},
            quick_budget=1.0,
            quick=(*_LARGE[1:4], *_LARGE[6:8], *_SMALL[1:4], *_SMALL[6:8]),
        ),
        Experiment(
            "table2",
            "Data sets",
            dict.fromkeys(DATA, 1.0),
            (SHAPE,),
            losses=("",),
            seeds=1,
            quick=DATA,
        ),
        Experiment(
            "full",
            "AdaSDCA by iterations",
            {data: _BUDGETS[data] for data in ("w8a", "dorothea", "mushrooms", "ijcnn1")},
            ("sdca", "iprox-sdca", "option I", "option II", "adasdca"),
            losses=("squared",),
            costs={
                "adasdca": {"w8a": 300.0, "dorothea": 20.0, "mushrooms": 200.0, "ijcnn1": 150.0}
            },
            quick=_QUICK,
            quick_budget=6.0,
        ),
        Experiment(
            "methods",
            "AdaSDCA+ and the others, by iterations and by time",
            _BUDGETS,
            ("sdca", "sdca-perm", "iprox-sdca", "option II", "option I", "auto"),
            seeds=5,
        ),
        Experiment(
            "m",
            "Choices of m",
            _BUDGETS,
            tuple(with_m(option, m) for option in ("I", "II") for m in MS),
            quick=_QUICK,
        ),
        Experiment(
            "optimal",
            "Constrained-optimal probabilities",
            _BUDGETS,
            ("iprox-sdca", "option I", "adasdca+, optimal", "adasdca", "adasdca, optimal"),
            losses=("smoothed_hinge",),
            costs={
                label: {"dorothea": 30.0, "mushrooms": 100.0}
                for label in ("adasdca", "adasdca, optimal")
            },
            quick=_QUICK,
            quick_budget=6.0,
        ),
        Experiment(
            "theory",
            "Runs watched from inside",
            dict.fromkeys(DATA, 60.0),
            (
                *("iprox-sdca", "option I", with_m("I", "50"), with_m("II", "50")),
                *("adasdca", "adasdca, optimal"),
            ),
            max_epochs=60,
            costs={
                "adasdca": {"w8a": 60.0, "dorothea": 30.0, "mushrooms": 60.0, "ijcnn1": 60.0},
                "adasdca, optimal": {"dorothea": 30.0, "mushrooms": 60.0},
            },
            quick=_QUICK,
            quick_budget=1.0,
            watched=True,
        ),
        Experiment(
            "samplers",
            "Planned epochs and Random Counters",
            _BUDGETS,
            ("option I", "tree"),
        ),
    )
}
