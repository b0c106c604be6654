"""Explanations that several claims share; shown only where a verdict is as they describe."""

from __future__ import annotations

from adasdca_reproduce.claims import Explanation

WIDE = Explanation(
    "dorothea has far more features than rows, so that rows hardly disturb each other: one visit "
    "removes a row's residue nearly for good, and the further visits that an "
    "adaptive distribution plans "
    "for it in the same epoch gain little. That speaks for visiting every row once, though it may "
    "not explain all of the order.",
    data="dorothea",
)
SURVEY = Explanation(
    "Every method is timed with a certificate after each epoch, so the pass over the rows that "
    "option I takes its residues from is no extra cost here. What remains is drawing the rows from "
    "a distribution of their own; where an epoch is cheap and few epochs are saved, "
    "that is not paid back.",
)
THINNING = Explanation(
    "After each pick option II divides a row's probability by m, which evens out the importance "
    "distribution that the epoch began with. On w8a the norms of the rows are very "
    "different, and long rows "
    "are then visited less often than IProx-SDCA visits them; probably they need those visits.",
    data="w8a",
)
SAME_NORMS = Explanation(
    "All rows of mushrooms have the same norm, so that importance sampling is uniform sampling: "
    "what is left of option II is that it repeats rows less often.",
    data="mushrooms",
)
ALL_MATTER = Explanation(
    "With the squared loss no row ever drops out, as rows do that a hinge has done with. An "
    "adaptive distribution then has less to choose from, and rows that it leaves out "
    "in one epoch have to "
    "be made up for in the next.",
    loss="squared",
)
