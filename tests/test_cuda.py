"""The CUDA backend without a device: its logic on NumPy, what it needs, and what it refuses.

The same on a device is in test_cuda_device.py.
"""

import math
import pickle
import re
import sys
import types
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

import adasdca
from adasdca import AdaSDCAClassifier, AdaSDCAClassifierCV, estimators
from adasdca.ascent.plans import Permutations, ThinnedDraws
from adasdca.auto.costs import Costs
from adasdca.auto.rates import Rates, use
from adasdca.auto.schedule import POLICY
from adasdca.auto.second_order import SecondOrder
from adasdca.backends.base import FOREVER
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.cuda import device, epochs, term
from adasdca.backends.cuda.backend import DeviceBackend
from adasdca.backends.cuda.products import RowChoice
from adasdca.backends.cuda.source import FOLDER, loss_source
from adasdca.multinomial.device import DeviceRows as DeviceClasses
from adasdca.multinomial.solver import solve_multinomial
from adasdca.newton import multipliers
from adasdca.problem.losses import LOSSES
from adasdca.problem.problem import Problem
from adasdca.solution import State
from host_rows import (
    HostProducts,
    host_backend,
    host_classes,
    host_passes,
    host_products,
    streamed_backend,
    streamed_classes,
)
from test_backends import agree, both, data


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge"])
def test_certificates_with_a_penalised_intercept(loss):
    """The last of w is told as a product, whose rounding is charged in both places."""
    X, y = data(loss)
    options = {"loss": loss, "lam": 1e-2, "fit_intercept": True, "intercept_scaling": 3.0}
    problem = Problem.checked(X, y, **options)
    for w in (np.zeros(9), np.linspace(-0.1, 0.3, 9)):
        one = LocalBackend(problem).certify(w, 0.0, 0.4 * y)
        two = host_backend(problem).certify(w, 0.0, 0.4 * y)
        assert one.primal == pytest.approx(two.primal, rel=1e-13)
        assert abs(one.gap - two.gap) <= 1e-11 * one.gap + 2 * (one.rounding + two.rounding)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared"])
def test_rows_that_come_in_parts(loss, sparse):
    agree(*both(loss, streamed_backend, sparse=sparse, fit_intercept=True))


def test_a_gram_matrix_of_some_rows_in_parts():
    rng = np.random.default_rng(0)
    X, h, index = rng.normal(size=(200, 5)), rng.random(200), np.array([3, 70, 71, 199])
    rows = streamed_backend(Problem.checked(X, np.sign(X[:, 0]), loss="hinge", lam=1.0)).rows
    expected = HostProducts(X).gram(h, None, FOREVER, RowChoice(index))
    np.testing.assert_allclose(rows.gram(h, None, FOREVER, RowChoice(index)), expected)
    sample = rows.gram(h, None, FOREVER, RowChoice(size=50))
    assert np.isclose(sample[5, 5] * 4, h.sum(), rtol=0.3)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "squared"])
def test_a_sample_preconditions(monkeypatch, loss, intercept):
    """Where rows are many, conjugate gradients with a sample's matrix solve for all rows."""
    monkeypatch.setattr(term, "SMALL", 1)
    monkeypatch.setattr(term, "MANY", 2)
    monkeypatch.setattr(term, "SAMPLE", 4)
    monkeypatch.setattr(multipliers, "SWIFT", 0)  # few rows have curvature where rounds begin sharp
    formed, gram = [], term.DeviceTerm.gram

    def watched(*arguments, **options):
        formed.append(gram(*arguments, **options))
        return formed[-1]

    monkeypatch.setattr(term.DeviceTerm, "gram", watched)
    agree(*both(loss, host_backend, fit_intercept=intercept))
    assert any(each.product is not None for each in formed)


