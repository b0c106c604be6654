"""Solutions along lam: the predictor, and the corrector."""

from types import SimpleNamespace

import numpy as np
import pytest

import adasdca
import adasdca.predictor
from adasdca import AdaSDCAClassifierCV, AdaSDCARegressorCV
from adasdca.backends.base import FOREVER
from adasdca.backends.cpu import LocalBackend
from adasdca.methods import Auto, get_method
from adasdca.newton.proximal import GramModels, ProximalObjective, left_to_gain
from adasdca.predictor import POWERS, AutoWithCorrector, Forecast, Track, Ways
from adasdca.problem.losses import LOSSES
from adasdca.problem.problem import Problem
from adasdca.solution import Guess, State
from bundled import cancer, diabetes


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_what_goes_with_a_power_of_lam_is_extrapolated_exactly(p, degree):
    lams = 10.0 ** -np.array([0.0, 0.3, 0.5, 0.9, 1.2, 1.6])
    rng = np.random.default_rng(degree)
    polynomials = rng.normal(size=(degree + 1, 4))
    free = rng.normal(size=(degree + 1, 2))

    def point(lam):
        powers = np.log(lam) ** np.arange(degree + 1)
        return np.concatenate([lam**-p * (powers @ polynomials), powers @ free])

    forecast = Forecast(POWERS, free=2)
    assert forecast.guess(1.0) is None
    for lam in lams[:-1]:
        forecast.learn(lam, point(lam))
    np.testing.assert_allclose(forecast.guess(lams[-1]), point(lams[-1]), rtol=1e-9)


@pytest.mark.parametrize("name", ["hinge", "logistic", "epsilon_insensitive"])
def test_predicted_duals_are_in_the_domain(name):
    loss = LOSSES[name]()
    rng = np.random.default_rng(0)
    lower, upper = loss.domain
    sign = rng.choice([-1.0, 1.0], 50) if lower == 0 else np.ones(50)
    track = Track(loss, (50, 100), 1.0, Auto())
    assert isinstance(track.method, Auto)
    assert not isinstance(track.method, AutoWithCorrector)
    for lam in (1.0, 0.5, 0.1):
        beta = sign * rng.uniform(lower, upper, 50)
        track.learn(lam, np.zeros(100), 0.0, State(beta, 0.0, 1, 0))
    start = track.start(0.01)
    assert isinstance(start, State)
    assert (sign * start.beta >= lower).all()
    assert (sign * start.beta <= upper).all()


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_guess_is_corrected_by_curvature_of_another_lam(loss, fit_intercept):
    X, y = diabetes() if loss == "squared" else cancer()
    y = y if loss == "squared" else 2.0 * y - 1.0
    problem = {"loss": loss, "fit_intercept": fit_intercept, "tol": 1e-4, "random_state": 0}
    lams = [0.02, 0.018]
    first, exact = (adasdca.solve(X, y, lam=lam, **{**problem, "tol": 1e-10}) for lam in lams)
    method = AutoWithCorrector()
    for lam, start in zip(lams, (exact, first), strict=True):
        guess = Guess(start.coef, start.intercept)
        sol = adasdca.solve(X, y, lam=lam, warm_start=guess, method=method, **problem)
        assert sol.converged
        assert [phase.name for phase in sol.phases] == ["Newton"]
        if lam == lams[0]:
            formed = method.chord.formed
            assert formed is not None
    assert method.chord.formed is formed
    assert np.linalg.norm(sol.coef - exact.coef) <= sol.radius + exact.radius


def test_a_guess_with_a_penalised_intercept():
    X, y = cancer()
    problem = {"loss": "logistic", "lam": 0.01, "fit_intercept": True, "intercept_scaling": 3.0}
    exact = adasdca.solve(X, 2.0 * y - 1.0, **problem, tol=1e-10, random_state=0)
    guess = Guess(exact.coef, exact.intercept)
    again = adasdca.solve(X, 2.0 * y - 1.0, **problem, tol=1e-8, warm_start=guess)
    assert again.n_epochs == 0
    assert again.converged


