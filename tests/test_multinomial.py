"""The multinomial model: its optimum, its certificate, its invariances."""

import time
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import entropy
from sklearn.linear_model import LogisticRegression

import adasdca.multinomial.equations
import adasdca.problem.products
from adasdca import AdaSDCAClassifier, Status, _core
from adasdca.multinomial.blocks import ClassBlocks
from adasdca.multinomial.intercept import shift_error, solve_laplacian
from adasdca.multinomial.margins import ROUNDOFF, Multinomial, RowLosses, curvature_bound
from adasdca.multinomial.part import ClassPart, ClassTask
from adasdca.multinomial.parts import PartedMultinomial
from adasdca.multinomial.rows import LocalRows
from adasdca.multinomial.solver import solve_multinomial, solve_posed
from adasdca.problem.data import check_rows
from adasdca.problem.products import RowProducts


def blobs(n=60, d=5, k=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 0.5
    codes = np.argmax(X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k)), axis=1)
    codes[:k] = np.arange(k)
    return X, codes


def objective(X, codes, W, b, lam, weight=None):
    scores = X @ W.T + b
    loss = logsumexp(scores, axis=1) - scores[np.arange(len(codes)), codes]
    return np.average(loss, weights=weight) + 0.5 * lam * np.vdot(W, W)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_reaches_what_a_general_optimiser_finds(fit_intercept, weighted):
    X, codes = blobs()
    weight = np.random.default_rng(1).uniform(0.1, 3.0, len(codes)) if weighted else None
    k, d, lam = 4, X.shape[1], 0.02
    sol = solve_multinomial(
        X, codes, n_classes=k, lam=lam, sample_weight=weight, fit_intercept=fit_intercept, tol=1e-12
    )

    def f(v):
        W, b = v[: k * d].reshape(k, d), v[k * d :] if fit_intercept else 0.0
        return objective(X, codes, W, b, lam, weight)

    free = minimize(f, np.zeros(k * d + k * fit_intercept), method="BFGS", options={"gtol": 1e-9})
    assert sol.primal == pytest.approx(free.fun, rel=1e-9)
    assert sol.primal == pytest.approx(objective(X, codes, sol.coef, sol.intercept, lam, weight))
    assert abs(sol.intercept.sum()) < 1e-12


@pytest.mark.parametrize("direct", [True, False])
def test_every_certificate_on_the_way_encloses_the_optimum(direct, monkeypatch):
    monkeypatch.setattr(adasdca.multinomial.equations, "DIRECT", 10**6 if direct else 0)
    X, codes = blobs(n=200, seed=2)
    problem = {"n_classes": 4, "lam": 1e-3, "fit_intercept": True}
    best = solve_multinomial(X, codes, **problem, tol=1e-14)
    records = []
    solve_multinomial(X, codes, **problem, tol=1e-10, callback=records.append)
    assert len(records) >= 4
    for record in records:
        assert record.dual <= best.primal * (1 + 1e-13)
        assert record.primal >= best.dual * (1 - 1e-13)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_the_dual_value_is_that_of_the_dual_point(steps):
    X, codes = blobs()
    weight = np.random.default_rng(1).uniform(0.1, 3.0, len(codes))
    problem = {"n_classes": 4, "lam": 0.02, "sample_weight": weight, "fit_intercept": True}
    sol = solve_multinomial(X, codes, **problem, tol=0.0, max_epochs=steps)
    alpha, total = sol.dual_coef.T, weight.sum()
    p = np.eye(4)[codes] - alpha / weight[:, None]
    u = alpha.T @ X / (0.02 * total)
    dual = np.average(entropy(p, axis=1), weights=weight) - 0.01 * np.vdot(u, u)
    assert sol.dual == pytest.approx(dual, rel=1e-12)
    assert np.abs(alpha.sum(axis=0)).max() < 1e-12 * total


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_float32_and_sparse_rows(form, monkeypatch):
    monkeypatch.setattr(adasdca.problem.products, "BLOCK", 1000)  # ten blocks of values
    X, codes = blobs(n=2000)
    X = X.astype(np.float32)
    problem = {"n_classes": 4, "lam": 1e-3, "fit_intercept": True, "tol": 1e-12}
    sol = solve_multinomial(form(X), codes, **problem)
    reference = solve_multinomial(X.astype(np.float64), codes, **problem)
    np.testing.assert_allclose(sol.coef, reference.coef, rtol=1e-9, atol=1e-12)