@pytest.mark.parametrize("rows", [host_backend, streamed_backend])
def test_rows_with_curvature_are_copied_where_they_are_few(rows):
    """Products with the matrix of a step are those of all rows."""
    X = np.random.default_rng(0).normal(size=(400, 8))
    backend = rows(Problem.checked(X, np.sign(X[:, 0]), loss="hinge", lam=1e-3))
    point = np.eye(8)[0]
    one = backend.term(length=0.2, centre=np.zeros(400))
    one.go(point, 0.0)
    assert 0 < one.curved <= 64  # as many as a part of the streamed ones may have
    found = [one.curve(point, 0.5) for _ in range(term.PRODUCTS)]
    assert one._curved_rows is not None
    for image, total in found:
        np.testing.assert_allclose(image, found[0][0], rtol=1e-12)
        assert total == pytest.approx(found[0][1], rel=1e-12)
    one.go(2.0 * point, 0.0)
    assert one._curved_rows is None


@pytest.mark.parametrize("length", [0.02, 0.2, 4.0])
def test_the_diagonal_of_few_rows_is_that_of_all(length):
    X = np.random.default_rng(0).normal(size=(400, 8))
    backend = host_backend(Problem.checked(X, np.sign(X[:, 0]), loss="hinge", lam=1e-3))
    one = backend.term(length=length, centre=np.zeros(400))
    one.go(np.eye(8)[0], 0.0)
    (squares, sums), mass = one.diagonal(True)
    assert mass == pytest.approx(one.here.h.sum())
    np.testing.assert_allclose(squares, one.here.h @ X**2, rtol=1e-12)
    np.testing.assert_allclose(sums, one.here.h @ X, rtol=1e-12, atol=1e-12)
    assert (one._curved_rows is not None) == (one.curved <= term.EARLY * 400)


def test_duals_stay_there_until_they_are_asked_for():
    X, y = data("logistic")
    found = adasdca.solve(X, y, loss="logistic", lam=1e-3, backend=host_backend)
    assert "beta" not in vars(found.state)
    copy = pickle.loads(pickle.dumps(found.state))
    assert type(copy) is State
    np.testing.assert_array_equal(copy.beta, found.state.beta)
    assert found.state.beta is found.state.beta
    assert replace(found.state, epoch=3).epoch == 3
    with pytest.raises(AttributeError):
        _ = found.state.gamma
    again = adasdca.solve(X, y, loss="logistic", lam=1e-3, backend=host_backend, warm_start=found)
    assert again.converged


def test_no_pass_for_duals_that_are_0(monkeypatch):
    X, y = data("logistic")
    backend = host_backend(Problem.checked(X, y, loss="logistic", lam=1e-3, fit_intercept=True))
    passes, combine = [], HostProducts.combine
    monkeypatch.setattr(
        HostProducts, "combine", lambda rows, r: passes.append(r) or combine(rows, r)
    )
    backend.survey(frozenset(), FOREVER)
    assert len(passes) == 1  # of the slopes at the best intercept
    assert (backend.combine(backend.beta) == 0).all()
    assert len(passes) == 1


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

    class OutOfMemoryError(MemoryError):
        pass

    def __init__(self, count, free):
        super().__init__("cupy")
        runtime = types.SimpleNamespace(
            CUDARuntimeError=self.CUDARuntimeError,
            getDeviceCount=self.look,
            runtimeGetVersion=lambda: 13000,
            memGetInfo=lambda: (free, free),
        )
        memory = types.SimpleNamespace(OutOfMemoryError=self.OutOfMemoryError)
        self.cuda, self.count = types.SimpleNamespace(runtime=runtime, memory=memory), count

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
        (0, RuntimeError, r"There is no CUDA device; check CUDA_VISIBLE_DEVICES"),
        (1, MemoryError, r"X of shape \(200, 8\) takes about .* GiB"),
    ],
)
def test_without_a_device_or_its_memory_nothing_is_solved(monkeypatch, count, error, message):
    X, y = data("logistic")
    monkeypatch.setitem(sys.modules, "cupy", FakeCupy(count, free=10_000))
    with pytest.raises(error, match=message):
        adasdca.solve(X, y, loss="logistic", lam=1e-3, backend="cuda")


