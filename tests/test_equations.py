"""The equations of a Newton step, in three ways, against NumPy; and what they are made of."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
import cases
from adasdca.auto.costs import Costs
from adasdca.auto.equations import EquationChoice
from adasdca.backends import blas
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.cpu_term import CpuTerm
from adasdca.backends.facts import RowFacts
from adasdca.engine.interruption import interruption
from adasdca.newton.equations import ConjugateGradients, Equations, solve_by_features
from adasdca.newton.gradients import conjugate_gradients
from adasdca.problem.problem import Problem
from second_order import FOREVER, STORAGES, WAYS, make_problem, solver

EXACT = {"features": 1e-9, "rows": 1e-9, "iterations": 1e-6}


def placed(problem, rng):
    """A term somewhere with curvature."""
    term = LocalBackend(problem).term()
    term.place(0.3 * rng.normal(size=problem.rows.shape[1]), 0.1)
    assert term.curved > 0
    return term


def dense_matrix(X, h, diagonal, intercept):
    wide = np.column_stack([X, np.ones(len(X))]) if intercept else X
    matrix = wide.T @ (h[:, None] * wide)
    matrix[np.diag_indices(X.shape[1])] += diagonal
    return matrix


def solved(way, term, equations):
    if way == "iterations":
        return ConjugateGradients(1e-10).solve(term, equations, FOREVER)
    return solver(way)(term, equations, FOREVER)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", cases.SMOOTH)
def test_directions(loss, storage, intercept, weighted):
    rng = np.random.default_rng(2)
    for d in (7, 90):
        X, _, problem = make_problem(loss, storage, intercept, weighted, d=d)
        term = placed(problem, rng)
        mu = problem.strength * problem.total
        balance = float(rng.normal()) if intercept else 0.0
        right = rng.normal(size=d)
        for diagonal in (mu, mu * rng.exponential(size=d)):
            matrix = dense_matrix(X, term.curvature, diagonal, intercept)
            wanted = np.linalg.solve(matrix, np.append(right, balance)[: len(matrix)])
            for way in WAYS:
                if way == "rows" and diagonal is not mu:
                    continue
                found = solved(way, term, Equations(diagonal, right, balance, intercept))
                both = np.append(*found) if intercept else found[0]
                size = np.abs(wanted).max()
                np.testing.assert_allclose(both, wanted, rtol=0, atol=EXACT[way] * size)
                assert intercept or found[1] == 0.0


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("storage", STORAGES)
def test_what_a_term_knows_of_its_curvature(storage, intercept):
    """The matrix about the weighted mean, its diagonal and its products are of one matrix."""
    rng = np.random.default_rng(0)
    X, _, problem = make_problem("logistic", storage, intercept, True)
    term = placed(problem, rng)
    h = term.curvature
    matrix, column, mass = term.gram(intercept, FOREVER)[:3]
    mean = h @ X / h.sum() if intercept else np.zeros(7)
    expected = (X - mean).T @ (h[:, None] * (X - mean))
    np.testing.assert_allclose(np.tril(matrix), np.tril(expected), rtol=1e-6, atol=1e-6)
    if intercept:
        np.testing.assert_allclose(column, h @ X, rtol=1e-12, atol=1e-12)
        assert mass == pytest.approx(h.sum())
    else:
        assert not column.any()
        assert mass == 0
    (squares, *sums), total = term.diagonal(intercept)
    np.testing.assert_allclose(squares, h @ X**2, rtol=1e-12)
    assert len(sums) == intercept
    for each in sums:
        np.testing.assert_allclose(each, h @ X, rtol=1e-12, atol=1e-12)
    assert total == pytest.approx(h.sum())
    p, q = rng.normal(size=7), 0.7
    image, rest = term.curve(p, q)
    np.testing.assert_allclose(image, X.T @ (h * (X @ p + q)), rtol=1e-10, atol=1e-12)
    assert rest == pytest.approx(h @ (X @ p + q))


@pytest.mark.parametrize("way", ["features", "rows"])
def test_digits_of_differences_far_from_0(way):
    """Rows a million away from 0 and 1 apart: what the intercept takes must be taken first."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(60, 5))
    X = Z + 1e6
    y = Z @ rng.normal(size=5)
    problem = Problem.checked(X, y, loss="squared", lam=1 / 60, fit_intercept=True)
    term = placed(problem, rng)
    right = rng.normal(size=5)
    dv, db = solved(way, term, Equations(1.0, right, 0.0, True))
    centred = X - X.mean(axis=0)
    wanted = np.linalg.solve(centred.T @ centred + np.eye(5), right)
    tolerance = 1e-8 if way == "features" else 1e-2
    np.testing.assert_allclose(dv, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())
    assert db == pytest.approx(-X.mean(axis=0) @ dv, rel=1e-6)


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("way", WAYS)
def test_no_row_has_curvature(way, intercept):
    X, y, problem = make_problem("squared_hinge", "sparse", intercept, d=90)
    term = LocalBackend(problem).term()
    separating = np.linalg.lstsq(np.vstack([X[:3], X[4:]]), 9 * np.delete(y, 3), rcond=None)[0]
    term.place(separating, 0.0)
    if intercept:
        term.scores = 9 * y
        term._derive()
    else:
        term.curvature[3] = 0.0  # the row of zeros is inside every margin
    assert not term.curvature.any()
    mu = problem.strength * problem.total
    right = np.arange(90.0)
    dv, db = solved(way, term, Equations(mu, right, 0.0, intercept))
    np.testing.assert_allclose(dv, right / mu, rtol=1e-12)
    assert db == 0.0


