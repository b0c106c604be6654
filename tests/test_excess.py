"""The excess φ(z) + φ*(−β) + zβ, of which gaps are made: all its digits, however small it is."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from adasdca import losses
from adasdca.backends.cpu import LocalBackend
from adasdca.problem.losses import get_loss
from adasdca.problem.problem import Problem
from test_losses import EPS, PARAMETERS

QUADRATIC = [(name, parameters) for name, parameters in PARAMETERS if name != "logistic"]


def shares(loss, a, y, beta):
    """The excess of rows with scores a, as a survey has it."""
    # One row more, so that there are two classes.
    far = np.append(a, 0.0)[:, None]
    labels = np.append(y, -y[0] if loss.kind == "classification" else 0.0)
    backend = LocalBackend(Problem.checked(far, labels, loss=loss, lam=1.0))
    backend.place(np.append(beta, 0.0), np.ones(1), 0.0)
    share = np.empty(len(labels))
    beta, certified = np.empty(len(labels)), np.empty(len(labels))
    backend.workspace.survey(None, None, share, None, beta, certified, np.empty(1), 0.0, 1, 1e18)
    return share[:-1]


def rounding(loss, a, y, beta):
    """What the certificate allows for the rounding of a score, and of its distance from y."""
    target = np.ones_like(y) if loss.kind == "classification" else np.abs(y)
    delta = 0.5 * EPS * (12.5 * np.abs(a) + 4 * target)
    jump = np.abs(loss.slope(a + delta, y) - loss.slope(a - delta, y))
    if loss.name == "logistic":
        jump = 0.5 * delta
    return delta * (np.abs(beta + loss.slope(a, y)) + jump)


def exact_excess(loss, z, b, t):
    """In fractions, from the definition: φ is the maximum over the domain of (t − z) b − φ₀(b)."""
    z, b, t = Fraction(z), Fraction(b), Fraction(t)
    gamma, epsilon = Fraction(loss.smoothness), Fraction(loss.dead_zone)
    low, high = loss.domain

    def inside(x):
        x = x if low == -np.inf else max(x, Fraction(low))
        return x if high == np.inf else min(x, Fraction(high))

    def gain(x):
        return (t - z) * x - epsilon * abs(x) - gamma * x * x / 2

    force = max(abs(t - z) - epsilon, 0) * (1 if t > z else -1)
    best = inside(force / gamma) if gamma else inside(Fraction(0))
    ends = [] if gamma else [Fraction(low), Fraction(high)]
    value = max(gain(x) for x in [best, *ends])
    return value - t * b + epsilon * abs(b) + gamma * b * b / 2 + z * b


def hard_points(loss, size=1200):
    """Scores next to a target and far away, targets to 1e8, duals at −φ', an ulp off, anywhere."""
    rng = np.random.default_rng(0)
    classify = loss.kind == "classification"
    y = rng.choice([-1.0, 1.0], size) if classify else rng.choice([0.0, 1.0, 1e4, 1e8], size)
    y = y if classify else y * rng.normal(size=size)
    a = y + 10.0 ** rng.uniform(-12, 8, size) * rng.choice([-1.0, 0.0, 1.0], size)
    slope = -loss.slope(a, y)
    low, high = np.clip(loss.domain, -3.0, 3.0)
    anywhere = rng.uniform(low, high, size) * (y if classify else 1.0)
    near = slope + 10.0 ** rng.uniform(-14, -2, size) * rng.normal(size=size) * (1 + np.abs(slope))
    steps = np.where(rng.random(size) < 0.5, -np.inf, np.inf)
    kind = rng.integers(5, size=size)
    beta = np.choose(kind, [slope, np.nextafter(slope, steps), near, anywhere, 0.0 * slope])
    b = np.clip(beta * y if classify else beta, *loss.domain)
    return a, y, b * y if classify else b


