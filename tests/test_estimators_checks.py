"""scikit-learn's own checks on every public estimator with every loss: no failure is expected.

All checks for the default loss of each class and for its variants; for the other losses those
whose outcome is a matter of the numbers that a fit ends with. What the rest looks at (parameters,
tags, names, errors, copies) is the same code whatever the loss.
"""

import os
import subprocess
import sys
from inspect import signature

import pytest
from sklearn.utils.estimator_checks import (
    check_array_api_input,
    estimator_checks_generator,
    parametrize_with_checks,
)

import adasdca
from adasdca.problem.losses import LOSSES

MODELS = {
    "classification": (adasdca.AdaSDCAClassifier, adasdca.AdaSDCAClassifierCV),
    "regression": (adasdca.AdaSDCARegressor, adasdca.AdaSDCARegressorCV),
}
# Two values of C and three folds make the same calls as the default ten and five, in a tenth of
# the time.
SEARCH = {"Cs": [0.1, 1.0], "cv": 3}
DEFAULTS = [plain() for plain, _ in MODELS.values()]
DEFAULT_SEARCHES = [search(**SEARCH) for _, search in MODELS.values()]
VARIANTS = [
    adasdca.AdaSDCAClassifier(multi_class="ovr"),
    adasdca.AdaSDCAClassifier(class_weight="balanced"),
    adasdca.AdaSDCAClassifier(intercept_scaling=1.0),
    adasdca.AdaSDCAClassifier(l1_ratio=0.5, multi_class="ovr"),
    adasdca.AdaSDCARegressor(intercept_scaling=1.0),
    adasdca.AdaSDCARegressor(l1_ratio=0.5),
]
OTHERS = [name for name in LOSSES if name not in {model.loss for model in DEFAULTS}]
#: The checks in which the loss has a say; a search adds to a fit its folds, weights and choice.
OF_SEARCHES = {
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_sample_weight_equivalence_on_dense_data",
}
OF_FITS = OF_SEARCHES | {
    "check_all_zero_sample_weights_error",
    "check_class_weight_balanced_linear_classifier",
    "check_class_weight_classifiers",
    "check_classifiers_one_label",
    "check_classifiers_one_label_sample_weights",
    "check_classifiers_train",
    "check_decision_proba_consistency",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_regressor_multioutput",
    "check_regressors_int",
    "check_regressors_train",
    "check_sample_weight_equivalence_on_sparse_data",
}


def some_checks(models, names):
    """Parametrise by these checks of these models, each of which must be one of some model."""
    pairs = [
        (model, check)
        for each in models
        for model, check in estimator_checks_generator(each)
        if check.func.__name__ in names
    ]
    assert {check.func.__name__ for _, check in pairs} == names
    ids = [f"{model}-{check.func.__name__}" for model, check in pairs]
    return pytest.mark.parametrize(("estimator", "check"), pairs, ids=ids)


@parametrize_with_checks(DEFAULTS + VARIANTS)
def test_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
@parametrize_with_checks(DEFAULT_SEARCHES)
def test_checks_of_searches(estimator, check):
    check(estimator)


@some_checks([MODELS[LOSSES[name].kind][0](loss=name) for name in OTHERS], OF_FITS)
def test_checks_of_other_losses(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
@some_checks([MODELS[LOSSES[name].kind][1](loss=name, **SEARCH) for name in OTHERS], OF_SEARCHES)
def test_checks_of_searches_of_other_losses(estimator, check):
    check(estimator)


ARRAY_API = """
from sklearn.utils.estimator_checks import check_array_api_input
import adasdca
for model in (adasdca.AdaSDCAClassifier(), adasdca.AdaSDCARegressor(),
              adasdca.AdaSDCAClassifierCV(Cs=2, cv=3), adasdca.AdaSDCARegressorCV(Cs=2, cv=3)):
    check_array_api_input(
        type(model).__name__, model, array_namespace="numpy", expect_only_array_outputs=False
    )
print("checked")
"""


@pytest.mark.skipif(
    "expect_only_array_outputs" not in signature(check_array_api_input).parameters,
    reason="scikit-learn 1.9 and later check NumPy arrays under dispatch",
)
def test_array_api_dispatch_changes_nothing():
    # SciPy decides at import, so the check needs an interpreter of its own.
    run = subprocess.run(
        [sys.executable, "-c", ARRAY_API],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.strip() == "checked", run.stderr
