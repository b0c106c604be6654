"""Two data sets: rings, which a function makes, and a9a, which `adasdca datasets fetch` gets."""

from sklearn.datasets import make_circles
from sklearn.preprocessing import PolynomialFeatures

from adasdca import datasets


@datasets.register("rings")
def rings():
    """Two noisy rings, in monomials of degree 3."""
    X, y = make_circles(2000, noise=0.1, factor=0.6, random_state=0)
    return PolynomialFeatures(3).fit_transform(X), 2.0 * y - 1.0


LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
datasets.register(datasets.Source("a9a", (f"{LIBSVM}/a9a",), n=32561, d=123))
