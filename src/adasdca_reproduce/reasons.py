"""Explanations that several claims share; shown only where a verdict is as they describe."""

from __future__ import annotations

from adasdca_reproduce.claims import Explanation

WIDE = Explanation(
    "Residues saturate. On dorothea a row's curvature is hundreds of times γ, so that one visit "
    "carries a row beyond its margin; there its residue is its small dual variable, whatever a "
    "step would gain. Such rows hold most of the gain that is left and get little of the "
    "probability. Option III of this package weighs rows by what their steps gain, and needs far "
    "fewer epochs there.",
    data="dorothea",
    loss="smoothed_hinge",
    short="residues saturate on dorothea",
)
SURVEY = Explanation(
    "With a certificate after each epoch of every method, the pass that option I takes its "
    "residues from is no extra cost; own seconds charge it to option I alone. What remains is "
    "drawing the rows from a distribution of their own; where an epoch is cheap and few epochs are "
    "saved, that is not paid back.",
    short="the pass for the residues, and drawing, are not paid back",
)
THINNING = Explanation(
    "After each pick option II divides a row's probability by m, which evens out the importance "
    "distribution that the epoch began with. On w8a the norms of the rows are very "
    "different, and long rows "
    "are then visited less often than IProx-SDCA visits them; probably they need those visits.",
    data="w8a",
    short="thinning evens out the norms of w8a",
)
SAME_NORMS = Explanation(
    "All rows of mushrooms have the same norm, so that importance sampling is uniform sampling: "
    "what is left of option II is that it repeats rows less often.",
    data="mushrooms",
    short="equal norms on mushrooms",
)
ALL_MATTER = Explanation(
    "With the squared loss no row ever drops out, as rows do that a hinge has done with. An "
    "adaptive distribution then has less to choose from, and rows that it leaves out "
    "in one epoch have to "
    "be made up for in the next.",
    loss="squared",
    short="with the squared loss all rows matter",
)
