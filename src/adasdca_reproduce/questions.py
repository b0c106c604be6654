"""What we ask beyond the paper, as sections of the page: claims without a quotation."""

from __future__ import annotations

from adasdca_reproduce.claims import Alike, Explanation, First, Topic
from adasdca_reproduce.experiments import with_m
from adasdca_reproduce.inside import OfRates, bound_tells
from adasdca_reproduce.paper import COVERED
from adasdca_reproduce.reasons import ALL_MATTER, WIDE, WORST_CASE
from adasdca_reproduce.results import Measure
from adasdca_reproduce.verdicts import Verdict

_FIXED = ("sdca", "iprox-sdca")


def _before_permutation(measure: Measure) -> First:
    return First(
        f"option-I-before-permutation-{measure.replace(' ', '-')}",
        "methods",
        f"Option I needs fewer {measure} than a fresh random permutation each epoch.",
        "option I",
        ("sdca-perm",),
        measure,
        explanations=(WIDE, ALL_MATTER),
    )


def _small_m(option: str) -> First:
    return First(
        f"m-small-option-{option}",
        "m",
        f"For option {option}, m = 2 needs no more epochs than m = 10 and m = 50.",
        with_m(option, "2"),
        (with_m(option, "10"), with_m(option, "50")),
        "epochs",
        strict=False,
        explanations=(
            Explanation(
                "A large m makes an epoch close to a permutation of the rows that have a residue. "
                "Where the residues are of similar size, or have saturated, that is what is "
                "wanted.",
                short="a permutation suits rows that matter alike",
            ),
        ),
    )


def _relaxed(kind: str, words: str, relaxed: str, optimal: str) -> First:
    return First(
        f"relaxed-before-optimal-{kind}",
        "optimal",
        f"{words} with the relaxed distribution, which the theory does not cover for the smoothed "
        "hinge, needs no more epochs than with the constrained-optimal one, which it covers.",
        relaxed,
        (optimal,),
        "epochs",
        strict=False,
        explanations=(
            Explanation(
                "The constraint keeps every row with a residue above a floor, so that small "
                "residues are not forgotten while large ones are worked on.",
            ),
            Explanation(
                "The constraint lifts all rows with a small residue to a floor, which spends "
                "visits where there is little to gain: the guarantee has a price.",
                Verdict.HOLDS,
            ),
        ),
    )


def _bound_tells(method: str) -> OfRates:
    words, losses = COVERED[method]
    return OfRates(
        f"tells-{method}",
        "theory",
        f"When the relative gap of {words} arrives at 1e-6, or its run ends, its bound is below "
        "the gap of the beginning.",
        method,
        losses,
        bound_tells,
        explanations=(WORST_CASE,),
    )


_PERMUTATIONS = First(
    "permutation-before-fixed",
    "methods",
    "A fresh random permutation each epoch, which the paper leaves out, needs fewer epochs "
    "than SDCA and IProx-SDCA, which draw rows with replacement.",
    "sdca-perm",
    _FIXED,
    "epochs",
    explanations=(
        Explanation(
            "Rows of very different norms: a permutation visits them all alike, importance "
            "sampling does not.",
            data="w8a",
            short="the norms of w8a differ",
        ),
    ),
)
_AUTO = First(
    "auto-seconds",
    "methods",
    "The method `auto` of this package, which ends with Newton steps, needs fewer seconds than "
    "all the others.",
    "auto",
    (*_FIXED, "sdca-perm", "option II", "option I"),
    "seconds",
    explanations=(
        Explanation(
            "A Newton step has a price that does not depend on the gap; where adaptive epochs "
            "are over sooner than it is paid, they are ahead.",
            short="a Newton step has a fixed price",
        ),
    ),
)
_SAME_EPOCHS = Alike(
    "same-distribution",
    "samplers",
    "Epochs planned before they are run need the same number of epochs as rows drawn one by "
    "one from a tree (the paper's Random Counters), up to what seeds do: the ranges over the "
    "seeds meet, or the medians differ by at most 2 epochs or 10 %.",
    ("option I", "tree"),
    "epochs",
)
_FEWER_SECONDS = First(
    "plan-before-tree",
    "samplers",
    "Planned epochs need fewer seconds than the tree.",
    "option I",
    ("tree",),
    "seconds",
    explanations=(
        Explanation(
            "Few rows with many entries each: drawing them costs next to nothing beside the "
            "updates, whichever way.",
            data="dorothea",
        ),
    ),
)

OURS = (
    Topic(
        "permutations",
        "Random permutations beside the paper's methods",
        {
            "before SDCA and IProx-SDCA, epochs": _PERMUTATIONS,
            "I before them, epochs": _before_permutation("epochs"),
            "I before them, seconds": _before_permutation("seconds"),
            "I before them, own seconds": _before_permutation("own seconds"),
        },
    ),
    Topic(
        "auto",
        "The method auto needs the least time",
        {
            "seconds": _AUTO,
        },
    ),
    Topic("small-m", "A small m is enough", {"I": _small_m("I"), "II": _small_m("II")}),
    Topic(
        "relaxed",
        "Relaxed probabilities need no more epochs than optimal ones",
        {
            "AdaSDCA": _relaxed("adasdca", "AdaSDCA", "adasdca", "adasdca, optimal"),
            "AdaSDCA+": _relaxed("adasdca+", "AdaSDCA+", "option I", "adasdca+, optimal"),
        },
    ),
    Topic(
        "informative",
        "The bounds tell when a run arrives",
        {
            "IProx-SDCA": _bound_tells("iprox-sdca"),
            "AdaSDCA": _bound_tells("adasdca"),
            "optimal": _bound_tells("adasdca, optimal"),
        },
    ),
    Topic(
        "planned",
        "Epochs planned before they are run",
        {
            "same epochs": _SAME_EPOCHS,
            "fewer seconds": _FEWER_SECONDS,
        },
        ("samplers",),
    ),
)
QUESTIONS = tuple(claim for topic in OURS for claim in topic.readings.values())
