"""The finish of losses with kinks: free duals by the method of multipliers."""

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
import cases
import reference as ref
from adasdca import Status, solve
from adasdca.auto.costs import Costs
from adasdca.backends.blas import _controller, one_thread
from adasdca.backends.cpu import LocalBackend
from adasdca.newton.kinks import FreeDuals
from adasdca.newton.patch import Kinks, Line, Patch, Point, take_rows
from adasdca.newton.plans import KinkFinish, NewtonFinish, SpanFinish, make_finish
from adasdca.problem.problem import Problem

KINKED = [name for name in cases.LOSSES if name not in cases.SMOOTH]
NEEDS = frozenset({"adaptive"})


def surveyed(problem, beta=None):
    """A backend at some β with its survey."""
    backend = LocalBackend(problem)
    if beta is not None:
        backend.restart(beta, 0.0)
    return backend, backend.survey(NEEDS)


def finished(problem, target=1e-13, rounds=30):
    """The survey after the finish, from β = 0."""
    backend, before = surveyed(problem)
    FreeDuals(problem, backend.workspace, 1).run(before, target, rounds, 1e9)
    return before, backend.survey(NEEDS)


def random_beta(problem, rng):
    """Dual variables inside their domain, some of them at its ends."""
    low, high = problem.loss.domain
    b = np.clip(rng.uniform(low - 0.3, high + 0.3, len(problem.y)), low, high)
    return problem.y * b if problem.loss.kind == "classification" else b


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", KINKED)
def test_fewer_epochs_to_the_optimum(loss, storage, weighted, fit_intercept, monkeypatch):
    X, y = cases.make_data(loss, n=200, seed=1)
    weight = np.random.default_rng(2).integers(0, 3, len(y)).astype(float) if weighted else None
    options = {"loss": loss, "lam": 1e-3, "sample_weight": weight, "fit_intercept": fit_intercept}
    call = {"method": "auto", "tol": 1e-10, "max_epochs": 600, "random_state": 0}
    sol = solve(storage(X), y, **options, **call)
    assert sol.converged, sol
    assert sol.phases[-1].name == "free duals"
    value, coef, _ = ref.optimum(
        X, y, loss, lam=1e-3, sample_weight=weight, fit_intercept=fit_intercept
    )
    assert sol.primal == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(sol.coef, coef, atol=1e-4)
    monkeypatch.setattr("adasdca.auto.schedule.make_finish", lambda *_: None)
    assert solve(storage(X), y, **options, **call).n_epochs > sol.n_epochs


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", KINKED)
def test_never_makes_the_point_worse(loss, fit_intercept):
    rng = np.random.default_rng(0)
    for seed in range(3):
        X, y = cases.make_data(loss, n=80, seed=seed)
        problem = Problem.checked(
            sp.csr_array(X), y, loss=loss, lam=10.0**-seed, fit_intercept=fit_intercept
        )
        backend, before = surveyed(problem, random_beta(problem, rng))
        for rounds in (1, 1, 2, 30):
            FreeDuals(problem, backend.workspace, 1).run(before, 1e-14, rounds, 1e9)
            after = backend.survey(NEEDS)
            assert after.primal <= before.primal * (1 + 1e-13)
            assert after.dual >= before.dual - 1e-13 * abs(before.primal)
            before = after
        assert before.gap < 1e-10 * before.primal


@pytest.mark.parametrize("loss", KINKED)
def test_too_few_steps_do_no_harm(loss, monkeypatch):
    """One Newton step is not enough for a rounded problem: γ grows, the point does not suffer."""
    monkeypatch.setattr(Patch, "most", 1)
    X, y = cases.make_data(loss, n=80)
    before, after = finished(Problem.checked(X, y, loss=loss, lam=1e-3))
    assert after.primal <= before.primal
    assert after.dual >= before.dual


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", KINKED)
def test_degenerate_data(loss, fit_intercept):
    """Rows repeated, rows of zeros, features repeated: many optimal duals, one optimal w."""
    X, y = cases.make_data(loss, values="ones", n=30)
    X = np.vstack([X, X, X, np.zeros((5, X.shape[1]))])
    X = np.hstack([X, X[:, :2], np.zeros((len(X), 1))])
    y = np.concatenate([y, y, y, y[:5]])
    options = {"loss": loss, "lam": 1e-3, "fit_intercept": fit_intercept}
    _, after = finished(Problem.checked(sp.csr_array(X), y, **options))
    value, *_ = ref.optimum(X, y, loss, lam=1e-3, fit_intercept=fit_intercept)
    assert after.gap < 1e-11 * after.primal
    assert after.primal == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_all_rows_at_their_bounds(fit_intercept):
    """With strong regularisation every score is inside the margin, and no dual is free."""
    X, y = cases.make_data("hinge", n=40)
    y[:20], y[20:] = -1.0, 1.0  # as many of each, so that all duals at 1 are balanced
    problem = Problem.checked(X, y, loss="hinge", lam=100.0, fit_intercept=fit_intercept)
    _, after = finished(problem)
    assert after.gap < 1e-12 * after.primal
    np.testing.assert_array_equal(y * after.beta, 1.0)


