"""Random small problems on which certificates are tried: far targets, far means, many scales."""

from __future__ import annotations

import math
from bisect import bisect
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adasdca.problem import losses
from adasdca.problem.losses import LOSSES, Loss, PiecewiseQuadratic
from benchmarks.exact.optimum import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Tube(PiecewiseQuadratic):
    """A loss of nobody's: a dead zone, a rounded corner, and slopes that differ."""

    gamma: float = 0.7
    epsilon: float = 0.3
    name = "tube"
    kind = "regression"
    domain = (-0.4, 2.5)

    @property
    def smoothness(self) -> float:
        """γ of the conjugate."""
        return self.gamma

    @property
    def dead_zone(self) -> float:
        """ε of the conjugate."""
        return self.epsilon


@dataclass(frozen=True)
class SteepHinge(PiecewiseQuadratic):
    """Another: a hinge of slope 3 with a margin of its own."""

    epsilon: float = 0.25
    name = "steep_hinge"
    kind = "classification"
    domain = (0.0, 3.0)

    @property
    def dead_zone(self) -> float:
        """ε of the conjugate."""
        return self.epsilon


#: Every loss by its name, with parameters that are not the default as well, and losses of one's
#: own. Those with a kink take ten times as long as the others and are drawn less often.
SMOOTH: tuple[Loss, ...] = (
    *(cls() for cls in LOSSES.values() if cls().smoothness > 0 and cls is not losses.Logistic),
    losses.Squared(gamma=0.3),
    losses.SmoothedHinge(gamma=1e-3),
    losses.Huber(delta=0.05),
    losses.SquaredEpsilonInsensitive(epsilon=1.7),
    Tube(),
)
KINKED: tuple[Loss, ...] = (
    *(cls() for cls in LOSSES.values() if cls().smoothness == 0),
    losses.Quantile(quantile=0.9),
    losses.EpsilonInsensitive(epsilon=0.0),
    Tube(gamma=0.0),
    SteepHinge(),
)
#: Seconds of a solve. Whether it takes longer is not the question here: all that is said of a point
#: must hold of that of an early end as well.
MAX_TIME = 5.0
METHODS = ("adasdca+", "sdca-perm", "iprox-sdca", "adasdca")  # beside auto, for a few epochs


@dataclass(frozen=True)
class Case:
    """A problem, and how it shall be solved."""

    number: tuple[int, int]  #: Seed and index, from which the case is made again.
    kind: dict[str, str]  #: What kind of problem it is, in words.
    #: Arguments of `solve` that state the problem.
    X: Any
    y: Array
    options: dict[str, Any]
    how: dict[str, Any] = field(default_factory=dict)  #: Its other arguments.

    @property
    def dense(self) -> Array:
        """The rows as doubles, a column more for a penalised intercept."""
        dense = np.asarray(self.X.toarray() if sp.issparse(self.X) else self.X)
        if self.constant:
            column = np.full((len(dense), 1), self.constant, dtype=dense.dtype)
            dense = np.hstack([dense, column])
        return dense.astype(np.float64)

    @property
    def constant(self) -> float:
        """The constant of a penalised intercept as X would hold it, 0 for none."""
        scaling = self.options["intercept_scaling"]
        return 0.0 if scaling is None else float(self.X.dtype.type(scaling))

    @property
    def weight(self) -> Array:
        """The sample weights."""
        given = self.options["sample_weight"]
        return np.ones(len(self.y)) if given is None else given

    def exactly(self) -> Problem:
        """Return the problem in many digits."""
        options, constant = self.options, self.constant
        bounds, factors = options["bounds"], options.get("penalty_factors")
        if bounds is not None:
            low, high = (np.full(self.X.shape[1], x, dtype=float) for x in bounds)
            if constant:
                low, high = np.append(low, -math.inf), np.append(high, math.inf)
            bounds = low, high
        if factors is not None and constant:
            factors = np.append(factors, 1.0)
        return Problem(
            self.dense,
            self.y,
            weight=self.weight,
            loss=options["loss"],
            lam=options["lam"],
            l1_ratio=options["l1_ratio"],
            bounds=bounds,
            fit_intercept=options["fit_intercept"] and not constant,
            factors=factors,
        )


