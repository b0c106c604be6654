"""Rows in parts are the same problem: the same optimum, and a certificate that holds."""

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
from adasdca.backends.base import FOREVER
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.part import Part
from adasdca.backends.parts import PartsBackend
from adasdca.backends.teams import LocalTeam
from adasdca.problem.problem import Problem
from parted import cut, three_parts
from test_backends import data
from test_certificates_exactly import KINDS, Exact, check, make


def test_the_certificate_holds_in_exact_numbers():
    for number, kind in enumerate(KINDS):
        tol = 0.0 if number % 3 else 1e-6
        X, y, options, weight = make(kind, number)
        exact = Exact(X, y, weight, options["lam"], options["fit_intercept"])
        best = exact.optimum()
        least = exact.value(best)
        sol = adasdca.solve(
            X, y, loss="squared", tol=tol, max_epochs=20, random_state=0, backend=three_parts,
            **options,
        )  # fmt: skip
        check(sol, exact, best, least)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_parts_certify_a_point_like_the_whole(loss, intercept):
    X, y = data(loss)
    problem = Problem.checked(X, y, loss=loss, lam=1e-3, fit_intercept=intercept)
    whole, parts = LocalBackend(problem), three_parts(problem)
    rng = np.random.default_rng(0)
    w, beta = 1e-3 * rng.normal(size=X.shape[1]), y * rng.uniform(size=len(y))
    parts.restart(beta, 0.0)
    here = parts.survey(frozenset(), 1e9)
    there = parts.certify(w, 0.1, here.beta)
    expected = whole.certify(w, 0.1, beta)
    assert there.primal == pytest.approx(expected.primal, rel=1e-14)
    assert there.gap == pytest.approx(expected.gap, rel=1e-10)
    assert there.rounding >= 0.5 * expected.rounding
    assert np.array_equal(parts.gather(here.beta), beta)


def test_sparse_rows_of_many_features_by_conjugate_gradients():
    rng = np.random.default_rng(3)
    X = sp.random(150, 4000, 0.01, "csr", random_state=rng)
    y = np.where(X @ rng.normal(size=4000) > 0, 1.0, -1.0)
    options = {"loss": "logistic", "lam": 1e-3, "tol": 1e-8, "fit_intercept": True}
    whole = adasdca.solve(X, y, **options)
    parts = adasdca.solve(X, y, backend=three_parts, **options)
    assert parts.converged
    assert abs(whole.primal - parts.primal) <= whole.gap + parts.gap


def test_features_that_rest_are_left_out_in_parts():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 1500))
    y = X[:, :5] @ np.arange(1.0, 6.0) + 0.1 * rng.normal(size=80)
    options = {"loss": "squared", "lam": 0.1, "l1_ratio": 0.9, "tol": 1e-7}
    whole = adasdca.solve(X, y, **options)
    parts = adasdca.solve(X, y, backend=three_parts, **options)
    assert parts.converged
    assert abs(whole.primal - parts.primal) <= whole.gap + parts.gap
    assert np.count_nonzero(parts.coef) < 50


@pytest.mark.parametrize("intercept", [False, True])
def test_the_matrix_of_wide_parts_has_few_digits_and_their_product_all(intercept):
    rng = np.random.default_rng(0)
    X, y = 2.0 + rng.normal(size=(200, 80)), rng.choice([-1.0, 1.0], 200)
    problem = Problem.checked(X, y, loss="logistic", lam=1e-3, fit_intercept=intercept)
    grams = []
    for backend in (LocalBackend(problem), three_parts(problem)):
        term = backend.term()
        term.place(0.1 * np.ones(80), 0.2)
        grams.append(term.gram(intercept, FOREVER, rough=True))
    local, parts = grams
    assert local.single
    assert parts.single
    size = np.abs(local.matrix).max()
    np.testing.assert_allclose(np.tril(parts.matrix - local.matrix), 0.0, atol=1e-5 * size)
    p = rng.normal(size=80)
    np.testing.assert_allclose(parts.product(p), local.product(p), rtol=0, atol=1e-11 * size)


def test_the_order_in_which_parts_answer_changes_no_bit():
    class Backwards(LocalTeam):
        def ask(self, command, *args, each=None):
            each = [None] * len(self._parts) if each is None else [[x] for x in each]
            pairs = list(zip(self._parts, each, strict=True))
            said = [part.do(command, *args, *(more or [])) for part, more in reversed(pairs)]
            yield from reversed(said)

    X, y = data("hinge")
    options = {"loss": "hinge", "lam": 1e-3, "fit_intercept": True, "tol": 1e-8}
    found = []
    for team in (LocalTeam, Backwards):

        def backend(problem, team=team):
            return PartsBackend(problem, team(cut(problem, [0, 30, 90, len(y)])))

        found.append(adasdca.solve(X, y, backend=backend, **options))
    first, second = found
    assert np.array_equal(first.coef, second.coef)
    assert first.certificate == second.certificate


def test_what_nobody_holds_is_forgotten():
    class Counting(Part):
        most = 0

        def do(self, command, *args):
            said = super().do(command, *args)
            self.most = max(self.most, len(self._vectors) + 4 * len(self._terms))
            return said

    X, y = data("hinge")
    made = []

    def backend(problem):
        made.append(Counting(problem))
        return PartsBackend(problem, LocalTeam(made))

    sol = adasdca.solve(X, y, loss="hinge", lam=1e-3, tol=1e-10, backend=backend)
    assert sol.converged
    assert made[0].most <= 20


def test_a_warm_start_in_parts():
    X, y = data("logistic")
    options = {"loss": "logistic", "lam": 1e-3, "fit_intercept": True}
    before = adasdca.solve(X, y, tol=1e-9, **options)
    after = adasdca.solve(X, y, tol=1e-6, warm_start=before, backend=three_parts, **options)
    assert after.converged
    assert after.n_epochs == 0
