"""
Your own sampling rule
======================

A rule is a function from a survey to weights. The larger its weight, the more often a row is
visited in the coming epoch. AdaSDCA+ draws the epoch from the weights, and the certificate judges
the result.
"""

import matplotlib.pyplot as plt
import numpy as np

import adasdca
from adasdca.plotting import METHODS, series

# %%
# A survey holds an array for each figure of the rows; see :class:`adasdca.Survey`. This rule
# trusts large residues more than the paper's does, which takes them to the power 1.


def sharp(survey):
    """|κ|^1.5 times the paper's factor."""
    factor = np.sqrt(survey.weight * (survey.curvature + survey.gamma))
    return np.abs(survey.residue) ** 1.5 * factor


# %%
# This one visits the rows with a residue, all alike: is it the set that matters, or the sizes?


def equal(survey):
    """1 where there is something left to do."""
    return np.abs(survey.residue) > 1e-12


# %%
# Pass the function itself, or register it under a name.

adasdca.register_rule("sharp", sharp)
X, y = adasdca.datasets.load_mushrooms()
figure, axes = plt.subplots(figsize=(7.5, 4.2))
known, new = METHODS, series(4)
looks = {
    "I": known["adasdca+ (I)"].line,
    "II": known["adasdca+ (II)"].line,
    "sharp": new[2],
    equal: new[3],
}
for option, style in looks.items():
    solution = adasdca.solve(
        X,
        y,
        loss="smoothed_hinge",
        lam=1 / len(y),
        method=adasdca.AdaSDCAPlus(option=option),
        tol=1e-6,
        random_state=0,
    )
    name = option if isinstance(option, str) else option.__name__
    history = solution.history
    axes.loglog(history.epoch[1:], history.relative_gap[1:], **style, markevery=0.1, label=name)
    print(f"{name:6} {solution.n_epochs:4} epochs, relative gap {solution.relative_gap:.1e}")
axes.set_xlabel("epochs")
axes.set_ylabel("relative duality gap")
axes.legend()
plt.show()

# %%
# On these data the set of rows makes the difference, not how the visits are shared within it;
# option II and its like spend most visits on rows that have nothing left to gain.
