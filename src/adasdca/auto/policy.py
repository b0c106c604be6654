"""Every threshold of `auto`, with the reason for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Policy:
    """What `auto` decides by, beside the prices of `Costs`.

    Attributes
    ----------
    adaptive_below : float
        Epochs are adaptive where a smaller share of the rows matters. Above it the adaptive
        probabilities are nearly uniform, and a permutation is cheaper to draw.
    adaptive_rows : int
        On fewer rows the drawing of an adaptive epoch costs more than its visits.
    wide : float
        Data are wide from so many features a row on. Their rows hardly disturb each other, and
        adaptive probabilities save no visits (dorothea: 8 epochs of permutations against 10 to 23).
    share_ahead : float
        So much of the epochs foretold is run before the next survey, so that the goal is not
        overshot by much.
    permutations, wide_permutations : int
        Most permutations between two surveys. Surveys of wide data cost more than epochs.
    long_order : int
        From so many rows on, one permutation at a time: a drawing cannot be interrupted.
    first_rate, least_rate : float
        The fall of log gap in an epoch that is assumed before any was seen, and at least.
    still : int
        Plans in a row without any effect after which second-order steps are tried whatever they
        cost: with an intercept, duals can rest at their bounds while it has far to go.
    crawl : int
        Epochs in which the gap has not halved after which second-order steps are tried whatever
        they cost: these arrive.
    steps_near, steps_midway, steps_far : float
        Newton steps expected at a relative gap below `near`, below `midway`, and above.
    near, midway : float
        These gaps.
    quadratic_epochs : float
        Epochs that a squared loss takes at least, against its one Newton step.
    small : int
        Problems of at most this many rows and stored values are solved to the last digits. That
        takes a few steps more, and the answer then depends neither on the seed nor on the order of
        the rows.
    last_steps, last_gap : int, float
        Steps that may be taken for the last digits, and the relative gap that stands for them where
        P has kinks.
    steps_expected : float
        Newton steps expected when the way to solve their equations is chosen.
    working_set : int
        From so many features on, those that rest are left out.
    rounds : float
        Newton runs that the rounds of an L1 term or of bounds are worth.
    steps_a_decade : float
        Newton steps that losses with kinks take for a digit.
    early : float
        How much more these cost above the gap `near`: while it falls fast, so does the number of
        rows in play.
    exhausted : int
        Times in a row that the second-order phase, summing in twice the digits, brings nothing
        before double precision is said to show no more.
    """

    adaptive_below: float = 0.6
    adaptive_rows: int = 1000
    wide: float = 0.5
    share_ahead: float = 0.8
    permutations: int = 4
    wide_permutations: int = 8
    long_order: int = 2**20
    first_rate: float = 0.05
    least_rate: float = 0.005
    still: int = 4
    crawl: int = 30
    steps_near: float = 3.0
    steps_midway: float = 6.0
    steps_far: float = 10.0
    near: float = 1e-2
    midway: float = 0.05
    quadratic_epochs: float = 6.0
    small: int = 2048
    last_steps: int = 30
    last_gap: float = 1e-16
    steps_expected: float = 4.0
    working_set: int = 500
    rounds: float = 3.0
    steps_a_decade: float = 8.0
    early: float = 3.0
    exhausted: int = 2

    def first_permutations(self, digits: float) -> float:
        """Return the epochs that wide data take to so many digits, as text data of all sizes do."""
        return 3.5 + 0.75 * digits

    def first_epochs(self, digits: float, rows_a_feature: float) -> float:
        """Return the epochs foretold before any was run, more if there are many rows a feature."""
        return rows_a_feature + 1.2 * digits

    def first_steps(self, digits: float) -> float:
        """Return the Newton steps foretold from the beginning: the last ones double the digits."""
        return 6.5 + digits / 3.0

    def rows_in_play(self, active: int, features: int) -> int:
        """Return the rows near their kinks: more than have free duals, which features bound."""
        return max(2 * active, 4 * min(features, 1000), 500)

    def steps(self, relative: float) -> float:
        """Return the Newton steps expected from a relative gap."""
        if relative < self.near:
            return self.steps_near
        return self.steps_midway if relative < self.midway else self.steps_far
