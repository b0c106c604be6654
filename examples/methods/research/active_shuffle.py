"""A method: a random order of the rows that still have something to gain."""

import numpy as np

import adasdca


@adasdca.register_method("active-shuffle")
def active_shuffle(survey, rng):
    """Pick the rows whose weight is not far below the mean."""
    weight = survey.adaptive
    return rng.permutation(np.flatnonzero(weight > 0.01 * weight.mean()))
