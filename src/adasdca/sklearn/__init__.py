"""scikit-learn's linear models under their own names, solved here: the same results, certified.

Each class is scikit-learn's, with its parameters, attributes and methods, but for `fit`: that is
done by `adasdca.solve`, and adds `certificate_`, `dual_gap_`, `radius_`, `status_` and `history_`.
There is no parameter beyond scikit-learn's, so none for a limit of time: `AdaSDCAClassifier` and
`AdaSDCARegressor` have `max_time`.

>>> from sklearn.datasets import load_iris
>>> from adasdca.sklearn import LogisticRegression
>>> X, y = load_iris(return_X_y=True)
>>> model = LogisticRegression().fit(X, y)
>>> round(model.score(X, y), 3), model.converged_
(0.973, True)
"""

from adasdca.sklearn._classes import (
    ElasticNet,
    Lasso,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
)

__all__ = [
    "ElasticNet",
    "Lasso",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "QuantileRegressor",
    "Ridge",
    "RidgeClassifier",
]