def test_by_rows_where_the_ridge_is_rounding():
    """A column of 1e9 makes all inner products alike: no digits are left, and that is noticed."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 200))
    X[:, 0] = 1e9 * (1 + 1e-3 * rng.random(30))
    problem = Problem.checked(X, rng.normal(size=30), loss="squared", lam=300.0)
    term = placed(problem, rng)
    right = X.T @ rng.normal(size=30)
    assert term.solve_by_rows(term.mu, right, 0.0, False, FOREVER) is None


def test_iterations_become_finer_where_they_lead_nowhere():
    """A rough step leaves out the flat directions, and may do so for ever."""
    rng = np.random.default_rng(0)
    X = np.outer(rng.normal(size=30), np.ones(5)) + 1e-3 * rng.normal(size=(30, 5))
    problem = Problem.checked(X, rng.normal(size=30), loss="squared", lam=1e-9)
    term = placed(problem, rng)
    right = np.ones(5) + 1e-2 * rng.normal(size=5)
    matrix = dense_matrix(X, term.curvature, problem.strength * 30, False)
    wanted = np.linalg.solve(matrix, right)
    iterations = ConjugateGradients()
    equations = Equations(problem.strength * 30, right, 0.0, False)
    off = []
    for _ in range(36):
        dv, _ = iterations.solve(term, equations, FOREVER)
        off.append(np.linalg.norm(dv - wanted) / np.linalg.norm(wanted))
    assert off[0] > 0.5
    assert off[-1] < 1e-3
    # Not at once: kinks that are crossed one by one look the same, and finer steps do not help.
    assert iterations.accuracy >= 1e-6
    for k in range(30):
        iterations.solve(term, equations._replace(right=right * 0.5**k), FOREVER)
    assert iterations.accuracy == 0.1


def test_iterations_do_not_compare_one_objective_with_another():
    """The first right-hand sides of a new round are larger than the last ones of another."""
    rng = np.random.default_rng(0)
    _, _, problem = make_problem("squared_hinge", d=20)
    iterations, right = ConjugateGradients(), rng.normal(size=20)
    for _ in range(10):
        term = placed(problem, rng)
        for k in (0, 3, 6):
            iterations.solve(term, Equations(1.0, right * 0.1**k, 0.0, False), FOREVER)
    assert iterations.accuracy == 0.1


def test_iterations_end_where_the_last_step_has_enough():
    rng = np.random.default_rng(0)
    problem = Problem.checked(
        rng.normal(size=(60, 40)), rng.normal(size=60), loss="squared", lam=1e-6
    )
    term, right = placed(problem, rng), rng.normal(size=40)
    equations = Equations(problem.mu, right, 0.0, False)
    taken = {}
    for enough in (0.0, 0.03, 1e9):
        iterations = ConjugateGradients(1e-9)
        iterations.solve(term, equations._replace(enough=enough), FOREVER)
        taken[enough] = iterations.taken
    assert taken[0.0] > taken[0.03] > taken[1e9] > 0


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("loss", cases.SMOOTH)
def test_by_rows_in_the_duals_where_a_step_ends(loss, intercept, weighted):
    rng = np.random.default_rng(2)
    *_, problem = make_problem(loss, "dense", intercept, weighted, d=90)
    term = LocalBackend(problem).term()
    u, balance, _ = term.place(0.3 * rng.normal(size=90), 0.1)
    curved = term.curved
    assert curved > 0
    mu, gradient = problem.mu, 1e-3 * rng.normal(size=90)
    right = mu * u - gradient
    plain = term.solve_by_rows(mu, right, balance, intercept, FOREVER)
    ends = term.solve_by_rows(mu, right, balance, intercept, FOREVER, gradient)
    np.testing.assert_allclose(ends[0], plain[0], rtol=1e-7, atol=1e-9 * np.abs(plain[0]).max())
    assert ends[1] == pytest.approx(plain[1], rel=1e-7, abs=1e-12)


def test_by_rows_from_afar_in_raw_units():
    """Of the duals' sum and the right-hand side, 1e24 times their difference, no digit is left."""
    rng = np.random.default_rng(0)
    n, d = 10, 400
    X, y = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-8, 12, d), 1e7 * rng.normal(size=n)
    problem = Problem.checked(X, y, loss="squared", lam=1 / n)
    term = LocalBackend(problem).term()
    right = problem.mu * term.place(np.zeros(d), 0.0).u
    assert term.solve_by_rows(problem.mu, right, 0.0, False, FOREVER) is None
    w, _ = term.solve_by_rows(problem.mu, right, 0.0, False, FOREVER, np.zeros(d))
    exact = X.T @ np.linalg.solve(X @ X.T + problem.mu * np.eye(n), y)
    np.testing.assert_allclose(w, exact, rtol=1e-9, atol=1e-9 * np.abs(exact).max())


