"""Checkpoints: a solve that was killed goes on from the last one.

A checkpoint is written between a survey and the plan that follows. On rows of this process it is
all that changes in a solve, bit by bit: the bits at the end are those of a solve that was never
disturbed. With rows elsewhere it is the last certified point, from which a solve goes on. Nothing
in the file is executed when it is read: it holds arrays and text.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adasdca.ascent.schedules import PickSchedule
from adasdca.ascent.survey import Survey
from adasdca.backends.backend import Backend
from adasdca.backends.base import FOREVER
from adasdca.backends.contract import RowVector
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.saving import restore, saved
from adasdca.duality.certificate import Certificate
from adasdca.engine.loop import Loop
from adasdca.engine.stop import Callback, StopRule
from adasdca.problem.problem import Problem
from adasdca.solution import Record
from adasdca.storage import FileError, check_writable, read_arrays, replacing

Array = NDArray[np.float64]

FORMAT = 2
#: Entries at either end of a mapped array that stand for all.
ENDS = 1 << 16
#: Of the loop and of the stop rule, what changes.
LOOP = ("_seed", "_first", "_epoch", "_updates", "_label", "_timings", "_seen", "_duration")
STOP = ("_best_gap", "_best_dual", "_last_gap", "_waited")


def fingerprint(problem: Problem, options: tuple[Any, ...]) -> str:
    """Return a text that two solves have in common only if they are of the same problem."""
    rows = problem.rows
    arrays = [rows.values, problem.y, problem.weight, problem.penalty_factors]
    arrays += [*rows.arrays[1:], *(problem.bounds or ())]
    sums = [checksum(array) for array in arrays]
    words = (rows.shape, problem.loss, problem.lam, problem.l1_ratio, problem.fit_intercept)
    text = repr((FORMAT, words, problem.constant, problem.whole, sums, options))
    return hashlib.sha256(text.encode()).hexdigest()


def checksum(array: NDArray[Any] | None) -> int | None:
    """Return a number that tells an array from others; of a mapped file, by its ends."""
    if array is None:
        return None
    if isinstance(array, np.memmap):  # its pages would all come into memory
        flat = array.reshape(-1)
        array = np.concatenate([flat[:ENDS], flat[-ENDS:]])
    data: Any = np.ascontiguousarray(array)
    return zlib.crc32(memoryview(data).cast("B")) if data.size else 0


class Checkpoint:
    """Writes and reads the checkpoints of one solve.

    Parameters
    ----------
    every : float
        Seconds between two of them, at least.
    identity : str
        What tells this solve from others.
    """

    def __init__(self, path: str | os.PathLike[str], every: float, identity: str) -> None:
        self._path, self._every, self._identity = Path(path), every, identity
        check_writable(self._path)
        self._last = time.perf_counter()
        self._loop: Loop | None = None
        self._state = self._read() if self._path.exists() else None

    @property
    def seed(self) -> int | None:
        """The seed of the solve that was killed; None if there was none."""
        return None if self._state is None else int(self._state["seed"])

    def _read(self) -> dict[str, Any]:
        damaged = FileError(f"{self._path} is no checkpoint, or damaged; remove it to begin anew.")
        arrays = read_arrays(self._path)
        try:
            text = str(arrays.pop("text"))
            state: dict[str, Any] = _unpacked(json.loads(text), arrays)
            same = state["identity"] == self._identity
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise damaged from error
        if not same:
            raise FileError(
                f"{self._path} is the checkpoint of another problem, or of other options; remove "
                "it, or choose another name."
            )
        return state

    def resume(self, loop: Loop, rows: Backend, stop: StopRule) -> None:
        """Watch a loop, and lead it to where the checkpoint is if there is one."""
        self._loop = loop
        if isinstance(loop._schedule, PickSchedule):
            raise ValueError(
                "checkpoint is not possible with a method of one's own, which may remember what "
                "cannot be saved; leave checkpoint out."
            )
        rows.watcher = self.keep_point
        state = self._state
        if state is None:
            return
        if "point" in state:
            point, duals = state["point"], None
            if len(point["beta"]) == rows.facts.n:  # they were gathered
                rows.restart(point["beta"], point["b"])
                seen = rows.survey(frozenset(), FOREVER)
                duals = None if seen is None else seen.beta
            rows.place(duals, point["w"], point["b"])
            return
        assert isinstance(rows, LocalBackend)
        restore(rows, state["rows"])
        for name in LOOP:
            setattr(loop, name, state["loop"][name])
        for name in STOP:
            setattr(stop, name, state["stop"][name])
        stop.start -= state["elapsed"]
        _adopt(loop._schedule, state["schedule"])
        loop._trail = [(Record(*record), label) for record, label in state["trail"]]
        loop._survey = _survey(state["survey"])
        multiplier, epoch = state["best at"]
        best = loop._survey if state["best"] is None else _survey(state["best"])
        loop._best = best, multiplier, epoch

    def __call__(self, record: Record) -> None:
        """Write a checkpoint after a survey if the last one is old enough."""
        if time.perf_counter() - self._last >= self._every:
            self.save()

    def save(self) -> None:
        """Write a checkpoint."""
        loop = self._loop
        assert loop is not None
        rows = loop._backend
        if not isinstance(rows, LocalBackend):
            seen = loop._survey
            self._write_point(seen.coef, seen.intercept, seen.certified)
            return
        best, multiplier, epoch = loop._best
        same = best is loop._survey
        self._write(
            {
                "rows": saved(rows),
                "loop": {name: getattr(loop, name) for name in LOOP},
                "stop": {name: getattr(loop._stop, name) for name in STOP},
                "elapsed": loop._stop.elapsed(),
                "schedule": _plain(loop._schedule),
                "trail": [[list(record), label] for record, label in loop._trail],
                "survey": _told(loop._survey),
                "best": None if same else _told(best),
                "best at": [multiplier, epoch],
            }
        )

    def keep_point(self, w: Array, b: float, duals: RowVector | None) -> None:
        """Write a point in the middle of a phase, whose rows are elsewhere."""
        if time.perf_counter() - self._last >= self._every:
            self._write_point(w, b, duals)

    def _write_point(self, w: Array, b: float, duals: RowVector | None) -> None:
        assert self._loop is not None
        beta = np.empty(0) if duals is None else self._loop._backend.gather(duals)
        self._write({"point": {"w": w, "b": b, "beta": beta}})

    def _write(self, state: dict[str, Any]) -> None:
        assert self._loop is not None
        arrays: dict[str, Any] = {}
        seed = str(self._loop._seed)  # of 64 bits
        tree = _packed(state | {"identity": self._identity, "seed": seed}, arrays)
        with replacing(self._path) as file:
            np.savez(file, text=np.array(json.dumps(tree)), **arrays)
        self._last = time.perf_counter()

    def end(self, done: bool) -> None:
        """Remove the file of a solve that is done; of any other, write the last one."""
        if done:
            self._path.unlink(missing_ok=True)
        else:
            self.save()


def watched_by(keeper: Checkpoint, callback: Callback | None) -> Callback:
    """Return a callback that keeps checkpoints, and asks another one whether to stop."""

    def look(record: Record) -> Any:
        keeper(record)
        return callback is not None and callback(record)

    return look


def _plain(thing: Any) -> dict[str, Any]:
    """Return the numbers that a schedule, and its own parts, keep."""
    found: dict[str, Any] = {}
    for name, value in vars(thing).items():
        if isinstance(value, (bool, int, float, str, tuple, type(None), np.generic)):
            found[name] = value
        elif type(value).__module__ == "adasdca.auto.second_order":
            found[name] = _plain(value)
    return found


def _adopt(thing: Any, state: dict[str, Any]) -> None:
    for name, value in state.items():
        if isinstance(value, dict):
            _adopt(getattr(thing, name), value)
        elif getattr(thing, name) != value:
            setattr(thing, name, value)


def _told(survey: Survey) -> dict[str, Any]:
    told = {field.name: getattr(survey, field.name) for field in fields(survey)}
    certificate = survey.certificate
    told["certificate"] = [getattr(certificate, field.name) for field in fields(certificate)]
    return told


def _survey(told: dict[str, Any]) -> Survey:
    return Survey(**{**told, "certificate": Certificate(*told["certificate"])})


def _packed(tree: Any, arrays: dict[str, Any]) -> Any:
    """Return a tree for JSON, its arrays beside it."""
    if isinstance(tree, np.ndarray):
        if tree.size > 1 and tree.strides[0] == 0:  # n equal numbers that take no memory
            return {"$equal": float(tree[0]), "n": len(tree)}
        name = f"a{len(arrays)}"
        arrays[name] = tree
        return {"$array": name}
    if isinstance(tree, dict):
        return {name: _packed(value, arrays) for name, value in tree.items()}
    if isinstance(tree, tuple):
        return {"$tuple": [_packed(value, arrays) for value in tree]}
    if isinstance(tree, list):
        return [_packed(value, arrays) for value in tree]
    return tree.item() if isinstance(tree, np.generic) else tree


def _unpacked(tree: Any, arrays: dict[str, Any]) -> Any:
    if isinstance(tree, list):
        return [_unpacked(value, arrays) for value in tree]
    if not isinstance(tree, dict):
        return tree
    if "$array" in tree:
        return arrays[tree["$array"]]
    if "$equal" in tree:
        return np.broadcast_to(np.float64(tree["$equal"]), tree["n"])
    if "$tuple" in tree:
        return tuple(_unpacked(value, arrays) for value in tree["$tuple"])
    return {name: _unpacked(value, arrays) for name, value in tree.items()}
