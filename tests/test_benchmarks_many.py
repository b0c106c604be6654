"""The benchmarks of many models at once: goals are met where they say, and the tables show it."""

import numpy as np
import pytest
from benchmarks import everyday, multinomial, paths
from benchmarks.peers.solver import quiet

from bundled import cancer


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6))
    return multinomial.Rows(X, multinomial.taught(X, 3, rng, 2.0))


def test_all_sides_of_a_race_reach_the_goals(rows):
    goals = [1e-2, 1e-5]
    with quiet(1):
        found = multinomial.race(rows, 1.0, goals, 60.0, ["lbfgs", "newton-cg", "saga"])
    assert found["gap"] <= multinomial.EXACT
    for times in found["times"].values():
        assert all(time is not None and time >= 0 for time in times)
    shown = multinomial.shown([{"data": "made", **found}], goals, 60.0)
    assert len(shown.splitlines()) == 4
    assert "newton-cg" in shown


def test_a_curve_ends_at_the_goal_with_the_objective_of_the_model(rows):
    with quiet(1):
        curve = multinomial.curve_of(rows, "lbfgs", 1.0, -np.inf, 60.0)
    values = [value for _, value in curve]
    stopped = multinomial.curve_of(rows, "lbfgs", 1.0, values[3], 60.0)
    assert [value for _, value in stopped] == values[: len(stopped)]
    assert stopped[-1][1] <= values[3] < min(values[: len(stopped) - 1])
    model = multinomial.LogisticRegression(tol=1e-12, max_iter=1000).fit(*rows)
    least = multinomial.objective(rows, model.coef_, model.intercept_, 1.0)
    assert least == pytest.approx(min(values), rel=1e-9)


@pytest.mark.parametrize("make", [multinomial.text, multinomial.images, multinomial.factors])
def test_made_up_rows_have_all_classes(make):
    X, codes = make(0.02)
    assert X.shape[0] == len(codes)
    assert len(np.unique(codes)) == codes.max() + 1 >= 10


def test_the_cost_of_a_path():
    X, y = cancer()
    found = paths.measured(X, 2.0 * y - 1.0, "logistic", 0.0, 6)
    assert found["unfinished"] == 0
    line = paths.shown([{"data": "cancer", **found}]).splitlines()[-1].split()
    assert line[-3:-1] == [f"{found['path'] / found[name]:.2f}" for name in ("middle", "last")]


@pytest.mark.parametrize("loss", everyday.LOSSES)
def test_everyday_estimators_are_held_to_the_same_objective(loss):
    cell = everyday.Cell("mushrooms", loss, 0.01, True)
    with quiet(1):
        (found,) = everyday.measure(cell, [1e-3], 1)
    assert found["converged"]
    # The least values of both sides are the same: somebody of scikit-learn reaches ours.
    assert found["peer"] is not None
    assert "mushrooms" in everyday.show([{**found, "ratio": 2.0}])
