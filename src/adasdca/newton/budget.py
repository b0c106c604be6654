"""What second-order steps may cost: priced work is counted, and no clock decides a path."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class Budget:
    """Work done and work allowed, in nanoseconds by the prices in force."""

    most: float = math.inf  #: What may be spent.
    path: float = math.inf  #: What a step along the central path costs.
    entry: float = 0.0  #: What an entry of a column costs where coordinates descend.
    spent: float = 0.0  #: What was spent.

    def pay(self, price: float) -> None:
        """Take note of work."""
        self.spent += price

    @property
    def left(self) -> float:
        """What may still be spent."""
        return self.most - self.spent

    @property
    def over(self) -> bool:
        """Whether all is spent."""
        return self.left <= 0
