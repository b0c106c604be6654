"""Words for a comparison: the table and the JSON document."""

from __future__ import annotations

import dataclasses
from typing import Any

import adasdca
from adasdca.cli.output import described, finite, print_rows
from adasdca.cli.race import Entrant, Limits, Run, Setting


def print_table(setting: Setting, entrants: list[Entrant], runs: list[Run]) -> None:
    """Print a line for each method."""
    columns = ("method", "epochs", "updates/n", "seconds", "relative gap", "status")
    rows = []
    done = {run.label: run for run in runs}
    for entrant in entrants:
        run = done.get(entrant.label)
        if run is None:
            words = f"left out: {entrant.excuse}" if entrant.excuse else "not run"
            rows.append((entrant.label, "", "", "", "", words))
        else:
            solution = run.solution
            rows.append(
                (
                    run.label,
                    str(solution.n_epochs),
                    f"{run.passes:.1f}",
                    f"{run.seconds:.3f}",
                    f"{solution.relative_gap:.1e}",
                    solution.status.value,
                )
            )
    print_rows(setting.title(), columns, rows, left=("method", "status"))


def as_dict(
    setting: Setting, limits: Limits, entrants: list[Entrant], runs: list[Run]
) -> dict[str, Any]:
    """Return all that was measured, ready for JSON; a figure that is not finite is null."""
    return {
        "adasdca": adasdca.__version__,
        "problem": dataclasses.asdict(setting) | {"loss": described(setting.loss)},
        "limits": dataclasses.asdict(limits),
        "runs": [_run(run) for run in runs],
        "left_out": {e.label: e.excuse for e in entrants if e.excuse},
    }


def _run(run: Run) -> dict[str, Any]:
    solution, history = run.solution, run.solution.history
    return {
        "label": run.label,
        "method": described(run.method),
        "epochs": solution.n_epochs,
        "updates": solution.n_updates,
        "seconds": run.seconds,
        **{
            name: finite(getattr(solution, name))
            for name in ("primal", "dual", "gap", "relative_gap", "radius")
        },
        "status": solution.status.value,
        "history": {
            field.name: getattr(history, field.name).tolist()
            for field in dataclasses.fields(history)
        },
    }
