"""Cross-validation at the command line: what is searched, the table and the picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adasdca.cli.output import finite, print_rows
from adasdca.cli.usage import option_named, usage_error

#: Values of C that --search tries.
GRID = [float(f"1e{k}") for k in range(-4, 5)]
#: Folds unless --cv says how many.
FOLDS = 5


@dataclass(frozen=True)
class Search:
    """Cross-validation: the folds, and the values to choose from; None: those of the recipe."""

    folds: int
    Cs: list[float] | None = None
    l1_ratios: list[float] | None = None
    scoring: str | None = None


def check(wanted: bool, **others: object) -> None:
    """Refuse options that a search alone has a use for."""
    given = [option for option, value in others.items() if value is not None]
    if given and not wanted:
        raise usage_error("this needs a search; ask for one with --search.", option_named(given[0]))


def chosen_search(
    wanted: bool, folds: int | None, Cs: list[float] | None, l1_ratios: list[float] | None, n: int
) -> Search | None:
    """Return what the options ask for; None for no cross-validation."""
    if folds is None and not wanted:
        return None
    folds = FOLDS if folds is None else folds
    if folds > n:
        raise usage_error(f"{folds} folds of {n} rows leave some empty; choose fewer.", "--cv")
    return Search(folds, (Cs or GRID) if wanted else None, l1_ratios)


def numbers(text: str | None, option: str, low: float, high: float) -> list[float] | None:
    """Return numbers that are separated by commas, each above `low` and at most `high`."""
    if text is None:
        return None
    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        raise usage_error(f"{text!r} is not a list of numbers such as 0.1,1,10.", option) from None
    bad = [value for value in values if not low <= value <= high or value == np.inf]
    if bad or (high == np.inf and 0 in values):
        limits = "finite numbers above 0" if high == np.inf else "numbers from 0 to 1"
        raise usage_error(f"{(bad or [0])[0]:g} is not allowed; choose {limits}.", option)
    return values


def score_name(estimator: Any) -> str:
    """Name the score that is compared."""
    from adasdca.estimators._cv import own_score  # slow to import

    return own_score(estimator).replace("²", "2")


def scores_in_words(estimator: Any) -> str:
    """Say how well the choice did on rows that it was not fitted on."""
    scores = _at_choice(estimator)
    name, mean, deviation = score_name(estimator), scores.mean(), scores.std()
    shown = f"{100 * mean:.4g} %" if name == "accuracy" else f"{mean:.4g}"
    unit = f"{100 * deviation:.2g} %" if name == "accuracy" else f"{deviation:.2g}"
    return f"cross-validation, {len(scores)} folds: {name} {shown} (from fold to fold ± {unit})"


def _at_choice(estimator: Any) -> Any:
    ratio = int(np.flatnonzero(estimator.l1_ratios_ == estimator.l1_ratio_)[0])
    place = int(np.flatnonzero(estimator.Cs_ == estimator.C_)[0])
    return estimator.scores_[:, ratio, place]


def print_search(estimator: Any) -> None:
    """Print a line for each C and l1_ratio, the choice marked."""
    name = score_name(estimator)
    rows = []
    for r, ratio in enumerate(estimator.l1_ratios_.tolist()):
        for k, C in enumerate(estimator.Cs_.tolist()):
            scores = estimator.scores_[:, r, k]
            chosen = ratio == estimator.l1_ratio_ and C == estimator.C_
            rows.append(
                (
                    f"{C:g}",
                    f"{ratio:g}",
                    f"{scores.mean():.4f}",
                    f"{scores.std():.4f}",
                    "chosen" if chosen else "",
                )
            )
    columns = ("C", "l1_ratio", f"mean {name}", "from fold to fold", "")
    print_rows(f"{len(estimator.scores_)} folds", columns, rows, left=("",))


def as_dict(estimator: Any) -> dict[str, Any]:
    """Return the search, ready for JSON."""
    return {
        "score": score_name(estimator),
        "C": estimator.C_,
        "l1_ratio": estimator.l1_ratio_,
        "best_score": finite(estimator.best_score_),
        "Cs": estimator.Cs_.tolist(),
        "l1_ratios": estimator.l1_ratios_.tolist(),
        "scores": estimator.scores_.tolist(),
    }


def draw(estimator: Any, path: Path) -> None:
    """Draw the scores along C."""
    from adasdca import plotting

    figure = plotting.score_path(
        estimator.Cs_,
        estimator.scores_.mean(axis=0),
        estimator.scores_.std(axis=0),
        [f"l1_ratio {ratio:g}" for ratio in estimator.l1_ratios_.tolist()],
        best=estimator.C_,
        ylabel=f"{score_name(estimator)}, mean of {len(estimator.scores_)} folds",
    )
    plotting.save(figure, path)
