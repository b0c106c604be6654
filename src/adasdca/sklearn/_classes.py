"""The classes: scikit-learn's, each with what is its own of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.linear_model as linear
import sklearn.svm as svm
from sklearn.preprocessing import LabelBinarizer

from adasdca.sklearn._fits import CertifiedFit


def _steps(solutions: list[Any]) -> int:
    return int(max(s.n_epochs for s in solutions))


class LogisticRegression(CertifiedFit, linear.LogisticRegression):
    """scikit-learn's LogisticRegression, with a certificate.

    Parameters, attributes and methods are those of `sklearn.linear_model.LogisticRegression`. Any
    `solver` may go with any penalty; ``"liblinear"`` penalises the intercept, as there, and fits
    more than two classes one by one. A multinomial model with an L1 term is refused. `dual`,
    `n_jobs` and `verbose` change nothing. C=inf is the limit of no penalty, see `lam_`.
    """

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._keeps_single = self.solver != "liblinear"  # as there
        solutions = self._fit_labels(X, y, sample_weight)
        self.n_iter_ = np.array([_steps(solutions)], dtype=np.int32)


class LinearSVC(CertifiedFit, svm.LinearSVC):
    """scikit-learn's LinearSVC, with a certificate.

    Parameters, attributes and methods are those of `sklearn.svm.LinearSVC`; `dual` and `verbose`
    change nothing, multi_class="crammer_singer" is refused.
    """

    _keeps_single = False

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        self.n_iter_ = _steps(self._fit_labels(X, y, sample_weight))
        if not self.fit_intercept:
            self.intercept_ = 0.0


class RidgeClassifier(CertifiedFit, linear.RidgeClassifier):
    """scikit-learn's RidgeClassifier, with a certificate.

    Parameters, attributes and methods are those of `sklearn.linear_model.RidgeClassifier`; `solver`
    and `copy_X` change nothing. Labels of several outputs are refused.
    """

    _direct = True

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._fit_labels(X, y, sample_weight)
        if len(self.coef_) == 1:
            self.coef_ = self.coef_[0]
        if not self.fit_intercept:
            self.intercept_ = 0.0
        self._label_binarizer = LabelBinarizer(pos_label=1, neg_label=-1).fit(
            vars(self)["classes_"]
        )
        self.n_iter_, self.solver_ = None, "adasdca"


class Ridge(CertifiedFit, linear.Ridge):
    """scikit-learn's Ridge, with a certificate.

    Parameters, attributes and methods are those of `sklearn.linear_model.Ridge`; `solver` and
    `copy_X` change nothing. alpha=0 is the limit of no penalty, see `lam_`.
    """

    _direct = True

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        X, y, weight = self._read(X, y, sample_weight, multi_output=True, y_numeric=True)
        _check_alphas(self.alpha, y)
        solutions = self._fit_numbers(X, y, weight)
        _take(self, solutions, y)
        self.n_iter_, self.solver_ = None, "adasdca"


class ElasticNet(CertifiedFit, linear.ElasticNet):
    """scikit-learn's ElasticNet, with a certificate.

    Parameters, attributes and methods are those of `sklearn.linear_model.ElasticNet`; `precompute`,
    `copy_X` and `selection` change nothing. alpha=0 is the limit of no penalty, see `lam_`.
    """

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True
    ) -> ElasticNet:
        """Fit the model; see scikit-learn's."""
        super().fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        X, y, weight = self._read(X, y, sample_weight, multi_output=True, y_numeric=True)
        solutions = self._fit_numbers(X, y, weight)
        _take(self, solutions, y)
        steps = [s.n_epochs for s in solutions]
        self.n_iter_ = steps[0] if y.ndim == 1 or y.shape[1] == 1 else steps


class Lasso(ElasticNet, linear.Lasso):
    """scikit-learn's Lasso, with a certificate.

    Parameters, attributes and methods are those of `sklearn.linear_model.Lasso`; `precompute`,
    `copy_X` and `selection` change nothing. alpha=0 is the limit of no penalty, see `lam_`.
    """

    __init__ = linear.Lasso.__init__
    path = staticmethod(linear.Lasso.path)


class LinearSVR(CertifiedFit, svm.LinearSVR):
    """scikit-learn's LinearSVR, with a certificate.

    Parameters, attributes and methods are those of `sklearn.svm.LinearSVR`; `dual` and `verbose`
    change nothing.
    """

    _keeps_single = False

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        X, y, weight = self._read(X, y, sample_weight, y_numeric=True)
        solutions = self._fit_numbers(X, y, weight)
        self.coef_ = solutions[0].coef
        self.intercept_ = np.array([solutions[0].intercept]) if self.fit_intercept else 0.0
        self.n_iter_ = _steps(solutions)


class QuantileRegressor(CertifiedFit, linear.QuantileRegressor):
    """scikit-learn's QuantileRegressor, with a certificate.

    Parameters, attributes and methods are those of `sklearn.linear_model.QuantileRegressor`;
    `solver` and `solver_options` change nothing. alpha=0 is the limit of no penalty, see `lam_`.
    """

    _keeps_single = False

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        X, y, weight = self._read(X, y, sample_weight, y_numeric=True)
        solutions = self._fit_numbers(X, y, weight)
        self.coef_, self.intercept_ = solutions[0].coef, solutions[0].intercept
        self.n_iter_ = _steps(solutions)


def _check_alphas(alpha: Any, y: Any) -> None:
    count = 1 if y.ndim == 1 else y.shape[1]
    if np.size(alpha) not in (1, count):
        raise ValueError(
            f"Number of targets and number of penalties do not correspond: {np.size(alpha)} != "
            f"{count}"
        )


def _take(model: Any, solutions: list[Any], y: Any) -> None:
    """Set coefficients and intercept in the shapes of the targets."""
    kind = np.float32 if model._single else np.float64
    coef, intercept = (
        np.array([getattr(s, name) for s in solutions], dtype=kind)
        for name in ("coef", "intercept")
    )
    model.coef_ = coef[0] if len(coef) == 1 else coef
    model.intercept_ = intercept[0] if y.ndim == 1 else intercept
    if not model.fit_intercept:
        model.intercept_ = 0.0
