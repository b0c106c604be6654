"""The sections of the page: a sentence of the paper each, with the ways in which it can be read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Topic:
    """What a section of the page is about."""

    name: str  #: For files.
    title: str  #: Its heading, and its line on the first screen.
    #: Names of the claims that are judged here, by what tells them apart in a word or two.
    readings: dict[str, str]
    experiments: tuple[str, ...] = ()  #: The experiments that are described and pictured here.


_M_READINGS = {"m = 10": "m-10", "m = 50": "m-50", "best m": "m-best"}

PAPER = (
    Topic(
        "fewest",
        "AdaSDCA needs the fewest iterations",
        {"squared loss": "adasdca-least"},
        ("full",),
    ),
    Topic(
        "iterations",
        "AdaSDCA+ needs fewer iterations than SDCA and IProx-SDCA",
        {
            f"{option}, {words}": f"option-{option}-epochs{name}"
            for option in ("I", "II")
            for words, name in (
                ("m = 2", ""),
                *((words, f"-{name}") for words, name in _M_READINGS.items()),
            )
        },
        ("methods",),
    ),
    Topic(
        "time",
        "AdaSDCA+ needs less time than SDCA and IProx-SDCA",
        {
            f"{option}, {measure}": f"option-{option}-{measure.replace(' ', '-')}"
            for option in ("I", "II")
            for measure in ("seconds", "own seconds")
        },
    ),
    Topic(
        "before-iprox",
        "Option II converges faster than IProx-SDCA",
        {
            "epochs": "option-II-before-iprox-epochs",
            "own seconds": "option-II-before-iprox-own-seconds",
        },
    ),
    Topic(
        "first-option",
        "Option I converges faster than option II",
        {"epochs, m = 2": "option-I-before-II-epochs"}
        | {f"epochs, {words}": f"option-I-before-II-{name}" for words, name in _M_READINGS.items()}
        | {m: f"option-I-before-II-{m.replace(' ', '-')}" for m in ("seconds", "own seconds")},
    ),
    Topic(
        "greatest",
        "The difference is greatest on cov1, in 15 seconds",
        {
            "difference": "greatest-difference",
            "ratio": "greatest-ratio",
            "15 s": "fifteen-seconds",
        },
    ),
    Topic(
        "best-m",
        "The best m depends on the data",
        {"I": "m-depends-option-I", "II": "m-depends-option-II"},
        ("m",),
    ),
    Topic(
        "large-m",
        "A large m makes an epoch a permutation",
        {
            "II, repeats": "large-m-repeats-II",
            "I, repeats": "large-m-repeats-I",
            "II, epochs": "large-m-permutation",
        },
    ),
    Topic(
        "residues",
        "Visits shrink residues, and dividing by m follows them",
        {"residues fall": "residues-fall", "probabilities follow": "probabilities-follow"},
    ),
    Topic(
        "bounds",
        "The theory can be observed",
        {
            "bound, IProx-SDCA": "bound-iprox-sdca",
            "bound, AdaSDCA": "bound-adasdca",
            "bound, optimal": "bound-adasdca, optimal",
            "rate, AdaSDCA": "rate-adasdca",
            "rate, optimal": "rate-adasdca, optimal",
        },
        ("theory",),
    ),
    Topic(
        "optimal",
        "Optimal probabilities converge faster than IProx-SDCA",
        {"smoothed hinge": "corollary-1"},
        ("optimal",),
    ),
    Topic("costs", "Cost of an epoch", {"exponents": "epoch-costs"}, ("table1",)),
    Topic("shapes", "Data sets", {"Table 2": "data-sets"}, ("table2",)),
)

OURS = (
    Topic(
        "permutations",
        "Random permutations beside the paper's methods",
        {
            "before SDCA and IProx-SDCA": "permutation-before-fixed",
            "I before them, epochs": "option-I-before-permutation-epochs",
            "seconds": "option-I-before-permutation-seconds",
            "own seconds": "option-I-before-permutation-own-seconds",
        },
    ),
    Topic("auto", "The method auto needs the least time", {"seconds": "auto-seconds"}),
    Topic(
        "small-m",
        "A small m is enough",
        {"I": "m-small-option-I", "II": "m-small-option-II"},
    ),
    Topic(
        "relaxed",
        "Relaxed probabilities need no more epochs than optimal ones",
        {
            "AdaSDCA": "relaxed-before-optimal-adasdca",
            "AdaSDCA+": "relaxed-before-optimal-adasdca+",
        },
    ),
    Topic(
        "informative",
        "The bounds tell when a run arrives",
        {
            "IProx-SDCA": "tells-iprox-sdca",
            "AdaSDCA": "tells-adasdca",
            "optimal": "tells-adasdca, optimal",
        },
    ),
    Topic(
        "planned",
        "Epochs planned before they are run",
        {"same epochs": "same-law", "fewer seconds": "plan-before-tree"},
        ("samplers",),
    ),
)