def test_a_perfect_fit():
    """P = 0 at w = 0: there is nothing to divide by."""
    X, _ = cases.make_data("absolute")
    sol = solve(X, np.zeros(len(X)), loss="absolute", lam=0.1, method="auto", random_state=0)
    assert sol.gap == 0
    problem = Problem.checked(X, np.zeros(len(X)), loss="absolute", lam=0.1)
    backend, before = surveyed(problem, random_beta(problem, np.random.default_rng(0)))
    FreeDuals(problem, backend.workspace, 1).run(before, 1e-12, 30, 1e9)
    assert backend.survey(NEEDS).primal < 1e-10 * before.primal


def test_a_weight_is_a_repeated_row():
    X, y = cases.make_data("hinge", n=60)
    weight = np.random.default_rng(0).integers(0, 4, 60)
    options = {"loss": "hinge", "lam": 1e-3}
    _, weighted = finished(Problem.checked(X, y, sample_weight=weight, **options))
    rows = np.repeat(np.arange(60), weight)
    _, repeated = finished(Problem.checked(X[rows], y[rows], **options))
    assert weighted.primal == pytest.approx(repeated.primal, rel=1e-12)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_mushrooms_same_seed_same_bits(fit_intercept):
    X, y = adasdca.datasets.load_mushrooms()
    options = {"loss": "hinge", "lam": 1 / len(y), "fit_intercept": fit_intercept, "method": "auto"}
    runs = [solve(X, y, **options, tol=1e-9, random_state=3, n_threads=k) for k in (1, 1, 2)]
    assert runs[0].converged
    for other in runs[1:]:
        np.testing.assert_array_equal(runs[0].coef, other.coef)
        np.testing.assert_array_equal(runs[0].dual_coef, other.dual_coef)
    last = runs[0].phases[-1]
    assert (last.name, last.updates) == ("free duals", 0)
    assert last.gap_after == runs[0].gap
    assert runs[0].timings["finish"] > 0
    certificate = adasdca.certify(
        X, y, runs[0].coef, intercept=runs[0].intercept, dual_coef=runs[0].dual_coef,
        loss="hinge", lam=1 / len(y), fit_intercept=fit_intercept,
    )  # fmt: skip
    assert certificate.gap <= 1.01e-9 * certificate.primal


@pytest.mark.parametrize("where", ["minimise", "_direction", "combine"])
def test_an_interruption_leaves_a_valid_point(where, monkeypatch):
    X, y = cases.make_data("hinge", n=200)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Patch, where, interrupt)
    sol = solve(X, y, loss="hinge", lam=1e-4, tol=1e-10, method="auto", random_state=0)
    assert sol.status is Status.INTERRUPTED
    again = adasdca.certify(X, y, sol.coef, dual_coef=sol.dual_coef, loss="hinge", lam=1e-4)
    assert again.gap == pytest.approx(sol.gap, rel=1e-9)


def test_time_runs_out():
    X, y = cases.make_data("hinge", n=200)
    problem = Problem.checked(X, y, loss="hinge", lam=1e-4)
    backend, before = surveyed(problem)
    assert FreeDuals(problem, backend.workspace, 1).run(before, 1e-10, 30, 0.0) == 0
    assert backend.survey(NEEDS).gap == before.gap
    patch = Patch(problem, Kinks.of(problem), np.arange(200), start(problem, before))
    point, good = patch.minimise(start(problem, before), 1.0, 1.0, 0.0, -np.inf)
    assert not good
    np.testing.assert_array_equal(point.w, before.coef)


