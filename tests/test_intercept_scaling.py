"""A penalised intercept is the coefficient of a constant feature, wherever it is asked for."""

import numpy as np
import pytest
import scipy.sparse as sp

from adasdca import AdaSDCAClassifier, certify, path, solve
from cases import LOSSES, REGULARIZERS, make_data

OPTIONS = {"lam": 0.05, "tol": 1e-10, "random_state": 0}
FORMS = {"dense": np.asarray, "csr": sp.csr_array, "float32": np.float32}


def extended(X, value):
    """X with the constant as the user would append it."""
    column = np.full((X.shape[0], 1), value, dtype=X.dtype)
    return sp.hstack([X, column], format="csr") if sp.issparse(X) else np.hstack([X, column])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("regularizer", REGULARIZERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_it_is_the_coefficient_of_a_constant_feature(loss, regularizer, form):
    X, y = make_data(loss, n=50, seed=3)
    X = FORMS[form](X)
    own, other = dict(REGULARIZERS[regularizer]), dict(REGULARIZERS[regularizer])
    if "bounds" in own:
        lower, upper = (np.broadcast_to(side, X.shape[1]) for side in own["bounds"])
        other["bounds"] = np.append(lower, -np.inf), np.append(upper, np.inf)
    if "penalty_factors" in own:
        other["penalty_factors"] = np.append(own["penalty_factors"], 1.0)
    found = solve(X, y, loss=loss, fit_intercept=True, intercept_scaling=0.3, **own, **OPTIONS)
    same = solve(extended(X, 0.3), y, loss=loss, **other, **OPTIONS)
    constant = float(X.dtype.type(0.3))
    # The product is rounded when it is told, and the bounds allow for that: last digits differ.
    np.testing.assert_allclose(found.coef, same.coef[:-1], rtol=1e-10, atol=1e-12)
    assert found.intercept == pytest.approx(constant * same.coef[-1], rel=1e-10, abs=1e-12)
    assert found.primal == pytest.approx(same.primal, rel=1e-13)
    assert found.gap == pytest.approx(same.gap, abs=1e-12 * same.primal)
    check = certify(
        X,
        y,
        found.coef,
        intercept=found.intercept,
        loss=loss,
        lam=OPTIONS["lam"],
        fit_intercept=True,
        intercept_scaling=0.3,
        dual_coef=found.dual_coef,
        **own,
    )
    assert check.primal == pytest.approx(found.primal, rel=1e-14)
    assert check.relative_gap < 1e-9


def test_empty_rows_get_the_constant_too():
    X = sp.csr_array(np.array([[0.0, 1.0], [0.0, 0.0], [2.0, 0.0], [0.0, 0.0]]))
    y = np.array([1.0, 2.0, -1.0, 0.5])
    a = solve(X, y, loss="squared", fit_intercept=True, intercept_scaling=2.0, **OPTIONS)
    b = solve(X.toarray(), y, loss="squared", fit_intercept=True, intercept_scaling=2.0, **OPTIONS)
    np.testing.assert_allclose(np.append(a.coef, a.intercept), np.append(b.coef, b.intercept))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_along_a_path(form):
    X, y = make_data("squared_hinge", n=400, seed=3)
    Cs = [0.01, 1.0, 100.0]
    options = {"loss": "squared_hinge", "l1_ratio": 0.3, "bounds": (0, None), "tol": 1e-9}
    found = path(
        form(X), y, Cs=Cs, fit_intercept=True, intercept_scaling=2.0, random_state=0, **options
    )
    assert found.converged.all()
    assert (found.n_features <= X.shape[1]).all()
    for k, C in enumerate(Cs):
        alone = solve(
            form(X),
            y,
            lam=1 / (C * len(y)),
            fit_intercept=True,
            intercept_scaling=2.0,
            random_state=0,
            **options,
        )
        assert found.coefs[k].shape == alone.coef.shape
        within = found.radii[k] + alone.radius
        assert np.linalg.norm(found.coefs[k] - alone.coef) <= within
        assert abs(found.intercepts[k] - alone.intercept) <= 2.0 * within


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan, True, "1"])
def test_other_values_are_errors(value):
    X, y = make_data("logistic", n=20)
    with pytest.raises(ValueError, match=r"intercept_scaling = .* a finite number above 0"):
        solve(X, y, loss="logistic", lam=1.0, fit_intercept=True, intercept_scaling=value)


def test_there_must_be_an_intercept_to_scale():
    X, y = make_data("logistic", n=20)
    for call in (
        lambda: solve(X, y, loss="logistic", lam=1.0, intercept_scaling=2.0),
        lambda: path(X, y, loss="logistic", intercept_scaling=2.0),
        lambda: certify(X, y, np.zeros(7), loss="logistic", lam=1.0, intercept_scaling=2.0),
        lambda: AdaSDCAClassifier(fit_intercept=False, intercept_scaling=2.0).fit(X, y),
        lambda: AdaSDCAClassifier(fit_intercept=False, intercept_scaling=2.0).fit(
            X, np.arange(20) % 3
        ),
    ):
        with pytest.raises(
            ValueError, match=r"intercept_scaling = 2.0, but fit_intercept is False"
        ):
            call()


@pytest.mark.parametrize("value", [1e-60, 1e60])
def test_a_constant_that_float32_cannot_hold_is_an_error(value):
    X, y = make_data("logistic", n=20)
    with pytest.raises(ValueError, match=r"intercept_scaling = .* in float32"):
        solve(
            np.float32(X),
            y,
            loss="logistic",
            lam=1.0,
            fit_intercept=True,
            intercept_scaling=value,
        )


def test_a_multinomial_model_has_it_too():
    X, y = make_data("logistic", n=60, seed=3)
    y = np.arange(60) % 3
    ours = AdaSDCAClassifier(intercept_scaling=0.3, tol=1e-12).fit(X, y)
    same = AdaSDCAClassifier(fit_intercept=False, tol=1e-12).fit(extended(X, 0.3), y)
    np.testing.assert_allclose(ours.coef_, same.coef_[:, :-1])
    np.testing.assert_allclose(ours.intercept_, 0.3 * same.coef_[:, -1])