class Exhausted(HostProducts):
    """Rows of a device whose memory is gone after so many products."""

    def __init__(self, X, left, error):
        super().__init__(X)
        self.left, self.error = left, error

    def scores(self, v, shift=0.0):
        self.left -= 1
        if self.left < 0:
            raise self.error("Out of memory allocating 1,024 bytes")
        return super().scores(v, shift)

    def scores_of(self, v):
        return np.stack([self.scores(each) for each in v])


def backend_of(exhausted):
    def backend(problem):
        rows, passes = exhausted(problem.rows.values), host_passes(problem)
        return DeviceBackend(problem, rows, passes, partial(device.short_of, problem.rows))

    return backend


def solve_binary(X, y, exhausted):
    adasdca.solve(X, y, loss="logistic", lam=1e-3, backend=backend_of(exhausted))


def certify_binary(X, y, exhausted):
    adasdca.certify(X, y, X[0], loss="logistic", lam=1e-3, backend=backend_of(exhausted))


def solve_classes(X, y, exhausted):
    def backend(rows, n_classes):
        short = partial(device.short_of, rows)
        return DeviceClasses(exhausted(rows.values), n_classes, short)

    solve_multinomial(X, (y > 0).astype(int), n_classes=3, lam=1e-3, backend=backend)


@pytest.mark.parametrize(
    ("solve", "left"), [(solve_binary, 2), (certify_binary, 0), (solve_classes, 7)]
)
def test_a_device_without_memory_says_what_to_do(monkeypatch, solve, left):
    X, y = data("logistic")
    monkeypatch.setitem(sys.modules, "cupy", FakeCupy(1, free=3 << 30))
    message = r"X of shape \(200, 8\) has run out .* 3\.0 GiB .* float32 .* memory_limit="
    with pytest.raises(MemoryError, match=message) as caught:
        solve(X, y, partial(Exhausted, left=left, error=FakeCupy.OutOfMemoryError))
    assert "Out of memory allocating" in str(caught.value.__cause__)
    with pytest.raises(MemoryError, match="Out of memory allocating"):  # that of this process
        solve(X, y, partial(Exhausted, left=left, error=MemoryError))


def test_estimators_say_what_to_install(monkeypatch):
    X, y = data("logistic")
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match=r"install adasdca\[cuda\]"):
        AdaSDCAClassifier(device="cuda").fit(X, y)
    with pytest.raises(ValueError, match="'device' parameter of AdaSDCAClassifier must be"):
        AdaSDCAClassifier(device="cuda:0").fit(X, y)
    y[:50] = 0.0
    for model in (AdaSDCAClassifier(device="cuda"), AdaSDCAClassifierCV(device="cuda")):
        with pytest.raises(ImportError, match=r"install adasdca\[cuda\]"):
            model.fit(X, y)
    with pytest.raises(ImportError, match=r"install adasdca\[cuda\]"):
        adasdca.path(X, np.sign(y + 0.5), loss="logistic", backend="cuda")
    with pytest.raises(ImportError, match=r"install adasdca\[cuda\]"):
        adasdca.certify(X, np.sign(y + 0.5), X[0], loss="logistic", lam=1.0, backend="cuda")


class OnDevice:
    """An array of a device, as far as its owner tells."""

    __cuda_array_interface__: ClassVar = {"shape": (3, 2)}


def test_rows_on_a_device_need_the_backend_there():
    y = [1.0, -1.0, 1.0]
    with pytest.raises(ValueError, match=r"X, a OnDevice, is in the memory.*backend='cuda'"):
        adasdca.solve(OnDevice(), y, loss="logistic", lam=1e-3)
    with pytest.raises(ValueError, match=r"choose device='cuda'.*array_api_dispatch=True"):
        AdaSDCAClassifier().fit(OnDevice(), y)
    fitted = AdaSDCAClassifier().fit([[1.0, 2.0], [2.0, 1.0], [0.0, 3.0]], y)
    with pytest.raises(ValueError, match=r"choose device='cuda'.*array_api_dispatch=True"):
        fitted.predict(OnDevice())
    with pytest.raises(ValueError, match=r"where no report reads it"):
        fitted.report(OnDevice(), y)


