"""Every loss of the core: its formulas, its inequalities, its digits, its name and its errors."""

import copy
import dataclasses
import pickle
from decimal import Decimal, localcontext

import numpy as np
import pytest

import reference_losses as ref
from adasdca import _core, losses
from adasdca.problem.losses import LOSSES, get_loss

EPS = np.finfo(np.float64).eps
PARAMETERS = [
    *((name, {}) for name in LOSSES),
    ("squared", {"gamma": 0.3}),
    ("smoothed_hinge", {"gamma": 1e-3}),
    ("smoothed_hinge", {"gamma": 4.0}),
    ("huber", {"delta": 0.2}),
    ("epsilon_insensitive", {"epsilon": 0.0}),
    ("epsilon_insensitive", {"epsilon": 2.5}),
    ("squared_epsilon_insensitive", {"epsilon": 0.0}),
    ("squared_epsilon_insensitive", {"epsilon": 2.5}),
    ("quantile", {"quantile": 0.05}),
    ("quantile", {"quantile": 0.9}),
]
LEVELS = [
    level
    for level in _core._built()
    if level == "base" or int(level.removeprefix("v")) <= _core.supported_level()
]


@pytest.fixture(params=PARAMETERS, ids=lambda p: "-".join([p[0], *map(str, p[1].values())]))
def pair(request):
    """A loss of the core and the same one of the oracle."""
    name, parameters = request.param
    return get_loss(name, **parameters), ref.LOSSES[name](**parameters)


def points(oracle, size=4000, seed=0):
    """Scores, labels, duals and curvatures: ordinary ones first, then every extreme with every."""
    rng = np.random.default_rng(seed)
    classify = oracle.kind == "classification"
    low, high = max(oracle.low, -1e3), min(oracle.high, 1e3)
    y = rng.choice([-1.0, 1.0], size) if classify else 2 * rng.normal(size=size)
    a = rng.choice([3.0, 20.0], size) * rng.normal(size=size)
    b = rng.uniform(max(low, -5.0), min(high, 5.0), size)
    q = 10 ** rng.uniform(-3, 2, size) * (rng.random(size) > 0.1)
    ends = np.array([low, high, 0.0, low + 1e-17, 0.5 * (low + high)])
    scores = [0.0, 1.0, -1.0, 1e-9, 1 - 1e-12, 30.0, -30.0, 800.0, -800.0, 1e6, -1e6]
    labels = [-1.0, 1.0] if classify else [0.0, -3.0, 1e5]
    grid = np.meshgrid(scores, labels, ends, [0.0, 1e-12, 1e-3, 1.0, 1e6, 1e12])
    a, y, b, q = (
        np.concatenate([x, extreme.ravel()]) for x, extreme in zip((a, y, b, q), grid, strict=True)
    )
    return a, y, b * y if classify else b, q


def close(actual, desired, scale, ulps=16):
    """Whether numbers agree to some units in the last place of a scale; infinities must match."""
    actual, desired, scale = np.broadcast_arrays(actual, desired, scale)
    finite = np.isfinite(desired)
    np.testing.assert_array_equal(actual[~finite], desired[~finite])
    error = np.abs(actual - desired)[finite]
    worst = np.argmax(error / np.maximum(scale[finite], 1e-300))
    assert (error <= ulps * EPS * scale[finite]).all(), (error[worst], scale[finite][worst])


def test_value_slope_and_conjugate_equal_the_textbook(pair):
    loss, oracle = pair
    a, y, beta, _ = points(oracle)
    force = np.abs(1 - y * a if loss.kind == "classification" else a - y)
    terms = force * np.abs(oracle.slope(a, y))  # what the value is a difference of
    close(loss.value(a, y), oracle.value(a, y), np.abs(oracle.value(a, y)) + terms + EPS)
    # A rounded corner turns within a length gamma: there a score's rounding counts 1/gamma times.
    turn = (np.abs(a) + np.abs(y)) / oracle.gamma if oracle.gamma else 0.0
    close(loss.slope(a, y), oracle.slope(a, y), np.minimum(np.abs(oracle.slope(a, y)), 1) + turn)
    terms = np.abs(beta) * (1 + np.abs(y)) + oracle.gamma * beta**2
    close(loss.conjugate(beta, y), oracle.conjugate(beta, y), terms + 1)
    outside = np.array([oracle.low - 1e-9, oracle.high + 1e-9])
    outside = outside[np.isfinite(outside)]
    assert np.isposinf(loss.conjugate(outside, 1.0)).all()
    assert loss.smoothness == oracle.gamma
    assert loss.kind == oracle.kind


def dual_ascent(oracle, beta, a, y, q, new):
    """What a step to ``new`` gains in the dual, and the size of its terms."""
    move = new - beta
    terms = oracle.conjugate(new, y), a * move, q * move**2 / 2
    return -sum(terms), sum(map(np.abs, terms))


