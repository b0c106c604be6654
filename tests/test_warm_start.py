"""Solves that begin where others ended: solutions, states, dual vectors, and changed problems."""

import numpy as np
import pytest
import scipy.sparse as sp

from adasdca import State, Status, solve
from adasdca.methods import METHODS
from cases import LOSSES, SMOOTH, make_data

LAM = 0.05
#: A loss without curvature has no linear rate to rely on.
TOL = {loss: 1e-8 if loss in SMOOTH else 1e-5 for loss in LOSSES}


def start(loss, **options):
    """Data, options and a solution that is good but not the last word."""
    X, y = make_data(loss, n=80, seed=1)
    options = {"loss": loss, "lam": LAM, "random_state": 0, "max_epochs": 20_000, **options}
    return X, y, options, solve(X, y, tol=100 * TOL[loss], **options)


def first_gap(X, y, **options):
    return solve(X, y, **{**options, "max_epochs": 0}).gap


def check_warm(X, y, loss, warm_start, options):
    """A warm start begins below the cold one and ends, certified, at the same optimum."""
    cold = solve(X, y, tol=TOL[loss], **options)
    warm = solve(X, y, tol=TOL[loss], warm_start=warm_start, **options)
    assert warm.history.gap[0] < 0.5 * cold.history.gap[0]
    assert cold.converged
    assert warm.converged
    # Each optimum lies in both intervals and both balls.
    assert max(cold.dual, warm.dual) <= min(cold.primal, warm.primal) * (1 + 1e-12)
    assert np.linalg.norm(cold.coef - warm.coef) <= cold.radius + warm.radius
    return cold, warm


