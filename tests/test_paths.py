"""Paths over C, and the screening that makes them shorter: safe, or it is nothing."""

from fractions import Fraction
from operator import mul
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
import adasdca.paths
from adasdca import PathDisplay, Status
from adasdca.problem.problem import Problem
from adasdca.screening import idle_features, idle_rows
from bundled import cancer, diabetes

GRID = [0.001, 0.01, 0.1, 1.0]


def labelled():
    X, y = cancer()
    return X, 2.0 * y - 1


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("screen", [False, True])
def test_a_path_is_solves_one_by_one(form, fit_intercept, screen):
    X, y = labelled()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    problem = {"loss": "squared_hinge", "fit_intercept": fit_intercept, "sample_weight": weight}
    path = adasdca.path(
        form(X), y, **problem, Cs=GRID[::-1], tol=1e-8, random_state=0, screen=screen
    )
    assert len(path) == 4
    np.testing.assert_array_equal(path.Cs, GRID)
    np.testing.assert_allclose(path.lams, 1 / (path.Cs * weight.sum()))
    assert path.converged.all()
    for k, lam in enumerate(path.lams):
        one = adasdca.solve(X, y, **problem, lam=lam, tol=1e-8, random_state=0, method="auto")
        distance = np.linalg.norm(path.coefs[k] - one.coef)
        assert distance <= path.radii[k] + one.radius + 1e-9
        assert path.gaps[k] <= 1e-8 * path.solutions[k].primal
        check = adasdca.certify(
            X, y, path.coefs[k], intercept=path.intercepts[k], lam=lam, **problem
        )
        assert check.primal == pytest.approx(path.solutions[k].primal, rel=1e-10)


@pytest.mark.parametrize(
    ("loss", "fit_intercept"),
    [("hinge", False), ("squared_hinge", True), ("epsilon_insensitive", False), ("hinge", True)],
)
def test_idle_rows_have_no_dual(loss, fit_intercept):
    X, y = labelled() if "hinge" in loss else diabetes()
    problem = {"loss": loss, "lam": 1 / (0.05 * len(y)), "fit_intercept": fit_intercept}
    checked = Problem.checked(X, y, **problem)
    common = {"method": "auto", "random_state": 0, "max_epochs": 20_000}
    exact = adasdca.solve(X, y, **problem, **common, tol=1e-11)
    found = []
    for tol in (1e-2, 1e-4, 1e-7):
        rough = adasdca.solve(X, y, **problem, **common, tol=tol)
        idle = idle_rows(checked, X, rough)
        assert np.abs(exact.dual_coef[idle]).max(initial=0.0) < 1e-9
        found.append(int(idle.sum()))
    assert found[-1] > 0.5 * np.count_nonzero(np.abs(exact.dual_coef) < 1e-9)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
@pytest.mark.parametrize("positive", [False, True])
def test_idle_features_have_no_coefficient(loss, positive):
    X, y = labelled() if loss != "squared" else diabetes()
    problem = {
        "loss": loss,
        "lam": 0.05,
        "l1_ratio": 0.9,
        "fit_intercept": True,
        "bounds": (0, None) if positive else None,
    }
    checked = Problem.checked(X, y, **problem)
    common = {"method": "auto", "random_state": 0, "max_epochs": 20_000}
    exact = adasdca.solve(X, y, **problem, **common, tol=1e-12)
    for tol in (1e-2, 1e-4, 1e-8):
        rough = adasdca.solve(X, y, **problem, **common, tol=tol)
        idle = idle_features(checked, X, rough)
        np.testing.assert_array_equal(exact.coef[idle], 0.0)
    assert idle.sum() > 0.5 * np.count_nonzero(exact.coef == 0)


