"""Rows on the workers of a Dask cluster; needs the extra ``adasdca[dask]``.

`solve` and the estimators take dask arrays, data frames and lists of delayed blocks. The rows stay
on the workers. What travels are vectors of d numbers and single numbers, and sums are taken in the
order of the parts: the same parts give the same bits whatever the workers do.
"""

from importlib.util import find_spec

if find_spec("distributed") is None:
    raise ImportError(
        "adasdca.dask needs dask and distributed, not installed here; get them with: "
        "pip install 'adasdca[dask]'"
    )

from adasdca.dask._estimators import AdaSDCAClassifier, AdaSDCARegressor
from adasdca.dask._solve import solve

__all__ = ["AdaSDCAClassifier", "AdaSDCARegressor", "solve"]
