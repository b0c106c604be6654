"""A small data set and its svmlight text, for the tests of data sets."""

import hashlib

import numpy as np
import scipy.sparse as sp

from adasdca.datasets import Content


def make_data(n=400, d=30):
    rng = np.random.default_rng(0)
    X = sp.random(n, d, density=0.2, format="csr", random_state=rng)
    X.data = np.round(X.data, 6)
    return X, rng.choice([-1.0, 1.0], n)


def as_text(X, y):
    lines = []
    for i in range(X.shape[0]):
        row = X[i]
        pairs = (f"{j + 1}:{v:g}" for j, v in zip(row.indices, row.data, strict=True))
        lines.append(f"{y[i]:+g} {' '.join(pairs)}\n")
    return "".join(lines).encode()


X, Y = make_data()
TEXT = as_text(X, Y)
CONTENT = Content.of(X, Y)
SHA = hashlib.sha256(TEXT).hexdigest()
