"""
Where adaptive probabilities go
===============================

Uniform sampling visits all rows alike to the end. AdaSDCA+ follows the residues: rows that have
found their place are left alone, and the visits gather where something is left to gain.
"""

import matplotlib.pyplot as plt
import numpy as np

import adasdca
from adasdca.plotting import METHODS

X, y = adasdca.datasets.load_mushrooms()
problem = {"loss": "smoothed_hinge", "lam": 1 / len(y), "tol": 1e-10, "random_state": 0}
seen = []


@adasdca.register_rule("watched")
def watched(survey):
    """Option I of the paper, and a note of the probabilities."""
    seen.append(survey.adaptive / survey.adaptive.sum())
    return survey.adaptive


adaptive = adasdca.solve(X, y, method=adasdca.AdaSDCAPlus(option="watched"), **problem)
uniform = adasdca.solve(X, y, method="sdca", **problem)
probabilities = np.array(seen)
print(
    f"epochs to a relative gap of 1e-10: {adaptive.n_epochs} adaptive, {uniform.n_epochs} uniform"
)

# %%
# Left: the probability of each row, epoch by epoch, the rows in the order of their probabilities in
# all. Middle: how many rows share 90 % of the probability. Right: what that gains.

order = np.argsort(-probabilities.sum(axis=0))
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4))
relative = np.maximum(probabilities[:, order].T * len(y), 1e-3)
mesh = left.pcolormesh(
    np.arange(len(seen)), np.arange(1, len(y) + 1), relative, norm="log", cmap="viridis",
    vmin=1e-2, vmax=1e2, rasterized=True,
)  # fmt: skip
figure.colorbar(mesh, ax=left, label="relative to uniform")
left.set(xlabel="epoch", ylabel="row", yscale="log", title="probability of each row")
left.grid(visible=False)
ranked = np.sort(probabilities, axis=1)[:, ::-1].cumsum(axis=1)
rows = (ranked < 0.9).sum(axis=1) + 1
look = METHODS["adasdca+ (I)"]
middle.semilogy(rows, **look.line, markevery=0.1, label=look.name)
middle.axhline(0.9 * len(y), **{**METHODS["sdca"].line, "marker": ""}, label="uniform")
middle.set(xlabel="epoch", ylabel="rows", title="rows with 90 % of the probability")
middle.legend()
for key, solution in (("sdca", uniform), ("adasdca+ (I)", adaptive)):
    history = solution.history
    right.semilogy(
        history.epoch, history.relative_gap, **METHODS[key].line, markevery=0.1,
        label=METHODS[key].name,
    )  # fmt: skip
right.set(xlabel="epoch", ylabel="relative duality gap", xlim=(0, 3 * adaptive.n_epochs))
right.legend()
plt.show()
