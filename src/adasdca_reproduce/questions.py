"""What we ask beyond the paper, as data: the same kinds of claims, without a quotation."""

from __future__ import annotations

from adasdca_reproduce.claims import Alike, Claim, Explanation, First
from adasdca_reproduce.experiments import LOSSES, with_m
from adasdca_reproduce.inside import OfRates, bound_tells
from adasdca_reproduce.reasons import ALL_MATTER, WIDE, WORST_CASE
from adasdca_reproduce.results import Measure
from adasdca_reproduce.verdicts import Verdict

_FIXED = ("sdca", "iprox-sdca")
_MEASURES: tuple[Measure, ...] = ("epochs", "seconds", "own seconds")

QUESTIONS: tuple[Claim, ...] = (
    *(
        First(
            f"m-small-option-{option}",
            "m",
            f"For option {option}, m = 2 needs no more epochs than m = 10 and m = 50.",
            with_m(option, "2"),
            (with_m(option, "10"), with_m(option, "50")),
            "epochs",
            strict=False,
            explanations=(
                Explanation(
                    "A large m makes an epoch close to a permutation of the rows that have a "
                    "residue. Where the residues are of similar size, or have saturated, that is "
                    "what is wanted.",
                    short="a permutation suits rows that matter alike",
                ),
            ),
        )
        for option in ("I", "II")
    ),
    First(
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
    ),
    *(
        First(
            f"option-I-before-permutation-{measure.replace(' ', '-')}",
            "methods",
            f"Option I needs fewer {measure} than a fresh random permutation each epoch.",
            "option I",
            ("sdca-perm",),
            measure,
            explanations=(WIDE, ALL_MATTER),
        )
        for measure in _MEASURES
    ),
    First(
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
    ),
    *(
        First(
            f"relaxed-before-optimal-{kind}",
            "optimal",
            f"{words} with the relaxed distribution, which the theory does not cover for the "
            "smoothed "
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
        for kind, words, relaxed, optimal in (
            ("adasdca", "AdaSDCA", "adasdca", "adasdca, optimal"),
            ("adasdca+", "AdaSDCA+", "option I", "adasdca+, optimal"),
        )
    ),
    *(
        OfRates(
            f"tells-{method}",
            "theory",
            f"When the relative gap of {words} arrives at 1e-6, or its run ends, its bound is "
            "below the gap of the beginning.",
            method,
            losses,
            bound_tells,
            explanations=(WORST_CASE,),
        )
        for method, words, losses in (
            ("iprox-sdca", "IProx-SDCA", LOSSES),
            ("adasdca", "AdaSDCA with the squared loss", ("squared",)),
            (
                "adasdca, optimal",
                "AdaSDCA with the constrained-optimal probabilities and the smoothed hinge",
                ("smoothed_hinge",),
            ),
        )
    ),
    Alike(
        "same-law",
        "samplers",
        "Epochs planned before they are run need the same number of epochs as rows drawn one by "
        "one from a tree (the paper's Random Counters), up to what seeds do: the ranges over the "
        "seeds meet, or the medians differ by at most 2 epochs or 10 %.",
        ("option I", "tree"),
        "epochs",
    ),
    First(
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
    ),
)
