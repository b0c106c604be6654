"""Kinks of the loss and of the regulariser, by the method of multipliers: the optimum, always."""

import functools
import time

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import attack

import adasdca
import cases
import reference as ref
from adasdca import Status, solve
from adasdca.ascent.plans import Permutations
from adasdca.auto.costs import Costs
from adasdca.auto.equations import EquationChoice
from adasdca.auto.second_order import SecondOrder
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.facts import RowFacts
from adasdca.newton.interior import CentralPath
from adasdca.newton.linear import Best
from adasdca.newton.moreau import ElasticBox, Ridge
from adasdca.newton.multipliers import CONSISTENT, Multipliers
from adasdca.newton.newton import Ending, minimise
from adasdca.problem.problem import Problem
from second_order import FOREVER, KINKED, solver

NEEDS = frozenset({"adaptive"})
INTERCEPT = pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
FIXED = (np.array([-1.0, 0.2, -1.0, 0.0, -1.0, -0.1, -1.0]),
         np.array([1.0, 0.2, 1.0, 0.0, 1.0, -0.1, 1.0]))  # fmt: skip
REGULARISERS = {
    "l2": {},
    "elastic net": {"l1_ratio": 0.5},
    "nearly a lasso": {"l1_ratio": 0.9},
    "non-negative": {"bounds": (0.0, None)},
    "some fixed": {"bounds": FIXED},
    "both": {"l1_ratio": 0.5, "bounds": FIXED},
}


def always_second_order(monkeypatch):
    """Let there be no epochs to begin with."""
    monkeypatch.setattr(SecondOrder, "cost", lambda *_: 0.0)


def finished(problem, target=1e-13):
    """What the method leaves, from β = 0."""
    backend = LocalBackend(problem)
    before = backend.survey(NEEDS)
    choice = EquationChoice(
        Costs(RowFacts(problem.rows), problem.loss), problem.regularizer.is_ridge, 4.0
    )
    method = Multipliers(backend, problem, choice, path=CentralPath.of(backend))
    best, ending = method.run(before, target, FOREVER)
    backend.place(best.duals, best.w, best.b)
    return before, backend.survey(NEEDS), ending


@functools.cache
def data(loss, raw):
    X, y = cases.make_data(loss, n=60, seed=1)
    if raw:
        # Features of several sizes, far from 0 and near, and targets in their own units.
        X = X * np.array([1.0, 30.0, 0.1, 1.0, 100.0, 3.0, 1.0]) + np.array(
            [0.0, 0.0, 1.0, 20.0, 0.0, -7.0, 0.0]
        )
        y = y if cases.is_classification(loss) else 40.0 + 15.0 * y
    else:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, y


@INTERCEPT
@pytest.mark.parametrize("raw", [False, True], ids=["standardised", "raw"])
@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("loss", [*KINKED, "squared", "logistic"])
def test_the_optimum(loss, regulariser, raw, intercept, monkeypatch):
    always_second_order(monkeypatch)
    X, y = data(loss, raw)
    for weighted in (False, True):
        weight = np.random.default_rng(2).integers(0, 3, 60).astype(float) if weighted else None
        options = {"lam": 1e-2, "fit_intercept": intercept, "sample_weight": weight}
        options |= REGULARISERS[regulariser]
        sol = solve(X, y, loss=loss, tol=1e-8, random_state=0, **options)
        assert sol.status is Status.CONVERGED, sol
        kind = "Newton" if loss in cases.SMOOTH and regulariser == "l2" else "multipliers"
        assert {phase.name for phase in sol.phases} == {kind}
        lower, upper = options.get("bounds", (None, None))
        best, *_ = ref.optimum(
            X, y, loss, **{**options, "bounds": None if lower is None and upper is None else
                           (lower, np.inf if upper is None else upper)}
        )  # fmt: skip
        assert best * (1 - 1e-7) <= sol.primal <= best * (1 + 1e-7)
        assert sol.dual <= best * (1 + 1e-8)
        assert (sol.coef >= (-np.inf if lower is None else lower)).all()
        assert (sol.coef <= (np.inf if upper is None else upper)).all()


@INTERCEPT
@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("loss", KINKED)
def test_never_makes_the_point_worse(loss, regulariser, intercept):
    for seed in range(3):
        X, y = cases.make_data(loss, n=80, seed=seed)
        problem = Problem.checked(
            X, y, loss=loss, lam=10.0 ** (-2 * seed), fit_intercept=intercept,
            **REGULARISERS[regulariser],
        )  # fmt: skip
        before, after, ending = finished(problem)
        assert ending in (Ending.REACHED, Ending.EXHAUSTED)
        assert after.gap <= before.gap
        assert after.gap <= 1e-9 * after.primal + 10 * after.certificate.rounding


