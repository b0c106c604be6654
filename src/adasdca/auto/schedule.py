"""`auto`: which epochs, how many updates, when second-order steps, as the surveys advise."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from adasdca.ascent.plans import Permutations, ThinnedDraws
from adasdca.ascent.survey import Survey
from adasdca.auto.costs import Costs
from adasdca.auto.policy import Policy
from adasdca.auto.second_order import SecondOrder, SecondOrderPlan
from adasdca.backends.facts import Facts
from adasdca.duality.certificate import relative_gap
from adasdca.problem.device_rows import to_host
from adasdca.problem.problem import Problem

POLICY = Policy()
#: Rows that are looked at for how they strain against each other.
STRAINED = 1024
#: The unit roundoff of single precision.
SINGLE_EPSILON = 2.0**-24


def price_of_digit(spent: float, before: float, after: float) -> float:
    """Return what was spent for a fall of the logarithm of a gap by 1; inf if it has not fallen."""
    return spent / math.log(before / after) if 0 < after < before else math.inf


class AutoSchedule:
    """Permutations while all rows matter alike, else adaptive epochs, then second-order steps."""

    def __init__(
        self,
        problem: Problem,
        facts: Facts,
        tol: float,
        threads: int,
        policy: Policy = POLICY,
    ) -> None:
        self._policy = policy
        self._costs = Costs(facts, problem.loss)
        self._intercept, self._gamma = problem.fit_intercept, problem.loss.smoothness
        self._tol = max(tol, 1e-15)
        self._second = SecondOrder(problem, self._costs, threads, self._tol, policy)
        self._digits = -math.log10(self._tol)
        self._wide = facts.d >= int(policy.wide * facts.n)
        self._dense, self._ascends = facts.dense, facts.ascends
        self._last: tuple[str, float] | None = None  # what the last plan was, the gap before it
        self._epochs = 0
        self._spent = 0.0  # on epochs, by their prices
        self._budget = math.inf  # of the next second-order phase
        self._turn = 0.0  # what epochs may spend before it
        self._digit = math.inf  # what the last one has spent for a fall of log gap by 1
        self._epoch_digit = 0.0  # and the epochs before it; 0 without any
        self._block = 0.0, math.inf  # what epochs had spent where these began, and the gap there
        self._strain = 1.0  # q/γ of an ordinary row
        self._rate = policy.first_rate  # fall of log gap in an epoch
        self._crawls = False  # whether many epochs have not made it e times as small
        self._marks: tuple[tuple[int, float], ...] = ()  # epochs done, and the least gap by then
        self._enough = 0.0  # the gap to be reached, about
        self._stalled = 0  # plans in a row that did nothing to the gap
        self._goal = 1.0  # how much finer than asked for the second-order phase is to end
        self._final = self._second.small  # whether it is to go on to the last digits
        self._exhausted = 0  # times in a row that it could do no more
        self._least = math.inf  # the least gap of all surveys
        self._lowest: Survey | None = None  # and that of the least objective
        self._looks = 0  # surveys seen
        # Whether second-order steps come first, whatever a survey shows.
        self._opens = self._second.small or self._one_step_pays(facts.n)

    def _one_step_pays(self, n: int) -> bool:
        """Whether the one step of a quadratic function costs less than its epochs."""
        if not self._second.one_step:
            return False
        if self._dense:
            return True
        rounds = self._rounds(n) if self._wide else 1
        epoch = min(self._costs.epoch(n, False, rounds), self._costs.epoch(n, True))
        return self._costs.newton(1.0, n) < self._policy.quadratic_epochs * epoch

    @property
    def needs(self) -> frozenset[str]:
        """What surveys are to show of every row: nothing where no epoch is ahead."""
        if self._last is None:
            second = self._opens
        else:
            second = self._last[0] == "second order" and not self._second.cut
        return frozenset() if second else frozenset({"adaptive"})

    @property
    def work(self) -> float:
        """What all plans and surveys have cost, by their prices."""
        return self._spent + self._second.spent + self._looks * self._costs.survey

    def second_order_first(self, survey: Survey) -> SecondOrderPlan:
        """Plan the second-order phase from a point near the goal, whatever it may cost."""
        self._second.near = True
        self._learn(survey, survey.relative_gap)
        return self._go_on(survey, survey.relative_gap)

    def plan(self, survey: Survey, key: int) -> Any:
        """Plan the next epoch or second-order phase; None if double precision shows no more."""
        n, relative = survey.n, survey.relative_gap
        self._learn(survey, relative)
        if self._last is None and self._ascends and not self._second.small:
            self._look_at_rows(survey)
        second = self._last is not None and self._last[0] == "second order"
        if second and not self._second.cut:
            # It arrives from anywhere; what it leaves, rounding hides.
            hidden = survey.gap <= 2.0 * survey.certificate.rounding
            if self._exhausted >= self._policy.exhausted or (
                hidden and self._final and self._second.exact
            ):
                return None
            self._final = self._final or hidden
            self._second.exhausted |= hidden
            return self._go_on(survey, relative)
        if self._opens:
            return self._go_on(survey, relative)
        if second and self._digit <= self._epoch_digit:
            # Cut short, it has gained more for its price than epochs did before it.
            return self._go_on(survey, relative, 2.0 * self._second.last_spent)
        # With an intercept the multiplier moves on, and the next epoch finds rows to visit.
        if survey.active == 0 and not self._intercept:
            return self._go_on(survey, relative)
        adaptive = self._few_matter(survey)
        rounds = self._rounds(n, adaptive)
        # Surveys of wide data cost as much as epochs.
        epoch = self._costs.epoch(n, adaptive, rounds if self._wide else 1)
        if self._second_order_pays(survey, relative, epoch):
            return self._go_on(survey, relative, self._budget)
        self._epochs += rounds
        self._spent += rounds * epoch
        if adaptive:
            self._last = ("adaptive", relative)
            m: float | Literal["auto"] = "auto" if self._second.smooth else self._policy.kinked_m
            return ThinnedDraws("adaptive", m, float(rounds), key, label="adaptive")
        self._last = ("permutation", relative)
        return Permutations(rounds, key, "permutation")

    def _rounds(self, n: int, adaptive: bool = False) -> int:
        """Return how many epochs to run before the next survey.

        Far from the goal a survey after every one is half the cost of the epoch.
        """
        policy = self._policy
        if n >= policy.long_order or (adaptive and not self._wide):
            return 1
        if self._last:
            left = policy.share_ahead * self._epochs_left()
        else:
            left = self._first_permutations() if self._wide else 1.0
        most = policy.wide_permutations if self._wide else policy.permutations
        if adaptive:
            most = policy.wide_draws
        return max(round(min(left, most)), 1)

    def _few_matter(self, survey: Survey) -> bool:
        """Whether adaptive probabilities are worth their drawing."""
        policy = self._policy
        if self._wide and (self._dense or not self._last):
            return False
        few = survey.active > 0 and survey.effective_share < policy.adaptive_below
        slow = not (self._wide and self._second.smooth) or self._epochs_left() > policy.slow
        slow |= self._last is not None and self._last[0] == "adaptive"
        return few and slow and survey.n >= policy.adaptive_rows

    def _go_on(self, survey: Survey, relative: float, most: float = math.inf) -> SecondOrderPlan:
        """Plan the second-order phase, which may spend so much."""
        spent, gap = self._block
        if self._spent > spent:
            self._epoch_digit = price_of_digit(self._spent - spent, gap, relative)
        self._last = ("second order", relative)
        # Below the bound of rounding there is nothing to be reached.
        exact = self._second.exact
        least = relative_gap(survey.certificate.rounding, survey.primal) if exact else 0.0
        best = self._lowest if self._second.smooth and self._second.plain else None
        if best is not None and best.gap < survey.gap:
            survey = best  # Newton steps fall from there, whatever epochs have done since
        return self._second.plan(survey, self._goal * max(self._tol, least), self._final, most)

    def _learn(self, survey: Survey, relative: float) -> None:
        """Take note of what the last plan did to the gap."""
        self._looks += 1
        # The gap of a smooth problem falls by about the same share in every epoch, the relative one
        # not while the objective falls as fast. With kinks early epochs tell too much in any case.
        # (The objective of the best point counts: in raw units that of the first epochs may be 1e5
        # times as large, and a share of it would be enough for the gap at 0.)
        if self._lowest is None or survey.primal <= self._lowest.primal:
            self._lowest = survey
        gap, self._enough = relative, self._tol
        if self._second.smooth:
            gap, self._enough = survey.gap, self._tol * self._lowest.primal
        if self._last is None:
            self._marks, self._block = ((0, gap),), (0.0, relative)
            return
        kind, before = self._last
        self._stalled = self._stalled + 1 if abs(relative - before) <= 1e-9 * before else 0
        if kind != "second order":
            self._learn_rate(gap)
        elif self._second.cut:
            self._digit = price_of_digit(self._second.last_spent, before, relative)
            self._marks, self._block = ((self._epochs, gap),), (self._spent, relative)
            self._turn = self._spent + self._second.last_spent
        else:
            self._goal *= 0.1
            # What plain sums hide, sums in twice the digits may show.
            idle = self._second.exhausted and self._second.exact and relative > 0.5 * self._least
            self._exhausted = self._exhausted + 1 if idle else 0
        self._least = min(self._least, before, relative)

    def _learn_rate(self, gap: float) -> None:
        """Take note of how fast the least gap falls, since it was e times as large."""
        policy = self._policy
        least = min(gap, self._marks[-1][1])
        marks = (*self._marks, (self._epochs, least))
        first = next((k for k in reversed(range(len(marks))) if marks[k][1] >= math.e * least), 0)
        self._marks = marks[first:]
        then, before = marks[first]
        fall = math.log(before / least) if 0 < least < math.inf else 1.0
        since = max(self._epochs - then, 1)
        # One epoch may do nothing by chance; several in a row will go on like that (mushrooms,
        # absolute loss with an intercept, lam = 0.01/n: 1000 epochs were not enough).
        self._crawls = since >= policy.crawl
        slowest = max(min(policy.first_rate, 0.5 * self._rate), policy.least_rate)
        self._rate = max(fall / since, 0.0 if self._crawls else slowest)

    def _epochs_seen(self) -> float:
        """Return the epochs to the goal from the least gap, at the last rate."""
        need = math.log(max(self._marks[-1][1] / max(self._enough, 1e-300), 1.0))
        return need / max(self._rate, 1e-300)

    def _epochs_left(self) -> float:
        """Return the same, but no more than twice those done and 3 unless many have shown it."""
        left = self._epochs_seen()
        return left if self._crawls else min(3.0 + 2.0 * self._epochs, left)

    def _look_at_rows(self, survey: Survey) -> None:
        """Take note of q/γ of an ordinary row, by which the others strain against its steps."""
        some = to_host(survey.curvature[:: -(-survey.n // STRAINED)])
        middle = len(some) // 2
        self._strain = float(np.partition(some, middle)[middle]) / (survey.gamma or 1.0)
        iterations = self._policy.iterations(self._strain, len(survey.coef), self._wide)
        # The one step of a quadratic function has to gain all the digits. The gap has twice those
        # of the right-hand side.
        rounds = 0.5 * self._digits if self._second.quadratic else 1.0
        self._costs.iterations = iterations * max(rounds, 1.0)
        # The matrix of more features than rows has μ for its least eigenvalue, which single
        # precision does not know once this is below the rounding of its trace (1000 x 1500
        # correlated, squared, C = 100: 100 -> 60 ms; by rows then).
        hidden = SINGLE_EPSILON * survey.n * self._strain > 1.0
        self._costs.rough &= not (hidden and len(survey.coef) > survey.n)

    def _predicted(self, survey: Survey, relative: float) -> float:
        """Return the epochs that are left."""
        policy = self._policy
        need = math.log(max(relative / self._tol, 1.0))
        prior = policy.first_epochs(need / math.log(10.0), self._strain, survey.gamma > 0)
        if not self._last and not survey.moved:  # nothing is known but what such data took before
            return self._first_permutations() if self._wide else prior
        if self._wide or need == 0:
            return self._epochs_left()
        return policy.blend(self._epochs_seen(), prior, self._epochs)

    def _first_permutations(self) -> float:
        return self._policy.first_permutations(self._digits, self._gamma, self._strain)

    def _steps(self, survey: Survey, relative: float) -> float:
        """Return the Newton steps predicted from a relative gap."""
        if self._second.one_step:
            return 1.0
        flat = self._second.flat and not survey.moved
        return self._policy.steps(relative, self._digits, self._strain, flat)

    def _price(self, survey: Survey, relative: float) -> float:
        """Price the second-order phase from a relative gap, if the rows are as in the survey."""
        return self._second.cost(survey, self._steps(survey, relative), relative)

    def _second_order_pays(self, survey: Survey, relative: float, epoch: float) -> bool:
        policy = self._policy
        steps, left = self._steps(survey, relative), self._predicted(survey, relative)
        if self._second.quadratic and not self._last:
            left = max(left, policy.quadratic_epochs)
        alone = not self._ascends or self._epochs >= policy.most_epochs
        alone |= self._stalled >= policy.stalled
        if not (alone or self._crawls) and self._second.smooth:
            # Where its passes alone cost more, nobody asks what the equations would (dorothea: 0.25
            # of 12 ms).
            least = self._costs.survey + steps * self._costs.pass_
            if max(left * epoch, self._spent) <= least:
                return False
        # What was spent is at least to be spent again, unless it has shown that less will do.
        again = self._digit * math.log(max(relative / self._tol, 1.0))
        price = max(self._price(survey, relative), min(self._second.spent, again))
        late = self._spent > price and left * epoch > policy.nearly * price
        pays = price < policy.nearly * left * epoch or late
        # Where epochs crawl, the phase has its turn whatever it costs: as much as these had.
        tried = self._crawls and self._spent < left * epoch
        other = self._spent if self._crawls else left * epoch
        self._budget = max(policy.overrun * price, other) if pays else self._spent
        if self._second.quadratic and self._dense:
            # Its one step costs no more than the matrix does, once iterations cost as much.
            self._budget = math.inf
        if alone:
            self._budget = math.inf
            return price < math.inf
        if self._spent < self._turn:
            return False
        if self._epochs and not late and pays:
            # One more epoch, if the phase is cheaper from there by more than that costs.
            ahead = relative * math.exp(-self._rate)
            if epoch + self._price(survey, ahead) < price:
                return False
        warming = self._epochs < policy.warm_epochs(self._second.problem.loss)
        if warming and self._spent + epoch < policy.warm_up * price:
            return False
        return pays or (tried and price < math.inf)
