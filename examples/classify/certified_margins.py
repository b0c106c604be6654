"""
Predictions that are certain
============================

A fit to a loose tolerance is cheap. How many of its predictions could still change, if it went on
to the exact optimum? ``certified_margin`` tells, point by point.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from adasdca import AdaSDCAClassifier
from adasdca.plotting import COLORS

X, y = make_blobs(600, centers=[[-1.2, 0], [1.2, 0.6]], cluster_std=0.9, random_state=3)
xs, ys = np.meshgrid(np.linspace(-4, 4.5, 240), np.linspace(-3, 4, 240))
grid = np.column_stack([xs.ravel(), ys.ravel()])

# %%
# Three tolerances. In the white band the sign of the exact optimum is not proved, and outside of it
# it is. The band shrinks with the square root of the duality gap.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), sharey=True)
for ax, tol in zip(axes, (1e-3, 1e-4, 1e-6), strict=True):
    # Permutations, since `auto` would go on to the last digits on data as small as these.
    model = AdaSDCAClassifier(C=1.0, tol=tol, method="sdca-perm", random_state=0).fit(X, y)
    margin = model.certified_margin(grid)
    side = np.where(margin > 0, np.where(model.predict(grid) == 1, 1.0, -1.0), 0.0)
    ax.contourf(
        xs, ys, side.reshape(xs.shape), levels=[-1.5, -0.5, 0.5, 1.5],
        colors=[COLORS["sky"], "white", COLORS["orange"]], alpha=0.45,
    )  # fmt: skip
    for label, color, marker in ((0, "blue", "o"), (1, "red", "^")):
        shown = X[y == label]
        ax.plot(*shown.T, marker, color=COLORS[color], markersize=2.5, linestyle="none")
    certain = np.mean(model.certified_margin(X) > 0)
    ax.set_title(f"tol = {tol:.0e}: {certain:.1%} certain")
    ax.grid(visible=False)
    print(f"tol {tol:.0e}: radius {model.radius_:.1e}, {certain:.1%} of the points certain")
plt.show()
