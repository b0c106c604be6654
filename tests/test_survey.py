"""Surveys look and change nothing: twice the same, and no ascent is the other for it."""

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
import cases
from adasdca.backends.cpu import LocalBackend
from adasdca.problem.losses import get_loss
from adasdca.problem.problem import Problem
from adasdca.solution import as_beta
from second_order import FOREVER

NEEDS = frozenset({"score", "residue", "share", "adaptive"})
INTERCEPT = pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
PENALTIES = {**cases.REGULARIZERS, "lasso": {"l1_ratio": 1.0}}
EVERY = [(False, "l2"), (True, "elastic-net-bounds")]


def make_backend(loss, intercept, sparse=False, regularizer="l2", threads=1):
    X, y = cases.make_data(loss, n=300)
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    options = {"lam": 0.05, "fit_intercept": intercept, "sample_weight": weight}
    options |= PENALTIES[regularizer]
    return LocalBackend(
        Problem.checked(sp.csr_array(X) if sparse else X, y, loss=loss, **options), threads
    )


def random_point(backend, seed=0):
    """Dual variables inside their domain, and a point that does not belong to them."""
    rng, problem = np.random.default_rng(seed), backend.problem
    low, high = np.clip(problem.loss.domain, -2.0, 2.0)
    b = rng.uniform(low, high, len(problem.y))
    beta = problem.y * b if problem.loss.kind == "classification" else b
    lower, upper = problem.bounds or (-np.inf, np.inf)
    return beta, np.clip(rng.normal(size=problem.rows.shape[1]), lower, upper), 0.3


def bits(survey):
    """All that a survey says, in bytes.

    At a kink the search for the best intercept ends an ulp to the left or to the right of it, by
    where it began: there the certificate is left out.
    """
    said = {**vars(survey), **vars(survey.certificate)}
    left_out = {"certificate"}
    if survey.gamma == 0 and survey.certified is not survey.beta:
        left_out |= {"intercept", *vars(survey.certificate)}
    return {name: np.asarray(said[name]).tobytes() for name in said if name not in left_out}


