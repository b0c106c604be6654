"""The CUDA backend without a device: its logic on NumPy, what it needs, and what it refuses.

The same on a device is in test_cuda_device.py.
"""

import re
import sys
import types
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes

import adasdca
from adasdca import AdaSDCAClassifier
from adasdca.backends.base import FOREVER
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.cuda import term
from adasdca.backends.cuda.products import RowChoice
from adasdca.backends.cuda.source import FOLDER, loss_source
from adasdca.problem.losses import LOSSES
from adasdca.problem.problem import Problem
from host_rows import HostProducts, host_backend, streamed_backend

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
@pytest.mark.parametrize("loss", LOSSES)
def test_it_reaches_the_certificate_of_the_local_rows(loss, regulariser):
    agree(*both(loss, host_backend, fit_intercept=True, **REGULARISERS[regulariser]))


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
    local, ours = LocalBackend(problem), host_backend(problem)
    rng = np.random.default_rng(1)
    w = np.abs(rng.normal(size=8)) * 1e-3
    duals = -problem.loss.slope(X @ w + 0.1, y) * rng.random(len(y))
    one, two = local.certify(w, 0.1, duals), ours.certify(w, 0.1, duals)
    assert one.primal == pytest.approx(two.primal, rel=1e-13)
    if np.isfinite(one.gap) and np.isfinite(two.gap):
        assert abs(one.gap - two.gap) <= 1e-12 * one.gap + 2 * (one.rounding + two.rounding)
    assert np.isfinite(one.gap) == np.isfinite(two.gap)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared"])
def test_rows_that_come_in_parts(loss, sparse):
    agree(*both(loss, streamed_backend, sparse=sparse, fit_intercept=True))


def test_a_gram_matrix_of_some_rows_in_parts():
    rng = np.random.default_rng(0)
    X, h, index = rng.normal(size=(200, 5)), rng.random(200), np.array([3, 70, 71, 199])
    rows = streamed_backend(Problem.checked(X, np.sign(X[:, 0]), loss="hinge", lam=1.0)).products
    expected = HostProducts(X).gram(h, None, RowChoice(index), FOREVER)
    np.testing.assert_allclose(rows.gram(h, None, RowChoice(index), FOREVER), expected)
    sample = rows.gram(h, None, RowChoice(size=50), FOREVER)
    assert np.isclose(sample[5, 5] * 4, h.sum(), rtol=0.3)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "squared"])
def test_a_sample_preconditions(monkeypatch, loss, intercept):
    """Where rows are many, conjugate gradients with a sample's matrix solve for all rows."""
    monkeypatch.setattr(term, "SMALL", 1)
    monkeypatch.setattr(term, "MANY", 2)
    monkeypatch.setattr(term, "SAMPLE", 4)
    formed, gram = [], term.DeviceTerm.gram

    def watched(*arguments, **options):
        formed.append(gram(*arguments, **options))
        return formed[-1]

    monkeypatch.setattr(term.DeviceTerm, "gram", watched)
    agree(*both(loss, host_backend, fit_intercept=intercept))
    assert any(each.product is not None for each in formed)


def test_the_source_of_the_losses_is_whole():
    """What the device compiles is the core's text from the first loss to the checks."""
    text = loss_source()
    assert text.startswith("struct PiecewiseQuadratic {")
    assert text.rstrip().endswith("};")
    assert text.count("{") == text.count("}")
    assert "struct Logistic {" in text
    assert "std::" not in text
    # Every name that is not its own is defined before it.
    before = (FOLDER / "losses.cuh").read_text().partition('#include "loss.hpp"')[0]
    for name in re.findall(r"device::(\w+)|(fast_\w+|x_log_x)\(", text):
        assert re.search(rf"\b{''.join(name)}\b", before), name


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


def test_estimators_say_what_to_install(monkeypatch):
    X, y = data("logistic")
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match=r"install adasdca\[cuda\]"):
        AdaSDCAClassifier(device="cuda").fit(X, y)
    with pytest.raises(ValueError, match="'device' parameter of AdaSDCAClassifier must be"):
        AdaSDCAClassifier(device="cuda:0").fit(X, y)
    y[:50] = 0.0
    with pytest.raises(ValueError, match=r"'cuda' has no multinomial model.*multi_class='ovr'"):
        AdaSDCAClassifier(device="cuda").fit(X, y)


class OnDevice:
    """An array of a device, as far as its owner tells."""

    __cuda_array_interface__: ClassVar = {"shape": (3, 2)}


def test_rows_on_a_device_need_the_backend_there():
    y = [1.0, -1.0, 1.0]
    with pytest.raises(ValueError, match=r"X, a OnDevice, is in the memory.*backend='cuda'"):
        adasdca.solve(OnDevice(), y, loss="logistic", lam=1e-3)
    with pytest.raises(ValueError, match=r"estimators copy X there by themselves"):
        AdaSDCAClassifier().fit(OnDevice(), y)


def test_methods_that_ascend_are_refused():
    X, y = data("logistic")
    with pytest.raises(ValueError, match="ascends coordinate by coordinate"):
        adasdca.solve(X, y, loss="logistic", lam=1e-3, method="sdca", backend=host_backend)
