"""A squared loss with an L1 term or bounds, minimised by the matrix of its features."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
from adasdca import _core
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.cpu_term import CpuTerm
from adasdca.newton.multipliers import Multipliers
from adasdca.newton.newton import Ending
from adasdca.newton.proximal import ColumnModels, ProximalObjective
from adasdca.newton.working_set import FeatureSets
from adasdca.problem.losses import LOSSES
from adasdca.problem.problem import Problem
from second_order import FOREVER


def problem(case, d=24):
    """Return rows, targets, ridge, kink, and bounds."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, d))
    ridge, kink = np.full(d, 0.3), np.full(d, 9.0)
    lower, upper = np.full(d, -np.inf), np.full(d, np.inf)
    match case:
        case "lasso":
            ridge[:] = 0.0
        case "alike":  # features that come twice, and no ridge that would tell them apart
            X[:, d // 2 :], ridge[:] = X[:, : d // 2], 0.0
        case "scales":
            X *= np.logspace(-3, 3, d)
            kink *= np.logspace(-3, 3, d)
        case "bounds":
            lower[::2], upper[::3] = 0.0, 0.1
            lower[1], upper[1] = 0.2, 0.3
        case "no kink":
            kink[:] = 0.0
            lower[::2], upper[::3] = -0.05, 0.05
        case "empty":
            X[:, 2] = 0.0
            ridge[2] = kink[2] = 0.0
            lower[2], upper[2] = -1.0, 1.0
        case "far":  # from 0, where each feature drags the others along
            X += 30.0
    return X, X[:, :5].sum(axis=1) + rng.normal(size=60), ridge, kink, lower, upper


def quadratic(case):
    """Return matrix, linear term, ridge, kink, and bounds."""
    X, y, *rest = problem(case)
    return X.T @ X, X.T @ y, *rest


CASES = ("elastic net", "lasso", "alike", "scales", "bounds", "no kink", "empty", "far")


def assert_settled(w, slope, size, ridge, kink, lower, upper):
    force = slope - ridge * w
    low, high = np.where(w > 0, kink, -kink), np.where(w < 0, -kink, kink)
    low, high = np.where(w == lower, -np.inf, low), np.where(w == upper, np.inf, high)
    assert (force >= low - 1e-9 * size).all()
    assert (force <= high + 1e-9 * size).all()


@pytest.mark.parametrize("start", [0.0, 0.7])
@pytest.mark.parametrize("case", CASES)
def test_the_minimum_meets_its_conditions(case, start):
    """The slope of the quadratic is in the subdifferential of the penalty, from any start."""
    matrix, right, ridge, kink, lower, upper = quadratic(case)
    w = np.clip(np.full(len(right), start), lower, upper)
    slope = right - matrix @ w
    assert _core.minimise_separable(
        matrix, ridge, kink, lower, upper, w, slope, 1e-20 * float(right @ right), FOREVER
    )
    assert ((lower <= w) & (w <= upper)).all()
    size = np.abs(matrix) @ np.abs(w) + np.abs(right)
    assert (np.abs(slope - (right - matrix @ w)) <= 1e-10 * size).all()
    assert_settled(w, slope, size, ridge, kink, lower, upper)


def test_a_wrong_length_is_refused():
    matrix, right, ridge, kink, lower, upper = quadratic("lasso")
    with pytest.raises(ValueError, match="one line per feature"):
        _core.minimise_separable(
            matrix, ridge[:-1], kink, lower, upper, 0 * right, right.copy(), 0.0, FOREVER
        )


@pytest.mark.parametrize("kind", ["dense", "sparse", "sparse, intercept"])
@pytest.mark.parametrize("case", CASES)
def test_columns_meet_the_conditions(case, kind):
    X, y, ridge, kink, lower, upper = problem(case)
    w = np.clip(np.full(X.shape[1], 0.7), lower, upper)
    rows, root = sp.csc_matrix(X), None
    values = (X.T.copy().ravel(), None, None)
    if kind != "dense":
        values = rows.data, rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
    if kind == "sparse, intercept":
        root = np.sqrt(np.linspace(0.5, 2.0, len(y)))
        image = np.linalg.lstsq(root[:, None], np.c_[X, y], rcond=None)[0]
        X, y = X - np.outer(root, image[0, :-1]), y - root * image[0, -1]
    residual = y - X @ w
    penalty = ridge, kink, lower, upper
    exact = 1e-20 if ridge.max() > 0 else 1e-12  # beyond a kink by ε costs ε², or ε
    limits = exact * float(y @ y), 1e9, FOREVER
    done, work = _core.descend_columns(*values, root, *penalty, w, residual, *limits)
    assert done
    assert work > 0
    assert ((lower <= w) & (w <= upper)).all()
    size = np.abs(X).T @ (np.abs(X) @ np.abs(w) + np.abs(y))
    assert np.abs(residual - (y - X @ w)).max() <= 1e-11 * (1.0 + np.abs(y).max()) * 30.0
    assert_settled(w, X.T @ residual, size, *penalty)


def test_columns_stop_where_they_would_cost_too_much():
    X, y, *penalty = problem("far")
    w, residual = np.zeros(X.shape[1]), y.copy()
    done, _ = _core.descend_columns(
        X.T.copy().ravel(), None, None, None, *penalty, w, residual, 0.0, 1.0, FOREVER
    )
    assert not done
    np.testing.assert_allclose(residual, y - X @ w, atol=1e-9)


@pytest.mark.parametrize("empty", [0, 5])
@pytest.mark.parametrize("seed", range(3))
def test_columns_far_from_0(seed, empty):
    """Sums over full columns cancel: they are less their mean before, rows of weight 0 or not."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 600))
    X[:, :30] += 1e8
    weight = np.ones(60)
    weight[:empty], X[:empty] = 0.0, 0.0
    options = {"loss": "squared", "lam": 1e-3, "l1_ratio": 0.5, "fit_intercept": True}
    y = X[:, 0] - X[:, 1] + X[:, 400]
    found = adasdca.solve(sp.csr_matrix(X), y, **options, sample_weight=weight, random_state=0)
    assert found.converged


def by_columns(backend, features, least):
    """Return why steps from 0 by some columns have ended, and w, b and −φ' there."""
    w, (b, beta) = np.zeros(backend.facts.d), backend.slope_point(np.zeros(backend.facts.d), 0.0)
    value = backend.certify(w, b, beta).primal * backend.problem.total
    rows = backend.columns(features)
    models = ColumnModels(rows, 1e9)
    steps = ProximalObjective(rows.problem, rows, models, (w[features], b, value), least=least)
    ending, _ = steps.run(time.perf_counter() + FOREVER)
    assert models.work > 0
    w[features] = steps.w
    return ending, (w, *backend.slope_point(w, steps.b - float(rows.middle @ steps.w)))


def minimised_by_columns(backend, least):
    """Return w, b and −φ' where steps from 0 by all columns have ended."""
    ending, point = by_columns(backend, np.arange(backend.facts.d), least)
    assert ending is Ending.REACHED
    return point


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_columns_know_the_scale_of_the_loss(gamma, weighted):
    """One set of all features is the whole problem; its duals are the slopes."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((40, 8)), rng.standard_normal(40)
    weight = np.linspace(0.1, 2.0, 40) if weighted else None
    loss = adasdca.Squared(gamma=gamma)
    checked = Problem.checked(
        X, y, loss=loss, lam=0.1, l1_ratio=0.5, fit_intercept=True, sample_weight=weight
    )
    backend = LocalBackend(checked)
    w, b, beta = minimised_by_columns(backend, 1e-14)
    np.testing.assert_allclose(beta, (y - X @ w - b) / gamma, rtol=0, atol=1e-12)
    assert backend.certify(w, b, beta).relative_gap <= 1e-12


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("penalty", [{"l1_ratio": 1.0}, {"l1_ratio": 0.3, "bounds": (-0.2, 0.5)}])
@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if loss().smoothness > 0])
def test_proximal_steps_of_a_smooth_loss(loss, penalty, form):
    """One set of all features is the whole problem, rows of weight 0 and far columns included."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(90, 12)) * (rng.random((90, 12)) < 0.5)
    X[:, 3] += 1e3
    y = X[:, :3].sum(axis=1) + rng.normal(size=90)
    y = np.sign(y) if LOSSES[loss].kind == "classification" else y
    given = sp.csr_matrix(X) if form == "csr" else X
    weight = np.linspace(0.0, 2.0, 90)
    checked = Problem.checked(
        given, y, loss=loss, lam=0.02, fit_intercept=True, sample_weight=weight, **penalty
    )
    backend = LocalBackend(checked)
    w, b, beta = minimised_by_columns(backend, 1e-11)
    np.testing.assert_allclose(beta, -checked.loss.slope(X @ w + b, y), rtol=0, atol=1e-12)
    assert backend.certify(w, b, beta).relative_gap <= 1e-8


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_a_set_goes_on_by_columns_where_models_are_cut_short(loss, monkeypatch):
    """Rounds of this problem would factorise matrices of all its features, again and again."""
    monkeypatch.setattr("adasdca.newton.proximal.VISITS", 100.0)
    monkeypatch.setattr(FeatureSets, "_by_rounds", None)
    rng = np.random.default_rng(9)
    counts = rng.poisson(0.02 + 0.3 * (rng.random(900) < 0.05), size=(400, 900))
    y = np.where(counts[:, :20].sum(axis=1) + rng.normal(size=400) > 1.0, 1.0, -1.0)
    options = {"loss": loss, "lam": 1 / 4000, "l1_ratio": 1.0, "fit_intercept": True}
    found = adasdca.solve(sp.csr_matrix(counts.astype(float)), y, **options, random_state=0)
    assert found.converged


@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if loss().smoothness > 0])
def test_steps_by_columns_do_not_raise_the_objective(loss):
    """A model of rows that are straight leads far away, where the objective is flat, and high."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        counts = rng.poisson(20 / np.arange(5, 805), size=(200, 800)).astype(float)
        y = np.where(counts @ rng.normal(size=800) > 0, 1.0, -1.0)
        checked = Problem.checked(sp.csr_matrix(counts), y, loss=loss, lam=1e-4, l1_ratio=1.0)
        backend, w = LocalBackend(checked), np.zeros(800)
        b, beta = backend.slope_point(w, 0.0)
        before = backend.certify(w, b, beta).primal
        features = np.sort(np.argsort(-np.abs(backend.combine(beta)))[:100])
        _, found = by_columns(backend, features, 1e-3)
        assert backend.certify(*found).primal <= before


def test_columns_in_vain_cost_no_more_than_rounds_would(monkeypatch):
    """However many sets that takes: twenty of them were a minute on large data."""
    sets: list[tuple[float, float]] = []
    each = 1e6

    def in_vain(self, features, at, rest, best):
        self.budget.pay(each)
        return at, Ending.REACHED

    def rounds(self, features, at, rest, best):
        sets.append((self.budget.spent, self._price(self.backend.restrict(features).facts)))
        return whole(self, features, at, rest, best)

    whole = FeatureSets._by_rounds
    monkeypatch.setattr(FeatureSets, "_by_columns", in_vain)
    monkeypatch.setattr(FeatureSets, "_by_rounds", rounds)
    rng = np.random.default_rng(8)
    X = rng.normal(size=(60, 900))
    y = np.sign(X[:, :9].sum(axis=1) + rng.normal(size=60))
    options = {"loss": "squared_hinge", "lam": 1e-2, "l1_ratio": 1.0, "random_state": 0}
    assert adasdca.solve(X, y, **options).converged
    spent, price = sets[0]
    assert price <= spent < 1.5 * price + 3 * each


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("visits", [3000.0, 10.0])
def test_a_wide_lasso_is_sparse(form, visits, monkeypatch):
    """No more features are used than there are rows; where columns are slow, rounds go on."""
    monkeypatch.setattr("adasdca.newton.proximal.VISITS", visits)
    rng = np.random.default_rng(8)
    X = rng.normal(size=(60, 900))
    y = X[:, :9].sum(axis=1) + rng.normal(size=60)
    lam = 0.01 * float(np.abs(X.T @ (y - y.mean())).max()) / 60
    weight = np.linspace(0.0, 2.0, 60)
    given = sp.csr_matrix(X) if form == "csr" else X
    options = {"loss": "squared", "lam": lam, "l1_ratio": 1.0, "tol": 1e-9, "random_state": 0}
    found = adasdca.solve(given, y, fit_intercept=True, sample_weight=weight, **options)
    assert found.converged
    if visits > 10.0:
        assert np.count_nonzero(found.coef) <= 60


def table(form, n=500, d=80):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4) + (0.0 if form == "csr" else 2.0)
    y = X[:, :9].sum(axis=1) + rng.normal(size=n) + 5.0
    match form:
        case "csr":
            return sp.csr_matrix(X), y
        case "floats":
            return X.astype(np.float32), y
    return X, y


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
@pytest.mark.parametrize("form", ["dense", "floats", "csr"])
def test_one_phase_is_enough(form, l1_ratio, intercept, monkeypatch):
    """Rows with weights, factors and bounds; the other way comes to the same coefficients."""
    X, y = table(form)
    n, d = X.shape
    options = {
        "loss": "squared",
        "lam": 0.1,
        "l1_ratio": l1_ratio,
        "fit_intercept": intercept,
        "penalty_factors": np.linspace(0.5, 2.0, d),
        "bounds": (-0.5, np.where(np.arange(d) % 3 == 0, 0.4, np.inf)),
        "sample_weight": np.linspace(0.0, 2.0, n),
        "tol": 1e-9,
        "random_state": 0,
    }
    found, calls = [], []
    inner = _core.minimise_separable
    for most in (1000, 0):
        monkeypatch.setattr("adasdca.auto.second_order.TOGETHER", most)
        monkeypatch.setattr(_core, "minimise_separable", lambda *a: calls.append(1) or inner(*a))
        found.append(adasdca.solve(X, y, **options))
    assert calls
    assert all(each.converged for each in found)
    assert found[0].phases[0].rounds == 1
    np.testing.assert_allclose(found[0].coef, found[1].coef, atol=1e-4)


#: Those that have curvature where all scores are 0; others take rounds.
CURVED = [
    name for name, loss in LOSSES.items() if loss().smoothness > 0 and loss().curvature(0.0, 1.0)
]


@pytest.mark.parametrize(("loss", "l1_ratio"), [("squared", 0.3), *((k, 1.0) for k in CURVED)])
def test_models_alone_solve_a_single_fit(loss, l1_ratio, monkeypatch):
    """Without an L2 term of every smooth loss: no rounds are taken, and these come to the same."""
    X, y = table("dense")
    y = np.where(y > y.mean(), 1.0, -1.0) if LOSSES[loss].kind == "classification" else y - y.mean()
    options = {
        "loss": loss,
        "lam": 1e-3,
        "l1_ratio": l1_ratio,
        "fit_intercept": True,
        "penalty_factors": np.linspace(0.5, 2.0, X.shape[1]),
        "sample_weight": np.linspace(0.0, 2.0, len(y)),
        "tol": 1e-8,
        "random_state": 0,
    }
    with monkeypatch.context() as patch:
        patch.setattr("adasdca.auto.second_order.TOGETHER", 0)
        other = adasdca.solve(X, y, **options)
    monkeypatch.setattr(Multipliers, "run", None)
    found = adasdca.solve(X, y, **options)
    assert found.converged
    assert other.converged
    assert abs(found.primal - other.primal) <= found.gap + other.gap


def test_a_model_without_curvature_leads_nowhere():
    """Where next to all rows are on straight pieces, the minimum of a model is beyond doubles."""
    X, y = adasdca.datasets.load_mushrooms()
    some = np.random.default_rng(1).permutation(len(y))[:1500]
    X, y = X[some].toarray(), y[some]
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    options = {"loss": "modified_huber", "lam": 1e-8 / len(y), "l1_ratio": 0.5}
    found = adasdca.solve(X, y, **options, fit_intercept=True, random_state=0)
    assert found.converged


def test_a_path_sums_the_matrix_once(monkeypatch):
    X, y = table("dense")
    sums = []
    inner = adasdca.backends.cpu_term.dense_gram

    def counted(*args):
        sums.append(1)
        return inner(*args)

    monkeypatch.setattr("adasdca.backends.cpu_term.dense_gram", counted)
    path = adasdca.path(X, y, loss="squared", Cs=np.logspace(-3, 1, 7), l1_ratio=0.5)
    assert path.converged.all()
    assert len(sums) == 1


def test_weights_have_a_matrix_of_their_own():
    """Rows that are checked once may come with other weights."""
    X, y = table("dense")
    rows = adasdca.problem.data.CheckedRows(adasdca.problem.data.check_rows(X))
    options = {"loss": "squared", "lam": 0.1, "l1_ratio": 0.5, "tol": 1e-9, "random_state": 0}
    for weight in (None, np.linspace(0.1, 3.0, len(y)), np.linspace(3.0, 0.1, len(y))):
        kept = adasdca.solve(rows, y, sample_weight=weight, **options)
        fresh = adasdca.solve(X, y, sample_weight=weight, **options)
        np.testing.assert_array_equal(kept.coef, fresh.coef)


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("l1_ratio", [0.1, 0.5, 1.0])
def test_columns_that_add_up_to_nothing(l1_ratio, kind):
    """A matrix of few digits has negative eigenvalues there, and no minimum."""
    rng = np.random.default_rng(0)
    codes = rng.integers(4, size=(600, 30))
    X = (codes[:, :, None] == np.arange(4)).reshape(600, 120).astype(kind)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = np.sign(X[:, 0] + X[:, 5] + rng.normal(size=600))
    for lam in (1e-7, 1e-9):
        options = {"lam": lam, "l1_ratio": l1_ratio, "tol": 1e-6, "random_state": 0}
        found = adasdca.solve(X, y, loss="squared", **options)
        assert found.converged
        assert found.phases[0].rounds == 1


def test_a_matrix_without_a_minimum_is_noticed(monkeypatch):
    """Where rounding takes more of the curvature than is added, the digits of doubles are asked."""
    X, y = table("floats")
    kinds = []
    inner = CpuTerm.gram

    def worse(*args, **kwargs):
        found = inner(*args, **kwargs)
        kinds.append(found.matrix.dtype)
        if found.single:
            found.matrix.flat[:: len(found.matrix) + 1] -= 1e3
        return found

    monkeypatch.setattr(CpuTerm, "gram", worse)
    found = adasdca.solve(X, y, loss="squared", lam=0.1, l1_ratio=0.5, tol=1e-9, random_state=0)
    assert found.converged
    assert found.phases[0].rounds == 1
    assert kinds == [np.float32, np.float64]


@pytest.mark.parametrize("seed", range(3))
def test_one_step_certifies_a_lasso_in_raw_units(seed):
    rng = np.random.default_rng(seed)
    n = 20_000
    mean = np.array([3.9, 28.6, 2636.0, 538.0, 1425.0, 499.0, 35.6, -119.6])
    scale = np.array([1.9, 12.6, 2181.0, 421.0, 1132.0, 382.0, 2.1, 2.0])
    X = np.abs(mean + scale * rng.standard_normal((n, 8))) * np.sign(mean)
    y = 2e5 + 4e4 * (X[:, 0] - 3.9) - 4e4 * (X[:, 6] - 35.6) + 7e4 * rng.standard_normal(n)
    found = adasdca.solve(
        X, y, loss="squared", lam=1 / n, l1_ratio=1.0, fit_intercept=True, tol=1e-6
    )
    assert found.status.value == "converged"
    assert len(found.history) == 2  # the start, and where the step ends
