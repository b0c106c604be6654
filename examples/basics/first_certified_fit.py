"""
A first certified fit
=====================

Fit a linear classifier to the mushrooms data, and read how far it can be from the best one.
"""

import matplotlib.pyplot as plt
import numpy as np

import adasdca
from adasdca.plotting import COLORS

X, y = adasdca.datasets.load_mushrooms()
print(X.shape, "labels", np.unique(y))

# %%
# The objective is a mean of losses plus ``lam/2 ‖w‖²``; the solve ends when the duality gap is at
# most ``tol`` times the objective. The method is the paper's here, whose epochs make a picture; the
# default needs two.

solution = adasdca.solve(
    X, y, loss="smoothed_hinge", lam=1 / len(y), method="adasdca+", tol=1e-8, random_state=0
)
print(solution)

# %%
# The certificate: no choice of coefficients has an objective below ``dual``, and the best ones
# are within ``radius`` of ``coef``. A prediction whose score is larger than ``radius·‖x‖`` would
# have the same sign under the exact optimum.

print(f"objective {solution.primal:.6e}; no w has one lower by more than {solution.gap:.1e}")
scores = X @ solution.coef
lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
settled = np.abs(scores) > solution.radius * lengths
print(f"accuracy {np.mean(np.sign(scores) == y):.4f}")
print(f"predictions that the exact optimum shares: {settled.sum()} of {len(y)}")

# %%
# Every evaluation of the gap is in ``history``. The upper curve is a model, the lower one a proof.

history = solution.history
figure, axes = plt.subplots(figsize=(7.5, 4.2))
blue, orange = COLORS["blue"], COLORS["orange"]
axes.plot(history.epoch, history.primal, "-o", color=blue, label="primal: the current model")
axes.plot(history.epoch, history.dual, "--s", color=orange, label="dual: a bound on every model")
axes.fill_between(history.epoch, history.dual, history.primal, color="0.9", label="duality gap")
axes.set_yscale("symlog", linthresh=1e-3)
axes.set(xlabel="epochs", ylabel="objective")
axes.legend()
plt.show()
