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
REASONS: dict[str, tuple[str, ...]] = {}


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
            reason = not_applicable(name_of(item.nodeid))
            if reason is not None:
                item.add_marker(pytest.mark.xfail(reason=reason, strict=False))

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count an end."""
        if report.when != "call" and not (report.when == "setup" and report.outcome != "passed"):
            return
        name = name_of(report.nodeid)
        if hasattr(report, "wasxfail"):
            if report.outcome == "passed":
                self.surprises.append(name)
            self.ends["passed" if report.outcome == "passed" else report.wasxfail] += 1
        else:
            self.ends[report.outcome] += 1
            if report.outcome == "failed":
                self.failed.append(name)


def name_of(nodeid: str) -> str:
    """Return module::test[parameters] of a node."""
    return nodeid.rpartition("/")[2].replace(".py::", "::")


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
    options = ["--pyargs", *arguments.modules, "-q", "-p", "no:cacheprovider", "-x" * 0]
    options += ["-W", "ignore", "-o", "addopts=", "--tb=line", "--no-header", "-n", "0"]
    if arguments.k:
        options += ["-k", arguments.k]
    warnings.simplefilter("ignore")
    pytest.main([o for o in options if o], plugins=[suite])
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
