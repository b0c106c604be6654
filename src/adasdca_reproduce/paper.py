"""What the paper says of its figures, sentence by sentence, as data."""

from __future__ import annotations

from typing import Literal

from adasdca_reproduce.claims import (
    Alike,
    Claim,
    Costs,
    Depends,
    Explanation,
    First,
    Greatest,
    Shapes,
    Within,
)
from adasdca_reproduce.experiments import DATA, LOSSES, with_m
from adasdca_reproduce.inside import (
    OfRates,
    OfVisits,
    below_bound,
    faster_rate,
    probabilities_follow,
    rarely_repeat,
    residues_fall,
)
from adasdca_reproduce.reasons import (
    ALL_MATTER,
    BETTER_RATE,
    DISTURBED,
    LEFT_OUT,
    NORMS_APART,
    SAME_NORMS,
    SURVEY,
    THINNING,
    VISITED,
    WIDE,
)
from adasdca_reproduce.results import Measure
from adasdca_reproduce.verdicts import Verdict

_FIXED = ("sdca", "iprox-sdca")

_OPTIONS: tuple[tuple[str, Measure, tuple[Explanation, ...]], ...] = (
    ("I", "epochs", (WIDE, ALL_MATTER)),
    ("II", "epochs", (THINNING, SAME_NORMS)),
    ("I", "seconds", (WIDE, ALL_MATTER, SURVEY)),
    ("II", "seconds", (THINNING, SAME_NORMS, SURVEY)),
    ("I", "own seconds", (WIDE, ALL_MATTER, SURVEY)),
    ("II", "own seconds", (THINNING, SAME_NORMS)),
)
_MS = ("2", "10", "50")
_BOUND = (
    "E[P(w^t) − D(α^t)] ≤ (1/θ̃_t) Π_k (1 − θ̃_k) (D(α^*) − D(α^0)) (Theorems 1 and 3; the product "
    "here up to t − 1, as proved)"
)
_KINDS: tuple[Literal["difference", "ratio"], ...] = ("difference", "ratio")
_I_BEFORE_II: tuple[tuple[Measure, tuple[Explanation, ...]], ...] = (
    ("epochs", (WIDE, ALL_MATTER)),
    ("seconds", (WIDE, ALL_MATTER)),
    ("own seconds", (WIDE, ALL_MATTER, SURVEY)),
)

