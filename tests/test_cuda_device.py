"""The CUDA backend on a device: `pytest -m cuda`. Without CuPy this file is not collected."""

import cupy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from cupyx.scipy import sparse as device_sparse
from sklearn import config_context
from sklearn.datasets import load_iris

import adasdca
from adasdca import AdaSDCAClassifier, AdaSDCAClassifierCV, AdaSDCARegressor
from adasdca.ascent.plans import ThinnedDraws
from adasdca.backends.base import FOREVER
from adasdca.backends.cuda import device, epochs, term
from adasdca.backends.cuda.device import cuda_backend
from adasdca.backends.cuda.kernels import compiled, csr, dense, transfer
from adasdca.backends.cuda.kernels.arrays import device_products
from adasdca.backends.cuda.kernels.matrix import DeviceMatrix
from adasdca.backends.cuda.kernels.passes import CudaPasses, total
from adasdca.backends.cuda.products import MiniBatches, RowChoice, System
from adasdca.backends.cuda.streamed import StreamedRows
from adasdca.multinomial.solver import solve_multinomial
from adasdca.problem import data as data_module
from adasdca.problem.data import check_rows
from adasdca.problem.device_rows import _finite, to_numpy
from adasdca.problem.losses import LOSSES
from adasdca.problem.problem import Problem
from host_rows import HostBatches, HostProducts, host_passes
from test_backends import REGULARISERS, agree, both, check_certificates, check_sums, data
from test_cuda import KINKED, wide_problem

pytestmark = pytest.mark.cuda