def test_step_equals_the_textbook(pair):
    loss, oracle = pair
    a, y, beta, q = points(oracle)
    new, expected = loss.step(beta, a, y, q), oracle.step(beta, a, y, q)
    stiffness = oracle.gamma + q
    # With neither curvature nor force, at a kink, every beta is a maximiser.
    free = (stiffness == 0) & (oracle.slope(a - 1e-6, y) != oracle.slope(a + 1e-6, y))
    assert free.mean() < 0.02
    scale = 1 + np.abs(expected) + np.abs(beta)
    unbounded = np.isinf(oracle.high - oracle.low)
    if unbounded or loss.name == "smoothed_hinge":
        scale = scale + (np.abs(a) + np.abs(y)) / np.maximum(stiffness, 1e-300)
    close(new[~free], expected[~free], scale[~free], ulps=64)
    gained, _ = dual_ascent(oracle, beta, a, y, q, new)
    best, size = dual_ascent(oracle, beta, a, y, q, expected)
    assert (gained >= best - 64 * EPS * (size + np.abs(a) + 1)).all()


def test_step_never_leaves_the_domain(pair):
    loss, oracle = pair
    a, y, beta, q = points(oracle)
    for curvature in (q, np.full_like(q, 1e200), np.full_like(q, 1e-200)):
        new = loss.step(beta, a, y, curvature)
        b = new * y if oracle.kind == "classification" else new
        assert (b >= oracle.low).all()
        assert (b <= oracle.high).all()
        assert np.isfinite(new).all()
        assert np.isfinite(loss.conjugate(new, y)).all()


def test_fenchel_young(pair):
    loss, oracle = pair
    a, y, beta, _ = points(oracle)
    for dual, touching in ((beta, False), (-loss.slope(a, y), True)):
        terms = loss.value(a, y), loss.conjugate(dual, y), a * dual
        rounding = 16 * EPS * (1 + sum(map(np.abs, terms)) + np.abs(y * dual))
        assert (sum(terms) >= -rounding).all()
        assert (sum(terms) > 1e-3).any() != touching
        if touching:
            assert (sum(terms) <= rounding).all()


def test_step_lands_where_beta_is_minus_the_slope(pair):
    loss, oracle = pair
    a, y, beta, q = points(oracle, size=40_000)
    new = loss.step(beta, a, y, q)
    moved = a + q * (new - beta)
    # How far rounding can throw the score, and what that can do to either side of the equation.
    thrown = 16 * EPS * (np.abs(a) + q * (np.abs(beta) + np.abs(new)) + np.abs(y) + 1)
    if oracle.gamma > 0:
        slack = thrown / oracle.gamma + 16 * EPS * np.abs(new)
        assert (np.abs(new + loss.slope(moved, y)) <= slack).all()
    reach = np.abs(new) + np.abs(loss.slope(moved - thrown, y)) + np.abs(loss.slope(moved, y))
    share = loss.value(moved, y) + loss.conjugate(new, y) + moved * new
    size = np.abs(loss.value(moved, y)) + np.abs(loss.conjugate(new, y)) + np.abs(moved * new)
    assert (np.abs(share) <= thrown * (1 + reach) + 16 * EPS * size).all()


def test_hinges_are_members_of_the_family():
    a, y, beta, q = points(ref.hinge())
    for left, right in ((losses.SmoothedHinge(gamma=0), losses.Hinge()),
                        (losses.EpsilonInsensitive(epsilon=0), losses.Absolute())):  # fmt: skip
        np.testing.assert_array_equal(left.value(a, y), right.value(a, y))
        np.testing.assert_array_equal(left.slope(a, y), right.slope(a, y))
        np.testing.assert_array_equal(left.step(beta, a, y, q), right.step(beta, a, y, q))


