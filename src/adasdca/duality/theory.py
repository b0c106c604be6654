"""The formulas of the paper, one function each, in plain NumPy.

Csiba, Qu, Richtárik, *Stochastic Dual Coordinate Ascent with Adaptive Probabilities* (ICML 2015).
The objective is ``(1/n) sum_i phi_i(x_i . w) + lam g(w)`` with ``g`` 1-strongly convex. The
arguments shared by the functions, checked in all of them:

kappa : array of shape (n,), dual residues ``alpha_i + phi_i'(x_i . w)``, not all zero
v : array of shape (n,), squared row norms
lam : float, positive
gamma : float or array of shape (n,), positive; loss ``i`` is ``1/gamma_i``-smooth

Sample weights ``c_i`` with sum ``N`` are the paper's problem with ``(n c_i / N) kappa_i`` for
``kappa_i`` and ``gamma N / (n c_i)`` for ``gamma_i``.

Lemmas, propositions, theorems and corollaries are counted each on their own. The paper's source
counts them together with its two definitions: there Lemmas 1-3 are 3-5, Propositions 1-2 are 6
and 10, Theorems 1-3 are 7, 8 and 11, Corollaries 1-2 are 9 and 12.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]


def theta(kappa: ArrayLike, p: ArrayLike, *, v: ArrayLike, lam: float, gamma: ArrayLike) -> float:
    r"""Share of the gap that one step is sure to gain: :math:`\theta(\kappa, p)` after Lemma 1.

    .. math:: \theta(\kappa, p) = \frac{n\lambda\gamma \sum_{\kappa_i \neq 0} \kappa_i^2}
              {\sum_{\kappa_i \neq 0} \kappa_i^2 (v_i + n\lambda\gamma) / p_i}

    Here the right-hand side of Lemma 1 vanishes: the expected ascent is at least ``theta`` times
    the gap if ``theta <= min(p[kappa != 0])`` (Proposition 1), and for quadratic losses always
    (Proposition 2). `p` has shape (n,) and is positive where `kappa` is not zero (coherence).

    Examples
    --------
    >>> theta([1.0, -2.0, 0.0], [0.5, 0.5, 0.0], v=[1.0, 2.0, 3.0], lam=1.0, gamma=1.0)
    0.3125
    """
    v, stiffness, kappa = _setting(v, lam, gamma, kappa)
    p = _vector("p", p, v.size)
    if (p < 0).any():
        raise ValueError(f"p has the entry {p.min():g}; probabilities must be >= 0.")
    live = kappa != 0
    if (p[live] == 0).any():
        i = np.flatnonzero(live & (p == 0))[0]
        raise ValueError(
            f"p[{i}] = 0 although kappa[{i}] is not zero: p is not coherent with kappa; "
            "give every row with a residue a positive probability."
        )
    target = np.sum(stiffness * kappa**2)
    return float(target / np.sum(kappa[live] ** 2 * (v + stiffness)[live] / p[live]))


def theta_star(*, v: ArrayLike, lam: float, gamma: ArrayLike) -> float:
    r"""Rate of importance sampling: :math:`n\lambda\gamma/\sum_i(v_i+n\lambda\gamma)` (Theorem 2).

    Examples
    --------
    >>> theta_star(v=[1.0, 2.0, 4.0], lam=1.0, gamma=1.0)
    0.1875
    """
    v, stiffness, _ = _setting(v, lam, gamma)
    return float(1.0 / np.sum(1.0 + v / stiffness))


def importance_probabilities(*, v: ArrayLike, lam: float, gamma: ArrayLike) -> Vector:
    r"""Return importance sampling: :math:`p_i \propto v_i + n\lambda\gamma`.

    These give ``theta(kappa, p) = theta_star <= min(p)`` for every ``kappa``. With a ``gamma`` for
    each row it is :math:`p_i \propto 1 + v_i / (n\lambda\gamma_i)` that does.

    Examples
    --------
    >>> importance_probabilities(v=[1.0, 2.0, 4.0], lam=1.0, gamma=1.0)
    array([0.25  , 0.3125, 0.4375])
    """
    v, stiffness, _ = _setting(v, lam, gamma)
    p = 1.0 + v / stiffness
    return np.asarray(p / p.sum())


def relaxed_probabilities(
    kappa: ArrayLike, *, v: ArrayLike, lam: float, gamma: ArrayLike
) -> Vector:
    r"""Maximise ``theta`` over all probabilities (Lemma 2).

    .. math:: p_i \propto |\kappa_i| \sqrt{v_i + n\lambda\gamma}

    The choice of Theorem 3, for quadratic losses. For others ``theta <= min(p)`` may fail, and
    :func:`optimal_probabilities` is what the theory covers.

    Examples
    --------
    >>> relaxed_probabilities([1.0, -3.0, 0.0], v=[1.0, 1.0, 1.0], lam=1.0, gamma=1.0)
    array([0.25, 0.75, 0.  ])
    """
    v, stiffness, kappa = _setting(v, lam, gamma, kappa)
    s = np.abs(kappa) * np.sqrt(v + stiffness)
    return np.asarray(s / s.sum())


def optimal_probabilities(
    kappa: ArrayLike, *, v: ArrayLike, lam: float, gamma: ArrayLike
) -> Vector:
    r"""Maximise ``theta`` subject to ``theta <= min(p[kappa != 0])``, exactly (eq. ``optp``).

    With these Theorem 1 holds for every smooth loss, at a rate no worse than importance sampling
    (Corollary 1). Rows with ``kappa = 0`` get probability 0. This is :func:`water_fill` of
    :math:`s_i=|\kappa_i|\sqrt{v_i+n\lambda\gamma}` to :math:`n\lambda\gamma\sum_i\kappa_i^2`.

    Examples
    --------
    >>> optimal_probabilities([1.0, -9.0, 0.0], v=[1.0, 1.0, 1.0], lam=1.0, gamma=1.0)
    array([0.42756184, 0.57243816, 0.        ])
    """
    v, stiffness, kappa = _setting(v, lam, gamma, kappa)
    target = float(np.sum(stiffness * kappa**2))
    return water_fill(np.abs(kappa) * np.sqrt(v + stiffness), target)[0]


def water_fill(s: ArrayLike, target: float) -> tuple[Vector, float]:
    r"""Maximise :math:`\theta(p) = \mathrm{target} / \sum_i s_i^2/p_i` s.t. ``theta(p) <= min(p)``.

    Parameters
    ----------
    s : array of shape (n,)
        Non-negative, not all zero. Rows with ``s = 0`` get ``p = 0`` and count nowhere.
    target : float
        Positive and at most ``sum(s**2)``: above that nothing is feasible.

    Returns
    -------
    p : array of shape (n,)
        Probabilities.
    theta : float
        The maximum.

    Notes
    -----
    A feasible ``p`` with ``min p = t`` has ``theta(p) <= min(t, F(t))``, where ``F(t)`` is the
    largest ``theta`` under ``p_i >= t``. It is attained at ``p_i = max(t, mu s_i)`` and falls with
    ``t``, so ``F(t) = t`` is the answer unless ``F(0) <= min p`` is. Sort ``s`` upwards, let the
    ``k`` smallest, with squares summing to ``Q_k``, sit on the floor and the others sum to ``S_k``.
    Then ``F(t) = t`` reads ``target = Q_k + t S_k^2 / (1 - k t)``, hence

        theta = t_k = (target - Q_k) / (S_k^2 + k (target - Q_k)),   mu = (1 - k t_k) / S_k,

    and ``k = 0`` is the case without a floor. Row ``k+1`` stands above the floor iff
    ``target <= L_k = Q_k + s_{k+1} S_k``. As ``L_k - L_{k-1} = (s_{k+1} - s_k) S_k >= 0``, the
    right ``k`` is the first with ``target <= L_k``: a sort and a search, no tolerance.

    Examples
    --------
    >>> water_fill([1.0, 3.0, 0.0], 2.0)
    (array([0.25, 0.75, 0.  ]), 0.125)
    >>> water_fill([1.0, 3.0, 0.0], 7.0)
    (array([0.4, 0.6, 0. ]), 0.4)
    """
    s = _vector("s", s)
    if (s < 0).any() or not s.any():
        raise ValueError(
            f"s must be >= 0 and not all zero, but spans [{s.min():g}, {s.max():g}]; "
            "give |kappa_i| sqrt(v_i + n lam gamma)."
        )
    live = s > 0
    ranked = np.sort(s[live])
    squares = np.concatenate([[0.0], np.cumsum(ranked**2)])  # Q_0 .. Q_m
    rest = np.cumsum(ranked[::-1])[::-1]  # S_0 .. S_{m-1}
    # With v = 0 the target equals sum(s^2) but for rounding, which must not count as infeasible.
    slack = 1.0 + 4.0 * ranked.size * np.finfo(np.float64).eps
    if not 0.0 < target <= squares[-1] * slack:
        raise ValueError(
            f"target = {target:g} must lie in (0, sum(s^2) = {squares[-1]:g}]; "
            "give n lam gamma sum(kappa^2)."
        )
    k = min(int(np.searchsorted(squares[:-1] + ranked * rest, target)), ranked.size - 1)
    excess = target - squares[k]
    best = excess / (rest[k] ** 2 + k * excess)
    p = s * ((1.0 - k * best) / rest[k])
    if k:
        p[live] = np.maximum(p[live], best)
    return p, float(best)


def adaptive_bound(thetas: ArrayLike, dual_error: float) -> Vector:
    r"""Bound the expected gap of AdaSDCA after 0, 1, 2, ... steps (Theorems 1 and 3).

    .. math:: E[P(w^t) - D(\alpha^t)] \le \frac{1}{\tilde\theta_t}
              \prod_{k=0}^{t-1} (1 - \tilde\theta_k) \, (D(\alpha^*) - D(\alpha^0))

    Parameters
    ----------
    thetas : array of shape (T,)
        Means :math:`\tilde\theta_t` of ``theta`` weighted by the gap (eq. ``a:tildetheta``).
    dual_error : float
        :math:`D(\alpha^*) - D(\alpha^0)`.

    Notes
    -----
    The paper prints the product up to ``k = t``. Its proof gives ``t - 1``, like the power ``t`` of
    Theorem 2, and the last factor cannot be kept: for one row and the squared loss the bound
    above is an equality at ``t = 0``.

    Examples
    --------
    >>> adaptive_bound([0.5, 0.5, 0.25], 1.0)
    array([2., 1., 1.])
    """
    rates = _vector("thetas", thetas)
    if not (rates > 0).all() or not (rates <= 1).all():
        raise ValueError(f"thetas must lie in (0, 1], but span [{rates.min():g}, {rates.max():g}].")
    survival = np.concatenate([[1.0], np.cumprod(1.0 - rates[:-1])])
    return survival / rates * _dual_error(dual_error)


def importance_bound(t: ArrayLike, *, theta_star: float, dual_error: float) -> Vector:
    r"""Bound the expected gap of importance sampling after `t` steps (Theorem 2).

    :math:`(1-\theta_*)^t/\theta_*\,(D(\alpha^*)-D(\alpha^0))`, for one number or an array `t`.

    Examples
    --------
    >>> importance_bound([0, 1, 2], theta_star=0.5, dual_error=1.0)
    array([2. , 1. , 0.5])
    """
    steps = np.asarray(t, dtype=np.float64)
    if not (steps >= 0).all():
        raise ValueError(f"t = {steps} must be >= 0; give numbers of steps.")
    if not 0 < theta_star <= 1:
        raise ValueError(f"theta_star = {theta_star} must lie in (0, 1]; see theta_star().")
    return np.asarray((1.0 - theta_star) ** steps / theta_star * _dual_error(dual_error))


def epoch_cost(method: str, *, n: int, nnz: int) -> float:
    """Count the operations of an epoch of `n` steps over `nnz` non-zeros, as in Table 1.

    "quartz" is the uniform one; "sdca-perm", not in the table, costs what "sdca" does.

    Examples
    --------
    >>> epoch_cost("sdca", n=1024, nnz=10_000), epoch_cost("adasdca+", n=1024, nnz=10_000)
    (10000.0, 20240.0)
    """
    if n < 1 or nnz < 0:
        raise ValueError(f"n = {n} must be >= 1 and nnz = {nnz} must be >= 0.")
    plain, tree, full = float(nnz), nnz + n * math.log2(n), float(n) * nnz
    costs = {"sdca": plain, "sdca-perm": plain, "quartz": plain}
    costs |= {"iprox-sdca": tree, "adasdca": full, "adasdca+": tree}
    if method not in costs:
        raise ValueError(f"method = {method!r} is unknown; choose one of {', '.join(costs)}.")
    return costs[method]


def _setting(
    v: ArrayLike, lam: float, gamma: ArrayLike, kappa: ArrayLike | None = None
) -> tuple[Vector, Vector, Vector]:
    """Return ``v``, ``n lam gamma`` and ``kappa`` scaled to unit maximum, all checked."""
    v = _vector("v", v)
    if (v < 0).any():
        raise ValueError(f"v has the entry {v.min():g}; squared row norms must be >= 0.")
    if not 0 < lam < math.inf:
        raise ValueError(f"lam = {lam} must be positive and finite.")
    gamma = _vector("gamma", gamma if np.ndim(gamma) else np.full(v.size, gamma), v.size)
    if (gamma <= 0).any():
        raise ValueError(
            f"gamma = {gamma.min():g} must be positive: the theory is for smooth losses; "
            "use for instance smoothed_hinge in place of hinge."
        )
    kappa = np.ones_like(v) if kappa is None else _vector("kappa", kappa, v.size)
    if not kappa.any():
        raise ValueError("kappa is zero in every row: the point is optimal, nothing to sample.")
    # No formula depends on the scale of kappa; unit maximum keeps the squares from underflow.
    return v, v.size * lam * gamma, kappa / np.abs(kappa).max()


def _vector(name: str, value: ArrayLike, n: int | None = None) -> Vector:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim != 1 or array.size == 0 or array.size != (n or array.size):
        wanted = f"({n},), one entry a row" if n else "(n,) with n >= 1"
        raise ValueError(f"{name} has shape {array.shape}; give an array of shape {wanted}.")
    if not np.isfinite(array).all():
        bad = array[~np.isfinite(array)][0]
        raise ValueError(f"{name} has the entry {bad}; all must be finite.")
    return array


def _dual_error(value: float) -> float:
    if not 0 <= value < math.inf:
        raise ValueError(f"dual_error = {value} must be finite and >= 0: D(optimum) - D(start).")
    return value
