"""The look of the examples' pictures: the colours of the package, and little ink beside them."""

import matplotlib as mpl
from cycler import cycler

from adasdca.plotting import COLORS


def set_style(gallery_conf, fname):
    """Set matplotlib's defaults before each example; sphinx-gallery calls this."""
    mpl.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=list(COLORS.values())),
            "axes.axisbelow": True,
            "axes.grid": True,
            "axes.spines.right": False,
            "axes.spines.top": False,
            "figure.constrained_layout.use": True,
            "figure.figsize": (7.5, 4.2),
            "grid.color": "#e4e4e4",
            "grid.linewidth": 0.6,
            "legend.frameon": False,
        }
    )
