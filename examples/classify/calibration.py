"""
Are the probabilities right?
============================

Among predictions of 80 %, do 80 % come true? The logistic loss and the modified Huber loss give
probabilities by themselves; any other loss gets them from ``CalibratedClassifierCV``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import train_test_split

from adasdca import AdaSDCAClassifier
from adasdca.plotting import series

rng = np.random.default_rng(0)
X = rng.normal(size=(12_000, 20))
logit = X @ np.linspace(-0.8, 0.8, 20)
y = (rng.uniform(size=len(X)) < 1 / (1 + np.exp(-logit))).astype(int)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

# %%
# The labels follow a logistic model, so that the logistic loss has an advantage here.

models = {
    "logistic": AdaSDCAClassifier(loss="logistic"),
    "modified Huber": AdaSDCAClassifier(loss="modified_huber"),
    "hinge, calibrated": CalibratedClassifierCV(
        AdaSDCAClassifier(loss="hinge", C=0.01), method="sigmoid", cv=5
    ),
}
figure, (curve, counts) = plt.subplots(1, 2, figsize=(10, 4.2), width_ratios=(1.3, 1))
curve.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="as it says")
for (name, model), style in zip(models.items(), series(3), strict=True):
    said = model.fit(X_train, y_train).predict_proba(X_test)[:, 1]
    seen, mean = calibration_curve(y_test, said, n_bins=12)
    curve.plot(mean, seen, **style, markersize=5, label=name)
    counts.hist(said, bins=30, range=(0, 1), histtype="step", linewidth=1.6, color=style["color"],
                linestyle=style["linestyle"])  # fmt: skip
    print(f"{name:18} Brier score {brier_score_loss(y_test, said):.4f}")
curve.set(xlabel="probability of class 1", ylabel="share of class 1")
curve.legend()
counts.set(xlabel="probability of class 1", ylabel="rows")
plt.show()
