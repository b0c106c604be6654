"""Tasks: what has to be run, each with its key and its protocol."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from adasdca_reproduce.experiments import DATA, EXPERIMENTS, SHAPE, Experiment
from adasdca_reproduce.store import KEY, Record


@dataclass(frozen=True)
class Protocol:
    """How a run is made, beside its key; runs of different protocols are different runs."""

    budget: float  #: Most seconds.
    max_epochs: int  #: Most epochs.
    #: How many rows are taken, the first in a fixed random order; None: all, in their own order.
    rows: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return all that fixes a run, in words of the paper where it has them."""
        return {
            "lambda": "1/n",
            "gamma": 1.0,
            "tol": 0.0,
            "threads": 1,
            "budget": self.budget,
            "max_epochs": self.max_epochs,
            "rows": self.rows,
        }


@dataclass(frozen=True)
class Task:
    """One run to be made."""

    experiment: str
    data: str
    loss: str
    method: str
    seed: int
    protocol: Protocol

    def as_dict(self) -> Record:
        """Return what a stored run says of its task."""
        named = {name: getattr(self, name) for name in KEY}
        return named | {"protocol": self.protocol.as_dict()}


@dataclass(frozen=True)
class Scope:
    """Which part of the experiments to run."""

    only: tuple[str, ...] = ()  #: Names of experiments; empty for all.
    available: tuple[str, ...] = DATA  #: Data sets that can be loaded.
    quick: bool = False  #: The representative subset, with short budgets.
    seeds: int | None = None  #: Number of seeds, None for that of the experiment.
    budget: float | None = None  #: Seconds of a run, None for those of the experiment.
    rows: int | None = None  #: See `Protocol`.
    #: Labels and names that plug-ins registered; they join the comparison of the methods.
    more_methods: tuple[str, ...] = ()
    more_losses: tuple[str, ...] = ()
    more_data: tuple[str, ...] = ()


#: Seconds of a run on data that a plug-in brought.
PLUGIN_BUDGET = 10.0
#: What runs take of their budgets, for most of them converge long before: 54 of the 420 seconds
#: of a quick run were seen on one core, 34 of the 154 minutes of all experiments on two.
SHARE_USED = 0.2


def tasks(scope: Scope) -> list[Task]:
    """Return the runs of a scope: all methods with one seed before any with the next."""
    wanted = [EXPERIMENTS[name] for name in scope.only or EXPERIMENTS]
    found = [task for experiment in wanted for task in _of_experiment(experiment, scope)]
    return sorted(found, key=lambda task: task.seed)  # stable: an early end has every method


def missing(scope: Scope) -> list[str]:
    """Return the data sets that the scope asks for and that are not here."""
    wanted = [EXPERIMENTS[name] for name in scope.only or EXPERIMENTS]
    asked = {d for e in wanted for d in (e.quick if scope.quick else e.budgets) if d in DATA}
    return [d for d in DATA if d in asked and d not in scope.available]


def left_out(scope: Scope) -> list[str]:
    """Return, in words, what a quick run does not do."""
    if not scope.quick:
        return []
    words = []
    for name in scope.only or EXPERIMENTS:
        e = EXPERIMENTS[name]
        gone = [d for d in e.budgets if d in DATA and d not in e.quick]
        if gone:
            words.append(f"{name}: {', '.join(gone)}")
    return words


def most_seconds(todo: Iterable[Task], jobs: int) -> float:
    """Return the time that the runs take if every one uses up its budget."""
    return sum(task.protocol.budget for task in todo) / jobs


def usual_seconds(todo: Iterable[Task], jobs: int) -> float:
    """Return about the time that the runs take on a machine with nothing else to do."""
    return SHARE_USED * most_seconds(todo, jobs)


def longest_first(todo: Iterable[Task]) -> list[Task]:
    """Return the runs in the order in which several processes are done with them soonest."""
    return sorted(todo, key=lambda task: -task.protocol.budget)


def _of_experiment(e: Experiment, scope: Scope) -> list[Task]:
    described = e.methods == (SHAPE,)  # the same whatever the seed, and as a whole
    seeds = 1 if described else scope.seeds or (1 if scope.quick else e.seeds)
    rows = None if described else scope.rows
    open_to_plugins = e.name == "methods"
    methods = (*e.methods, *(scope.more_methods if open_to_plugins else ()))
    losses = (*e.losses, *(scope.more_losses if open_to_plugins else ()))
    names = (*e.data, *(scope.more_data if open_to_plugins else ()))
    found = []
    for data in names:
        if data in DATA and data not in scope.available:
            continue
        if scope.quick and data not in e.quick and data not in scope.more_data:
            continue
        for loss in losses:
            for method in methods:
                budget = PLUGIN_BUDGET if data in scope.more_data else e.budget(data, method)
                if budget is None:
                    continue
                if scope.quick:
                    budget = min(budget, e.quick_budget)
                protocol = Protocol(scope.budget or budget, e.max_epochs, rows)
                found += [Task(e.name, data, loss, method, s, protocol) for s in range(seeds)]
    return found
