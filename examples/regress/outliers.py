"""
Regression with outliers
========================

An eighth of the targets are wrong by far. Least squares follows them; the Huber and the absolute
loss do not, and each comes with the proof that its objective is minimal.
"""

import matplotlib.pyplot as plt
import numpy as np

from adasdca import AdaSDCARegressor
from adasdca.plotting import COLORS, series

rng = np.random.default_rng(1)
x = np.sort(rng.uniform(-3, 3, 200))
truth = 1.0 + 2.0 * x
y = truth + rng.normal(scale=0.7, size=x.size)
wrong = rng.choice(x.size, 50, replace=False)
wrong = wrong[x[wrong] > 0]
y[wrong] -= rng.uniform(8, 16, wrong.size)
X = x[:, None]

# %%
# ``delta`` is where the Huber loss turns from a parabola into a line: about the size of the errors
# that are ordinary.

models = {
    "squared": AdaSDCARegressor(loss="squared", C=10.0),
    "huber": AdaSDCARegressor(loss="huber", delta=1.0, C=10.0),
    "absolute": AdaSDCARegressor(loss="absolute", C=10.0),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), width_ratios=(1.5, 1))
ordinary = np.setdiff1d(np.arange(x.size), wrong)
left.plot(x[ordinary], y[ordinary], "o", color="0.7", markersize=3.5)
left.plot(x[wrong], y[wrong], "X", color=COLORS["grey"], markersize=6, label="outliers")
left.plot(x, truth, color="0.3", linewidth=1, label="truth")
away = np.linspace(-6, 6, 200)
for (name, model), style in zip(models.items(), series(3), strict=True):
    model.fit(X, y)
    look = {**style, "marker": ""}
    left.plot(x, model.predict(X), **look, linewidth=2, label=name)
    loss = {"squared": away**2 / 2, "absolute": np.abs(away)}.get(
        name, np.where(np.abs(away) < 1, away**2 / 2, np.abs(away) - 0.5)
    )
    right.plot(away, loss, **look, linewidth=2, label=name)
    print(
        f"{name:9} slope {model.coef_[0]:.2f} (true 2), intercept {model.intercept_:.2f} (true 1), "
        f"relative gap {model.certificate_.relative_gap:.0e}"
    )
left.set(xlabel="x", ylabel="y")
left.legend()
right.set(ylim=(0, 8), xlabel="target minus prediction", title="what an error costs")
plt.show()
