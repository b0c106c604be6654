"""Which schedule a method runs by."""

from __future__ import annotations

from adasdca.auto import AutoSchedule
from adasdca.methods import (
    SDCA,
    AdaSDCA,
    AdaSDCAPlus,
    Auto,
    Custom,
    IProxSDCA,
    Method,
    Quartz,
    SDCAPerm,
)
from adasdca.problem.problem import Problem
from adasdca.schedules import (
    AdaptiveSchedule,
    ImportanceSchedule,
    PermutationSchedule,
    PickSchedule,
    QuartzSchedule,
    Schedule,
    StepwiseSchedule,
    UniformSchedule,
)


def make_schedule(method: Method, problem: Problem, tol: float, threads: int) -> Schedule:
    """Return the schedule of a method for a problem; an error says what does not fit."""
    if problem.fit_intercept and isinstance(method, Quartz):
        # Its averages lag behind the multipliers, which then overshoot and diverge.
        raise ValueError(
            f"method = {method!r} cannot fit an intercept; pass fit_intercept=False, or choose "
            "another method such as 'adasdca+'."
        )
    smooth_only = isinstance(method, Quartz) or (
        isinstance(method, AdaSDCA) and method.rule == "optimal"
    )
    if problem.loss.smoothness == 0 and smooth_only:
        raise ValueError(
            f"method = {method!r} needs a smooth loss (γ > 0); choose a smooth loss such as "
            "'smoothed_hinge', or another method such as 'adasdca+'."
        )
    match method:
        case SDCA():
            return UniformSchedule()
        case SDCAPerm():
            return PermutationSchedule()
        case IProxSDCA():
            return ImportanceSchedule()
        case Quartz():
            return QuartzSchedule(method.sampling)
        case AdaSDCA():
            return StepwiseSchedule(method.rule)
        case AdaSDCAPlus():
            return AdaptiveSchedule(method, problem.fit_intercept)
        case Auto():
            return AutoSchedule(problem, tol, threads)
        case Custom():
            return PickSchedule(method)
