"""Input that is rare but allowed, or rare and refused: beyond doubles, masked, misaligned."""

import numpy as np
import pytest

import adasdca
from adasdca import AdaSDCAPlus, certify, losses, methods, registration, solve
from adasdca.duality.certificate import Certificate

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 4))
Y = np.where(X[:, 0] + 0.3 * RNG.standard_normal(40) > 0, 1.0, -1.0)
BASE = {"X": X, "y": Y, "loss": "logistic", "lam": 0.1}
HUGE = 10**400
MODELS = [
    adasdca.AdaSDCAClassifier,
    adasdca.AdaSDCARegressor,
    adasdca.AdaSDCAClassifierCV,
    adasdca.AdaSDCARegressorCV,
]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", ["lam", "l1_ratio", "tol", "max_time", "intercept_scaling"])
def test_numbers_beyond_doubles_are_refused(name, sign):
    with pytest.raises(ValueError, match=f"^{name} = -?1000.*choose"):
        solve(**(BASE | {"fit_intercept": True, name: sign * HUGE}))


@pytest.mark.parametrize(
    "change",
    [
        {"X": [[HUGE, 1]] * 40},
        {"y": [HUGE] * 40, "loss": "squared"},
        {"sample_weight": [HUGE] * 40},
        {"bounds": (0, HUGE)},
        {"warm_start": [HUGE] * 40},
    ],
)
def test_arrays_beyond_doubles_are_refused(change):
    with pytest.raises(ValueError, match=f"{next(iter(change))}.*too large"):
        solve(**(BASE | change))


@pytest.mark.parametrize("count", [2**16 + 1, 10**12, HUGE])
def test_more_threads_than_there_can_be_are_refused(count):
    with pytest.raises(ValueError, match=r"n_threads = \d+ is .*an integer of 1 to 65536"):
        solve(**BASE, n_threads=count)


@pytest.mark.parametrize("value", [np.array([0.5, 0.6]), np.array(0.5), [0.5], HUGE, True, 1j])
@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (losses.SmoothedHinge, "gamma"),
        (losses.Squared, "gamma"),
        (losses.Huber, "delta"),
        (losses.EpsilonInsensitive, "epsilon"),
        (losses.Quantile, "quantile"),
        (AdaSDCAPlus, "m"),
        (AdaSDCAPlus, "epoch"),
    ],
)
def test_parameters_are_single_numbers(cls, name, value):
    with pytest.raises(ValueError, match=f"{cls.__name__}: {name} = .*choose a"):
        cls(**{name: value})


def test_an_epoch_that_fits_no_memory_is_refused():
    with pytest.raises(ValueError, match="epoch = 1e"):
        AdaSDCAPlus(epoch=1e18)


def masked(array):
    mask = np.zeros(array.shape, bool)
    mask[2] = True
    return np.ma.array(array, mask=mask)


@pytest.mark.parametrize("name", ["X", "y", "sample_weight"])
def test_masks_are_not_ignored(name):
    given = (BASE | {"sample_weight": np.ones(40)})[name]
    count = 4 if name == "X" else 1
    with pytest.raises(ValueError, match=f"{name} is a masked array, and {count} of its entries"):
        solve(**(BASE | {"loss": "squared", name: masked(given)}))


@pytest.mark.parametrize("name", ["X", "y", "sample_weight"])
@pytest.mark.parametrize("model", MODELS)
def test_estimators_do_not_ignore_masks(model, name):
    given = {"X": X, "y": Y, "sample_weight": np.ones(40)}
    with pytest.raises(ValueError, match=f"{name} is a masked array, and . of its entries"):
        model().fit(**(given | {name: masked(given[name])}))
    if name == "X":
        fitted = model().fit(np.ma.array(X), Y)
        for use in (fitted.predict, getattr(fitted, "certified_margin", fitted.predict)):
            with pytest.raises(ValueError, match="X is a masked array, and 4 of its entries"):
                use(masked(X))


def test_masked_arrays_without_masked_entries_are_arrays():
    plain = solve(**BASE, tol=1e-9)
    other = solve(**(BASE | {"X": np.ma.array(X), "y": np.ma.array(Y)}), tol=1e-9)
    np.testing.assert_array_equal(plain.coef, other.coef)