def test_rows_are_not_idle_by_rounding():
    """Without a radius all that scores can be off by is their rounding."""
    rng = np.random.default_rng(0)
    w = np.array([0.1, 0.1, 0.1, -0.1])
    a = 1e9 * (1 + rng.random((4000, 3)))
    X = np.column_stack([a, a.sum(axis=1) - 10.0 * (1.0 + 1e-7 * rng.normal(size=4000))])
    y = np.where(np.arange(4000) % 2 == 0, 1.0, -1.0)
    X *= y[:, None]
    checked = Problem.checked(X, y, loss="hinge", lam=1.0)
    idle = idle_rows(checked, X, SimpleNamespace(coef=w, intercept=0.0, radius=0.0))
    exact = [y[i] * sum(map(mul, map(Fraction, X[i]), map(Fraction, w))) for i in range(4000)]
    assert not any(e < 1 for e, sure in zip(exact, idle, strict=True) if sure)


def test_kinks_screen_no_features():
    X, y = labelled()
    problem = {"loss": "hinge", "lam": 0.05, "l1_ratio": 0.9}
    rough = adasdca.solve(X, y, **problem, random_state=0)
    assert not idle_features(Problem.checked(X, y, **problem), X, rough).any()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_screened_problems_end_with_the_certificate_of_the_whole(form, monkeypatch):
    # Plain permutations of a problem with many idle features, screened every other epoch.
    monkeypatch.setattr(adasdca.paths, "STRETCH", 2)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 400))
    y = np.sign(X[:, :3].sum(axis=1) + 0.3 * rng.normal(size=150))
    options = {"loss": "squared_hinge", "l1_ratio": 0.9, "method": "sdca-perm"}
    options |= {"tol": 1e-6, "random_state": 0, "bounds": (-1.0, 1.0), "max_epochs": 20_000}
    screened = adasdca.path(form(X), y, **options, Cs=[0.01, 0.02, 0.05])
    whole = adasdca.path(form(X), y, **options, Cs=[0.01, 0.02, 0.05], screen=False)
    assert screened.converged.all()
    assert (screened.n_features < 400).all()
    assert (whole.n_features == 400).all()
    distance = np.linalg.norm(screened.coefs - whole.coefs, axis=1)
    assert (distance <= screened.radii + whole.radii + 1e-9).all()
    assert screened.coefs.shape == (3, 400)


def test_limits_hold_for_each_stop():
    X, y = labelled()
    options = {"loss": "hinge", "method": "sdca-perm", "tol": 1e-12, "random_state": 0}
    short = adasdca.path(X, y, **options, Cs=[1.0, 10.0], max_epochs=15)
    np.testing.assert_array_equal(short.n_epochs, 15)
    assert not short.converged.any()
    late = adasdca.path(X, y, **options, Cs=[1.0, 10.0], max_time=0.0)
    assert [s.status for s in late.solutions] == [Status.TIME_LIMIT] * 2
    stopped = adasdca.path(X, y, **options, Cs=[1.0], callback=lambda record: record.epoch >= 3)
    assert stopped.solutions[0].status is Status.INTERRUPTED


def test_grids():
    X, y = labelled()
    path = adasdca.path(X, y, loss="logistic", Cs=3, tol=1e-2, random_state=0)
    np.testing.assert_allclose(path.Cs, [1e-4, 1.0, 1e4])
    for bad in (0, -1, [], [0.0], [1.0, np.nan], "many", True, None):
        with pytest.raises(ValueError, match="Cs = "):
            adasdca.path(X, y, loss="logistic", Cs=bad)


def test_picture_of_a_path():
    X, y = labelled()
    path = adasdca.path(X, y, loss="logistic", Cs=GRID, random_state=0)
    names = [f"f{k}" for k in range(X.shape[1])]
    display = PathDisplay.from_path(path, feature_names=names, linewidth=0.5)
    assert len(display.lines_) == X.shape[1]
    assert len(display.ax_.get_legend().get_texts()) == 8
    assert display.ax_.get_xscale() == "log"
    plt.close("all")
