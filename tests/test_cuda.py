"""The CUDA backend: its array code with NumPy everywhere, and on a device where there is one."""

import sys
import types

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes

import adasdca
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.cuda.backend import ArrayBackend
from adasdca.backends.cuda.device import load_cupy
from adasdca.backends.cuda.losses import formulas
from adasdca.backends.cuda.products import exact_dot, host_products, weighted_gram
from adasdca.problem.data import check_rows
from adasdca.problem.losses import LOSSES
from adasdca.problem.problem import Problem

REGULARISERS = {
    "l2": {},
    "elastic net": {"l1_ratio": 0.5},
    "lasso": {"l1_ratio": 1.0},
    "bounds": {"bounds": (0.0, None)},
    "factors": {"penalty_factors": np.linspace(0.5, 2.0, 8)},
}


def data(loss, dtype=np.float64, sparse=False):
    load = load_breast_cancer if LOSSES[loss].kind == "classification" else load_diabetes
    X, y = load(return_X_y=True)
    X, y = X[:200, :8].astype(dtype), np.asarray(y[:200], dtype=float)
    if sparse:
        middle = np.median(X, axis=0)
        X = sp.csr_matrix(np.where(middle < X, X, dtype(0)))
    return X, (2 * y - 1 if load is load_breast_cancer else y)


def both(loss, backend, dtype=np.float64, sparse=False, **options):
    X, y = data(loss, dtype, sparse)
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    options = {"loss": loss, "lam": 1e-3, "sample_weight": weight, "tol": 1e-8, **options}
    return adasdca.solve(X, y, **options), adasdca.solve(X, y, backend=backend, **options)


def agree(local, other):
    assert local.converged
    assert other.converged
    assert other.n_updates == 0
    # Each value is at most its gap above the minimum.
    assert abs(local.primal - other.primal) <= local.gap + other.gap + 1e-14 * local.primal
    assert np.linalg.norm(local.coef - other.coef) <= local.radius + other.radius


@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_it_reaches_the_certificate_of_the_local_rows(loss, intercept, regulariser):
    options = REGULARISERS[regulariser]
    agree(*both(loss, ArrayBackend, fit_intercept=intercept, **options))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_types_of_rows(loss, sparse, dtype):
    agree(*both(loss, ArrayBackend, dtype, sparse, fit_intercept=True))


@pytest.mark.parametrize("loss", LOSSES)
def test_formulas_are_those_of_the_core(loss):
    rng = np.random.default_rng(0)
    known = LOSSES[loss]()
    z = np.concatenate([rng.normal(size=200) * 10.0 ** rng.integers(-6, 4, 200), [0.0, 1.0, -1.0]])
    margin = known.kind == "classification"
    y = np.where(rng.random(len(z)) < 0.5, -1.0, 1.0) if margin else rng.normal(size=len(z))
    ours, (sign, t) = formulas(np, known), ((y, 1.0) if margin else (1.0, y))
    lower, upper = np.clip(known.domain, -5.0, 5.0)
    near = -known.slope(z, y) * (1.0 + 1e-9 * rng.normal(size=len(z)))
    own = np.where(rng.random(len(z)) < 0.5, rng.uniform(lower, upper, len(z)), sign * near)
    own = np.clip(own, lower, upper)
    beta, scores = sign * own, sign * z
    s = ours.ascent(z, t)
    np.testing.assert_allclose(sign * s, -known.slope(scores, y), rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(
        ours.curvature(s), known.curvature(scores, y), rtol=1e-12, atol=1e-15
    )
    np.testing.assert_allclose(ours.value(z, t), known.value(scores, y), rtol=1e-12, atol=1e-300)
    expected = known.excess(beta, scores, y)
    # Where s is near b, their difference has the rounding of either.
    slack = 1e-13 * (np.abs(s) + np.abs(own)) * (np.abs(s - own) + np.abs(z))
    assert (np.abs(ours.excess(z, own, t) - expected) <= 1e-10 * expected + slack).all()
    assert (ours.excess(z, own, t) >= 0).all()
    for q in (0.0, 0.3):
        if q == 0 or not known.curvature_varies:
            step = known.step(beta, scores, y, q)
            np.testing.assert_allclose(
                sign * ours.ascent(z, t, q, own), step, rtol=1e-12, atol=1e-15
            )


@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_certificates_are_those_of_the_core(loss, intercept, regulariser):
    """At any point the gaps are the same but for what either bounds of its rounding."""
    X, y = data(loss)
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    problem = Problem.checked(
        X, y, loss=loss, lam=1e-3, fit_intercept=intercept, sample_weight=weight,
        **REGULARISERS[regulariser],
    )  # fmt: skip
    local, ours = LocalBackend(problem), ArrayBackend(problem)
    rng = np.random.default_rng(1)
    w = np.abs(rng.normal(size=8)) * 1e-3
    duals = -problem.loss.slope(X @ w + 0.1, y) * rng.random(len(y))
    one, two = local.certify(w, 0.1, duals), ours.certify(w, 0.1, duals)
    assert one.primal == pytest.approx(two.primal, rel=1e-13)
    if np.isfinite(one.gap) and np.isfinite(two.gap):
        assert abs(one.gap - two.gap) <= 1e-12 * one.gap + 2 * (one.rounding + two.rounding)
    assert np.isfinite(one.gap) == np.isfinite(two.gap)


def hard_sum():
    """Return numbers that cancel to 0.001, about."""
    x = np.random.default_rng(0).normal(size=100_001) * 1e8
    return np.concatenate([x, -x, [1e-3]]), np.full(200_003, 1.1)


def test_sums_in_twice_the_digits():
    x, a = hard_sum()
    assert exact_dot(1.0, x) == pytest.approx(1e-3, rel=1e-12)
    assert exact_dot(a, x) == pytest.approx(1.1e-3, rel=1e-9)


def test_a_backend_by_a_name_that_nobody_knows():
    X, y = data("logistic")
    with pytest.raises(ValueError, match=r"backend = 'cud' is unknown; choose 'cuda'"):
        adasdca.solve(X, y, loss="logistic", lam=1e-3, backend="cud")


def test_without_cupy_the_error_says_what_to_install(monkeypatch):
    X, y = data("logistic")
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match=r"install adasdca\[cuda\]"):
        adasdca.solve(X, y, loss="logistic", lam=1e-3, backend="cuda")