def start(problem, survey):
    kinks = Kinks.of(problem)
    z = np.zeros(len(problem.y))
    return Point(survey.coef, 0.0, z, kinks.sign * survey.beta, np.zeros_like(survey.coef))


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", KINKED)
def test_a_rounded_problem_on_some_rows(loss, fit_intercept):
    """At its minimum the gradient in w and in b vanishes; the rows left out keep their duals."""
    rng = np.random.default_rng(0)
    X, y = cases.make_data(loss, n=60)
    problem = Problem.checked(X, y, loss=loss, lam=0.01, fit_intercept=fit_intercept)
    kinks, beta = Kinks.of(problem), random_beta(problem, rng)
    u = X.T @ beta / 0.6
    point = Point(u, 0.1, kinks.sign * (X @ u + 0.1), kinks.sign * beta, u)
    rows = np.flatnonzero(rng.random(60) < 0.6)
    found, good = Patch(problem, kinks, rows, point).minimise(point, 0.3, 1.0, 1e-20, np.inf)
    assert good
    after = beta.copy()
    after[rows] = kinks.sign[rows] * found.dual
    np.testing.assert_allclose(found.u, X.T @ after / 0.6, atol=1e-11)
    np.testing.assert_allclose(found.w, found.u, atol=1e-9)
    np.testing.assert_allclose(found.z, (kinks.sign * (X @ found.w + found.bias))[rows], atol=1e-10)
    if fit_intercept:
        assert abs(after.sum()) < 1e-9
    else:
        assert found.bias == 0.1
    # b maximises (t − z) b − ε|b| − γ/2 (b − b⁰)² over its interval.
    low, high = problem.loss.domain
    grid = np.linspace(low, high, 2001)[:, None]
    gain = (kinks.target[rows] - found.z) * grid - problem.loss.dead_zone * np.abs(grid)
    gain -= 0.15 * (grid - point.dual[rows]) ** 2
    np.testing.assert_allclose(grid[gain.argmax(axis=0), 0], found.dual, atol=2e-3)


def test_the_minimum_on_a_line():
    rng = np.random.default_rng(0)
    for _ in range(50):
        problem = Problem.checked(
            rng.normal(size=(40, 2)), rng.normal(size=40), loss="absolute", lam=1
        )
        z, dz = rng.normal(size=40), rng.normal(size=40)
        line = Line(
            Kinks.of(problem), 0.1, np.zeros(40), z, dz, 0.0, 1.0, rise=lambda length: length
        )
        line.fixed = -line.slope(0.0) - rng.exponential() * 10.0 ** rng.integers(-3, 4)
        first = line.slope(0.0)
        length = line.minimum(first)
        assert length > 0
        assert abs(line.slope(length)) <= 0.1 * abs(first) or length == 64.0


@pytest.mark.parametrize("values", cases.VALUES)
def test_rows_are_copied_as_they_are(values):
    X, _ = cases.make_data("hinge", values)
    chosen = np.array([0, 3, 4, 17, 39])
    for stored, _ in cases.storages(X, values):
        problem = Problem.checked(stored, np.ones(len(X)), loss="absolute", lam=1.0)
        part = take_rows(problem.rows, chosen)
        assert part.values.dtype == problem.rows.values.dtype
        assert part.shape == (5, X.shape[1])
        if sp.issparse(stored):
            part = sp.csr_array((part.values, part.columns, part.start), shape=part.shape).toarray()
        else:
            part = part.values
        np.testing.assert_array_equal(part, X[chosen])


@pytest.mark.parametrize("options", [{"fit_intercept": True}, {"l1_ratio": 0.5}])
def test_epochs_that_crawl_end_in_the_finish(options):
    """Where the gap falls by less than 5 % an epoch no thousand of them will do."""
    X, y = adasdca.datasets.load_mushrooms()
    sol = adasdca.solve(
        X, y, loss="absolute", lam=0.01 / len(y), method="auto", tol=1e-3, random_state=0, **options
    )
    assert sol.converged, sol
    assert sol.phases[-1].name == "free duals"


def test_which_finish():
    X, y = cases.make_data("hinge")
    wide = sp.random_array((40, 2000), density=0.01, rng=np.random.default_rng(0), format="csr")

    def finish(X=X, loss="hinge", **options):
        problem = Problem.checked(X, y, loss=loss, lam=1.0, **options)
        return make_finish(problem, Costs(problem), 1, 1e-4)

    assert isinstance(finish(), KinkFinish)
    assert isinstance(finish(fit_intercept=True), KinkFinish)
    assert isinstance(finish(loss="smoothed_hinge"), NewtonFinish)
    assert isinstance(finish(l1_ratio=0.5, bounds=(0, None)), KinkFinish)
    assert isinstance(finish(X=wide), SpanFinish)
    assert finish(X=wide, l1_ratio=0.5) is None


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
