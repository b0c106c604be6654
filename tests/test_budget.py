"""Second-order phases and epochs in turn: budgets of priced work, whatever the prices are worth."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
import cases
from adasdca.ascent.plans import Permutations
from adasdca.auto.costs import Costs
from adasdca.auto.equations import EquationChoice
from adasdca.auto.policy import Policy
from adasdca.auto.second_order import SecondOrder
from adasdca.backends.cpu import LocalBackend
from adasdca.newton.budget import Budget
from adasdca.newton.equations import Equations
from adasdca.problem.problem import Problem


def counts(loss, n=1500, d=3000, seed=0):
    """Rows of counts, of very different length, that share a mean."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.02 * rng.lognormal(0.0, 1.0, size=(n, 1)), size=(n, d)).astype(float)
    score = X @ rng.normal(size=d)
    score = score / score.std() + 0.3 * rng.normal(size=n) + 0.5
    return sp.csr_array(X), np.sign(score) if cases.is_classification(loss) else score


def test_a_budget_counts():
    budget = Budget(10.0)
    budget.pay(4.0)
    assert (budget.left, budget.over) == (6.0, False)
    budget.pay(6.0)
    assert budget.over
    assert not Budget().over


def test_equations_are_paid_for_until_the_budget_is_spent():
    X, y = cases.make_data("squared_hinge", n=60)
    problem = Problem.checked(X, y, loss="squared_hinge", lam=1e-3)
    backend, budget = LocalBackend(problem), Budget(most=1.0)
    choice = EquationChoice(Costs(backend.facts, problem.loss), True, 4.0, budget=budget)
    term = backend.term()
    right = term.place(np.zeros(X.shape[1]), 0.0).u
    equations = Equations(problem.mu, right, 0.0, False)
    assert choice(term, equations, np.inf) is not None
    assert budget.over
    assert choice(term, equations, np.inf) is None


def test_a_budget_that_ends_with_a_step_leaves_it_an_iteration():
    """A step of no iterations would look like one that rounding hides."""
    X, y = counts("squared_hinge")
    problem = Problem.checked(X, y, loss="squared_hinge", lam=1e-3)
    backend = LocalBackend(problem)
    costs = Costs(backend.facts, problem.loss)
    choice = EquationChoice(costs, True, 4.0, budget=Budget(most=1e-9), tried=False)
    term = backend.term()
    right = term.place(np.zeros(X.shape[1]), 0.0).u
    step, _ = choice(term, Equations(problem.mu, right, 0.0, False), np.inf)
    assert choice.iterated
    assert right @ step > 0


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("loss", ["hinge", "absolute", "squared_hinge", "logistic"])
def test_a_phase_that_is_cut_short_leaves_no_worse_point(loss, intercept):
    X, y = counts(loss, 300, 400)
    problem = Problem.checked(X, y, loss=loss, lam=1e-3, fit_intercept=intercept)
    backend = LocalBackend(problem)
    backend.survey(frozenset({"adaptive"}))
    backend.ascend(Permutations(5, 1))
    before = backend.survey(frozenset({"adaptive"}))
    costs = Costs(backend.facts, problem.loss)
    second = SecondOrder(problem, costs, 1, 1e-9, Policy())
    second.plan(before, 1e-9, False, 1.0).run(backend, np.inf)
    assert second.cut
    assert 0 < second.spent == second.last_spent
    after = backend.survey(frozenset({"adaptive"}))
    assert after.gap <= before.gap * (1 + 1e-9)
    if after.gap > 0.9 * before.gap:
        # Epochs go on as if nothing had been.
        np.testing.assert_array_equal(after.beta, before.beta)
    second.plan(after, 1e-9, False).run(backend, np.inf)
    assert not second.cut


@pytest.mark.parametrize("price", [1.0, 1e5, 1e30], ids=["cheap", "fair", "dear"])
def test_a_phase_that_leads_nowhere_costs_a_few_times_the_epochs(monkeypatch, price):
    """Whatever its price says."""
    spent = []

    def in_vain(self, backend, plan, deadline, budget):
        survey = plan.survey
        backend.place(survey.certified, survey.coef, survey.intercept)
        budget.pay(budget.most)
        spent.append(budget.most)

    monkeypatch.setattr(SecondOrder, "_run", in_vain)
    monkeypatch.setattr(SecondOrder, "cost", lambda *_: price)
    X, y = counts("hinge")
    problem = Problem.checked(X, y, loss="hinge", lam=1 / len(y))
    solution = adasdca.solve(X, y, loss="hinge", lam=1 / len(y), tol=1e-6, random_state=0)
    assert solution.converged
    epochs = sum(phase.updates for phase in solution.phases) / len(y)
    epoch = Costs(LocalBackend(problem).facts, problem.loss).epoch(len(y), True)
    assert sum(spent) <= 4.0 * epochs * epoch
    assert all(after >= 1.4 * before for before, after in pairwise(spent))


