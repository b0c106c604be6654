"""Parts on workers, asked all at once; a part that is lost with its worker is rebuilt elsewhere.

Commands that change a part are journalled. A lost part is built from its blocks on another worker,
gets the last copy of its vectors, which is on a neighbouring worker, and the commands since then.
It is then the same to the last bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from distributed import CancelledError, Client, TimeoutError, wait  # noqa: A004
from distributed.client import Future

from adasdca import _core
from adasdca.backends import part
from adasdca.backends.facts import Distance
from adasdca.dask._blocks import Blocks
from adasdca.dask._worker import Summary, Task, WorkerPart, copied
from adasdca.engine.stop import Callback
from adasdca.multinomial import part as class_part
from adasdca.multinomial.part import ClassTask
from adasdca.solution import Record

#: Commands that pass over the rows.
PASSES = part.PASSES | part.OF_TERMS | class_part.PASSES
#: Commands that change a part.
CHANGES = class_part.CHANGES | frozenset(
    (
        "restrict",
        "forget",
        "scatter",
        "score",
        "slopes",
        "examine",
        "begin",
        "go",
        "place",
        "move",
        "aim",
        "keep",
    )
)
#: Nanoseconds of a command, and of a number that a part is sent or sends: 1.7 ms and 1 GB/s between
#: processes of one machine.
COMMAND, NUMBER = 1.7e6, 8.0
#: Seconds between copies of the vectors, between looks at Ctrl-C, and for a worker to come back.
COPY, LOOK, PATIENCE = 30.0, 0.5, 60.0
#: Seconds between looks at whether copies are made.
GLANCE = 0.005
#: Stand for a result that has not come, and for one that cannot come.
LATE, LOST = object(), object()
#: Attempts to rebuild a part before its error is raised.
ATTEMPTS = 5


class WorkersLostError(RuntimeError):
    """No worker is left, or parts are lost again and again."""


def _size(things: Any) -> int:
    """Return the bytes of arrays."""
    if isinstance(things, np.ndarray):
        return things.nbytes
    return sum(map(_size, things)) if isinstance(things, (tuple, list)) else 0


def within(future: Any, seconds: float) -> Any:
    """Return a result, or that it is late."""
    try:
        return future.result(timeout=seconds)
    except TimeoutError:
        return LATE


def waited(future: Any, hopeful: Callable[[], bool] = lambda: True) -> Any:
    """Return a result; Ctrl-C ends the wait, and a result that cannot come is LOST."""
    while (found := within(future, LOOK)) is LATE:
        _core.check()
        if not hopeful():
            return LOST
    return found


class DaskTeam:
    """Parts on the workers of a cluster, by default one for each worker."""

    def __init__(
        self, client: Client, blocks: Blocks, parts: int | None = None, threads: int = 1
    ) -> None:
        self._client, self._blocks, self._threads = client, blocks, threads
        workers = self._workers()
        self._groups = blocks.groups(parts or len(workers))
        self._places = [workers[k % len(workers)] for k in range(len(self._groups))]
        # All at once, and only then the errors.
        futures = [self._submit(k) for k in range(len(self._groups))]
        wait(futures)
        self._futures = futures
        self._actors = [self._actor(future) for future in futures]
        self.summaries: list[Summary] = [actor.summary().result() for actor in self._actors]
        self.kept = [k for k, summary in enumerate(self.summaries) if summary.n]
        self._task: Task | ClassTask | None = None
        self._lost = 0
        #: Rounds asked, passes over the rows among them, and bytes of arrays told and heard.
        self.rounds = self.passes = self.bytes = 0
        self._clear()

    def _clear(self) -> None:
        """Forget what parts were told."""
        self._journal: list[tuple[str, tuple[Any, ...], list[Any] | None]] = []
        self._copies: dict[int, Future] = {}
        self._spaces: dict[int, tuple[Any, ...]] = {}
        self._terms: set[int] = set()
        self._copied = time.perf_counter()

    def _workers(self) -> list[str]:
        """Return the addresses of the workers, in a fixed order; wait a while if there is none."""
        limit = time.perf_counter() + PATIENCE
        while True:
            found = sorted(self._client.scheduler_info(n_workers=-1)["workers"])
            if found:
                return found
            if time.perf_counter() > limit:
                raise WorkersLostError(f"no worker of {self._client} is left; start some.")
            _core.check()
            time.sleep(LOOK)

    def _submit(self, k: int) -> Future:
        numbers = list(self._groups[k])
        lists = [self._blocks.X, self._blocks.y]
        if self._blocks.weight is not None:
            lists.append(self._blocks.weight)
        delayed = [blocks[number] for blocks in lists for number in numbers]
        # Together, or what X and y have in common is made once for each.
        futures = self._client.compute(delayed, workers=[self._places[k]], allow_other_workers=True)
        return self._client.submit(
            WorkerPart,
            numbers,
            self._threads,
            *futures,
            actor=True,
            key=f"adasdca-part-{k}-{time.time_ns()}",
            workers=[self._places[k]],
            allow_other_workers=False,
            pure=False,
        )

    def _actor(self, future: Future) -> Any:
        """Return an actor that speaks through this client.

        By itself it takes the client that is in force where it is unpacked.
        """
        actor = waited(future)
        actor._client, actor._worker, actor._future = self._client, None, future
        return actor

    @property
    def distance(self) -> Distance:
        """What it costs that parts are on workers, which work at the same time."""
        count = max(len(self.kept), 1)
        return Distance(COMMAND, NUMBER * count, 1.0 / count)

    # -- a problem

    def begin(self, task: Task | ClassTask) -> None:
        """Let all parts take a problem up."""
        self._task = task
        self._clear()
        list(self._all("begin", [(task,)] * len(self.kept)))

    def _all(self, name: str, calls: list[tuple[Any, ...]]) -> Iterator[Any]:
        """Let every part do something, all at the same time; yield what each says, in order."""
        futures = [self._call(k, name, *args) for k, args in zip(self.kept, calls, strict=True)]
        for k, future, args in zip(self.kept, futures, calls, strict=True):
            yield self._said(k, future, name, *args)

    def _call(self, k: int, name: str, *args: Any) -> Any:
        try:
            return getattr(self._actors[k], name)(*args)
        except RuntimeError:  # its worker was lost
            return None

    def _said(self, k: int, future: Any, name: str, *args: Any) -> Any:
        """Return what a part says; if it was lost, of the one that took its place."""
        while True:
            said = self._heard(k, future)
            if said is not LOST:
                return said
            self._rebuild(k)
            future = self._call(k, name, *args)

    def _heard(self, k: int, future: Any) -> Any:
        """Return what a part says, or that it was lost."""
        if future is None:
            return LOST
        try:
            return waited(future, lambda: self._present(k))
        except (OSError, RuntimeError, KeyError):
            if self._alive(k):
                raise
            return LOST

    def _present(self, k: int) -> bool:
        """Whether its worker is there, and has not dropped it."""
        kept = self._futures[k].status in ("finished", "pending")
        return kept and self._places[k] in self._workers()

    def _alive(self, k: int) -> bool:
        """Whether a part still answers."""
        if not self._present(k):
            return False
        try:
            return within(self._actors[k].summary(), PATIENCE) is not LATE
        except (OSError, RuntimeError, KeyError, ValueError):
            return False

    def _rebuild(self, k: int) -> None:
        """Rebuild a part on another worker, in the state that it had."""
        self._lost += 1
        if self._lost > ATTEMPTS * len(self._groups):
            raise WorkersLostError(
                f"parts were lost {self._lost} times; look at the logs of workers."
            )
        for _ in range(ATTEMPTS):
            workers = self._workers()
            self._places[k] = min(workers, key=lambda w: (self._places.count(w), w))
            if self._led_back(k):
                return
        raise WorkersLostError("a part could not be rebuilt; look at the logs of the workers.")

    def _led_back(self, k: int) -> bool:
        """Build a part at its new place and replay its journal; False if it is lost again."""
        try:
            self._futures[k] = self._submit(k)
            self._actors[k] = actor = self._actor(self._futures[k])
            if self._task is None:
                return True
            waited(actor.begin(self._task))
            for restriction in self._spaces.values():
                waited(actor.do("restrict", *restriction))
            if k in self._copies:
                for number, values in self._copies[k].result().items():
                    waited(actor.do("scatter", number, values))
            for command, args, each in self._journal:
                more = [] if each is None else [each[self.kept.index(k)]]
                waited(actor.do(command, *args, *more))
        except (OSError, RuntimeError, KeyError, CancelledError):
            return False
        return True

    # -- what a backend asks

    def ask(self, command: str, *args: Any, each: list[Any] | None = None) -> Iterator[Any]:
        """Let every part carry a command out, all at the same time."""
        if command == "begin" and not self._terms:
            self._copy()
        mores: list[Any] = [()] * len(self.kept) if each is None else [(one,) for one in each]
        calls = [(command, *args, *more) for more in mores]
        self.rounds += 1
        self.passes += command in PASSES
        self.bytes += _size(calls)
        for said in self._all("do", calls):
            self.bytes += _size(said)
            yield said
        self._remember(command, args, each)

    def _remember(self, command: str, args: tuple[Any, ...], each: list[Any] | None) -> None:
        if command in CHANGES or (command == "gram" and args[3] is not None):
            self._journal.append((command, args, each))
        if command == "begin":
            self._terms.add(args[1])
        elif command == "restrict":
            self._spaces[args[1]] = args
        elif command == "forget":
            self._terms -= set(args[1])
            for space in args[2]:
                self._spaces.pop(space, None)

    def _copy(self) -> None:
        """Copy the vectors of every part to another worker, if the last copies are old.

        They do not come here. Copies that cannot be made leave the last ones, with the journal.
        """
        workers = self._workers()
        if time.perf_counter() - self._copied < COPY or len(workers) < 2:
            return
        copies, stamp = {}, time.time_ns()
        for k in self.kept:
            place = workers.index(self._places[k]) if self._places[k] in workers else 0
            other = workers[(place + 1) % len(workers)]
            key = f"adasdca-copy-{k}-{stamp}"
            actor = self._futures[k]
            copies[k] = self._client.submit(copied, actor, key=key, workers=[other], pure=False)
        limit = time.perf_counter() + PATIENCE
        while any(copy.status == "pending" for copy in copies.values()):
            _core.check()
            if time.perf_counter() > limit:
                return
            time.sleep(GLANCE)
        if all(copy.status == "finished" for copy in copies.values()):
            self._copies, self._journal, self._copied = copies, [], time.perf_counter()

    def telling(self, callback: Callback | None) -> Callback:
        """Return a callback that also logs to the scheduler, whose dashboard shows such events."""

        def tell(record: Record) -> Any:
            figures = {name: float(value) for name, value in record._asdict().items()}
            self._client.log_event(["all", "adasdca"], {"action": "adasdca", **figures})
            return None if callback is None else callback(record)

        return tell

    def checksums(self) -> list[tuple[int, Any]]:
        """Return a checksum of each block, by its number."""
        found: dict[int, Any] = {}
        for k in self.kept:
            found |= waited(self._actors[k].checksums())
        return sorted(found.items())

    def resident(self) -> list[int]:
        """Return the resident memory of the workers, by part."""
        return [waited(self._actors[k].resident()) for k in self.kept]
