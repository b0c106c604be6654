"""Passes over all rows against SciPy's products."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from adasdca.backends.cpu import LocalBackend
from adasdca.duality import error_bounds
from adasdca.duality.error_bounds import CentredRows, Region
from adasdca.problem.losses import Logistic, Squared
from adasdca.problem.problem import Problem
from adasdca.problem.products import RowProducts


@pytest.mark.parametrize("pack", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("longest", [3, 200], ids=["short", "long"])
def test_passes_over_rows_of_many_lengths(longest, pack):
    """Passes take the rows of a block by length; what they say of a row must be that row's."""
    rng = np.random.default_rng(7)
    n, d = 700, 300
    lengths = rng.integers(0, longest + 1, n)
    X = sp.csr_matrix(
        (
            rng.normal(size=lengths.sum()),
            np.concatenate([np.sort(rng.choice(d, k, replace=False)) for k in lengths]),
            np.concatenate([[0], lengths.cumsum()]),
        ),
        shape=(n, d),
    )
    y = rng.choice([-1.0, 1.0], n)
    beta = y * rng.uniform(size=n)
    problem = Problem.checked(
        X,
        y,
        loss="logistic",
        lam=0.01,
        l1_ratio=0.0,
        bounds=None,
        sample_weight=None,
        fit_intercept=False,
    )
    backend = LocalBackend(problem, pack=pack)
    backend.workspace.pack()
    assert (backend.packed_bytes > 0) == pack
    w, scores, u = rng.normal(size=d), np.empty(n), np.empty(d)
    backend.workspace.scores(w, scores, 1)
    np.testing.assert_allclose(scores, X @ w, rtol=1e-12, atol=1e-12)
    backend.workspace.combine(beta, u, 1)
    np.testing.assert_allclose(u, X.T @ beta / (0.01 * n), rtol=1e-12, atol=1e-12)
    backend.workspace.place(beta, w, 0.0)
    survey = backend.survey(frozenset({"score", "residue"}))
    np.testing.assert_allclose(survey.score, X @ w, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(survey.beta, beta)
    np.testing.assert_allclose(survey.residue, beta - y / (1 + np.exp(y * (X @ w))), atol=1e-12)
    np.testing.assert_allclose(survey.curvature * 0.01 * n, X.multiply(X).sum(axis=1).A1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["dense", "fortran", "csr", "csr64", "duplicates"])
def test_lengths_of_rows_and_distances(form, dtype):
    rng = np.random.default_rng(8)
    X = (rng.normal(size=(300, 11)) * (rng.random((300, 11)) < 0.5) + 3.0).astype(dtype)
    centre, rows = rng.normal(size=11), X
    if form == "fortran":
        rows = np.asfortranarray(X)
    elif form != "dense":
        rows = sp.csr_array(X)
    if form == "csr64":
        rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    if form == "duplicates":  # every entry in two halves, one after the other
        parts = (np.repeat(rows.data / 2, 2), np.repeat(rows.indices, 2), 2 * rows.indptr)
        rows = sp.csr_array(parts, shape=X.shape)
    lengths, apart = RowProducts(rows).lengths_about(centre)
    exact = X.astype(np.float64)
    np.testing.assert_allclose(lengths, np.linalg.norm(exact, axis=1), rtol=1e-14)
    np.testing.assert_allclose(apart, np.linalg.norm(exact - centre, axis=1), rtol=1e-12)
    if form == "duplicates":
        assert rows.nnz == 2 * X.size  # what is the user's stays


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [11, 40])
@pytest.mark.parametrize("n", [1, 7, 8, 300, 4100])
def test_scores_come_with_the_farthest_row(n, d, dtype):
    """Of dense rows; the bounds of a cloud are the same either way, and hold."""
    rng = np.random.default_rng(n)
    X, w, y = (
        (3.0 + rng.normal(size=(n, d))).astype(dtype),
        rng.normal(size=d),
        rng.normal(size=n),
    )
    X[n // 2] += 5.0
    exact, centre = X.astype(np.float64), rng.normal(size=d)
    scores, apart = RowProducts(X).scores_about(centre, w, 0.25)
    np.testing.assert_allclose(scores, exact @ w + 0.25, rtol=1e-12, atol=1e-12)
    assert apart == pytest.approx(np.linalg.norm(exact - centre, axis=1).max(), rel=1e-12)
    assert RowProducts(sp.csr_array(X)).scores_about(centre, w, 0.25) is None
    error = []
    for rows, count in itertools.product((X, sp.csr_array(X)), (1, 3)):
        cloud = CentredRows(rows)
        for found in cloud.scores([w] * count, [0.25] * count):
            np.testing.assert_allclose(found, scores, rtol=1e-12, atol=1e-12)
            error.append(cloud.intercept_error(found, y, None, Squared(), w, 0.25, 1e-3))
    np.testing.assert_allclose(error, error[0], rtol=1e-6)
    for rows, count in itertools.product((X, sp.csr_array(X)), (n, 7)):
        some = exact[:: -(-n // count)].mean(axis=0)
        np.testing.assert_allclose(RowProducts(rows).mean_of_some(count), some, rtol=1e-12)
    cloud = CentredRows(X)
    list(cloud.scores([w], [0.25]))
    assert cloud.longest >= np.linalg.norm(exact, axis=1).max()
    assert cloud.reach >= np.linalg.norm(exact - cloud.centre, axis=1).max()


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_the_bounds_of_more_models_take_no_more_passes(kind, monkeypatch):
    """A fit that ends for its time has one model for each class to bound after its end."""
    rng = np.random.default_rng(0)
    X, passes = rng.normal(size=(50, 4)), []
    for count, most in ((2, 1000), (9, 1000), (9, 100)):
        monkeypatch.setattr(error_bounds, "LARGE", most)
        models = [SimpleNamespace(coef=w, intercept=0.1, radius=1e-3)
                  for w in rng.normal(size=(count, 4))]  # fmt: skip
        rows = RowProducts(kind(X))
        Region.of_models(models, rows, rng.choice([-1.0, 1.0], (count, 50)), None, Logistic())
        passes.append(rows.passes)
    assert passes[0] == passes[1]
    assert passes[2] > passes[0]  # of so many rows the scores of two models only are kept
