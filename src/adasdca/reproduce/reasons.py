"""Explanations that several claims share; shown only where a verdict is as they describe."""

from __future__ import annotations

from adasdca.reproduce.claims import Explanation

WIDE = Explanation(
    "dorothea has far more features than rows, so that rows hardly disturb each other. That speaks "
    "for visiting every row once an epoch, as a permutation does: a large residue is best removed "
    "by one visit, and the further visits that the adaptive law plans for it are spent in vain.",
    data="dorothea",
)
SURVEY = Explanation(
    "Every method is timed with a certificate after each epoch, so the pass over the rows that "
    "option I takes its residues from is no extra cost here. What remains is drawing rows from a "
    "law that is new each epoch, and a random order of visits to the rows that matter; where few "
    "epochs are saved, that is not paid back.",
)
THINNING = Explanation(
    "After each pick option II divides a row's probability by m, which evens out the importance "
    "law that the epoch began with. Where the norms of the rows are very different, as on w8a, "
    "long rows are then visited less often than IProx-SDCA visits them, and near the optimum it is "
    "they that hold the gap up.",
    data="w8a",
)
SAME_NORMS = Explanation(
    "All rows of mushrooms have the same norm, so importance sampling is uniform sampling; and "
    "with the squared loss nearly all rows keep a residue of similar size to the end, which leaves "
    "little to choose between.",
    data="mushrooms",
    loss="squared",
)
ALL_MATTER = Explanation(
    "With the squared loss no row of cov1 ever stops to matter, and the residues of the rows are "
    "alike. An adaptive law then has little to choose from, and what it leaves out in one epoch "
    "has to be made up for in the next.",
    data="cov1",
    loss="squared",
)
NOISE = Explanation(
    "Times are medians over the seeds on one machine. Where a verdict is marked with ~ the ranges "
    "over the seeds overlap, and it should not be relied on.",
)
