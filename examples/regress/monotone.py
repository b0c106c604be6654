"""
Bounds on coefficients: a curve that must not fall
==================================================

Features that each rise once, with coefficients between 0 and a limit: whatever the data say, the
curve rises, and never faster than the limit allows.
"""

import matplotlib.pyplot as plt
import numpy as np

from adasdca import AdaSDCARegressor
from adasdca.plotting import series

rng = np.random.default_rng(5)
x = np.sort(rng.uniform(0, 1, 250))
dose = np.minimum(1.0, np.maximum(0.0, 1.6 * (x - 0.2))) ** 1.5
y = dose + rng.normal(scale=0.25, size=x.size)

# %%
# A feature is a ramp over one of 25 intervals, so that its coefficient is what the curve rises
# there. ``bounds`` may be a pair of numbers, or of arrays with an entry a feature.

edges = np.linspace(0, 1, 26)
X = np.clip((x[:, None] - edges[:-1]) * 25, 0, 1)
fits = {
    "free": None,
    "rising": (0.0, np.inf),
    "rising, at most 0.06 a step": (0.0, 0.06),
}

figure, axes = plt.subplots(figsize=(8, 4.6))
axes.plot(x, y, ".", color="0.7", markersize=4)
axes.plot(x, dose, color="0.3", linewidth=1, label="truth")
for (name, bounds), style in zip(fits.items(), series(3), strict=True):
    model = AdaSDCARegressor(C=20.0, bounds=bounds, tol=1e-8).fit(X, y)
    curve = model.predict(X)
    axes.plot(x, curve, **{**style, "marker": ""}, linewidth=2, label=name)
    print(f"{name:28} error {np.sqrt(np.mean((curve - dose) ** 2)):.3f}, steepest step "
          f"{model.coef_.max():.3f}, least {model.coef_.min():.3f}")  # fmt: skip
axes.set(xlabel="dose", ylabel="response")
axes.legend()
plt.show()