@INTERCEPT
@pytest.mark.parametrize("loss", KINKED)
def test_columns_of_every_scale(loss, intercept):
    """Scales do not matter to the steps, though they do to what is penalised."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = cases.make_data(loss, n=120, seed=seed)
        X = X * 10.0 ** rng.integers(-4, 5, 7)
        for options in ({}, {"l1_ratio": 0.5}, {"bounds": (0.0, None)}):
            sol = solve(
                X, y, loss=loss, lam=1 / 120, fit_intercept=intercept, tol=1e-6, random_state=0,
                **options,
            )  # fmt: skip
            assert sol.status is Status.CONVERGED, (sol, options)


@INTERCEPT
@pytest.mark.parametrize("loss", KINKED)
def test_degenerate_data(loss, intercept):
    """Rows repeated, rows of zeros, features repeated: many optimal duals, one optimal w."""
    X, y = cases.make_data(loss, values="ones", n=30)
    X = np.vstack([X, X, X, np.zeros((5, X.shape[1]))])
    X = np.hstack([X, X[:, :2], np.zeros((len(X), 1))])
    y = np.concatenate([y, y, y, y[:5]])
    options = {"loss": loss, "lam": 1e-3, "fit_intercept": intercept}
    _, after, _ = finished(Problem.checked(sp.csr_array(X), y, **options))
    value, *_ = ref.optimum(X, y, loss, lam=1e-3, fit_intercept=intercept)
    assert after.gap < 1e-10 * after.primal
    assert after.primal == pytest.approx(value, rel=1e-8)


@INTERCEPT
def test_all_rows_at_their_bounds(intercept):
    """With strong regularisation every score is inside the margin, and no dual is free."""
    X, y = cases.make_data("hinge", n=40)
    y[:20], y[20:] = -1.0, 1.0  # as many of each, so that all duals at 1 are balanced
    problem = Problem.checked(X, y, loss="hinge", lam=100.0, fit_intercept=intercept)
    _, after, _ = finished(problem)
    assert after.gap < 1e-12 * after.primal
    np.testing.assert_array_equal(y * after.beta, 1.0)


def test_a_perfect_fit():
    """P = 0 at w = 0: there is nothing to divide by."""
    X, _ = cases.make_data("absolute")
    sol = solve(X, np.zeros(len(X)), loss="absolute", lam=0.1, random_state=0)
    assert sol.gap == 0
    assert sol.converged


@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("loss", ["quantile", "absolute"])
def test_duals_at_rest_with_an_intercept_far_away(loss, regulariser):
    """Strong regularisation: no dual moves while the intercept is on its way."""
    X, y = cases.make_data(loss, n=200)
    sol = solve(
        X, 100.0 + 50.0 * y, loss=loss, lam=1.0, fit_intercept=True, tol=1e-9, random_state=0,
        **REGULARISERS[regulariser],
    )  # fmt: skip
    assert sol.converged, sol


@pytest.mark.parametrize("options", [{"fit_intercept": True}, {"l1_ratio": 0.5}])
def test_epochs_that_crawl_end_in_second_order_steps(options):
    """Where the gap falls by less than 5 % an epoch no thousand of them will do."""
    X, y = adasdca.datasets.load_mushrooms()
    sol = solve(X, y, loss="absolute", lam=0.01 / len(y), tol=1e-3, random_state=0, **options)
    assert sol.converged, sol
    assert sol.phases[-1].name == "multipliers"


@INTERCEPT
def test_mushrooms_same_seed_same_bits(intercept):
    X, y = adasdca.datasets.load_mushrooms()
    options = {"loss": "hinge", "lam": 1 / len(y), "fit_intercept": intercept}
    runs = [solve(X, y, **options, tol=1e-9, random_state=3, n_threads=k) for k in (1, 1, 2)]
    assert runs[0].converged
    for other in runs[1:]:
        np.testing.assert_array_equal(runs[0].coef, other.coef)
        np.testing.assert_array_equal(runs[0].dual_coef, other.dual_coef)
    last = runs[0].phases[-1]
    assert (last.name, last.updates) == ("multipliers", 0)
    assert last.gap_after == runs[0].gap
    assert runs[0].timings["second order"] > 0
    certificate = adasdca.certify(
        X, y, runs[0].coef, intercept=runs[0].intercept, dual_coef=runs[0].dual_coef, **options
    )
    assert certificate.gap <= 1.01e-9 * certificate.primal


def test_time_runs_out():
    X, y = cases.make_data("hinge", n=200)
    problem = Problem.checked(X, y, loss="hinge", lam=1e-4)
    backend = LocalBackend(problem)
    before = backend.survey(NEEDS)
    method = Multipliers(backend, problem, solver("features"))
    best, ending = method.run(before, 1e-10, time.perf_counter() - 1)
    assert ending is Ending.TIME
    assert best.certificate.gap <= before.gap


def test_which_penalty():
    X, y = cases.make_data("hinge")
    for name, options in REGULARISERS.items():
        problem = Problem.checked(X, y, loss="hinge", lam=1.0, **options)
        method = Multipliers(LocalBackend(problem), problem, solver("features"))
        penalty = method._penalty(np.zeros(7), method._stiffness(0.1))
        assert isinstance(penalty, Ridge if name == "l2" else ElasticBox)
        assert method.quadratic_penalty == (name == "l2")


def test_the_end_is_told_in_few_steps_where_rounding_hides_the_rest(monkeypatch):
    """A γ of 1e-7 magnifies the rounding of scores: steps in that noise are no progress."""
    steps = []

    def counted(*arguments):
        found = minimise(*arguments)
        steps.append(found[1])
        return found

    monkeypatch.setattr("adasdca.newton.multipliers.minimise", counted)
    for loss in KINKED:
        X, y = cases.make_data(loss, n=60)
        sol = solve(X, y, loss=loss, lam=0.1, tol=0.0, fit_intercept=True, random_state=0)
        assert sol.status in (Status.STALLED, Status.CONVERGED)
        assert sol.relative_gap < 1e-11
    assert max(steps) < 60


def test_rounds_that_lead_nowhere_end(monkeypatch):
    at = attack.make(0, 1932)  # more features than rows, all far from 0, and a goal below rounding
    taken = []

    def counted(*args):
        taken.append(minimise(*args))
        assert len(taken) < 1000
        return taken[-1]

    monkeypatch.setattr("adasdca.newton.multipliers.minimise", counted)
    options = {"loss": "absolute", "l1_ratio": 0.9, "fit_intercept": True, "tol": 1e-6}
    found = solve(at.X, at.y, lam=1 / (at.C * len(at.y)), random_state=1932, **options)
    assert found.converged


def test_the_lasso_has_zeros_whatever_rounding_does():
    """Rounding does not tell the gap of an interior point, which has none, from a sparse one."""
    rows = np.array([[1.0, 0, 1, 0], [1, 1, 0, 0], [0, 1, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1]])
    inside = np.array([0.5, 1e-20, 1e-20, -0.5])
    problem = Problem.checked(
        rows, np.array([1.0, 1, -1, -1, -1]), loss="squared_hinge", lam=0.05, l1_ratio=1.0
    )
    backend = LocalBackend(problem)
    solution = solve(rows, problem.y, loss="squared_hinge", lam=0.05, l1_ratio=1.0, tol=1e-12)
    best = Best(
        np.where(solution.coef == 0, inside, solution.coef),
        0.0,
        solution.dual_coef,
        solution.certificate,
    )
    choice = EquationChoice(Costs(backend.facts, problem.loss), False, 4.0)
    found, _ = Multipliers(backend, problem, choice).rounds(best, best.duals, 0.0, FOREVER)
    assert np.count_nonzero(found.w) == np.count_nonzero(solution.coef) < 4


@pytest.mark.parametrize("loss", KINKED)
def test_the_last_digits_end_where_a_round_brings_nothing(loss):
    """With an intercept rounding leaves a gap that no round mends; one of them is enough."""
    X, y = cases.make_data(loss, n=60)
    problem = Problem.checked(X, y, loss=loss, lam=0.02, fit_intercept=True)
    rounds, gaps = [], []
    for asked in (0.0, 1e-4):
        backend = LocalBackend(problem)
        taken = []

        def counted(*point, backend=backend, taken=taken):
            taken.append(point)
            return LocalBackend.certify(backend, *point)

        backend.certify = counted
        method = Multipliers(backend, problem, solver("features"), asked=asked)
        best, _ = method.run(backend.survey(NEEDS), 1e-16, FOREVER)
        rounds.append(len(taken))
        gaps.append(best.certificate.relative_gap)
    assert max(gaps) < 1e-9
    assert rounds[1] <= rounds[0]
    assert rounds[1] < 14


@INTERCEPT
@pytest.mark.parametrize("loss", KINKED)
def test_the_first_round_after_epochs_fits_their_coefficients(loss, intercept):
    """As sharp as the gap of their duals allows, it would cross all kinks again."""
    X, y = cases.make_data(loss, n=300, d=200, seed=3)
    problem = Problem.checked(X, y, loss=loss, lam=1e-3, fit_intercept=intercept)
    backend = LocalBackend(problem)
    backend.survey(NEEDS)
    backend.ascend(Permutations(100, 1))
    seen = backend.survey(NEEDS)
    best = Best(seen.coef, seen.intercept, seen.certified, seen.certificate)
    method, u = Multipliers(backend, problem, solver("features")), backend.combine(seen.beta)
    sharp, _ = method._lengths(best, seen.beta)

    def lost(length, v, b):
        rho = method._stiffness(length)
        return method._round(v, b, seen.beta, u, length, rho, None, seen.primal).lost()

    length, objective = method._begin(best, seen.beta, u, sharp)
    v, b = objective.v, objective.b
    allowed = CONSISTENT * seen.gap * len(y)
    assert lost(sharp, v, b) > allowed
    assert lost(length, v, b) <= allowed or length == method.bluntest
    # Steps that were left go on where they leave less to gain.
    found, _ = method.rounds(best, seen.beta, 1e-9, FOREVER)
    method.left = found.w, found.b
    assert method._begin(best, seen.beta, u, sharp)[1].v is found.w


@pytest.mark.parametrize("seed", [0, 5, 6, 8, 11])
def test_small_problems_are_left_to_rounds(seed, monkeypatch):
    """Steps of one call are cheap: they do not cost so much that the path is gone."""
    monkeypatch.setattr(CentralPath, "follow", lambda *_: pytest.fail("along the central path"))
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 30))
    y = X @ rng.normal(size=30) + rng.normal(size=60)
    found = solve(
        X, y, loss="epsilon_insensitive", lam=1e-2, fit_intercept=True, random_state=0, tol=1e-9
    )
    assert found.converged


@INTERCEPT
@pytest.mark.parametrize("loss", KINKED)
def test_rounds_of_small_problems_are_few(loss, intercept, monkeypatch):
    """Where a round costs more than its steps, kinks are sharpened faster."""
    rounds = []

    def counted(*arguments):
        rounds.append(arguments)
        return minimise(*arguments)

    monkeypatch.setattr("adasdca.newton.multipliers.minimise", counted)
    counts = []
    for seed in range(8):
        X, y = cases.make_data(loss, n=100, d=10, seed=seed)
        rounds.clear()
        assert solve(X, y, loss=loss, lam=0.01, fit_intercept=intercept, random_state=0).converged
        counts.append(len(rounds))
    assert np.mean(counts) < 5.8


@pytest.mark.parametrize("seed", range(3))
def test_a_round_that_takes_too_many_steps_keeps_its_centre(seed, monkeypatch):
    """Duals of a round that is far from solved are no centre for the next one."""
    monkeypatch.setattr("adasdca.newton.multipliers.HARD", 2)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 80)) * rng.lognormal(0.0, 2.0, 80)
    y = np.where(rng.random(40) < 0.3, 1.0, -1.0)
    problem = Problem.checked(X, y, loss="logistic", lam=1e-6, l1_ratio=0.5)
    _, after, ending = finished(problem, 1e-7)
    assert ending is Ending.REACHED
    assert after.relative_gap <= 1e-7


@pytest.mark.parametrize("seed", [2, 4, 15])
def test_rounds_that_rounding_hides_are_followed_by_blunter_ones(seed):
    """Rows that can be fitted: scores over a short length are duals without digits."""
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 400, (15, 18)) * 10.0 ** rng.integers(0, 3, 18)
    y = rng.integers(0, 3000, 15).astype(float)
    assert solve(X, y, loss="absolute", lam=4e-8, l1_ratio=1.0, tol=1e-6, random_state=0).converged


@pytest.mark.parametrize("loss", ["quantile", "absolute", "epsilon_insensitive", "huber"])
def test_an_l1_term_beside_columns_of_large_numbers(loss):
    """One last digit of one dual takes u so far beyond its domain that a share of 1e-4 is lost."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((45, 28))
    y = X @ rng.standard_normal(28) + 3 * rng.standard_normal(45)
    X[:, ::2] = np.exp(3 * X[:, ::2] + 8)
    X[:, 1::2] = X[:, 1::2] > 1
    options = {"loss": loss, "lam": 5e-8, "l1_ratio": 1.0, "fit_intercept": True}
    found = solve(X, y, **options, tol=1e-8, random_state=0)
    assert found.status is Status.CONVERGED
