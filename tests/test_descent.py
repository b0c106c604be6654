"""All Newton steps in one call of the core: the same as step by step, and paid for."""

import time

import numpy as np
import pytest

import cases
from adasdca.auto.costs import Costs
from adasdca.auto.equations import EquationChoice
from adasdca.backends.abilities import Rounds
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.working_set import WorkingSet
from adasdca.newton.budget import Budget
from adasdca.newton.equations import ConjugateGradients, solve_by_features
from adasdca.newton.linear import LinearObjective
from adasdca.newton.moreau import Ridge
from adasdca.newton.newton import Ending, Share, minimise
from adasdca.problem.losses import get_loss
from second_order import FOREVER, STORAGES, make_objective, make_problem

INTERCEPT = pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])


class AtOnce:
    """Equations by features, as many steps in one call as are asked for."""

    def __init__(self, most=1000):
        self.most, self.paid, self.alone = most, 0, 0

    def __call__(self, term, equations, deadline):
        self.alone += 1
        return solve_by_features(term, equations, deadline)

    def afford(self, n):
        return self.most

    def pay(self, steps):
        self.paid += steps


def objective_at(problem, backend, solve, length, centre, start=0.0):
    v = np.full(problem.rows.shape[1], start)
    term = backend.term(length, centre)
    losses = problem.loss.value(problem.rows.matrix @ v, problem.y)
    weight = np.ones_like(losses) if problem.weight is None else problem.weight
    value = float(weight @ losses) + 0.5 * problem.mu * float(v @ v)
    return LinearObjective(
        term, Ridge(), problem.mu, problem.fit_intercept, length > 0, solve, v, 0.0, value
    )


@INTERCEPT
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", cases.LOSSES)
def test_as_step_by_step(loss, storage, intercept):
    """From two points, with weights of 0 among them, to a share of the value and to an amount."""
    for weighted, start in ((False, 0.0), (True, 3.0)):
        _, _, problem = make_problem(loss, storage, intercept, weighted, lam=0.01)
        smooth = problem.loss.smoothness > 0
        length, centre = (0.0, None) if smooth else (0.3, np.zeros(len(problem.y)))
        backend = LocalBackend(problem)
        for share in (True, False):
            found = []
            for solve in (AtOnce(), solve_by_features):
                objective = objective_at(problem, backend, solve, length, centre, start)
                enough = Share(objective, 1e-5) if share else 1e-6
                ending, steps = minimise(objective, enough, FOREVER)
                found.append((objective, ending, steps))
                assert ending is Ending.REACHED
            (one, _, steps), (other, _, taken) = found
            assert steps == taken
            assert one._solve.paid == steps
            assert one._solve.alone == 0
            scale = np.abs(other.v).max() + 1.0
            np.testing.assert_allclose(one.v, other.v, atol=1e-8 * scale)
            assert one.b == pytest.approx(other.b, abs=1e-8 * scale)
            assert one.value == pytest.approx(other.value, rel=1e-9)
            np.testing.assert_allclose(one.term.duals(), other.term.duals(), atol=1e-6)
            np.testing.assert_allclose(one.u, other.u, atol=1e-6 * scale)
            np.testing.assert_allclose(one.term.scores, other.term.scores, atol=1e-6 * scale)
            for name in ("residual", "travel", "balance"):
                expected = getattr(other.term, name)
                assert getattr(one.term, name) == pytest.approx(expected, rel=1e-6, abs=1e-6)
            assert one.term.curved == other.term.curved


