"""
Penalty factors: prefer what is smooth
======================================

Not every coefficient deserves the same penalty. With factors that grow with the frequency, a
Fourier series prefers slow waves, and a forecast of the yearly curve comes out smooth.
"""

import matplotlib.pyplot as plt
import numpy as np

from adasdca import AdaSDCARegressor
from adasdca.plotting import COLORS

rng = np.random.default_rng(2)
day = np.sort(rng.choice(730, 220, replace=False))
phase = 2 * np.pi * day / 365.25


def temperature(phase):
    return (
        10
        - 9 * np.cos(phase - 0.35)
        + 2 * np.sin(2 * phase)
        + 1.5 * np.exp(3 * np.cos(phase - 4) - 3)
    )


y = temperature(phase) + rng.normal(scale=2.5, size=day.size)


def waves(phase, count=30):
    k = np.arange(1, count + 1)
    return np.hstack([np.cos(phase[:, None] * k), np.sin(phase[:, None] * k)])


# %%
# The same penalty for all sixty waves, and one that grows with the fourth power of the frequency: a
# penalty of the squared second derivative, as splines have it.

frequency = np.tile(np.arange(1, 31), 2)
equal = AdaSDCARegressor(C=1.0, tol=1e-8).fit(waves(phase), y)
smooth = AdaSDCARegressor(C=1.0, tol=1e-8, penalty_factors=frequency**4.0 / 10).fit(waves(phase), y)

grid = np.linspace(0, 2 * np.pi, 400)
for name, model in (("equal", equal), ("smooth", smooth)):
    error = np.sqrt(np.mean((model.predict(waves(grid)) - temperature(grid)) ** 2))
    print(f"{name:6} error {error:.2f}, relative gap {model.certificate_.relative_gap:.0e}")

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=(1.5, 1))
left.plot(phase % (2 * np.pi) / (2 * np.pi) * 365, y, ".", color="0.65", markersize=4)
days = grid / (2 * np.pi) * 365
left.plot(days, temperature(grid), color="0.3", linewidth=1, label="truth")
for name, model, color, dash in (("equal", equal, "orange", "--"), ("smooth", smooth, "blue", "-")):
    left.plot(days, model.predict(waves(grid)), dash, color=COLORS[color], linewidth=2, label=name)
    size = np.hypot(model.coef_[:30], model.coef_[30:])
    right.semilogy(
        range(1, 31), size, dash, marker="o", markersize=4, color=COLORS[color], label=name
    )
left.set(xlabel="day of the year", ylabel="temperature")
left.legend()
right.set(xlabel="waves a year", ylabel="amplitude")
right.legend()
plt.show()
