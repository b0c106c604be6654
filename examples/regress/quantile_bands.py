"""
Quantile bands
==============

Not one line through the middle, but lines that a tenth, a quarter, a half ... of the data are
below: quantile regression, on spline features, of data whose spread changes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from adasdca import AdaSDCARegressor
from adasdca.plotting import COLORS

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 1500))
spread = 0.25 + 0.6 * np.exp(-((x - 6.5) ** 2) / 3)
y = np.sin(x) + 0.15 * x + spread * rng.gumbel(size=x.size)
X = x[:, None]

# %%
# A model for each quantile. All of them are solved to the same certified accuracy.

levels = (0.05, 0.25, 0.5, 0.75, 0.95)
models = {
    level: make_pipeline(
        SplineTransformer(n_knots=12),
        AdaSDCARegressor(loss="quantile", quantile=level, C=10.0, tol=1e-6),
    ).fit(X, y)
    for level in levels
}
curves = {level: model.predict(X) for level, model in models.items()}
for level, model in models.items():
    below = np.mean(y <= curves[level])
    print(
        f"{level:4.0%}: {below:6.1%} below, relative gap {model[-1].certificate_.relative_gap:.0e}"
    )

# %%

figure, axes = plt.subplots(figsize=(8, 4.6))
axes.plot(x, y, ".", color="0.65", markersize=2.5)
axes.fill_between(
    x, curves[0.05], curves[0.95], color=COLORS["sky"], alpha=0.3, label="5 % to 95 %"
)
axes.fill_between(
    x, curves[0.25], curves[0.75], color=COLORS["blue"], alpha=0.4, label="25 % to 75 %"
)
axes.plot(x, curves[0.5], color=COLORS["blue"], linewidth=2, label="median")
axes.set(xlabel="x", ylabel="y")
axes.legend(loc="upper left")
plt.show()