def test_epochs_that_lead_nowhere_give_way(monkeypatch):
    """Whatever the phase is said to cost."""
    monkeypatch.setattr(SecondOrder, "cost", lambda *_: 1e30)
    X, y = counts("squared_hinge")
    settings = {"loss": "squared_hinge", "lam": 1e-7, "tol": 1e-9, "random_state": 0}
    solution = adasdca.solve(X, y, **settings)
    assert solution.converged
    assert "Newton" in [phase.name for phase in solution.phases]


def test_a_phase_that_gains_more_for_its_price_than_epochs_goes_on(monkeypatch):
    """Though it is cut short: epochs on columns of such scales would take the gap back to 1."""
    run = SecondOrder._run

    def a_digit_at_a_time(self, backend, plan, deadline, budget):
        near = replace(plan, tol=max(plan.tol, 0.1 * plan.survey.relative_gap))
        run(self, backend, near, deadline, Budget())
        budget.pay(budget.most)

    monkeypatch.setattr(SecondOrder, "_run", a_digit_at_a_time)
    X, y = cases.make_data("logistic", n=4000, d=80)
    X = X * np.logspace(-2, 2, 80)
    settings = {"loss": "logistic", "lam": 1e-7, "fit_intercept": True, "random_state": 0}
    solution = adasdca.solve(X, y, **settings, tol=1e-9)
    names = [phase.name for phase in solution.phases]
    assert solution.converged
    assert names[names.index("Newton") :] == ["Newton"]
    assert solution.phases[-1].rounds > 1


@pytest.mark.parametrize("lam", [1.0, 1e-3])
@pytest.mark.parametrize("loss", ["squared", "squared_hinge", "hinge", "logistic"])
def test_an_intercept_takes_hardly_any_epochs_more(loss, lam):
    X, y = counts(loss, 800, 1500)
    options = {"loss": loss, "lam": lam, "tol": 1e-4, "random_state": 0, "method": "sdca-perm"}
    without, with_one = (
        adasdca.solve(X, y, **options, fit_intercept=b, max_epochs=5000) for b in (False, True)
    )
    assert without.converged
    assert with_one.converged
    # A hinge has no curvature to tell where between two kinks its intercept belongs.
    more = 3.0 if loss == "hinge" else 1.3
    assert with_one.n_epochs <= more * without.n_epochs + 1


def test_an_intercept_does_not_run_away_from_duals_at_their_bounds():
    """While duals go from one end to the other, they do not answer to the multiplier."""
    X, y = counts("hinge", 5000, 20)
    problem = Problem.checked(X, y, loss="hinge", lam=0.1, fit_intercept=True)
    backend = LocalBackend(problem)
    backend.restart(np.where(y > 0, 1.0, 0.0), 0.0)
    far = float(np.abs(backend.survey(frozenset({"score"})).score).max())
    for key in range(3):
        backend.ascend(Permutations(1, key))
        assert abs(backend.survey(frozenset()).intercept) <= 2.0 * far


def test_iterations_that_were_not_enough_are_not_begun_anew(monkeypatch):
    """A squared loss whose iterations a budget has cut short expects more of them later."""
    rng = np.random.default_rng(0)
    scales = np.logspace(0, -2, 80)
    X = (rng.normal(size=(200, 80)) * scales) @ np.linalg.qr(rng.normal(size=(80, 80)))[0]
    problem = Problem.checked(X, rng.normal(size=200), loss="squared", lam=1e-6)
    backend = LocalBackend(problem)
    costs = Costs(backend.facts, problem.loss)
    costs.iterations = 1.0
    prices = {"iterations": 1.0, "features": 1e9}
    monkeypatch.setattr(costs, "equations", lambda *_, **__: prices)
    phase = SecondOrder(problem, costs, 1, 1e-12, Policy())
    most = costs.step(200) + 5.0 * costs.iteration
    phase.plan(backend.survey(frozenset()), 1e-12, False, most).run(backend, 1e18)
    assert phase.cut
    assert costs.iterations > 4.0