CLAIMS: tuple[Claim, ...] = (
    Costs(
        "epoch-costs",
        "table1",
        quote="One epoch computational cost of different algorithms (Table 1)",
        reading="The time of an epoch grows with no larger exponent of n, and none of nnz, than "
        "the paper's formula, fitted at the same sizes in the same way, up to 0.2 for caches that "
        "overflow on the way.",
        slack=0.2,
        explanations=(
            Explanation(
                "AdaSDCA keeps its scores up to date by columns here, instead of computing them "
                "anew before every step, so that its exponents need not be those of the formula.",
                Verdict.HOLDS,
                data="adasdca",
            ),
            Explanation(
                "A visit has a price of its own beside that of the row's entries: a random place "
                "in memory, a step of the loss. At fixed nnz it grows with n, and the formulas "
                "count none of it.",
                short="a visit has a price beside that of its entries",
            ),
        ),
    ),
    Shapes(
        "data-sets",
        "table2",
        quote="Dimensions and nonzeros of the datasets (Table 2)",
        reading="d, n and the density agree with the paper to its digits.",
        explanations=(
            Explanation(
                "ijcnn1 has 13 entries in each of its rows of 22: the density that the paper "
                "prints is the share of the zeros.",
                data="ijcnn1",
                short="of ijcnn1 the zeros were counted",
            ),
        ),
    ),
    First(
        "adasdca-least",
        "full",
        "AdaSDCA needs no more epochs than any other method.",
        "adasdca",
        (*_FIXED, "option II", "option I"),
        "epochs",
        quote="AdaSDCA needs the least amount of iterations to converge, confirming the "
        "theoretical result.",
        strict=False,
        explanations=(
            Explanation(
                "A step of AdaSDCA may cost as much as a pass over the data; where its budget of "
                "time was over before a gap was reached, its epochs to that gap are not known.",
                Verdict.OPEN,
            ),
            Explanation(
                "The theory bounds the progress of one step from the point where it is made. "
                "It does not say that the steps that are best one by one make the shortest way.",
            ),
        ),
    ),
    *(
        First(
            f"option-{option}-{measure.replace(' ', '-')}",
            "methods",
            f"Option {option} needs fewer {measure} than both SDCA and IProx-SDCA.",
            f"option {option}",
            _FIXED,
            measure,
            quote="both options of AdaSDCA+ outperforms SDCA and IProx-SDCA, in terms of number of "
            "iterations, for quadratic loss functions and for smoothed Hinge loss functions."
            if measure == "epochs"
            else "One can observe similar results in terms of time",
            explanations=why,
        )
        for option, measure, why in _OPTIONS
    ),
    *(
        First(
            f"option-{option}-epochs-{name}",
            "m",
            f"Option {option} with {words} needs fewer epochs than both SDCA and IProx-SDCA.",
            claimant,
            _FIXED,
            "epochs",
            quote="both options of AdaSDCA+ outperforms SDCA and IProx-SDCA, in terms of number of "
            "iterations",
            explanations=why,
            rivals_of="methods",
        )
        for option, why in (("I", (WIDE, ALL_MATTER)), ("II", (THINNING, SAME_NORMS)))
        for name, words, claimant in (
            ("m-10", "m = 10", with_m(option, "10")),
            ("m-50", "m = 50", with_m(option, "50")),
            ("m-best", "the best of the paper's m", tuple(with_m(option, m) for m in _MS)),
        )
    ),
    *(
        First(
            f"option-II-before-iprox-{measure.replace(' ', '-')}",
            "methods",
            f"Option II needs fewer {measure} than IProx-SDCA, whose probabilities it begins with.",
            "option II",
            ("iprox-sdca",),
            measure,
            quote="we also update iteratively the sampling probability, which as we show through "
            "numerical experiments yields a faster convergence than IProx-SDCA.",
            explanations=(THINNING,),
        )
        for measure in ("epochs", "own seconds")
    ),
    *(
        First(
            f"option-I-before-II-{measure.replace(' ', '-')}",
            "methods",
            f"Option I needs fewer {measure} than option II.",
            "option I",
            ("option II",),
            measure,
            quote="Despite the fact that Option I is not theoretically supported for smoothed "
            "hinge loss, it still converges faster than Option II on every dataset and for every "
            "loss function.",
            explanations=why,
        )
        for measure, why in _I_BEFORE_II
    ),
    *(
        First(
            f"option-I-before-II-{name}",
            "m",
            f"With {words}, option I needs fewer epochs than option II.",
            claimant,
            rivals,
            "epochs",
            quote="it still converges faster than Option II on every dataset and for every loss "
            "function",
            explanations=(WIDE, ALL_MATTER),
        )
        for name, words, claimant, rivals in (
            *((f"m-{m}", f"m = {m}", (with_m("I", m),), (with_m("II", m),)) for m in ("10", "50")),
            (
                "m-best",
                "the best of the paper's m for each",
                tuple(with_m("I", m) for m in _MS),
                tuple(with_m("II", m) for m in _MS),
            ),
        )
    ),
    *(
        Greatest(
            f"greatest-{kind}",
            "methods",
            f"The {kind} of the seconds of option II and those of option I is greatest on cov1 "
            "with the smoothed hinge, among the problems on which both reached the gap.",
            ("option I", "option II"),
            ("cov1", "smoothed_hinge"),
            "seconds",
            kind=kind,
            quote="The biggest difference can be observed on Figure 13 [cov1, smoothed hinge, "
            "time]",
            explanations=(
                Explanation(
                    "Option I gains where most rows come to have no residue and are left alone; "
                    "the table above has the share of the others.",
                    data="cov1",
                    short="other data leave more rows alone",
                ),
            ),
        )
        for kind in _KINDS
    ),
    Within(
        "fifteen-seconds",
        "methods",
        "Option I reaches the limits of double precision on cov1 with the smoothed hinge in 15 "
        "seconds, here on another machine.",
        "option I",
        ("cov1", "smoothed_hinge"),
        15.0,
        quote="Option I converges to the machine precision in just 15 seconds.",
    ),
    *(
        Depends(
            f"m-depends-option-{option}",
            "m",
            f"For option {option}, no one of m = 2, 10 and 50 needs the fewest epochs on all "
            "problems.",
            option,
            _MS,
            quote="It is hard to draw a clear conclusion here because clearly the optimal m shall "
            "depend on the dataset and the problem type.",
        )
        for option in ("I", "II")
    ),
    *(
        OfVisits(
            f"large-m-repeats-{option}",
            "theory",
            f"In the median epoch of option {option} with m = 50, at most 5 % of the draws go to a "
            "row that was drawn before.",
            with_m(option, "50"),
            rarely_repeat,
            quote="If m is too large, the probability of sampling the same coordinate twice during "
            "an epoch will be very small. This will result in a random permutation through all "
            "coordinates every epoch.",
            explanations=why,
        )
        for option, why in (("II", (NORMS_APART,)), ("I", (LEFT_OUT,)))
    ),
    Alike(
        "large-m-permutation",
        "m",
        "Option II with m = 50 needs as many epochs as random permutations, up to what seeds do: "
        "the ranges over the seeds meet, or the medians differ by at most 2 epochs or 10 %.",
        (with_m("II", "50"), "sdca-perm"),
        "epochs",
        quote="If m is too large, the probability of sampling the same coordinate twice during an "
        "epoch will be very small. This will result in a random permutation through all "
        "coordinates every epoch.",
        other_of="methods",
        explanations=(NORMS_APART,),
    ),
    OfVisits(
        "residues-fall",
        "theory",
        "Of the rows that the median epoch of option I visits, more than half end it with a "
        "smaller residue.",
        "option I",
        residues_fall,
        quote="After i is sampled and the dual coordinate α_i is updated, the residue κ_i "
        "naturally decreases.",
        explanations=(VISITED,),
    ),
    OfVisits(
        "probabilities-follow",
        "theory",
        "At the end of the median epoch of option I, the probabilities as divided by m = 2 are "
        "nearer to those of the new residues, in total variation, than those of its beginning.",
        "option I",
        probabilities_follow,
        quote="By doing this we avoid the computation of κ at each iteration […] while following "
        "closely the changes of the dual residue κ.",
        explanations=(DISTURBED,),
    ),
    *(
        OfRates(
            f"bound-{name}",
            "theory",
            f"The gap of {words} stays below the bound after every epoch: means over the seeds.",
            name,
            losses,
            below_bound,
            quote=quote,
        )
        for name, words, losses, quote in (
            (
                "iprox-sdca",
                "IProx-SDCA",
                LOSSES,
                "E[P(w^t) − D(α^t)] ≤ (1/θ_*) (1 − θ_*)^t (D(α^*) − D(α^0)) (Theorem 2)",
            ),
            ("adasdca", "AdaSDCA with the squared loss", ("squared",), _BOUND),
            (
                "adasdca, optimal",
                "AdaSDCA with the constrained-optimal probabilities and the smoothed hinge",
                ("smoothed_hinge",),
                _BOUND,
            ),
        )
    ),
    *(
        OfRates(
            f"rate-{name}",
            "theory",
            f"The rate of {words} is at no survey below that of importance sampling.",
            name,
            losses,
            faster_rate,
            quote="(a:esdfdf) holds and θ̃_t ≥ θ_* for all t ≥ 0 (Corollaries 1 and 2)",
            explanations=(BETTER_RATE,),
        )
        for name, words, losses in (
            ("adasdca", "AdaSDCA with the squared loss", ("squared",)),
            (
                "adasdca, optimal",
                "AdaSDCA with the constrained-optimal probabilities and the smoothed hinge",
                ("smoothed_hinge",),
            ),
        )
    ),
    First(
        "corollary-1",
        "optimal",
        "AdaSDCA with the constrained-optimal probabilities needs fewer epochs than IProx-SDCA on "
        "the smoothed hinge.",
        "adasdca, optimal",
        ("iprox-sdca",),
        "epochs",
        quote="a better convergence rate than IProx-SDCA can be achieved by using properly chosen "
        "adaptive sampling probability. […] However, solving [the program for the optimal p] "
        "requires large computational effort",
        explanations=(
            Explanation(
                "A better bound on every step does not promise fewer steps in all: bounds are met "
                "by the worst case alone.",
            ),
        ),
    ),
)

#: Numbers of the paper's figures, in the order in which it prints them.
_ORDER = (
    *(("full", "squared", data) for data in ("w8a", "dorothea", "mushrooms", "ijcnn1")),
    *(("time", loss, data) for loss in LOSSES for data in DATA),
    *(("iterations", loss, data) for loss in LOSSES for data in DATA),
    *(("m", loss, d) for loss in LOSSES for d in DATA if (loss, d) != ("smoothed_hinge", "cov1")),
)
FIGURES = {name: k for k, name in enumerate(_ORDER, 1)}