def test_a_certificate_says_what_it_knows():
    usual = str(Certificate(1.0, 0.9, 0.1, 0.5))
    assert "within 0.1 (10 %) of the best, and its coefficients within 0.5 of" in usual
    for odd in (
        Certificate(1.0, -np.inf, np.inf, np.inf),
        Certificate(0.0, -0.1, 0.1, 0.5),
        Certificate(np.inf, -np.inf, np.nan, np.nan),
        Certificate(1.0, 0.9, 0.1, np.inf),
    ):
        words = str(odd).partition("This one")[2]
        assert "inf" not in words
        assert "nan" not in words


@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge", "smoothed_hinge"])
def test_errors_of_numpy_raised_are_none_of_ours(loss):
    scale = 10.0 ** np.array([-160, 0, 2, -100])
    labels = np.arange(40) % 3
    with np.errstate(all="raise"):
        point = solve(X * scale, Y, loss=loss, lam=1e-6, method="auto", max_epochs=20)
        certify(X * 100, Y, 10 * np.ones(4), loss=loss, lam=1e-8, epochs=2)
        certify(X * scale, Y, point.coef, loss=loss, lam=1e-6, dual_coef=point.dual_coef)
        model = adasdca.AdaSDCAClassifier(multi_class="multinomial", C=1e4, max_iter=500)
        model.fit(X * 100, labels)
        model.fit(X * 100, np.digitize(X[:, 0], [-0.5, 0.5]))  # some losses underflow


@pytest.mark.parametrize("labels", [Y, np.arange(40) % 3], ids=["two", "three"])
@pytest.mark.parametrize("options", [{}, {"multi_class": "ovr"}, {"loss": "modified_huber"}])
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e3, 1e160, 1e300])
def test_predictions_at_any_scale_raise_no_errors_of_numpy(options, labels, scale):
    with np.errstate(all="raise"):
        model = adasdca.AdaSDCAClassifier(C=1e4, **options).fit(X, labels)
        probabilities = model.predict_proba(X * scale)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        assert not np.isnan(model.predict_log_proba(X * scale)).any()
        assert not np.isnan(model.certified_margin(X * scale)).any()
        assert not np.isnan(model.decision_function(X * scale)).any()


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e100, 1e150])
@pytest.mark.parametrize("loss", ["squared", "huber", "absolute"])
def test_solves_at_any_scale_raise_no_errors_of_numpy(loss, scale):
    with np.errstate(all="raise"):
        found = solve(X * scale, X[:, 0] * scale, loss=loss, lam=1 / 40, fit_intercept=True)
        fitted = adasdca.AdaSDCARegressor(max_iter=5).fit(X, X[:, 0])
        assert not np.isnan(fitted.certified_error(X * scale)).any()
    assert 0 <= found.gap < np.inf


def test_rows_whose_squares_underflow_are_not_certified_by_that():
    model = adasdca.AdaSDCAClassifier(tol=0.5, method="sdca-perm", C=100.0, fit_intercept=False)
    model.set_params(random_state=0).fit(X, Y)
    sure = model.certified_margin(X) > 0
    assert not sure.all()
    assert not (model.certified_margin(1e-170 * X) > 0)[~sure].any()


@pytest.mark.parametrize("give", ["picker", "rule"])
def test_functions_of_others_cannot_change_the_point(give, monkeypatch):
    monkeypatch.setattr(methods, "REGISTERED", {})
    monkeypatch.setattr(registration, "REGISTERED", methods.REGISTERED)
    seen = []

    def tamper(survey):
        for name in ("coef", "beta", "certified", "curvature", "weight", "score"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(survey, name)[:] = 7.0
            seen.append(name)

    def rule(survey):
        tamper(survey)
        return np.ones(survey.n)

    def pick(survey, rng):
        tamper(survey)
        return rng.permutation(survey.n)

    if give == "rule":
        method = AdaSDCAPlus(option=rule)
    else:
        adasdca.register_method("tampering", pick)
        method = "tampering"
    solution = solve(**BASE, method=method, random_state=0, tol=1e-6)
    assert solution.converged
    assert len(seen) >= 6
    fresh = certify(X, Y, solution.coef, loss="logistic", lam=0.1, dual_coef=solution.dual_coef)
    assert fresh.gap <= 2e-6 * fresh.primal
