"""Which way a step's equations are solved, and by how many threads."""

from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
import cases
from adasdca.auto.costs import Costs
from adasdca.auto.equations import EquationChoice
from adasdca.backends.blas import _controller, one_thread
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.cpu_term import CpuTerm
from adasdca.backends.facts import RowFacts
from adasdca.newton.budget import Budget
from adasdca.newton.equations import Equations
from adasdca.problem.data import DenseRows
from adasdca.problem.problem import Problem
from injection import at_line, lines_of


@pytest.mark.parametrize(
    ("shape", "density", "way"),
    [
        ((200, 3000), 1.0, "rows"),
        ((500, 20_000), 1.0, "rows"),
        ((20_000, 50), 1.0, "features"),
        ((100_000, 1000), 1.0, "features"),
        ((20_000, 5000), 0.002, "iterations"),
    ],
)
def test_the_cheapest_way(shape, density, way):
    """By shape and entries alone: the values of a broadcast array take no memory."""
    n, d = shape
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    if density == 1.0:
        X = np.broadcast_to(np.float32(1.0), shape)
        problem = Problem(DenseRows(X), y, None, adasdca.Logistic(), 1.0, 0.0, None, False)
    else:
        each = round(density * d)
        columns = np.sort(np.arange(each) * (d // each) + np.arange(n)[:, None] % (d // each))
        X = sp.csr_matrix((np.ones(n * each), columns.ravel(), np.arange(n + 1) * each), (n, d))
        problem = Problem.checked(X, y, loss="logistic", lam=1.0)
    prices = Costs(RowFacts(problem.rows), problem.loss).equations(4.0, n)
    assert min(prices, key=prices.get) == way


def test_one_thread_for_lapack_whoever_leaves_first():
    from threadpoolctl import ThreadpoolController, threadpool_limits

    def counts():
        return {library["num_threads"] for library in ThreadpoolController().info()}

    with threadpool_limits(2, user_api="blas"):
        before = counts()
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        assert all(library.num_threads == 1 for library in _controller().lib_controllers)
        first.__exit__(None, None, None)
        assert all(library.num_threads == 1 for library in _controller().lib_controllers)
        second.__exit__(None, None, None)
        assert counts() == before


def test_one_thread_for_lapack_after_ctrl_c():
    """Wherever it comes, the next ones have one thread again, and leave what they found."""
    from threadpoolctl import threadpool_limits

    def use():
        with one_thread():
            pass

    def press():
        raise KeyboardInterrupt

    def counts():
        return {library.num_threads for library in _controller().lib_controllers}

    for line in {each for each in lines_of(use) if each.function == "one_thread"}:
        with suppress(KeyboardInterrupt):
            at_line(use, line, 1, press)
        with threadpool_limits(2, user_api="blas"):
            before = counts()
            with one_thread():
                assert counts() == {1}, line
            assert counts() == before, line


@pytest.mark.parametrize(("price", "way"), [(1e3, "iterations"), (1e-3, "features")])
def test_iterations_of_rounded_kinks_are_tried_first(monkeypatch, price, way):
    """They may cost as much as the next way, whatever they are predicted to."""
    X, y = cases.make_data("hinge", n=200, d=30)
    problem = Problem.checked(X, y, loss="hinge", lam=1e-3)
    backend = LocalBackend(problem)
    costs = Costs(backend.facts, problem.loss)
    next_one = costs.iteration * price
    predicted = {"iterations": 1e30, "features": next_one}
    monkeypatch.setattr(costs, "equations", lambda *_: dict(predicted))
    solved = []
    monkeypatch.setattr(
        "adasdca.auto.equations.solve_by_features", lambda *_: solved.append("features") or STEP
    )
    choice = EquationChoice(costs, True, 4.0, tried=False)
    term = backend.term(0.1, np.zeros(len(y)))
    u = term.place(np.zeros(30), 0.0).u
    STEP = u, 0.0
    choice(term, Equations(problem.mu, problem.mu * u, 0.0, False), np.inf)
    assert choice.iterations.taken <= price + 1
    assert (solved or ["iterations"])[-1] == way


def test_iterations_that_end_for_another_way_are_no_step(monkeypatch):
    """The budget allows fewer of them than that way costs, but has not cut them short."""
    X, y = cases.make_data("squared", n=300, d=60)
    problem = Problem.checked(X * np.logspace(-4, 4, 60), y, loss="squared", lam=1e-9)
    backend = LocalBackend(problem)
    costs = Costs(backend.facts, problem.loss)
    predicted = {"iterations": 1.0, "features": 200 * costs.iteration}
    monkeypatch.setattr(costs, "equations", lambda *_: dict(predicted))
    monkeypatch.setattr("adasdca.auto.equations.solve_by_features", lambda *_: STEP)
    choice = EquationChoice(costs, True, 1.0, budget=Budget(100 * costs.iteration))
    choice.iterations.share = 1e-12
    choice._rough = False
    term = backend.term()
    u = term.place(np.zeros(60), 0.0).u
    STEP = u, 0.0
    found = choice(term, Equations(problem.mu, problem.mu * u, 0.0, False, value=1.0), np.inf)
    assert choice.iterations.taken < 50
    assert not choice.iterations.done
    assert found is STEP


def test_with_an_l1_term_the_path_takes_inner_products_anew():
    X, y = cases.make_data("hinge", n=50, d=400)
    facts = RowFacts(Problem.checked(X, y, loss="hinge", lam=1.0).rows)
    costs = Costs(facts, adasdca.Hinge())
    assert costs.path_step(False) > costs.path_step(True)


@pytest.mark.parametrize("intercept", [False, True])
def test_few_rows_of_many_large_features_are_solved_by_rows(monkeypatch, intercept):
    """In twice the digits too: the matrix of the features has nothing that theirs lacks."""
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(7.0, 2.0, (20, 200)))
    y = np.where(rng.random(20) < 0.5, 1.0, -1.0)
    ways = set()
    whole = EquationChoice._solve

    def noted(choice, way, *args):
        found = whole(choice, way, *args)
        ways.add((choice.exact, way, found is not None))
        return found

    monkeypatch.setattr(EquationChoice, "_solve", noted)
    kind = {"loss": "squared", "lam": 0.1, "fit_intercept": intercept}
    solution = adasdca.solve(X, y, **kind, tol=0.0, random_state=0)
    assert solution.relative_gap < 1e-12
    assert (True, "rows", True) in ways
    assert not any(way == "features" for _, way, _ in ways)


@pytest.mark.parametrize("intercept", [False, True])
def test_no_single_precision_where_the_least_eigenvalue_is_below_its_rounding(
    intercept, monkeypatch
):
    """The matrix of more features than rows has μ for that."""
    rough = []
    gram = CpuTerm.gram

    def spy(self, *args, **kwargs):
        rough.append(kwargs.get("rough", False))
        return gram(self, *args, **kwargs)

    monkeypatch.setattr(CpuTerm, "gram", spy)
    rng = np.random.default_rng(0)
    X = 0.3 * rng.standard_normal((100, 150))
    X += rng.standard_normal((100, 5)) @ rng.standard_normal((5, 150))
    y = X[:, 0] + rng.standard_normal(100)
    found = {}
    for C in (1e-6, 1e6):
        rough.clear()
        sol = adasdca.solve(X, y, loss="squared", lam=1 / (C * 100), fit_intercept=intercept)
        assert sol.converged
        found[C] = any(rough)
    assert found == {1e-6: True, 1e6: False}


@pytest.mark.parametrize("seed", range(5))
def test_the_one_step_among_rows_keeps_its_digits(seed, monkeypatch):
    """Its unknowns are the duals where it ends: beside the targets these are 1e-9 and less."""
    monkeypatch.setattr(CpuTerm, "gram", None)  # nobody needs the matrix of 1500 features
    ways = []
    whole = EquationChoice._solve

    def noted(self, way, *arguments):
        found = whole(self, way, *arguments)
        ways.append((way, found is not None))
        return found

    monkeypatch.setattr(EquationChoice, "_solve", noted)
    rng = np.random.default_rng(seed)
    X = np.abs(rng.standard_normal((38, 1500))) * 10.0 ** rng.uniform(0, 3, 1500)
    y = (X / X.std(axis=0)) @ rng.standard_normal(1500)
    found = adasdca.solve(X, y, loss="squared", lam=1e-6, fit_intercept=True, tol=1e-6)
    assert found.converged
    assert ways[0] == ("rows", True)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_one_step_by_rows_brings_its_duals(intercept, weighted):
    """Where the penalty is weak, those that its coefficients tell have lost their digits."""
    rng = np.random.default_rng(2)
    X = 0.3 * rng.standard_normal((190, 340))
    X += rng.standard_normal((190, 30)) @ rng.standard_normal((30, 340))
    y = X @ rng.standard_normal(340) / 30 + rng.standard_normal(190)
    found = adasdca.solve(
        X,
        y,
        loss="squared",
        lam=1 / 190_000,
        fit_intercept=intercept,
        sample_weight=rng.exponential(size=190) if weighted else None,
        tol=1e-6,
    )
    assert found.converged
    assert [phase.rounds for phase in found.phases] == [1]
    assert found.relative_gap < 1e-9