@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_it_reaches_the_certificate_of_the_local_rows(loss, intercept, regulariser):
    agree(*both(loss, "cuda", fit_intercept=intercept, **REGULARISERS[regulariser]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_types_of_rows(loss, sparse, dtype):
    agree(*both(loss, "cuda", dtype, sparse, fit_intercept=True))


@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_certificates_are_those_of_the_core(loss, intercept, regulariser):
    check_certificates(loss, intercept, regulariser, cuda_backend)


@pytest.mark.parametrize("loss", LOSSES)
def test_formulas_are_those_of_the_core(loss):
    rng = np.random.default_rng(0)
    known = LOSSES[loss]()
    z = np.concatenate([rng.normal(size=200) * 10.0 ** rng.integers(-6, 4, 200), [0.0, 1.0, -1.0]])
    margin = known.kind == "classification"
    y = np.where(rng.random(len(z)) < 0.5, -1.0, 1.0) if margin else rng.normal(size=len(z))
    sign, t = (y, np.ones(len(z))) if margin else (np.ones(len(z)), y)
    lower, upper = np.clip(known.domain, -5.0, 5.0)
    near = -known.slope(sign * z, y) * (1.0 + 1e-9 * rng.normal(size=len(z)))
    own = np.where(rng.random(len(z)) < 0.5, rng.uniform(lower, upper, len(z)), sign * near)
    own = np.clip(own, lower, upper)
    beta, scores = sign * own, sign * z
    problem = Problem.checked(np.ones((len(z), 1)), y, loss=loss, lam=1.0)
    passes = CudaPasses(problem)
    out = [cp.empty(len(z)) for _ in range(5)]
    inputs = map(cp.asarray, (z, own, t))
    arguments = (*inputs, *passes._loss, np.float64(0.3), *out, np.int64(len(z)))
    passes._kernel("formulas")((4,), (compiled.THREADS,), arguments)
    value, ascent, curvature, excess, rounded = (each.get() for each in out)
    np.testing.assert_allclose(sign * ascent, -known.slope(scores, y), rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(curvature, known.curvature(scores, y), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(value, known.value(scores, y), rtol=1e-12, atol=1e-300)
    expected = known.excess(beta, scores, y)
    # Where s is near b, their difference has the rounding of either.
    slack = 1e-13 * (np.abs(ascent) + np.abs(own)) * (np.abs(ascent - own) + np.abs(z))
    assert (np.abs(excess - expected) <= 1e-10 * expected + slack).all()
    assert (excess >= 0).all()
    if not known.curvature_varies:
        step = known.step(beta, scores, y, 0.3)
        np.testing.assert_allclose(sign * rounded, step, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_passes_are_those_of_numpy(loss, weighted):
    X, y = data(loss)
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, len(y)).astype(float) if weighted else None
    problem = Problem.checked(X, y, loss=loss, lam=1e-3, sample_weight=weight)
    ours, theirs = CudaPasses(problem), host_passes(problem)
    scores, change = rng.normal(size=len(y)), rng.normal(size=len(y))
    duals = -problem.loss.slope(scores, y) * rng.random(len(y))
    norms = rng.random(len(y))
    length = 0.0 if problem.loss.smoothness > 0 else 0.3
    near = {"rtol": 1e-11, "atol": 1e-13}

    def compare(name, *arguments):
        there = [cp.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments]
        one, two = getattr(ours, name)(*there), getattr(theirs, name)(*arguments)
        for a, b in zip(*((x if isinstance(x, tuple) else (x,)) for x in (one, two)), strict=True):
            np.testing.assert_allclose(a.get() if isinstance(a, cp.ndarray) else a, b, **near)

    compare("derive", scores, None, 0.0, duals, length)
    compare("derive", scores, change, 0.7, duals, length)
    compare("slope", scores, change, 0.7, duals, length)
    compare("balance", scores, 0.3)
    compare("slopes", scores, 0.3)
    compare("sides", duals)
    compare("row_sums", scores, 0.3, duals, 1e-15 * norms, norms, 2.0, 0.3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "shape", [(1, 1), (3, 70), (20_000, 3), (9_001, 54), (5_000, 63), (5_000, 64), (700, 1_100)]
)
def test_products(monkeypatch, shape, sparse, dtype):
    """Against the same in NumPy, on shapes that are no multiple of a block."""
    monkeypatch.setattr(csr, "LONG", 800)  # some vectors are, and some are not
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape).astype(dtype)
    if sparse:
        X[rng.random(shape) < 0.7] = 0.0
    ours = device_products(check_rows(sp.csr_matrix(X) if sparse else X))
    theirs = HostProducts(X.astype(float))
    r, some = rng.normal(size=shape[0]), np.arange(0, shape[1], 2)
    h = np.abs(r) * (rng.random(shape[0]) < 0.5)
    near = {"rtol": 1e-10, "atol": 1e-10}
    for a, b in ((ours, theirs), (ours.take_columns(some), theirs.take_columns(some))):
        v = rng.normal(size=a.shape[1])
        np.testing.assert_allclose(a.scores(v, 0.5).get(), b.scores(v, 0.5), **near)
        np.testing.assert_allclose(a.combine(cp.asarray(r)).get(), b.combine(r), **near)
        np.testing.assert_allclose(a.squares(cp.asarray(r)).get(), b.squares(r), **near)
        np.testing.assert_allclose(a.row_squares(v).get(), b.row_squares(v), **near)
        for one, two in zip(a.begin(cp.asarray(r), v), b.begin(r, v), strict=True):
            np.testing.assert_allclose(one.get(), two, **near)
        image, found = b.curve(r, v, 0.5)[1], a.curve(cp.asarray(r), v, 0.5)
        np.testing.assert_allclose(found[1].get(), image, **near)
        np.testing.assert_allclose(found[0].get(), b.combine(image), rtol=1e-9, atol=1e-9)
        index = np.flatnonzero(h)
        for centre in (None, np.full(a.shape[1], 0.1)):
            for chosen in (None, index):
                there = [None if x is None else cp.asarray(x) for x in (centre, chosen)]
                found = a.gram(cp.asarray(h), there[0], FOREVER, RowChoice(there[1]))
                expected = b.gram(h, centre, FOREVER, RowChoice(chosen))
                found = found.get() if isinstance(found, cp.ndarray) else found
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("features", [1, 7, 54, 130, 1000])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "huber"])
def test_a_line_and_the_sum_at_its_end(loss, features, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3001, features)).astype(dtype)
    y = np.where(rng.random(3001) < 0.5, 1.0, -1.0)
    problem = Problem.checked(X, y, loss=loss, lam=1e-3, sample_weight=rng.random(3001))
    scores, centre, v = rng.normal(size=3001), 0.1 * y, rng.normal(size=features)
    length = 0.0 if loss == "logistic" else 0.3
    there = cp.asarray(scores), CudaPasses(problem), cp.asarray(centre), length
    change, ahead = device_products(problem.rows).line(v, 0.5, *there)
    expected = HostProducts(X.astype(float)).line(
        v, 0.5, scores, host_passes(problem), centre, length
    )
    np.testing.assert_allclose(change.get(), expected[0], rtol=1e-10, atol=1e-10)
    fits = features * np.dtype(dtype).itemsize <= 32 * dense.REGISTERS
    assert (ahead is not None) == fits
    if fits:
        np.testing.assert_allclose(ahead.get(), expected[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("shape", [(50_000, 5), (20_000, 54), (3_000, 600)])
def test_sums_are_as_near_as_they_say(shape, sparse, dtype):
    check_sums(cuda_backend, shape, sparse, dtype)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic", "absolute"])
def test_a_sample_preconditions(monkeypatch, loss):
    """Far more rows than features: samples and products certify what all rows do."""
    rng, scales = np.random.default_rng(0), np.geomspace(0.1, 10, 256)
    X = (rng.normal(size=(300_000, 256)) * scales + 3.0).astype(np.float32)
    scores = (X - 3.0) @ (rng.normal(size=256) / scales) / 16 + rng.normal(size=300_000)
    y = scores if loss == "absolute" else np.where(scores > 0, 1.0, -1.0)
    options = {"loss": loss, "lam": 1e-4, "tol": 1e-6, "fit_intercept": True, "backend": "cuda"}
    found = adasdca.solve(cp.asarray(X), y, **options)
    monkeypatch.setattr(term, "MANY", 1e9)
    monkeypatch.setattr(term, "SAMPLE", 1e9)
    whole = adasdca.solve(cp.asarray(X), y, **options)
    assert found.converged
    assert whole.converged
    assert found.dual <= whole.primal
    assert whole.dual <= found.primal


@pytest.mark.parametrize("sparse", [False, True])
def test_a_sample_has_rows_of_every_stratum(sparse):
    n, d, count = 10_007, 70, 500
    X = np.zeros((n, d))
    X[:, 0], X[:, 1] = np.arange(n), 1.0
    rows = device_products(check_rows(sp.csr_matrix(X) if sparse else X))
    panel = rows._panels(cp.ones(n), None, RowChoice(size=count, key=3), 0, count)[0].get()
    assert (panel[:, 1] == 1.0).all()
    strata = panel[:, 0] * count / n
    assert (np.abs(strata - np.arange(count) - 0.5) <= 0.5 + count / n).all()
    other = rows._panels(cp.ones(n), None, RowChoice(size=count, key=4), 0, count)[0].get()
    assert (panel[:, 0] != other[:, 0]).mean() > 0.5


def test_sums_in_twice_the_digits():
    """Numbers that cancel to 0.001."""
    x = np.random.default_rng(0).normal(size=100_001) * 1e8
    y = np.concatenate([x, -x, [1e-3]])
    problem = Problem.checked(
        np.ones((len(y), 1)), y, loss="squared", lam=1.0, sample_weight=np.full(len(y), 1.1)
    )
    total, _, _ = CudaPasses(problem).balance(cp.zeros(len(y)), 0.0)
    assert total == pytest.approx(1.1e-3, rel=1e-9)


def test_large_arrays_arrive_whole():
    X = np.random.default_rng(0).random((3 * transfer.PIECE // 8 + 5, 1))
    there = transfer.upload(X)
    assert (there.get() == X).all()
    assert (transfer.download(there) == X).all()
    assert transfer.download(cp.empty(0)).shape == (0,)


def test_a_matrix_is_factorised_on_the_device():
    A = np.random.default_rng(0).normal(size=(300, 300))
    A = A @ A.T
    solve = DeviceMatrix(cp.asarray(A)).cholesky(2.0)
    right = np.arange(300.0)
    np.testing.assert_allclose(solve(right), np.linalg.solve(A + 2.0 * np.eye(300), right))
    assert DeviceMatrix(cp.asarray(-A)).cholesky(0.0) is None


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_iterations_on_the_device(sparse, few, free):
    """Conjugate gradients there leave of a system what they are allowed to."""
    rng = np.random.default_rng(0)
    n, d = 3000, 1500
    X = rng.normal(size=(n, d)) * np.geomspace(0.1, 3.0, d)
    X[rng.random(X.shape) < 0.9 * sparse] = 0.0
    rows = device_products(check_rows(sp.csr_matrix(X) if sparse else X))
    h = rng.random(n) * (rng.random(n) < (0.2 if few else 1.0))
    own, right, index = rng.random(d), rng.normal(size=d), np.flatnonzero(h)
    mean = h @ X / h.sum() if free else np.zeros(d)
    scale = h @ (X - mean) ** 2 + own
    there = [cp.asarray(each) for each in (h, own, scale, right)]
    system = System(*there, cp.asarray(mean) if free else None, 0.0, 1e-8)
    asked = []

    def chosen():
        asked.append(True)
        picked = cp.asarray(index)
        return (rows.take_rows(picked), cp.asarray(h[index])) if few else None

    v, taken, done = rows.iterate(system, chosen, 4, FOREVER, 2000)
    v = v.get()
    assert done
    assert taken > 8
    assert asked == [True]
    left = right - (h * ((X - mean) @ v)) @ (X - mean) - own * v
    assert np.sqrt(left @ (left / scale)) <= 1e-7 * np.sqrt(right @ (right / scale))
    assert rows.iterate(system, chosen, 4, 0.0, 2000) is None
    cut = rows.iterate(system, chosen, 4, FOREVER, 3)
    assert (cut.taken, cut.done) == (3, False)
    flat = system._replace(h=cp.zeros(n), own=cp.zeros(d))
    assert (rows.iterate(flat, chosen, 4, FOREVER, 9).v.get() == (right / scale)).all()


@pytest.mark.parametrize("features", [300, 4000, 40_000])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge", "squared"])
def test_many_features(loss, features):
    """Factorised on the device, and by conjugate gradients there, with vectors here and there."""
    rng = np.random.default_rng(0)
    X = sp.random(3000, features, 0.01, "csr", np.float32, random_state=0)
    y = np.where(X @ rng.normal(size=features) + 0.1 * rng.normal(size=3000) > 0, 1.0, -1.0)
    options = {"loss": loss, "lam": 1e-3, "tol": 1e-8, "fit_intercept": True}
    agree(adasdca.solve(X, y, **options), adasdca.solve(X, y, backend="cuda", **options))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge", "absolute", "squared"])
def test_vectors_of_features_that_stay_with_the_rows(monkeypatch, loss, sparse):
    """Steps with long vectors come to the same, by whichever equations."""
    X, y = data(loss, np.float32, sparse)
    options = {"loss": loss, "lam": 1e-3, "tol": 1e-8, "fit_intercept": True, "backend": "cuda"}
    here = adasdca.solve(X, y, **options)
    monkeypatch.setattr(term, "LONG", 1)
    agree(here, adasdca.solve(X, y, **options))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared"])
def test_rows_that_do_not_fit(monkeypatch, loss, sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 20)).astype(np.float32)
    X[rng.random(X.shape) < 0.5 * sparse] = 0.0
    y = np.where(X[:, 0] + rng.normal(size=30_000) > 0, 1.0, -1.0)
    X = sp.csr_matrix(X) if sparse else X
    monkeypatch.setattr(device, "free_bytes", lambda cupy: 8_000_000 if sparse else 5_000_000)
    options = {"loss": loss, "lam": 1e-3, "tol": 1e-8, "fit_intercept": True}
    problem = Problem.checked(X, y, loss=loss, lam=1e-3)
    assert isinstance(cuda_backend(problem).rows, StreamedRows)
    agree(adasdca.solve(X, y, **options), adasdca.solve(X, y, backend="cuda", **options))


@pytest.mark.parametrize("kind", ["cupy", "cupy csr", "torch", "jax"])
def test_rows_that_are_on_a_device_already(kind):
    X, y = data("logistic", np.float32, sparse=kind == "cupy csr")
    options = {"loss": "logistic", "lam": 1e-3, "tol": 1e-8, "fit_intercept": True}
    expected = adasdca.solve(X, y, backend="cuda", **options)
    if kind == "cupy csr":
        there = device_sparse.csr_matrix(X)
    elif kind == "cupy":
        there = cp.asarray(X)
    elif kind == "torch":
        there = pytest.importorskip("torch").from_numpy(X).to("cuda")
    else:
        there = pytest.importorskip("jax").numpy.asarray(X)
        if there.device.platform != "gpu":
            pytest.skip("this JAX sees no device")
    found = adasdca.solve(there, cp.asarray(y), backend="cuda", **options)
    kind = cp.ndarray if kind == "cupy csr" else type(there)
    for mine, theirs in ((found.coef, expected.coef), (found.dual_coef, expected.dual_coef)):
        assert isinstance(mine, kind)  # results come back in kind
        single = "jax" in type(there).__module__  # (unless it is told to have doubles)
        np.testing.assert_allclose(to_numpy(mine), theirs, rtol=1e-6 if single else 0.0)
    assert found.gap == expected.gap
    again = adasdca.solve(there, y, backend="cuda", warm_start=found, **options)
    assert again.n_epochs == 0


@pytest.mark.parametrize("sparse", [False, True])
def test_some_of_the_rows(sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3001, 57))
    X[rng.random(X.shape) < 0.7 * sparse] = 0.0
    index, v = np.flatnonzero(rng.random(3001) < 0.1), rng.normal(size=57)
    rows = device_products(check_rows(sp.csr_matrix(X) if sparse else X))
    few = rows.take_rows(cp.asarray(index))
    np.testing.assert_allclose(few.scores(v).get(), X[index] @ v, rtol=1e-10, atol=1e-10)
    r = few.scores(v)
    np.testing.assert_allclose(few.combine(r).get(), r.get() @ X[index], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_for_which_there_is_no_room_are_not_copied(sparse):
    X = np.random.default_rng(0).normal(size=(100_000, 20))
    rows = device_products(check_rows(sp.csr_matrix(X) if sparse else X))
    index, pool = cp.arange(len(X)), cp.get_default_memory_pool()
    pool.free_all_blocks()
    pool.set_limit(size=pool.used_bytes() + (1 << 20))
    try:
        assert rows.take_rows(index) is None
    finally:
        pool.set_limit(size=0)
    assert rows.take_rows(index).shape == X.shape


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("classes", [3, 40])
def test_products_with_several_vectors(classes, sparse, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3001, 57)).astype(dtype)
    X[rng.random(X.shape) < 0.7 * sparse] = 0.0
    rows = device_products(check_rows(sp.csr_matrix(X) if sparse else X))
    v, r = rng.normal(size=(classes, 57)), rng.normal(size=(classes, 3001))
    X, near = X.astype(float), {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(rows.scores_of(cp.asarray(v)).get(), v @ X.T, **near)
    np.testing.assert_allclose(rows.combine_of(cp.asarray(r)).get(), r @ X, **near)
    np.testing.assert_allclose(rows.combine_of(cp.asarray(r), True).get(), r @ X**2, **near)


def test_a_sum_in_twice_the_digits():
    x = np.random.default_rng(0).normal(size=100_001) * 1e8
    values = cp.asarray(np.concatenate([x, -x, [1e-3]]))
    assert total(values) == pytest.approx(1e-3, rel=1e-12)
    values[5] = np.nan
    assert np.isnan(total(values))


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("shape", [(2_000, 10, 4), (3_000, 300, 12)])
def test_multinomial_models(monkeypatch, shape, sparse, direct):
    n, d, k = shape
    if not direct:
        monkeypatch.setattr(adasdca.multinomial.equations, "DIRECT", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(np.float32)
    X[rng.random(X.shape) < 0.8 * sparse] = 0.0
    y = np.argmax(X @ rng.normal(size=(d, k)) + 3.0 * rng.gumbel(size=(n, k)), axis=1)
    X = sp.csr_matrix(X) if sparse else X
    weight = rng.random(n)
    problem = {"n_classes": k, "lam": 1e-2, "fit_intercept": True, "sample_weight": weight}
    local = solve_multinomial(X, y, tol=1e-9, **problem)
    found = solve_multinomial(X, y, tol=1e-9, backend="cuda", **problem)
    assert found.converged
    assert found.dual <= local.primal
    assert local.dual <= found.primal
    assert np.linalg.norm(local.coef - found.coef) <= local.radius + found.radius


def test_a_multinomial_model_of_rows_that_do_not_fit(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 20)).astype(np.float32)
    y = np.argmax(X[:, :3] + rng.gumbel(size=(30_000, 3)), axis=1)
    monkeypatch.setattr(device, "free_bytes", lambda cupy: 16_500_000)
    assert isinstance(device.placed(check_rows(X), 4 * device.VECTORS), StreamedRows)
    problem = {"n_classes": 3, "lam": 1e-3, "fit_intercept": True, "tol": 1e-8}
    local = solve_multinomial(X, y, **problem)
    found = solve_multinomial(X, y, backend="cuda", **problem)
    assert found.converged
    assert np.linalg.norm(local.coef - found.coef) <= local.radius + found.radius


@pytest.mark.parametrize("multi_class", ["ovr", "multinomial"])
@pytest.mark.parametrize("kind", ["numpy", "cupy", "cupy csr", "torch"])
def test_estimators_and_where_rows_are(kind, multi_class):
    X, y = load_iris(return_X_y=True)
    there = {
        "numpy": lambda: X,
        "cupy": lambda: cp.asarray(X),
        "cupy csr": lambda: device_sparse.csr_matrix(cp.asarray(X)),
        "torch": lambda: pytest.importorskip("torch").from_numpy(X).to("cuda"),
    }[kind]()
    options = {"multi_class": multi_class, "tol": 1e-10, "device": "cuda"}
    local = AdaSDCAClassifier(multi_class=multi_class, tol=1e-10).fit(X, y)
    found = AdaSDCAClassifier(**options).fit(there, y)
    assert isinstance(found.coef_, np.ndarray)
    apart = np.linalg.norm(local.coef_ - found.coef_)
    assert apart <= np.sum(local.radius_) + np.sum(found.radius_)
    assert (found.predict(there) == local.predict(X)).all()
    np.testing.assert_allclose(found.predict_proba(there), local.predict_proba(X), atol=1e-4)
    near = {"rtol": 1e-3, "atol": 1e-3}
    np.testing.assert_allclose(found.certified_margin(there), found.certified_margin(X), **near)
    certificates = np.ravel(adasdca.certify(found, there, y, backend="cuda"))
    assert all(each.relative_gap <= 1e-9 for each in certificates)
    one = AdaSDCARegressor(tol=1e-10).fit(X[:, 1:], X[:, 0])
    two = AdaSDCARegressor(tol=1e-10, device="cuda").fit(there[:, 1:], X[:, 0])
    assert np.linalg.norm(one.coef_ - two.coef_) <= one.radius_ + two.radius_


@pytest.mark.parametrize("kind", ["cupy", "torch"])
def test_results_are_in_kind_where_dispatch_is_on(monkeypatch, kind):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # scikit-learn asks for it
    X, y = load_iris(return_X_y=True)
    there = cp.asarray(X) if kind == "cupy" else pytest.importorskip("torch").asarray(X).cuda()
    target = there[:, 0]
    with config_context(array_api_dispatch=True):
        model = AdaSDCAClassifier(tol=1e-8).fit(there, y)
        search = AdaSDCAClassifierCV(Cs=2, cv=3).fit(there, y)
        ridge = AdaSDCARegressor().fit(there[:, 1:], target)
        made = [model.coef_, model.intercept_, model.predict(there), model.predict_proba(there)]
        made += [model.decision_function(there), search.coef_, search.predict(there)]
        made += [ridge.coef_, ridge.predict(there[:, 1:]), ridge.certified_error(there[:, 1:])]
        assert all(isinstance(each, type(there)) for each in made)
        local = AdaSDCAClassifier(tol=1e-8).fit(X, y)
        assert isinstance(local.coef_, np.ndarray)
        assert (to_numpy(model.predict(there)) == local.predict(X)).all()
    with pytest.raises(ValueError, match="array_api_dispatch=True"):
        AdaSDCAClassifier().fit(there, y)


def test_paths_and_searches():
    X, y = data("logistic", np.float32)
    options = {"loss": "logistic", "Cs": [0.01, 0.1, 1.0], "fit_intercept": True, "tol": 1e-8}
    local = adasdca.path(X, y, **options)
    for there in (X, cp.asarray(X)):
        found = adasdca.path(there, y, backend="cuda", **options)
        assert isinstance(found.coefs, type(there))
        apart = np.linalg.norm(to_numpy(found.coefs) - local.coefs, axis=1)
        assert found.converged.all()
        assert (apart <= found.radii + local.radii).all()
    one, two = (
        AdaSDCAClassifierCV(Cs=[0.1, 1.0], cv=3, tol=1e-8, device=where).fit(X, y)
        for where in (None, "cuda")
    )
    np.testing.assert_allclose(one.scores_, two.scores_)
    assert one.C_ == two.C_


@pytest.mark.parametrize("kind", ["cupy", "torch"])
@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_targets_that_are_on_a_device_stay_there(monkeypatch, loss, kind):
    X, y = data(loss)
    options = {"loss": loss, "lam": 1e-3, "fit_intercept": True, "backend": "cuda"}
    local = adasdca.solve(X, y, **options)
    made = cp.asarray(y) if kind == "cupy" else pytest.importorskip("torch").asarray(y).cuda()
    wrong = 2.0 * made if loss == "logistic" else made / 0.0
    with pytest.raises(ValueError, match=r"y holds the values|y contains NaN"):
        adasdca.solve(X, wrong, **options)
    with pytest.raises(ValueError, match="must have shape"):
        adasdca.solve(X, made[1:], **options)
    monkeypatch.setattr(data_module, "from_device", None)  # nothing is copied
    found = adasdca.solve(cp.asarray(X), made, **options)
    np.testing.assert_array_equal(found.coef.get(), local.coef)
    assert isinstance(found.dual_coef, cp.ndarray)
    np.testing.assert_array_equal(found.dual_coef.get(), local.dual_coef)
    np.testing.assert_array_equal(found.state.beta, local.state.beta)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_that_are_not_finite_are_found(dtype):
    for size in (0, 1, 2, 3, 1_000_001):
        x = np.full(size, np.finfo(dtype).max, dtype)
        x[::2] = -x[::2]
        x[1::3] = 0.0
        assert _finite(cp.asarray(x))
        for place in {0, size // 2, size - 1} if size else ():
            for bad in (np.nan, np.inf, -np.inf):
                x[place], before = bad, x[place]
                assert not _finite(cp.asarray(x))
                assert not _finite(cp.asarray(np.append(dtype(1.0), x))[1:])
                x[place] = before
    X = cp.ones((5, 6), dtype)
    assert _finite(X.T)
    X[3, 4] = np.nan
    assert not _finite(X.T)
    assert _finite(X[:, :4])


def test_weighted_duals_stay_there():
    X, y = data("hinge")
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    options = {"loss": "hinge", "lam": 1e-3, "sample_weight": weight, "backend": "cuda"}
    found, local = adasdca.solve(cp.asarray(X), y, **options), adasdca.solve(X, y, **options)
    np.testing.assert_array_equal(found.dual_coef.get(), local.dual_coef)
    # They are the caller's: what a later solve begins from is not.
    found = adasdca.solve(cp.asarray(X), y, loss="hinge", lam=1e-3, backend="cuda")
    before = found.dual_coef.get()
    found.dual_coef[...] = 7.0
    np.testing.assert_array_equal(found.state.beta, before)


def test_a_solve_repeats_bit_for_bit():
    X, y = data("logistic", np.float32, sparse=True)
    one, two = (
        adasdca.solve(X, y, loss="logistic", lam=1e-3, fit_intercept=True, backend="cuda")
        for _ in range(2)
    )
    assert (one.coef == two.coef).all()
    assert one.gap == two.gap


@pytest.mark.parametrize("height", [1, 7, 64, 1000])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", KINKED)
def test_mini_batches_are_those_of_numpy(loss, intercept, height):
    problem = wide_problem(loss, intercept)
    X, n = problem.rows.matrix.toarray(), len(problem.y)
    rng = np.random.default_rng(0)
    curvature = problem.weight * (X**2).sum(axis=1) * (1.0 + 0.1 * height) / problem.mu
    largest = 2.0 * np.sqrt(problem.total * (problem.weight @ X**2).max()) / problem.mu

    def point(xp):
        zeros = xp.zeros(n), xp.zeros(X.shape[1])
        return MiniBatches(*zeros, 0.0, 0.0, intercept, xp.asarray(curvature), largest, problem.mu)

    order = rng.permutation(n)
    expected, found = point(np), point(cp)
    b = HostBatches(X, expected, host_passes(problem), height)(order)
    rows = device_products(problem.rows)
    visit = rows.batches(found, CudaPasses(problem), height)
    found_b = visit(cp.asarray(order))
    if height >= 64:  # the steps of a few rows may leave the intercept a range
        assert found_b == pytest.approx(b, rel=1e-6, abs=1e-6)
    # (Duals of no weight are anything.)
    alpha = problem.weight * found.beta.get()
    np.testing.assert_allclose(alpha, problem.weight * expected.beta, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("loss", KINKED)
def test_epochs_repeat_bit_for_bit(monkeypatch, loss):
    monkeypatch.setattr(epochs, "LEAST", 2)

    def ascended():
        backend = cuda_backend(wide_problem(loss, True))
        for key in range(3):
            seen = backend.survey(frozenset({"adaptive"}), FOREVER)
            backend.ascend(ThinnedDraws("adaptive", "auto", 1.0, key), FOREVER)
        return backend.beta.get(), seen.dual

    one, two = ascended(), ascended()
    assert one[0].any()
    np.testing.assert_array_equal(one[0], two[0])
    assert one[1] == two[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_epochs_on_text_like_rows(dtype):
    rng = np.random.default_rng(0)
    X = sp.random(20_000, 30_000, 5e-4, random_state=0, format="csr", dtype=dtype)
    scores = X @ rng.normal(size=30_000)
    y = np.sign(scores + 0.1 * rng.normal(size=len(scores)))
    options = {"loss": "hinge", "lam": 1 / len(y), "tol": 1e-5, "fit_intercept": True}
    local, other = adasdca.solve(X, y, **options), adasdca.solve(X, y, backend="cuda", **options)
    assert other.converged
    assert other.n_updates > 0
    assert abs(local.primal - other.primal) <= local.gap + other.gap