@pytest.fixture
def pretended(monkeypatch):
    """Let a device be there, whose products and passes are NumPy's; count what is copied to it."""
    copies = []

    def copied(rows):
        copies.append(rows.shape)
        return rows

    monkeypatch.setattr(device, "cuda_backend", host_backend)
    monkeypatch.setattr(device, "class_products", lambda rows, k: host_products(rows))
    for where in (adasdca.paths, estimators._device):
        monkeypatch.setattr(where, "copied", copied)
    return copies


@pytest.mark.parametrize("multi_class", ["ovr", "multinomial"])
@pytest.mark.parametrize("sparse", [False, True])
def test_estimators_solve_where_they_are_told_to(pretended, sparse, multi_class):
    X, y = load_iris(return_X_y=True)
    X = sp.csr_matrix(X) if sparse else X
    options = {"multi_class": multi_class, "tol": 1e-10}
    local = AdaSDCAClassifier(**options).fit(X, y)
    found = AdaSDCAClassifier(device="cuda", **options).fit(X, y)
    assert pretended == [X.shape]  # once for all classes
    assert found.converged_
    apart = np.linalg.norm(np.atleast_3d(local.coef_ - found.coef_), axis=1).ravel()
    assert (apart <= np.ravel(local.radius_ + found.radius_).max()).all()
    assert (found.predict(X) == local.predict(X)).all()
    certificates = zip(
        np.ravel(adasdca.certify(found, X, y, epochs=0, backend="cuda")),
        np.ravel(adasdca.certify(found, X, y, epochs=0)),
        strict=True,
    )
    for there, here in certificates:
        assert there.primal == pytest.approx(here.primal, rel=1e-12)
        assert there.relative_gap <= 1e-9


@pytest.mark.parametrize("classes", [2, 3])
def test_a_search_is_made_where_it_is_told_to(pretended, classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes], y[y < classes]
    options = {"Cs": [0.1, 1.0], "cv": 3, "tol": 1e-8}
    local = AdaSDCAClassifierCV(**options).fit(X, y)
    found = AdaSDCAClassifierCV(device="cuda", **options).fit(X, y)
    assert pretended[0] == X.shape
    np.testing.assert_allclose(found.scores_, local.scores_)
    assert found.C_ == local.C_
    assert np.linalg.norm(found.coef_ - local.coef_) <= found.radius_ + local.radius_


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5])
def test_a_path_is_walked_where_it_is_told_to(pretended, l1_ratio):
    X, y = data("logistic")
    options = {"loss": "logistic", "Cs": [0.01, 0.1, 1.0], "fit_intercept": True, "tol": 1e-8}
    local = adasdca.path(X, y, l1_ratio=l1_ratio, **options)
    found = adasdca.path(X, y, l1_ratio=l1_ratio, backend="cuda", **options)
    assert pretended == [X.shape]
    assert found.converged.all()
    assert (np.linalg.norm(found.coefs - local.coefs, axis=1) <= found.radii + local.radii).all()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared"])
def test_a_model_is_certified_where_it_is_told_to(loss, intercept):
    X, y = data(loss)
    problem = {"loss": loss, "lam": 1e-3, "fit_intercept": intercept}
    model = adasdca.solve(X, y, tol=1e-3, **problem)
    near = 0.99 * model.coef  # where no row is at a kink, and slopes are not rounding
    here = adasdca.certify(X, y, near, intercept=model.intercept, **problem)
    there = adasdca.certify(X, y, near, intercept=model.intercept, backend=host_backend, **problem)
    assert there.primal == pytest.approx(here.primal, rel=1e-12)
    assert there.gap == pytest.approx(here.gap, rel=1e-6)
    better = adasdca.certify(
        X, y, model.coef, intercept=model.intercept, epochs=20, backend=host_backend, **problem
    )
    assert better.gap <= there.gap
    assert better.gap <= 2e-3 * better.primal