FORMS = {
    "solution": lambda solution, path: solution,
    "state": lambda solution, path: solution.state,
    "file": lambda solution, path: (solution.state.save(path), State.load(path))[1],
    "dual vector": lambda solution, path: solution.dual_coef,
    "list": lambda solution, path: solution.dual_coef.tolist(),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_from_where_a_solve_ended(loss, form, weighted, tmp_path):
    weight = np.random.default_rng(2).integers(0, 4, 80) if weighted else None
    # (Of epochs alone: the point of a second-order phase is not the one that β stands for.)
    X, y, options, before = start(loss, sample_weight=weight, method="adasdca+")
    warm_start = FORMS[form](before, tmp_path / "state.npz")
    _, warm = check_warm(X, y, loss, warm_start, options)
    # The same dual point: the same bound, up to the rounding of division by a weight.
    assert warm.history.dual[0] == pytest.approx(before.dual, rel=1e-9)
    # The coefficients are those of the duals, of which second-order steps end with better ones.
    assert warm.history.gap[0] == pytest.approx(before.gap, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("factor", [0.7, 1.5])
@pytest.mark.parametrize("loss", LOSSES)
def test_changed_strength(loss, factor):
    X, y, options, before = start(loss)
    check_warm(X, y, loss, before, {**options, "lam": factor * LAM})


@pytest.mark.parametrize("loss", LOSSES)
def test_changed_weights(loss):
    X, y, options, before = start(loss)
    options["sample_weight"] = np.random.default_rng(3).uniform(0.9, 1.1, len(y))
    check_warm(X, y, loss, before, options)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_appended_rows(loss, form, tmp_path):
    X, y, options, before = start(loss)
    more_X, more_y = make_data(loss, n=10, seed=5)
    warm_start = FORMS[form](before, tmp_path / "state.npz")
    check_warm(np.vstack([X, more_X]), np.append(y, more_y), loss, warm_start, options)


@pytest.mark.parametrize(
    "change", [{"l1_ratio": 0.05}, {"bounds": (-1.0, 1.0)}, {"method": "sdca"}]
)
def test_other_changes(change):
    X, y, options, before = start("logistic")
    check_warm(X, y, "logistic", before, {**options, **change})


@pytest.mark.parametrize("form", ["solution", "state", "file"])
@pytest.mark.parametrize("loss", LOSSES)
def test_with_an_intercept(loss, form, tmp_path):
    """The state keeps the multiplier, without which β alone is a poor start."""
    X, y, options, before = start(loss, fit_intercept=True)
    warm_start = FORMS[form](before, tmp_path / "state.npz")
    cold, warm = check_warm(X, y, loss, warm_start, options)
    assert before.state.multiplier != 0
    assert warm.n_epochs <= cold.n_epochs or loss not in SMOOTH
    assert warm.intercept == pytest.approx(cold.intercept, abs=0.01)


@pytest.mark.parametrize("method", METHODS)
def test_a_converged_start_is_returned_as_it_is(method):
    X, y, options, _ = start("logistic")
    done = solve(X, y, tol=1e-9, **options)
    again = solve(X, y, tol=1e-8, method=method, warm_start=done, **options)
    assert (again.status, again.n_epochs, again.n_updates) == (Status.CONVERGED, 0, 0)
    np.testing.assert_array_equal(again.dual_coef, done.dual_coef)
    assert np.linalg.norm(again.coef - done.coef) <= again.radius + done.radius


def test_dual_variables_outside_their_domain_are_moved_inside():
    X, y, options, _ = start("hinge")
    options |= {"lam": 100.0, "max_epochs": 0}  # with little else, all duals are at their ends
    for alpha, b in ((1e300 * y, 1.0), (-1e300 * y, 0.0)):
        solution = solve(X, y, warm_start=alpha, **options)
        np.testing.assert_array_equal(solution.dual_coef, b * y)


def test_an_empty_start_is_a_cold_one():
    X, y, options, _ = start("hinge")
    assert first_gap(X, y, warm_start=[], **options) == first_gap(X, y, **options)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_solve_in_pieces(sparse, tmp_path):
    """Stopped, saved, loaded and continued again and again: the epochs count on."""
    X, y, options, _ = start("smoothed_hinge", method="adasdca+")
    X = sp.csr_matrix(X) if sparse else X
    whole = solve(X, y, tol=1e-10, **options)
    state, gaps = None, []
    for _ in range(200):
        piece = solve(X, y, tol=1e-10, warm_start=state, **{**options, "max_epochs": 2})
        gaps.append(piece.gap)
        assert piece.state.epoch == (0 if state is None else state.epoch) + piece.n_epochs
        piece.state.save(tmp_path / "state.npz")
        state = State.load(tmp_path / "state.npz")
        if piece.converged:
            break
    assert piece.converged
    # As many epochs as in one piece, but for the luck of other draws.
    assert state.epoch <= 2 * whole.n_epochs
    np.testing.assert_allclose(piece.coef, whole.coef, atol=piece.radius + whole.radius)


def test_states_are_saved_exactly(tmp_path):
    state = State(np.random.default_rng(0).normal(size=9), -0.1, 2**40, 2**64 - 1)
    for path in (tmp_path / "state.npz", str(tmp_path / "no suffix")):
        state.save(path)
        loaded = State.load(path)
        np.testing.assert_array_equal(loaded.beta, state.beta)
        assert loaded.beta.dtype == np.float64
        assert (loaded.multiplier, loaded.epoch, loaded.seed) == (-0.1, 2**40, 2**64 - 1)


def test_a_state_tells_the_seed_and_the_epoch():
    X, y, options, before = start("squared")
    assert before.state.seed == options["random_state"]
    assert 0 < before.state.epoch <= before.n_epochs
    fresh = [solve(X, y, **{**options, "random_state": None, "max_epochs": 1}) for _ in range(2)]
    assert fresh[0].state.seed != fresh[1].state.seed
    # A seed that was drawn can be used again.
    again = solve(X, y, **{**options, "random_state": fresh[0].state.seed, "max_epochs": 1})
    np.testing.assert_array_equal(again.coef, fresh[0].coef)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge"])
def test_a_start_that_is_worse_than_none_is_left_alone(loss):
    """Duals of another problem: what belongs to them is farther off than w = 0 is."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 20)) * np.logspace(-3, 3, 20)
    y = np.where(X[:, 10] + rng.standard_normal(300) > 0, 1.0, -1.0)
    far = y * rng.random(300)
    for options in ({"l1_ratio": 1.0}, {}):
        options |= {"loss": loss, "lam": 1e-7, "fit_intercept": True, "random_state": 0}
        sol = solve(X, y, warm_start=far, tol=1e-4, **options)
        cold = first_gap(X, y, **options)
        assert sol.converged
        assert sol.history.gap[0] == cold