def test_forecasts_spare_steps_of_a_path(monkeypatch):
    X, y = cancer()
    options = {"loss": "logistic", "Cs": np.logspace(-3, 2, 25), "fit_intercept": True}
    path = adasdca.path(X, 2.0 * y - 1.0, **options, random_state=0)
    monkeypatch.setattr(adasdca.predictor, "MOST_POINTS", 1)
    blind = adasdca.path(X, 2.0 * y - 1.0, **options, random_state=0)
    assert path.converged.all()
    assert blind.converged.all()
    assert path.n_epochs.sum() < 0.75 * blind.n_epochs.sum()
    firsts = [[s.history.gap[0] / s.primal for s in each.solutions[5:]] for each in (path, blind)]
    assert np.median(firsts[0]) < 0.1 * np.median(firsts[1])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fit_intercept": True},
        {"factors": True},
        {"l1_ratio": 0.5},
        {"l1_ratio": 0.9, "fit_intercept": True, "factors": True},
        {"bounds": (0.0, None), "fit_intercept": True},
    ],
)
def test_a_path_of_the_squared_loss_takes_hardly_any_steps(options):
    X, y = diabetes()
    options = dict(options)
    if options.pop("factors", False):
        options["penalty_factors"] = np.linspace(0.5, 2.0, X.shape[1])
    path = adasdca.path(X, y, loss="squared", Cs=np.logspace(-3, 3, 30), **options)
    assert path.converged.all()
    assert (path.n_epochs[2:] == 0).mean() > 0.9
    firsts = [s.history.gap[0] / s.primal for s in path.solutions[3:]]
    assert np.median(firsts) < 1e-8


@pytest.mark.parametrize("kind", ["multinomial", "ovr", "regression", "elastic net", "hinge"])
def test_walks_of_cross_validation_end_where_fits_alone_do(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = np.argmax(X[:, :3] + rng.gumbel(size=(120, 3)), axis=1)
    if kind == "regression":
        y = X @ np.arange(4.0) + rng.normal(size=120)
    train, test = np.arange(80), np.arange(80, 120)
    search = AdaSDCARegressorCV if kind == "regression" else AdaSDCAClassifierCV
    options = {"hinge": {"loss": "hinge"}, "ovr": {"multi_class": "ovr"}}.get(kind, {})
    ratio = 0.5 if kind == "elastic net" else 0.0
    shared = {**options, "random_state": 0, "tol": 1e-9}
    grid = np.logspace(-3, 1, 6)
    model = search(Cs=grid, l1_ratios=[ratio], cv=[(train, test)], **shared).fit(X, y)
    for c, C in enumerate(grid):
        alone = model._model(C=C, l1_ratio=ratio, **shared).fit(X[train], y[train])
        radius = 2.0 * np.max(alone.radius_) + 1e-9
        apart = np.linalg.norm(model.coefs_paths_[0, 0, c] - alone.coef_, axis=-1)
        assert np.max(apart) <= radius + 1e-4 * np.linalg.norm(alone.coef_)
    assert get_method(model.method) == Auto()


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "smoothed_hinge", "huber"])
@pytest.mark.parametrize(
    "options",
    [
        {"l1_ratio": 0.5},
        {"l1_ratio": 0.9, "fit_intercept": True, "weighted": True},
        {"l1_ratio": 0.3, "fit_intercept": True, "bounds": (-0.1, 0.5), "factors": True},
    ],
)
def test_paths_with_kinks_in_the_penalty_are_corrected_by_models(loss, options):
    X, y = diabetes() if loss == "huber" else cancer()
    y = y if loss == "huber" else 2.0 * y - 1.0
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    shared = {"loss": loss, **options, "tol": 1e-6, "random_state": 0}
    if shared.pop("factors", False):
        shared["penalty_factors"] = np.linspace(0.5, 2.0, X.shape[1])
    if shared.pop("weighted", False):
        shared["sample_weight"] = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    path = adasdca.path(X, y, Cs=np.logspace(-3, 2, 20), **shared)
    assert path.converged.all()
    phases = [{phase.name for phase in each.phases} for each in path.solutions[1:]]
    assert sum(names <= {"Newton"} for names in phases) > 0.5 * len(phases)
    for k in (3, 10, 19):
        alone = adasdca.solve(X, y, lam=path.lams[k], **shared)
        apart = np.linalg.norm(path.coefs[k] - alone.coef)
        assert apart <= path.radii[k] + alone.radius


