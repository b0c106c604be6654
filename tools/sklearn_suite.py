"""Run scikit-learn's own tests of the classes in `adasdca.sklearn`, with these in their places.

    python tools/sklearn_suite.py [-k EXPRESSION] [--list]

The test modules of scikit-learn that import these classes are collected with the drop-in classes
in the places of scikit-learn's. Tests that name none of them are left out. Tests that do not apply
are listed below with the reason; all others must pass, and one that is listed but passes is told.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import sklearn.linear_model
import sklearn.svm

import adasdca.sklearn as ours

MODULES = (
    "sklearn.linear_model.tests.test_logistic",
    "sklearn.linear_model.tests.test_ridge",
    "sklearn.linear_model.tests.test_coordinate_descent",
    "sklearn.linear_model.tests.test_quantile",
    "sklearn.svm.tests.test_svm",
)

#: Why a test does not apply, and the tests, as regular expressions of `module::test[parameters]`.
REASONS: dict[str, tuple[str, ...]] = {
    "every solver name takes every penalty, so that no combination is an error": (
        "test_check_solver_option",
        "test_elasticnet_l1_ratio_err_helpful",
        "test_ridge_positive_error_test",
        "test_ridge_fit_intercept_sparse_error",
        "test_ridge_fit_intercept_sparse_sag",
        "test_linearsvc_parameters",
        "test_l1_ratio_non_elasticnet",
        "test_liblinear_multiclass_raises",
        "test_error_interior_point_future",
    ),
    "it is about the inside of a solver that is not used: its name, its steps or its limits": (
        r"test_ridge_regression\[",
        "test_max_iter",
        r"test_ridge::test_n_iter",
        "test_large_sparse_matrix",
        r"test_coordinate_descent::test_warm_start\b",
        "test_warm_start_convergence_with_regularizer_decrement",
        "test_liblinear_dual_random_state",
        "test_liblinear_with_large_values",
        "test_linear_svm_convergence_warnings",
        "test_lbfgs_solver_error",
        "test_newton_cholesky_fallback_to_lbfgs",
        "test_enet_coordinate_descent_raises_convergence",
        "test_elasticnet_precompute_incorrect_gram",
        "test_elasticnet_precompute_gram_weighted_samples",
        "test_overridden_gram_matrix",
        "test_enet_copy_X_False_check_input_False",
        "test_check_input_false",
        r"test_logistic_regression_callback_support\b",
        "test_enet_nonfinite_params",
        "test_lasso_dual_gap",
        "test_enet_ols_consistency",
    ),
    "warnings of scikit-learn about its own parameters and solvers": (
        "test_lasso_alpha_warning",
        "test_lr_penalty_l1ratio_incompatible",
        "test_penalty_deprecated",
        "test_penalty_none",
        "test_l1_ratio_None_deprecated",
        "test_logisticregression_warns_with_n_jobs",
    ),
    "it compares with a class of scikit-learn's that is fitted to a loose tolerance": (
        r"test_logistic_cv\b",
        "test_logistic_cv_multinomial_score",
        "test_LogisticRegressionCV_GridSearchCV_elastic_net",
    ),
    "it asks for more than the last digit: 1 - 2e-16 is no number from 1 on": (
        r"test_quantile_toy_example\[0.5-0.01-1-1\]",
    ),
    "its optimum is a segment (L1, rows beyond the margin), of which any point is an answer": (
        r"test_linearsvm_liblinear_sample_weight\[42-LinearSVC-params0\]",
    ),
    "Crammer and Singer's machine, and labels of several outputs, are refused": (
        "crammer_singer",
        "test_ridgeclassifier_multilabel",
    ),
}


class Suite:
    """Chooses the tests, and counts how they end."""

    def __init__(self) -> None:
        self.ends: Counter[str] = Counter()
        self.failed: list[str] = []
        self.surprises: list[str] = []

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """Keep the tests in which one of the classes takes part."""
        names = re.compile(rf"\b({'|'.join(ours.__all__)})\b")
        kept, left = [], []
        for item in items:
            source = inspect.getsource(item.function) + item.name
            helpers = [
                inspect.getsource(value)
                for name, value in vars(item.module).items()
                if inspect.isfunction(value)
                and value.__module__ == item.module.__name__
                and re.search(rf"\b{name}\b", source)
            ]
            (kept if names.search(source + "".join(helpers)) else left).append(item)
        items[:] = kept
        config.hook.pytest_deselected(items=left)
        for item in items:
            reason = not_applicable(name_of(item.location))
            if reason is not None:
                item.add_marker(pytest.mark.xfail(reason=reason, strict=False))

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count an end."""
        if report.when != "call" and not (report.when == "setup" and report.outcome != "passed"):
            return
        name = name_of(report.location)
        if hasattr(report, "wasxfail"):
            if report.outcome == "passed":
                self.surprises.append(name)
            self.ends["passed" if report.outcome == "passed" else report.wasxfail] += 1
        else:
            self.ends[report.outcome] += 1
            if report.outcome == "failed":
                self.failed.append(name)


def name_of(location: tuple[str, int | None, str]) -> str:
    """Return module::test[parameters] of a place."""
    return f"{Path(location[0]).stem}::{location[2]}"


def not_applicable(name: str) -> str | None:
    """Return why a test does not apply, None if it does."""
    for reason, patterns in REASONS.items():
        if any(re.search(pattern, name) for pattern in patterns):
            return reason
    return None


def main() -> int:
    """Run the tests and print the tally."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-k", default="", help="only tests that match, as in pytest")
    parser.add_argument("--list", action="store_true", help="name the tests that failed")
    parser.add_argument("modules", nargs="*", default=MODULES)
    arguments = parser.parse_args()
    for name in ours.__all__:
        place = sklearn.svm if name.startswith("LinearSV") else sklearn.linear_model
        setattr(place, name, getattr(ours, name))
    suite = Suite()
    options = ["--pyargs", *arguments.modules, "-q", "-p", "no:cacheprovider"]
    options += ["-W", "ignore", "-o", "addopts=", "--tb=line", "--no-header", "-n", "0"]
    if arguments.k:
        options += ["-k", arguments.k]
    warnings.simplefilter("ignore")
    pytest.main(options, plugins=[suite])
    total = sum(suite.ends.values())
    print(f"\n{total} tests of scikit-learn {sklearn.__version__} in which the classes take part:")
    for end, count in suite.ends.most_common():
        print(f"{count:6d}  {end}")
    if arguments.list:
        print("\n".join(suite.failed))
    if suite.surprises and arguments.list:
        print("listed as not applicable, but passed:\n" + "\n".join(suite.surprises))
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main())