class FakeCupy(types.ModuleType):
    """As much of CuPy as is asked before any work is done."""

    class CUDARuntimeError(RuntimeError):
        pass

    def __init__(self, count, free):
        super().__init__("cupy")
        runtime = types.SimpleNamespace(
            CUDARuntimeError=self.CUDARuntimeError,
            getDeviceCount=self.look,
            runtimeGetVersion=lambda: 13000,
            memGetInfo=lambda: (free, free),
        )
        self.cuda, self.count = types.SimpleNamespace(runtime=runtime), count

    def look(self):
        if self.count is None:
            raise self.CUDARuntimeError("cudaErrorInsufficientDriver")
        return self.count

    @staticmethod
    def get_default_memory_pool():
        return types.SimpleNamespace(free_bytes=lambda: 0)


@pytest.mark.parametrize(
    ("count", "error", "message"),
    [
        (None, RuntimeError, r"cudaErrorInsufficientDriver.*older than CuPy's CUDA 13"),
        (0, RuntimeError, r"finds no CUDA device; check CUDA_VISIBLE_DEVICES"),
        (1, MemoryError, r"X of shape \(200, 8\) takes about .* GiB"),
    ],
)
def test_without_a_device_or_its_memory_nothing_is_solved(monkeypatch, count, error, message):
    X, y = data("logistic")
    monkeypatch.setitem(sys.modules, "cupy", FakeCupy(count, free=10_000))
    with pytest.raises(error, match=message):
        adasdca.solve(X, y, loss="logistic", lam=1e-3, backend="cuda")


def test_methods_that_ascend_are_refused():
    X, y = data("logistic")
    with pytest.raises(ValueError, match="ascends coordinate by coordinate"):
        adasdca.solve(X, y, loss="logistic", lam=1e-3, method="sdca", backend=ArrayBackend)


def device_missing():
    """Return why there is no device, or nothing."""
    try:
        load_cupy()
    except (ImportError, RuntimeError) as error:
        return str(error)
    return ""


class TestDevice:
    """On a CUDA device."""

    pytestmark = [  # noqa: RUF012
        pytest.mark.cuda,
        pytest.mark.skipif(bool(device_missing()), reason=device_missing()),
    ]

    @pytest.mark.parametrize("regulariser", REGULARISERS)
    @pytest.mark.parametrize("intercept", [False, True])
    @pytest.mark.parametrize("loss", LOSSES)
    def test_certificates(self, loss, intercept, regulariser):
        agree(*both(loss, "cuda", fit_intercept=intercept, **REGULARISERS[regulariser]))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("loss", LOSSES)
    def test_types_of_rows(self, loss, sparse, dtype):
        agree(*both(loss, "cuda", dtype, sparse, fit_intercept=True))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("shape", [(1, 1), (3, 70), (20_000, 3), (9_001, 54), (70, 3_000)])
    def test_products(self, shape, sparse, dtype):
        """Against the same in NumPy, on shapes that are no multiple of a block."""
        import cupy as cp

        from adasdca.backends.cuda.kernels import device_products

        rng = np.random.default_rng(0)
        X = rng.normal(size=shape).astype(dtype)
        if sparse:
            X[rng.random(shape) < 0.7] = 0.0
            X = sp.csr_matrix(X)
        rows = check_rows(X)
        ours, theirs = device_products(rows), host_products(rows)
        v, r = rng.normal(size=shape[1]), rng.normal(size=shape[0])
        some = np.arange(0, shape[1], 2)
        near = {"rtol": 1e-11, "atol": 1e-11}
        for a, b in ((ours, theirs), (ours.take_columns(some), theirs.take_columns(some))):
            v = v[: a.shape[1]]
            np.testing.assert_allclose(a.scores(v).get(), b.scores(v), **near)
            np.testing.assert_allclose(a.combine(cp.asarray(r)), b.combine(r), **near)
            np.testing.assert_allclose(a.squares(cp.asarray(r)), b.squares(r), **near)
            np.testing.assert_allclose(a.row_squares(v).get(), b.row_squares(v), **near)
            if a.shape[1] < 1000:
                mean, h = np.full(a.shape[1], 0.1), np.abs(r)
                gram = weighted_gram(a, cp.asarray(h), cp.asarray(mean))
                np.testing.assert_allclose(gram, weighted_gram(b, h, mean), rtol=1e-9, atol=1e-9)

    def test_sums_in_twice_the_digits(self):
        import cupy as cp

        from adasdca.backends.cuda.kernels import exact_dot

        x, a = map(cp.asarray, hard_sum())
        assert exact_dot(2.0, x) == pytest.approx(2e-3, rel=1e-12)
        assert exact_dot(a, x) == pytest.approx(1.1e-3, rel=1e-9)

    def test_a_solve_repeats_bit_for_bit(self):
        X, y = data("logistic", np.float32, sparse=True)
        one, two = (
            adasdca.solve(X, y, loss="logistic", lam=1e-3, fit_intercept=True, backend="cuda")
            for _ in range(2)
        )
        assert (one.coef == two.coef).all()
        assert one.gap == two.gap