def test_a_step_of_a_model_ends_where_the_slope_does():
    """Rows that get curvature on the way make a full step too long."""
    X, y = cancer()
    options = {"loss": "squared_hinge", "lam": 1e-3, "l1_ratio": 0.5, "fit_intercept": True}
    problem = Problem.checked(X, 2.0 * y - 1.0, **options)
    term = LocalBackend(problem).term()
    w, total = np.zeros(X.shape[1]), problem.total
    found = term.place(w, 3.0)  # half of the rows have no loss there

    def value(length):
        dw, db = (length * steps.w, length * (steps.b - 3.0)) if length else (w, 0.0)
        at = adasdca.certify(X, 2.0 * y - 1.0, dw, intercept=3.0 + db, **options)
        return at.primal * total

    steps = ProximalObjective(problem, term, GramModels(), (w, 3.0, value(0.0)))
    assert steps.aim(FOREVER) < 0
    length, sharp = steps.search()
    assert sharp
    steps.move(1.0)
    assert 0.0 < length < 1.0
    assert value(length) < min(value(0.0), value(1.0))
    around = [value(length + off) for off in (-0.07, 0.1)]
    assert value(length) <= min(around)
    left = left_to_gain(problem, w, found, value(0.0))
    best = adasdca.solve(X, 2.0 * y - 1.0, **options, tol=1e-10, random_state=0)
    assert left >= value(0.0) - best.primal * total


def test_what_is_left_to_gain_is_a_bound():
    rng = np.random.default_rng(0)
    X, y = diabetes()
    for trial in range(30):
        options = {
            "loss": ["squared", "huber"][trial % 2],
            "lam": 10.0 ** rng.uniform(-3, 0),
            "l1_ratio": [0.0, 0.5, 0.9][trial % 3],
            "bounds": None if trial % 4 else (-0.2, 1.0),
        }
        problem = Problem.checked(X, y, **options)
        best = adasdca.solve(X, y, **options, tol=1e-11, random_state=0)
        w = best.coef * (1.0 + 0.1 * rng.normal(size=len(best.coef)))
        if options["bounds"]:
            w = np.clip(w, *options["bounds"])
        value = adasdca.certify(X, y, w, **options).primal * problem.total
        found = LocalBackend(problem).term().place(w, 0.0)
        lost = left_to_gain(problem, w, found, value)
        assert lost >= (value - best.primal * problem.total) * (1.0 - 1e-9)


def test_losses_with_kinks_begin_at_a_pair():
    """Coefficients of extrapolated duals say nothing where the penalty is weak."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 40)) * np.logspace(0, -2, 40)
    y = np.sign(X[:, 0] + rng.normal(size=1000))
    options = {"loss": "hinge", "fit_intercept": True, "random_state": 0}
    path = adasdca.path(X, y, Cs=np.logspace(2, 6, 16), **options)
    assert path.converged.all()
    firsts = [s.history.gap[0] / s.history.primal[0] for s in path.solutions[4:]]
    assert np.median(firsts) < 0.02
    for k in (5, 10, 15):
        alone = adasdca.solve(X, y, lam=path.lams[k], **options)
        value = path.solutions[k].primal
        assert abs(alone.primal - value) <= alone.gap + path.gaps[k]


def test_the_cheaper_way_goes_on():
    ways = Ways()

    def costs(work):
        ways.begin(SimpleNamespace(work=work))
        return ways.choose()

    ways.begin(SimpleNamespace(work=100.0))  # from nothing: it tells nothing of either way
    assert not ways.choose()
    assert costs(5.0)  # epochs; now the other way is tried
    assert not costs(7.0)
    assert not costs(6.0)
    assert costs(8.0)
    assert costs(7.5)
    assert not costs(9.0)
