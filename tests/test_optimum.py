"""Every loss, regulariser, storage and method reaches the optimum of an interior-point method."""

import functools

import numpy as np
import pytest

import reference as ref
from adasdca import (
    SDCA,
    AdaSDCA,
    AdaSDCAPlus,
    IProxSDCA,
    Quartz,
    SDCAPerm,
    Status,
    register_rule,
    solve,
)
from adasdca.methods import METHODS as METHODS_BY_NAME
from adasdca.problem.losses import get_loss
from cases import LOSSES, REGULARIZERS, SMOOTH, VALUES, make_data, storages, strength

LAM = 0.1
TOL = 1e-9
# The oracle's own optimum is good to about this, relative to its value.
ORACLE = 1e-9
INTERCEPT = pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])


@functools.cache
def case(loss, regularizer, intercept, values="double", weighted=False):
    """Data, options, and the optimal value, coefficients and intercept."""
    X, y = make_data(loss, values, n=60, seed=1)
    options = {"lam": LAM, "fit_intercept": intercept, **REGULARIZERS[regularizer]}
    if weighted:
        weight = np.random.default_rng(2).exponential(size=len(y))
        options["sample_weight"] = np.where(np.arange(len(y)) % 9 == 0, 0.0, weight)
    return X, y, options, ref.optimum(X, y, loss, **options)


def run(X, y, loss, options, **more):
    settings = {"tol": TOL, "max_epochs": 5000, "random_state": 0, **options, **more}
    return solve(X, y, loss=loss, **settings)


def assert_optimal(solution, best, coef, options):
    """The bounds enclose the optimum, closely, and the ball of the certificate its coefficients."""
    assert solution.status is Status.CONVERGED
    assert solution.gap <= TOL * solution.primal
    assert 0 <= solution.gap <= solution.primal - solution.dual
    assert solution.dual <= best * (1 + ORACLE)
    assert best <= solution.primal * (1 + ORACLE)
    assert solution.primal == pytest.approx(best, rel=1e-8)
    assert solution.dual == pytest.approx(best, rel=1e-8)
    modulus = strength(options)
    blur = np.sqrt(2 * ORACLE * best / modulus)  # how far the oracle's own point may be off
    assert np.linalg.norm(solution.coef - coef) <= solution.radius + blur
    assert solution.radius == pytest.approx(np.sqrt(2 * solution.gap / modulus), rel=1e-12)
    low, high = options.get("bounds", (-np.inf, np.inf))
    assert (solution.coef >= low).all()
    assert (solution.coef <= high).all()


