"""The oracle on trial: textbook properties of every loss, and the optimum it must reach."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import reference as ref

PARAMS = {
    "squared": {"gamma": 0.7},
    "smoothed_hinge": {"gamma": 0.5},
    "huber": {"delta": 0.5},
    "epsilon_insensitive": {"epsilon": 0.2},
    "squared_epsilon_insensitive": {"epsilon": 0.2},
    "quantile": {"quantile": 0.3},
}
NAMES = sorted(ref.LOSSES)
SMOOTH = [name for name in NAMES if ref.LOSSES[name]().gamma > 0]
SETTINGS = {
    "l2": {},
    "elastic-net-box-weights": {"l1_ratio": 0.4, "bounds": (-0.3, 0.5), "sample_weight": True},
    "one-sided": {"bounds": (np.array([0.0, -np.inf] * 3), np.inf)},
    "intercept": {"fit_intercept": True, "l1_ratio": 0.2, "sample_weight": True},
}


def make_loss(name):
    return ref.LOSSES[name](**PARAMS.get(name, {}))


def make_data(name, seed=0, n=40, d=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.exponential(size=(n, 1))
    y = X @ rng.normal(size=d) + rng.normal(size=n) + 0.7
    return X, np.sign(y) if make_loss(name).kind == "classification" else y


def make_problem(name, setting="l2", seed=0, lam=0.2):
    """A problem and its optimal value."""
    X, y = make_data(name, seed)
    options = {"lam": lam, **SETTINGS[setting]}
    if options.get("sample_weight"):
        options["sample_weight"] = np.random.default_rng(seed + 1).uniform(0.2, 3.0, len(y))
    params = PARAMS.get(name, {})
    best = ref.optimum(X, y, name, params, **options)[0]
    return ref.Problem(X, y, name, **options, **params), best


def points(loss, size=2000, seed=0):
    """Random scores, labels, duals inside the domain and curvatures, some of them zero."""
    rng = np.random.default_rng(seed)
    classify = loss.kind == "classification"
    y = rng.choice([-1.0, 1.0], size) if classify else 2 * rng.normal(size=size)
    low, high = max(loss.low, -5.0), min(loss.high, 5.0)
    beta = rng.uniform(low, high, size) * (y if classify else 1.0)
    q = rng.exponential(size=size) ** 3 * (rng.random(size) > 0.1)
    return 3 * rng.normal(size=size), y, beta, q


@pytest.mark.parametrize("name", NAMES)
def test_conjugate_is_the_supremum(name):
    loss = make_loss(name)
    _, y, beta, _ = points(loss, size=20)
    for y_i, beta_i in zip(y, beta, strict=True):

        def below(a, y_i=y_i, beta_i=beta_i):
            return float(loss.value(a, y_i) + a * beta_i)

        found = minimize_scalar(below, bounds=(-60, 60), method="bounded", options={"xatol": 1e-9})
        assert -found.fun == pytest.approx(float(loss.conjugate(beta_i, y_i)), abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_conjugate_is_infinite_outside_the_domain(name):
    loss = make_loss(name)
    outside = [b for b in (loss.low - 1e-6, loss.high + 1e-6) if np.isfinite(b)]
    assert np.isinf(loss.conjugate(np.array(outside), 1.0)).all()
    assert np.isfinite(loss.conjugate(np.clip([-9.0, 9.0], loss.low, loss.high), 1.0)).all()


@pytest.mark.parametrize("name", NAMES)
def test_slope_by_differences(name):
    loss, h = make_loss(name), 1e-6
    a, y, _, _ = points(loss)
    difference = (loss.value(a + h, y) - loss.value(a - h, y)) / (2 * h)
    straight = loss.slope(a + h, y) - loss.slope(a - h, y)  # a kink inside [a-h, a+h] is not tested
    smooth = np.abs(straight) < 1e-4
    assert smooth.mean() > 0.99
    np.testing.assert_allclose(loss.slope(a, y)[smooth], difference[smooth], atol=1e-5)


@pytest.mark.parametrize("name", SMOOTH)
def test_gamma_is_the_smoothness(name):
    loss = make_loss(name)
    a, y = np.linspace(-4, 4, 4001), 1.0
    steepest = np.max(np.abs(np.diff(loss.slope(a, y))) / np.diff(a))
    assert steepest == pytest.approx(1 / loss.gamma, rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_step_maximises_the_dual_in_one_coordinate(name):
    loss = make_loss(name)
    a, y, beta, q = points(loss, size=60)
    new = loss.step(beta, a, y, q)

    def ascent(x, i):
        move = x - beta[i]
        return float(-loss.conjugate(x, y[i]) - a[i] * move - q[i] * move**2 / 2)

    assert (q == 0).any()
    for i in range(a.size):
        sign = y[i] if loss.kind == "classification" else 1.0
        low, high = sorted(sign * np.clip([loss.low, loss.high], -60, 60))
        found = minimize_scalar(
            lambda x, i=i: -ascent(x, i), bounds=(low, high), method="bounded",
            options={"xatol": 1e-10},
        )  # fmt: skip
        grid = max(ascent(x, i) for x in np.linspace(low, high, 101))
        assert ascent(new[i], i) >= max(-found.fun, grid) - 1e-12
        assert ascent(new[i], i) == pytest.approx(-found.fun, abs=1e-6)


def test_logistic_step_keeps_its_digits_in_the_tails():
    loss = ref.LOSSES["logistic"]()
    for z in (40.0, 300.0, 700.0):
        b = float(loss.step(0.0, z, 1.0, 2.0))
        assert b > 0
        assert np.log(b) == pytest.approx(-z, rel=1e-12)
    assert float(loss.step(1.0, -700.0, 1.0, 2.0)) == 1.0


@pytest.mark.parametrize("setting", ["l2", "elastic-net-box-weights", "one-sided"])
@pytest.mark.parametrize("name", NAMES)
def test_the_shares_sum_to_the_gap_and_no_step_lowers_the_dual(name, setting):
    problem, best = make_problem(name, setting)
    rng, beta, last = np.random.default_rng(3), np.zeros(problem.n), -np.inf
    for i in rng.integers(problem.n, size=30):
        beta = ref.ascend(problem, beta, [i])
        primal, dual = ref.certificate(problem, beta)
        assert dual >= last - 1e-13
        assert dual <= best * (1 + 1e-9) <= primal * (1 + 2e-9)
        shares = problem.c @ ref.survey(problem, beta).share / problem.N
        assert shares == pytest.approx(primal - dual, abs=1e-12)
        last = dual


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", NAMES)
def test_adasdca_plus_reaches_the_optimum(name, setting):
    problem, best = make_problem(name, setting)
    beta, _ = ref.adasdca_plus(problem, 150, np.random.default_rng(1))
    primal, dual = ref.certificate(problem, beta)
    assert dual <= best * (1 + 1e-9)
    assert best <= primal * (1 + 1e-9)
    # A loss without curvature has no linear rate to rely on.
    assert primal - dual <= (1e-10 if problem.loss.gamma else 1e-4) * best


@pytest.mark.parametrize("name", SMOOTH)
def test_optimum_is_accurate(name):
    """-phi' at the interior-point solution is dual feasible and certifies it to 1e-9."""
    problem, best = make_problem(name, "intercept")
    X, y = make_data(name)
    _, coef, b = ref.optimum(
        X, y, name, PARAMS.get(name), lam=0.2, l1_ratio=0.2, sample_weight=problem.c,
        fit_intercept=True,
    )  # fmt: skip
    beta = -problem.loss.slope(X @ coef + b, y)
    assert abs(problem.c @ beta) < 1e-6 * problem.N
    primal, dual = ref.certificate(problem, beta)
    assert primal == pytest.approx(best, rel=1e-9)
    assert dual == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("sampling", ["uniform", "importance"])
