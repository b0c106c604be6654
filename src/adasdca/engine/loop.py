"""The one loop: survey, record, judge, plan, ascend."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from adasdca import _core
from adasdca.ascent.plans import Epoch, Leave, Steps
from adasdca.ascent.schedules import Schedule
from adasdca.ascent.survey import Survey
from adasdca.backends.backend import Backend
from adasdca.backends.base import FOREVER
from adasdca.duality.certificate import CertificateError
from adasdca.engine.interruption import Interruption
from adasdca.engine.stop import StopRule
from adasdca.solution import Phase, Record, State, Status

#: After an end in the middle of a plan, a survey faster than this many seconds shows what it did.
#: It is given up after as many: near the last digits, a survey takes four times as long as before
#: (0.1 s of 1e6 rows), and a worker that is asked may not answer any more.
QUICK = 0.03
#: Seconds past the deadline for a plan to end by itself, before its next kernel is its last.
GRACE = 0.05


@dataclass(frozen=True)
class Outcome:
    """What a run of the loop comes to: the best certified point, and how it was reached."""

    survey: Survey
    status: Status
    records: list[Record]
    phases: tuple[Phase, ...]
    timings: dict[str, float]
    state: State
    digits: float = 0.0  #: Of a stalled solve, what the last digits of its model cost.


class Loop:
    """Survey, record, judge, plan, ascend, until there is a reason to stop.

    Parameters
    ----------
    seed, epoch : int
        Seed, and the number of epochs done before.
    idle : callable, optional
        Returns the gap of duals that are all 0, at most. A start that is worse gives way to them.
    """

    def __init__(
        self,
        backend: Backend,
        schedule: Schedule,
        stop: StopRule,
        seed: int,
        epoch: int = 0,
        idle: Callable[[], float] | None = None,
    ) -> None:
        self._backend = backend
        self._schedule = schedule
        self._stop = stop
        self._seed, self._idle = seed, idle
        self._first = self._epoch = epoch
        self._updates = 0
        self._label = "start"
        self._plan: Epoch | Steps | None = None  # the last one
        self._best: tuple[Survey, float, int]  # of the least gap, with its multiplier and epoch
        self._trail: list[tuple[Record, str]] = []  # with what was done before each
        self._timings = {
            "setup": stop.elapsed(),
            "survey": 0.0,
            "plan": 0.0,
            "ascent": 0.0,
            "second order": 0.0,
        }

    def run(self, first: float = FOREVER) -> Outcome:
        """Run to the end; Ctrl-C is an end like any other once there is a certificate.

        Without a first certificate there is nothing to return. KeyboardInterrupt is raised then, or
        Expired if the first survey takes more than `first` seconds.
        """
        stop = self._stop
        if not self._trail:  # a checkpoint has brought none
            with stop.interruption.heeded(first):
                self._look(FOREVER)
                if self._is_in_vain(self._survey):
                    self._trail.clear()
                    self._backend.restart(np.zeros(self._survey.n), 0.0)
                    self._look(FOREVER)
        digits = 0.0
        try:
            with stop.interruption.heeded(stop.seconds_left() + GRACE):
                status = self._turn()
                if status is Status.STALLED:
                    digits = last_digits(self._backend, self._best[0])
        except KeyboardInterrupt:
            stop.interruption.wish()
            status = Status.INTERRUPTED
        except _core.Expired:
            status = Status.TIME_LIMIT
        if not self._seen:
            self._look_back()
        best, multiplier, epoch = self._best
        if best.gap <= stop.tol * best.primal:
            status = Status.CONVERGED  # the last survey after an end from outside may say so
        state = State.of(self._backend.kept(best.beta), multiplier, epoch, self._seed)
        records = [record for record, _ in self._trail]
        return Outcome(best, status, records, _phases(self._trail), self._timings, state, digits)

    def _is_in_vain(self, start: Survey) -> bool:
        """Whether duals that are all 0 are better than those of the start.

        Not where the gap is half of P: as P* is then the other half at least, P(0) is no smaller
        than the gap, and nobody asks for it (20,000 x 8, on a path: 0.08 of 0.66 ms).
        """
        near = start.gap <= 0.5 * start.primal
        return self._idle is not None and not near and start.gap > self._idle()

    def _turn(self) -> Status:
        stop = self._stop
        while True:
            status = stop.judge(self._trail[-1][0])
            if status is not None:
                return status
            began = time.perf_counter()
            plan = self._schedule.plan(self._survey, _core.subkey(self._seed, self._epoch))
            planned = time.perf_counter()
            if plan is None:
                return Status.STALLED
            if isinstance(plan, Leave):
                return Status.INTERRUPTED
            self._plan, self._label = plan, plan.label
            self._epoch += 1
            self._seen = False
            # What no survey sees any more is lost.
            seconds = stop.seconds_left() - self._duration
            if isinstance(plan, Epoch):
                self._updates += self._backend.ascend(plan, seconds)
            else:
                plan.run(self._backend, seconds)
            clock = "ascent" if isinstance(plan, Epoch) else "second order"
            self._timings["plan"] += planned - began
            self._timings[clock] += time.perf_counter() - planned
            try:
                seen = self._look(stop.seconds_left())
            except CertificateError:  # the way led beyond double precision
                self._seen = True
                return Status.STALLED
            if not seen:
                return Status.TIME_LIMIT

    def _look(self, seconds: float) -> bool:
        """Survey and record; False if time ran out on the way."""
        began = time.perf_counter()
        seen = self._backend.survey(self._schedule.needs, seconds, self._stop.tol)
        if seen is None:
            return False
        self._duration = time.perf_counter() - began
        self._timings["survey"] += self._duration
        self._note(seen)
        return True

    def _look_back(self) -> None:
        """See what a plan did that was left in its middle: what it has certified, or a survey."""
        found = None if self._plan is None or isinstance(self._plan, Epoch) else self._plan.found
        if found is not None and found.certificate.gap < self._best[0].gap:
            point = {"coef": found.w, "intercept": found.b, "beta": found.duals}
            certified = {"certificate": found.certificate, "certified": found.duals}
            self._note(replace(self._survey, **point, **certified))
        elif self._duration < QUICK:
            with suppress(_core.Expired), Interruption().heeded(QUICK):
                self._look(FOREVER)

    def _note(self, seen: Survey) -> None:
        """Record a survey."""
        # One that has arrived may have a larger gap than an earlier one of a larger objective.
        arrived = seen.relative_gap <= self._stop.tol
        if not self._trail or arrived or seen.gap <= self._best[0].gap:
            self._best = seen, self._backend.multiplier, self._epoch
        self._survey, self._seen = seen, True
        record = Record(
            self._epoch - self._first,
            self._updates,
            self._stop.elapsed(),
            seen.primal,
            seen.dual,
            seen.gap,
            seen.active,
        )
        self._trail.append((record, self._label))


def last_digits(backend: Backend, at: Survey) -> float:
    """Return what it costs to move all coefficients and the intercept by their last digits.

    By chance up or down, and all of them the other way. The objective is convex, so that one of the
    two does not lower it: where that costs as much as is left to gain, no better model is to be had
    but by chance. Features at rest stay there.
    """
    up = np.where(np.random.default_rng(0).random(len(at.coef)) < 0.5, np.inf, -np.inf)
    dearest = 0.0
    for way in (1.0, -1.0):
        w = np.where(at.coef != 0, np.nextafter(at.coef, way * up), 0.0)
        if backend.problem.regularizer.bounds is not None:
            w = np.clip(w, *backend.problem.regularizer.bounds)
        b = float(np.nextafter(at.intercept, way * np.inf)) if at.intercept else 0.0
        with suppress(CertificateError):
            moved = backend.certify(w, b, at.certified)
            dearest = max(dearest, moved.gap - at.gap)
    return dearest


def _phases(trail: list[tuple[Record, str]]) -> tuple[Phase, ...]:
    """Group neighbouring surveys by what was done before them."""
    phases: list[Phase] = []
    before = trail[0][0]
    for record, label in trail[1:]:
        phase = Phase(
            label,
            1,
            record.updates - before.updates,
            record.seconds - before.seconds,
            before.gap,
            record.gap,
        )
        if phases and phases[-1].name == label:
            last = phases.pop()
            phase = Phase(
                label,
                last.rounds + 1,
                last.updates + phase.updates,
                last.seconds + phase.seconds,
                last.gap_before,
                record.gap,
            )
        phases.append(phase)
        before = record
    return tuple(phases)
