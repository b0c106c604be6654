"""What the steps of a solve cost, so that `auto` can choose between them.

Costs are nanoseconds by rates of this package's kernels (`Rates`), which microbenchmarks measure
(`calibrate`). The published ones are in force by default and no clock is read, so that the same
seed takes the same path on every run. Only their ratios matter; ``python -m adasdca.costs``
measures those of a machine, and ``ADASDCA_RATES`` or `use` puts them in force.
"""

from adasdca.costs.model import Costs
from adasdca.costs.rates import Rates, current, use

__all__ = ["Costs", "Rates", "calibrate", "current", "use"]


def calibrate() -> Rates:
    """Measure the rates of this machine, in less than a second, and return them.

    Timings vary from run to run, and with them the paths that solves take: save the rates and load
    them where runs are to be repeated.
    """
    # It runs solves, and these ask for costs.
    from adasdca.costs.calibration import measure

    return measure()
