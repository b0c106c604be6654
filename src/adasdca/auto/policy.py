"""Every threshold of `auto`, with the reason for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from adasdca.problem.losses import Loss


@dataclass(frozen=True)
class Policy:
    """What `auto` decides by, beside the prices of `Costs`."""

    #: Epochs are adaptive where a smaller share of the rows matters. Above it the adaptive
    #: probabilities are nearly uniform, and a permutation is cheaper to draw.
    adaptive_below: float = 0.6
    #: m of adaptive epochs where the loss has kinks. Weights are per-row gaps there and do not fall
    #: with visits, so no decay is seen from which m could be taken (18 problems: mostly no more
    #: epochs than with the decay seen, between a third fewer and a fifth more).
    kinked_m: float = 10.0
    #: On fewer rows the drawing of an adaptive epoch costs more than its visits.
    adaptive_rows: int = 1000
    #: Data are wide from so many features a row on. Residues of long rows saturate there, and
    #: adaptive probabilities save no visits (dorothea: 8 epochs of permutations against 10 to 23).
    wide: float = 0.5
    #: Epochs of wide sparse data are adaptive all the same where the loss has kinks, or where more
    #: than so many permutations are predicted: on strongly coupled rows adaptive epochs take an
    #: eighth of them (news20, C = 100: 42 against 338).
    slow: float = 8.0
    #: The share of the predicted epochs that is run before the next survey. With a smaller one the
    #: goal is overshot less.
    share_ahead: float = 0.8
    #: Most permutations between two surveys, the same for wide data, and most adaptive epochs of
    #: wide data, where a survey costs more than an epoch (basehock, hinge, to 1e-5: 56 epochs in
    #: 42 ms, in twos 52 in 33 ms; news20, C = 100, to 1e-3: 52 in 425 ms and 52 in 298 ms). Other
    #: data have a survey before every adaptive epoch.
    permutations: int = 4
    wide_permutations: int = 8
    wide_draws: int = 2
    #: From so many rows on, one permutation is drawn at a time: drawing cannot be interrupted.
    long_order: int = 2**20
    #: The fall of log gap per epoch that is assumed before any was seen, and the least one.
    first_rate: float = 0.05
    least_rate: float = 0.005
    #: Plans in a row without any effect, after which second-order steps come whatever they cost.
    #: With an intercept, duals can rest at their bounds while the intercept has far to go.
    stalled: int = 4
    crawl: int = 30  #: Epochs over which a rate is taken as it is seen, however slow.
    #: After so many epochs the second-order phase has no limit any more: it arrives from anywhere.
    #: That is half of the epochs that a solve has by default.
    most_epochs: int = 500
    #: Epochs come first while they cost less than this share of the second-order phase.
    warm_up: float = 0.15
    #: The second-order phase comes as soon as it is predicted to cost less than this share of the
    #: epochs left. These are predicted to a factor of two only, and one more epoch costs little and
    #: tells more. Once epochs have cost as much as the phase, they go on only if those left are
    #: predicted to cost less than this share of the phase.
    nearly: float = 0.8
    #: Epochs that a squared loss takes at least, against its one Newton step.
    quadratic_epochs: float = 6.0
    #: Problems of at most this many rows and stored values are solved to the last digits. That
    #: takes a few steps more, and the answer then depends neither on the seed nor on the order of
    #: the rows.
    small: int = 2048
    #: The relative gap that stands for the last digits where P has kinks, and where it has none.
    #: Without kinks the gap is quadratic in the error of w, and rounding leaves 1e-30.
    last_gap: float = 1e-16
    last_bound: float = 1e-28
    #: Newton steps expected when the way to solve their equations is chosen.
    steps_expected: float = 4.0
    working_set: int = 500  #: From so many features on, features at rest are left out.
    rounds: float = 3.0  #: The cost of rounds for an L1 term or bounds, in Newton runs.
    #: What rounds for losses with kinks do with all rows (working sets, centres, certificates), in
    #: units of a survey.
    looks: float = 10.0
    #: Newton steps that rounds take in any case, and for each digit (85 phases of a few ms to a
    #: second on 45 problems: the logarithm of their cost over this price has a standard deviation
    #: of 0.5).
    steps_begin: float = 16.0
    steps_a_decade: float = 4.0
    #: The largest share of the rows that is near a kink in the mean of these steps, before anything
    #: is known of them. In the first steps all rows are.
    near_kinks: float = 0.35
    #: The cost of the central path in units of the price of one of its steps. Further steps with
    #: the same factorisation cost a part of it (29 paths: the same standard deviation).
    path_steps: float = 4.2
    #: The most that rounds may well cost in units of their price: a bit more than two of these
    #: standard deviations. A central path that costs less comes first (12 problems of four wide
    #: data sets: it takes 0.4 to 0.8 of the time of rounds).
    rounds_at_worst: float = 3.6
    #: What the second-order phase may spend before epochs have their turn again, in units of its
    #: price; it may spend what the epochs left are predicted to cost in any case. What it has spent
    #: in vain becomes its price. So budgets double, and both together take a few times what the
    #: better one takes, however wrong the prices are.
    overrun: float = 1.5
    #: Runs of the second-order phase in a row, with sums in twice the digits, that bring nothing:
    #: then double precision has no more to give.
    exhausted: int = 2

    def first_permutations(self, digits: float, gamma: float, strain: float) -> float:
        """Return the epochs that wide data take to so many digits, as text data of all sizes do.

        Where γ is large, or λN is beside the rows, they are fewer (to two digits, medians on 18
        problems that take fewer than 20: 3 for the logistic loss, 4 for γ = 1; texts with C = 0.01:
        two fewer than with C = 1).
        """
        square = strain * (gamma or 1.0)
        fewer = math.log2(min(max(gamma, 1.0), 4.0)) - math.log2(min(max(square, 1 / 12), 1.0))
        return 3.5 + 0.75 * (digits - fewer)

    def first_epochs(self, digits: float, strain: float, smooth: bool) -> float:
        """Return the epochs that data which are not wide are predicted to take.

        As theory has it, q/γ + 1 for a digit of the gap. Losses with kinks take far more.
        """
        return digits * (strain + (1.0 if smooth else 5.0))

    def iterations(self, strain: float, features: int, wide: bool) -> float:
        """Return the passes over the rows that conjugate gradients are predicted to take a step.

        They are many where rows strain against each other; not where there are far more rows than
        features, as long as these are not alike (3 to 22 on 30 such problems), and never more than
        there are features.
        """
        return min(4.0 * math.sqrt(1.0 + strain), 60.0 if wide else 15.0, 1.0 + features)

    def rounded_iterations(self, iterations: float) -> float:
        """Return those of a step with rounded kinks, of what a smooth loss would take.

        At the end a kink is a thousandth as long as the residuals are, at first as long as these.
        (37, 82, 105 and 115 iterations a step for 6, 40, 13 and 14 predicted of a smooth loss.)
        """
        return min(8.0 * iterations, 100.0)

    def warm_epochs(self, loss: Loss) -> int:
        """Return the epochs that may come first while they are cheap: they show which rows matter.

        Of a smooth loss one shows the rate, by which more of them are judged (madelon, huber: with
        three 55 ms, with one 49; usps, logistic: with six 1.4 times as long as without any).
        """
        if loss.is_quadratic:
            return 0
        return 1 if loss.smoothness > 0 else 10

    def blend(self, seen: float, prior: float, epochs: int) -> float:
        """Return the epochs that are left: early rates are too fast.

        The less so, the more of them were seen (32 random problems: the logarithm of what they took
        over what their rate told goes with that of `prior` over it, by 0.28, 0.23, 0.18 and 0.13
        after 1, 2, 5 and 8 epochs of a smooth loss, by more with kinks).
        """
        return seen * math.pow(max(prior / max(seen, 1e-9), 1.0), 1.0 / (2.0 + epochs))

    def rows_in_play(self, active: int, rows: int, features: int) -> int:
        """Return the rows near their kinks: more than have free duals, which features bound."""
        near = min(2.0 * active, self.near_kinks * rows)
        return min(max(int(near), 4 * min(features, 1000), 500), rows)

    def all_in_play(self, rows: int, features: int) -> bool:
        """Whether all rows may be near their kinks: a working set would leave none of them out."""
        return rows <= 4 * min(features, 1000)

    def steps(self, relative: float, digits: float, strain: float, flat: bool) -> float:
        """Return the Newton steps predicted from a relative gap: the last ones double the digits.

        Where rows strain against each other, more are needed to come near. Where no row has
        curvature (`flat`), the first steps are blind (smoothed hinge: 7.5 against 4 to 4.5 of other
        losses on problems of little strain).
        """
        far = min(max(1.0 + math.log10(max(relative, 1e-300)) / 3.0, 0.0), 1.0)
        first = (5.0 if flat else 2.0) + 2.0 * min(math.log10(1.0 + strain), 2.0)
        return 1.0 + digits / 6.0 + far * first