def exact(function, arguments):
    """The function of each argument, in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        return [function(Decimal(float(x))) for x in arguments]


def softplus(z):
    """log(1 + exp(-z)): in the tail by its series, where 60 digits of 1 + exp(-z) are too few."""
    e = (-z).exp()
    return e - e * e / 2 if z > 90 else (1 + e).ln()


def ulps(actual, truth):
    """Errors in units in the last place of the truth."""
    pairs = zip(actual, truth, strict=True)
    return np.array([float(abs(Decimal(float(x)) - t)) / np.spacing(float(t)) for x, t in pairs])


def margins():
    rng = np.random.default_rng(0)
    spread = np.concatenate([rng.uniform(-5, 5, 700), rng.uniform(-40, 40, 700)])
    tails = np.concatenate([rng.uniform(-705, 705, 500), 10 ** rng.uniform(-20, 0, 200)])
    return np.concatenate([spread, tails, [0.0, 1e-320, 36.7, 37.5, -36.7, -37.5]])


@pytest.mark.parametrize("level", LEVELS)
def test_logistic_value_and_slope_to_the_last_places(level):
    """All of exp, log and log1p stand behind these; every compiled version is held to it."""
    kernel, z = _core._module(level).Loss.logistic(), margins()
    out, one = np.empty_like(z), np.ones_like(z)
    kernel.value(z, one, out)
    assert ulps(out, exact(softplus, z)).max() <= 4
    kernel.slope(z, one, out)
    assert ulps(-out, exact(lambda z: 1 / (1 + z.exp()), z)).max() <= 4


def test_logistic_far_out():
    """Beyond the range of exp the loss is 0 or the line, to all digits of a double."""
    loss, z = losses.Logistic(), np.array([710.0, 1e4, 1e6, 1e300])
    assert (loss.value(z, 1.0) <= 1e-300).all()
    np.testing.assert_array_equal(loss.value(-z, 1.0), z)
    np.testing.assert_array_equal(loss.slope(-z, 1.0), -1.0)
    assert (np.abs(loss.slope(z, 1.0)) <= 1e-300).all()


def test_logistic_conjugate_near_both_ends():
    small = 10 ** np.random.default_rng(1).uniform(-300, -0.4, 600)
    b = np.concatenate([small, 1 - small, [0.0, 0.5, 1.0, 1e-320]])

    def entropy(b):
        return sum((x * x.ln() for x in (b, 1 - b) if x > 0), Decimal(0))

    found = losses.Logistic().conjugate(b, 1.0)
    truth = np.array(exact(entropy, b), dtype=float)
    # b and 1 - b are doubles already: what is lost is the last place of 1, not of a sum.
    np.testing.assert_allclose(found, truth, rtol=4 * EPS, atol=EPS)


def exact_step(b, z, q, start):
    """The root b' of log(b'/(1-b')) + z + q (b' - b), by Newton in x = log(b'/(1-b'))."""
    with localcontext() as context:
        context.prec = 60
        b, z, q, x = (Decimal(float(t)) for t in (b, z, q, start))
        for _ in range(60):
            s = 1 / (1 + (-x).exp())
            move = (x + z + q * (s - b)) / (1 + q * s * (1 - s))
            x -= move
            if abs(move) < Decimal(10) ** -40:
                return 1 / (1 + (-x).exp())
    raise AssertionError((b, z, q))


def test_logistic_step_keeps_its_digits_near_0_and_1():
    rng = np.random.default_rng(2)
    size = 400
    z = np.concatenate([rng.normal(size=size // 2) * 5, rng.uniform(-600, 600, size // 2)])
    b = np.where(rng.random(size) < 0.5, 10 ** rng.uniform(-200, 0, size), rng.random(size))
    q = 10 ** rng.uniform(-6, 4, size) * (rng.random(size) > 0.1)
    found = losses.Logistic().step(b, z, 1.0, q)
    for b_i, z_i, q_i, new in zip(b, z, q, found, strict=True):
        start = np.clip(np.log(new) - np.log1p(-min(new, 1 - EPS / 2)), -700, 700)
        truth = exact_step(b_i, z_i, q_i, start)
        # x is a sum of z and q (b' - b), whose rounding b' = s(x) feels times 1 - b' at the most.
        rounding = 8 * EPS * (1 + abs(z_i) + q_i * max(b_i, new))
        assert float(abs(Decimal(float(new)) / truth - 1)) <= rounding, (b_i, z_i, q_i, new)


def test_arrays_broadcast_and_keep_their_shape():
    loss = losses.Squared()
    assert loss.value(np.ones((3, 1)), np.zeros(4)).shape == (3, 4)
    assert loss.step(0.0, 1.0, [1.0, 2.0], 1.0).tolist() == [0.0, 0.5]
    assert float(loss.value(3, 1)) == 2.0
    transposed = np.arange(6.0).reshape(2, 3).T
    np.testing.assert_array_equal(loss.slope(transposed, 1.0), transposed - 1.0)


@pytest.mark.parametrize(("name", "parameters"), PARAMETERS)
def test_pickle_copy_and_repr(name, parameters):
    loss = get_loss(name, **parameters)
    before = loss.value(0.3, 1.0)  # the kernel, which cannot be pickled, has been made
    written = eval(repr(loss), vars(losses))
    for twin in (pickle.loads(pickle.dumps(loss)), copy.deepcopy(loss), written):
        assert twin == loss
        assert hash(twin) == hash(loss)
        assert twin.value(0.3, 1.0) == before
    assert get_loss(loss) is loss
    assert LOSSES[name] is type(loss)
    for field in dataclasses.fields(loss):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(loss, field.name, 2.0)