@INTERCEPT
def test_on_a_working_set(intercept):
    """Rows that are not here keep their duals, and what these add."""
    _, _, problem = make_problem("hinge", "dense", intercept, lam=0.01)
    backend, rng = LocalBackend(problem), np.random.default_rng(0)
    centre = problem.y * rng.random(len(problem.y))
    chosen = np.sort(rng.choice(len(problem.y), 25, replace=False))
    found = []
    for solve in (AtOnce(), solve_by_features):
        term = WorkingSet(problem, chosen, centre, backend.combine(centre), 0.3, 1, backend.kernel)
        objective = LinearObjective(
            term, Ridge(), problem.mu, intercept, True, solve, np.zeros(7), 0.0, 40.0
        )
        assert minimise(objective, 1e-9, FOREVER)[0] is Ending.REACHED
        found.append(objective)
    np.testing.assert_allclose(found[0].v, found[1].v, atol=1e-8)
    assert found[0].b == pytest.approx(found[1].b, abs=1e-8)
    np.testing.assert_allclose(found[0].term.duals(), found[1].term.duals(), atol=1e-7)


@INTERCEPT
def test_to_the_last_digits(intercept):
    """Steps in the noise end, and leave the best point."""
    _, _, problem = make_problem("logistic", "dense", intercept, lam=1e-3)
    objective = make_objective(problem, AtOnce())
    ending, steps = minimise(objective, 0.0, FOREVER)
    assert ending is Ending.EXHAUSTED
    assert steps < 40
    proof = LocalBackend(problem).certify(objective.v, objective.b, objective.term.duals())
    assert proof.relative_gap < 1e-12
    # What the term says of its point is so.
    again = make_objective(problem, AtOnce(), objective.v, objective.b)
    assert objective.lost() == pytest.approx(again.lost(), abs=1e-12 * proof.primal)


def test_singular_systems():
    """Features that are alike, and next to no penalty: the matrix is damped."""
    rng = np.random.default_rng(0)
    _, _, problem = make_problem("squared_hinge", "dense", lam=1e-16)
    problem.rows.values[:, 1:] = problem.rows.values[:, :1]
    problem.rows.values[:, 3] = 0.0
    for start in (np.zeros(7), rng.normal(size=7)):
        objective = make_objective(problem, AtOnce(), start)
        ending, _ = minimise(objective, 1e-8, FOREVER, 200)
        assert ending in (Ending.REACHED, Ending.EXHAUSTED)
        assert np.isfinite(objective.v).all()


def test_limits():
    """As many steps as are asked for, as the budget affords, and as the time allows for."""
    _, _, problem = make_problem("logistic", "dense", lam=1e-3)
    assert minimise(make_objective(problem, AtOnce()), 0.0, FOREVER, 2) == (Ending.STEPS, 2)
    assert minimise(make_objective(problem, AtOnce(2)), 0.0, FOREVER, 9) == (Ending.TIME, 2)
    late = time.perf_counter() - 1.0
    assert minimise(make_objective(problem, AtOnce()), 0.0, late) == (Ending.TIME, 0)
    solve = AtOnce()
    assert minimise(make_objective(problem, solve), 0.0, FOREVER, look=lambda: True)[1] == 0
    assert solve.paid == 0


def test_what_the_choice_affords():
    """Steps by features where these are the way, while there is budget."""
    _, _, problem = make_problem("logistic", "dense")
    backend = LocalBackend(problem)
    costs, budget = Costs(backend.facts, problem.loss), Budget(most=1e6)
    choice = EquationChoice(costs, True, 4.0, budget=budget)
    allowed = choice.afford(40)
    assert allowed > 1
    choice.pay(allowed)
    assert budget.over
    assert choice.afford(40) == 0
    assert EquationChoice(costs, True, 4.0, exact=True).afford(40) == 0
    wide = make_problem("logistic", "dense", d=80)[2]
    there = LocalBackend(wide)
    assert EquationChoice(Costs(there.facts, wide.loss), True, 4.0).afford(40) == 0


@INTERCEPT
def test_one_step_of_iterations_for_a_parabola(intercept):
    """Conjugate gradients go on until what is left of a quadratic function is enough."""
    _, _, problem = make_problem("squared", "dense", intercept, d=30, n=60, lam=1e-2)
    for tol in (1e-2, 1e-5, 1e-8):
        gradients = ConjugateGradients(share=tol)
        objective = make_objective(problem, gradients.solve)
        objective.value = 0.5 * float(problem.y @ problem.y)
        ending, steps = minimise(objective, Share(objective, 1.01 * tol), FOREVER)
        assert (ending, steps) == (Ending.REACHED, 1)
        assert gradients.taken < 60


