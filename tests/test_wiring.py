"""From a method's parameters to the rows it draws and the steps it takes: nothing is mixed up."""

import numpy as np
import pytest
from scipy.stats import binom

import reference as ref
from adasdca import SDCA, AdaSDCA, AdaSDCAPlus, IProxSDCA, Quartz, SDCAPerm, _core, solve
from adasdca.ascent.plans import AdaptiveSteps, AveragedDraws, ThinnedDraws
from adasdca.backends.cpu import LocalBackend
from adasdca.problem.problem import Problem
from cases import make_data
from chance import RARE, luck
from test_kernels import make_start

FOREVER = 1e18
N, KEYS = 40, 3000
LAM = 0.05


@pytest.fixture(scope="module")
def point():
    """A problem with rows of very different length, at a point where residues are too."""
    X, y = make_data("smoothed_hinge")
    oracle = ref.Problem(X, y, "smoothed_hinge", lam=LAM)
    beta = make_start(oracle)
    problem = Problem.checked(X, y, loss="smoothed_hinge", lam=LAM)
    backend = LocalBackend(problem)
    backend.restart(beta, 0.0)
    return problem, backend, oracle, beta


def plans(method, problem, backend):
    """Return a function from a key to the method's plan at this point."""
    schedule = method.schedule(problem, backend.facts, 1e-6, 1)
    survey = backend.survey(schedule.needs)
    return lambda key: schedule.plan(survey, key)


def luck_of(seen, tries, chance):
    return 2 * min(binom.cdf(seen, tries, chance), binom.sf(seen - 1, tries, chance))


def uniform(problem, survey):
    return np.ones(problem.n)


def mixture(problem, survey):
    return sum(w / w.sum() for w in (ref.relaxed(problem, survey), ref.step(problem, survey)))


RULES = {
    "sdca": (SDCA(), uniform),
    "iprox-sdca": (IProxSDCA(), ref.importance),
    "quartz": (Quartz(), uniform),
    "quartz-importance": (Quartz("importance"), ref.importance),
    "option I": (AdaSDCAPlus("I"), ref.relaxed),
    "option II": (AdaSDCAPlus("II"), ref.importance),
    "option III": (AdaSDCAPlus("III"), ref.step),
    "option I by the tree": (AdaSDCAPlus("I", sampler="tree"), ref.relaxed),
    "option II by the tree": (AdaSDCAPlus("II", sampler="tree"), ref.importance),
    "option III by the tree": (AdaSDCAPlus("III", sampler="tree"), ref.step),
    "option I+III": (AdaSDCAPlus("I+III"), mixture),
}


@pytest.mark.parametrize("name", RULES)
def test_the_first_row_has_the_probabilities_of_the_method(name, point):
    problem, backend, oracle, beta = point
    method, rule = RULES[name]
    plan = plans(method, problem, backend)
    first = [backend.epochs.draw(plan(key), FOREVER)[0] for key in range(KEYS)]
    weights = rule(oracle, ref.survey(oracle, beta))
    seen = np.bincount(first, minlength=N)
    assert luck(seen, KEYS * weights / weights.sum()) > RARE
    for other in (uniform, ref.importance, ref.relaxed, ref.step, mixture):
        if other is not rule:
            wrong = other(oracle, ref.survey(oracle, beta))
            assert luck(seen, KEYS * wrong / wrong.sum()) < RARE


@pytest.mark.parametrize("m", [1.5, 2.0, 10.0])
@pytest.mark.parametrize("sampler", ["plan", "tree"])
@pytest.mark.parametrize("option", ["I", "II", "III"])
def test_the_second_row_knows_m(option, sampler, m, point):
    """How often the second row is the first one again: p_i/m over 1 − p_i + p_i/m."""
    problem, backend, oracle, beta = point
    plan = plans(AdaSDCAPlus(option, m=m, sampler=sampler), problem, backend)
    weights = RULES[f"option {option}"][1](oracle, ref.survey(oracle, beta))
    p = weights / weights.sum()
    rows = [backend.epochs.draw(plan(key), FOREVER)[:2] for key in range(KEYS)]
    again = sum(one == two for one, two in rows)
    assert luck_of(again, KEYS, float(np.sum(p * (p / m) / (1 - p + p / m)))) > RARE


@pytest.mark.parametrize("sampler", ["plan", "tree"])
def test_the_divisor_is_m_and_no_other(sampler):
    """One row has most of the weight, so that its second visits tell m."""
    X, y = np.diag([0.35, 1e-3, 1e-3, 1e-3]), np.array([1.0, -1.0, 1.0, -1.0])
    problem = Problem.checked(X, y, loss="squared", lam=1e-3)
    backend = LocalBackend(problem)
    for m in (2.0, 4.0, 50.0):
        plan = plans(AdaSDCAPlus("II", m=m, sampler=sampler), problem, backend)
        first = [backend.epochs.draw(plan(key), FOREVER) for key in range(2000)]
        again = sum(rows[1] == 0 for rows in first if rows[0] == 0)
        tries = sum(rows[0] == 0 for rows in first)
        weights = 1.0 + np.diag(X) ** 2 / (1e-3 * 4)
        expected = weights[0] / m / (weights[0] / m + weights[1:].sum())
        assert luck_of(again, tries, expected) > RARE
        wrong = weights[0] / m**2 / (weights[0] / m**2 + weights[1:].sum())
        assert luck_of(again, tries, wrong) < RARE


