"""scikit-learn's own checks on every public estimator with every loss: no failure is expected."""

import os
import subprocess
import sys
from inspect import signature

import pytest
from sklearn.utils.estimator_checks import check_array_api_input, parametrize_with_checks

import adasdca
from adasdca.problem.losses import LOSSES

MODELS = {
    "classification": (adasdca.AdaSDCAClassifier, adasdca.AdaSDCAClassifierCV),
    "regression": (adasdca.AdaSDCARegressor, adasdca.AdaSDCARegressorCV),
}
# Two values of C and three folds make the same calls as the default ten and five, in a tenth of
# the time.
SEARCH = {"Cs": [0.1, 1.0], "cv": 3}
PLAIN = [MODELS[loss.kind][0](loss=name) for name, loss in LOSSES.items()]
SEARCHES = [MODELS[loss.kind][1](loss=name, **SEARCH) for name, loss in LOSSES.items()]
VARIANTS = [
    adasdca.AdaSDCAClassifier(multi_class="ovr"),
    adasdca.AdaSDCAClassifier(class_weight="balanced"),
    adasdca.AdaSDCAClassifier(intercept_scaling=1.0),
    adasdca.AdaSDCAClassifier(l1_ratio=0.5, multi_class="ovr"),
    adasdca.AdaSDCARegressor(intercept_scaling=1.0),
    adasdca.AdaSDCARegressor(l1_ratio=0.5),
]


@parametrize_with_checks(PLAIN + VARIANTS)
def test_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
@parametrize_with_checks(SEARCHES)
def test_checks_of_searches(estimator, check):
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