@INTERCEPT
@pytest.mark.parametrize(("sparse", "regularizer"), EVERY, ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", cases.LOSSES)
def test_twice_the_same(loss, sparse, regularizer, intercept):
    backend = make_backend(loss, intercept, sparse, regularizer)
    beta, w, b = random_point(backend)
    some = np.random.default_rng(3).integers(300, size=200).astype(np.int32)

    def look():
        seen = backend.survey(NEEDS)
        first, again = bits(seen), backend.survey(NEEDS)
        assert bits(again) == first
        assert again.intercept == pytest.approx(seen.intercept, rel=1e-14)
        assert again.primal == pytest.approx(seen.primal, rel=1e-14)
        assert again.gap == pytest.approx(seen.gap, rel=1e-12)
        backend.survey(frozenset())
        assert bits(backend.survey(NEEDS)) == first

    look()
    backend.restart(beta, 0.2 if intercept else 0.0)
    look()
    backend.workspace.ascend(some, FOREVER)
    look()
    backend.place(beta, w, b if intercept else 0.0)
    look()
    seen = backend.survey(NEEDS)
    np.testing.assert_array_equal(seen.coef, w)
    np.testing.assert_array_equal(seen.beta, beta)
    backend.workspace.ascend(some, FOREVER)
    look()


@INTERCEPT
@pytest.mark.parametrize(("sparse", "regularizer"), EVERY, ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", cases.LOSSES)
def test_an_ascent_does_not_know_how_often_was_looked(loss, sparse, regularizer, intercept):
    rng = np.random.default_rng(3)
    plans = [rng.integers(300, size=200).astype(np.int32) for _ in range(3)]
    ends = []
    for looks in (1, 3):
        backend = make_backend(loss, intercept, sparse, regularizer)
        for plan in plans:
            for _ in range(looks):
                backend.survey(frozenset())
            backend.workspace.ascend(plan, FOREVER)
        ends.append(bits(backend.survey(NEEDS)))
    assert ends[0] == ends[1]


@INTERCEPT
@pytest.mark.parametrize("loss", cases.LOSSES)
def test_a_point_is_certified_as_it_is_surveyed(loss, intercept):
    """`certify` of a placed point says what the survey of it does, where b is the best one."""
    backend = make_backend(loss, intercept)
    beta, w, b = random_point(backend)
    backend.place(beta, w, b if intercept else 0.0)
    seen = backend.survey(NEEDS)
    proof = backend.certify(seen.coef, seen.intercept, seen.certified)
    assert proof.primal == pytest.approx(seen.primal, rel=1e-13)
    assert proof.gap == pytest.approx(seen.gap, rel=1e-9)
    if not intercept:
        # The point belongs to other duals; any duals give a bound.
        other = backend.certify(seen.coef, 0.0, np.zeros_like(beta))
        assert other.primal == pytest.approx(seen.primal, rel=1e-13)
        assert other.dual <= seen.primal


@pytest.mark.parametrize("regularizer", PENALTIES)
@pytest.mark.parametrize("loss", cases.LOSSES)
def test_a_survey_certifies_as_much_as_was_placed(loss, regularizer):
    """The best duals bound any w better than its slopes do."""
    backend = make_backend(loss, True, regularizer=regularizer)
    problem, (_, w, b) = backend.problem, random_point(backend)
    options = {"lam": problem.lam, "sample_weight": problem.weight, "fit_intercept": True}
    options |= PENALTIES[regularizer]
    found = adasdca.solve(problem.rows.matrix, problem.y, loss=loss, tol=1e-6, **options)
    beta = as_beta(found.dual_coef, problem.weight, len(problem.y))[0]
    backend.place(beta, w, b)
    proof, seen = backend.certify(w, b, beta), backend.survey(NEEDS)
    # But for the bound of rounding, which a survey takes for whole blocks.
    assert seen.gap - seen.certificate.rounding <= (proof.gap - proof.rounding) * (1.0 + 1e-12)
    assert seen.certificate.rounding <= 10.0 * proof.rounding
    again = backend.certify(seen.coef, seen.intercept, seen.certified)
    assert again.gap == pytest.approx(seen.gap, rel=1e-9)


@INTERCEPT
@pytest.mark.parametrize("regularizer", PENALTIES)
@pytest.mark.parametrize("loss", cases.LOSSES)
def test_the_first_one_needs_no_row(loss, regularizer, intercept):
    """At β = 0 and w = 0 the losses at 0 are all there is, as a pass over the rows finds."""
    backend = make_backend(loss, intercept, regularizer=regularizer)
    short, whole = backend.survey(frozenset()), backend.survey(NEEDS)
    assert short.primal == pytest.approx(whole.primal, rel=1e-14)
    assert short.gap == pytest.approx(whole.gap, rel=1e-10)
    assert short.certificate.rounding > 0
    assert (short.active, short.moved) == (whole.active, whole.moved)
    for name in ("coef", "beta", "certified", "intercept"):
        np.testing.assert_array_equal(getattr(short, name), getattr(whole, name))
    weights = backend.survey(frozenset({"adaptive"}))
    assert weights.active == whole.active
    assert weights.gap == pytest.approx(short.gap, rel=1e-14)
    assert weights.effective_share == pytest.approx(whole.effective_share, rel=1e-12)
    np.testing.assert_allclose(weights.adaptive, whole.adaptive, rtol=1e-14)


@pytest.mark.parametrize("how", ["restart", "place", "follow", "multiplier"])
def test_only_the_first_one_reads_no_row(how):
    backend = make_backend("squared", True)
    beta, w, b = random_point(backend)
    if how == "restart":
        backend.restart(beta, 0.0)
    elif how == "multiplier":
        backend.restart(0.0 * beta, b)
    else:
        backend.place(beta if how == "place" else None, 0.0 * w, b)
    short, whole = backend.survey(frozenset()), backend.survey(NEEDS)
    assert short.gap == pytest.approx(whole.gap, rel=1e-12)  # rounding is bounded more roughly
    np.testing.assert_array_equal(short.beta, whole.beta)


@pytest.mark.parametrize("outlier", [1.0, 1e6], ids=["alike", "one far longer"])
@pytest.mark.parametrize("loss", cases.LOSSES)
def test_what_rounding_adds(loss, outlier):
    """A bound for a block of rows is that of its rows, which `certify` takes, or a little more.

    Rows of no weight have none.
    """
    X, y = cases.make_data(loss, n=600)
    X[300] *= outlier  # in a block whose other rows are not
    X[7] *= 1e12
    weight = np.ones(len(y))
    weight[7] = 0.0
    problem = Problem.checked(X, y, loss=loss, lam=0.05, sample_weight=weight)
    backend = LocalBackend(problem)
    beta, w, _ = random_point(backend)
    backend.place(beta, w, 0.0)
    seen, proof = backend.survey(NEEDS), backend.certify(w, 0.0, beta)
    assert proof.rounding <= seen.certificate.rounding * (1.0 + 1e-9)
    assert seen.certificate.rounding <= 10.0 * proof.rounding
    assert seen.primal - seen.dual - seen.gap <= 10.0 * (proof.primal - proof.dual - proof.gap)


@pytest.mark.parametrize("loss", ["hinge", "absolute", "epsilon_insensitive", "quantile"])
def test_rounding_across_a_kink(loss):
    """Where scores are at a kink, their rounding can move the slopes from one end to the other."""
    X, y = cases.make_data(loss, n=300)
    w = np.random.default_rng(0).normal(size=X.shape[1])
    found = []
    for far in (0.0, 1e-3):
        rows, target = X, X @ w + getattr(get_loss(loss), "epsilon", 0.0) - far
        if loss == "hinge":
            kept = X @ w != 0
            rows, target = X[kept] * ((1.0 + far) * y[kept] / (X[kept] @ w))[:, None], y[kept]
        backend = LocalBackend(Problem.checked(rows, target, loss=loss, lam=1e-3))
        backend.place(np.zeros(len(target)), w, 0.0)
        found.append(backend.survey(NEEDS).certificate.rounding)
    assert found[0] > 1.2 * found[1]
