"""
A curved boundary, in a pipeline
================================

A linear model on features of a kernel draws curved boundaries. ``Nystroem`` makes the features, and
a grid search chooses the width of the kernel and C together.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from adasdca import AdaSDCAClassifier
from adasdca.plotting import COLORS

X, y = make_moons(600, noise=0.25, random_state=0)
pipeline = make_pipeline(
    Nystroem(n_components=100, random_state=0), AdaSDCAClassifier(loss="smoothed_hinge")
)
search = GridSearchCV(
    pipeline,
    {"nystroem__gamma": [0.3, 1.0, 3.0], "adasdcaclassifier__C": [0.1, 1.0, 10.0]},
    cv=5,
).fit(X, y)
print(search.best_params_, f"accuracy {search.best_score_:.3f}")
print(search.best_estimator_[-1].certificate_)

# %%
# The scores of the search, and the boundary that it chose; dashed is a margin of 1.

xs, ys = np.meshgrid(np.linspace(-1.8, 2.8, 200), np.linspace(-1.4, 1.9, 200))
scores = search.decision_function(np.column_stack([xs.ravel(), ys.ravel()])).reshape(xs.shape)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=(1.5, 1))
left.contourf(
    xs, ys, scores, levels=np.linspace(-3, 3, 13), cmap="PuOr_r", extend="both", alpha=0.7
)
left.contour(xs, ys, scores, levels=[-1, 0, 1], colors="black", linestyles=["--", "-", "--"])
left.scatter(*X.T, c=np.where(y == 1, COLORS["red"], COLORS["blue"]), s=8)
left.grid(visible=False)
table = search.cv_results_["mean_test_score"].reshape(3, 3)  # C down, gamma across
right.imshow(table, cmap="Blues")
for (i, j), value in np.ndenumerate(table):
    shade = "white" if value > table.mean() else "black"
    right.text(j, i, f"{value:.3f}", ha="center", va="center", color=shade)
right.set(xticks=range(3), xticklabels=[0.3, 1, 3], xlabel="gamma of the kernel")
right.set(yticks=range(3), yticklabels=[0.1, 1, 10], ylabel="C", title="accuracy of 5 folds")
right.grid(visible=False)
plt.show()