@pytest.mark.parametrize("tree", [False, True])
def test_a_plan_is_drawn_as_it_says(tree, point):
    backend = point[1]
    weights = np.random.default_rng(0).exponential(size=N)
    draw = _core.draw_tree if tree else _core.Planner().plan
    for m in (2.0, 10.0):
        for epoch in (0.5, 1.0, 3.0):
            rows = backend.epochs.draw(ThinnedDraws(weights, m, epoch, 5, tree), FOREVER)
            np.testing.assert_array_equal(rows, draw(weights, m, round(epoch * N), 5))
    assert (draw(weights, 2.0, N, 5) != draw(weights, 10.0, N, 5)).any()


@pytest.mark.parametrize("sampler", ["plan", "tree"])
def test_a_sampler_is_the_one_asked_for(sampler, point):
    assert plans(AdaSDCAPlus(sampler=sampler), *point[:2])(0).tree is (sampler == "tree")


def test_a_permutation_is_one(point):
    problem, backend = point[:2]
    plan = plans(SDCAPerm(), problem, backend)
    np.testing.assert_array_equal(np.sort(backend.epochs.draw(plan(3), FOREVER)), np.arange(N))


@pytest.mark.parametrize("rule", ["relaxed", "optimal", "step"])
def test_algorithm_1_takes_the_steps_of_its_rule(rule, point):
    problem, backend, _, beta = point
    plan = plans(AdaSDCA(rule), problem, backend)(7)
    assert plan == AdaptiveSteps(rule, 7)
    found = {}
    for name in ("relaxed", "optimal", "step"):
        backend.restart(beta, 0.0)
        assert backend.workspace.ascend_adaptively(name, N, 7, FOREVER) == N
        found[name] = backend.survey(frozenset()).beta
    backend.restart(beta, 0.0)
    assert backend.ascend(plan) == N
    mine = backend.survey(frozenset()).beta
    backend.restart(beta, 0.0)
    np.testing.assert_array_equal(mine, found.pop(rule))
    assert all((mine != other).any() for other in found.values())


@pytest.mark.parametrize("step", ["averaged", "exact"])
@pytest.mark.parametrize("sampling", ["uniform", "importance"])
def test_quartz_has_the_theta_of_the_theory(sampling, step, point):
    """The same rows by the oracle, whose θ is min p_i γ/(γ + q_i), end at the same duals."""
    problem, _, oracle, _ = point
    backend = LocalBackend(problem)
    plan = plans(Quartz(sampling, step), problem, backend)
    rows = []
    for key in range(3):
        assert plan(key) == AveragedDraws(sampling, key, step == "exact")
        rows += backend.epochs.draw(plan(key), FOREVER).tolist()
        assert backend.ascend(plan(key)) == N
        seen = backend.survey(frozenset())
    weights = np.ones(N) if sampling == "uniform" else ref.importance(oracle)
    beta, w = ref.quartz(oracle, rows, weights, step == "exact")
    np.testing.assert_allclose(seen.beta, beta, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(seen.coef, w, rtol=1e-9, atol=1e-12)


def by_residues(survey):
    return np.abs(survey.residue) ** 0.5 + (survey.residue != 0)


def test_algorithm_1_with_probabilities_of_ones_own(point):
    """A step at a time, from these probabilities; it arrives."""
    problem, backend, oracle, beta = point
    backend.restart(beta, 0.0)
    plan = plans(AdaSDCA(by_residues), problem, backend)
    rows = [plan(key).rows for key in range(KEYS)]
    assert {len(row) for row in rows} == {1}
    weights = by_residues(ref.survey(oracle, beta))
    seen = np.bincount(np.concatenate(rows), minlength=N)
    assert luck(seen, KEYS * weights / weights.sum()) > RARE
    found = solve(
        *(np.asarray(oracle.X), oracle.y), loss="smoothed_hinge", lam=LAM, random_state=0,
        method=AdaSDCA(by_residues), tol=1e-4, max_epochs=4000,
    )  # fmt: skip
    assert found.converged
    assert found.n_updates == found.n_epochs


def test_probabilities_that_are_not_coherent_are_refused(point):
    problem, backend, _, beta = point
    backend.restart(beta, 0.0)
    plan = plans(AdaSDCA(lambda survey: survey.adaptive * (np.arange(N) != 7)), problem, backend)
    with pytest.raises(ValueError, match=r"weight 0 for row 7, which has a residue: .* coherent"):
        plan(0)
