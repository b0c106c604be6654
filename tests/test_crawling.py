"""Solves that crawled or ran away: epochs without end, and working sets without an intercept."""

from dataclasses import replace

import numpy as np
import pytest

import adasdca
from adasdca.auto.policy import Policy
from adasdca.auto.schedule import AutoSchedule
from adasdca.auto.second_order import SecondOrder, SecondOrderPlan
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.working_set import can_balance
from adasdca.problem.problem import Problem


def test_epochs_that_crawl_are_left(monkeypatch):
    """Steps may be as dear as they like: where epochs do not halve the gap, they are taken."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 20)), rng.normal(size=2000)
    problem = Problem.checked(X, y, loss="absolute", lam=1e-3)
    backend = LocalBackend(problem)
    seen = backend.survey(frozenset({"adaptive"}))
    monkeypatch.setattr(SecondOrder, "cost", lambda *_: 1e30)
    schedule = AutoSchedule(problem, backend.facts, 1e-6, 1)
    for epoch in range(3 * Policy().crawl):
        gap = seen.gap * 0.99**epoch  # it moves, but crawls
        certificate = replace(seen.certificate, gap=gap)
        plan = schedule.plan(replace(seen, certificate=certificate), epoch)
        if isinstance(plan, SecondOrderPlan):
            break
    assert isinstance(plan, SecondOrderPlan)
    assert epoch >= 5


@pytest.mark.parametrize("loss", ["quantile", "hinge"])
def test_a_working_set_can_balance_the_rows_it_leaves_out(loss):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(60) < 0.7, 1.0, -1.0)
    X = rng.normal(size=(60, 2))
    problem = Problem.checked(X, y, loss=loss, lam=1.0, fit_intercept=True)
    _, high = problem.loss.domain
    beta = (y if loss == "hinge" else 1.0) * np.full(60, high)
    assert can_balance(problem, np.arange(60), beta)
    # All others at the same end: two rows cannot make up for them.
    plus = np.flatnonzero(y > 0)
    assert not can_balance(problem, np.setdiff1d(np.arange(60), plus[2:])[:2], beta)
    without = Problem.checked(X, y, loss=loss, lam=1.0)
    assert can_balance(without, np.arange(2), beta)
    term = LocalBackend(problem).term(1e-3, beta, (np.zeros(2), 0.0), 1e-9)
    assert np.isfinite(term.place(np.zeros(2), 0.0).u).all()


def test_strong_regularisation_of_a_quantile_with_an_intercept():
    """Nearly all rows at one end: the intercept ran away to 1e160."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(1500) < 0.33, 1.0, -1.0)
    X = rng.normal(size=(1500, 8)) + 0.5 * y[:, None]
    for C in (1e-6, 1e-4, 1e-2):
        options = {"loss": "quantile", "lam": 1 / (C * 1500), "fit_intercept": True}
        assert adasdca.solve(X, y, tol=1e-6, random_state=0, **options).converged
