"""The compiled kernels against the oracle, step by step: ascent, survey, QUARTZ, Algorithm 1."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import reference as ref
from adasdca import _core, solve, theory
from adasdca.backends.cpu import LocalBackend, make_workspace
from adasdca.problem.problem import Problem
from cases import LOSSES, REGULARIZERS, SMOOTH, VALUES, make_data, storages

FOREVER = 1e18
N = 40


def make_options(regularizer, weighted, intercept, seed=1):
    options = {"lam": 0.05, **REGULARIZERS[regularizer], "fit_intercept": intercept}
    if weighted:
        weight = np.random.default_rng(seed).uniform(0.1, 3.0, N)
        weight[5] = 0.0
        options["sample_weight"] = weight
    return options


def make_start(oracle, seed=2):
    """A dual vector inside the domain."""
    rng = np.random.default_rng(seed)
    b = rng.uniform(max(oracle.loss.low, -2.0), min(oracle.loss.high, 2.0), oracle.n)
    return b * oracle.y if oracle.loss.kind == "classification" else b


def forms(every):
    """Yield kinds of values: all of them, each in every storage, or doubles in three."""
    for values in VALUES if every else VALUES[:1]:
        yield values, lambda X, values=values: list(storages(X, values))[: None if every else 3]


def state(workspace):
    """β and w of a workspace."""
    beta, certified, coef = np.empty(workspace.n), np.empty(workspace.n), np.empty(workspace.d)
    workspace.survey(None, None, None, None, beta, certified, coef, 0.0, 1, FOREVER)
    return beta, coef


def assert_bound(dual, value, scale):
    """A lower bound is below the value in exact numbers, and by hardly more than rounding."""
    assert value - 1e-10 * scale <= dual <= value + 1e-13 * scale


def agrees(workspace, oracle, beta, tol):
    """Assert that a workspace stands where the oracle does."""
    found, coef = state(workspace)
    np.testing.assert_allclose(found, beta, rtol=tol, atol=tol)
    point = oracle.primal_point(oracle.average(beta))[:-1]
    np.testing.assert_allclose(coef, point, rtol=tol, atol=tol)


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("regularizer", REGULARIZERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_ascent_equals_the_oracle(loss, regularizer, weighted, intercept):
    options = make_options(regularizer, weighted, intercept)
    offset = 0.3 if intercept else 0.0
    picks = np.random.default_rng(4).integers(N, size=100).astype(np.int32)
    for values, stored in forms(every=weighted == intercept):
        X, y = make_data(loss, values)
        oracle = ref.Problem(X, y, loss, **options)
        start = make_start(oracle)
        beta, moved = ref.follow(oracle, start, picks, offset)
        best = moved + oracle.s * oracle.average(beta)[-1]
        for rows, packed in stored(X):
            workspace = make_workspace(Problem.checked(rows, y, loss=loss, **options), packed)
            workspace.set_beta(start, 1)
            workspace.multiplier = offset
            assert workspace.ascend(picks, FOREVER) == len(picks)
            assert (workspace.packed_bytes > 0) == packed
            bias = workspace.bias
            assert workspace.multiplier == pytest.approx(moved, rel=1e-12, abs=1e-12)
            agrees(workspace, oracle, beta, 1e-12)
            assert bias == pytest.approx(best, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("kind", ["ones", "float32", "float64"])
def test_rows_are_packed_alike_by_any_number_of_threads(kind):
    """Enough rows for several; a token that stops it leaves them as they were."""
    X = sp.random(
        100_000, 200, 0.08, "csr", np.float32 if kind == "float32" else float, random_state=0
    )
    if kind == "ones":
        X.data[:] = 1.0
    y = np.where(np.random.default_rng(0).random(X.shape[0]) < 0.5, 1.0, -1.0)
    problem = Problem.checked(X, y, loss="logistic", lam=1e-3)
    picks, plain = _core.draw_permutation(len(y), 0), make_workspace(problem, False)
    assert plain.ascend(picks, FOREVER) == len(picks)
    expected = state(plain)
    for threads in (1, 2, 3, 16):
        workspace = make_workspace(problem, True)
        assert workspace.ascend(picks, 0.0, threads) == 0
        assert workspace.packed_bytes == 0
        assert workspace.ascend(picks, FOREVER, threads) == len(picks)
        assert workspace.packed_bytes > 1e7
        for found, one in zip(state(workspace), expected, strict=True):
            np.testing.assert_array_equal(found, one)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("regularizer", REGULARIZERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_survey_equals_the_oracle(loss, regularizer, weighted):
    options = make_options(regularizer, weighted, intercept=False)
    tight = {"rtol": 1e-12, "atol": 1e-12}
    for values, stored in forms(every=weighted):
        X, y = make_data(loss, values)
        oracle = ref.Problem(X, y, loss, **options)
        beta = make_start(oracle)
        expected = ref.survey(oracle, beta)
        for rows, packed in stored(X):
            backend = LocalBackend(Problem.checked(rows, y, loss=loss, **options), 1, packed)
            backend.restart(beta, 0.0)
            backend.workspace.pack()
            assert (backend.packed_bytes > 0) == packed
            seen = backend.survey(frozenset({"score", "residue", "share", "adaptive"}))
            for name in ("score", "residue", "share"):
                np.testing.assert_allclose(getattr(seen, name), getattr(expected, name), **tight)
            np.testing.assert_allclose(seen.adaptive, ref.relaxed(oracle, expected), **tight)
            np.testing.assert_allclose(seen.curvature, oracle.q, rtol=1e-14)
            np.testing.assert_array_equal(seen.beta, beta)
            assert seen.active == np.count_nonzero(seen.adaptive)
            assert seen.primal == pytest.approx(oracle.primal(seen.coef), rel=1e-13)
            assert_bound(seen.dual, oracle.dual(beta), abs(seen.primal) + abs(seen.dual))
            assert seen.gap == pytest.approx(seen.primal - oracle.dual(beta), rel=1e-11)


@pytest.mark.parametrize("loss", LOSSES)
def test_survey_with_an_intercept(loss):
    """Everything is at the method's own intercept, but the duals of the certificate balanced."""
    X, y = make_data(loss)
    options = make_options("elastic-net-bounds", weighted=True, intercept=True)
    oracle = ref.Problem(X, y, loss, **options)
    beta = make_start(oracle)
    backend = LocalBackend(Problem.checked(X, y, loss=loss, **options))
    backend.restart(beta, 0.3)
    seen = backend.survey(frozenset({"score", "residue", "share", "adaptive"}))
    expected = ref.survey(oracle, beta, offset=0.3)
    u = oracle.average(beta)
    tight = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(seen.score, X @ oracle.primal_point(u)[:-1], **tight)
    np.testing.assert_allclose(seen.share, expected.share, **tight)
    np.testing.assert_allclose(seen.residue, expected.residue, **tight)
    # The multiplier moves during an ascent, not before.
    assert backend.multiplier == 0.3
    scale = oracle.c @ np.abs(seen.certified)
    assert oracle.c @ seen.certified == pytest.approx(0.0, abs=1e-13 * scale)
    assert seen.primal == pytest.approx(oracle.primal(seen.coef, seen.intercept), rel=1e-12)
    assert_bound(seen.dual, oracle.dual(seen.certified), abs(seen.primal) + abs(seen.dual))
    assert seen.intercept == pytest.approx(0.3 + oracle.s * u[-1], rel=1e-12)
    up, down = oracle.c @ np.maximum(beta, 0), oracle.c @ np.maximum(-beta, 0)
    balanced = beta * np.where(beta > 0, min(up, down) / up, min(up, down) / down)
    np.testing.assert_allclose(seen.certified, balanced, **tight)
    backend.workspace.ascend(np.empty(0, np.int32), FOREVER)
    assert backend.multiplier == pytest.approx(0.3, rel=1e-15)