def test_ends_and_their_reasons():
    X, codes = blobs()
    problem = {"n_classes": 4, "lam": 0.01}
    assert solve_multinomial(X, codes, **problem, max_epochs=1).status is Status.EPOCH_LIMIT
    assert solve_multinomial(X, codes, **problem, max_time=0.0).status is Status.TIME_LIMIT
    stopped = solve_multinomial(X, codes, **problem, callback=lambda record: record.epoch >= 2)
    assert stopped.status is Status.INTERRUPTED
    assert stopped.n_epochs == 2

    def interrupt(record):
        raise KeyboardInterrupt

    assert solve_multinomial(X, codes, **problem, callback=interrupt).status is Status.INTERRUPTED
    exact = solve_multinomial(X, codes, **problem, tol=0.0)
    assert exact.gap <= 1e-14 * exact.primal
    assert exact.status is Status.STALLED
    assert f"no certificate below {exact.relative_gap:.2g}" in exact.message
    assert exact.message in str(exact)


def test_warm_start_goes_on():
    X, codes = blobs()
    problem = {"n_classes": 4, "lam": 0.01, "fit_intercept": True}
    first = solve_multinomial(X, codes, **problem, tol=1e-10)
    again = solve_multinomial(
        X, codes, **problem, tol=1e-9, warm_start=(first.coef, first.intercept)
    )
    assert again.n_epochs == 0
    assert again.converged


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_products(dtype, form, monkeypatch):
    monkeypatch.setattr(adasdca.problem.products, "BLOCK", 1000)
    rng = np.random.default_rng(0)
    n, d = 61, 50
    dense = np.where(rng.random((n, d)) < 0.5, rng.normal(size=(n, d)), 0.0).astype(dtype)
    dense[[0, 20, 40, 60]] = 0.0  # empty rows, at the ends of blocks too
    X = dense.astype(np.float64)
    rows = RowProducts(form(dense))
    w, r = rng.normal(size=(2, d)), rng.normal(size=(n, 2))
    np.testing.assert_allclose(rows.times(w), X @ w.T, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(rows.transposed(r), r.T @ X, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(rows.squares(r), r.T @ X**2, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(rows.norms(), np.linalg.norm(X, axis=1), rtol=1e-12)
    extended = np.hstack([X, np.ones((n, 1))])
    gram = extended.T @ (r[:, :1] * extended)
    np.testing.assert_allclose(rows.gram(r[:, 0]), gram, rtol=1e-8, atol=1e-8)
    assert rows.passes == 5
    blocks = list(rows.dense_blocks(50, 1000))
    np.testing.assert_array_equal(np.vstack([block for _, block in blocks]), X)
    assert [part.stop - part.start for part, _ in blocks] == [20, 20, 20, 1]
    assert rows.passes == 6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("k", [3, 8, 11, 20, 27, 40])
def test_products_with_a_vector_for_every_class(dtype, form, k):
    rng = np.random.default_rng(k)
    n, d = 61, 50
    dense = np.where(rng.random((n, d)) < 0.5, rng.normal(size=(n, d)), 0.0).astype(dtype)
    dense[[0, 20, 40, 60]] = 0.0
    rows = check_rows(form(dense))
    centre = rng.normal(size=d)
    blocks = ClassBlocks(rows, k, centre, threads=1)
    X = dense.astype(np.float64) - (centre - blocks.offset)
    v, shift, r = rng.normal(size=(k, d)), rng.normal(size=k), rng.normal(size=(k, n))
    p, weight = rng.dirichlet(np.ones(k), n).T, rng.random(n)
    codes = rng.integers(k, size=n)
    scores = v @ X.T + shift[:, None]
    bent = weight * p * (scores - (p * scores).sum(axis=0))
    for real, digits in ((np.float64, 1e-11), (np.float32, 1e-4)):
        out, sums = blocks.curve(
            blocks.block(v, real), blocks.line(shift), blocks.block(p, real), codes, weight
        )
        np.testing.assert_allclose(blocks.classes(out), bent @ X, rtol=digits, atol=digits)
        np.testing.assert_allclose(sums[:k], bent.sum(axis=1), rtol=digits, atol=digits)
        assert not out[:, k:].any()
        gathered = blocks.classes(blocks.gather(r, real))
        np.testing.assert_allclose(gathered, r @ X, rtol=digits, atol=10 * digits)
        squared = blocks.classes(blocks.gather(r, real, squared=True))
        np.testing.assert_allclose(squared, r @ X**2, rtol=digits, atol=10 * digits)
    np.testing.assert_allclose(blocks.times(v), v @ X.T, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_products_are_the_same_bits_on_any_number_of_threads(form):
    """So many rows are taken in parts, whose sums are added up."""
    rng = np.random.default_rng(0)
    n, d, k = 20_001, 64, 20
    dense = rng.normal(size=(n, d))
    rows, centre = check_rows(form(dense)), np.zeros(d)
    v, p = rng.normal(size=(k, d)), rng.dirichlet(np.ones(k), n).T
    codes, found = rng.integers(k, size=n), []
    _core.set_thread_work(1.0)
    try:
        for threads in (1, 2, 5):
            blocks = ClassBlocks(rows, k, centre, threads)
            at = blocks.block(v), blocks.line(np.zeros(k)), blocks.block(p)
            found += [  # the second time sums are where those of the first were
                (*blocks.curve(*at, codes, None), blocks.gather(p), blocks.times(v))
                for _ in range(2)
            ]
    finally:
        _core.set_thread_work(1e6)
    for other in found[1:]:
        for one, again in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, again)
    scores = v @ dense.T
    bent = p * (scores - (p * scores).sum(axis=0))
    np.testing.assert_allclose(blocks.classes(found[0][0]), bent @ dense, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[0][1][:k], bent.sum(axis=1), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(blocks.classes(found[0][2]), p @ dense, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_sums_in_twice_the_digits(dtype, form):
    """Features of 1e15 cancel; the class `spare` has what the others leave, unrounded."""
    rng = np.random.default_rng(3)
    n, d, k = 40, 3, 4
    dense = (rng.normal(size=(n, d)) * [1e15, 1.0, 1e-3]).astype(dtype)
    dense[1::2] = -dense[::2]
    values, spare = rng.normal(size=(k, n)), rng.integers(k, size=n)
    values[:, 1::2] = values[:, ::2] * (1 + 1e-15)
    spare[1::2] = spare[::2]
    rows = LocalRows(check_rows(form(dense)), k)
    rows.centre_at(rng.normal(size=d))
    combined, sums, lost, lost_of_sums = rows.combined_exactly(values, spare)
    exact = np.array([[Fraction(v) for v in each] for each in values])
    for i, own in enumerate(spare):
        exact[own, i] -= exact[:, i].sum()
    truth = exact @ np.array([[Fraction(float(x)) for x in row] for row in dense])
    np.testing.assert_allclose(combined, truth.astype(float), rtol=1e-15, atol=0.0)
    np.testing.assert_allclose(sums, exact.sum(axis=1).astype(float), rtol=1e-15, atol=0.0)
    assert (abs(lost) <= np.spacing(abs(combined))).all()
    assert (abs(lost_of_sums) <= np.spacing(abs(sums))).all()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n", [1, 64])
def test_scores_are_within_the_bound_of_their_rounding(form, n):
    """Every addition after the first loses what it adds."""
    d, k = 200, 3
    X = np.full((n, d), 0.999 * ROUNDOFF)
    X[:, 0] = 1.0
    rows = LocalRows(check_rows(form(X)), k)
    rows.centre_at(np.zeros(d))
    truth = sum(map(Fraction, X[0].tolist()))
    bound = ROUNDOFF * rows.depth * rows.reach(np.ones(d))
    off = [abs(float(Fraction(score) - truth)) for score in rows.scores(np.ones((k, d)))[0]]
    assert (off <= bound).all()
    assert max(off) > 0.1 * bound.min()


def test_blocks_of_other_shapes_are_refused():
    rows, block = _core.ClassRows(_core.Rows.dense(np.ones((5, 3)))), np.ones
    out, sums, codes = block((3, 8)), np.ones(8), np.zeros(5, dtype=np.int64)
    with pytest.raises(ValueError, match="v: wrong shape"):
        rows.times(block((4, 8)), block((5, 8)))
    with pytest.raises(ValueError, match="r: wrong shape"):
        rows.gather(block((5, 7)), out)
    with pytest.raises(ValueError, match="equally wide"):
        rows.curve(block((3, 8)), np.ones(8), block((5, 16)), codes, None, out, sums)
    with pytest.raises(ValueError, match="no such class"):
        rows.curve(block((3, 8)), np.ones(8), block((5, 8)), codes + 8, None, out, sums)
    two, sums_of_two = block((6, 8)), np.ones(16)
    with pytest.raises(ValueError, match="equally wide"):
        rows.gather_exactly(block((5, 8)), codes, block((6, 16)), sums_of_two)
    with pytest.raises(ValueError, match="no such class"):
        rows.gather_exactly(block((5, 8)), codes + 8, two, sums_of_two)
    with pytest.raises(ValueError, match="one entry per row"):
        rows.gather_exactly(block((5, 8)), codes[1:], two, sums_of_two)
    with pytest.raises(ValueError, match="centre"):
        _core.ClassRows(_core.Rows.dense(np.ones((5, 3))), np.ones(4))


def random_problem(seed):
    """Return rows, classes and options of all kinds that are hard."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(20, 301)), int(rng.integers(1, 41)), int(rng.integers(3, 7))
    X = rng.normal(size=(n, d))
    X *= 10.0 ** rng.uniform(-3, 3, [1, 1, d][rng.integers(3)])
    if rng.random() < 0.25:
        X += 1000.0 * X.std(axis=0)
    if d > 1 and rng.random() < 0.25:
        X[:, 1] = X[:, 0]
    scores = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=(d, k))
    # Without noise the classes are separable.
    codes = np.argmax(scores + rng.choice([0.0, 0.5, 3.0]) * rng.gumbel(size=(n, k)), axis=1)
    codes[:k] = np.arange(k)
    if rng.random() < 0.2:
        codes[codes == k - 1] = 0
        codes[k - 1] = k - 1
    weight = 10.0 ** rng.uniform(-4, 4, n) if rng.random() < 0.4 else None
    if rng.random() < 0.25:
        X = X.astype(np.float32)
    if rng.random() < 0.25:
        X = sp.csr_array(X)
    total = n if weight is None else weight.sum()
    lam = 10.0 ** rng.uniform(-6, 6) / total
    options = {"n_classes": k, "lam": lam, "sample_weight": weight}
    return X, codes, options | {"fit_intercept": bool(rng.random() < 0.7)}


@pytest.mark.parametrize("direct", [True, False])
def test_random_problems_are_solved(direct, monkeypatch):
    if not direct:
        monkeypatch.setattr(adasdca.multinomial.equations, "DIRECT", 0)
    for seed in range(130) if direct else range(130, 170):
        X, codes, options = random_problem(seed)
        solutions = []
        for tol in (1e-6, 1e-10, 0.0):
            with np.errstate(all="raise"):
                sol = solve_multinomial(X, codes, **options, tol=tol, max_epochs=2000)
            assert sol.status in (Status.CONVERGED, Status.STALLED), (seed, tol)
            if not sol.converged:
                # Steps lose more of the scores than is in the bound of sums in twice the digits.
                assert sol.gap <= 10.0 * sol.certificate.rounding or sol.gap <= 1e-13 * sol.primal
            solutions.append(sol)
        best = solutions[-1]
        for sol in solutions:
            assert sol.dual <= best.primal + best.gap, seed
            blur = sol.primal - sol.gap - sol.dual  # how far P itself may be off
            assert best.dual <= sol.primal + blur, seed
            assert np.linalg.norm(sol.coef - best.coef) <= sol.radius + best.radius, seed


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf])
def test_a_step_of_single_precision_that_leads_up_is_taken_in_double(wrong, monkeypatch):
    """As happens to weights of eight decades, on some levels of instructions."""
    equations = adasdca.multinomial.equations
    monkeypatch.setattr(equations, "DIRECT", 0)
    whole = equations.StepEquations._iterate_in

    def spoilt(self, real, losses, mu, right, *more):
        dw, db = whole(self, real, losses, mu, right, *more)
        return (wrong * dw if real is np.float32 else dw), db

    monkeypatch.setattr(equations.StepEquations, "_iterate_in", spoilt)
    X, codes = blobs(n=150, d=6, k=3, seed=0)
    sol = solve_multinomial(X.astype(np.float32), codes, n_classes=3, lam=0.01, tol=1e-8)
    assert sol.converged


@pytest.mark.parametrize("seed", range(6))
def test_random_problems_as_scikit_learn_solves_them(seed):
    X, codes = blobs(n=150, d=6, k=3 + seed % 3, seed=seed)
    C, weight = 10.0 ** (seed - 3), np.random.default_rng(seed).uniform(0.1, 3.0, len(codes))
    sol = solve_multinomial(
        X,
        codes,
        n_classes=3 + seed % 3,
        lam=1 / (C * weight.sum()),
        sample_weight=weight,
        fit_intercept=True,
        tol=1e-13,
    )
    reference = LogisticRegression(C=C, solver="newton-cg", tol=1e-10, max_iter=1000)
    reference.fit(X, codes, weight)
    scale = np.linalg.norm(sol.coef)
    np.testing.assert_allclose(sol.coef, reference.coef_, atol=1e-5 * scale)
    shift = reference.intercept_ - reference.intercept_.mean()
    np.testing.assert_allclose(sol.intercept, shift, atol=1e-5 * (1.0 + scale))


def test_equations_are_formed_when_iterations_take_too_long(monkeypatch):
    monkeypatch.setattr(adasdca.multinomial.equations, "DIRECT", 0)
    X, codes = blobs(n=200, d=8)
    X = X * 10.0 ** np.linspace(-2, 2, 8)
    problem = {"n_classes": 4, "lam": 1e-8, "fit_intercept": True, "tol": 1e-10}
    formed = solve_multinomial(X, codes, **problem)
    monkeypatch.setattr(adasdca.multinomial.equations, "TOO_MANY", 0)
    iterated = solve_multinomial(X, codes, **problem)
    assert formed.converged
    assert formed.primal == pytest.approx(iterated.primal, rel=1e-6)
    assert formed.n_updates < iterated.n_updates


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_blocks_of_a_class_each_precondition_where_iterations_are_many(
    form, fit_intercept, monkeypatch
):
    """One-hot columns beside numbers, hardly penalised: rows differ in curvature by decades."""
    monkeypatch.setattr(adasdca.multinomial.equations, "DIRECT", 0)
    monkeypatch.setattr(adasdca.multinomial.equations, "TOO_MANY", 0)
    rng = np.random.default_rng(0)
    n, k, groups = 600, 4, 20
    X = np.zeros((n, 2 * groups + 2))
    for first in (0, groups):
        X[np.arange(n), first + np.minimum(rng.geometric(0.15, n), groups) - 1] = 1
    X[:, -2:] = np.exp(3 * rng.normal(size=(n, 2)))
    codes = (X @ rng.normal(size=(X.shape[1], k)) + rng.gumbel(size=(n, k))).argmax(axis=1)
    problem = {"n_classes": k, "lam": 1e-4 / n, "fit_intercept": fit_intercept, "tol": 1e-6}
    monkeypatch.setattr(adasdca.multinomial.equations, "BLOCKWISE", 0)
    by_blocks = solve_multinomial(form(X), codes, **problem)
    weight = np.ones(n)
    in_parts, _ = solved_in_parts(X, codes, weight, k, 1e-4 / n, fit_intercept, 200, 1e-6)
    monkeypatch.setattr(adasdca.multinomial.equations, "MOST_NUMBERS", 0)
    by_diagonal = solve_multinomial(form(X), codes, **problem)
    for sol in (by_blocks, in_parts):
        assert sol.converged
        assert sol.primal >= by_diagonal.dual
        assert sol.dual <= by_diagonal.primal
        assert sol.n_updates < 0.5 * by_diagonal.n_updates


def test_flow_solves_graded_laplacians():
    rng = np.random.default_rng(0)
    coupling = rng.uniform(0.5, 1.0, (6, 6))
    coupling = coupling + coupling.T
    np.fill_diagonal(coupling, 0.0)
    hessian = np.diag(coupling.sum(axis=1)) - coupling
    right = rng.normal(size=6)
    right -= right.mean()
    found = solve_laplacian(coupling, right)
    np.testing.assert_allclose(hessian @ found.step, right, rtol=1e-12, atol=1e-14)
    assert found.energy == pytest.approx(right @ found.step)
    assert found.exact
    # Two groups that hardly know of each other.
    coupling[:3, 3:] *= 1e-30
    coupling[3:, :3] *= 1e-30
    right = np.array([1.0, -2.0, 1.0 + 2**-50, -(2**-50), 0.0, 0.0])
    found = solve_laplacian(coupling, right)
    across = found.step[:3].mean() - found.step[3:].mean()
    assert across == pytest.approx(2**-50 / coupling[:3, 3:].sum(), rel=0.5)
    cut = solve_laplacian(coupling, right, 10.0)
    assert not cut.exact
    assert np.ptp(cut.step) <= 40.0
    assert cut.step @ right > 0
    # And two that do not know of each other at all.
    coupling[:3, 3:] = coupling[3:, :3] = 0.0
    assert not solve_laplacian(coupling, right, 10.0).exact


def test_margins_keep_the_digits_of_sure_rows():
    X = np.array([[40.0], [-40.0], [0.0]])
    rows = LocalRows(check_rows(X), 3)
    problem = Multinomial(rows, np.array([0, 1, 2]), None, 1.0, 3, False)
    losses = problem.losses(np.array([[1.0], [-1.0], [0.0]]), np.zeros(3))
    alpha = losses.dual().gather()
    expected = np.exp(-40.0) + np.exp(-80.0)
    np.testing.assert_allclose(losses.at.loss[:2], expected, rtol=1e-14)
    np.testing.assert_allclose(alpha[[0, 1], [0, 1]], expected, rtol=1e-14)
    assert (alpha.sum(axis=0) == 0).all()


@pytest.mark.parametrize("moment", [0, 1, 2])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_max_time_is_held(fit_intercept, moment, monkeypatch):
    """By a clock of the test's own, on which weeks pass at one of the first records."""
    clock, late = time.perf_counter, [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + late[0])
    seen = []

    def callback(record):
        seen.append(record)
        late[0] = 2e6 if len(seen) > moment else 0.0

    X, codes = blobs(n=200)
    problem = {"n_classes": 4, "lam": 1e-6, "fit_intercept": fit_intercept, "tol": 0.0}
    sol = solve_multinomial(X, codes, **problem, max_time=1e6, callback=callback)
    assert sol.status is Status.TIME_LIMIT
    assert len(seen) == moment + 1
    assert np.isfinite(sol.gap)


def test_an_interrupt_keeps_the_best_point():
    X, codes = blobs(n=200)
    problem = {"n_classes": 4, "lam": 1e-3, "fit_intercept": True, "tol": 1e-12}
    seen = []

    def interrupt(record):
        seen.append(record)
        if record.epoch == 3:
            raise KeyboardInterrupt

    sol = solve_multinomial(X, codes, **problem, callback=interrupt)
    assert sol.status is Status.INTERRUPTED
    assert sol.gap == min(record.gap for record in seen)
    assert sol.n_epochs == 3


class Team:
    """Parts that are asked one after the other."""

    def __init__(self, parts):
        self.parts = parts

    def ask(self, command, *args, each=None):
        for part in self.parts:
            yield part.do(command, *args)


def solved_in_parts(X, codes, weight, k, lam, fit_intercept, cut, tol):
    """One part dense and one sparse."""
    total, d = float(weight.sum()), X.shape[1]
    task = ClassTask(list(range(k)), lam, total, fit_intercept)
    halves = (slice(0, cut), slice(cut, None)), (np.asarray, sp.csr_array)
    parts = [
        ClassPart(check_rows(form(X[half])), codes[half], weight[half], task)
        for half, form in zip(*halves, strict=True)
    ]
    found = solve_posed(
        lambda: PartedMultinomial(Team(parts), d, k, lam, total, fit_intercept, gathers=True),
        (k, d),
        len(codes),
        lam,
        tol=tol,
        max_epochs=100,
        max_time=None,
        warm_start=None,
        callback=None,
        start=time.perf_counter(),
    )
    return found, parts


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_rows_in_parts(monkeypatch, fit_intercept, direct):
    """What parts keep that nobody can ask for any more is dropped."""
    monkeypatch.setattr(adasdca.multinomial.equations, "DIRECT", 10**6 if direct else 0)
    X, codes = blobs(n=200)
    weight = np.random.default_rng(1).uniform(0.1, 3.0, len(codes))
    total, lam = float(weight.sum()), 1e-2
    problem = {"n_classes": 4, "lam": lam, "sample_weight": weight, "fit_intercept": fit_intercept}
    local = solve_multinomial(X, codes, **problem, tol=1e-10)
    far, parts = solved_in_parts(X, codes, weight, 4, lam, fit_intercept, 70, 1e-10)
    assert far.converged
    assert far.dual <= local.primal
    assert local.dual <= far.primal
    assert np.linalg.norm(far.coef - local.coef) <= far.radius + local.radius
    u = far.dual_coef @ X / (lam * total)
    assert np.linalg.norm(far.coef - u) <= np.sqrt(2.0 * far.gap / lam)
    assert max(len(part._losses) + len(part._duals) for part in parts) <= 4


@pytest.mark.parametrize(("n", "C"), [(1700, 1e3), (20_000, 10.0)])
def test_bounds_of_rounding_do_not_grow_with_the_rows(n, C):
    """Raw populations beside rates, hardly penalised: what sums may lose once hid the gap."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.exp(rng.normal(16, 2, n)), 1980 + 20 * rng.random(n)])
    codes = (np.log(X[:, :1]) - 16 + 2 * rng.normal(size=(n, 3))).argmax(axis=1)
    sol = solve_multinomial(X, codes, n_classes=3, lam=1 / (C * n), fit_intercept=True, tol=1e-5)
    assert sol.status is Status.CONVERGED


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_far_features_hardly_penalised(fit_intercept, form):
    """Populations and products beside rates: of U, sums of plain doubles leave nothing."""
    rng = np.random.default_rng(5)
    n, k = 400, 3
    logs = rng.normal(size=(n, 3))
    X = np.column_stack([np.exp([18.0, 21.0] + logs[:, :2]), logs[:, 2]])
    codes = (logs @ rng.normal(size=(3, k)) + 3 * rng.gumbel(size=(n, k))).argmax(axis=1)
    problem = {"n_classes": k, "lam": 1e-3 / n, "fit_intercept": fit_intercept}
    sol = solve_multinomial(form(X), codes, **problem, tol=1e-6)
    assert sol.converged
    turned = solve_multinomial(X[::-1, ::-1], codes[::-1], **problem, tol=1e-6)
    parts, _ = solved_in_parts(X, codes, np.ones(n), k, 1e-3 / n, fit_intercept, 150, 1e-6)
    for other in (turned, parts):
        assert other.converged
        assert sol.dual <= other.primal
        assert other.dual <= sol.primal


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_telephone_numbers_beside_categories(fit_intercept, form):
    """Bounds of rounding by the lengths of rows and coefficients leave 4e-3 of the gap."""
    rng = np.random.default_rng(0)
    n, k = 120, 4
    codes = np.append(np.arange(k), rng.integers(k, size=n - k))
    categories = np.eye(k)[codes] + 0.1 * rng.normal(size=(n, k))
    X = np.column_stack([1e10 * rng.random(n), categories])
    problem = {"n_classes": k, "lam": 1e-5 / n, "fit_intercept": fit_intercept}
    assert solve_multinomial(form(X), codes, **problem, tol=1e-6).converged


def test_curvature_near_scores_is_bounded():
    """What a loss rises above its tangent, over changes of any length and rows however sure."""
    rng = np.random.default_rng(3)
    for _ in range(400):
        k, sure = rng.integers(2, 6), 10.0 ** rng.uniform(-9, 0.5)
        scores = rng.normal(size=k) - np.log(sure) * (np.arange(k) == 0)
        change = 10.0 ** rng.uniform(-3, 0.5) * rng.normal(size=k)
        p = np.exp(scores - logsumexp(scores))
        centred = change - change[0]
        rise = np.log1p(p[1:] @ np.expm1(centred[1:])) - p[1:] @ centred[1:]
        e = np.array([np.linalg.norm(change)])
        bound = 0.5 * e**2 * curvature_bound(np, np.array([p[1:].sum()]), e)
        assert rise <= bound + 1e-15


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("C", [1.0, 1e3])
def test_wide_rows_in_raw_units(seed, C):
    """All rows are sure of their class: bounds of rounding that know no curvature were 10 gaps."""
    rng = np.random.default_rng(seed)
    n, d = 24, 200
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-8, 12, d)
    problem = {"n_classes": 3, "lam": 1 / (C * n), "fit_intercept": True}
    assert solve_multinomial(X, np.arange(n) % 3, **problem, tol=1e-5).converged


@pytest.mark.parametrize("C", [1.0, 1e5])
def test_dates_beside_codes(C):
    """Slopes have the rounding of their terms: by lengths of rows, steps led up unseen."""
    rng = np.random.default_rng(0)
    n = 150
    X = rng.integers(0, 1000, (n, 4)).astype(float)
    X[:, 0] = 1e9 * (1.6e9 + np.sort(rng.integers(0, 86400 * 900, n)))
    codes = np.digitize(X[:, 1], (300.0, 700.0))
    problem = {"n_classes": 3, "lam": 1 / (C * n), "fit_intercept": True, "tol": 1e-6}
    sol = solve_multinomial(X, codes, **problem)
    assert (np.diff(sol.history.primal) <= 0).all()
    assert sol.gap <= 3.0 * sol.certificate.rounding
    in_parts, _ = solved_in_parts(X, codes, np.ones(n), 3, problem["lam"], True, 70, 1e-6)
    assert in_parts.primal <= 1.01 * sol.primal


@pytest.mark.parametrize("tol", [0.1, 1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("counts", [(90, 9, 10), (50, 30, 5), (134, 84, 7, 2, 2)])
def test_margins_know_that_the_intercept_is_not_the_best(counts, tol):
    """Of features that say nothing all that is left to be wrong is the intercept.

    The best one is the logarithm of how many rows a class has.
    """
    codes = np.repeat(np.arange(len(counts)), counts)
    fitted = AdaSDCAClassifier(C=1e-3, tol=tol).fit(np.zeros((len(codes), 1)), codes)
    lead = np.log(counts[0]) - max(np.log(counts[1:]))
    margin = fitted.certified_margin(np.zeros((1, 1)))[0]
    assert margin <= lead
    assert margin > 0.8 * lead or tol == 0.1


def test_best_shifts_are_within_their_bound():
    rng = np.random.default_rng(4)
    tight = 0
    for _ in range(100):
        n, k = 30, int(rng.integers(2, 6))
        codes = np.append(np.arange(k), rng.integers(k, size=n - k))
        scores = 10.0 ** rng.uniform(-1, 1) * rng.normal(size=(n, k))
        problem = Multinomial(LocalRows(check_rows(np.zeros((n, 1))), k), codes, None, 1.0, k, True)
        best = minimize(
            lambda b, s=scores, c=codes: objective(s, c, np.eye(len(b)), b, 0.0), np.zeros(k),
            method="BFGS", options={"gtol": 1e-10},
        ).x  # fmt: skip
        shift = best + 10.0 ** rng.uniform(-4, 0) * rng.normal(size=k)
        moved = (scores + shift).T
        losses = RowLosses(problem, moved - moved[problem.own])
        found = shift_error(losses.coupling(), np.abs(losses.dual().sums()))
        assert np.ptp(best - shift) <= found + 1e-6
        tight += found <= 10 * np.ptp(best - shift)
    assert tight > 50
