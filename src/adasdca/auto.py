"""`auto`: which epochs, how many picks, when to finish by Newton, as the surveys advise."""

from __future__ import annotations

import math

import numpy as np

from adasdca import _core
from adasdca.costs import Costs
from adasdca.finish import Finish, make_finish
from adasdca.problem import Problem
from adasdca.schedules import Ascent, Decay, Plan
from adasdca.survey import Survey


class AutoSchedule:
    """Permutations while all rows matter alike, adaptive epochs when they do not, then Newton.

    Parameters
    ----------
    problem : Problem
        The problem.
    tol : float
        The relative gap asked for.
    threads : int
        Threads for passes of the finish.
    """

    needs = frozenset({"adaptive"})

    def __init__(self, problem: Problem, tol: float, threads: int) -> None:
        self._costs = Costs(problem)
        self._quadratic = problem.loss.name == "squared"
        self._tol = max(tol, 1e-15)
        self._finish: Finish | None = make_finish(problem, threads)
        self._planner = _core.Planner()
        self._decay = Decay()
        self._m = 2.0
        # The gap before the last plan, what the plan was, and its length in epochs.
        self._last: tuple[float, str, float] | None = None
        # Epochs before the finish is tried again, and how many that was the last time.
        self._rest = self._pause = 0

    def plan(self, survey: Survey, key: int) -> Plan | None:
        """Plan the next epoch, or the finish."""
        assert survey.adaptive is not None
        n = len(survey.beta)
        law = survey.adaptive
        total = float(law.sum())
        if total == 0:
            return None
        relative = survey.gap / survey.primal
        epochs_left = self._epochs_left(relative)
        # The share of rows that the law visits in effect: 1 if all matter alike.
        spread = total * total / (n * float(law @ law))
        adaptive = spread < 0.6
        picks = int(np.clip(2 * survey.active, n // 4 + 1, n)) if adaptive else n
        if self._finish_pays(survey, relative, epochs_left, self._costs.epoch(picks, adaptive)):
            assert self._finish is not None
            self._last = (relative, "finish", 0.0)
            return self._finish.plan(survey, self._tol)
        self._rest -= 1
        if not adaptive:
            # Far from the goal a survey after every permutation is half the cost of the epoch.
            rounds = int(np.clip(epochs_left / 2, 1, 3)) if math.isfinite(epochs_left) else 1
            self._last = (relative, "permutation", float(rounds))
            orders = [_core.draw_permutation(n, _core.subkey(key, k)) for k in range(rounds)]
            return Ascent(orders[0] if rounds == 1 else np.concatenate(orders), "permutation")
        self._last = (relative, "adaptive", picks / n)
        self._m = self._decay.observe(survey, self._m)
        rows = self._planner.plan(law, self._m, picks, key)
        self._decay.remember(survey, rows)
        return Ascent(rows, "adaptive epochs")

    def _epochs_left(self, relative: float) -> float:
        """Epochs to the goal at the rate of the last ones; infinite if that is not known."""
        need = math.log(max(relative / self._tol, 1.0))
        if self._last is None:
            return math.inf
        before, what, length = self._last
        if what == "finish":
            if relative > 0.1 * before:
                # It did not pay: leave it for a while, each time for longer.
                self._pause = max(2, 2 * self._pause)
                self._rest = self._pause
            return math.inf
        rate = math.log(before / relative) / length if relative > 0 else math.inf
        return need / max(rate, 0.05)

    def _finish_pays(
        self, survey: Survey, relative: float, epochs_left: float, epoch: float
    ) -> bool:
        if self._finish is None or self._rest > 0 or not self._finish.ready(survey):
            return False
        steps = 3 if relative < 1e-2 else 5 if relative < 0.2 else 8
        if self._quadratic:
            steps = 1
        if self._last is None:
            # From the start: nothing is known of the epochs but that a few will be needed.
            epochs_left = 6.0 if self._quadratic else 3.0
        elif math.isinf(epochs_left):
            epochs_left = 6.0
        return self._finish.cost(self._costs, survey, steps) < epochs_left * epoch