@pytest.mark.parametrize("loss", ["squared", "hinge", "logistic"])
def test_survey_sums_u_anew(loss):
    """After many updates u has drifted; the ascent after a survey begins where it belongs."""
    X, y = make_data(loss)
    oracle = ref.Problem(X, y, loss, lam=1e-4)
    workspace = make_workspace(Problem.checked(X, y, loss=loss, lam=1e-4))
    picks = np.random.default_rng(0).integers(N, size=200_000).astype(np.int32)
    assert workspace.ascend(picks, FOREVER) == len(picks)
    beta, drifted = state(workspace)
    np.testing.assert_array_equal(state(workspace)[1], drifted)
    assert workspace.ascend(picks[:0], FOREVER) == 0
    fresh = state(workspace)[1]
    exact = oracle.average(beta)[:-1]
    scale = np.abs(X.T) @ np.abs(beta) / (1e-4 * N)
    assert (np.abs(fresh - exact) <= 1e-15 * scale).all()
    assert (np.abs(drifted - exact) <= 1e-10 * scale).all()
    assert (drifted != fresh).any()


@pytest.mark.parametrize("sampling", ["uniform", "importance"])
@pytest.mark.parametrize("regularizer", REGULARIZERS)
@pytest.mark.parametrize("loss", SMOOTH)
def test_quartz_equals_the_oracle(loss, regularizer, sampling):
    for (values, stored), weighted in itertools.product(
        forms(every=sampling == "importance"), (False, True)
    ):
        options = make_options(regularizer, weighted, intercept=False)
        X, y = make_data(loss, values)
        oracle = ref.Problem(X, y, loss, **options)
        weights = np.ones(N) if sampling == "uniform" else ref.importance(oracle)
        p = weights / weights.sum()
        picks = np.random.default_rng(5).choice(N, size=300, p=p).astype(np.int32)
        beta, _ = ref.quartz(oracle, picks, weights)
        theta = float(np.min(p * oracle.loss.gamma / (oracle.loss.gamma + oracle.q)))
        for rows, packed in stored(X):
            workspace = make_workspace(Problem.checked(rows, y, loss=loss, **options), packed)
            for part in np.split(picks, 3):  # the average lives on between calls
                assert workspace.quartz(part, p, theta, FOREVER) == len(part)
            agrees(workspace, oracle, beta, 1e-11)


