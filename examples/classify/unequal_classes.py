"""
Rare classes and weights
========================

Three rows of a hundred are positive. Weights of the classes move the boundary; a weight is a row
repeated, for every loss, and the certificate counts it so.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import precision_score, recall_score
from sklearn.model_selection import train_test_split

from adasdca import AdaSDCAClassifier
from adasdca.plotting import COLORS, series

X, y = make_classification(
    8000, 12, n_informative=5, weights=[0.97], class_sep=1.1, flip_y=0.01, random_state=2
)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
print(f"{y.mean():.1%} of the rows are positive")

# %%
# From no weight to more than balance (about 30): the price of each positive row that is found.

weights = np.geomspace(1, 100, 13)
models = [
    AdaSDCAClassifier(loss="smoothed_hinge", class_weight={1: w}).fit(X_train, y_train)
    for w in weights
]
found = np.array(
    [
        (
            recall_score(y_test, model.predict(X_test)),
            precision_score(y_test, model.predict(X_test)),
        )
        for model in models
    ]
)
assert all(model.converged_ for model in models)

# %%
# Left: what is found, and how much of it is right. Right: how the scores of both classes move.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
for values, name, style in zip(found.T, ("recall", "precision"), series(2), strict=True):
    left.semilogx(weights, values, **style, label=name)
left.axvline(1 / y.mean(), color="0.5", linestyle=":", label="balance")
left.set(xlabel="weight of the rare class")
left.legend()
for model, color, name in ((models[0], "sky", "weight 1"), (models[-1], "orange", "weight 100")):
    scores = model.decision_function(X_test)
    right.hist(scores[y_test == 0], bins=60, density=True, color=COLORS[color], alpha=0.35)
    right.hist(
        scores[y_test == 1], bins=40, density=True, histtype="step", linewidth=2,
        color=COLORS[color], label=name,
    )  # fmt: skip
right.axvline(0, color="black", linewidth=1)
right.set(xlabel="score (lines: positive rows)", yticks=[])
right.legend()
plt.show()
