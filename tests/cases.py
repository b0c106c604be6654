"""What the properties are tested over: losses, regularisers, storages, and small data for them."""

import itertools

import numpy as np
import scipy.sparse as sp

import reference as ref

LOSSES = sorted(ref.LOSSES)
SMOOTH = [name for name in LOSSES if ref.LOSSES[name]().gamma > 0]
D = 7
FACTORS = np.array([0.3, 1.0, 4.0, 0.05, 2.0, 1.0, 11.0])
REGULARIZERS = {
    "l2": {},
    "elastic-net": {"l1_ratio": 0.3},
    "bounds": {"bounds": (-0.2, np.linspace(0.0, 0.6, D))},
    "nonneg": {"bounds": (0.0, np.inf)},
    "elastic-net-bounds": {"l1_ratio": 0.2, "bounds": (-0.1, 0.3)},
}
REGULARIZERS |= {
    f"factors-{name}": {"penalty_factors": FACTORS, **REGULARIZERS[name]}
    for name in ("l2", "elastic-net-bounds")
}
# Values no float can hold, values every float can, and ones: three layouts of a packed row.
VALUES = ("double", "single", "ones")


def is_classification(loss):
    return ref.LOSSES[loss]().kind == "classification"


def make_data(loss, values="double", n=40, d=D, seed=0):
    """Rows with gaps, one of them empty, and rows of very different length."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.exponential(size=(n, 1))
    X[rng.random((n, d)) < 0.4] = 0.0
    X[3] = 0.0
    if values == "ones":
        X = (X != 0).astype(float)
    if values == "single":
        X = X.astype(np.float32).astype(float)
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    return X, np.where(y > 0, 1.0, -1.0) if is_classification(loss) else y


def strength(options):
    """The modulus of strong convexity of the objective."""
    least = np.min(options.get("penalty_factors", 1.0))
    return options["lam"] * (1 - options.get("l1_ratio", 0.0)) * least


def storages(X, values="double"):
    """Yield every way to store X without loss, and whether to pack it.

    Dense and CSR, both dtypes (single precision where it is exact), both types of index.
    """
    for dtype in [np.float64] if values == "double" else [np.float64, np.float32]:
        yield X.astype(dtype), False
        csr = sp.csr_array(X.astype(dtype))
        for index, packed in itertools.product((np.int32, np.int64), (False, True)):
            rows = (csr.data, csr.indices.astype(index), csr.indptr.astype(index))
            yield sp.csr_array(rows, shape=X.shape), packed