def uniform(key, counter):
    """Number `counter` of the core's stream `key`, in (0, 1)."""
    word = 2**64
    x = (key + (counter + 1) * 0x9E3779B97F4A7C15) % word
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % word
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % word
    return ((x ^ (x >> 31)) >> 12) / 2.0**52 + 2.0**-53


def adaptive_distribution(oracle, seen, rule):
    distribution = ref.step(oracle, seen) if rule == "step" else ref.relaxed(oracle, seen)
    if rule != "optimal":
        return distribution / distribution.sum()
    return theory.water_fill(distribution, oracle.loss.gamma * oracle.c @ seen.residue**2)[0]


def adaptive_steps(oracle, beta, steps, key, offset=0.0, rule="relaxed"):
    """Algorithm 1, everything recomputed before every step, with the core's random numbers."""
    swings = ref.Swings(oracle)
    for k in range(steps):
        distribution = adaptive_distribution(oracle, ref.survey(oracle, beta, offset), rule)
        row = int(np.searchsorted(np.cumsum(distribution), uniform(key, k), side="right"))
        beta, offset = ref.follow(oracle, beta, [row], offset, swings)
    return beta


@pytest.mark.parametrize("rule", ["relaxed", "step"])
@pytest.mark.parametrize("setting", ["l2", "elastic-net-bounds", "weights", "intercept"])
@pytest.mark.parametrize("loss", LOSSES)
def test_algorithm_1_equals_the_oracle(loss, setting, rule):
    """The scores that the kernel keeps up to date are those of the point, so the picks are too."""
    regularizer = setting if setting in REGULARIZERS else "l2"
    options = make_options(regularizer, setting == "weights", setting == "intercept")
    offset = 0.3 if setting == "intercept" else 0.0
    for values in VALUES if rule == "relaxed" else VALUES[:1]:
        X, y = make_data(loss, values)
        oracle = ref.Problem(X, y, loss, **options)
        start, key = make_start(oracle), 2**63 + 12345
        beta = adaptive_steps(oracle, start, 60, key, offset, rule)
        for rows, packed in list(storages(X, values))[:3]:  # dense, CSR, packed
            workspace = make_workspace(Problem.checked(rows, y, loss=loss, **options), packed)
            workspace.set_beta(start, 1)
            workspace.multiplier = offset
            assert workspace.ascend_adaptively(rule, 60, key, FOREVER) == 60
            agrees(workspace, oracle, beta, 1e-11)


