"""The finishes of `auto`: from a point that epochs have reached to any accuracy.

`plans` prices and chooses them. For smooth losses `newton` takes the steps, `systems` solves their
equations, and `kernel_matrix` keeps the inner products of rows. For losses with kinks `kinks` finds
the free duals on a `patch` of the rows, with the regulariser's own kinks in `rounding`. `span`
turns few rows with many features into few features.
"""

from adasdca.newton.plans import Finish, make_finish

__all__ = ["Finish", "make_finish"]