@pytest.mark.parametrize(
    ("name", "parameters"),
    QUADRATIC,
    ids=["-".join([n, *map(str, p.values())]) for n, p in QUADRATIC],
)
def test_the_family_in_fractions(name, parameters):
    loss = get_loss(name, **parameters)
    a, y, beta = hard_points(loss)
    classify = loss.kind == "classification"
    found, allowed = shares(loss, a, y, beta), rounding(loss, a, y, beta)
    assert (found >= 0).all()
    small = 0
    for k in range(len(a)):
        sign = y[k] if classify else 1.0
        truth = exact_excess(loss, sign * a[k], sign * beta[k], 1.0 if classify else y[k])
        assert truth >= 0
        error = abs(Fraction(found[k]) - truth)
        slack = truth / 10**13 + Fraction(1.001 * allowed[k] + 1e-300)
        assert error <= slack, (a[k], y[k], beta[k])
        small += 0 < truth < Fraction(1, 10**20)
    assert small > 5 or loss.smoothness == 0


def exact_divergence(z, b):
    with localcontext() as context:
        context.prec = 400
        z, b = Decimal(float(z)), Decimal(float(b))
        parts = sum((x * x.ln() for x in (b, 1 - b) if x > 0), Decimal(0))
        return (1 + (-z).exp()).ln() + parts + z * b


def check_divergence(z):
    """Near b = −φ', at an ulp's distance, at the ends and anywhere; for both labels."""
    loss, rng = losses.Logistic(), np.random.default_rng(0)
    s = -loss.slope(z, 1.0)
    near = s * (1 + 10.0 ** rng.uniform(-15, -1, 200) * rng.choice([-1, 1], 200))
    kind = rng.integers(6, size=200)
    b = np.choose(
        kind, [s, np.nextafter(s, 1.0), near, rng.random(200), rng.integers(0, 2, 200), 1e-300]
    )
    b = np.clip(b, 0.0, 1.0)
    y = rng.choice([-1.0, 1.0], 200)
    found = shares(loss, z * y, y, b * y)
    allowed = rounding(loss, z * y, y, b * y)
    assert (found >= 0).all()
    for k in range(200):
        truth = exact_divergence(z[k], b[k])
        assert truth >= 0
        error = float(Decimal(float(found[k])) - truth)
        slack = 4 * allowed[k] + 1e-290
        # Less of it than a certificate allows for would be missed; a little more is harmless.
        assert -1e-13 * float(truth) - slack <= error <= 1e-12 * float(truth) + slack, (z[k], b[k])


def test_the_logistic_loss_in_decimals():
    rng = np.random.default_rng(1)
    check_divergence(np.concatenate([3 * np.abs(rng.normal(size=120)), rng.uniform(0, 300, 80)]))
    check_divergence(rng.uniform(-2.0, 0.0, 200))


def test_the_logistic_loss_next_to_1():
    check_divergence(np.random.default_rng(1).uniform(-300.0, -2.0, 200))


def test_the_logistic_loss_far_out():
    z = np.array([800.0, 1e4, -800.0, -1e4])
    found = shares(losses.Logistic(), z, np.ones(4), np.full(4, 0.3))
    truth = [float(exact_divergence(x, 0.3)) for x in z]
    np.testing.assert_allclose(found, truth, rtol=1e-10)


def test_the_logistic_loss_where_its_series_begins():
    """What the series leaves out is below what a certificate allows for."""
    z = np.random.default_rng(2).uniform(2.0, 5.0, 400)
    s = -losses.Logistic().slope(z, 1.0)
    b = s * (1 + np.linspace(-0.06, 0.06, 400))
    found = shares(losses.Logistic(), z, np.ones(400), b)
    for k in range(400):
        truth = exact_divergence(z[k], b[k])
        error = float(abs(Decimal(float(found[k])) - truth))
        assert error <= 1e-13 * float(truth) + 8 * EPS * abs(s[k] - b[k]), (z[k], b[k])