@pytest.mark.parametrize("loss", SMOOTH)
def test_algorithm_1_with_the_optimal_distribution(loss):
    """One step from each of many points: after it, rounding decides which residues are 0."""
    X, y = make_data(loss)
    oracle = ref.Problem(X, y, loss, **make_options("l2", weighted=True, intercept=False))
    problem = Problem.checked(X, y, loss=loss, lam=0.05, sample_weight=oracle.c)
    workspace = make_workspace(problem)
    for seed in range(40):
        start = make_start(oracle, seed)
        workspace.set_beta(start, 1)
        assert workspace.ascend_adaptively("optimal", 1, seed, FOREVER) == 1
        agrees(workspace, oracle, adaptive_steps(oracle, start, 1, seed, rule="optimal"), 1e-12)


def test_algorithm_1_over_many_blocks_of_rows():
    """More rows than one block of the distribution holds."""
    X, y = make_data("smoothed_hinge", n=600)
    oracle = ref.Problem(X, y, "smoothed_hinge", lam=0.05)
    workspace = make_workspace(Problem.checked(X, y, loss="smoothed_hinge", lam=0.05))
    assert workspace.ascend_adaptively("relaxed", 500, 7, FOREVER) == 500
    agrees(workspace, oracle, adaptive_steps(oracle, np.zeros(600), 500, 7), 1e-10)


def test_algorithm_1_stops_when_no_row_is_left():
    X, y = np.eye(3), np.array([1.0, 2.0, 0.0])
    workspace = make_workspace(Problem.checked(X, y, loss="squared", lam=1.0))
    assert workspace.ascend_adaptively("relaxed", 100, 1, FOREVER) == 2
    assert workspace.ascend_adaptively("relaxed", 100, 1, FOREVER) == 0


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("values", VALUES)
def test_threads_change_no_bit(threads, values):
    X, y = make_data("logistic", values, n=5000)
    weight = np.random.default_rng(0).uniform(0.1, 2.0, 5000)
    rows = sp.csr_array(X)
    problem = Problem.checked(
        rows, y, loss="logistic", lam=1e-3, l1_ratio=0.1, sample_weight=weight, fit_intercept=True
    )
    beta = y * np.random.default_rng(1).random(5000)
    surveys = []
    for count in (1, threads):
        backend = LocalBackend(problem, count)
        backend.restart(beta, 0.2)
        seen = vars(backend.survey(frozenset({"score", "residue", "share", "adaptive"})))
        seen |= vars(seen.pop("certificate"))
        surveys.append({name: np.asarray(value).tobytes() for name, value in seen.items()})
    assert surveys[0] == surveys[1]
    one, many = (
        solve(rows, y, loss="smoothed_hinge", lam=1e-3, random_state=3, tol=1e-6, n_threads=count)
        for count in (1, threads)
    )
    assert one.coef.tobytes() == many.coef.tobytes()
    assert one.history.gap.tobytes() == many.history.gap.tobytes()


def test_a_ring_on_the_horizon_is_sorted_like_any_other():
    """Of some 30 million rings one is so late that as a float it is the horizon itself.

    These keys draw such a ring. In a process of its own: what it used to do was a crash.
    """
    program = """
import sys
import numpy as np
from adasdca import _core
for key in (2026, 3043, 5129, 6177):
    print(key, file=sys.stderr, flush=True)
    picks = _core.Planner().plan(np.ones(20_000), 2.0, 20_000, key)
    assert picks.shape == (20_000,) and picks.min() >= 0 and picks.max() < 20_000
    assert np.bincount(picks).max() < 20
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert run.returncode == 0, run.stderr