@INTERCEPT
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize(("target", "floor"), [(1e-6, 1e-9), (1e-16, 1e-3), (1e-16, 1e-9)])
@pytest.mark.parametrize("loss", [loss for loss in cases.LOSSES if get_loss(loss).smoothness == 0])
def test_rounds_in_one_call(loss, target, floor, weighted, intercept):
    """As one by one: the duals of a round are the centre of the next while they halve the gap.

    No length is below the least one, and a round that has only lost ends where it began.
    """
    _, _, problem = make_problem(loss, "dense", intercept, weighted, lam=0.01)
    backend, total = LocalBackend(problem), problem.total
    centre, length = np.zeros(len(problem.y)), 0.3
    known = backend.certify(np.zeros(7), 0.0, centre)
    rule = Rounds(known.gap, target, 0.03, floor, ((12, 0.01), (24, 0.03), (40, 0.1)))

    def begin(v, b, value):
        term = backend.term(length, centre)
        return LinearObjective(term, Ridge(), problem.mu, intercept, True, AtOnce(), v, b, value)

    enough, taken = rule.share * known.gap * total, 0
    objective = begin(np.zeros(7), 0.0, known.primal * total)
    at_once = begin(np.zeros(7), 0.0, known.primal * total)
    at_once.rounds = rule
    ending, steps = minimise(at_once, enough, FOREVER, 40)
    found = objective.v, objective.b, centre
    while True:
        last = minimise(objective, enough, FOREVER, 40)
        taken += last[1]
        proof = backend.certify(objective.v, objective.b, objective.term.duals())
        factor = next((factor for most, factor in rule.factors if last[1] <= most), 0.0)
        reached = proof.gap <= max(rule.target * proof.primal, 2.0 * proof.rounding)
        if proof.gap < known.gap:
            found = objective.v, objective.b, objective.term.duals()
        done = reached or last[0] is not Ending.REACHED or length <= floor
        if done or not factor or proof.gap >= 0.5 * known.gap:
            break
        known, length, centre = proof, max(factor * length, floor), objective.term.duals()
        least = rule.share * known.gap, 0.1 * rule.target * known.primal, 0.1 * known.rounding
        enough = max(least) * total
        objective = begin(objective.v, objective.b, known.primal * total)
    hidden = proof.gap <= 100.0 * proof.rounding  # what rounding hides is chance
    assert ending is last[0] or hidden
    if ending is last[0] is Ending.REACHED:
        assert steps == last[1]
        assert at_once._solve.paid == taken
        assert at_once.length == pytest.approx(length)
    np.testing.assert_allclose(at_once.v, found[0], atol=1e-7)
    assert at_once.b == pytest.approx(found[1], abs=1e-7)
    np.testing.assert_allclose(at_once.term.duals(), found[2], atol=1e-5)
    # No worse than where the last round began, where that has met rounding.
    least = min(known, proof, key=lambda each: each.gap) if ending is Ending.REACHED else known
    final = backend.certify(at_once.v, at_once.b, at_once.term.duals())
    assert final.gap <= 2.0 * least.gap + 4.0 * least.rounding


def test_rounds_are_of_all_rows():
    """The gap of a working set is not that of the problem: its rounds are taken one by one."""
    _, _, problem = make_problem("hinge", "dense", lam=0.01)
    backend, centre = LocalBackend(problem), np.zeros(len(problem.y))
    u = backend.combine(centre)
    term = WorkingSet(problem, np.arange(25), centre, u, 0.3, 1, backend.kernel)
    objective = LinearObjective(
        term, Ridge(), problem.mu, False, True, AtOnce(), np.zeros(7), 0.0, 40.0
    )
    objective.rounds = Rounds(1e9, 1e-6, 0.03, 1e-9, ((40, 0.1),))
    assert minimise(objective, 1e-9, FOREVER)[0] is Ending.REACHED
    assert objective.length == 0.3
