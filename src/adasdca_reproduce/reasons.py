"""Explanations that several claims share; shown only where a verdict is as they describe."""

from __future__ import annotations

from adasdca_reproduce.claims import Explanation
from adasdca_reproduce.verdicts import Verdict

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
    "After each pick the probability of a row is divided by m, which evens out the distribution "
    "that the epoch began with, the more the larger m is. On w8a the norms of the rows are very "
    "different, and long rows are then visited less often than IProx-SDCA visits them; probably "
    "they need those visits.",
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
NORMS_APART = Explanation(
    "Where the norms of rows differ by more than the divisor, long rows are visited again while "
    "short ones wait.",
    data="w8a",
    short="the norms of w8a differ by more than m",
)
LEFT_OUT = Explanation(
    "Option I gives rows without a residue no probability. The n draws of an epoch go to the "
    "others, round after round where these are few: an epoch is some permutations of the rows "
    "that matter, not one of all.",
    short="rows without a residue are left out",
)
VISITED = Explanation(
    "The step itself takes the residue to 0: it ends where the dual variable is that of the score. "
    "What is left at the end of the epoch is what the visits of other rows have brought back.",
    Verdict.HOLDS,
)
DISTURBED = Explanation(
    "The visits of other rows change a residue, too, and they are not counted: rows that were not "
    "visited have new residues as well.",
    short="visits of other rows change residues, too",
)
WORST_CASE = Explanation(
    "A bound is for the worst data with such norms, and for all of its directions. The gap arrives "
    "while the bound is still above where the gap began: the theory explains the order of the "
    "methods, not their speed.",
    short="a bound is for the worst data with such norms",
)
BETTER_RATE = Explanation(
    "The rate is that of importance sampling where residues are alike, and grows as few rows come "
    "to hold most of them.",
    Verdict.HOLDS,
)