def test_by_rows_where_they_are_almost_fitted():
    """There the Schur complement in the features is a difference of nearly equal numbers."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 200)), rng.normal(size=20)
    problem = Problem.checked(X, y, loss="squared", lam=1e-8, fit_intercept=True)
    term = LocalBackend(problem).term()
    term.place(np.zeros(200), 0.0)
    mu = problem.strength * problem.total
    _, db = term.solve_by_rows(term.mu, X.T @ y, float(y.sum()), True, FOREVER)
    inverse = np.linalg.inv(mu * np.eye(20) + X @ X.T)
    assert db == pytest.approx((inverse @ y).sum() / inverse.sum(), rel=1e-5)


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
def test_singular_matrices_still_give_a_way_down(scale):
    """Features repeated and features of zeros, and hardly a penalty to tell them apart."""
    rng = np.random.default_rng(0)
    X = scale * rng.normal(size=(50, 3))
    X = np.column_stack([X, X, np.zeros(50)])
    problem = Problem.checked(X, rng.normal(size=50), loss="squared", lam=1e-30, fit_intercept=True)
    term = placed(problem, rng)
    right = np.append(np.tile(scale * rng.normal(size=3), 2), 0.0)
    for way in ("features", "iterations"):
        dv, db = solved(way, term, Equations(problem.strength * 50, right, 0.3, True))
        assert np.isfinite(dv).all()
        assert right @ dv + 0.3 * db > 0
        image, _ = term.curve(dv, db)
        np.testing.assert_allclose(image[:6], right[:6], rtol=1e-5)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("storage", STORAGES)
def test_no_time_is_left(way, storage):
    *_, problem = make_problem("squared", storage, d=90)
    term = placed(problem, np.random.default_rng(0))
    late = time.perf_counter() - 1.0
    equations = Equations(1.0, np.ones(90), 0.0, False)
    if way == "rows":
        assert term.solve_by_rows(term.mu, equations.right, 0.0, False, late) is None
    else:
        assert solver(way)(term, equations, late) is None


def test_conjugate_gradients_leave_the_share_asked_for():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 30))
    matrix, right = A.T @ A + 0.1 * np.eye(30), rng.normal(size=30)
    scale = matrix.diagonal()
    products = []

    def product(p, q):
        products.append(1)
        return matrix @ p, 0.0 * q

    for accuracy in (0.5, 0.1, 1e-4, 1e-10):
        x, _, _, done = conjugate_gradients(
            product, lambda r, t: (r / scale, t), (right, 0.0), accuracy, FOREVER
        )
        assert done
        left = right - matrix @ x
        assert left @ (left / scale) <= accuracy**2 * (right @ (right / scale)) * (1 + 1e-9)
        assert right @ x > 0
    assert len(products) < 150


def test_conjugate_gradients_end_where_they_gain_little():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 40))
    matrix, right = A.T @ A + 1e-6 * np.eye(40), A.T @ rng.normal(size=40)

    def iterated(gain):
        x, _, taken, done = conjugate_gradients(
            lambda p, q: (matrix @ p, q), lambda r, t: (r, t), (right, 0.0), 1e-9, FOREVER,
            gain=gain,
        )  # fmt: skip
        assert done
        return right @ x - 0.5 * x @ matrix @ x, taken

    values, counts = zip(*map(iterated, (0.0, 0.1, 0.5, 1.0)), strict=True)
    assert list(counts) == sorted(counts, reverse=True)
    assert counts[2] < 0.5 * counts[0]
    assert values[0] >= values[2] > 0.5 * values[0]


@pytest.mark.parametrize("storage", STORAGES)
def test_coarse_iterations_leave_nothing_of_the_intercept(storage):
    rng = np.random.default_rng(3)
    X, _, problem = make_problem("logistic", storage, True, True, d=90)
    term = placed(problem, rng)
    mu, h, right = problem.strength * problem.total, term.curvature, rng.normal(size=90)
    gradients = ConjugateGradients(0.1)
    dv, db = gradients.solve(term, Equations(mu, right, 3.0, True), FOREVER)
    assert gradients.taken < 30
    assert h @ (X @ dv + db) == pytest.approx(3.0, rel=1e-9)


def test_conjugate_gradients_of_a_matrix_that_is_0():
    """No curvature at all: the scaled gradient, for the line search to mend."""
    x, y, _, _ = conjugate_gradients(
        lambda p, q: (0 * p, 0 * q), lambda r, t: (r / 2.0, t), (np.ones(3), 1.0), 0.1, FOREVER
    )
    np.testing.assert_array_equal(x, 0.5)
    assert y == 1.0


@pytest.mark.parametrize("way", WAYS)
def test_every_way_reaches_the_optimum(way, monkeypatch):
    asked = []

    def equations(self, steps, active, *_):
        asked.append(active)
        return {way: 0.0, "features": 1.0} if way != "features" else {way: 0.0}

    monkeypatch.setattr(Costs, "equations", equations)
    for loss in cases.LOSSES:
        for intercept, weighted in ((False, True), (True, False)):
            for storage in ("dense", "sparse-single"):
                X, y, problem = make_problem(loss, storage, intercept, weighted, d=50, lam=0.01)
                options = {
                    "loss": loss,
                    "lam": 0.01,
                    "fit_intercept": intercept,
                    "sample_weight": problem.weight,
                }
                sol = adasdca.solve(STORAGES[storage](X), y, tol=1e-9, random_state=0, **options)
                assert sol.converged, sol
                proof = adasdca.certify(
                    X, y, sol.coef, intercept=sol.intercept, dual_coef=sol.dual_coef, **options
                )
                assert proof.gap <= 2e-9 * proof.primal
    assert asked


def test_a_way_that_fails_is_left_for_another(monkeypatch):
    """By rows there may be nothing positive definite; the equations have an answer all the same."""
    _, _, problem = make_problem("logistic", d=90)
    term = placed(problem, np.random.default_rng(0))
    mu = problem.strength * problem.total
    equations = Equations(mu, np.ones(90), 0.0, False)
    wanted = solved("features", term, equations)[0]
    prices = {"rows": 0.0, "features": 1e9, "iterations": 2e9}
    monkeypatch.setattr(Costs, "equations", lambda *_: dict(prices))
    monkeypatch.setattr(type(term), "solve_by_rows", lambda *_: None)
    costs = Costs(RowFacts(problem.rows), problem.loss)
    found = EquationChoice(costs, True, 1.0)(term, equations, FOREVER)[0]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4 * np.abs(wanted).max())
    prices["iterations"] = 5e8
    roughly = EquationChoice(costs, True, 1.0)(term, equations, FOREVER)[0]
    assert 0 < np.abs(roughly - wanted).max() < 0.2 * np.abs(wanted).max()


def test_a_way_that_was_lost_in_rounding_is_tried_again_only_among_half_as_many_rows(monkeypatch):
    _, _, problem = make_problem("logistic", d=50)
    term, asked = placed(problem, np.random.default_rng(0)), []
    equations = Equations(problem.mu, np.ones(50), 0.0, False)
    prices = {"rows": 0.0, "features": 1e9}
    monkeypatch.setattr(Costs, "equations", lambda *_: dict(prices))
    monkeypatch.setattr(type(term), "solve_by_rows", lambda term, *_: asked.append(term.curved))
    choice = EquationChoice(Costs(RowFacts(problem.rows), problem.loss), True, 1.0)
    many = term.curved
    for curved in (many, many, many // 2 + 1, many // 2):
        term.curved = curved
        assert choice(term, equations, FOREVER) is not None
    assert asked == [many, many // 2]


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
def test_a_matrix_of_few_digits_preconditions(intercept):
    """One in single precision serves later steps, and what it solves has the digits of doubles."""
    rng = np.random.default_rng(0)
    X = 3.0 + rng.normal(size=(500, 90)) * 0.9 ** np.arange(90)
    y = np.where(rng.random(500) < 0.5, 1.0, -1.0)
    problem = Problem.checked(X, y, loss="logistic", lam=1e-4, fit_intercept=intercept)
    term = placed(problem, rng)
    balance = 0.3 if intercept else 0.0
    equations = Equations(problem.mu, rng.normal(size=90), balance, intercept)
    formed = term.gram(intercept, FOREVER, rough=True)
    assert formed.matrix.dtype == np.float32
    factor = blas.cholesky(formed.matrix, problem.mu)
    for most in (6, 40):  # the matrix of this point, and that of another one
        wanted = solve_by_features(term, equations, FOREVER)
        iterations = ConjugateGradients(accuracy=1e-9)
        found = iterations.solve(term, equations, FOREVER, factor=factor)
        np.testing.assert_allclose(found[0], wanted[0], rtol=0, atol=1e-6 * abs(wanted[0]).max())
        assert found[1] == pytest.approx(wanted[1], abs=1e-6)
        assert iterations.done
        assert iterations.taken <= most
        term.place(0.05 * rng.normal(size=90), 0.1)


def test_a_matrix_that_is_as_cheap_in_doubles_is_summed_once(monkeypatch):
    _, _, problem = make_problem("logistic", "sparse", d=90)
    term = placed(problem, np.random.default_rng(0))
    gram, sums = type(term).gram, []
    monkeypatch.setattr(type(term), "gram", lambda *a, **k: sums.append(k) or gram(*a, **k))
    monkeypatch.setattr(Costs, "equations", lambda *_: {"features": 1.0})
    solve = EquationChoice(Costs(RowFacts(problem.rows), problem.loss), True, 5.0)
    equations = Equations(problem.mu, np.ones(90), 0.0, False)
    for step in range(1, 4):
        assert solve(term, equations, FOREVER) is not None
        assert len(sums) == step


def test_the_matrix_of_a_squared_loss_is_summed_once_for_all_digits(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 90)) * np.exp(rng.normal(size=90))
    y = X @ rng.normal(size=90) + rng.normal(size=400)
    gram, sums = CpuTerm.gram, []
    monkeypatch.setattr(CpuTerm, "gram", lambda *a, **k: sums.append(k) or gram(*a, **k))
    monkeypatch.setattr(CpuTerm, "solve_by_rows", lambda *_: None)
    found = adasdca.solve(X, y, loss="squared", lam=1e-6, fit_intercept=True, tol=0.0)
    assert found.relative_gap < 1e-15
    assert sum(not options.get("rough") for options in sums) == 1


def test_a_matrix_that_single_precision_cannot_hold_is_summed_in_doubles():
    rng = np.random.default_rng(0)
    X = 1e25 * rng.normal(size=(200, 90))
    problem = Problem.checked(X, rng.normal(size=200), loss="squared", lam=1.0)
    term = placed(problem, rng)
    right = X.T @ rng.normal(size=200)
    wanted = np.linalg.solve(X.T @ X, right)
    with np.errstate(all="ignore"):
        found, _ = solve_by_features(term, Equations(1.0, right, 0.0, False), FOREVER, True)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())


def test_iterations_end_where_their_rate_tells_that_another_way_costs_less():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 60)) * np.exp(-0.2 * np.arange(60))
    X = X @ np.linalg.qr(rng.normal(size=(60, 60)))[0]
    y = X @ rng.normal(size=60) + 0.1 * rng.normal(size=300)
    problem = Problem.checked(X, y, loss="squared", lam=1e-5)
    term = LocalBackend(problem).term()
    right = problem.mu * term.place(np.zeros(60), 0.0).u
    equations = Equations(problem.mu, right, 0.0, False, value=0.5 * float(y @ y))
    for rival, fewest, most in ((10.0, 3, 9), (np.inf, 15, 2000)):
        iterations = ConjugateGradients(share=1e-6)
        iterations.solve(term, equations, FOREVER, rival=rival)
        assert fewest <= iterations.taken <= most
        assert iterations.done == (rival == np.inf)


def test_products_weighted_by_features_leave_nothing_unwritten():
    """What lies above the diagonal was memory as it came, and could overflow."""
    _, _, problem = make_problem("squared_hinge", "sparse", d=90)
    rows = np.arange(30)
    diagonal = np.linspace(1.0, 2.0, 90)
    for _ in range(3):
        np.full((30, 30), 1e308)  # memory that the next matrix may get
        _, matrix = LocalBackend(problem).term()._products(rows, diagonal, FOREVER)
        assert not np.triu(matrix, 1).any()
        X = problem.rows.matrix.toarray()[rows]
        np.testing.assert_allclose(matrix, np.tril((X / diagonal) @ X.T), rtol=1e-12)


@pytest.mark.parametrize("n", [1, 6, 7, 20, 50])
def test_a_factorisation_by_panels(n, monkeypatch):
    monkeypatch.setattr(blas, "WHOLE", 0)
    monkeypatch.setattr(blas, "PANEL", 7)
    rng = np.random.default_rng(n)
    X, right = rng.normal(size=(n, n + 3)), rng.normal(size=n)
    matrix = X @ X.T
    solve = blas.cholesky(np.tril(matrix), 0.5)
    np.testing.assert_allclose((matrix + 0.5 * np.eye(n)) @ solve(right), right, atol=1e-10)
    assert blas.cholesky(np.tril(matrix), 0.5, deadline=time.perf_counter()) is None
    with interruption() as around, around.heeded():
        around.wish()
        with pytest.raises(KeyboardInterrupt):
            blas.cholesky(np.tril(matrix), 0.5)
    matrix[-1, -1] = -1.0
    assert blas.cholesky(np.tril(matrix), 0.5) is None


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_iterations_in_unknowns_of_the_rows_end_at_the_gap_asked_for(intercept, weighted):
    """From any duals, with the duals that prove it; cut short they go on where they were."""
    _, _, problem = make_problem("squared", "sparse", intercept, weighted, n=60, d=200, lam=1e-3)
    backend, rng = LocalBackend(problem), np.random.default_rng(0)
    term, w, n, b = backend.term(), 0.1 * rng.normal(size=200), 60, 0.3 if intercept else 0.0
    found = term.place(w, b)
    right, balance = problem.mu * (found.u - w), found.balance if intercept else 0.0
    value = problem.total * backend.certify(w, b, term.duals()).primal
    equations = Equations(problem.mu, right, balance, intercept, value=value)
    taken = []
    for start in (np.zeros(n), rng.normal(size=n)):
        for share in (1e-2, 1e-8):
            steps = ConjugateGradients(share=share, start=start)
            dv, db = steps.solve(term, equations, FOREVER)
            assert steps.done
            taken.append(steps.taken)
            proof = backend.certify(w + dv, b + db, steps.duals)
            assert proof.gap <= 1.01 * share * proof.primal
            parts = ConjugateGradients(share=share, start=start)
            while True:
                again, _ = parts.solve(term, equations, FOREVER, most=3)
                if parts.done:
                    break
            np.testing.assert_array_equal(again, dv)
    assert taken[0] < taken[1]


def test_fewer_iterations_in_unknowns_of_fewer_rows():
    rng = np.random.default_rng(0)
    X = sp.csr_matrix(rng.poisson(0.05 * rng.lognormal(0, 2, 400), (120, 400)).astype(float))
    problem = Problem.checked(X, rng.normal(size=120), loss="squared", lam=1e-4)
    term = LocalBackend(problem).term()
    right = problem.mu * term.place(np.zeros(400), 0.0).u
    value = 0.5 * float(problem.y @ problem.y)
    equations = Equations(problem.mu, right, 0.0, False, value=value)
    taken = []
    for start in (None, np.zeros(120)):
        steps = ConjugateGradients(share=1e-3, start=start)
        steps.solve(term, equations, FOREVER)
        taken.append(steps.taken)
    assert 3 * taken[1] < taken[0]


@pytest.mark.parametrize("decades", [0, 8])
def test_no_iterations_in_unknowns_of_rows_whose_inner_products_have_no_digits(decades):
    """Columns of far different scales: in unknowns of the features the diagonal mends these."""
    rng = np.random.default_rng(0)
    scales = 10.0 ** (decades * rng.random(200))
    X = sp.csr_matrix(sp.random(60, 200, 0.1, random_state=0) @ sp.diags(scales))
    problem = Problem.checked(X, rng.normal(size=60), loss="squared", lam=1e-2)
    term = LocalBackend(problem).term()
    right = problem.mu * term.place(np.zeros(200), 0.0).u
    value = 0.5 * float(problem.y @ problem.y)
    equations = Equations(problem.mu, right, 0.0, False, value=value)
    steps = ConjugateGradients(share=1e-3, start=np.zeros(60))
    steps.solve(term, equations, FOREVER, most=60)
    assert (steps.duals is None) == (decades > 0)
