"""Estimators with scikit-learn's interface, and their pictures."""

from adasdca.estimators._classifier import AdaSDCAClassifier
from adasdca.estimators._classifier_cv import AdaSDCAClassifierCV
from adasdca.estimators._displays import ConvergenceDisplay, PathDisplay
from adasdca.estimators._regressor import AdaSDCARegressor
from adasdca.estimators._regressor_cv import AdaSDCARegressorCV

__all__ = [
    "AdaSDCAClassifier",
    "AdaSDCAClassifierCV",
    "AdaSDCARegressor",
    "AdaSDCARegressorCV",
    "ConvergenceDisplay",
    "PathDisplay",
]
