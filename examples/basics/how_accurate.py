"""
How accurate is accurate enough?
================================

The tolerance bounds the objective. What does it mean for the model? The same fit at every
tolerance: its certified gap, the true distance to the optimum, the bound on it, and what
predictions notice.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

import adasdca
from adasdca.plotting import series

X, y = make_classification(6000, 60, n_informative=25, flip_y=0.1, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, 2.0 * y - 1, random_state=0)
problem = {"loss": "logistic", "lam": 1e-3, "method": "adasdca+", "random_state": 0}

exact = adasdca.solve(X_train, y_train, tol=1e-14, **{**problem, "method": "auto"})
tols = 10.0 ** -np.arange(1, 11)
seen = []
for tol in tols:
    solution = adasdca.solve(X_train, y_train, tol=tol, **problem)
    scores, best = X_test @ solution.coef, X_test @ exact.coef
    seen.append(
        (
            solution.relative_gap,
            (solution.primal - exact.primal) / exact.primal,
            solution.radius / np.linalg.norm(exact.coef),
            np.linalg.norm(solution.coef - exact.coef) / np.linalg.norm(exact.coef),
            np.mean(np.sign(scores) != np.sign(best)),
        )
    )
seen = np.array(seen)

# %%
# The bounds hold at every tolerance. Below the picture: the share of the predictions on new rows
# that differ from the exact optimum's.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
styles = series(4)
names = ("certified gap", "true gap", "certified distance of w", "true distance of w")
for axes, first in ((left, 0), (right, 2)):
    for k in (first, first + 1):
        axes.loglog(tols, np.maximum(seen[:, k], 1e-17), **styles[k], label=names[k])
    axes.invert_xaxis()
    axes.set(xlabel="tol")
    axes.legend()
left.set_ylabel("relative to the optimum")
plt.show()
for tol, share in zip(tols, seen[:, 4], strict=True):
    print(f"tol {tol:.0e}: {share:.2%} of the predictions differ from the exact optimum's")
