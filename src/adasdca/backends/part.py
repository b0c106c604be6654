"""One part of the rows, and the sums over it that a solve with its rows in parts asks for.

A part stores vectors of its rows under numbers that the caller chooses, so that they stay where the
rows are. Arguments and results are vectors of d numbers and single numbers: a part may be in
another process.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adasdca import _core
from adasdca.backends.base import Gram, RowSlope
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.cpu_term import CpuTerm
from adasdca.backends.working_set import WorkingSet
from adasdca.duality.certificate import scaled, sides
from adasdca.problem.problem import Problem

Array = NDArray[np.float64]

#: Commands that pass over the rows, except those on a term.
PASSES = frozenset(
    (
        "combine",
        "score",
        "examine",
        "begin",
        "freedom",
        "column_squares",
        "column_shares",
        "restrict",
    )
)
#: Commands on a term, whose rows may be a working set in memory.
OF_TERMS = frozenset(("go", "place", "aim", "move", "gram", "curve", "diagonal"))
#: Commands that lead a term somewhere.
MOVES = frozenset(("go", "place", "move"))
#: Commands that are methods of the term.
FORWARDED = frozenset(("slope", "curve", "diagonal"))


class PartFacts(NamedTuple):
    """Facts about the rows of a part, as `RowFacts` has them, and the chain of its sums."""

    n: int
    d: int
    stored: int
    dense: bool
    entry_bytes: int
    squared_length: float
    shared: float
    chain: int


class Pages:
    """Pages of rows that are in memory: nothing to do."""

    def read_ahead(self) -> None:
        """Begin to read them."""

    def let_go(self) -> None:
        """Give their memory back; they are read again when they are asked for."""


class Part:
    """Rows of a problem, with the N of all (`whole`), and vectors of theirs.

    `pages` are where the rows are kept. A share `few` of them may be copied for a working set.
    """

    def __init__(
        self,
        problem: Problem,
        threads: int = 1,
        pages: Pages | None = None,
        few: float = LocalBackend.few,
    ) -> None:
        self.pages, self._threads = pages or Pages(), threads
        self._spaces = {0: LocalBackend(problem, threads, pack=False)}
        self._spaces[0].few = few
        self._terms: dict[int, CpuTerm] = {}
        self._vectors: dict[int, Array] = {}
        self._y, self._loss = problem.y, problem.loss
        one = np.broadcast_to(np.float64(1.0), len(problem.y))
        self._weight: Array = one if problem.weight is None else problem.weight
        self._scores: Array = np.empty(0)

    def reads(self, command: str, *args: Any) -> bool:
        """Whether a command goes through the rows where they are kept."""
        if command in OF_TERMS:
            return not isinstance(self._terms[args[0]], WorkingSet)
        return command in PASSES

    def do(self, command: str, *args: Any) -> Any:
        """Carry a command out."""
        with np.errstate(under="ignore"):
            if command in FORWARDED:
                return getattr(self._terms[args[0]], command)(*args[1:])
            if command in MOVES:
                return self._go(command, *args)
            return getattr(self, command)(*args)

    # -- what is stored

    def facts(self, space: int) -> PartFacts:
        """Return the facts about the rows."""
        backend = self._spaces[space]
        facts = [getattr(backend.facts, name) for name in PartFacts._fields[:-1]]
        return PartFacts._make([*facts, backend.workspace.chain])

    def column_shares(self, space: int) -> Array:
        """Return the share of the rows that have an entry in a column."""
        return np.asarray(self._spaces[space].facts.column_shares)

    def restrict(self, space: int, new: int, features: NDArray[np.intp]) -> None:
        """Make another space of some of the features."""
        self._spaces[new] = self._spaces[space].restrict(features)

    def forget(self, vectors: list[int], terms: list[int], spaces: list[int]) -> None:
        """Drop what the caller holds no more."""
        for kept, numbers in (
            (self._vectors, vectors),
            (self._terms, terms),
            (self._spaces, spaces),
        ):
            for number in numbers:
                kept.pop(number, None)

    def scatter(self, vector: int, values: Array | None = None) -> None:
        """Take over a vector; zeros, if it is not given."""
        self._vectors[vector] = np.zeros(len(self._y)) if values is None else values.copy()

    def gather(self, vector: int) -> Array:
        """Return a vector."""
        return self._vectors[vector]

    def vectors(self) -> dict[int, Array]:
        """Return all vectors."""
        return dict(self._vectors)

    # -- surveys and certificates

    def score(self, space: int, w: Array) -> None:
        """Compute and store the scores x_i·w."""
        self._scores = self._scored(space, w)

    def _scored(self, space: int, w: Array) -> Array:
        if not w.any():  # as where a solve begins: a pass less
            return np.zeros(len(self._y))
        scores = _core.vector(len(self._y))
        self._spaces[space].workspace.scores(w, scores, self._threads)
        return scores

    def balance(self, b: float) -> tuple[float, float, float]:
        """Return Σ c_iβ_i for β = −φ' at the stored scores, Σ c_i|β_i|, and Σ c_iφ''."""
        beta, curvature = self._derived(b)
        return (
            float(self._weight @ beta),
            float(self._weight @ np.abs(beta)),
            float(curvature.sum()),
        )

    def slopes(self, vector: int, b: float) -> tuple[float, float, int]:
        """Store −φ' at the stored scores as a vector; return its sides."""
        self._vectors[vector], _ = self._derived(b)
        return self.sides(vector)

    def _derived(self, b: float) -> tuple[Array, Array]:
        n = len(self._y)
        beta, curvature = _core.vector(n), _core.vector(n)
        workspace = self._spaces[0].workspace
        workspace.derive(self._scores + b, 0.0, None, beta, curvature, None, self._threads)
        return beta, curvature

    def sides(self, vector: int) -> tuple[float, float, int]:
        """Return the weight of the duals of either sign, and how many are not 0."""
        beta = self._vectors[vector]
        return *sides(beta, self._weight), int(np.count_nonzero(beta))

    def examine(
        self,
        space: int,
        vector: int,
        out: int,
        w: Array,
        b: float,
        scored: bool,
        shares: tuple[float, float],
    ) -> tuple[Any, ...]:
        """Return the sums of a certificate: the part of u, and the evidence.

        Shares of the dual point `vector` above and below 0 are stored as `out`. `scored` says
        whether the stored scores are those of w.
        """
        beta = self._vectors[out] = scaled(self._vectors[vector], shares)
        workspace = self._spaces[space].workspace
        scores = self._scores if scored else self._scored(space, w)
        evidence = workspace.evidence(scores, w, b, beta, self._threads)
        return self.combine(space, out), *evidence

    def combine(self, space: int, vector: int) -> Array:
        """Return the part of u = Σ_i c_iβ_i x_i/(λN)."""
        return self._spaces[space].combine(self._vectors[vector])

    def freedom(self, space: int, w: Array, b: float, vector: int) -> tuple[float, float]:
        """Return the parts of a backend's `freedom`."""
        return self._spaces[space].freedom(w, b, self._vectors[vector])

    def column_squares(self, space: int) -> Array:
        return self._spaces[space].column_squares()

    # -- terms

    def begin(
        self,
        space: int,
        term: int,
        length: float,
        centre: int | None,
        point: tuple[Array, float] | None,
        reach: float | None,
    ) -> None:
        """Make a term; `RowTerm` says what each number is."""
        at = None if centre is None else self._vectors[centre]
        self._terms[term] = self._spaces[space].term(length, at, point, reach)

    def _go(self, command: str, term: int, *args: Any) -> tuple[Any, ...]:
        """Let a term go somewhere; return its derivatives, or its balance alone, and its figures.

        These are rows with curvature, sums of `residual` and `travel`, and the rows of these.
        """
        one = self._terms[term]
        found, n = getattr(one, command)(*args), one.workspace.n
        figures = one.curved, n * one.residual, n * one.travel, n
        return *((one.balance,) if found is None else found), *figures

    def aim(self, term: int, dv: Array, db: float) -> RowSlope:
        """Choose a line; return the slope at its full length, which is asked for first."""
        one = self._terms[term]
        one.aim(dv, db)
        return one.slope(1.0)

    def gram(
        self,
        term: int,
        intercept: bool,
        seconds: float,
        share: float | None,
        combined: bool,
        rough: bool,
    ) -> Gram | None:
        """Sum the matrix of the features, of a share of the rows; None if time ran out."""
        one = self._terms[term]
        sample = None if share is None else max(1, round(share * one.workspace.n))
        found = one.gram(intercept, time.perf_counter() + seconds, sample, combined, rough)
        return found and found._replace(product=None)  # that of all parts is the caller's

    def keep(self, term: int, vector: int) -> None:
        """Keep the duals of a term."""
        self._vectors[vector] = self._terms[term].duals().copy()
