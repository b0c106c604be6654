"""Newton's method with continuation in μ where its steps are short.

Where margins are large the losses are nearly linear, and their curvature does not show the kinks
ahead: steps get short. Along the solutions for falling μ margins grow gradually. So μ is raised
until steps are long, and lowered again stage by stage.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from adasdca.multinomial.objective import MultinomialObjective
from adasdca.newton.newton import Ending, minimise

#: A step below this length is short,
SHORT = 0.1
#: and this many in a row end a stage.
TIRED = 2
#: μ rises by this factor, and falls by this one at first and at most.
RISE, FALL, DIVE = 100.0, 0.1, 1e-3
#: A stage is not given up if μ falls by less than this factor.
CLOSE = 0.7
#: After a stage of at most this many steps μ falls faster.
EASY = 3
#: A stage ends when the error is at most this fraction of the objective.
DONE = 0.1


def descend(objective: MultinomialObjective, deadline: float, look: Callable[[], bool]) -> Ending:
    """Minimise until `look` returns True or double precision shows no more; return why it ended.

    `look` is called at the beginning and after every step.
    """
    if look():
        return Ending.STOPPED
    mu, factor, reached = objective.problem.mu, FALL, None
    while True:
        last = objective.mu == mu
        watch = Watch(objective, look, TIRED if factor < CLOSE else math.inf)
        enough = -1.0 if last else DONE * objective.value()
        ending, steps = minimise(objective, enough, deadline, look=watch)
        if watch.stopped or ending is Ending.TIME or (last and not watch.tired):
            return ending
        if not watch.tired:
            reached = objective.mu, objective.point
            if steps <= EASY:
                factor = max(factor**2, DIVE)
        elif reached is None:
            objective.mu *= RISE
            continue
        else:
            factor = math.sqrt(factor)
            objective.point = reached[1]
        fallen = reached[0] * factor
        objective.mu = fallen if fallen > 1.5 * mu else mu


class Watch:
    """Calls `look` after every step, and counts short steps."""

    def __init__(
        self, objective: MultinomialObjective, look: Callable[[], bool], patience: float
    ) -> None:
        self.objective, self.look, self.patience = objective, look, patience
        self.stopped, self._begun, self._short = False, False, 0

    @property
    def tired(self) -> bool:
        """Whether steps are too short."""
        return self._short >= self.patience

    def __call__(self) -> bool:
        """Look at a step; return whether to stop."""
        if self._begun:  # the beginning was seen
            self._short = self._short + 1 if self.objective.length < SHORT else 0
            self.stopped = self.look()
        self._begun = True
        return self.stopped or self.tired