def make(seed: int, index: int, small: bool = False) -> Case:
    """Make a case; the same numbers give the same case.

    Small ones take a third of the time: smooth losses, a few rows, mostly L2 terms, and all of the
    scales, means, weights, dtypes and strengths of the others.
    """
    rng = np.random.default_rng((seed, index))

    def pick(*choices: Any, p: Any = None) -> Any:
        if p is None:
            return choices[int(rng.integers(len(choices)))]
        return choices[bisect(list(accumulate(p)), rng.random())]  # as rng.choice, in a tenth

    family = pick(
        "smooth", "kinked", "logistic", p=(0.95, 0.0, 0.05) if small else (0.83, 0.1, 0.07)
    )
    members = {"smooth": SMOOTH, "kinked": KINKED, "logistic": (losses.Logistic(),)}
    loss = pick(*members[family])
    large = rng.random() < 0.01
    n, d = int(rng.integers(5, 16 if family == "logistic" else 41)), int(rng.integers(1, 7))
    if small:
        large, n, d = False, 3 + n // 5, (d + 1) // 2
    if large:
        n, d = 5 * n, 3 * d
    kind = {"loss": loss.name, "size": f"{'large' if large else 'small'}"}
    Z, X, columns = _features(rng, n, d, pick)
    kind["features"] = columns
    size = pick(1.0, 1e3, 1e6, 1e-6)
    w = rng.normal(size=d)
    noise = pick(1.0, 1e-3, 0.0, p=(0.7, 0.2, 0.1))
    y = size * (Z @ w) + noise * rng.normal(size=n) + pick(0.0, size)
    kind["targets"] = f"{size:g} ± {noise:g}"
    if loss.kind == "classification":
        y = np.where(y > (np.median(y) if rng.random() < 0.8 else np.quantile(y, 0.9)), 1.0, -1.0)
        if abs(y.sum()) == n:
            y[0] = -y[0]
    dtype = pick(np.float64, np.float32, p=(0.65, 0.35))
    with np.errstate(over="ignore"):
        X = X.astype(dtype)
    weight = _weights(rng, n, y, loss, pick)
    intercept, scaling = pick((False, None), (True, None), (True, 1.0), (True, 0.7), (True, 30.0),
                              p=(0.35, 0.45, 0.1, 0.05, 0.05))  # fmt: skip
    penalty, more = pick(
        ("L2", {}),
        ("elastic net", {"l1_ratio": pick(0.5, 0.1, 0.97)}),
        ("lasso", {"l1_ratio": 1.0}),
        ("bounds", {"bounds": pick((0.0, None), (-0.5, 1.5))}),
        ("elastic net, bounds", {"l1_ratio": 0.3, "bounds": (0.0, None)}),
        p=(0.85, 0.05, 0.0, 0.1, 0.0) if small else (0.5, 0.17, 0.13, 0.12, 0.08),
    )
    lam = 10.0 ** rng.uniform(-11.0, 3.0)
    if penalty == "lasso":
        lam = 10.0 ** rng.uniform(-6.0, 0.0)
    options = {"l1_ratio": 0.0, "bounds": None, **more}
    if options["bounds"] is not None:
        low, high = options["bounds"]
        options["bounds"] = (low, math.inf if high is None else high)
    options |= {"loss": loss, "lam": lam, "sample_weight": weight, "fit_intercept": intercept}
    options["intercept_scaling"] = scaling
    form = pick(np.asarray, sp.csr_array, p=(0.7, 0.3))
    kind |= {
        "penalty": penalty,
        "intercept": "none" if not intercept else "free" if scaling is None else "penalised",
        "weights": "no" if weight is None else "yes",
        "dtype": np.dtype(dtype).name,
        "form": "dense" if form is np.asarray else "csr",
        "lam": f"1e{math.floor(math.log10(lam)) // 3 * 3:+d}",
    }
    tol = pick(1e-1, 1e-4, 1e-6, 1e-9, 0.0, p=(0.1, 0.15, 0.45, 0.2, 0.1))
    how: dict[str, Any] = {"tol": tol, "random_state": index, "max_time": MAX_TIME}
    if penalty != "lasso" and rng.random() < 0.15:
        how |= {"method": pick(*METHODS), "max_epochs": 20}
    kind["tol"], kind["method"] = f"{tol:g}", how.get("method", "auto")
    return Case((seed, index), kind, form(X), y, options, how)


def _features(rng: Any, n: int, d: int, pick: Any) -> tuple[Array, Array, str]:
    """Return features of deviation 1 about 0, the same as they are given, and what they are."""
    Z = rng.normal(size=(n, d))
    which = pick("plain", "far", "scaled", "both", "repeated", "integers", "huge",
                 p=(0.36, 0.2, 0.2, 0.05, 0.07, 0.11, 0.01))  # fmt: skip
    X = Z
    if which in ("far", "both"):
        X = X + pick(10.0, 1e3, 1e6, p=(0.45, 0.45, 0.1)) * rng.normal(size=d)
    if which in ("scaled", "both"):
        X = X * 10.0 ** rng.uniform(-4.0, 4.0, size=d)
    if which == "repeated":  # rows and columns that are others' doubles, and one of nothing
        X = X[rng.integers(0, n, n)][:, rng.integers(0, d, d)]
        X[0] = 0.0
        Z = X
    if which == "integers":
        X = Z = np.round(Z * pick(1.0, 30.0))
    if which == "huge":
        X = X * 1e12
    if rng.random() < 0.2:
        X = np.where(rng.random(X.shape) < 0.5, X, 0.0)
    return Z, X, which


def _weights(rng: Any, n: int, y: Array, loss: Loss, pick: Any) -> Array | None:
    which = pick("none", "counts", "tenths", "decades", "some", p=(0.5, 0.15, 0.1, 0.15, 0.1))
    if which == "none":
        return None
    counts: Array = rng.integers(1, 4, n).astype(float)
    if which == "tenths":
        return np.asarray(0.1 * counts)
    if which == "decades":
        return np.asarray(10.0 ** rng.uniform(-4.0, 4.0, n))
    if which == "some":
        counts[rng.random(n) < 0.3] = 0.0
        counts[[int(y.argmin()), int(y.argmax())]] = 1.0
    return counts