@pytest.mark.parametrize("rows", [host_classes, streamed_classes])
@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_multinomial_models_of_rows_elsewhere(monkeypatch, rows, direct, intercept, weighted):
    if not direct:
        monkeypatch.setattr(adasdca.multinomial.equations, "DIRECT", 0)
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(0).random(len(y)) if weighted else None
    problem = {"n_classes": 3, "lam": 1e-3, "fit_intercept": intercept, "sample_weight": weight}
    local = solve_multinomial(X, y, tol=1e-10, **problem)
    found = solve_multinomial(X, y, tol=1e-10, backend=rows, **problem)
    assert found.converged
    assert found.dual <= local.primal
    assert local.dual <= found.primal
    assert np.linalg.norm(local.coef - found.coef) <= local.radius + found.radius


def test_multinomial_models_on_a_device_of_another_name():
    with pytest.raises(ValueError, match=r"backend = 'cud' is unknown; choose 'cuda'"):
        solve_multinomial(np.eye(3), np.arange(3), n_classes=3, lam=1.0, backend="cud")


ROWS = 300


def wide_problem(loss, intercept, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random(ROWS, 450, 0.02, random_state=seed, format="csr")
    scores = X @ rng.normal(size=450) + 0.3
    y = scores + 0.1 * rng.normal(size=ROWS)
    y = np.sign(y) if LOSSES[loss].kind == "classification" else y
    weight = rng.integers(0, 4, ROWS).astype(float)
    return Problem.checked(
        X, y, loss=loss, lam=1 / ROWS, fit_intercept=intercept, sample_weight=weight
    )


@pytest.fixture
def small_batches(monkeypatch):
    """Mini-batches are taken though they are small, and cost next to nothing."""
    monkeypatch.setattr(epochs, "LEAST", 2)
    with use(replace(Rates(), batch=1.0)):
        yield


KINKED = [name for name, loss in LOSSES.items() if loss().smoothness == 0]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", KINKED)
def test_mini_batches_never_lower_the_dual_and_keep_their_balance(small_batches, loss, intercept):
    """The curvature of a batch keeps its rows from overshooting together."""
    problem = wide_problem(loss, intercept)
    backend = host_backend(problem)
    assert 1 < backend.facts.batch < ROWS
    duals, gaps = [], []
    for key in range(9):
        seen = backend.survey(frozenset({"adaptive"}), FOREVER)
        duals.append(seen.dual)
        gaps.append(seen.gap)
        assert 0 < seen.active <= ROWS
        plan = Permutations(1, key) if key % 3 == 0 else ThinnedDraws("adaptive", "auto", 1.0, key)
        assert 0 < backend.ascend(plan, FOREVER) <= ROWS
        if intercept:
            assert abs(problem.weight @ backend.beta) <= 1e-9 * problem.total
    assert (np.diff(duals) >= -1e-6 * abs(duals[-1])).all()
    assert gaps[-1] < 0.5 * gaps[0]


def test_mini_batches_of_the_same_key_are_the_same(small_batches):
    def ascended(key):
        backend = host_backend(wide_problem("hinge", True))
        backend.survey(frozenset({"adaptive"}), FOREVER)
        backend.ascend(ThinnedDraws("adaptive", "auto", 1.0, key), FOREVER)
        return backend.beta

    # (At the best intercept for w = 0 only the rows of the rarer class have a share of the gap.)
    assert ascended(1).any()
    np.testing.assert_array_equal(ascended(1), ascended(1))
    assert (ascended(1) != ascended(2)).any()


@pytest.mark.parametrize("loss", KINKED)
def test_solves_with_mini_batches(small_batches, loss):
    problem = wide_problem(loss, True)
    X, y = problem.rows.matrix, problem.y
    options = {"loss": loss, "lam": 1 / ROWS, "fit_intercept": True, "tol": 1e-5}
    local = adasdca.solve(X, y, **options)
    other = adasdca.solve(X, y, backend=host_backend, **options)
    assert other.converged
    assert other.n_updates > 0
    assert abs(local.primal - other.primal) <= local.gap + other.gap


@pytest.mark.parametrize("elsewhere", [host_backend, streamed_backend])
def test_where_there_is_no_central_path_rounds_are_priced(elsewhere):
    """A path would be the cheaper way, if there were one."""
    problem = wide_problem("hinge", True)

    def prices(backend):
        assert (backend.interior() is None) != backend.facts.central
        costs = Costs(backend.facts, problem.loss)
        survey = backend.survey(frozenset({"adaptive"}), FOREVER)
        price = SecondOrder(problem, costs, 1, 1e-5, POLICY).cost(survey, 1.0, 1.0)
        return price, costs.path_step()

    (here, path), (there, none) = prices(LocalBackend(problem)), prices(elsewhere(problem))
    assert path < here < there < none == math.inf


def test_mini_batches_are_for_kinks_and_ridges_only(monkeypatch):
    X, y = data("hinge")
    few = Problem.checked(X, y, loss="hinge", lam=1.0)
    assert not host_backend(few).facts.ascends  # all rows share their features
    monkeypatch.setattr(epochs, "LEAST", 1)
    assert not host_backend(few).facts.ascends  # and rounds are faster on so many of them
    monkeypatch.setattr(epochs, "WIDE", 0.0)
    assert host_backend(few).facts.ascends
    assert not host_backend(Problem.checked(X, y, loss="squared_hinge", lam=1.0)).facts.ascends
    lasso = Problem.checked(X, y, loss="hinge", lam=1.0, l1_ratio=0.5)
    assert not host_backend(lasso).facts.ascends


def test_methods_that_visit_rows_one_by_one_are_refused(monkeypatch):
    X, y = data("hinge")
    monkeypatch.setattr(epochs, "LEAST", 1)
    monkeypatch.setattr(epochs, "WIDE", 0.0)
    with pytest.raises(ValueError, match=r"one by one.*choose method='auto'"):
        adasdca.solve(X, y, loss="hinge", lam=1e-3, method="sdca", backend=host_backend)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", KINKED)
def test_a_working_set_is_that_of_the_processor(loss, intercept):
    """Rows far from their kinks keep their duals; the others' derivatives are the core's."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 6))
    y = np.where(X[:, 0] + rng.normal(size=4000) > 0, 1.0, -1.0)
    if LOSSES[loss]().kind == "regression":
        y = X[:, 0] + rng.normal(size=4000)
    problem = Problem.checked(X, y, loss=loss, lam=1e-3, fit_intercept=intercept)
    w, b = 0.3 * np.eye(6)[0], 0.1 * intercept
    centre = -problem.loss.slope(X @ w + b, y)
    centre[:300] *= 0.4
    one = LocalBackend(problem).term(0.2, centre, (w, b), 0.01)
    two = host_backend(problem).term(0.2, centre, (w, b), 0.01)
    dv, db = rng.normal(size=6), 0.2 * intercept
    found = one.place(w, b), two.place(w, b)
    assert len(one.beta) == len(two.here.beta) < 0.3 * 4000
    # What is left of the balance of duals is paid by all rows, the others included.
    away = np.abs(problem.loss.residual(X @ w + b, y)).mean()
    assert two.residual == pytest.approx(away, rel=1e-9)
    one.aim(dv, db), two.aim(dv, db)
    for length in (0.0, 0.03):
        slopes = one.slope(length), two.slope(length)
        assert slopes[0].value == pytest.approx(slopes[1].value, rel=1e-9)
        assert slopes[0].curvature == pytest.approx(slopes[1].curvature, rel=1e-9)
    for mine, other in (found, (one.move(0.03), two.move(0.03))):
        np.testing.assert_allclose(mine.u, other.u, rtol=1e-9, atol=1e-12)
        assert mine.balance == pytest.approx(other.balance, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(one.duals(), two.duals(), rtol=1e-9, atol=1e-12)
