"""The rows' part of a multinomial objective, in margins t_ik = s_ik − s_{i,k_i}.

A row's own margin is 0, its loss is log Σ_k exp t_ik. Written so, the loss, 1 − p of the own class
and all slopes are sums of terms of one sign: they keep their digits where classes are separated.
Arrays are (K, n), a class a row: sums over the classes are then sums of long vectors. They
stay where the rows are; only numbers and arrays of features and classes leave.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backends.abilities import able
from adasdca.multinomial.blocks import Block
from adasdca.multinomial.rows import ClassRows, Exact, ExactRows
from adasdca.newton.line import Slope
from adasdca.problem.device_rows import to_host

Array = NDArray[np.float64]

#: Unit roundoff.
ROUNDOFF = 2.0**-53


class Multinomial:
    """The problem: rows, class codes 0 … K−1, weights, strength.

    Attributes
    ----------
    total, mu : float
        N and μ = lam·N.
    centre : (d,) array
        The mean of the rows with an intercept, else 0.
    lengths : (n,) array
        ‖x_i‖.
    longest, moment : float
        The largest of them, and Σ_i c_i ‖x_i‖².
    exact : bool
        Whether sums can be taken in twice the digits.
    """

    def __init__(
        self,
        rows: ClassRows,
        codes: NDArray[np.intp],
        weight: Array | None,
        lam: float,
        n_classes: int,
        fit_intercept: bool,
    ) -> None:
        xp = rows.xp
        self.rows, self.lam = rows, lam
        self.weight = None if weight is None else xp.asarray(weight)
        self.n_classes, self.fit_intercept = n_classes, fit_intercept
        self.total = float(len(codes) if weight is None else math.fsum(weight))
        self.mu = lam * self.total
        self.exact = able(rows, ExactRows) is not None
        self.codes = xp.asarray(codes)
        self._basis: tuple[Any, Any] | None = None
        self.own = self.codes, xp.arange(len(codes))
        self.lengths = rows.norms()
        self.longest, self.moment = float(self.lengths.max()), self.sum(self.lengths**2)
        self.centre = np.zeros(rows.shape[1])
        if fit_intercept:
            self.centre = rows.column_sums(self.weight) / self.total
        rows.centre_at(self.centre)

    def join(self, total: float, centre: Array, fit_intercept: bool) -> None:
        """Become a part of a larger problem, with the N and the mean of all rows."""
        self.total, self.mu, self.fit_intercept = total, self.lam * total, fit_intercept
        self.centre = centre
        self.rows.centre_at(centre)

    def blocks(self) -> Iterator[slice]:
        """Yield the rows in blocks; Ctrl-C and the deadline are checked between them."""
        n, height = len(self.codes), self.rows.height
        for first in range(0, n, height):
            _core.check()
            yield slice(first, min(n, first + height))

    def weighted(self, values: Any) -> Any:
        """Return c_i times column i."""
        return values if self.weight is None else values * self.weight

    def sum(self, values: Any) -> float:
        """Return Σ c_i values_i."""
        return self.rows.sum(values, self.weight)

    def losses(self, coef: Array, intercept: Array) -> RowLosses:
        """Return the losses of a model."""
        return RowLosses(self, self.margins(coef, intercept))

    def margins(self, coef: Array, intercept: Array) -> Any:
        """Return the margins of a model."""
        if not coef.any():
            return self.shifts(intercept)
        scores = self.rows.scores(coef)
        scores += self.rows.xp.asarray(intercept)[:, None]
        scores -= scores[self.own]
        return scores

    def shifts(self, intercept: Array) -> Any:
        """Return the margins of an intercept alone."""
        xp = self.rows.xp
        out, b = xp.empty((self.n_classes, len(self.codes))), xp.asarray(intercept)
        for part in self.blocks():
            xp.subtract(b[:, None], b[self.codes[part]], out=out[:, part])
        return out

    def basis(self, sample: int, deadline: float) -> tuple[Any, Any] | None:
        """Return the eigenvalues and eigenvectors of Σ_i c_i z_i z_iᵀ; None if time ran out.

        At most `sample` rows are used. The arrays stay where the rows are.
        """
        if self._basis is None:
            gram = self.rows.sample_gram(self.weight, sample, deadline)
            self._basis = None if gram is None else basis_of(gram, self.rows.xp)
        return self._basis


def basis_of(gram: Any, xp: Any) -> tuple[Any, Any] | None:
    """Return the eigenvalues and eigenvectors of a matrix; None if it is not finite."""
    if not bool(xp.isfinite(gram).all()):
        return None
    values, vectors = xp.linalg.eigh(gram, UPLO="L")
    return xp.maximum(values.astype(np.float64), 0.0), vectors


class Softmax(NamedTuple):
    """Probabilities and losses at some margins."""

    p: Any  #: (K, n), probabilities.
    short: Any  #: (n,), 1 − p of the own class.
    loss: Any  #: (n,), the losses.


def softmax(problem: Multinomial, margins: Any) -> Softmax:
    """Return probabilities and losses at some margins."""
    n, xp = margins.shape[1], problem.rows.xp
    found = Softmax(xp.empty_like(margins), xp.empty(n), xp.empty(n))
    for part in problem.blocks():
        t, codes = margins[:, part], problem.codes[part]
        own = codes, xp.arange(len(codes))
        top = t.max(axis=0)
        p = xp.exp(t - top)
        first = p[own]  # exp(−top): 1 where the own class is the likeliest
        p[own] = 0.0
        others = p.sum(axis=0)
        p[own] = first
        whole = others + first
        xp.divide(p, whole, out=found.p[:, part])
        xp.divide(others, whole, out=found.short[part])
        found.loss[part] = top + xp.log1p(others + xp.expm1(-top))
    return found


class RowLosses:
    """Σ_i c_i log Σ_k exp t_ik at given margins, and along a line from there."""

    def __init__(self, problem: Multinomial, margins: Any) -> None:
        self.problem, self.margins = problem, margins
        self.at = softmax(problem, margins)

    def value(self) -> float:
        """Return the sum."""
        return self.problem.sum(self.at.loss)

    def margin_range(self) -> float:
        """Return the largest difference of two margins."""
        return float(self.margins.max() - self.margins.min())

    def coupling(self) -> Array:
        """Return Σ_i c_i p_ik p_ij for classes k ≠ j, and 0 for k = j."""
        p = self.at.p
        coupling = np.array(to_host(self.problem.weighted(p) @ p.T))
        np.fill_diagonal(coupling, 0.0)
        return coupling

    def dual(self) -> DualPoint:
        """Return α: c_i (e_{k_i} − p_i), a column each."""
        problem, xp = self.problem, self.problem.rows.xp
        alpha = xp.empty_like(self.at.p)
        for part in problem.blocks():
            xp.negative(self.at.p[:, part], out=alpha[:, part])
        alpha[problem.own] = self.at.short
        return DualPoint(problem, problem.weighted(alpha))

    def restore(self, other: RowLosses) -> None:
        """Go back to the point of a copy."""
        self.margins, self.at = other.margins, other.at

    # -- the line

    def aim(self, coef: Array | None, intercept: Array) -> None:
        """Choose the line, by a change of the model; without coefficients, of its intercept."""
        problem = self.problem
        self.change = (
            problem.shifts(intercept) if coef is None else problem.margins(coef, intercept)
        )
        self._tried: tuple[float, Any, Softmax] | None = None

    def _try(self, length: float) -> tuple[float, Any, Softmax]:
        if self._tried is None or self._tried[0] != length:
            xp = self.problem.rows.xp
            margins = xp.empty_like(self.margins)
            for part in self.problem.blocks():
                xp.add(self.margins[:, part], length * self.change[:, part], out=margins[:, part])
            self._tried = length, margins, softmax(self.problem, margins)
        return self._tried

    def slope(self, length: float) -> Slope:
        p, change, xp = self._try(length)[2].p, self.change, self.problem.rows.xp
        mean, size, curvature = (xp.empty(p.shape[1]) for _ in range(3))
        for part in self.problem.blocks():
            pull = p[:, part] * change[:, part]
            pull.sum(axis=0, out=mean[part])
            xp.abs(pull).sum(axis=0, out=size[part])
            pull *= change[:, part]
            curvature[part] = xp.maximum(pull.sum(axis=0) - mean[part] ** 2, 0.0)
        return Slope(*map(self.problem.sum, (mean, curvature, size)))

    def move(self, length: float) -> None:
        """Go along the line; the point that the search tried last is kept."""
        _, self.margins, self.at = self._try(length)
        self._tried = None

    # -- the curvature

    def curvature(self, real: Any) -> Callable[[Block, Block], tuple[Block, Block]]:
        """Return the map of v and a shift to Σ_i z_iᵀ A_i s_i and Σ_i A_i s_i, s_i = z_i v + shift.

        Here z_i are the rows less their centre.
        """
        problem, rows, xp = self.problem, self.problem.rows, self.problem.rows.xp
        p, offset = rows.as_block(self.at.p, real), xp.asarray(rows.offset.astype(real))
        if not rows.offset.any():
            return lambda v, shift: rows.curve(v, shift, p, problem.codes, problem.weight)

        def curve(v: Block, shift: Block) -> tuple[Block, Block]:
            moved = shift - offset @ v
            image, sums = rows.curve(v, moved, p, problem.codes, problem.weight)
            image -= xp.outer(offset, sums.astype(real))
            return image, sums

        return curve

    def diagonal(self, real: Any) -> tuple[Block, Array]:
        """Return sums of c p (1 − p) times squares of z_i, but for rounding, and alone."""
        rows = self.problem.rows
        variance = self.variance()
        mass, squares = rows.sums(variance), rows.gather(variance, real, squared=True)
        if rows.offset.any():
            offset = rows.xp.asarray(rows.offset.astype(real))[:, None]
            moved = rows.gather(variance, real)
            squares += offset * (offset * rows.layout.line(mass, real) - 2.0 * moved)
        return squares, mass

    def variance(self) -> Any:
        """Return c p (1 − p), with the digits of 1 − p."""
        rest = 1.0 - self.at.p
        rest[self.problem.own] = self.at.short
        rest *= self.at.p
        return self.problem.weighted(rest)

    def formed(self, deadline: float) -> Array | None:
        problem, rest = self.problem, self.variance()
        free = problem.fit_intercept
        return problem.rows.formed(self.at.p, rest, problem.weight, free, deadline)

    def blocks(self, deadline: float) -> Array | None:
        """Return the lower triangles of its blocks of a class each; None if time ran out."""
        problem = self.problem
        return problem.rows.formed_blocks(self.variance(), problem.fit_intercept, deadline)


class Rounding(NamedTuple):
    """The sums that bound the rounding of a certificate."""

    square: float  #: Σ_i c_i e_i², e_i a bound on the error of the scores of row i.
    #: The same with the share that matters: a row far from other classes has next to no curvature.
    bent: float
    #: Σ_i ‖α_i‖‖x_i‖ and Σ_i ‖α_i‖ e_i.
    mass: float
    reach: float


class DualPoint:
    """Dual variables α, a (K, n) array that stays where the rows are."""

    def __init__(self, problem: Multinomial, alpha: Any) -> None:
        self.problem, self.alpha = problem, alpha

    def sums(self) -> Array:
        """Return Σ_i α_i."""
        return self.problem.rows.sums(self.alpha)

    def sizes(self) -> Array:
        """Return Σ_i |α_i|, class by class."""
        return self.problem.rows.sums(abs(self.alpha))

    def combined(self) -> Array:
        """Return Σ_i α_i x_iᵀ."""
        return self.problem.rows.combined(self.alpha)

    def combined_exactly(self, losses: RowLosses) -> Exact:
        """Return Σ_i α_i x_iᵀ and Σ_i α_i in twice the digits, for rows that are `ExactRows`.

        Of each α_i, which adds up to 0, the entry of the likeliest class is what the others leave:
        stored, all of them would be rounded.
        """
        found: Exact = self.problem.rows.combined_exactly(  # type: ignore[attr-defined]
            self.alpha, losses.at.p.argmax(axis=0)
        )
        return found

    def reach(self, travel: Array) -> float:
        """Return Σ_i ‖α_i‖ Σ_j |x_ij| t_j, or a little more."""
        sizes = self.problem.rows.xp.sqrt((self.alpha**2).sum(axis=0))
        return float(sizes @ self.problem.rows.reach(travel))

    def gather(self) -> Array:
        """Return α in this process."""
        return np.asarray(to_host(self.alpha))

    def moved(self, losses: RowLosses, step: Array) -> DualPoint:
        """Return α − c_i (diag p_i − p_i p_iᵀ) step, with the probabilities of these losses."""
        xp = self.problem.rows.xp
        alpha, shift = xp.empty_like(self.alpha), xp.asarray(step)[:, None]
        for part in self.problem.blocks():
            here, weight = self.alpha[:, part], self.problem.weight
            step_of_rows = xp.broadcast_to(shift, here.shape)
            part_weight = None if weight is None else weight[part]
            change = curvature_times(
                xp, step_of_rows, losses.at.p[:, part], self.problem.codes[part], part_weight
            )
            xp.subtract(here, change, out=alpha[:, part])
        return DualPoint(self.problem, alpha)

    def rounding(
        self, losses: RowLosses, travel: Array, hops: int, shift: float, finely: bool
    ) -> Rounding:
        """Bound the errors of scores whose margins were shifted by at most `shift`."""
        problem, xp = self.problem, self.problem.rows.xp
        size = xp.maximum(losses.margins.max(axis=0), -losses.margins.min(axis=0))
        size += shift
        size *= (4.0 + hops) * math.sqrt(problem.n_classes)
        depth = problem.rows.depth + 8.0
        terms = (
            problem.rows.reach(travel)
            if finely
            else float(np.linalg.norm(travel)) * problem.lengths
        )
        error = ROUNDOFF * (depth * terms + size)
        sizes = xp.sqrt((self.alpha**2).sum(axis=0))
        mass, reach = float(sizes @ problem.lengths), float(sizes @ error)
        square = error**2
        bent = problem.sum(square * curvature_bound(xp, losses.at.short, error))
        return Rounding(problem.sum(square), bent, mass, reach)


def curvature_bound(xp: Any, short: Any, error: Any) -> Any:
    """Bound the curvature of losses in directions of length ½, as far as the errors of scores go.

    sᵀ(diag p − ppᵀ)s is at most ½‖s‖², and 2(1 − p)‖s‖² with p of the own class. A change by e
    makes 1 − p no larger than exp(2e) times, which is below 1 + 4e up to ½.
    """
    near = xp.where(error < 0.5, 4.0 * short * (1.0 + 4.0 * error), 1.0)
    return xp.minimum(near, 1.0)


def curvature_times(xp: Any, scores: Any, p: Any, codes: Any, weight: Any) -> Any:
    """Return c_i (diag p_i − p_i p_iᵀ) times the columns of `scores`."""
    # Differences from the own class do not cancel.
    out = scores - scores[codes, xp.arange(len(codes))]
    out -= (p * out).sum(axis=0)
    out *= p
    if weight is not None:
        out *= weight
    return out
