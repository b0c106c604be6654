"""scikit-learn's bundled data, standardised, for the tests of the estimators."""

from functools import cache

from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import StandardScaler


@cache
def cancer():
    """569 rows, 30 features, two classes."""
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@cache
def iris():
    """150 rows, 4 features, three classes."""
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@cache
def diabetes():
    """442 rows, 10 features, a real target of mean 0 and variance 1."""
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()