@pytest.mark.parametrize("name", ["squared", "smoothed_hinge", "logistic"])
def test_quartz_reaches_the_optimum(name, sampling):
    problem, best = make_problem(name, "elastic-net-box-weights", lam=1.0)
    weights = np.ones(problem.n) if sampling == "uniform" else ref.importance(problem)
    p = weights / weights.sum()
    rows = np.random.default_rng(2).choice(problem.n, size=20_000, p=p)
    beta, w = ref.quartz(problem, rows, weights)
    assert problem.primal(w) == pytest.approx(best, rel=1e-6)
    assert problem.dual(beta) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_an_integer_weight_is_a_repeated_row(name):
    X, y = make_data(name)
    times = np.random.default_rng(5).integers(1, 4, len(y))
    weighted = ref.Problem(X, y, name, lam=0.1, l1_ratio=0.3, sample_weight=times)
    repeated = ref.Problem(np.repeat(X, times, 0), np.repeat(y, times), name, lam=0.1, l1_ratio=0.3)
    beta = ref.ascend(weighted, np.zeros(len(y)), range(len(y)))
    assert repeated.dual(np.repeat(beta, times)) == pytest.approx(weighted.dual(beta), rel=1e-12)
    w = weighted.primal_point(weighted.average(beta))[:-1]
    assert repeated.primal(w) == pytest.approx(weighted.primal(w), rel=1e-12)


def test_draws_follow_algorithm_2():
    p, m, times = np.array([0.5, 0.3, 0.2]), 4.0, 20_000
    rng = np.random.default_rng(0)
    seen = np.zeros((3, 3))
    for _ in range(times):
        first, second = ref.draw(np.append(p, 0.0), m, 2, rng)
        seen[first, second] += 1
    after = np.where(np.eye(3, dtype=bool), p / m, p)  # row i: weights once i has been picked
    expected = p[:, None] * after / after.sum(axis=1, keepdims=True)
    deviation = np.sqrt(times * expected * (1 - expected))
    assert (np.abs(seen - times * expected) < 4 * deviation).all()
    assert sorted(ref.draw(np.ones(9), 1e12, 9, rng)) == list(range(9))