@INTERCEPT
@pytest.mark.parametrize("regularizer", REGULARIZERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_and_regularizer(loss, regularizer, intercept):
    X, y, options, (best, coef, b) = case(loss, regularizer, intercept)
    solution = run(X, y, loss, options)
    assert_optimal(solution, best, coef, options)
    # What is returned is what was certified.
    oracle = ref.Problem(X, y, loss, **options)
    assert solution.primal == pytest.approx(
        oracle.primal(solution.coef, solution.intercept), rel=1e-12
    )
    assert solution.dual == pytest.approx(oracle.dual(solution.dual_coef), rel=1e-9)
    if not intercept:
        assert solution.intercept == 0.0
    elif loss in SMOOTH:
        # A smooth loss is curved around the best b here, which pins b down as well.
        assert solution.intercept == pytest.approx(b, abs=1e-3)


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_storage(loss, values):
    X, y, options, (best, coef, _) = case(loss, "elastic-net-bounds", False, values)
    for rows, packed in storages(X, values):
        assert_optimal(run(rows, y, loss, options, pack=packed), best, coef, options)


@INTERCEPT
@pytest.mark.parametrize("loss", LOSSES)
def test_a_loose_certificate_holds_too(loss, intercept):
    """Long before the end, bounds and ball are valid at every survey."""
    X, y, options, (best, coef, _) = case(loss, "elastic-net", intercept)
    for epochs in range(6):
        solution = run(X, y, loss, options, tol=0, max_epochs=epochs)
        assert solution.n_epochs <= epochs
        assert (solution.history.dual <= best * (1 + ORACLE)).all()
        assert (solution.history.primal * (1 + ORACLE) >= best).all()
        assert np.linalg.norm(solution.coef - coef) <= solution.radius + 1e-4


@INTERCEPT
@pytest.mark.parametrize("loss", LOSSES)
def test_weights(loss, intercept):
    X, y, options, (best, coef, _) = case(loss, "elastic-net-bounds", intercept, weighted=True)
    solution = run(X, y, loss, options)
    assert_optimal(solution, best, coef, options)
    weight = options["sample_weight"]
    assert (solution.dual_coef[weight == 0] == 0).all()
    # A row of weight 0 is a row that is not there.
    kept = {**options, "sample_weight": weight[weight > 0]}
    without = run(X[weight > 0], y[weight > 0], loss, kept)
    assert without.primal == pytest.approx(solution.primal, rel=2 * TOL)
    assert np.linalg.norm(without.coef - solution.coef) <= without.radius + solution.radius
    # Only the ratios of the weights matter.
    scaled = run(X, y, loss, {**options, "sample_weight": 1e3 * weight})
    assert scaled.primal == pytest.approx(solution.primal, rel=2 * TOL)


@INTERCEPT
@pytest.mark.parametrize("loss", LOSSES)
def test_an_integer_weight_is_a_repeated_row(loss, intercept):
    X, y = make_data(loss, n=40, seed=3)
    times = np.random.default_rng(4).integers(0, 4, len(y))
    # (With an intercept, duals at kinks are known to some eleven digits.)
    tol = 1e-12 if loss in SMOOTH or not intercept else 1e-10
    options = {"lam": LAM, "l1_ratio": 0.1, "fit_intercept": intercept, "tol": tol}
    weighted = run(X, y, loss, {**options, "sample_weight": times})
    repeated = run(np.repeat(X, times, axis=0), np.repeat(y, times), loss, options)
    assert weighted.converged
    assert repeated.converged
    assert weighted.primal == pytest.approx(repeated.primal, rel=3 * tol)
    assert np.linalg.norm(weighted.coef - repeated.coef) <= weighted.radius + repeated.radius


def sharp(survey):
    """A rule of a user's own; shares of the gap serve every loss."""
    return survey.weight * survey.share**0.75


METHODS = {
    "sdca": SDCA(),
    "sdca-perm": SDCAPerm(),
    "iprox-sdca": IProxSDCA(),
    "quartz-uniform": Quartz("uniform"),
    "quartz-importance": Quartz("importance"),
    "adasdca-relaxed": AdaSDCA("relaxed"),
    "adasdca-optimal": AdaSDCA("optimal"),
    "adasdca-step": AdaSDCA("step"),
    "adasdca+I": AdaSDCAPlus("I"),
    "adasdca+II": AdaSDCAPlus("II"),
    "adasdca+III": AdaSDCAPlus("III"),
    "adasdca+I+III": AdaSDCAPlus("I+III"),
    "adasdca+I-tree": AdaSDCAPlus("I", sampler="tree"),
    "adasdca+II-tree": AdaSDCAPlus("II", sampler="tree"),
    "adasdca+auto": AdaSDCAPlus(m="auto"),
    "adasdca+half": AdaSDCAPlus(m=10.0, epoch=0.5),
    "adasdca+callable": AdaSDCAPlus(sharp),
    "adasdca+rule": AdaSDCAPlus,  # by the name of a rule, once there is one
}


@pytest.fixture(params=METHODS)
def method(request, monkeypatch):
    if request.param != "adasdca+rule":
        return METHODS[request.param]
    monkeypatch.setattr("adasdca.ascent.sampling.RULES", {})
    register_rule("sharp", sharp)
    return AdaSDCAPlus("sharp")


@INTERCEPT
@pytest.mark.parametrize("regularizer", ["l2", "elastic-net-bounds"])
@pytest.mark.parametrize("loss", ["squared", "smoothed_hinge", "logistic", "hinge", "absolute"])
def test_every_method(loss, regularizer, intercept, method):
    X, y, options, (best, coef, _) = case(loss, regularizer, intercept)
    kinked = get_loss(loss).smoothness == 0
    if isinstance(method, Quartz) and intercept:
        with pytest.raises(ValueError, match="cannot fit an intercept"):
            run(X, y, loss, options, method=method)
    elif kinked and (isinstance(method, Quartz) or method == AdaSDCA("optimal")):
        with pytest.raises(ValueError, match="needs a smooth loss"):
            run(X, y, loss, options, method=method)
    else:
        assert_optimal(run(X, y, loss, options, method=method), best, coef, options)


@pytest.mark.parametrize("regularizer", ["l2", "factors-l2", "factors-elastic-net-bounds"])
@pytest.mark.parametrize("name", METHODS_BY_NAME)
def test_methods_by_name(name, regularizer):
    X, y, options, (best, coef, _) = case("logistic", regularizer, False)
    assert_optimal(run(X, y, "logistic", options, method=name), best, coef, options)


@pytest.mark.parametrize(
    ("loss", "parameters"),
    [
        ("squared", {"gamma": 0.2}),
        ("smoothed_hinge", {"gamma": 0.05}),
        ("smoothed_hinge", {"gamma": 3.0}),
        ("huber", {"delta": 0.3}),
        ("epsilon_insensitive", {"epsilon": 0.8}),
        ("squared_epsilon_insensitive", {"epsilon": 0.8}),
        ("quantile", {"quantile": 0.1}),
        ("quantile", {"quantile": 0.8}),
    ],
)
def test_parameters_of_the_losses(loss, parameters):
    X, y = make_data(loss, n=60, seed=1)
    options = {"lam": LAM, "fit_intercept": True, "bounds": (-0.5, 0.9)}
    best, coef, _ = ref.optimum(X, y, loss, parameters, **options)
    solution = run(X, y, get_loss(loss, **parameters), options)
    assert_optimal(solution, best, coef, options)


@pytest.mark.parametrize("lam", [1e-4, 1e2])
@pytest.mark.parametrize("loss", SMOOTH)
def test_weak_and_strong_regularisation(loss, lam):
    """From nearly none, where rows fight for the features, to so much that w is almost 0."""
    X, y = make_data(loss, n=60, seed=1)
    best, coef, _ = ref.optimum(X, y, loss, lam=lam)
    solution = run(X, y, loss, {"lam": lam}, max_epochs=50_000)
    assert_optimal(solution, best, coef, {"lam": lam})
