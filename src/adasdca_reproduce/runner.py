"""Make the runs, here or in other processes, and store each as soon as it is over."""

from __future__ import annotations

import contextlib
import datetime as dt
import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import fields
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from adasdca.plugins import load_all
from adasdca.problem.losses import get_loss
from adasdca.problem.problem import Problem
from adasdca.solution import Solution, Status
from adasdca.solver import solve
from adasdca_reproduce import problems
from adasdca_reproduce.experiments import EXPERIMENTS, SHAPE, method_of
from adasdca_reproduce.grid import Task, longest_first
from adasdca_reproduce.machine import commit, machine, versions
from adasdca_reproduce.store import Record, Store, identity
from adasdca_reproduce.watching import watch

#: What the history of a stored run holds, the fields of `History`.
_MICROSECONDS = 6


class Interrupted(Exception):  # noqa: N818, it is no error
    """The user stopped the runs; those that were over are stored."""


def execute(task: Task, jobs: int = 1) -> Record:
    """Make a run and return all that is to be stored of it."""
    X, y = problems.problem(task.data, task.protocol.rows)
    n, d = X.shape
    made: Record = {"status": "described"} if task.method == SHAPE else _made(task, X, y)
    shape = {"n": n, "d": d, "nnz": int(X.nnz)}
    return (
        task.as_dict()
        | shape
        | made
        | {
            "jobs": jobs,
            "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
            "versions": versions(),
            "machine": machine(),
            "commit": commit(),
            "date": dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        }
    )


def _made(task: Task, X: Any, y: Any) -> Record:
    """Run a method on the problem that the paper states, and return how it went."""
    method, n = method_of(task.method), len(y)
    stated: dict[str, Any] = {"loss": get_loss(task.loss), "lam": 1.0 / n}
    limits: dict[str, Any] = {
        "max_epochs": task.protocol.max_epochs,
        "max_time": task.protocol.budget,
    }
    name = {"parameters": _name(method)}
    if EXPERIMENTS[task.experiment].watched:
        return name | watch(Problem.checked(X, y, **stated), method, seed=task.seed, **limits)
    fixed: dict[str, Any] = {"tol": 0.0, "random_state": task.seed, "n_threads": 1}
    # The Newton steps of `auto` use BLAS, whose threads are no business of this comparison.
    with threadpool_limits(1):
        solution = solve(X, y, method=method, **stated, **limits, **fixed)
    if solution.status is Status.INTERRUPTED:
        raise Interrupted
    return name | _outcome(solution)


def pending(todo: Sequence[Task], stored: Sequence[Record]) -> list[Task]:
    """Return the tasks that no stored run answers; a failed run answers none."""
    done = {identity(record) for record in stored if record["status"] != "failed"}
    return [task for task in todo if identity(task.as_dict()) not in done]


def run(
    todo: Sequence[Task],
    store: Store,
    *,
    jobs: int = 1,
    plugins: Sequence[str] = (),
    see: Callable[[Task, Record], None] = lambda task, record: None,
) -> list[Record]:
    """Make the runs, store each when it is over, and return them.

    One process makes them in this order; several `jobs` begin with the longest, and import the
    files `plugins` first. This process alone writes. `see` is called with each task and its record.
    Ctrl-C raises `Interrupted`; all that was over is stored.
    """
    made = []
    results = _here(todo) if jobs == 1 else _elsewhere(todo, jobs, plugins)
    with contextlib.closing(results):
        try:
            for task, record in results:
                store.append(record)
                made.append(record)
                see(task, record)
        except KeyboardInterrupt:
            raise Interrupted from None
    return made


def _here(todo: Sequence[Task]) -> Generator[tuple[Task, Record], None, None]:
    for task in todo:
        yield task, _safely(task, 1)


def _elsewhere(
    todo: Sequence[Task], jobs: int, plugins: Sequence[str]
) -> Generator[tuple[Task, Record], None, None]:
    pool = ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(list(plugins),),
    )
    before = set(multiprocessing.active_children())
    over = False
    try:
        tasks: dict[Future[Record], Task] = {
            pool.submit(_safely, t, jobs): t for t in longest_first(todo)
        }
        for future in as_completed(list(tasks)):
            yield tasks.pop(future), future.result()
        over = True
    except BrokenProcessPool as error:
        raise OSError("a process of --jobs ended unexpectedly; what was done is stored") from error
    finally:
        pool.shutdown(wait=over, cancel_futures=True)
        # What is still running would go on to the end of its budget.
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()


def _begin(plugins: list[str]) -> None:
    """Prepare a process: Ctrl-C is the parent's business; know what the plugins register."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    load_all(plugins)


def _safely(task: Task, jobs: int) -> Record:
    """Make a run; one that fails is a record with the reason, and the others go on."""
    try:
        return execute(task, jobs)
    except Interrupted:
        raise
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        return task.as_dict() | {"status": "failed", "error": words}


def _outcome(solution: Solution) -> Record:
    history = solution.history
    columns: dict[str, list[Any]] = {
        f.name: getattr(history, f.name).tolist() for f in fields(history)
    }
    columns["seconds"] = [round(s, _MICROSECONDS) for s in columns["seconds"]]
    return {
        "status": solution.status.value,
        "epochs": solution.n_epochs,
        "updates": solution.n_updates,
        "seconds": columns["seconds"][-1],
        "timings": {k: round(s, _MICROSECONDS) for k, s in solution.timings.items()},
        "history": columns,
    }


def _name(method: Any) -> str:
    """Return the method as an expression; a rule that is a function goes by its name."""
    option = getattr(method, "option", None)
    return repr(method).replace(repr(option), option.__name__) if callable(option) else repr(method)
